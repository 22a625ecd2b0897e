"""What does a small model miss that never had a part of its blocks?

Varied: the part that is lacking from the beginning, the number of blocks and the size of the
first weights (PyTorch's own, and Xavier's); then, on digits read backwards, the place of the
norm, a warm-up and the rate. Rivals: one constant factor in the place of the norms; for the
paths, that it is not attention's averaging that makes them needed: models without paths and
without attention. The rate of every cell is chosen by the same rule, the lowest loss of one
more seed. Null: models with the part and without it end at the same loss. Statistic: the
loss on held-out sonnets by seed, and how much the tokens of a window differ; ten times as
long where models learned least. The interval is that of how much more twelve blocks without
paths lose than twelve without paths and attention.
"""

import torch
import torch.nn.functional as F
from torch import nn

from lmcourse.transformer import Embed, Stack
from studies.chapter import page
from studies.harness import count, paired

CHAPTER = "transformer-block"
CLAIM = (
    "Four, eight and twelve blocks without paths learn at most 0.1 nats more than how "
    "frequent letters are, after 200 steps; without attention, too, they learn more"
)
RIVAL = "the same blocks without paths and without attention"
NULL = "models with the part and without it end at the same loss"
SETTINGS = {
    "seeds": [0, 1, 2],
    "tuning": {"seed": 9, "rates": [3e-4, 1e-3, 3e-3, 1e-2]},
    "layers": [1, 2, 4, 8, 12],
    "weights": ["PyTorch's", "Xavier"],
    "steps": 200,
    "longer": 2000,
    "order": {"layers": 12, "d_model": 32, "rates": [5e-4, 1e-3, 3e-3], "warmup": 50},
}
LONGER = [("paths", 4, "PyTorch's"), ("norms", 12, "Xavier")]


def plan(small):
    """All kinds, depths and first weights; or a few steps of two."""
    steps = 2 if small else SETTINGS["steps"]
    grid = [
        {"group": "grid", "off": off, "layers": layers, "weights": weights, "steps": steps}
        for off in page(CHAPTER).LACKING
        for weights in SETTINGS["weights"]
        for layers in SETTINGS["layers"]
        if weights == "Xavier" or "," not in off
    ]
    longer = [
        {"group": "longer", "off": off, "layers": layers, "weights": weights}
        | {"steps": 2 if small else SETTINGS["longer"]}
        for off, layers, weights in LONGER
    ]
    order = [
        {"group": "order", "norm_first": first, "warmup": warmup, "rate": rate}
        | {"seed": seed, "steps": steps}
        for first in (True, False)
        for warmup in (0, SETTINGS["order"]["warmup"])
        for rate in SETTINGS["order"]["rates"]
        for seed in SETTINGS["seeds"]
    ]
    return grid[::15] + longer[:1] + order[:1] if small else grid + longer + order


def run(_folder, group, **setting):
    """Choose a rate and train from every seed; or read digits backwards."""
    if group == "order":
        return setting | {"loss": round(backwards(**setting), 4)}
    names = ("off", "layers", "weights")
    kept, steps = {name: setting[name] for name in names}, setting["steps"]
    off = page(CHAPTER).LACKING[setting["off"]]

    def ends(rate, seed, steps):
        model = off, kept["layers"], kept["weights"]
        return page(CHAPTER).train_without(*model, rate, seed, steps)

    tuning = SETTINGS["tuning"]
    short = min(steps, SETTINGS["steps"])
    tried = {rate: ends(rate, tuning["seed"], short)[0] for rate in tuning["rates"]}
    rate = min(tried, key=lambda rate: tried[rate] if tried[rate] < 99 else 99)
    rows = []
    for seed in SETTINGS["seeds"]:
        loss, apart = ends(rate, seed, steps)
        found = {"loss": finite(loss), "spread": finite(apart)}
        rows.append(kept | {"rate": rate, "seed": seed} | found)
    return rows


def finite(number):
    """Round; none for what is no number any more."""
    return float(f"{number:.4g}") if abs(number) < 1e9 else None


def backwards(norm_first, warmup, rate, seed, steps):
    """Train blocks to say eight digits backwards; return the loss on 256 others.

    With the norm after the addition there is no last norm. ``warmup`` counts the steps in
    which the rate rises from zero; then it stays.
    """
    torch.manual_seed(seed)
    layers, d_model = (SETTINGS["order"][name] for name in ("layers", "d_model"))
    sizes = {"heads": 4, "d_ff": 4 * d_model, "norm": nn.LayerNorm}
    embed, output = Embed(10, d_model), nn.Linear(d_model, 10)
    stack = Stack(layers, d_model, norm_first=norm_first, **sizes)
    page(CHAPTER).xavier(stack)
    if not norm_first:
        stack.norm = nn.Identity()
    parts = nn.ModuleList([embed, stack, output])
    optimizer = torch.optim.Adam(parts.parameters(), rate, fused=True)

    def loss_of(digits):
        return F.cross_entropy(output(stack(embed(digits))[0]).mT, digits.flip(1))

    held = torch.randint(10, (256, 8))
    for step in range(steps):
        optimizer.param_groups[0]["lr"] = rate * min(1, (step + 1) / max(1, warmup))
        loss = loss_of(torch.randint(10, (32, 8)))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        return float(loss_of(held))


def losses(results, off, layers, weights="Xavier"):
    """Return the losses of a cell of the grid, by seed."""
    want = {"off": off, "layers": layers, "weights": weights}
    return [each["loss"] for each in results["grid"] if want.items() <= each.items()]


def summary(results):
    """Compare models without paths with those without paths and attention."""
    pairs = [
        [losses(results, off, layers) for off in ("paths", "paths, attention")]
        for layers in (4, 8, 12)
    ]
    holds = all(min(cut) > max(neither) for cut, neither in pairs if cut and neither)
    both = [each for each in pairs[::-1] if all(each)] or [([0], [0])]
    rows = [each for group in results.values() for each in group]
    return count(rows) | paired(*both[0], holds)
