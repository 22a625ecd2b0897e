"""Statistics that the proofs and studies of several chapters compute."""

import numpy as np

from lmcourse.numbers import bootstrap_interval


def auc(positives, negatives) -> float:
    """Return the area under the ROC curve of scores.

    It is the share of all pairs of a positive and a negative in which the positive has the
    higher score; ties count one half. Scores that tell nothing have 0.5.

    Parameters
    ----------
    positives, negatives : array_like of one dimension
        The scores of each kind, at least one each.
    """
    gaps = np.asarray(positives)[:, None] - np.asarray(negatives)
    of_pairs = np.select([gaps > 0, gaps == 0], [1.0, 0.5], 0.0)  # (positives, negatives)
    return float(np.mean(of_pairs))


def extremes(values) -> tuple[float, float]:
    """Return the lowest and the highest of some numbers.

    Parameters
    ----------
    values : sequence of float
        At least one, no Tensor; an array of several axes is taken as one row of numbers.

    Returns
    -------
    low, high : float
    """
    return float(np.min(values)), float(np.max(values))


def ratio_of_sums(numerators, denominators, axis):
    """Return the sum of numerators over that of denominators, along an axis.

    ``numerators``, ``denominators`` : arrays that have this axis; ``axis`` : int. As the
    statistic of `lmcourse.numbers.bootstrap_interval` it is the mean over all items of
    texts that are drawn whole: ``numerators`` holds each text's sum, ``denominators`` its
    number of items; ``axis`` is that of the texts.
    """
    return numerators.sum(axis) / denominators.sum(axis)


def share_interval(hits) -> tuple[float, float]:
    """Return the 95 % bootstrap interval of the share of True in ``hits``, booleans."""
    return bootstrap_interval(np.asarray(hits, dtype=float))
