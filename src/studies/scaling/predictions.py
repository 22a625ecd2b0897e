"""The loss of a run, predicted from smaller ones by a scaling law and by its rivals."""

import numpy as np

from lmcourse.scaling import fit, law

WAYS = ("law", "line", "neighbour", "ratio", "same")  # to predict the loss of a run


def predict_by_line(parameters, tokens, losses, at_parameters, at_tokens):
    """Predict a loss by a straight line in logarithms: a power law without an offset.

    Parameters
    ----------
    parameters, tokens, losses : array of shape (runs,)
        Of known runs: how large, on how much they were trained, and their losses.
    at_parameters, at_tokens : float
        The size and the training for which a loss is predicted.

    Returns
    -------
    float
        The loss, in the unit of ``losses``.
    """
    inputs = np.log([np.full(len(tokens), np.e), parameters, tokens])  # (3, runs)
    line = np.linalg.lstsq(inputs.T, np.log(losses), rcond=None)[0]
    return np.exp(np.log([np.e, at_parameters, at_tokens]) @ line)


def resample_groups(groups, draws, seed=0):
    """Draw groups of runs again, with replacement.

    Not by `lmcourse.numbers.bootstrap_interval`: one call of `lmcourse.scaling.fit` takes
    the counts of all draws, and a fit that fails is left out of an interval.

    Parameters
    ----------
    groups : sequence
        The group to which each run belongs: runs that differ in their seed alone are of
        one.
    draws : int
        How often all groups are drawn again, as many as there are.
    seed : int
        Of the draws.

    Returns
    -------
    float array of shape (draws, runs)
        How often each run counts.
    """
    names, group = np.unique(groups, return_inverse=True)
    rng = np.random.default_rng(seed)
    drawn = rng.multinomial(len(names), np.full(len(names), 1 / len(names)), draws)
    return drawn[:, group].astype(float)


def predict_runs(rows, targets, draws=400):
    """Predict the losses of runs from others, by the law and by its rivals.

    Parameters
    ----------
    rows : list of dict
        Finished runs: ``parameters``, how many; ``tokens`` read in training; ``test``, the
        loss on test text, in nats a character.
    targets : list of dict
        What is to come: ``parameters``, which occur in ``rows`` with two numbers of tokens
        at least, but not as the smallest; and ``tokens``, which occur with the next smaller
        size.
    draws : int
        How often the runs are drawn again for the interval.

    Returns
    -------
    list of dict
        Of each target its keys and the losses foretold, in nats a character: ``law``, by
        the power law with an offset, with its ``interval`` ([low, high], 95 % of the fits
        to runs drawn again); ``line`` (straight in logarithms); ``ratio`` (by which the
        last step in tokens multiplied the loss of this size, once more, as far as the
        target's tokens); ``neighbour`` (what the same step did to the next smaller size)
        and ``same`` (nothing more is gained).
    """
    sizes = np.array([row["parameters"] for row in rows], float)
    tokens = np.array([row["tokens"] for row in rows], float)
    losses = np.array([row["test"] for row in rows], float)
    best = fit(sizes, tokens, losses)
    resampled = fit(sizes, tokens, losses, resample_groups(sizes * 1e9 + tokens, draws))

    def mean_loss(size, read):
        """Return the mean loss of the runs of one size and one number of tokens, in nats.

        ``size`` : parameters; ``read`` : tokens; numbers that occur among the runs.
        """
        return losses[(sizes == size) & (tokens == read)].mean()

    predictions = []
    for target in targets:
        size = target["parameters"]
        wanted = target["tokens"]
        smaller = sizes[sizes < size].max()
        before_last, last_read = np.unique(tokens[sizes == size])[-2:]
        first = mean_loss(size, before_last)
        last = mean_loss(size, last_read)
        steps = np.log(wanted / last_read) / np.log(last_read / before_last)
        gain = mean_loss(smaller, wanted) / mean_loss(smaller, last_read)
        guesses = {
            "law": law(best, size, wanted)[0, 0],
            "line": predict_by_line(sizes, tokens, losses, size, wanted),
            "neighbour": last * gain,
            "ratio": last * (last / first) ** steps,
            "same": last,
        }
        guesses = {way: round(float(guess), 4) for way, guess in guesses.items()}
        ends = np.nanquantile(law(resampled, size, wanted), [0.025, 0.975])
        predictions.append(target | guesses | {"interval": ends.round(4).tolist()})
    return predictions


def relative_errors(predictions, runs):
    """Return by which share of the mean loss each way of predicting missed each target.

    Parameters
    ----------
    predictions : list of dict
        Of each configuration that was predicted ``parameters``, ``tokens``, and by way
        ("law", "line", "neighbour", "ratio", "same") the predicted loss.
    runs : list of dict
        What came: ``parameters``, ``tokens``, ``test``, the loss; several runs of one
        configuration differ by seed.

    Returns
    -------
    list of dict of str to float
        Of each prediction, way → its error, 0.1 for a tenth; above zero if it expected too
        much loss.
    """
    errors = []
    for prediction in predictions:
        losses = [
            run["test"]
            for run in runs
            if run["parameters"] == prediction["parameters"]
            and run["tokens"] == prediction["tokens"]
        ]
        errors.append({way: float(prediction[way] / np.mean(losses) - 1) for way in WAYS})
    return errors
