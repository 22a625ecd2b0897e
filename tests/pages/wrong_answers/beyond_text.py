"""What goes wrong in the exercises of *beyond-text*, diagnosis → answer."""

import numpy as np
import torch
import torch.nn.functional as F
from scipy.sparse.csgraph import shortest_path


def by_loops(images, size):
    _, rows, columns = images.shape
    corners = [(i, j) for i in range(0, rows, size) for j in range(0, columns, size)]
    return torch.stack(
        [images[:, i : i + size, j : j + size].flatten(1) for i, j in corners], 1
    )


def axes(images, size):
    """(batch, down, size, across, size)"""
    return images.unflatten(2, (-1, size)).unflatten(1, (-1, size))


def arranged(*order):
    """Cut with the axes in another order."""
    return lambda x, size: axes(x, size).permute(*order).flatten(3).flatten(1, 2)


def shares(x):
    return x / x.sum(-1, keepdim=True)


def strips(images, size):
    return images.reshape(len(images), -1, size * size)


def every_second(images, size):
    _, rows, columns = images.shape
    cut = images.reshape(-1, size, rows // size, size, columns // size)
    return cut.permute(0, 2, 4, 1, 3).flatten(3).flatten(1, 2)


def steps_of(joined):
    return shortest_path(joined.numpy(), unweighted=True)


def looked_up(steps, bonus):
    return bonus[:, torch.tensor(np.minimum(steps, bonus.shape[1] - 1)).long()]


def by_scipy(joined, bonus):
    return looked_up(steps_of(joined), bonus)


def by_powers(joined, bonus):
    steps = torch.full(joined.shape, bonus.shape[1] - 1)
    for step in reversed(range(bonus.shape[1] - 1)):
        steps[torch.linalg.matrix_power(joined.double(), step) > 0] = step
    return bonus[:, steps]


def rising_powers(joined, bonus):
    """Let a longer walk overwrite a shorter."""
    steps = torch.full(joined.shape, 3)
    for step in range(3):
        steps[torch.linalg.matrix_power(joined.double(), step) > 0] = step
    return bonus[:, steps.clamp(max=bonus.shape[1] - 1)]


def neighbours_alone(joined, bonus):
    steps = torch.where(joined, 1, bonus.shape[1] - 1).fill_diagonal_(0)
    return bonus[:, steps]


def unreached_near(joined, bonus):
    return looked_up(np.nan_to_num(steps_of(joined), posinf=0), bonus)


def unreached_zero(joined, bonus):
    """Give no bias at all to what cannot be reached."""
    reached = torch.tensor(np.isfinite(steps_of(joined)))
    return torch.where(reached, by_scipy(joined, bonus), 0.0)


def every_round(joined, bonus):
    """Write the round's number wherever somebody was reached so far."""
    far, reached = bonus.shape[1] - 1, torch.eye(len(joined), dtype=torch.bool)
    steps = torch.where(reached, 0, far)
    for step in range(1, far):
        reached = reached | (reached.float() @ joined.float() > 0)
        steps = torch.where(reached, step, steps)
    return bonus[:, steps]


def far_from_itself(joined):
    return np.where(np.eye(len(joined), dtype=bool), np.inf, steps_of(joined))


def information(ids, back):
    pairs = 20 * ids[:, :-back] + ids[:, back:]
    return float((torch.bincount(pairs.flatten(), None, 400).double() ** 2).mean())


def winding(ids):
    """Return the distance of the commonest pairs."""
    strengths = [information(ids, back) / (32 - back) ** 2 for back in range(1, 9)]
    return int(np.argmax(strengths)) + 1


def by_chi_squared(ids):
    from scipy.stats import chi2_contingency

    def statistic(back):
        counts = np.zeros((20, 20))
        np.add.at(counts, (ids[:, :-back].flatten(), ids[:, back:].flatten()), 1)
        return chi2_contingency(counts)[0] / counts.sum()

    return max(range(1, 9), key=statistic)


WRONG = {
    "cut": {
        "strips, not squares": strips,
        "down the columns first": arranged(0, 3, 1, 2, 4),
        "mirrored at its diagonal": arranged(0, 1, 3, 4, 2),
        "lie far apart": every_second,
        "should be a patch": lambda x, s: by_loops(x, s).mT,
    },
    "late": {
        "comes after the softmax": lambda s, b, v: (s.softmax(-1) + b) @ v,
        "may be negative": lambda s, b, v: shares(s.softmax(-1) + b) @ v,
        "softmax of a softmax": lambda s, b, v: (s.softmax(-1) + b).softmax(-1) @ v,
        "cut off": lambda s, b, v: (s.softmax(-1) + b).clamp(min=0) @ v,
        "not used": lambda s, b, v: s.softmax(-1) @ v,
        "subtracted": lambda s, b, v: (s - b).softmax(-1) @ v,
        "multiplies the scores": lambda s, b, v: (s * b).softmax(-1) @ v,
        "down the columns": lambda s, b, v: (s + b).softmax(-2) @ v,
        "these are the weights": lambda s, b, v: (s + b).softmax(-1),
    },
    "by_distance": {
        "only tell neighbours": neighbours_alone,
        "cannot be reached": unreached_near,
        "not zero": unreached_zero,
        "each round overwrites": every_round,
        "it gets the first number": lambda j, p: looked_up(far_from_itself(j), p),
        "one too large": lambda j, p: looked_up(steps_of(j) + 1, p),
        "one too small": lambda j, p: looked_up((steps_of(j) - 1).clip(0), p),
        "the heads are the last": lambda j, p: by_scipy(j, p).movedim(0, -1),
        "longer walk": rising_powers,
    },
    "winding": {
        "one too small": lambda ids: winding(ids) - 1,
        "twice as far": lambda ids: 2 * winding(ids),
        "one number": lambda ids: [winding(ids)],
    },
}
RIGHT = {
    "cut": [by_loops, lambda x, s: F.unfold(x[:, None], s, stride=s).mT],
    "late": [
        lambda s, b, v: F.softmax(s + b, -1) @ v,
        lambda s, b, v: shares((s + b).exp()) @ v,
    ],
    "by_distance": [by_scipy, by_powers],
    "winding": [winding, by_chi_squared],
}
NONSENSE = {"winding": [lambda ids: 4, lambda ids: 2, lambda ids: 8]}
TYPED = {"winding": [lambda ids: 3, lambda ids: 5]}
