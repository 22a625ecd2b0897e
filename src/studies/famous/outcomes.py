"""What a measurement returns, and the statistics that several of them share."""

import numpy as np

from lmcourse.numbers import bootstrap_interval


def outcome(values, null, holds, **more):
    """Return what a measurement found, as it is stored.

    Parameters
    ----------
    values : sequence of float
        One number for each text, pair, word or training.
    null : float
        The same mean in the world where there is nothing to find.
    holds : callable
        From the mean and its 95 % interval, a pair of float, to whether the published
        sentence holds: True, False, or None where that is too close to say.
    **more : bool, int, float, str or list
        Other values for the page.

    Returns
    -------
    dict
        ``ours``, the mean; ``interval``, that of it at 95 %, by bootstrap over ``values``,
        a list of two; ``null``, as it is given; ``n``, how many values; ``holds``, True,
        False or None; and what ``more`` gives. Floats are rounded to four digits after the
        point.
    """
    values = np.asarray(values, dtype=float)
    mean = float(values.mean())
    span = bootstrap_interval(values)
    answer = holds(mean, span)
    result = {
        "ours": mean,
        "interval": list(span),
        "null": float(null),
        "n": len(values),
        "holds": None if answer is None else bool(answer),
    }
    return rounded(result | more)


def above(span, bar):
    """Return whether a number is above a bar, judged by the interval in which it lies.

    Parameters
    ----------
    span : pair of float
        Its lower and its upper end.
    bar : float
        The number that must be exceeded.

    Returns
    -------
    bool or None
        None: the bar lies in the interval, so that it is too close to say. An interval
        that is the bar and nothing else is not above it.
    """
    low, high = span
    if low > bar:
        return True
    return False if high < bar or low == high else None


def below(span, bar):
    """Return whether a number is below a bar, judged by the interval in which it lies.

    Parameters
    ----------
    span : pair of float
        Its lower and its upper end.
    bar : float
        The number that it must stay under.

    Returns
    -------
    bool or None
        None: the bar lies in the interval, so that it is too close to say. An interval that
        is the bar and nothing else is not below it.
    """
    return above((-span[1], -span[0]), -bar)


def both(first, second):
    """Return whether two conditions are met: True, False or None (too close to say).

    ``first``, ``second`` : bool or None, in the same sense. One that is not met decides,
    however close the other is.
    """
    if first is False or second is False:
        return False
    return None if first is None or second is None else True


def rounded(found):
    """Return an outcome whose floats have four digits after the point.

    ``found`` : dict of str to number, text, None, or list of these; so is what is returned.
    """
    return {name: _rounded(value) for name, value in found.items()}


def _rounded(value):
    """Return a float with four digits after the point; round floats in lists, too.

    ``value`` : object. A tuple becomes a list; what is no float stays as it is.
    """
    if isinstance(value, list | tuple):
        return [_rounded(each) for each in value]
    if isinstance(value, float | np.floating):
        return round(float(value), 4)
    return value


def cosines(first, second):
    """Return the cosine of each pair of rows.

    Parameters
    ----------
    first, second : Tensor of shape (pairs, d)

    Returns
    -------
    float64 array of shape (pairs,)
    """
    first = first.double()
    second = second.double()
    lengths = first.norm(dim=1) * second.norm(dim=1)
    return ((first * second).sum(1) / lengths).numpy()
