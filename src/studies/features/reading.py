"""How well one number, a feature or a neuron, tells a known property of places in texts.

A unit is anything that gives a number at each place. It says *yes* where its number is at
least a threshold. Unit and threshold are chosen on some places, and judged on others.
"""

import torch

PARTS = 64  # units that are sorted at a time, to bound memory


def f1_scores(numbers, marks):
    """Return the best F1 of each unit for each property, and the threshold that gives it.

    Units are sorted 64 at a time, so that they fit in memory.

    F1 is the harmonic mean of two shares: of the places with a yes, those that have the
    property; of those that have it, the places with a yes.

    Parameters
    ----------
    numbers : Tensor of shape (places, units)
        The value of each unit at each place.
    marks : bool Tensor of shape (places, properties)
        Where each property is.

    Returns
    -------
    scores, thresholds : Tensor of shape (units, properties)
        The highest F1, 0 to 1, and the value from which on the unit says yes.
    """
    parts = [_f1_part(part, marks) for part in numbers.split(PARTS, dim=1)]
    scores, thresholds = zip(*parts, strict=True)
    return torch.cat(scores), torch.cat(thresholds)


def _f1_part(numbers, marks):
    """Return best F1 and threshold, both (units, properties), of units that fit in memory.

    ``numbers`` : Tensor (places, units); ``marks`` : bool Tensor (places, properties). The
    thresholds that are tried are the unit's own numbers.
    """
    values, order = numbers.sort(dim=0, descending=True)
    yeses = torch.arange(1, len(values) + 1)[:, None]  # places with a yes
    is_last = torch.ones_like(values, dtype=torch.bool)
    is_last[:-1] = values[:-1] > values[1:]  # equal numbers say yes together
    scores = []
    thresholds = []
    for mark in marks.T:
        right = mark[order].cumsum(0)  # (places, units)
        f1 = 2 * right / (yeses + mark.sum())
        best = f1.masked_fill(~is_last, -1).max(0)
        scores.append(best.values)
        thresholds.append(values.gather(0, best.indices[None])[0])
    return torch.stack(scores, 1), torch.stack(thresholds, 1)


def f1(said, mark):
    """Return the F1 of a yes for a property, a float from 0 to 1.

    ``said``, ``mark`` : bool Tensor (places,), where the unit says yes, and where the
    property is. F1 is the harmonic mean of the share of yeses that are right and the share
    of the property's places that get one.
    """
    together = (said & mark).sum()
    return (2 * together / (said.sum() + mark.sum()).clamp(min=1)).item()


def best_units(chosen_on, marks, judged_on, judged_marks, signs=(1,)):
    """Choose a unit and a threshold for each property, and judge them elsewhere.

    Parameters
    ----------
    chosen_on, judged_on : Tensor of shape (places, units)
        The units' numbers, where unit and threshold are chosen and where they are judged.
    marks, judged_marks : bool Tensor of shape (places, properties)
        Where each property is.
    signs : tuple of int
        The signs by which values are multiplied before a unit is read: with -1 among them a
        unit may also say yes where its value is low.

    Returns
    -------
    units : list of int
        Of each property the chosen unit, from 0. If it is read with the second sign, the
        number of units is added.
    scores : list of float
        Of each property the F1 of that unit on the places of ``judged_on``, 0 to 1.
    """
    chosen_on = torch.cat([sign * chosen_on for sign in signs], 1)
    judged_on = torch.cat([sign * judged_on for sign in signs], 1)
    scores, thresholds = f1_scores(chosen_on, marks)
    units = scores.argmax(0)  # (properties,)
    judged = []
    for column, unit in enumerate(units.tolist()):
        present = judged_on[:, unit] >= thresholds[unit, column]
        judged.append(round(f1(present, judged_marks[:, column]), 4))
    return units.tolist(), judged


def named(chosen_on, marks, judged_on, judged_marks, least=50, top=10):
    """Name units by the ten places where they are strongest, and try the names elsewhere.

    A unit gets a name if all ten places share a property: the rarest of these. The name is
    tried at all other places where the unit's number is above 0.

    Parameters
    ----------
    chosen_on, judged_on : Tensor of shape (places, units)
        The units' numbers, where they get their names and where these are tried.
    marks, judged_marks : bool Tensor of shape (places, properties)
        Where each property is.
    least : int
        Units that are above 0 at fewer places, of ``chosen_on`` or of ``judged_on``, are
        left out.
    top : int
        How many places give the name.

    Returns
    -------
    dict
        ``tried``: how many units were not left out; ``names``: of each that got a name a
        list of four: the unit and the property, both as numbers from 0; and, on
        ``judged_on``, the share of places where the unit is above 0 that have the property,
        and the share of places with the property where the unit is above 0.
    """
    is_alive = ((chosen_on > 0).sum(0) >= least) & ((judged_on > 0).sum(0) >= least)
    alive = is_alive.nonzero()[:, 0].tolist()
    frequency = marks.float().mean(0)
    names = []
    for unit in alive:
        strongest = chosen_on[:, unit].topk(top).indices
        shared = marks[strongest].all(0)
        if not shared.any():
            continue
        name = frequency.masked_fill(~shared, 2.0).argmin().item()
        present = judged_on[:, unit] > 0
        mark = judged_marks[:, name]
        right = (present & mark).sum()
        shares = (right / present.sum()).item(), (right / mark.sum().clamp(min=1)).item()
        names.append([unit, name, *(round(share, 4) for share in shares)])
    return {"tried": len(alive), "names": names}
