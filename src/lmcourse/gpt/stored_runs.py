"""Tables of small GPTs that were trained before and are stored.

They are made of the results of two studies: *ladder*, a GPT built part by part and held
against n-grams, and *sizes*, GPTs of other sizes and on little text.
"""

import numpy as np
import pandas as pd

AXES = {"d_model": "width", "heads": "heads", "layers": "layers", "shape": "layers × width"}
BEST_NGRAMS = "best n-grams"
COURSE = "the course's GPT"
SEEDS = ("1", "2", "3")  # of the small GPTs, as the study *ladder* names them


def parts_table(runs):
    """Return the test losses of small GPTs that were built part by part.

    Parameters
    ----------
    runs : list of dict
        Of the study *ladder*, the models with most parts first: ``rung``, the last part
        that a model has, such as "feed-forward"; ``seed``, a str; ``test``, the test loss.

    Returns
    -------
    DataFrame
        In nats a character: one row for each part, in the order in which they are added,
        one column for each seed.
    """
    table = pd.DataFrame(runs)
    order = [*dict.fromkeys(table.rung)][::-1]
    return table.pivot_table("test", "rung", "seed").loc[order]


def sizes_table(runs):
    """Return a table of GPTs of several sizes: what was varied, and the last loss.

    Parameters
    ----------
    runs : list of dict
        Of the study *sizes*: ``axis``, what is varied ("d_model", "heads", "layers", or
        "shape", layers and width); ``value``, an int, of "shape" a list of two; ``seed``;
        ``parameters``, their number; ``history``, pairs of step and validation loss in
        nats.

    Returns
    -------
    DataFrame
        One row for each run: ``axis``, ``value`` (a str, such as "64" or "2 × 64"),
        ``seed``, ``parameters``, and ``loss``, the last validation loss in nats.
    """
    table = pd.DataFrame(runs)
    table["loss"] = [history[-1][1] for history in table.history]
    values = table["value"].astype(str).str.strip("[]")
    table["value"] = values.str.replace(", ", " × ")
    return table[["axis", "value", "seed", "parameters", "loss"]]


def sizes_summary(table):
    """Return a table for readers: lowest, mean and highest loss of the seeds of each size.

    Parameters
    ----------
    table : DataFrame
        A row for each run: ``axis``, what is varied ("d_model", "heads", "layers" or
        "shape", layers and width), and its ``value``, a str; ``seed``; ``parameters``,
        their number; ``loss``, in nats.

    Returns
    -------
    DataFrame
        One row for each size, such as "width 64" (the index): ``min``, ``mean`` and ``max``
        of the losses, in nats, and ``parameters``.
    """
    groups = table.groupby(["axis", "value"], sort=False)
    summary = groups.loss.agg(["min", "mean", "max"]).round(3)
    summary["parameters"] = groups.parameters.first()
    summary.index = [f"{AXES[axis]} {value}" for axis, value in summary.index]
    return summary


def little_runs(runs):
    """Return the runs on little text at the learning rate that suits each dropout best.

    Parameters
    ----------
    runs : list of dict
        Of the study *sizes*, its group "little": ``dropout``, ``rate``, the learning rate,
        ``seed``, and ``history``, rows of step, loss on the model's own text, loss on
        held-out text, in nats.

    Returns
    -------
    DataFrame
        A row for each run that is kept, with the same columns and ``best``, its lowest
        held-out loss.
    """
    table = pd.DataFrame(runs)
    table["best"] = [min(row[2] for row in history) for history in table.history]
    means = table.pivot_table("best", "dropout", "rate")
    return table[table.rate == table.dropout.map(means.idxmin(axis=1))]


def by_models(rows):
    """Return rows of the study *ladder*, about models alone and averaged, by their names.

    Parameters
    ----------
    rows : list of dict
        ``models``, a list with the name of one model ("counting", the n-grams; "1", "2" or
        "3", a small GPT by its seed; "the course's") or of two; ``sonnets``, a list of
        float, a number for each test sonnet, in nats a character.

    Returns
    -------
    dict of tuple of str to float array of shape (sonnets,)
        Names → the numbers: of one model its mean loss on each test sonnet; of two by how
        much the mean of their probabilities is better than the better one of them.
    """
    return {tuple(row["models"]): np.array(row["sonnets"]) for row in rows}


def losses_alone(rows):
    """Return each model's loss on each test sonnet; of the small GPTs the mean of three.

    Parameters
    ----------
    rows : list of dict
        Of the study *ladder*: ``models``, a list with the name of one model ("counting",
        the n-grams; "1", "2" or "3", a small GPT by its seed; "the course's"), or those of
        two that are averaged; ``sonnets``, a loss for each test sonnet, in nats a
        character.

    Returns
    -------
    dict of str to float array of shape (sonnets,)
        "best n-grams", "small GPT" or "the course's GPT" → nats a character.
    """
    losses = by_models(rows)
    return {
        BEST_NGRAMS: losses["counting",],
        "small GPT": np.mean([losses[seed,] for seed in SEEDS], axis=0),
        COURSE: losses["the course's",],
    }


def gains(rows):
    """Return what averaging two models gains over the better of them, on each test sonnet.

    Parameters
    ----------
    rows : list of dict
        Of the study *ladder*: ``models``, a list with the name of one model ("counting",
        the n-grams; "1", "2" or "3", a small GPT by its seed; "the course's"), or those of
        two that are averaged; ``sonnets``, a number for each test sonnet: of two models, by
        how many nats a character their average has a lower loss than the better one.

    Returns
    -------
    dict of str to float array of shape (sonnets,)
        "n-grams + small GPT", "small GPT + another" and "n-grams + the course's GPT" → the
        gain in nats a character; means over the seeds of the small GPTs.
    """
    gained = by_models(rows)
    pairs = [("1", "2"), ("1", "3"), ("2", "3")]
    return {
        "n-grams + small GPT": np.mean([gained["counting", s] for s in SEEDS], axis=0),
        "small GPT + another": np.mean([gained[pair] for pair in pairs], axis=0),
        f"n-grams + {COURSE}": gained["counting", "the course's"],
    }
