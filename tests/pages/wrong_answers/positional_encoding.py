"""What goes wrong in the exercises of *positional-encoding*, diagnosis → answer."""

import math

import numpy as np
import torch

from lmcourse.attention import attention
from lmcourse.positions import rotate


def attend(query=True, key=True, value=False, early=False, layout="interleaved", late=None):
    """Attention of what one projection has made, turned right or nearly."""

    def attended(fused, positions):
        positions = positions if late is None else positions - late
        wide = rotate(fused, positions, layout).chunk(3, -1)
        parts = fused.chunk(3, -1)
        whether = zip(parts, wide, (query, key, value), strict=True)
        turned = [
            (w if early else rotate(x, positions, layout)) if turn else x
            for x, w, turn in whether
        ]
        return attention(*turned)[0]

    return attended


SEEN = {1e3: (0.05, 7.0), 1e4: (0.02, 7.9), 1e5: (0.05, 0.08), 1e6: (0.5, 0.8)}


def both_ends(base):
    """Stand in for the page's models, which the tests do not train."""
    near, far = math.log10(base / 1e5) ** 2, math.log10(1e5 / min(base, 1e5))
    return [0.02 + 0.3 * near * (base > 1e5), 0.08 + 8 * far + 0.4 * near * (base > 1e5)]


def given(page):
    return {"both_ends": both_ends}


def seen(**changed):
    return SEEN | {float(base.strip("_")): pair for base, pair in changed.items()}


def cosines(offset, d_model):
    speeds = 10_000.0 ** (-np.arange(0, d_model, 2) / d_model)
    return np.cos(offset * speeds).sum()


def halves(weight, heads):
    pairs = weight.unflatten(0, (heads, -1, 2))  # (heads, pairs, 2, columns)
    return pairs.transpose(1, 2).reshape(weight.shape)


def appended(cached, new):
    place = torch.tensor([cached.shape[1]])
    return torch.cat((cached, rotate(new, place)), 1)


WRONG = {
    "values_too": {
        "the values are still turned": attend(value=True, early=True),
        "the values are left alone": attend(early=True),
        "the values are turned, too": attend(value=True),
        "the keys are not turned": attend(key=False),
        "the queries are not turned": attend(query=False),
        "nothing is turned": attend(query=False, key=False),
        "begins at position 3": attend(value=True, late=3),
        "half-split": attend(layout="half"),
    },
    "base": {
        "hand over a dict": [1e5, [0.02, 0.08], {}],
        "two losses for each base": [{1e4: 0.02}, {1e4: (1.0, 2.0, 3.0)}],
        "not negative": seen(_100000=(-0.1, 0.1)),
        "is missing": {1e5: (0.05, 0.08), 1e6: (0.5, 0.8)},
        "in this order": seen(_10000=(7.9, 0.02)),
        "try bases greater": {1e4: (0.02, 7.9), 3e4: (0.03, 2.4)},
        "between those around it": {1e4: (0.02, 7.9), 3e4: (0.1, 2.5), 1e6: (3, 3)},
        "does it only get better": {1e4: (0.02, 7.9), 1e5: (0.05, 0.08)},
    },
}

RIGHT = {
    "dot_by_offset": [cosines],
    "half_rows": [halves],
    "append_key": [appended],
    "values_too": [attend()],
    "base": [SEEN, {int(base): list(pair) for base, pair in SEEN.items()}],
}

TYPED = {"base": [SEEN, {1e4: (0.0, 9.0), 2.0: (0.0, 0.0), 3.0: (9.0, 9.0)}]}
