"""What surrounds attention: feed-forward network, norm, the block, and stacks of it.

Every model of the course is made of `Block`: the encoder-decoder of its chapter, BERT
(`lmcourse.bert`) and the GPT (`lmcourse.gpt.model`). The chapter *transformer-block*
arrives at this code step by step; a test compares the two as syntax trees.
"""

from functools import partial

import torch
import torch.nn.functional as F
from torch import nn

from lmcourse.attention import MultiHeadAttention
from lmcourse.positions import sinusoidal


def relu_squared(x):
    """Return the square of each positive number of x, 0 for the others (So et al. 2021)."""
    return F.relu(x).square()


ACTIVATIONS = {
    "tanh": torch.tanh,
    "sigmoid": torch.sigmoid,
    "relu": F.relu,
    "relu_squared": relu_squared,
    "gelu": F.gelu,
    "gelu_new": partial(F.gelu, approximate="tanh"),  # as GPT-2 computes it
    "gelu_pytorch_tanh": partial(F.gelu, approximate="tanh"),
    "silu": F.silu,
    "swiglu": F.silu,  # its gate; FeedForward adds the linear branch
}


class FeedForward(nn.Module):
    """The same two-layer network applied to every token (Vaswani et al. 2017, eq. 2).

    Parameters
    ----------
    d_model : int
    d_ff : int
        Width of the hidden layer.
    activation : str
        A name in `ACTIVATIONS`, most of which are those of ``transformers``. With
        ``"swiglu"`` the hidden layer is silu(gate(x)) * up(x) (Shazeer 2020, eq. 6).
    bias : bool
        Whether the linear layers have one.

    Raises
    ------
    ValueError
        If the activation is unknown.
    """

    def __init__(self, d_model, d_ff, activation="gelu", bias=True):
        super().__init__()
        if activation not in ACTIVATIONS:
            raise ValueError(f"activation {activation!r} is not in {[*ACTIVATIONS]}")
        self.activation = ACTIVATIONS[activation]
        self.up = nn.Linear(d_model, d_ff, bias)
        self.down = nn.Linear(d_ff, d_model, bias)
        self.gate = None
        if activation == "swiglu":
            self.gate = nn.Linear(d_model, d_ff, bias)

    def forward(self, x):
        """Return the update of each position, computed by itself, of the shape of x.

        ``x`` : Tensor (..., d_model).
        """
        if self.gate is None:
            return self.down(self.activation(self.up(x)))
        return self.down(self.activation(self.gate(x)) * self.up(x))


class LayerNorm(nn.Module):
    """Layer normalisation of the last axis (Ba et al. 2016, eq. 4).

    ``weight`` and ``bias``, of shape (d_model,), are those of `torch.nn.LayerNorm`, γ and β
    on paper; ``eps`` keeps a constant vector from being divided by zero.
    """

    def __init__(self, d_model, eps=1e-5):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(d_model))
        self.bias = nn.Parameter(torch.zeros(d_model))
        self.eps = eps

    def forward(self, x):
        """Return x with each vector normalised, times the weight, plus the bias.

        ``x`` : Tensor (..., d_model); so is what is returned.
        """
        mean = x.mean(-1, keepdim=True)  # (..., 1)
        variance = ((x - mean) ** 2).mean(-1, keepdim=True)  # (..., 1)
        normed = (x - mean) / torch.sqrt(variance + self.eps)
        return normed * self.weight + self.bias


