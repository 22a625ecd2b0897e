"""Blocks that lack a part: what happens in a stack that never had it.

A `Lacking` is a causal block like `lmcourse.transformer.Block`, without the parts that are
named; `flow` measures what an untrained stack of them does to the tokens of a text, and
`random_flows` does so for several random seeds. How such models learn is the study
*transformer-block*.
"""

from functools import partial

import torch
from torch import nn
from torch.nn import functional as F

from lmcourse.attention import MultiHeadAttention, causal_mask
from lmcourse.transformer import FeedForward

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
        its last update alone), "other tokens" (each token attends only to itself), "bend"
        (the activation of the feed-forward network).
    scale : float
        By which each update is multiplied.
    path : float
        By which the residual stream is multiplied before an update is added: 1 keeps all of
        it.
    """

    def __init__(self, d_model, off=(), scale=1.0, path=1.0):
        """Draw the first weights."""
        super().__init__()
        self.off = off
        self.scale = scale
        self.path = 0.0 if "paths" in off else path
        norm = nn.Identity if "norms" in off else partial(nn.LayerNorm, d_model)
        self.norm_1 = norm()
        self.norm_2 = norm()
        self.attention = MultiHeadAttention(d_model, heads=4)
        self.feed_forward = FeedForward(d_model, 4 * d_model)
        if "bend" in off:
            self.feed_forward.activation = nn.Identity()

    def add(self, x, part, update):
        """Return the states after a part: the stream and its update, both times a number.

        ``path`` and ``scale`` are the block's: what passes of the residual stream, and by
        what an update is multiplied. If the block lacks the part, ``x`` comes back; if it
        lacks the residual paths (``path`` is 0), the update times ``scale``, alone.

        Parameters
        ----------
        x, update : Tensor of shape (batch, tokens, d_model)
            The states before the part, and what the part returned.
        part : {"attention", "feed-forward"}
            Which part it is.

        Returns
        -------
        Tensor of the shape of ``x``
        """
        if part in self.off:
            return x
        if self.path == 0:
            return self.scale * update  # not 0 * x, which is NaN where x has overflowed
        return self.path * x + self.scale * update

    def forward(self, x):
        """Run the block.

        Parameters
        ----------
        x : Tensor of shape (batch, tokens, d_model)

        Returns
        -------
        Tensor of shape (batch, tokens, d_model)
        """
        mask = causal_mask(x.shape[-2])
        if "other tokens" in self.off:  # each attends to itself only
            mask = torch.eye(x.shape[-2], dtype=torch.bool)
        update, _ = self.attention(self.norm_1(x), mask=mask)
        x = self.add(x, "attention", update)
        return self.add(x, "feed-forward", self.feed_forward(self.norm_2(x)))


def use_xavier(module):
    """Draw the weights of all linear layers of a module anew, in place.

    As Xavier does (Glorot and Bengio 2010), with biases of zero.

    Parameters
    ----------
    module : nn.Module
        Its linear layers are changed.
    """
    for layer in module.modules():
        if isinstance(layer, nn.Linear):
            nn.init.xavier_uniform_(layer.weight)
            nn.init.zeros_(layer.bias)


def spread(x):
    """Return how different the tokens of a text are: 0 if all states are the same.

    It is the length of what is left of the states when their mean over the tokens is
    subtracted, as a share of their own length.

    Parameters
    ----------
    x : Tensor of shape (..., tokens, d_model)

    Returns
    -------
    float
        The mean over all texts.
    """
    apart = (x - x.mean(-2, keepdim=True)).norm(dim=(-2, -1))
    return float((apart / x.norm(dim=(-2, -1))).mean())


def flow(off, seed, scale=1.0, path=1.0, layers=24, d_model=32, xavier=True):
    """Measure what an untrained stack of blocks does to random tokens.

    There are four texts of 16 random vectors, and 50 classes to predict at the end.

    Parameters
    ----------
    off : tuple of str
        What the blocks lack: "attention", "feed-forward", "norms", "paths", "other tokens",
        "bend" (`Lacking` says what each means).
    seed : int
        Of the weights and of the tokens.
    scale : float
        By which each update is multiplied.
    path : float
        By which the residual stream is multiplied before an update is added: 1 keeps all of
        it.
    layers, d_model : int
        How many blocks, and the width of a state.
    xavier : bool
        Whether the first weights are Xavier's; else they are PyTorch's own.

    Returns
    -------
    dict of str to list of float
        A number before the first block and after each. ``spread``: how far the tokens'
        states are from their mean, as a share of their length; ``size``: the standard
        deviation of all numbers of these states; ``gradient``: the length of the gradient,
        by these states, of a loss that is computed after the last block.
    """
    torch.manual_seed(seed)
    blocks = nn.ModuleList([Lacking(d_model, off, scale, path) for _ in range(layers)])
    if xavier:
        use_xavier(blocks)
    classifier = nn.Sequential(nn.LayerNorm(d_model), nn.Linear(d_model, 50))
    levels = [torch.randn(4, 16, d_model, requires_grad=True)]
    answers = torch.randint(50, (4, 16))
    for block in blocks:
        levels.append(block(levels[-1]))
        levels[-1].retain_grad()
    F.cross_entropy(classifier(levels[-1]).mT, answers).backward()
    return {
        "spread": [spread(x.detach()) for x in levels],
        "size": [float(x.detach().std()) for x in levels],
        "gradient": [float(x.grad.norm()) for x in levels],
    }


def random_flows(seeds, **options):
    """Return what untrained stacks of blocks that lack parts do to random tokens.

    Parameters
    ----------
    seeds : iterable of int
        A stack of each kind is made for each seed.
    **options
        Of `flow`: ``path``, by which the residual stream is multiplied before each update
        is added; ``layers``, how many blocks; ``d_model``; and ``xavier``, whether the
        first weights are Xavier's. With "one constant" each update is divided by 7, about
        the root of the number of updates of 24 blocks.

    Returns
    -------
    dict of str to list of dict
        What the blocks lack, "nothing", "attention", "feed-forward", "norms", "norms, one
        constant", "paths" or "paths, other tokens" (each token attends to itself alone) → a
        dict for each seed, with the lists ``spread`` (how far the tokens' states are from
        their mean, as a share of their length), ``size`` (the standard deviation of all
        numbers of these states) and ``gradient`` (the length of a later loss's gradient by
        them), each with a float before the first block and after every one.
    """
    return {
        name: [
            flow(off, seed, scale=1 / 7 if "one constant" in off else 1.0, **options)
            for seed in seeds
        ]
        for name, off in LACKING.items()
    }
