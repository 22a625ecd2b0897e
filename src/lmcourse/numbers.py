"""How the book writes numbers, and the one way to its 95 % intervals.

`format_number` writes a number or an interval as the text does: "71 %", "−0.20", "62 to
75 %". `bootstrap_interval` says how far a mean (or another statistic) may be from what
other texts of the same kind would give; `crossed_interval` is for a table of which rows
and columns are both drawn. They are drawn by `lmcourse.views.error_bars` and
`lmcourse.views.band`.
"""

from collections.abc import Callable, Sequence

import numpy as np

MINUS = "\N{MINUS SIGN}"
PERCENT = "\N{NO-BREAK SPACE}%"
LEVEL = 0.95
LARGEST_BATCH = 10**7  # resampled values that are held at once


# --- writing --------------------------------------------------------------------------


def format_number(value: float | str | Sequence[float], form: str = "") -> str:
    """Return a number, an interval or a text as the book writes it.

    Parameters
    ----------
    value : float, str, or a pair of floats
        A tuple, list or array of two numbers is an interval.
    form : str
        A format specification of Python, such as ``".2f"``, ``"+.1f"``, ``",d"`` or
        ``".0%"``.

    Returns
    -------
    str
        ``0.71`` with ``".0%"`` is "71 %", whose space does not break; ``(0.62, 0.75)`` is
        "62 to 75 %". Minus is a minus sign; what rounds to zero has none.

    Raises
    ------
    ValueError
        If the format does not fit, or a sequence has not two numbers.
    """
    if isinstance(value, str):
        return format(value, form)
    if np.ndim(value) > 0:
        if len(value) != 2:
            raise ValueError(f"an interval has two ends, not {len(value)}")
        low, high = (format_number(end, form) for end in value)
        return f"{low.removesuffix(PERCENT)} to {high}"
    text = format(value, form)
    if form.endswith("%"):
        text = text.removesuffix("%") + PERCENT
    if not text.startswith("-"):
        return text
    is_zero = not any(digit in text for digit in "123456789") and "0" in text
    return text[1:] if is_zero else MINUS + text[1:]


def percent(share: float | Sequence[float], digits: int = 0) -> str:
    """Return a share, or an interval of two shares, in per cent: 0.71 is "71 %".

    Parameters
    ----------
    share : float or pair of float
        1 is 100 %.
    digits : int
        After the decimal point.
    """
    return format_number(share, f".{digits}%")


def format_estimate(value: float, interval: Sequence[float], form: str) -> str:
    """Return a number with its interval: "71 % (62 to 75 %)".

    Parameters
    ----------
    value : float
        The number, such as a mean.
    interval : pair of float
        Its lower and its upper end.
    form : str
        A format specification of Python, such as ``".2f"`` or ``".0%"``.
    """
    return f"{format_number(value, form)} ({format_number(interval, form)})"


def plural(count: int, noun: str) -> str:
    """Return a noun's singular if ``count`` is 1, else its plural: the noun and an s."""
    return noun if count == 1 else f"{noun}s"


# --- intervals ------------------------------------------------------------------------


