"""What goes wrong in the exercises of *pretraining*, diagnosis → answer."""

import torch
import torch.nn.functional as F
from transformers import BertTokenizerFast

from lmcourse import data
from lmcourse.families import Family, family_loss
from lmcourse.masking import train
from lmcourse.mini_bert import passages, poem_splits


class Uniform(torch.nn.Module):
    """A model that has learned nothing, or has all it was asked for by heart."""

    def __init__(self, sure=0.0):
        super().__init__()
        self.sure = sure

    def forward(self, ids, places):
        return torch.zeros(int(places.sum()), 320) + self.sure * torch.eye(320)[8]


def stepped(steps, sure=0.0):
    """Return what takes so many steps and then hands in such a model."""

    def train(seed):
        for _ in range(steps):
            torch.ones(1, requires_grad=True).sum().backward()
        return Uniform(sure)

    return train


def given(page):
    """Return what the solution of the training finds on the page."""
    found = data.stored("pretraining")
    names = {piece: i for i, piece in enumerate(found["results"]["vocabulary"])}
    tokenizer = BertTokenizerFast(names)
    texts = [x for poem in poem_splits()[0] for x in passages(poem, tokenizer, 32, True)]
    return {"tokenizer": tokenizer, "vocab_size": len(tokenizer) + 20, "texts": texts} | {
        "SETTINGS": found["settings"]
    }


def trained(share):
    """Return what trains with another share, without the page's function."""

    def train_one(seed):
        page = given({})
        torch.manual_seed(seed)
        model = Family("encoder", page["vocab_size"], dropout=0.0)
        how = page["SETTINGS"]["training"] | {"steps": 60, "share": share, "seed": seed}
        how["learning_rate"] = 0.02
        train(model, page["texts"], page["tokenizer"], how, None, family_loss)
        return model

    return train_one


def draw(ids, share, generator):
    return torch.rand(ids.shape, generator=generator) < share


def same_draw(ids, special, share, generator):
    again = torch.Generator().manual_seed(3)
    return draw(ids, share, again) & ~torch.isin(ids, special)


def global_draw(ids, special, share, generator):
    return (torch.rand(ids.shape) < share) & ~torch.isin(ids, special)


def real(ids, pad):
    return (ids != pad)[:, None, None, :]  # (batch, 1, 1, tokens)


def causal(ids):
    return torch.ones(ids.shape[1], ids.shape[1], dtype=torch.bool).tril()


def cut(ids, spans, names, *, each=False, same=False, mark=True, named=True, end=True):
    """Do as the page does, but for what is asked for."""
    source, target, last = [], [], 0
    for (a, b), name in zip(spans, names, strict=False):
        name = names[0] if same else name
        source += [*ids[last:a], *[name] * (((b - a) if each else 1) if mark else 0)]
        target += [*[name] * named, *ids[a:b]]
        last = b
    return source + ids[last:], target + [names[len(spans)]] * end


def changed(**how):
    return lambda ids, spans, names: cut(ids, spans, names, **how)


def without_end(ids, spans, names):
    source, target = cut(ids, spans, names)
    return source[: len(source) - len(ids) + spans[-1][1]], target


def named_after(ids, spans, names):
    both = zip(names, spans, strict=False)
    target = [x for name, (a, b) in both for x in (*ids[a:b], name)]
    return cut(ids, spans, names)[0], [*target, names[len(spans)]]


def ended(ids, spans, names):
    return cut(ids, [(a, b + 1) for a, b in spans], names)


def forwards(ids, spans, names):
    source = [*ids]
    for (a, b), name in zip(spans, names, strict=False):
        source[a:b] = [name]
    return source, cut(ids, spans, names)[1]


WRONG = {
    "places": {
        "share of 1 special tokens": lambda i, s, share, g: draw(i, share, g),
        "85 %": lambda i, s, share, g: (
            torch.where(torch.tensor(share < 1), ~draw(i, share, g), draw(i, share, g))
            & ~torch.isin(i, s)
            & (share > 0)
        ),
        "with a share of 0": lambda i, s, share, g: (
            (draw(i, share, g) | (torch.arange(i.shape[1]) == 1)) & ~torch.isin(i, s)
        ),
        "ordinary places are left out": lambda i, s, share, g: (
            draw(i, share, g) & ~torch.isin(i, s) & (torch.arange(i.shape[1]) > 1)
        ),
        "the same places": same_draw,
        "random state moved": global_draw,
        "True and False of the shape": lambda i, s, share, g: i,
        "chooses 30%": lambda i, s, share, g: (
            draw(i, min(2 * share, 1), g) & ~torch.isin(i, s)
        ),
    },
    "training": {
        "sixty are allowed": [stepped(61), stepped(200, 3.0)],
        "not trained at all": stepped(0),
        "more can be had": [stepped(60), stepped(1, 9.0)],
        "return the trained model": lambda seed: 4.9,
    },
    "target": {
        "are swapped": lambda *a: cut(*a)[::-1],
        "one sentinel, not one for each": changed(each=True),
        "which is which": changed(same=True),
        "keeps what should be cut": lambda i, s, n: (i, cut(i, s, n)[1]),
        "nothing marks where": changed(mark=False),
        "behind the last span": without_end,
        "stands before what": named_after,
        "the source is not right": lambda i, s, n: (cut(i, s, n)[0][1:], cut(i, s, n)[1]),
        "last sentinel": changed(end=False),
        "without its sentinels": changed(named=False, end=False),
        "the target is the whole text": lambda i, s, n: (cut(i, s, n)[0], i),
        "the target is not right": changed(named=False),
        "the end of a span": ended,
        "moves to the left": forwards,
        "two lists": lambda i, s, n: cut(i, s, n)[0],
    },
    "mask": {
        "the mask is causal": lambda i, p: real(i, p) & causal(i),
        "padding can be looked at": lambda i, p: torch.ones_like(real(i, p)),
        "are swapped: padding": lambda i, p: ~real(i, p),
        "what stands before it": lambda i, p: real(i, p) & causal(i).T,
        "some real token": lambda i, p: real(i, p) & (torch.arange(i.shape[1]) != 1),
        "True and False is expected": lambda i, p: real(i, p).float(),
        "what broadcasts": lambda i, p: torch.ones(3, 4, dtype=torch.bool),
    },
}
RIGHT = {
    "training": [trained(0.5), trained(0.8)],
    "loss": [lambda logits, ids, chosen: F.cross_entropy(logits[chosen], ids[chosen])],
    "places": [lambda i, s, share, g: draw(i, share, g) & ~torch.isin(i, s)],
    "mask": [
        lambda i, p: real(i, p).expand(-1, 1, i.shape[1], -1),
        lambda i, p: real(i, p).numpy(),
    ],
    "target": [lambda i, s, n: tuple(map(torch.tensor, cut(i, s, n)))],
}

TYPED = {"training": [4.1, 3.9]}
