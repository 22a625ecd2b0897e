"""A GPT that can be read in one sitting and trained in a minute.

It is GPT-2's architecture (Radford et al. 2019), number for number (`lmcourse.gpt.gpt2`).
Two options leave it: rotary positions, and tables of n-grams. The chapter *mini-gpt*
arrives at this code step by step.
"""

import math
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

import torch
import torch.nn.functional as F
from torch import nn

from lmcourse.attention import attention, causal_mask
from lmcourse.positions import rotate
from lmcourse.transformer import Block

LARGEST = 10**8  # of a size: PyTorch counts with the product of two


def check_numbers(settings, low, high, *names):
    """Raise ValueError unless fields are numbers from low to high, whole if these are."""
    kinds = (int,) if isinstance(high, int) else (int, float)
    for name in names:
        value = getattr(settings, name)
        if type(value) not in kinds or not low <= value <= high:
            kind = "a whole number" if kinds == (int,) else "a number"
            raise ValueError(f"{name} must be {kind} from {low} to {high}, not {value!r}")


@dataclass(frozen=True)
class GPTConfig:
    """The sizes of a GPT.

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
        A vector for each position, added; or queries and keys turned (Su et al. 2021).
    ngrams : tuple of int
        Rows of the tables whose vectors are added to those of tokens: for pairs of tokens,
        then for triples, and so on. Empty: none, as in GPT-2.

    Raises
    ------
    ValueError
        If a size is no number or not positive, or two do not fit each other.
    """

    vocab_size: int
    context: int = 64
    layers: int = 4
    heads: int = 4
    d_model: int = 128
    dropout: float = 0.0
    positions: str = "learned"
    ngrams: tuple[int, ...] = ()

    def __post_init__(self):
        sizes = "vocab_size", "context", "layers", "heads", "d_model"
        check_numbers(self, 1, LARGEST, *sizes)
        check_numbers(self, 0.0, 0.99, "dropout")
        if self.positions not in ("learned", "rotary"):
            raise ValueError(f"positions must be learned or rotary, not {self.positions!r}")
        if not isinstance(self.ngrams, tuple | list) or not all(
            type(rows) is int and 1 <= rows <= LARGEST for rows in self.ngrams
        ):
            raise ValueError(f"ngrams must be a list of whole numbers, not {self.ngrams!r}")
        if self.d_model % self.heads:
            raise ValueError(f"{self.heads} heads do not divide d_model = {self.d_model}")
        if self.positions == "rotary" and self.d_model // self.heads % 2:
            raise ValueError("rotary positions turn pairs: d_model / heads must be even")
        object.__setattr__(self, "ngrams", tuple(self.ngrams))  # JSON has a list


class CausalAttention(nn.Module):
    """Multi-head attention to what stands before (Vaswani et al. 2017, section 3.2.3).

    The same numbers as `lmcourse.attention.MultiHeadAttention` under a causal mask, with
    query, key and value made by one matrix and the weights never written to memory.
    """

    def __init__(self, d_model, heads, dropout=0.0, rotary=False):
        super().__init__()
        self.heads, self.dropout, self.rotary = heads, dropout, rotary
        self.qkv = nn.Linear(d_model, 3 * d_model)
        self.output = nn.Linear(d_model, d_model)

    def project(self, x, first=0):
        """Return query, key and value, each (batch, heads, tokens, d_head).

        ``first`` is the position of the first token of ``x``.
        """
        qkv = self.qkv(x).unflatten(-1, (3, self.heads, -1))
        query, key, value = qkv.permute(2, 0, 3, 1, 4)  # (3, batch, heads, tokens, d_head)
        if self.rotary:
            places = torch.arange(first, first + x.shape[1])
            query, key = (rotate(each, places, layout="half") for each in (query, key))
        return query, key, value

    def weights(self, x):
        """Return who looks at whom, (batch, heads, tokens, tokens)."""
        return attention(*self.project(x), causal_mask(x.shape[1], x.device))[1]

    def forward(self, x, cache=None):
        """Map (batch, tokens, d_model) to the same shape, and None for the weights.

        With a layer of a `lmcourse.gpt.generation.Cache`, ``x`` are the tokens that follow
        those it holds.
        """
        dropout = self.dropout if self.training else 0.0
        query, key, value = self.project(x, cache.tokens if cache else 0)
        looking = {"is_causal": True}
        if cache:
            key, value = cache.append(key, value)  # those of all tokens
            places = torch.arange(key.shape[2], device=x.device)
            looking = {"attn_mask": places <= places[-x.shape[1] :, None]}  # a row each
        output = F.scaled_dot_product_attention(
            query, key, value, dropout_p=dropout, **looking
        )  # (batch, heads, tokens, d_head)
        return self.output(output.transpose(1, 2).flatten(-2)), None


