"""What goes wrong in the exercises of *features*, diagnosis → answer."""

import torch

from lmcourse.models import trained
from lmcourse.sparse import SparseAutoencoder
from studies.features.features import FIRST, SETTINGS, cut, held, sonnets
from studies.features.reading import f1_scores


def ranked():
    """Features by their F1 for capital letters on the training sonnets, the best first."""
    from lmcourse.gpt.checkpoints import load_gpt

    tokenizer, model, _ = load_gpt("sonnets", device="cpu")
    ids, marks = sonnets(tokenizer, "validation")
    windows = cut(ids, 64, FIRST)
    states, _ = held(model, windows, SETTINGS["layer"], FIRST)
    coder = trained("autoencoder", lambda: SparseAutoencoder(128, 512, 8))
    strengths = coder.encode(states.flatten(0, 1))
    known = cut(marks, 64, FIRST)[:, FIRST:].flatten(0, 1)[:, 3:4]
    said = (strengths > 0).float()
    scores, _ = f1_scores(said, known)
    order = scores[:, 0].argsort(descending=True).tolist()
    dead = (said.sum(0) == 0).nonzero()[:, 0].tolist()
    return order, dead


ORDER, DEAD = ranked()


def with_mask(x, directions, bias, active):
    strengths = (x @ directions.T + bias).clamp(min=0)
    ranks = strengths.argsort(dim=1, descending=True).argsort(dim=1)
    return strengths * (ranks < active)


def einsum(strengths, decoder):
    lengths = torch.einsum("fd,fd->f", decoder, decoder).sqrt()
    return (strengths @ lengths).mean()


WRONG = {
    "encode": {
        "all positive strengths are kept": lambda x, d, b, k: torch.relu(x @ d.T + b),
        "must stay in its feature": lambda x, d, b, k: (x @ d.T + b).topk(k)[0].relu(),
    },
    "penalty": {
        "still makes a strength cheap": lambda s, d: s.sum(-1).mean(),
        "squared lengths": lambda s, d: (s * d.square().sum(1)).sum(1).mean(),
    },
    "capital": {
        "an int": ["7", 3.0],
        "the numbers 0 to 511": [-1, 512],
        "are capital letters": [],
        "at only": [],
        "nowhere": [],
    },
}
RIGHT = {"encode": [with_mask], "penalty": [einsum], "capital": [ORDER[0]]}
