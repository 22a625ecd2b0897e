"""The smallest model that can continue a row it has read once, and its training.

Rows of random tokens, drawn with replacement and repeated: what follows can be known from
the text itself and from nothing else.
"""

import torch
import torch.nn.functional as F
from torch import nn

from lmcourse.attention import MultiHeadAttention, causal_mask
from lmcourse.positions import rotate

TOKENS, LONGEST, TEXT = 32, 24, 49  # kinds of token; the longest row; tokens of a text


def repeated(lengths, dice):
    """Return texts (texts, 49), each a row of random tokens, again and again.

    Parameters
    ----------
    lengths : int64 Tensor of shape (texts,)
        Of the rows, at most 24.
    dice : torch.Generator
    """
    rows = torch.randint(TOKENS, (len(lengths), LONGEST), generator=dice)
    return rows.gather(1, torch.arange(TEXT) % lengths[:, None])


class Repeater(nn.Module):
    """Layers of attention, and no feed-forward network.

    Parameters
    ----------
    layers, heads, d_model : int
    rotary : bool
        Positions turn queries and keys, as Llama's do; else a learned vector for each is
        added to the token's, as GPT-2's are.
    """

    def __init__(self, layers=2, heads=2, d_model=64, rotary=True):
        super().__init__()
        self.turn = rotate if rotary else None
        self.places = None if rotary else nn.Embedding(TEXT, d_model)
        self.tokens = nn.Embedding(TOKENS, d_model)
        self.norms = nn.ModuleList(nn.LayerNorm(d_model) for _ in range(layers + 1))
        attention = (MultiHeadAttention(d_model, heads, False) for _ in range(layers))
        self.layers = nn.ModuleList(attention)
        self.output = nn.Linear(d_model, TOKENS, bias=False)

    def forward(self, ids):
        """Return logits (batch, tokens, 32), and each layer's weights."""
        x, seen, mask = self.tokens(ids), [], causal_mask(ids.shape[1])
        if self.places is not None:
            x = x + self.places.weight[: ids.shape[1]]
        for norm, layer in zip(self.norms, self.layers, strict=False):
            update, weights = layer(norm(x), mask=mask, rotate=self.turn)
            x, seen = x + update, [*seen, weights]
        return self.output(self.norms[-1](x)), seen


def costs(model, ids):
    """Return what each token but the first costs, in nats: (batch, 48)."""
    logits = model(ids[:, :-1])[0].transpose(1, 2)  # (batch, 32, 48)
    return F.cross_entropy(logits, ids[:, 1:], reduction="none")


def grow(seed, layers=2, steps=250, rate=5e-3, **sizes):
    """Train a `Repeater` on texts that no step sees twice.

    Returns
    -------
    model : Repeater
    history : list of float
        At each step the loss on the second half of its texts, where every row repeats.
    """
    torch.manual_seed(seed)
    dice = torch.Generator().manual_seed(seed)
    model, history = Repeater(layers, **sizes), []
    optimizer = torch.optim.AdamW(model.parameters(), fused=True)
    for step in range(steps):
        optimizer.param_groups[0]["lr"] = rate * min(1, (step + 1) / 50)
        found = costs(model, repeated(torch.randint(8, 25, (32,), generator=dice), dice))
        optimizer.zero_grad()
        found.mean().backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        history.append(found[:, LONGEST:].mean().item())
    return model, history


def fresh(lengths):
    """Return `repeated` texts that no training drew."""
    return repeated(lengths, torch.Generator().manual_seed(10**6))


def counted(ids, order, weight=0.01):
    """Return what the second halves cost somebody who counts, in nats: (batch, 24).

    Parameters
    ----------
    ids : int64 Tensor of shape (batch, 49)
    order : {1, 2, 3}
        Counts the tokens that the text had so far; those that followed the present token;
        those that followed the present two.
    weight : float
        How much a shorter run adds, in counts.
    """
    found = torch.zeros(len(ids), TEXT - 1 - LONGEST)
    for row, text in enumerate(ids):
        for at in range(LONGEST, TEXT - 1):
            share = torch.ones(TOKENS) / TOKENS
            for n in range(order):  # the n tokens up to the present one are the same
                alike = torch.ones(at - n + 1, dtype=torch.bool)
                for back in range(n):
                    alike &= text[n - 1 - back : at - back] == text[at - back]
                seen = torch.bincount(text[n : at + 1][alike], minlength=TOKENS)
                share = (weight * share + seen) / (weight + seen.sum())
            found[row, at - LONGEST] = -share[text[at + 1]].log()
    return found


def dissected(model, texts):
    """Take each head of a `Repeater` away, one at a time: its output is its mean.

    Returns
    -------
    list of dict
        A head: ``layer``, ``head``; what it gives in the repetition to the token
        ``before`` and to what ``followed`` last time; how much more the ``first`` row
        and the repetition (``again``) cost without it.
    """
    with torch.no_grad():
        whole, looks = costs(model, texts), model(texts[:, :-1])[1]
    rows = []
    for layer, part in enumerate(model.layers):
        for head in range(part.heads):
            with average(part, head), torch.no_grad():
                rise = (costs(model, texts) - whole).mean(0)
            look = looks[layer][:, head, LONGEST:]  # (texts, 24, tokens)
            row = {"layer": layer, "head": head}
            row["before"] = look.diagonal(LONGEST - 1, -2, -1).mean().item()
            row["followed"] = look.diagonal(1, -2, -1).mean().item()
            row["first"] = rise[: LONGEST - 1].mean().item()
            rows.append(row | {"again": rise[LONGEST:].mean().item()})
    return rows


def average(attention, *heads):
    """Let heads return their mean over the texts at hand, inside a ``with``."""

    def at_heads(module, inputs):
        parts = inputs[0].unflatten(-1, (attention.heads, -1)).clone()
        for head in heads:
            parts[..., head, :] = parts[..., head, :].mean((0, 1))
        return (parts.flatten(-2),)

    return attention.output.register_forward_pre_hook(at_heads)
