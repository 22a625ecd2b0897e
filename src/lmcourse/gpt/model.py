"""A GPT that can be read in one sitting and trained in a minute.

It is GPT-2's architecture (Radford et al. 2019), number for number (`lmcourse.gpt.gpt2`).
Options leave it: rotary positions, tables of n-grams, and what a race for speed tries
(`lmcourse.speedrun`). The chapter *mini-gpt* arrives at this code step by step.
"""

import math
from contextlib import contextmanager
from functools import partial
from typing import Annotated, Literal

import torch
import torch.nn.functional as F
from pydantic import Field
from torch import nn

from lmcourse.attention import attention, causal_mask
from lmcourse.ids import check_ids
from lmcourse.positions import rotations, turn_pairs
from lmcourse.settings import LARGEST, Number, Size, Switch, Whole, settings
from lmcourse.transformer import Block

NORMS = {
    "layer": nn.LayerNorm,
    "rms": partial(nn.RMSNorm, elementwise_affine=False),
}
# The options that make a GPT another architecture than GPT-2's, with GPT-2's values.
GPT2_OPTIONS = {
    "positions": "learned",
    "ngrams": (),
    "previous_tokens": 0,
    "norm": "layer",
    "activation": "gelu_new",
    "bias": True,
    "tied": True,
}


@settings
class GPTConfig:
    """The sizes of a GPT, and in what it is not a GPT-2.

    Parameters
    ----------
    vocab_size : int
    context : int
        How many tokens it sees at most.
    layers, heads, d_model : int
        ``heads`` must divide ``d_model``; the hidden layer is ``4 * d_model`` wide.
    dropout : float
        Share of the activations zeroed in training, at most 0.99.
    positions : {"learned", "rotary"}
        A vector for each position, added; or queries and keys rotated (Su et al. 2021).
    ngrams : tuple of int
        Rows of the tables whose vectors are added to those of tokens: for pairs of tokens,
        then for triples, and so on. Empty: none, as in GPT-2.
    previous_tokens : int
        To each token's vector are added those of so many tokens before it, each from a
        table of its own: a row a token, not one for each pair.
    norm : {"layer", "rms"}
        Layer norms; or RMS norms without weights (Zhang and Sennrich 2019).
    activation : {"gelu_new", "relu_squared"}
        Of the feed-forward networks: GPT-2's, or squared ReLU (So et al. 2021).
    bias : bool
        Whether linear layers and norms add a bias.
    tied : bool
        Whether the output matrix is the table of token vectors (Press and Wolf 2017).
    initialisation : {"gpt2", "width"}
        How weights start, see `GPT.initialise`.

    Raises
    ------
    ValueError
        If a field is unknown or wrong, or two do not fit each other; in one line.
    """

    vocab_size: Size
    context: Size = 64
    layers: Size = 4
    heads: Size = 4
    d_model: Size = 128
    dropout: Annotated[Number, Field(ge=0, le=0.99)] = 0.0
    positions: Literal["learned", "rotary"] = "learned"
    ngrams: tuple[Size, ...] = ()
    previous_tokens: Annotated[Whole, Field(ge=0, le=LARGEST)] = 0
    norm: Literal["layer", "rms"] = "layer"
    activation: Literal["gelu_new", "relu_squared"] = "gelu_new"
    bias: Switch = True
    tied: Switch = True
    initialisation: Literal["gpt2", "width"] = "gpt2"

    def __post_init__(self):
        """Raise a ValueError if heads and d_model do not fit together, or the positions."""
        if self.d_model % self.heads:
            raise ValueError(f"{self.heads} heads do not divide d_model = {self.d_model}")
        if self.positions == "rotary" and self.d_model // self.heads % 2:
            raise ValueError("rotary positions turn pairs: d_model / heads must be even")

    def unlike_gpt2(self):
        """Return the options that make it no GPT-2: a dict, name → value.

        Those of ``positions``, ``ngrams``, ``previous_tokens``, ``norm``, ``activation``,
        ``bias`` and ``tied`` that differ from GPT-2's; empty if none does.
        """
        return {
            name: getattr(self, name)
            for name, value in GPT2_OPTIONS.items()
            if getattr(self, name) != value
        }


