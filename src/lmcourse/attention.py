"""Scaled dot-product attention, its masks, and several heads of it side by side.

The forms at which the chapter *attention* arrives. Axes are named ``batch``, ``heads``,
``tokens`` (``queries`` and ``keys`` where the two may differ), ``d_model`` and ``d_head``.
"""

import math

import torch
from torch import nn

__all__ = ["MultiHeadAttention", "attention", "causal_mask", "padding_mask"]


def attention(query, key, value, mask=None, bias=None):
    """Mix values by scaled dot-product attention (Vaswani et al. 2017, eq. 1).

    Parameters
    ----------
    query : Tensor of shape (..., queries, d_head)
    key : Tensor of shape (..., keys, d_head)
    value : Tensor of shape (..., keys, d_value)
    mask : bool Tensor broadcastable to (..., queries, keys), optional
        True where a query may attend to a key.
    bias : Tensor broadcastable to (..., queries, keys), optional
        Added to the scaled scores, as ALiBi's distances are.

    Returns
    -------
    output : Tensor of shape (..., queries, d_value)
    weights : Tensor of shape (..., queries, keys)
        Each row is non-negative and sums to 1.

    Raises
    ------
    ValueError
        If query and key differ in their last axis, there are no keys, the mask is not
        boolean, the bias is infinite or no number (minus infinity hides, as the mask
        does), or mask and bias together allow a row nothing: no weights could sum to 1.
    """
    if query.shape[-1] != key.shape[-1]:
        raise ValueError(f"query has d_head {query.shape[-1]}, key has {key.shape[-1]}")
    if key.shape[-2] == 0:
        raise ValueError("there are no keys to attend to")
    scores = query @ key.mT / math.sqrt(key.shape[-1])  # (..., queries, keys)
    if bias is not None:
        if not (bias < math.inf).all():
            raise ValueError("the bias holds +inf or NaN; it may hold -inf, which hides")
        scores = scores + bias
    if mask is not None:
        if mask.dtype != torch.bool:
            raise ValueError(f"the mask must be boolean, not {mask.dtype}")
        scores = scores.masked_fill(~mask, -math.inf)
    hides = mask is not None or bias is not None
    if hides and (scores == -math.inf).all(-1).any():
        raise ValueError("a row allows nothing")
    weights = scores.softmax(-1)  # (..., queries, keys)
    return weights @ value, weights  # (..., queries, d_value)


def causal_mask(tokens, device=None):
    """Return the mask that lets each token attend to itself and to those before it.

    Parameters
    ----------
    tokens : int
    device : torch.device, optional

    Returns
    -------
    bool Tensor of shape (tokens, tokens)
        Rows are queries; True on and below the diagonal.
    """
    return torch.ones(tokens, tokens, dtype=torch.bool, device=device).tril()


def padding_mask(attention_mask):
    """Return the mask that hides padding from every query, given a tokenizer's mask.

    Parameters
    ----------
    attention_mask : Tensor of shape (batch, tokens)
        1 for a token, 0 for padding.

    Returns
    -------
    bool Tensor of shape (batch, 1, 1, tokens)
        Broadcasts over heads and queries; combine with `causal_mask` by ``&``.
    """
    return attention_mask.bool()[:, None, None, :]


class MultiHeadAttention(nn.Module):
    """Several attentions side by side (Vaswani et al. 2017, section 3.2.2).

    Parameters
    ----------
    d_model : int
        Width of the token vectors.
    heads : int
        Must divide ``d_model``; ``d_head = d_model // heads``.
    bias : bool
        Whether the four linear layers ``query``, ``key``, ``value`` and ``output`` add
        a bias vector.

    Raises
    ------
    ValueError
        If ``heads`` is not positive or does not divide ``d_model``.
    """

    def __init__(self, d_model, heads, bias=True):
        super().__init__()
        if heads < 1 or d_model % heads:
            raise ValueError(f"{heads} heads do not divide d_model = {d_model}")
        self.heads = heads
        self.query = nn.Linear(d_model, d_model, bias=bias)
        self.key = nn.Linear(d_model, d_model, bias=bias)
        self.value = nn.Linear(d_model, d_model, bias=bias)
        self.output = nn.Linear(d_model, d_model, bias=bias)

    def split(self, x):
        """Cut each vector up: x (..., tokens, d_model) → (..., heads, tokens, d_head)."""
        return x.unflatten(-1, (self.heads, -1)).transpose(-3, -2)

    def forward(self, x, memory=None, mask=None, bias=None, rotate=None):
        """Let the tokens of ``x`` attend to ``memory``, or to each other.

        Parameters
        ----------
        x : Tensor of shape (batch, queries, d_model)
        memory : Tensor of shape (batch, keys, d_model), optional
            Where keys and values come from (cross-attention); default ``x``.
        mask : bool Tensor broadcastable to (batch, heads, queries, keys), optional
            True where a query may attend to a key.
        bias : Tensor broadcastable to (batch, heads, queries, keys), optional
            Added to the scaled scores.
        rotate : callable, optional
            Applied to queries and keys, (batch, heads, tokens, d_head) → same shape, as
            rotary positions are.

        Returns
        -------
        output : Tensor of shape (batch, queries, d_model)
        weights : Tensor of shape (batch, heads, queries, keys)

        Raises
        ------
        ValueError
            If there are no keys, the mask is not boolean, the bias is infinite or no
            number, or mask and bias together allow a row nothing.
        """
        memory = x if memory is None else memory
        query = self.split(self.query(x))  # (batch, heads, queries, d_head)
        key = self.split(self.key(memory))  # (batch, heads, keys, d_head)
        value = self.split(self.value(memory))  # (batch, heads, keys, d_head)
        if rotate is not None:
            query, key = rotate(query), rotate(key)
        output, weights = attention(query, key, value, mask, bias)
        merged = output.transpose(-3, -2).flatten(-2)  # (batch, queries, d_model)
        return self.output(merged), weights
