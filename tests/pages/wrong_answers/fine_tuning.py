"""What goes wrong in the exercises of *fine-tuning*, diagnosis → answer."""

import torch
import torch.nn.functional as F
from torch import nn

from lmcourse import adapters
from lmcourse.data import corpora_folder, load_poems
from lmcourse.gpt.checkpoints import load_gpt
from lmcourse.gpt.inside import states
from lmcourse.gpt.training import cut_windows


def lora(down="random", up="zero", frozen=True, extra=0, parameter=True, scale=1.0):
    """Make a class, with one thing wrong or nothing."""
    starts = {"random": torch.randn, "zero": torch.zeros, "one": torch.ones}
    kind = nn.Parameter if parameter else (lambda x: x)

    class Answer(nn.Module):
        def __init__(self, base, rank):
            super().__init__()
            self.base = base.requires_grad_(not frozen)
            self.down = kind(starts[down](rank + extra, base.in_features))
            self.up = kind(starts[up](base.out_features, rank + extra))

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


class Detached(lora()):
    def forward(self, x):
        return self.base(x) + (x @ self.down.T @ self.up.T).detach()


class PathOnly(lora()):
    def forward(self, x):
        return x @ self.down.T @ self.up.T


class Bent(lora()):
    def forward(self, x):
        return self.base(x) + (x @ self.down.T).relu() @ self.up.T


class Turned(lora()):
    def forward(self, x):
        return super().forward(x).T


def marked(rank=16):
    """A model of both poets: that of the page's marker."""
    _, model, _ = load_gpt("sonnets", "cpu")
    model = adapters.add_lora(model, rank)
    return adapters.load_adapters(
        corpora_folder() / "checkpoints/marker.safetensors", model
    )


def noisy(size, seed=0):
    """The Sonnets' model, its weights moved at random."""
    _, model, _ = load_gpt("sonnets", "cpu")
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for weight in model.parameters():
            weight += size * weight.std() * torch.randn(weight.shape, generator=generator)
    return model


def cheated(steps=20, context=64):
    """A model whose last layer has read her test poems in training."""
    tokenizer, model, _ = load_gpt("sonnets", "cpu")
    text = "\n\n".join(load_poems().text[9::10]).translate({34: "'", 81: "q"})
    ids, generator = torch.tensor(tokenizer.encode(text)), torch.Generator().manual_seed(0)
    optimizer = torch.optim.AdamW(model.blocks[-1].parameters(), 3e-3)
    for _ in range(steps):
        starts = torch.randint(len(ids) - context, (8,), generator=generator)
        inputs, targets = cut_windows(ids, starts, context)
        optimizer.zero_grad()
        F.cross_entropy(model(inputs).mT, targets).backward()
        optimizer.step()
    return model


class Same(nn.Module):
    """As sure of the wrong, or of the right, as it is told."""

    def __init__(self, by, ids=None):
        super().__init__()
        self.by, self.model = by, marked()

    def forward(self, ids):
        logits = self.model(ids)
        return {"flat": logits * 0, "short": logits[:, -1], "sharp": 2 * logits}[self.by]


def given(page):
    return {"taught": lambda *args, **named: marked()}


def many(x, weight, downs, ups, who):
    both = weight + torch.einsum("bor,bri->boi", ups[who], downs[who])
    return torch.einsum("bti,boi->bto", x, both)


def one_by_one(x, weight, downs, ups, who):
    return [row @ (weight + ups[i] @ downs[i]).T for row, i in zip(x, who, strict=True)]


def one_line_at_a_time(model, ids, lengths):
    pairs = zip(ids, lengths, strict=True)
    rows = [states(model, row[None, :n])[:, 0].mean(1) for row, n in pairs]
    return torch.stack(rows, 1)


def halved(x, weight, downs, ups, who):
    return x @ weight.T + x @ downs[who].mT @ ups[torch.tensor([0, 1, 2, 0])].mT


def padded(model, ids, lengths):
    own = torch.arange(ids.shape[1]) < lengths[:, None]
    return (states(model, ids) * own[..., None]).mean(2)


def nonzero(model, ids, lengths):
    own = (ids != 0)[..., None]
    return (states(model, ids) * own).sum(2) / own.sum(1)


def late(model, ids, lengths):
    own = torch.arange(ids.shape[1]) <= lengths[:, None]
    return (states(model, ids) * own[..., None]).sum(2) / lengths[:, None]


WRONG = {
    "many": {"`downs` are picked by `who`, and `ups` are not": halved},
    "states": {
        "not by the padded length": padded,
        "one token too many": late,
        "the id 0": nonzero,
    },
    "lora": {
        "what are both gradients": lora(down="zero"),
        "has rank 1, not 2": lora(down="one"),
        "is the path detached": Detached,
        "what it adds must be zero": [lora(up="random"), PathOnly],
        "the layer's own weights are trained": lora(frozen=False),
        "must be `nn.Parameter`": lora(parameter=False),
        "2 × (6 + 4)": [lora(extra=1), OneMatrix],
        "own matrix has changed": Overwrites,
        "hardly change": lora(scale=1e-3),
        "of shape (9, 4)": Turned,
        "is there an activation": Bent,
        "pass the class": lambda layer, rank: 3,
    },
    "own": {
        "hand in the model itself": [(1.85, 1.6), 1.85],
        "Dickinson is not learned": load_gpt("sonnets", "cpu")[1],
        "is the learning rate too high": [noisy(0.3), Same("flat")],
        "a logit for each character": Same("short"),
        "read the test poems in training": cheated(),
    },
}

RIGHT = {
    "lora": [
        lora(),
        lora(down="random", up="zero", scale=2.0),
        lora("zero", "random"),
        lora(scale=8.0),
    ],
    "many": [many, one_by_one],
    "own": [marked(), marked().train()],
    "states": [one_line_at_a_time],
}

NONSENSE = {"own": [noisy(0.1), noisy(1.0), Same("sharp")]}
TYPED = {"own": [(1.85, 1.6), [1.9, 1.62]]}
