"""What goes wrong in the exercises of *features*, diagnosis → answer."""

import torch

from lmcourse.gpt.checkpoints import load_gpt
from lmcourse.models import trained
from lmcourse.sparse import SparseAutoencoder
from studies.features.features import FIRST, SETTINGS, cut, sonnets, states_and_neurons


def by_kind():
    """Features by what the check says of them on the test sonnets."""
    units = {"best": [], "dead": [], "useless": [], "rare": []}
    for unit in range(512):
        both, fires, there = BOTH[unit], SAID[unit], THERE
        f1 = 2 * both / (fires + there)
        if not fires:
            units["dead"].append(unit)
        elif f1 >= 0.6:
            units["best"].append(unit)
        elif f1 < 0.4 and both / fires < 0.4:
            units["useless"].append(unit)
        elif f1 < 0.4 and both / fires > 0.6:
            units["rare"].append(unit)
    return units


def counted():
    """How often each feature is there in the test sonnets, and at capital letters."""
    tokenizer, model, _ = load_gpt("sonnets", device="cpu")
    ids, marks = sonnets(tokenizer, "test")
    windows = cut(ids, 64, FIRST)
    states, _ = states_and_neurons(model, windows, SETTINGS["layer"], FIRST)
    coder = trained("autoencoder", lambda: SparseAutoencoder(128, 512, 8))
    fires = coder.encode(states.flatten(0, 1)) > 0  # (places, features)
    known = cut(marks, 64, FIRST)[:, FIRST:].flatten(0, 1)[:, 3:4]
    return (fires & known).sum(0).tolist(), fires.sum(0).tolist(), int(known.sum())


BOTH, SAID, THERE = counted()
KINDS = by_kind()
DEAD_ONES, USELESS, RARE = (KINDS[name][:2] for name in ("dead", "useless", "rare"))


def given(page):
    """What the page has computed: windows, their states, and the stored autoencoder."""
    tokenizer, model, _ = load_gpt("sonnets", device="cpu")
    ids, _ = sonnets(tokenizer, "training")
    windows = ids.unfold(0, 64, 32)[:200]
    states = page["states"](model, windows)[3, :, 32:].flatten(0, 1)
    coder = trained("autoencoder", lambda: SparseAutoencoder(128, 512, 8))
    return {"tokenizer": tokenizer, "windows": windows, "held": states, "coder": coder}


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
        "nowhere in the test": DEAD_ONES,
        "are capital letters": USELESS,
        "is present at only": RARE,
    },
}
RIGHT = {"encode": [with_mask], "penalty": [einsum], "capital": KINDS["best"]}
