"""Protein-like sequences that are made by a rule, and a small language model of them.

Each sequence winds one way. In it most letters are the partner of the letter that stands
so many places before: as in a protein's helix, where what is four places back is near.
"""

import torch
import torch.nn.functional as F
from torch import nn

from lmcourse.ablation import replaced
from lmcourse.attention import causal_mask
from lmcourse.positions import rotate
from lmcourse.transformer import Stack

LETTERS = "ACDEFGHIKLMNPQRSTVWY"  # the amino acids
TURNS, LENGTH, KEPT, REACH = (2, 4), 32, 0.8, 8
PARTNER = torch.arange(20).roll(7)  # of each letter


def grow(count, dice, kept=KEPT, turns=TURNS, length=LENGTH):
    """Return sequences (count, length) and how far back each one's rule looks (count,)."""
    ids = torch.randint(20, (count, length), generator=dice)
    turn = torch.tensor(turns)[torch.randint(len(turns), (count,), generator=dice)]
    ruled = torch.rand(count, length, generator=dice) < kept
    ruled &= torch.arange(length) >= turn[:, None]
    for place in range(min(turns), length):
        before = ids.gather(1, (place - turn[:, None]).clamp(min=0))[:, 0]
        ids[:, place] = torch.where(ruled[:, place], PARTNER[before], ids[:, place])
    return ids, turn


class SequenceModel(nn.Module):
    """Blocks behind a causal mask, with rotary positions."""

    def __init__(self, layers=1, d_model=32, heads=2):
        super().__init__()
        self.embed = nn.Embedding(20, d_model)
        self.stack = Stack(layers, d_model, heads, 4 * d_model)
        self.answer = nn.Linear(d_model, 20)

    def forward(self, ids):
        """Return logits (batch, tokens, 20), and of each block the weights."""
        x = self.embed(ids)
        x, weights = self.stack(x, mask=causal_mask(ids.shape[1]), rotate=rotate)
        return self.answer(x), weights


def costs(model, ids):
    """Return the loss of every letter but the first: (batch, tokens - 1)."""
    logits = model(ids[:, :-1])[0].mT
    return F.cross_entropy(logits, ids[:, 1:], reduction="none")


@torch.no_grad()
def dissected(model, count=500, seed=99):
    """Return where the heads of a model look, and what each costs when it is away.

    Returns
    -------
    dict
        ``looks``: of each head the mean weight by how far before the letter to come a
        letter stands, from 1 to `REACH`. ``whole``: nats per letter of sequences by each
        of `TURNS`, from place 12 on; ``without``: the same, each head in turn away;
        ``back``: the same with all of them back.
    """
    ids, turn = grow(count, torch.Generator().manual_seed(seed))
    block, weights = model.stack.blocks[0], model(ids)[1][0]

    def by_turn():
        found = costs(model, ids)[:, 11:]
        return [round(found[turn == each].mean().item(), 4) for each in TURNS]

    looks, without = [], []
    for head in range(block.attention.heads):
        ways = [weights[:, head].diagonal(-back, 1, 2) for back in range(REACH)]
        looks.append([round(way[:, REACH:].mean().item(), 4) for way in ways])
    whole = by_turn()
    for head in range(block.attention.heads):
        with replaced(block, head):
            without.append(by_turn())
    return {"looks": looks, "whole": whole, "without": without, "back": by_turn()}


def counted(count=500, seed=99, learned=20_000):
    """Return what counting costs, in nats per letter, on the same sequences.

    Counts of pairs at each distance to `REACH`, the best of them; all of them, each
    weighed by how well it did in the sequence so far; and of three letters in a row.
    """
    texts, _ = grow(learned, torch.Generator().manual_seed(seed + 1))
    ids, _ = grow(count, torch.Generator().manual_seed(seed))
    logs = []
    for back in range(1, REACH + 1):
        pairs = torch.bincount(
            (20 * texts[:, :-back] + texts[:, back:]).flatten(), None, 400
        )
        shares = (pairs.view(20, 20) + 1).double()
        table = (shares / shares.sum(1, keepdim=True)).log()
        logs.append(table[ids[:, REACH - back : -back], ids[:, REACH:]])
    logs = torch.stack(logs)  # (distances, count, places)
    past = logs.cumsum(-1) - logs  # of what stands before
    mixed = -(past.log_softmax(0) + logs).logsumexp(0)
    keys = 400 * texts[:, :-2] + 20 * texts[:, 1:-1] + texts[:, 2:]
    threes = (torch.bincount(keys.flatten(), None, 8000).view(400, 20) + 0.1).double()
    threes = (threes / threes.sum(1, keepdim=True)).log()
    row = threes[20 * ids[:, REACH - 2 : -2] + ids[:, REACH - 1 : -1], ids[:, REACH:]]
    late = slice(12 - REACH, None)
    each = [round(-x[:, late].mean().item(), 4) for x in logs]
    found = {"pairs": each, "all distances": mixed[:, late].mean().item()}
    found["three in a row"] = -row[:, late].mean().item()
    return {k: v if k == "pairs" else round(v, 4) for k, v in found.items()}
