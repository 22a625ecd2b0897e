"""What surrounds attention: feed-forward, norms, residual paths, blocks, encoder-decoder.

The chapter *transformer-block* arrives at this code step by step; a test compares the
two as syntax trees.
"""

import torch
import torch.nn.functional as F
from torch import nn

from lmcourse.attention import MultiHeadAttention, causal_mask, padding_mask
from lmcourse.positions import sinusoidal

__all__ = [
    "ACTIVATIONS",
    "Decoder",
    "DecoderBlock",
    "Embed",
    "Encoder",
    "EncoderBlock",
    "FeedForward",
    "LayerNorm",
    "RMSNorm",
    "Residual",
    "Transformer",
    "greedy",
]

ACTIVATIONS = {
    "tanh": torch.tanh,
    "sigmoid": torch.sigmoid,
    "relu": F.relu,
    "gelu": F.gelu,
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
    activation : {"gelu", "relu", "silu", "tanh", "sigmoid", "swiglu"}
        With ``"swiglu"`` the hidden layer is silu(gate(x)) * up(x) (Shazeer 2020, eq. 6).
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
        """Map (..., d_model) to (..., d_model), each position on its own."""
        if self.gate is None:
            return self.down(self.activation(self.up(x)))
        return self.down(self.activation(self.gate(x)) * self.up(x))


class LayerNorm(nn.Module):
    """Layer normalisation of the last axis (Ba et al. 2016, eq. 4).

    ``eps`` keeps a constant vector from being divided by zero. ``gamma`` and ``beta``,
    of shape (d_model,), are ``weight`` and ``bias`` of `torch.nn.LayerNorm`.
    """

    def __init__(self, d_model, eps=1e-5):
        super().__init__()
        self.gamma = nn.Parameter(torch.ones(d_model))
        self.beta = nn.Parameter(torch.zeros(d_model))
        self.eps = eps

    def forward(self, x):
        """Map (..., d_model) to the same shape."""
        mean = x.mean(-1, keepdim=True)  # (..., 1)
        variance = ((x - mean) ** 2).mean(-1, keepdim=True)  # (..., 1)
        normed = (x - mean) / torch.sqrt(variance + self.eps)
        return normed * self.gamma + self.beta


class RMSNorm(nn.Module):
    """Division by the root mean square of the last axis (Zhang & Sennrich 2019, eq. 4).

    ``gamma``, of shape (d_model,), is ``weight`` of `torch.nn.RMSNorm`.
    """

    def __init__(self, d_model, eps=1e-6):
        super().__init__()
        self.gamma = nn.Parameter(torch.ones(d_model))
        self.eps = eps

    def forward(self, x):
        """Map (..., d_model) to the same shape."""
        mean_square = (x**2).mean(-1, keepdim=True)  # (..., 1)
        return x / torch.sqrt(mean_square + self.eps) * self.gamma


class Residual(nn.Module):
    """The path around one sublayer: what it reads, and how its update is added.

    Parameters
    ----------
    d_model : int
    norm_first : bool
        True: x + sublayer(norm(x)) (Xiong et al. 2020). False: norm(x + sublayer(x)), as
        in Vaswani et al. 2017, section 3.1.
    dropout : float
        Share of the update that is zeroed in training.
    norm : callable
        Makes the norm from d_model, for example `LayerNorm` or `RMSNorm`.
    """

    def __init__(self, d_model, norm_first=True, dropout=0.0, norm=LayerNorm):
        super().__init__()
        self.norm = norm(d_model)
        self.dropout = nn.Dropout(dropout)
        self.norm_first = norm_first

    def read(self, x):
        """Return what the sublayer gets to see of x."""
        return self.norm(x) if self.norm_first else x

    def write(self, x, update):
        """Return x with the sublayer's update added."""
        x = x + self.dropout(update)
        return x if self.norm_first else self.norm(x)


class EncoderBlock(nn.Module):
    """Self-attention, then a feed-forward network, each with its residual path.

    ``activation`` is that of `FeedForward`; ``residual`` holds options of `Residual`.
    """

    def __init__(self, d_model, heads, d_ff, activation="gelu", **residual):
        super().__init__()
        self.attention = MultiHeadAttention(d_model, heads)
        self.feed_forward = FeedForward(d_model, d_ff, activation)
        self.first = Residual(d_model, **residual)
        self.second = Residual(d_model, **residual)

    def forward(self, x, mask=None, **positions):
        """Run the block.

        Parameters
        ----------
        x : Tensor of shape (batch, tokens, d_model)
        mask : bool Tensor broadcastable to (batch, heads, tokens, tokens), optional
            True where a token may look. With a causal mask this is a block of GPT.
        **positions
            ``rotate`` and ``bias`` of `lmcourse.attention.MultiHeadAttention`.

        Returns
        -------
        output : Tensor of shape (batch, tokens, d_model)
        weights : Tensor of shape (batch, heads, tokens, tokens)
        """
        update, weights = self.attention(self.first.read(x), mask=mask, **positions)
        x = self.first.write(x, update)
        x = self.second.write(x, self.feed_forward(self.second.read(x)))
        return x, weights


class DecoderBlock(nn.Module):
    """Causal self-attention, cross-attention to the encoder's output, feed-forward.

    The parameters are those of `EncoderBlock`.
    """

    def __init__(self, d_model, heads, d_ff, activation="gelu", **residual):
        super().__init__()
        self.attention = MultiHeadAttention(d_model, heads)
        self.cross = MultiHeadAttention(d_model, heads)
        self.feed_forward = FeedForward(d_model, d_ff, activation)
        self.first = Residual(d_model, **residual)
        self.second = Residual(d_model, **residual)
        self.third = Residual(d_model, **residual)

    def forward(self, x, memory, mask=None, memory_mask=None):
        """Run the block.

        Parameters
        ----------
        x : Tensor of shape (batch, targets, d_model)
        memory : Tensor of shape (batch, sources, d_model)
            The encoder's output.
        mask : bool Tensor broadcastable to (batch, heads, targets, targets), optional
        memory_mask : bool Tensor broadcastable to (batch, heads, targets, sources)

        Returns
        -------
        output : Tensor of shape (batch, targets, d_model)
        weights : Tensor of shape (batch, heads, targets, sources)
            Of the cross-attention.
        """
        update, _ = self.attention(self.first.read(x), mask=mask)
        x = self.first.write(x, update)
        seen = self.second.read(x)
        update, weights = self.cross(seen, context=memory, mask=memory_mask)
        x = self.second.write(x, update)
        x = self.third.write(x, self.feed_forward(self.third.read(x)))
        return x, weights


class Embed(nn.Module):
    """Token vectors plus sinusoidal position vectors."""

    def __init__(self, vocab_size, d_model):
        super().__init__()
        self.table = nn.Embedding(vocab_size, d_model)

    def forward(self, ids):
        """Map (batch, tokens) to (batch, tokens, d_model)."""
        x = self.table(ids)  # (batch, tokens, d_model)
        return x + sinusoidal(*x.shape[-2:]).to(x)


class Encoder(nn.Module):
    """A stack of encoder blocks and a last norm; ``options`` go to every block."""

    def __init__(self, layers, d_model, heads, d_ff, **options):
        super().__init__()
        blocks = (EncoderBlock(d_model, heads, d_ff, **options) for _ in range(layers))
        self.blocks = nn.ModuleList(blocks)
        self.norm = options.get("norm", LayerNorm)(d_model)

    def forward(self, x, mask=None):
        """Map (batch, tokens, d_model) to the same shape."""
        for block in self.blocks:
            x, _ = block(x, mask)
        return self.norm(x)


class Decoder(nn.Module):
    """A stack of decoder blocks and a last norm; ``options`` go to every block."""

    def __init__(self, layers, d_model, heads, d_ff, **options):
        super().__init__()
        blocks = (DecoderBlock(d_model, heads, d_ff, **options) for _ in range(layers))
        self.blocks = nn.ModuleList(blocks)
        self.norm = options.get("norm", LayerNorm)(d_model)

    def forward(self, x, memory, mask=None, memory_mask=None):
        """Run every block on the same memory.

        Returns
        -------
        output : Tensor of shape (batch, targets, d_model)
        weights : list of Tensor of shape (batch, heads, targets, sources)
            Each block's cross-attention.
        """
        weights = []
        for block in self.blocks:
            x, seen = block(x, memory, mask, memory_mask)
            weights.append(seen)
        return self.norm(x), weights


class Transformer(nn.Module):
    """An encoder-decoder on token ids (Vaswani et al. 2017, figure 1).

    Source and target share one vocabulary and one table of token vectors.

    Parameters
    ----------
    vocab_size, layers, d_model, heads, d_ff : int
        ``layers`` in the encoder, and as many in the decoder.
    pad : int
        The id that fills up short sources; nothing looks at it.
    **options
        ``activation``, ``norm_first``, ``dropout``, ``norm``: see `EncoderBlock`.
    """

    def __init__(self, vocab_size, layers, d_model, heads, d_ff, pad=0, **options):
        super().__init__()
        self.embed = Embed(vocab_size, d_model)
        self.encoder = Encoder(layers, d_model, heads, d_ff, **options)
        self.decoder = Decoder(layers, d_model, heads, d_ff, **options)
        self.output = nn.Linear(d_model, vocab_size)
        self.pad = pad

    def encode(self, source):
        """Read the source, once.

        Parameters
        ----------
        source : int Tensor of shape (batch, sources)

        Returns
        -------
        memory : Tensor of shape (batch, sources, d_model)
        mask : bool Tensor of shape (batch, 1, 1, sources)
            False at padding.
        """
        mask = padding_mask(source != self.pad)
        return self.encoder(self.embed(source), mask), mask

    def decode(self, target, memory, memory_mask):
        """Predict what follows each token of the target.

        Parameters
        ----------
        target : int Tensor of shape (batch, targets)
        memory, memory_mask : Tensor
            From `encode`.

        Returns
        -------
        logits : Tensor of shape (batch, targets, vocab_size)
        weights : list of Tensor of shape (batch, heads, targets, sources)
            The cross-attention of each layer.
        """
        mask = causal_mask(target.shape[-1], target.device)
        x, weights = self.decoder(self.embed(target), memory, mask, memory_mask)
        return self.output(x), weights

    def forward(self, source, target):
        """Return the logits (batch, targets, vocab_size) after each target token."""
        logits, _ = self.decode(target, *self.encode(source))
        return logits


@torch.no_grad()
def greedy(model, source, start, stop, limit):
    """Write the likeliest token again and again, until ``stop`` or ``limit`` tokens.

    Parameters
    ----------
    model : Transformer
        In evaluation mode.
    source : int Tensor of shape (batch, sources)
    start, stop : int
        The ids that open and close a target.
    limit : int
        How many tokens to write at most.

    Returns
    -------
    int Tensor of shape (batch, written)
        Without ``start``; ``model.pad`` after a row's ``stop``.
    """
    memory, mask = model.encode(source)
    ids = source.new_full((len(source), 1), start)
    done = torch.zeros_like(ids, dtype=torch.bool)
    while ids.shape[1] <= limit and not done.all():
        logits, _ = model.decode(ids, memory, mask)  # (batch, so far, vocab_size)
        best = logits[:, -1:].argmax(-1)  # (batch, 1)
        ids = torch.cat([ids, best.masked_fill(done, model.pad)], dim=1)
        done = done | (best == stop)
    return ids[:, 1:]
