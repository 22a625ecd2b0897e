"""What goes wrong in the tasks of *inside-gpt*, diagnosis → answer."""

import math

import torch


def cut(chances, p):
    """Return what a nucleus leaves of chances, not summing to one."""
    falling, ids = chances.sort(descending=True)
    kept = falling.where(falling.cumsum(-1) - falling < p, 0)
    return torch.zeros_like(chances).scatter(-1, ids, kept)


def whole(chances):
    return chances / chances.sum(-1, keepdim=True)


def right(logits, temperature, p):
    return whole(cut((logits / temperature).softmax(-1), p))


def late(logits, temperature, p):
    return cut(logits.softmax(-1), p) ** (1 / temperature)


def falling(logits, temperature, p):
    return right(logits, temperature, p).sort(descending=True).values


def least(chances, p):
    return chances.max(-1, keepdim=True).values * p


def kept(chances, mask):
    return whole(chances.where(mask, 0))


def softened(chances, p):
    return chances.masked_fill(chances < least(chances, p), -math.inf).softmax(-1)


def placed(begin):
    def embed_new(tokens, positions, ids, kept):
        rows = positions[begin(ids, kept) :][: ids.shape[1] - kept]
        return tokens[ids[:, kept:]] + rows

    return embed_new


def one_place(tokens, positions, ids, kept):
    return tokens[ids[:, kept:]] + positions[kept]


def all_of_them(tokens, positions, ids, kept):
    return tokens[ids] + positions[: ids.shape[1]]


def first_ones(tokens, positions, ids, kept):
    return all_of_them(tokens, positions, ids, kept)[:, : ids.shape[1] - kept]


WRONG = {
    "numbers": {"39 million": "a", "four matrices": "b", "choose one letter": "d"},
    "nucleus": {
        "two things": late,
        "before it": lambda *given: whole(late(*given)),
        "does not sum": lambda x, heat, p: cut((x / heat).softmax(-1), p),
        "p is not used": lambda x, heat, p: (x / heat).softmax(-1),
        "the temperature is not used": lambda x, heat, p: right(x, 1, p),
        "again as a power": lambda x, heat, p: whole(right(x, heat, p) ** (1 / heat)),
        "used twice, and": lambda x, heat, p: cut((x / heat).softmax(-1), p) ** (1 / heat),
        "should divide": lambda x, heat, p: right(x, 1 / heat, p),
        "falling order": falling,
        "logarithms": lambda *given: right(*given).log(),
    },
    "min_p": {
        "sum to 1 again": lambda c, p: c.where(c >= least(c, p), 0),
        "share of the largest": lambda c, p: kept(c, c >= p),
        "and the rest must": lambda c, p: c.where(c >= p, 0),
        "each row": lambda c, p: kept(c, c >= p * c.max()),
        "left out.": [
            lambda c, p: kept(c, c < least(c, p)),
            lambda c, p: c,
        ],
        "this is top-p": lambda c, p: whole(cut(c, p)),
        "divide by their sum": softened,
    },
    "places": {
        "zero again": placed(lambda ids, kept: 0),
        "one place too late": placed(lambda ids, kept: kept + 1),
        "one place too early": placed(lambda ids, kept: kept - 1),
        "the cache already": all_of_them,
        "positions are missing": lambda tokens, positions, ids, kept: tokens[ids[:, kept:]],
        "same position": one_place,
        "the first tokens": first_ones,
    },
    "story": {
        "where a head looks": "a",
        "rare case": "b",
        "need not be read": "d",
        "choose one letter": 3,
    },
    "one_layer": {
        "two losses": 0.3,
        "out of range": [(-1.0, 0.1), (3.1, 40.0)],
        "swapped": (0.1, 3.1),
        "not jumped yet": (3.2, 2.9),
        "Was it `layers=1`": (0.4, 0.1),
    },
}
RIGHT = {
    "one_layer": [(3.1, 0.02), (2.5, 0.5)],
    "nucleus": [right],
    "places": [
        lambda tokens, positions, ids, kept: (
            tokens[ids[:, kept:]] + positions[torch.arange(kept, ids.shape[1])]
        )
    ],
}
