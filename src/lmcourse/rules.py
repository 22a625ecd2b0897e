"""Protein-like sequences that are made by a rule, and a small language model of them.

Each sequence has one of two distances, two or four positions. Most of its letters are the
partner of the letter that stands so far before; so in a protein's helix, where the amino
acid four positions back is near.
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
TURNS = (2, 4)  # how many positions back a rule may look
LENGTH = 32  # letters of a sequence
RULED = 0.8  # the share of letters that follow the rule
REACH = 8  # the largest distance of which attention is reported
FIRST_JUDGED = 12  # losses are reported from this position on, where the rule is known
PARTNER = torch.arange(20).roll(7)  # of each letter


def sample_sequences(count, generator, ruled=RULED, turns=TURNS, length=LENGTH):
    """Return random sequences of letters, most of which follow a rule.

    Each of the 20 letters has another one for its partner. By the rule a letter is the
    partner of the one that stands some positions before it, two or four by default.

    Parameters
    ----------
    count : int
        How many sequences.
    generator : torch.Generator
    ruled : float
        The probability that a letter is the partner of the one that stands a distance
        before it, by default 0.8; all other letters are random.
    turns : tuple of int
        Each sequence has one of these distances.
    length : int
        How many letters each has, by default 32.

    Returns
    -------
    ids : int64 Tensor of shape (count, length)
        From 0 to 19, numbers of `LETTERS`.
    distance : int64 Tensor of shape (count,)
        How many positions back each sequence's rule looks.
    """
    ids = torch.randint(20, (count, length), generator=generator)
    drawn = torch.randint(len(turns), (count,), generator=generator)
    distance = torch.tensor(turns)[drawn]
    follows = torch.rand(count, length, generator=generator) < ruled
    follows &= torch.arange(length) >= distance[:, None]  # (count, length)
    for position in range(min(turns), length):
        before = (position - distance[:, None]).clamp(min=0)  # (count, 1)
        partner = PARTNER[ids.gather(1, before)[:, 0]]
        ids[:, position] = torch.where(follows[:, position], partner, ids[:, position])
    return ids, distance


class SequenceModel(nn.Module):
    """Blocks behind a causal mask, with rotary positions.

    Parameters
    ----------
    layers, d_model, heads : int
    """

    def __init__(self, layers=1, d_model=32, heads=2):
        super().__init__()
        self.embed = nn.Embedding(20, d_model)
        self.stack = Stack(layers, d_model, heads, 4 * d_model)
        self.answer = nn.Linear(d_model, 20)

    @property
    def blocks(self):
        """The blocks, an nn.ModuleList, where `lmcourse.gpt.inside` looks for them."""
        return self.stack.blocks

    def forward(self, ids):
        """Score the next letter.

        Parameters
        ----------
        ids : int64 Tensor of shape (batch, tokens)
            Letters as numbers from 0 to 19.

        Returns
        -------
        logits : Tensor of shape (batch, tokens, 20)
        weights : list of Tensor of shape (batch, heads, tokens, tokens)
            Each block's.
        """
        mask = causal_mask(ids.shape[1])
        x, weights = self.stack(self.embed(ids), mask=mask, rotate=rotate)
        return self.answer(x), weights


def letter_losses(model, ids):
    """Return the loss of every letter but the first.

    Parameters
    ----------
    model : SequenceModel
    ids : int64 Tensor of shape (batch, tokens)
        Letters as numbers from 0 to 19.

    Returns
    -------
    Tensor of shape (batch, tokens - 1)
        In nats.
    """
    logits = model(ids[:, :-1])[0].mT  # (batch, 20, tokens - 1)
    return F.cross_entropy(logits, ids[:, 1:], reduction="none")


@torch.no_grad()
def ablate_heads(model, count=500, seed=99):
    """Return where the heads of the first block attend, and the losses without each.

    An ablated head returns its mean output, whatever its input.

    Parameters
    ----------
    model : SequenceModel
    count, seed : int
        Of the sequences on which this is measured.

    Returns
    -------
    dict
        ``attention``: a list for each head, the mean attention weights on letters that
        stand 1 to 8 positions before the letter to predict. ``whole``: two losses in nats a
        letter, of sequences whose rule looks two positions back, and four (`TURNS`), from
        position 12 on. ``without``: such a pair for each head, while that head is ablated.
    """
    ids, distance = sample_sequences(count, torch.Generator().manual_seed(seed))
    block = model.blocks[0]
    weights = model(ids)[1][0]  # (count, heads, tokens, tokens)
    mean_outputs = means(model, ids)

    def losses_by_turn():
        """Return the mean losses of sequences whose rule looks two and four positions back.

        A list of two floats, in nats a letter, of the model as it is now; the first 12
        letters, in which the rule is not yet known, are not judged.
        """
        losses = letter_losses(model, ids)[:, FIRST_JUDGED - 1 :]
        return [round(losses[distance == each].mean().item(), 4) for each in TURNS]

    attention = []
    without = []
    for head in range(block.attention.heads):
        diagonals = [weights[:, head].diagonal(-back, 1, 2) for back in range(REACH)]
        attention.append([round(x[:, REACH:].mean().item(), 4) for x in diagonals])
        with replaced(block, head, mean_outputs[0, head]):
            without.append(losses_by_turn())
    return {"attention": attention, "whole": losses_by_turn(), "without": without}
