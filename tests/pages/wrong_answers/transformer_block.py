"""What goes wrong in the exercises of *transformer-block*, diagnosis → answer."""

import torch
import torch.nn.functional as F


def root(variance, eps):
    return (variance + eps).sqrt()


def whole(x, weight, bias, eps):
    return (x - x.mean()) / root(x.var(correction=0), eps) * weight + bias


def library(x, weight, bias, eps):
    return F.layer_norm(x, x.shape[-1:], weight, bias, eps)


def pieces(slopes=None, first=True, sign=-1, late=False, divide=True, change=True):
    """Return weights of straight pieces with something left out."""

    def by_hand(knots, values):
        slopes = values.diff() / (knots.diff() if divide else 1)
        down = slopes.diff(prepend=slopes.new_zeros(1)) if change else slopes
        down = down if first else torch.cat([slopes.new_zeros(1), down[1:]])
        return sign * (knots[1:] if late else knots[:-1]), down

    return by_hand


def dropping(share=None, scale=None, shape=None, training=None, same=False, always=1):
    """Return a dropout with one thing wrong."""

    def dropout(x, p, on):
        on = on if training is None else training
        if not on:
            return x * always
        draw = torch.Generator().manual_seed(0) if same else None
        wide = {None: x.shape, "text": (1, *x.shape[1:])}.get(shape)
        wide = {"token": (x.shape[0], 1, x.shape[2]), "whole": (*x.shape[:2], 1)}.get(
            shape, wide
        )
        luck = torch.rand(wide, generator=draw)
        kept = luck >= (p if share is None else share(p))
        return x * kept * (1 / (1 - p) if scale is None else scale(p))

    return dropout


def size(table=1, places=1, last=1, norms=4, biases=9, matrices=12, output=0, bias=0):
    """Count with a part left out or added: per block, in units of d or d squared."""

    def gpt_size(vocab_size, context, layers, d):
        block = matrices * d * d + (biases + norms) * d
        tables = (table * vocab_size + places * context) * d
        return (
            tables
            + layers * block
            + last * 2 * d
            + output * vocab_size * d
            + (bias * vocab_size)
        )

    return gpt_size


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
    "gpt_size": [size()],
    "without_norms": [(0.27, 2.2, 1.8)],
    "dropout": [dropping()],
    "by_hand": [pieces()],
}