class GPT(nn.Module):
    """A decoder: token ids to the logits of the token that follows each.

    The matrix that reads the answer out is the table of token vectors (Press & Wolf 2017).

    Parameters
    ----------
    config : GPTConfig
    """

    def __init__(self, config):
        super().__init__()
        self.config, rotary = config, config.positions == "rotary"
        self.tokens = nn.Embedding(config.vocab_size, config.d_model)
        self.positions = None if rotary else nn.Embedding(config.context, config.d_model)
        self.dropout = nn.Dropout(config.dropout)
        sizes = config.d_model, config.heads, 4 * config.d_model
        attend = partial(CausalAttention, dropout=config.dropout, rotary=rotary)
        options = {"norm": nn.LayerNorm, "attention": attend, "dropout": config.dropout}
        blocks = (Block(*sizes, "gelu_new", **options) for _ in range(config.layers))
        self.blocks = nn.ModuleList(blocks)
        self.norm = nn.LayerNorm(config.d_model)
        self.initialise()
        self.ngrams = ()
        if config.ngrams:
            tables = (nn.Embedding(rows, config.d_model) for rows in config.ngrams)
            self.ngrams = nn.ModuleList(tables)
            self.initialise()  # all anew; without tables a seed makes the model it made

    def initialise(self):
        """Draw the weights as ``transformers`` does for GPT-2.

        All from N(0, 0.02²); what a block adds to the residual stream, smaller the more
        blocks add (the scaling of residual layers: Radford et al. 2019, section 2.3).
        """
        for name, weight in self.named_parameters():
            if name.endswith("bias"):
                nn.init.zeros_(weight)
            elif weight.ndim == 2:
                adds = name.endswith(("attention.output.weight", "down.weight"))
                scale = math.sqrt(2 * self.config.layers) if adds else 1.0
                nn.init.normal_(weight, std=0.02 / scale)

    @property
    def parameters_count(self):
        """How many numbers training may change."""
        return sum(weight.numel() for weight in self.parameters())

    def vectors(self, ids):
        """Return the vectors (batch, tokens, d_model) of tokens, places and n-grams."""
        x = self.tokens(ids)
        if self.positions is not None:
            x = x + self.positions.weight[: ids.shape[1]]
        for order, table in enumerate(self.ngrams, start=2):
            x = x + table(ngram_rows(ids, order, table.num_embeddings))
        return x

    def embed(self, ids):
        """Turn ids (batch, tokens) into vectors (batch, tokens, d_model).

        Raises
        ------
        ValueError
            If there are more tokens than the context, or none.
        """
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
            Of the first so many of these tokens; it grows by the rest.

        Returns
        -------
        Tensor of shape (batch, tokens, vocab_size)
            With a cache only those of the tokens that it did not hold.

        Raises
        ------
        ValueError
            As `embed`.
        """
        x, layers = self.embed(ids), [None] * len(self.blocks)
        if cache is not None:
            x, layers = x[:, cache.tokens :], cache.layers
        for block, layer in zip(self.blocks, layers, strict=True):
            x, _ = block(x, cache=layer)
        return F.linear(self.norm(x), self.tokens.weight)

    @torch.no_grad()
    def attentions(self, ids):
        """Return each layer's attention weights, (batch, heads, tokens, tokens)."""
        seen = []
        with evaluating(self):
            x = self.embed(ids)
            for block in self.blocks:
                seen.append(block.attention.weights(block.norm_1(x)))
                x, _ = block(x)
        return seen


@contextmanager
def evaluating(model):
    """Put a model in evaluation mode, and back into the mode that it was in."""
    training = model.training
    model.eval()
    try:
        yield
    finally:
        model.train(training)


def ngram_rows(ids, order, rows):
    """Number each token together with the ``order - 1`` tokens before it.

    There may be more such n-grams than rows; then some share one (a hash).

    Parameters
    ----------
    ids : int64 Tensor of shape (batch, tokens)
    order : int
        2 for pairs, 3 for triples.
    rows : int

    Returns
    -------
    int64 Tensor of shape (batch, tokens)
        From 0 to ``rows - 1``.
    """
    key = torch.zeros_like(ids)
    for back in reversed(range(order)):
        before = F.pad(ids + 1, (back, 0))[:, : ids.shape[1]]  # 0 where nothing stands
        key = key * 1_000_003 + before  # int64 wraps around, which a hash may
    return key % rows
