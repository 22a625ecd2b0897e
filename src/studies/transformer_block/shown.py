"""Blocks that lack a part, which *transformer-block* shows and its study trains.

The page has the same code; a test compares the two.
"""

import math
from functools import partial

import torch
import torch.nn.functional as F
from torch import nn

from lmcourse.attention import MultiHeadAttention, causal_mask
from lmcourse.data import load_texts, train_val_test_split
from lmcourse.tokenization import CharTokenizer
from lmcourse.transformer import Embed, FeedForward

# What is missing, in words → the names that `Lacking` has for it.
LACKING = {
    "nothing": (),
    "attention": ("attention",),
    "feed-forward": ("feed-forward",),
    "norms": ("norms",),
    "norms, one constant": ("norms", "one constant"),
    "paths": ("paths",),
    "paths, other tokens": ("paths", "other tokens"),
}


class Lacking(nn.Module):
    """A causal pre-norm block that lacks some parts.

    Parameters
    ----------
    d_model : int
    off : tuple of str
        What is missing: "attention", "feed-forward", "norms", "paths" (the block returns
        its last update alone), "other tokens" (each token attends only to itself).
    scale : float
        By which each update is multiplied.
    """

    def __init__(self, d_model, off=(), scale=1.0):
        """Draw the first weights."""
        super().__init__()
        self.off, self.scale = off, scale
        norm = nn.Identity if "norms" in off else partial(nn.LayerNorm, d_model)
        self.norm_1, self.norm_2 = norm(), norm()
        self.attention = MultiHeadAttention(d_model, heads=4)
        self.feed_forward = FeedForward(d_model, 4 * d_model)

    def add(self, x, part, update):
        """Return the states after a part: ``x`` plus its update, unless something is missing.

        Parameters
        ----------
        x, update : Tensor of shape (batch, tokens, d_model)
        part : {"attention", "feed-forward"}
        """
        if part in self.off:
            return x
        return self.scale * update if "paths" in self.off else x + self.scale * update

    def forward(self, x):  # (batch, tokens, d_model)
        """Return the states (batch, tokens, d_model) after the block."""
        mask = causal_mask(x.shape[-2])
        if "other tokens" in self.off:  # each sees itself only
            mask = torch.eye(x.shape[-2], dtype=torch.bool)
        update, _ = self.attention(self.norm_1(x), mask=mask)
        x = self.add(x, "attention", update)
        return self.add(x, "feed-forward", self.feed_forward(self.norm_2(x)))


def xavier(blocks):
    """Draw the weights of all linear layers anew, in place.

    As Xavier does (Glorot and Bengio 2010); ``blocks`` : nn.Module.
    """
    for layer in blocks.modules():
        if isinstance(layer, nn.Linear):
            nn.init.xavier_uniform_(layer.weight)
            nn.init.zeros_(layer.bias)


def spread(x):  # (..., tokens, d_model)
    """Return how different the tokens of a window are: 0 if all states are the same.

    ``x`` are states. It is the length of what is left of them without their mean, over
    their own length: a float, the mean of all windows.
    """
    apart = (x - x.mean(-2, keepdim=True)).norm(dim=(-2, -1))
    return float((apart / x.norm(dim=(-2, -1))).mean())


def model_without(off, layers, weights, seed, vocab_size=64, d_model=32):
    """Return an untrained language model whose blocks lack some parts.

    Parameters
    ----------
    off : tuple of str
        As of `Lacking`; also "one constant", a factor for each update in place of norms.
    layers : int
    weights : {"PyTorch's", "Xavier"}
        The first weights.
    seed, vocab_size, d_model : int

    Returns
    -------
    nn.Sequential
        Token vectors, blocks, norm, output layer: ids (batch, tokens) to logits (batch,
        tokens, vocab_size).
    """
    torch.manual_seed(seed)
    scale = 1 / math.sqrt(2 * layers) if "one constant" in off else 1.0
    blocks = nn.Sequential(*(Lacking(d_model, off, scale) for _ in range(layers)))
    if weights == "Xavier":
        xavier(blocks)
    norm = nn.Identity() if "norms" in off else nn.LayerNorm(d_model)
    output = nn.Linear(d_model, vocab_size)
    return nn.Sequential(Embed(vocab_size, d_model), blocks, norm, output)


def train_without(off, layers, weights, rate, seed, steps):
    """Train a `model_without` on the sonnets, by windows of 32 characters.

    Parameters
    ----------
    off : tuple of str
        What is missing, as of `Lacking`, or "one constant".
    layers : int
    weights : {"PyTorch's", "Xavier"}
        The first weights.
    rate : float
        The learning rate.
    seed, steps : int

    Returns
    -------
    loss : float
        On the validation sonnets, in nats a character.
    spread : float
        Of the states after the last block (`spread`).
    """
    parts = train_val_test_split(load_texts("sonnets"))
    letters = CharTokenizer(parts.training + parts.validation)
    ids = torch.tensor(letters.encode(parts.training))
    held = torch.tensor(letters.encode(parts.validation)).unfold(0, 33, 96)
    model = model_without(off, layers, weights, seed, letters.vocab_size)
    optimizer = torch.optim.Adam(model.parameters(), rate, fused=True)
    for _ in range(steps):
        places = torch.randint(len(ids) - 32, (8, 1)) + torch.arange(33)
        batch = ids[places]  # (windows, 33)
        loss = F.cross_entropy(model(batch[:, :-1]).mT, batch[:, 1:])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        x = model[:2](held[:, :-1])  # (windows, 32, d_model)
        return float(F.cross_entropy(model[2:](x).mT, held[:, 1:])), spread(x)


ACTIVATIONS = {
    "tanh": torch.tanh,
    "sigmoid": torch.sigmoid,
    "relu": F.relu,
    "gelu": F.gelu,
    "gelu_new": partial(F.gelu, approximate="tanh"),  # as GPT-2 computes it
    "gelu_pytorch_tanh": partial(F.gelu, approximate="tanh"),
    "silu": F.silu,
    "swiglu": F.silu,  # its gate; FeedForward adds the linear branch
}
