"""What does a small model make of places and offsets that no training has shown?

Varied: the scheme of positions, of six, and the reach of relative ones; the base of rotary
positions and the trained length; the steps; how far back a model is asked. Rivals:
NTK-aware scaling, a greater base for all pairs; all pairs slowed; only those slowed that
came round in training; one pair alone. Null: what a guess from the frequencies of the
characters costs. Statistic: the loss of saying which character stood three back, over the
last quarter of texts four times as long as in training; the interval is from the lowest to
the highest of its differences, by model clear of the edge, between NTK-aware scaling and
slowing the pairs that have not come round.
"""

import math

import numpy as np
import torch

from lmcourse.lengths import (
    BUCKETS,
    SHORT,
    losses_by_position,
    near_mask,
    sonnet_ids,
    train_position_model,
)
from lmcourse.positions import frequencies, relative_buckets, rotate
from studies.harness import count, grid, paired

CHAPTER = "positional-encoding"
CLAIM = (
    "Rotary models that name the character three back and whose first pair that has not "
    "come round has a wavelength of 1.3 trained lengths or more, read at four lengths with "
    "these pairs slowed by four, lose less than a nat over the last quarter, and less than "
    "those for which it is 1.1 or less"
)
RIVAL = "NTK-aware scaling, a greater base for all pairs"
NULL = "a guess from the frequencies of the characters"
TIMES = 4  # how much longer the texts are than in training
SETTINGS = {
    "seeds": [0, 1, 2, 3, 4],
    "steps": 400,
    "longer": {"steps": 4000, "seeds": [0, 1, 2], "schemes": ["rotary", "ALiBi"]},
    "seven back": [100, 1_000, 10_000, 100_000],  # bases
    "reaches": [24, 64, 128],
    "bases": [[base, 32] for base in (100, 300, 1_000, 3_000, 10_000, 30_000, 100_000)]
    + [[base, 16] for base in (100, 300, 10_000)],
}
PLAIN = ("none", "sinusoidal", "learned", "ALiBi")


def plan(small):
    """All kinds from every seed; or three, for two steps."""
    longer, steps = SETTINGS["longer"], SETTINGS["steps"]
    kinds = grid(group="schemes", scheme=PLAIN)
    kinds += grid(group="reach", reach=SETTINGS["reaches"])
    kinds += [{"group": "bases", "base": b, "length": t} for b, t in SETTINGS["bases"]]
    kinds += grid(group="seven back", base=SETTINGS["seven back"], back=7)
    rows = [k | {"steps": steps, "seed": s} for k in kinds for s in SETTINGS["seeds"]]
    if small:
        return [rows[at] | {"steps": 2} for at in (5, 20, 35)]
    how = {"steps": longer["steps"], "seed": longer["seeds"]}
    return rows + grid(group="longer", scheme=longer["schemes"], **how)


def curves(model, length, **told):
    """Return both questions' losses by groups of eight positions, (2, groups)."""
    lost = losses_by_position(model, TIMES * length, **told).view(2, -1, 8).nanmean(-1)
    return [[round(loss, 4) for loss in row] for row in lost.tolist()]


def flattened(model):
    """Give the buckets that training never met the price of the last that it did."""
    last = relative_buckets(SHORT, BUCKETS, model.reach).max()
    with torch.no_grad():
        model.relative[last:] = model.relative[last].clone()
    return model


def slowed(base, length):
    """Return every way of reading on, its name → the speeds of the six pairs."""
    speeds, pair = frequencies(12, base), torch.arange(6)
    new = 2 * math.pi / speeds > length  # has not come round in training
    marks = {"none": pair < 0, "all": pair >= 0, "new": new, "old": ~new}
    marks["new but the first"] = new & (pair != new.int().argmax())
    marks |= {str(p): pair == p for p in range(6)}
    ways = {name: torch.where(mark, speeds / TIMES, speeds) for name, mark in marks.items()}
    return ways | {"NTK-aware": frequencies(12, base * TIMES ** (12 / 10))}


def run(folder, group, steps, seed, scheme="rotary", base=10_000, length=SHORT, **told):
    """Train one model; return its losses read on as it is, and in other ways."""
    scheme = "relative" if group == "reach" else scheme
    model = train_position_model(scheme, steps, seed, length, base=base, **told)
    found = {"scheme": scheme, "reach": model.reach, "base": base, "length": length}
    found |= {"steps": steps, "seed": seed, "loss": curves(model, length)}
    near = {"mask": near_mask(TIMES * length, length)}
    found["ways"] = {"near keys": curves(model, length, **near)[1]}
    if scheme == "relative":
        found["ways"]["last price"] = curves(flattened(model), length)[1]
    turned = group in ("bases", "seven back")
    for name, speeds in (slowed(base, length) if turned else {}).items():
        told = {"rotate": lambda x, speeds=speeds: rotate(x, speeds=speeds)}
        found["ways"][name] = curves(model, length, **told)[1]
    return found


def guess():
    """Return what a guess from the frequencies of the characters costs."""
    share = torch.bincount(sonnet_ids()[0]).double() / len(sonnet_ids()[0])
    return -(share * share.clamp(min=1e-9).log()).sum().item()


def summary(results):
    """Compare the ways of reading on, over the last quarter, model by model."""
    runs, clear, edge = results["bases"], [], []
    for each in runs:
        ways = each["ways"].items()
        far = {way: np.mean(lost[-len(lost) // TIMES :]) for way, lost in ways}
        waves = 2 * math.pi / frequencies(12, each["base"]) / each["length"]
        first = int((waves > 1).int().argmax())
        far["hit"] = first == min(range(6), key=lambda pair: far[str(pair)])
        (clear if waves[first] > 1.3 else edge).append(far)
    holds = all(far["new"] < 1 and far["hit"] for far in clear)
    holds = holds and all(far["new"] > near["new"] for far in edge for near in clear)
    aware, new = ([far[way] for far in clear or edge] for way in ("NTK-aware", "new"))
    return count(runs) | paired(aware, new, holds)