class CausalAttention(nn.Module):
    """Multi-head attention to what stands before (Vaswani et al. 2017, section 3.2.3).

    The same numbers as `lmcourse.attention.MultiHeadAttention` under a causal mask, with
    query, key and value made by one matrix. Where PyTorch has a fused kernel, the weights
    are never written to memory; a CPU has none for a training with dropout.

    Parameters
    ----------
    d_model, heads : int
    dropout : float
        Share of the attention weights that is zeroed in training.
    rotary : bool
        Whether queries and keys are turned by their positions.
    """

    def __init__(self, d_model, heads, dropout=0.0, rotary=False):
        super().__init__()
        self.heads = heads
        self.dropout = dropout
        self.rotary = rotary
        self.qkv = nn.Linear(d_model, 3 * d_model)
        self.output = nn.Linear(d_model, d_model)

    def project(self, x, first=0):
        """Return query, key and value, each (batch, heads, tokens, d_head).

        ``x`` : Tensor (batch, tokens, d_model); ``first`` : the position of its first
        token, from 0.
        """
        qkv = self.qkv(x).unflatten(-1, (3, self.heads, -1))
        query, key, value = qkv.permute(2, 0, 3, 1, 4)  # (3, batch, heads, tokens, d_head)
        if self.rotary:
            cos, sin = self.rotations(first, query)
            query = turn_pairs(query, cos, sin, "half")
            key = turn_pairs(key, cos, sin, "half")
        return query, key, value

    def rotations(self, first, query):
        """Return cosines and sines of rotary positions, each (tokens, d_head / 2).

        They are cut from a table whose length is a power of two, so that a text that grows
        token by token does not ask for a new one each time.

        Parameters
        ----------
        first : int
            The position of the first token.
        query : Tensor of shape (..., tokens, d_head)
            Whose number of tokens, type and device they are for.
        """
        tokens, d_head = query.shape[-2:]
        end = first + tokens
        length = 1 << (end - 1).bit_length()
        cos, sin = rotations(length, d_head, query.dtype, query.device)
        return cos[first:end], sin[first:end]

    def weights(self, x):
        """Return the attention weights, (batch, heads, tokens, tokens).

        ``x`` : Tensor (batch, tokens, d_model).
        """
        return attention(*self.project(x), causal_mask(x.shape[1], x.device))[1]

    def forward(self, x, cache=None):
        """Return the update of the residual stream, and None for the weights.

        Parameters
        ----------
        x : Tensor of shape (batch, tokens, d_model)
        cache : LayerCache, optional
            A layer of a `lmcourse.gpt.generation.Cache`: ``x`` are then the tokens that
            follow those it holds, and their keys and values are added to it. ``tokens`` is
            how many it holds; ``append(key, value)`` adds some and returns those of all
            tokens.

        Returns
        -------
        update : Tensor of shape (batch, tokens, d_model)
        weights : None
            They are not kept; `weights` computes them.
        """
        dropout = self.dropout if self.training else 0.0
        query, key, value = self.project(x, cache.tokens if cache else 0)
        mask = None
        if cache:
            key, value = cache.append(key, value)  # those of all tokens
            positions = torch.arange(key.shape[2], device=x.device)
            mask = positions <= positions[-x.shape[1] :, None]  # (new tokens, all tokens)
        output = F.scaled_dot_product_attention(
            query, key, value, mask, dropout, is_causal=mask is None
        )  # (batch, heads, tokens, d_head)
        return self.output(output.transpose(1, 2).flatten(-2)), None


