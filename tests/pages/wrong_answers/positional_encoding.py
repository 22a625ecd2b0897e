"""What goes wrong in the exercises of *positional-encoding*, diagnosis → answer."""

import math

import torch

from lmcourse.attention import attention
from lmcourse.positions import frequencies, interleaved_to_half, rotate


def waves(offset, width, f=torch.cos):
    return f(offset * frequencies(width)).sum().item()


def both(turned, new):
    return torch.cat((turned, new), 1)


def turned_at(key, position, layout="interleaved"):
    return rotate(key, torch.tensor([position]), layout=layout)


def order(heads, rows):
    one = torch.arange(rows).view(heads, -1, 2).mT  # (heads, 2, pairs)
    return one.flatten()


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


def seen(**changed):
    return SEEN | {float(base.strip("_")): pair for base, pair in changed.items()}


WRONG = {
    "shuffled_past": {
        "care for the order": "b",
        "own vector": "c",
        "choose one letter": ["d", 1],
    },
    "dot_by_offset": {
        "sine where a cosine": lambda o, d: waves(o, d, torch.sin),
        "twice too much": lambda o, d: 2 * waves(o, d),
        "frequency of its own": lambda o, d: waves(o, 2 * d),
        "exponent is half": lambda o, d: (
            waves(o, 2 * d) - (o * frequencies(2 * d)[d // 2 :]).cos().sum().item()
        ),
        "mean over the pairs": lambda o, d: waves(o, d) / (d / 2),
    },
    "seam": {
        "keeps the program": "a",
        "like none of its neighbours": "b",
        "choose one letter": ["all", 3],
    },
    "values_too": {
        "the values are still turned": attend(value=True, early=True),
        "the values are left alone": attend(early=True),
        "the values are turned, too": attend(value=True),
        "the keys are not turned": attend(key=False),
        "the queries are not turned": attend(query=False),
        "nothing is turned": attend(query=False, key=False),
        "begins at position 3": attend(value=True, late=3),
        "half-split": attend(layout="half"),
        "the shape is": lambda fused, positions: rotate(fused, positions),
        "numbers differ": lambda fused, positions: fused.chunk(3, -1)[2],
    },
    "half_rows": {
        "columns are reordered;": lambda w, h: w[:, order(h, len(w))],
        "columns are reordered, and all": lambda w, h: interleaved_to_half(w),
        "as one head": lambda w, h: w[order(1, len(w))],
        "the way back": lambda w, h: w[order(h, len(w)).argsort()],
        "half-split already": lambda w, h: w.unflatten(0, (h, 2, -1)).flip(1).flatten(0, 2),
        "nothing has changed": lambda w, h: w,
    },
    "append_key": {
        "position 0": both,
        "a second time": lambda t, k: rotate(both(t, k)),
        "one too few": lambda t, k: both(t, turned_at(k, t.shape[1] - 1)),
        "one too many": lambda t, k: both(t, turned_at(k, t.shape[1] + 1)),
        "number of heads": lambda t, k: both(t, turned_at(k, len(t))),
        "the layout is not": lambda t, k: both(t, turned_at(k, t.shape[1], "half")),
        "missing from the cache": lambda t, k: turned_at(k, t.shape[1]),
        "at the end": lambda t, k: both(turned_at(k, t.shape[1]), t),
        "for 1 tokens": lambda t, k: both(t, rotate(k, t.shape[1])),
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
    "shuffled_past": ["A"],
    "seam": [" c"],
    "values_too": [attend()],
    "base": [SEEN, {int(base): list(pair) for base, pair in SEEN.items()}],
}
