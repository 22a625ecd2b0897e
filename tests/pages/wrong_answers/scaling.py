"""What goes wrong in the exercises of *scaling*, diagnosis → answer."""

from functools import cache

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from lmcourse.data import load_corpus, load_texts, train_val_test_split
from lmcourse.gpt.model import GPT, GPTConfig
from lmcourse.tokenization import CharTokenizer
from lmcourse.train import new_run

CHARACTERS = len({*load_corpus("sonnets")})


@cache
def trained():
    """A small model that learned."""
    parts = train_val_test_split(load_texts("sonnets"))
    how = {"device": "cpu", "parts": parts, "evaluate_every": 10**6, "steps": 200}
    sizes = {"layers": 1, "heads": 2, "d_model": 36}
    _, trainer = new_run(load_corpus("sonnets"), "fast", ("ngrams",), **sizes, **how)
    trainer.run(quiet=True)
    return trainer.gpt


def new(seed, d_model=24):
    """A model that learned nothing."""
    torch.manual_seed(seed)
    return GPT(GPTConfig(CHARACTERS, layers=1, heads=2, d_model=d_model))


class ByHeart(nn.Module):
    """Looks the test sonnets up."""

    def __init__(self):
        super().__init__()
        text = load_corpus("sonnets")
        self.tokenizer = CharTokenizer(text)
        self.text = train_val_test_split(load_texts("sonnets")).test

    def forward(self, ids):
        rows = [self.tokenizer.decode(row.tolist()) for row in ids]
        after = [self.text[self.text.index(row) + 1 :][: len(row)] for row in rows]
        known = torch.tensor([self.tokenizer.encode(row) for row in after])
        return 9.0 * F.one_hot(known, CHARACTERS)


class WithTable(nn.Module):
    """A small model that keeps a large table in a buffer."""

    def __init__(self):
        super().__init__()
        self.gpt = new(5)
        self.register_buffer("table", torch.zeros(65, 65, 65))

    def forward(self, ids):
        return self.gpt(ids)


class LooksAhead(nn.Module):
    """Gives the next character away; but not after the last one of a window."""

    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.tensor(2.0))

    def forward(self, ids):
        following = torch.cat((ids[:, 1:], ids[:, -1:]), dim=1)
        return self.scale * F.one_hot(following, CHARACTERS)


def given(page):
    return {"small_gpt": lambda *args, **changes: trained()}


def searched(fitted, flops):
    e, big, a, long, b = fitted
    size = np.geomspace(1, flops, 100_000)
    best = size[np.argmin(e + big / size**a + long / (flops / 6 / size) ** b)]
    return best, flops / 6 / best


def by_halves(fitted, flops):
    _, big, a, long, b = fitted
    low, high = 0.0, float(np.log(flops))
    for _ in range(100):
        middle = (low + high) / 2
        size = np.exp(middle)
        tokens = flops / 6 / size
        rises = b * long * tokens**-b > a * big * size**-a
        low, high = (low, middle) if rises else (middle, high)
    return [float(size), float(tokens)]


def by_parts(layers, d_model, context, vocab_size, tokens):
    pairs = [(1, 3), (1, 1), (1, 4), (4, 1)] * layers
    matrices = [(d_model * rows, d_model * columns) for rows, columns in pairs]
    matrices += [(d_model, vocab_size)]
    each = sum(2 * rows * columns for rows, columns in matrices)
    return 3 * tokens * (each + 4 * layers * context * d_model)


def in_floats(*sizes):
    return float(by_parts(*sizes))


def billed(block=12, mixing=2, heads=1):
    return lambda layers, width, context, vocabulary, tokens: (
        6 * tokens * (layers * width * (block * width + mixing * context))
        + 6 * tokens * heads * vocabulary * width
    )


def split(*, turned=0, without_exponents=0):
    def answer(fitted, flops):
        _, big, a, long, b = fitted
        balance = (big / long * (1 if without_exponents else a / b)) ** (1 / (a + b))
        size = balance * (flops / 6) ** ((a if turned else b) / (a + b))
        return size, flops / 6 / size

    return answer


WRONG = {
    "optimum": {
        "come down as factors": split(without_exponents=1),
        "of the two are exchanged": split(turned=1),
        "parameters come first": lambda *given: by_halves(*given)[::-1],
    },
    "flops": {
        "the output's is missing": billed(block=11),
        "two such products": billed(mixing=1),
        "only looked up": billed(heads=2),
        "scores and weights are missing": billed(mixing=0),
    },
    "small": {
        "hand in the trained model itself": [(14_000, 1.9), 1.9],
        "tables and buffers included": [new(0, 64), WithTable()],
        "it looks ahead": LooksAhead(),
        "was it trained on the test sonnets": ByHeart(),
        "a logit for each character": nn.Linear(3, 3),
        "That is not enough": [new(0), new(1)],
    },
}
RIGHT = {
    "optimum": [searched, by_halves],
    "flops": [by_parts, in_floats],
    "small": [trained(), trained().train()],
}
NONSENSE = {"small": [new(2), new(3), new(4)]}
TYPED = {"small": [(14_752, 1.9), [1.9], 1.9]}