class GPT(nn.Module):
    """A decoder: token ids to the logits of the token that follows each.

    Parameters
    ----------
    config : GPTConfig
    """

    def __init__(self, config):
        super().__init__()
        self.config = config
        rotary = config.positions == "rotary"
        norm = NORMS[config.norm]
        self.tokens = nn.Embedding(config.vocab_size, config.d_model)
        self.positions = None if rotary else nn.Embedding(config.context, config.d_model)
        self.dropout = nn.Dropout(config.dropout)
        blocks = (
            Block(
                config.d_model,
                config.heads,
                4 * config.d_model,
                config.activation,
                dropout=config.dropout,
                norm=norm,
                attention=partial(CausalAttention, dropout=config.dropout, rotary=rotary),
            )
            for _ in range(config.layers)
        )
        self.blocks = nn.ModuleList(blocks)
        self.norm = norm(config.d_model)
        self.ngrams = ()
        self.previous = ()
        self.head = None
        self.initialise()
        self._leave_gpt2()

    def _leave_gpt2(self):
        """Add what the configuration has and GPT-2 has not, and draw all weights anew.

        That is tables of n-grams and of previous tokens, no biases, an output matrix of its
        own, and the way in which weights start. Without such options nothing is changed.

        A seed makes the same model as ever without these options: what they need is drawn
        after that.
        """
        config = self.config
        if config.ngrams:
            tables = (nn.Embedding(rows, config.d_model) for rows in config.ngrams)
            self.ngrams = nn.ModuleList(tables)
            self.initialise()
        if config.previous_tokens:
            tables = (
                nn.Embedding(config.vocab_size + 1, config.d_model)  # row 0: no token
                for _ in range(config.previous_tokens)
            )
            self.previous = nn.ModuleList(tables)
        if not config.bias:
            for module in self.modules():
                if getattr(module, "bias", None) is not None:
                    module.bias = None
        if not config.tied:
            self.head = nn.Linear(config.d_model, config.vocab_size, bias=False)
        other_options = config.unlike_gpt2().keys() - {"positions", "ngrams"}
        if other_options or config.initialisation != "gpt2":
            self.initialise(config.initialisation)

    def initialise(self, kind="gpt2"):
        """Draw the weights.

        Biases start at zero, and the weights of norms stay at 1.

        Parameters
        ----------
        kind : {"gpt2", "width"}
            "gpt2" does as ``transformers`` does for GPT-2: weights are from N(0, 0.02²). In
            the two matrices of each block whose output is added to the residual stream, the
            standard deviation is divided by √(2 · layers) (Radford et al. 2019, section
            2.3).

            "width" starts these two matrices at zero, and the output matrix if it is not
            the table of token vectors. The other matrices of a block have the standard
            deviation 1 / √inputs. What enters the first block is a sum of rows of tables:
            of tokens, positions, n-grams and previous tokens. These have 1 / √tables, so
            that the numbers of the sum have 1.
        """
        tables = 1 + len(self.previous) + len(self.ngrams)
        if self.positions is not None:
            tables += 1
        for name, weight in self.named_parameters():
            adds = name.endswith(("attention.output.weight", "down.weight"))
            if name.endswith("bias"):
                nn.init.zeros_(weight)
            elif weight.ndim != 2:
                continue  # the weights of norms are 1
            elif kind == "gpt2":
                scale = math.sqrt(2 * self.config.layers) if adds else 1.0
                nn.init.normal_(weight, std=0.02 / scale)
            elif adds or name == "head.weight":
                nn.init.zeros_(weight)
            elif name.startswith("blocks."):
                nn.init.normal_(weight, std=1 / math.sqrt(weight.shape[1]))
            else:
                nn.init.normal_(weight, std=1 / math.sqrt(tables))

    @property
    def output_matrix(self):
        """The matrix (vocab_size, d_model) that reads the logits out."""
        return self.tokens.weight if self.head is None else self.head.weight

    @property
    def parameters_count(self):
        """How many numbers the weights hold, frozen ones among them."""
        return sum(weight.numel() for weight in self.parameters())

    def vectors(self, ids):
        """Return the sum of the vectors of tokens, positions, n-grams and previous tokens.

        Each has a table of its own, if the configuration asks for it: one for pairs, one
        for triples and so on (`ngram_rows`), and one for each token before
        (`tokens_before`).

        ``ids`` : int64 Tensor (batch, tokens). Returns (batch, tokens, d_model).
        """
        x = self.tokens(ids)
        if self.positions is not None:
            x = x + self.positions.weight[: ids.shape[1]]
        for order, table in enumerate(self.ngrams, start=2):
            x = x + table(ngram_rows(ids, order, table.num_embeddings))
        for back, table in enumerate(self.previous, start=1):
            x = x + table(tokens_before(ids, back))
        return x

    def embed(self, ids):
        """Return the vectors of ids, a Tensor of shape (batch, tokens, d_model).

        In training some of their numbers are zeroed (dropout).

        Parameters
        ----------
        ids : int64 Tensor of shape (batch, tokens)

        Raises
        ------
        ValueError
            If ids are not whole numbers in two axes, one is not in the vocabulary, or
            there are more tokens than the context, or none.
        """
        check_ids(ids, self.config.vocab_size)
        if not 1 <= ids.shape[1] <= self.config.context:
            raise ValueError(
                f"{ids.shape[1]} tokens, but this model sees 1 to {self.config.context}: "
                "cut the text, or train with a longer context"
            )
        return self.dropout(self.vectors(ids))

    def forward(self, ids, cache=None):
        """Return the logits of the next token after each.

        Parameters
        ----------
        ids : int64 Tensor of shape (batch, tokens)
        cache : lmcourse.gpt.generation.Cache, optional
            With the keys and values of the first ``cache.tokens`` of these tokens, in
            ``cache.layers`` for each block; it grows by the rest.

        Returns
        -------
        Tensor of shape (batch, tokens, vocab_size)
            With a cache only those of the tokens that it did not hold.

        Raises
        ------
        ValueError
            If ids are not whole numbers in two axes, one is not in the vocabulary, or there
            are more tokens than the context, or none.
        """
        x = self.embed(ids)
        layer_caches = [None] * len(self.blocks)
        if cache is not None:
            x = x[:, cache.tokens :]
            layer_caches = cache.layers
        for block, layer_cache in zip(self.blocks, layer_caches, strict=True):
            x, _ = block(x, cache=layer_cache)
        return F.linear(self.norm(x), self.output_matrix)

    @torch.no_grad()
    def attentions(self, ids):
        """Return the attention weights, a list by layer of (batch, heads, tokens, tokens).

        ``ids`` : int64 Tensor (batch, tokens).
        """
        weights = []
        with evaluating(self):
            x = self.embed(ids)
            for block in self.blocks:
                weights.append(block.attention.weights(block.norm_1(x)))
                x, _ = block(x)
        return weights


