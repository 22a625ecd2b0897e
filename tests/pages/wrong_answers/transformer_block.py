"""What goes wrong in the exercises of *transformer-block*, diagnosis → answer."""

import torch
import torch.nn.functional as F


def library(x, weight, bias, eps):
    return F.layer_norm(x, x.shape[-1:], weight, bias, eps)


def pieces(knots, values):
    slopes = values.diff() / knots.diff()
    return -knots[:-1], slopes.diff(prepend=slopes.new_zeros(1))


def dropping(share=None, scale=None, shape=None, training=None, same=False, always=1):
    """Return a dropout with one thing wrong."""

    def dropout(x, p, on):
        on = on if training is None else training
        if not on:
            return x * always
        draw = torch.Generator().manual_seed(0) if same else None
        texts, tokens, width = x.shape
        one = {"text": (1, tokens, width), "token": (texts, 1, width)}
        luck = torch.rand(
            (one | {"whole": (texts, tokens, 1)}).get(shape, x.shape), generator=draw
        )
        kept = luck >= (p if share is None else share(p))
        return x * kept * (1 / (1 - p) if scale is None else scale(p))

    return dropout


def size(vocab_size, context, layers, d):
    return (vocab_size + context) * d + layers * (12 * d * d + 13 * d) + 2 * d


def by_squares(x, weight, bias, eps):
    mean = x.mean(-1, keepdim=True)
    variance = (x**2).mean(-1, keepdim=True) - mean**2
    return (x - mean) * (variance + eps) ** -0.5 * weight + bias


def deviation(x, weight, bias, eps):
    centred = x - x.mean(-1, keepdim=True)
    return centred / (centred.square().mean(-1, keepdim=True) + eps).sqrt() * weight + bias


WRONG = {
    "layer_norm": {"write it with means": library},
    "by_hand": {
        "bias has the shape (5,)": lambda knots, values: (-knots, values),
        "down has the shape (5,)": lambda knots, values: (-knots[:-1], values),
        "return bias, down": lambda knots, values: values,
    },
    "dropout": {
        "nothing is dropped": lambda x, p, training: x,
        "everything is dropped": lambda x, p, training: 0 * x,
        "not the share that is kept": dropping(share=lambda p: 1 - p),
        "every text of the batch": dropping(shape="text"),
        "every token loses": dropping(shape="token"),
        "whole tokens": dropping(shape="whole"),
        "not scaled up": dropping(scale=lambda p: 1),
        "scaled down": dropping(scale=lambda p: 1 - p),
        "multiplied by 1/p": dropping(scale=lambda p: 1 / p),
        "as it should be": dropping(scale=lambda p: 2),
        "with p = 0.3 the share": dropping(share=lambda p: p / 2),
        "drops the same numbers": dropping(same=True),
        "though training is False": dropping(training=True),
        "scale included": dropping(always=0.7),
    },
    "without_norms": {
        "let each update count less": (1.0, 1e9, 3e4),
        "hardly do anything": (0.1, 1.1, 1.1),
        "by that at the end": (0.25, 0.3, 1.5),
        "another ratio": (0.25, 1.0, 1.6),
        "another growth": (0.25, 1.9, 3.5),
        "no block does anything": (0, 1.0, 1.5),
        "greater than zero": (0.25, -1.9, 1.5),
        "three numbers": (0.25, 1.9),
    },
}

RIGHT = {
    "layer_norm": [by_squares, deviation],
    "gpt_size": [size],
    "without_norms": [(0.27, 2.2, 1.8)],
    "dropout": [dropping()],
    "by_hand": [pieces],
}

NONSENSE = {  # a right answer in another order is right
    "by_hand": [
        lambda knots, values: (0 * knots[:-1], 0 * values[:-1]),
        lambda knots, values: (values[:-1], knots[:-1]),
        lambda knots, values: (-knots[:-1], values[:-1]),
    ]
}
FORBIDDEN = {
    "layer_norm": {"write it with means": library},
    "dropout": {"forbids": lambda x, p, training: F.dropout(x, p, training)},
}
TYPED = {"without_norms": [(0.05, 1.1, 2.0), (0.27, 2.2, 3.4)]}
