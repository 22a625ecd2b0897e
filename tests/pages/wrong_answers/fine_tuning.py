"""What goes wrong in the exercises of *fine-tuning*, diagnosis → answer."""

import numpy as np
import torch
from torch import nn


def by_line(poems):
    lines = [line for poem in poems for line in poem.splitlines()]
    order = np.random.default_rng(0).permutation(len(lines))
    return [lines[i] for i in order[9:]], [lines[i] for i in order[:9]]


def every_fifth(poems):
    return [p for i, p in enumerate(poems) if i % 5], poems[::5]


def single(poems):
    return list(dict.fromkeys(poems))


def dealt(poems):
    poems = single(poems)
    return poems[3:], poems[:3]


def lora(down="random", up="zero", frozen=True, extra=0, parameter=True, scale=1.0):
    """Make a class, with one thing wrong or nothing."""
    draw = {"random": torch.randn, "zero": torch.zeros}
    kind = nn.Parameter if parameter else (lambda x: x)

    class Answer(nn.Module):
        def __init__(self, base, rank):
            super().__init__()
            self.base = base.requires_grad_(not frozen)
            self.down = kind(draw[down](rank + extra, base.in_features))
            self.up = kind(draw[up](base.out_features, rank + extra))

        def forward(self, x):
            return self.base(x) + scale * x @ self.down.T @ self.up.T

    return Answer


class OneMatrix(nn.Module):
    def __init__(self, base, rank):
        super().__init__()
        self.base = base.requires_grad_(False)
        self.delta = nn.Parameter(torch.zeros_like(base.weight))

    def forward(self, x):
        return self.base(x) + x @ self.delta.T


class Overwrites(lora()):
    def forward(self, x):
        self.base.weight.data += 1e-3
        return super().forward(x)


class PathOnly(lora()):
    def forward(self, x):
        return x @ self.down.T @ self.up.T


class Turned(lora()):
    def forward(self, x):
        return super().forward(x).T


def in_place(weight, down, up, scale):
    weight += scale * up @ down
    return weight


def taught(method, learning_rate, budget=60, replayed=0, size=8):
    """Stand in for the page's, which trains: what it found there, about."""
    good = method == "last layer" and learning_rate == 1.5e-3
    return 1.87, 1.665 if good else 1.69


def given(page):
    return {"taught": taught}


WRONG = {
    "split": {
        "these are lines": by_line,
        "in neither part": lambda poems: (single(poems)[3:], single(poems)[:1]),
        "no poems of the list": lambda poems: (["A fly"], ["A bee"]),
        "the test part is empty": lambda poems: (poems, []),
        "nothing is left": lambda poems: ([], poems),
        "stands in both parts": [every_fifth, lambda poems: (poems, poems[:3])],
        "larger than the other": lambda poems: dealt(poems)[::-1],
        "return two lists": lambda poems: poems,
    },
    "lora": {
        "both gradients are, for ever": lora(down="zero"),
        "what is added must be zero": [lora(up="random"), PathOnly],
        "the layer's own weights are trained": lora(frozen=False),
        "must be `nn.Parameter`": lora(parameter=False),
        "2 × (6 + 4)": [lora(extra=1), OneMatrix],
        "own matrix has changed": Overwrites,
        "hardly change": lora(scale=1e-3),
        "of shape (9, 4)": Turned,
        "pass the class": lambda layer, rank: 3,
    },
    "merge": {"you changed the matrix": in_place},
    "own": {
        "out of range": (2.0, 12.0),
        "so low a loss on Dickinson": (1.2, 1.66),
        "so low a loss on Shakespeare": (1.85, 1.3),
        "hardly learned": (2.1, 1.66),
        "Shakespeare is forgotten": (1.8, 1.75),
        "is the rate too": (2.3, 1.9),
        "two losses": (1.8, 1.6, 1.9),
    },
}

RIGHT = {
    "merge": [lambda weight, down, up, scale: torch.addmm(weight, up, down, alpha=scale)],
    "split": [dealt],
    "lora": [lora(), lora(down="random", up="zero", scale=2.0), lora("zero", "random")],
    "own": [(1.85, 1.67), torch.tensor([1.85, 1.67])],
}

TYPED = {"own": [(1.8, 1.6)]}