class Block(nn.Module):
    """Attention, then a feed-forward network, each added to the residual stream.

    Parameters
    ----------
    d_model, heads, d_ff : int
        Numbers of a state; heads, which divide them evenly; width of the hidden layer.
    activation : str
        Of the feed-forward network, a name in `ACTIVATIONS`.
    norm_first : bool
        True: x + step(norm(x)) (Xiong et al. 2020). False: norm(x + step(x)), as in
        Vaswani et al. 2017, section 3.1.
    dropout : float
        Share of each update that is zeroed in training.
    norm : callable
        Makes a norm from d_model, for example `LayerNorm` or `torch.nn.RMSNorm`.
    attention : callable
        Makes the self-attention from d_model and heads: a module that returns the update
        and the weights, or None for weights that it does not keep.
    cross : bool
        Whether there is cross-attention between the two: the block of a decoder.
    """

    def __init__(
        self,
        d_model,
        heads,
        d_ff,
        activation="gelu",
        norm_first=True,
        dropout=0.0,
        norm=LayerNorm,
        attention=MultiHeadAttention,
        cross=False,
    ):
        super().__init__()
        self.norm_first = norm_first
        self.norm_1 = norm(d_model)
        self.attention = attention(d_model, heads)
        self.norm_cross = norm(d_model) if cross else None
        self.cross = MultiHeadAttention(d_model, heads) if cross else None
        self.norm_2 = norm(d_model)
        self.feed_forward = FeedForward(d_model, d_ff, activation)
        self.dropout = nn.Dropout(dropout)

    def before(self, x, norm):
        """Return what attention or the feed-forward network is given of x.

        ``x`` : Tensor (batch, tokens, d_model); ``norm`` : nn.Module, applied if it comes
        first.
        """
        return norm(x) if self.norm_first else x

    def after(self, x, update, norm):
        """Return x with an update added, and normalised if the norm comes last.

        ``x``, ``update`` : Tensors (batch, tokens, d_model); ``norm`` : nn.Module.
        """
        x = x + self.dropout(update)
        return x if self.norm_first else norm(x)

    def forward(self, x, memory=None, memory_mask=None, **options):
        """Run the block.

        Parameters
        ----------
        x : Tensor of shape (batch, tokens, d_model)
        memory : Tensor of shape (batch, sources, d_model), optional
            The encoder's output, for a block with cross-attention, and for no other.
        memory_mask : bool Tensor broadcastable to (batch, heads, tokens, sources), optional
            True where a token may attend to the memory. Default everywhere.
        **options
            What the self-attention is given: ``mask``, ``bias`` and ``rotate`` of
            `lmcourse.attention.MultiHeadAttention`. With a causal mask this is a block
            of GPT.

        Returns
        -------
        output : Tensor of shape (batch, tokens, d_model)
        weights : Tensor of shape (batch, heads, tokens, tokens), or None
            Of the self-attention, None if it keeps none. A block with cross-attention
            returns the weights of that instead, (batch, heads, tokens, sources).

        Raises
        ------
        ValueError
            If there is a memory and no cross-attention, or the reverse.
        """
        if (memory is None) != (self.cross is None):
            raise ValueError("cross-attention and a memory to look at go together")
        seen = self.before(x, self.norm_1)
        update, weights = self.attention(seen, **options)
        x = self.after(x, update, self.norm_1)
        if self.cross is not None:
            seen = self.before(x, self.norm_cross)
            update, weights = self.cross(seen, memory, memory_mask)
            x = self.after(x, update, self.norm_cross)
        update = self.feed_forward(self.before(x, self.norm_2))
        return self.after(x, update, self.norm_2), weights


class Embed(nn.Module):
    """Token vectors plus sinusoidal position vectors.

    Parameters
    ----------
    vocab_size, d_model : int
    """

    def __init__(self, vocab_size, d_model):
        super().__init__()
        self.table = nn.Embedding(vocab_size, d_model)

    def forward(self, ids):
        """Return the vectors of ids (batch, tokens): a Tensor (batch, tokens, d_model)."""
        x = self.table(ids)  # (batch, tokens, d_model)
        return x + sinusoidal(*x.shape[-2:]).to(x)


class Stack(nn.Module):
    """Blocks on top of each other and a last norm.

    Parameters
    ----------
    layers, d_model, heads, d_ff : int
    norm : callable
        Makes a norm from d_model.
    **options
        Of every block, such as ``norm``, ``activation``, ``norm_first`` or ``dropout``
        (`Block` explains them).
    """

    def __init__(self, layers, d_model, heads, d_ff, norm=LayerNorm, **options):
        super().__init__()
        sizes = {"d_model": d_model, "heads": heads, "d_ff": d_ff, "norm": norm}
        blocks = (Block(**sizes, **options) for _ in range(layers))
        self.blocks = nn.ModuleList(blocks)
        self.norm = norm(d_model)

    def forward(self, x, **options):
        """Run every block, each given the same masks and the same memory.

        Parameters
        ----------
        x : Tensor of shape (batch, tokens, d_model)
        **options
            ``memory``, ``memory_mask``, ``mask``, ``bias`` and ``rotate``, the same for
            each block.

        Returns
        -------
        output : Tensor of shape (batch, tokens, d_model)
        weights : list of Tensor of shape (batch, heads, tokens, tokens)
            The attention weights that each block returned; with cross-attention these are
            (batch, heads, tokens, sources).
        """
        weights = []
        for block in self.blocks:
            x, seen = block(x, **options)
            weights.append(seen)
        return self.norm(x), weights
