"""Where does the norm belong, and what is a warm-up for?

Varied: the norm before each step or after each addition, a warm-up or none, the rate.
Twelve blocks learn to say eight digits backwards. Rival: a lower rate without a warm-up.
Null: the same loss, wherever the norm stands. Statistic: the loss on 256 other
rows, by seed; the
interval is that of how much more post-norm loses than pre-norm, at the highest rate, both
without a warm-up.
"""

import torch
import torch.nn.functional as F
from torch import nn
from torch.optim.lr_scheduler import LambdaLR

from lmcourse.training_loop import train_model
from lmcourse.transformer import Embed, Stack
from studies.harness import alike, count, grid, paired

CHAPTER = "transformer-block"
CLAIM = (
    "At the highest rate twelve blocks with the norm after the addition learn less than "
    "with the norm before the step; a warm-up helps them, and so does a third of the rate, "
    "in every run"
)
RIVAL = "a third of the rate, without a warm-up"
NULL = "the same loss, wherever the norm stands"
SETTINGS = {
    "seeds": [0, 1, 2],
    "rates": [3e-4, 1e-3, 3e-3],
    "warmups": [0, 50],
    "sizes": {"layers": 12, "d_model": 32, "heads": 4, "d_ff": 128},
    "steps": 200,
}


def plan(small):
    """All places, warm-ups, rates and seeds; or two steps of one."""
    ways = {"norm_first": (True, False), "warmup": SETTINGS["warmups"]}
    ways |= {"rate": SETTINGS["rates"], "seed": SETTINGS["seeds"]}
    runs = grid(group="order", **ways, steps=2 if small else SETTINGS["steps"])
    return runs[:: 12 if small else 1]


def run(_folder, group, norm_first, warmup, rate, seed, steps):
    """Train blocks to say digits backwards; return the loss on 256 other rows.

    With the norm after the addition there is no last norm. ``warmup`` counts the steps in
    which the rate rises from zero; then it stays. First weights are Xavier's.
    """
    torch.manual_seed(seed)
    sizes, d_model = SETTINGS["sizes"], SETTINGS["sizes"]["d_model"]
    stack = Stack(**sizes, norm=nn.LayerNorm, norm_first=norm_first)
    for matrix in stack.parameters():
        if matrix.dim() > 1:
            nn.init.xavier_uniform_(matrix)
    if not norm_first:
        stack.norm = nn.Identity()
    parts = nn.ModuleList([Embed(10, d_model), stack, nn.Linear(d_model, 10)])
    optimizer = torch.optim.Adam(parts.parameters(), rate, fused=True)

    def loss_of(digits):
        embed, stack, output = parts
        return F.cross_entropy(output(stack(embed(digits))[0]).mT, digits.flip(1))

    held = torch.randint(10, (256, 8))

    def share_at(step):
        return min(1, (step + 1) / max(1, warmup))

    train_model(
        parts,
        lambda step: loss_of(torch.randint(10, (32, 8))),
        steps,
        [optimizer],
        [LambdaLR(optimizer, share_at)],
    )
    with torch.no_grad():
        loss = round(float(loss_of(held)), 4)
    kept = {"norm_first": norm_first, "warmup": warmup, "rate": rate, "seed": seed}
    return kept | {"loss": loss}


def losses(results, norm_first, warmup, rate):
    """Return the losses of one way, by seed."""
    rows = alike(results["order"], norm_first=norm_first, warmup=warmup, rate=rate)
    return [each["loss"] for each in rows]


def summary(results):
    """Compare the two places at the highest rate, and a warm-up with a lower rate."""
    _, lower, high = SETTINGS["rates"]
    cold, before = (losses(results, first, 0, high) for first in (False, True))
    warm, slow = losses(results, False, 50, high), losses(results, False, 0, lower)
    if not all((cold, before, warm, slow)):  # a short run
        cold = before = warm = slow = [0.0]
    holds = min(cold) > max(*before, *warm, *slow)
    return count(results["order"]) | paired(cold, before, holds)