def bootstrap_interval(
    *samples: Sequence[float],
    statistic: Callable = np.mean,
    groups: Sequence | None = None,
    draws: int = 2000,
    seed: int = 0,
) -> tuple[float, float]:
    """Return the 95 % bootstrap interval of a mean, or of another statistic.

    The observations are drawn again, with replacement, as many as there are; the interval
    holds the middle 95 % of what the statistic becomes (Efron 1979; the percentile method
    of `scipy.stats.bootstrap`).

    Parameters
    ----------
    *samples : array-like of shape (observations,)
        One number a text (poem, pair, seed): what is independent of the others. For a
        paired comparison give the differences, or several samples in the same order, which
        are drawn together. Where a text is more than a number give the texts' places,
        ``range(len(texts))``, and a statistic that looks them up.
    statistic : callable
        From the samples and ``axis`` to the statistic along that axis; default the mean.
        ``lambda new, old, axis: new.sum(axis) / old.sum(axis)`` is a ratio of sums.
    groups : array-like of shape (observations,), optional
        A label for each observation of the only sample: they are drawn within each group,
        and the statistic is the mean of the groups' means, each of the same weight.
    draws : int
        How many times everything is drawn again.
    seed : int or numpy Generator
        A generator goes on from where it is, and so over several intervals.

    Returns
    -------
    low, high : float

    Raises
    ------
    ValueError
        If there are fewer than two observations (in a group), samples of different
        lengths, groups for several samples, or values that are not finite.
    """
    from scipy import stats  # a second to import: only who wants an interval waits

    values = [np.asarray(sample, dtype=float) for sample in samples]
    if not values or {each.shape for each in values} != {values[0].shape}:
        raise ValueError("samples of one length are needed, one number an observation")
    if values[0].ndim != 1 or not all(np.isfinite(each).all() for each in values):
        raise ValueError("a sample is a row of finite numbers")
    batch = max(1, LARGEST_BATCH // max(1, values[0].size))
    if groups is not None:
        values = _split_by_label(values, groups)
        batch = draws  # groups are drawn one after the other: a batch would change them
        statistic = _mean_of_means
    return _ends(
        stats.bootstrap(
            values,
            statistic,
            paired=groups is None,
            vectorized=True,
            n_resamples=draws,
            batch=min(batch, draws),
            confidence_level=LEVEL,
            method="percentile",
            rng=np.random.default_rng(seed),
        ).confidence_interval
    )


def _split_by_label(values: list[np.ndarray], labels: Sequence) -> list[np.ndarray]:
    """Split one sample into the observations of each label.

    Parameters
    ----------
    values : list of one array of shape (observations,)
    labels : sequence of that length

    Returns
    -------
    list of array
        A label each, in the order of the sorted labels.

    Raises
    ------
    ValueError
        If there are several samples, or not a label for each observation.
    """
    labels = np.asarray(labels)
    if len(values) != 1:
        raise ValueError("groups are for one sample: give differences for a comparison")
    if labels.shape != values[0].shape:
        raise ValueError(f"{labels.shape} labels for {values[0].shape} observations")
    return [values[0][labels == label] for label in np.unique(labels)]


def _mean_of_means(*groups: np.ndarray, axis: int) -> np.ndarray:
    """Return the mean of the groups' means, so that all groups count alike.

    ``*groups`` : float arrays, the same shape but along ``axis``, over which each is
    averaged.
    """
    return np.mean([group.mean(axis=axis) for group in groups], axis=0)


def _ends(interval: Sequence[float]) -> tuple[float, float]:
    """Return the two ends of an interval as Python's floats."""
    low, high = interval
    return float(low), float(high)


def crossed_interval(
    values: Sequence,
    per: Sequence | None = None,
    *,
    draws: int = 2000,
    seed: int = 0,
) -> tuple[float, float]:
    """Return the 95 % interval of the mean of tables whose rows and columns are drawn.

    In a table of all pairs of some nouns with some verbs, two pairs that share a noun are
    not independent. Here the rows and the columns of each table are drawn again, each with
    replacement, and with them the pairs.

    Parameters
    ----------
    values : array-like of shape (rows, columns) or (tables, rows, columns)
        NaN where there is no value.
    per : array-like of the same shape, optional
        What to divide by: the interval is that of the sum of ``values`` divided by the sum
        of ``per``, over the rows and columns drawn. By default each value counts once,
        which gives the mean.
    draws : int
        How often rows and columns are drawn again.
    seed : int

    Returns
    -------
    low, high : float

    Raises
    ------
    ValueError
        If the shapes do not fit.
    """
    table = np.asarray(values, dtype=float)
    weights = ~np.isnan(table) if per is None else np.asarray(per, dtype=float)
    if table.ndim not in (2, 3) or weights.shape != table.shape:
        raise ValueError(
            f"values are (rows, columns) or (tables, rows, columns), and ``per`` the same; "
            f"these have the shapes {table.shape} and {weights.shape}"
        )
    rng = np.random.default_rng(seed)
    tables, rows, columns = (1,) * (3 - table.ndim) + table.shape
    # How often each row, and each column, is drawn: (draws, tables, rows or columns).
    by_row = rng.multinomial(rows, np.full(rows, 1 / rows), (draws, tables))
    by_column = rng.multinomial(columns, np.full(columns, 1 / columns), (draws, tables))
    times = by_row[..., :, None] * by_column[..., None, :]
    times = times.reshape(draws, -1)  # how often each pair is drawn
    above = times @ np.nan_to_num(table).ravel()  # (draws,)
    below = times @ np.nan_to_num(weights).ravel()
    ratios = above[below != 0] / below[below != 0]
    return _ends(np.quantile(ratios, [(1 - LEVEL) / 2, (1 + LEVEL) / 2]))
