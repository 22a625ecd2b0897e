"""How well each reader of digits did, out of the stored study *beyond-text*."""

import pandas as pd


def reader_accuracies(study):
    """Return how many digits each reader gets right, at its best learning rate.

    Parameters
    ----------
    study : dict
        The stored study *beyond-text*. In ``results`` a run of "digits" has ``reader``,
        ``steps``, ``fold``, ``seed``, and the shares right ``validation`` and ``test``; a
        row of "simple" has ``fold`` and the shares right of ``neighbours`` and
        ``logistic``.

    Returns
    -------
    DataFrame
        A row for each ``reader`` (the name of a model, such as "Transformer"), number of
        training ``steps``, test ``fold`` and ``seed``; ``accuracy`` from 0 to 1, on the
        test fold at the learning rate with the best one in validation. "nearest neighbours"
        and "logistic regression" have 0 steps and the seed 0.
    """
    runs = pd.DataFrame(study["results"]["digits"])
    keys = ["reader", "steps", "fold", "seed"]
    best = runs.loc[runs.groupby(keys).validation.idxmax()]
    networks = best.rename(columns={"test": "accuracy"})[[*keys, "accuracy"]]
    rows = [networks]
    names = {"neighbours": "nearest neighbours", "logistic": "logistic regression"}
    for key, name in names.items():
        for simple in study["results"]["simple"]:
            row = {"reader": name, "steps": 0, "fold": simple["fold"], "seed": 0}
            rows.append(pd.DataFrame([row | {"accuracy": simple[key]}]))
    return pd.concat(rows, ignore_index=True)
