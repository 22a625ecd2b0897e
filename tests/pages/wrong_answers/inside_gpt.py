"""What goes wrong in the tasks of *inside-gpt*, diagnosis → answer."""

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


def given(page):
    """One of the two models that the page trains."""
    return {"grown": {0: (None, [0.02] * 50)}}


def floor(chances, p):
    rows = [row.where(row >= p * row.max(), 0) for row in chances]
    return whole(torch.stack(rows))


WRONG = {
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
    "one_layer": {
        "two losses": 0.3,
        "out of range": [(-1.0, 0.1), (3.1, 40.0)],
        "swapped": (0.1, 3.1),
        "not jumped yet": (3.2, 2.9),
        "Was it `layers=1`": (0.4, 0.1),
    },
}
RIGHT = {
    "min_p": [floor],
    "one_layer": [(3.1, 0.02), (2.5, 0.5)],
    "nucleus": [right],
    "places": [
        lambda tokens, positions, ids, kept: (
            tokens[ids[:, kept:]] + positions[torch.arange(kept, ids.shape[1])]
        )
    ],
}

TYPED = {"one_layer": [(3.0, 0.1)]}