@contextmanager
def evaluating(model):
    """Put a model in evaluation mode, and back into the mode that it was in.

    ``model`` : nn.Module; the ``with`` gives nothing.
    """
    training = model.training
    model.eval()
    try:
        yield
    finally:
        model.train(training)


def ngram_rows(ids, order, rows):
    """Return a row number for each token together with the ``order - 1`` tokens before it.

    There may be more such n-grams than rows; then some share one (a hash).

    Parameters
    ----------
    ids : int64 Tensor of shape (batch, tokens)
    order : int
        2 for pairs, 3 for triples.
    rows : int
        Of the table whose rows are numbered.

    Returns
    -------
    int64 Tensor of shape (batch, tokens)
        From 0 to ``rows - 1``.
    """
    key = torch.zeros_like(ids)
    for back in reversed(range(order)):
        key = key * 1_000_003 + tokens_before(ids, back)  # int64 wraps around: it may
    return key % rows


def tokens_before(ids, back):
    """Return for each token the one that stands so many positions before it.

    Parameters
    ----------
    ids : int64 Tensor of shape (batch, tokens)
    back : int
        How many positions before.

    Returns
    -------
    int64 Tensor of shape (batch, tokens)
        The ids plus 1, and 0 where the text has not begun.
    """
    return F.pad(ids + 1, (back, 0))[:, : ids.shape[1]]
