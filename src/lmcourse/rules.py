"""Protein-like sequences that are made by a rule, and a small language model of them.

Each sequence winds one way. In it most letters are the partner of the letter that stands
so many places before: as in a protein's helix, where what is four places back is near.
"""

import torch
import torch.nn.functional as F
from torch import nn

from lmcourse.ablation import replaced
from lmcourse.attention import causal_mask
from lmcourse.gpt.inside import means
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

    @property
    def blocks(self):
        """The blocks of the stack, where `lmcourse.gpt.inside` looks for them."""
        return self.stack.blocks

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

    A head that is away gives its mean output, whatever it reads.

    Returns
    -------
    dict
        ``looks``: of each head the mean weight by how far before the letter to come a
        letter stands, from 1 to `REACH`. ``whole``: nats per letter of sequences by each
        of `TURNS`, from place 12 on; ``without``: the same, each head in turn away.
    """
    ids, turn = grow(count, torch.Generator().manual_seed(seed))
    block, weights = model.blocks[0], model(ids)[1][0]
    usual = means(model, ids)

    def by_turn():
        found = costs(model, ids)[:, 11:]
        return [round(found[turn == each].mean().item(), 4) for each in TURNS]

    looks, without = [], []
    for head in range(block.attention.heads):
        ways = [weights[:, head].diagonal(-back, 1, 2) for back in range(REACH)]
        looks.append([round(way[:, REACH:].mean().item(), 4) for way in ways])
        with replaced(block, head, usual[0, head]):
            without.append(by_turn())
    return {"looks": looks, "whole": by_turn(), "without": without}
