"""A GPT that can be read in one sitting and trained in a minute.

With its default options it is GPT-2's architecture (Radford et al. 2019), number for
number (`lmcourse.gpt.convert`). Two options leave it: rotary positions, and tables of
vectors for pairs and triples of tokens. The chapter *mini-gpt* arrives at this
code step by step.
"""

import math
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

import torch
import torch.nn.functional as F
from torch import nn

from lmcourse.attention import attention, causal_mask
from lmcourse.gpt.settings import check_least, check_types
from lmcourse.positions import rotate
from lmcourse.transformer import Block

__all__ = ["GPT", "CausalAttention", "GPTConfig", "ngram_rows"]


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
        Share of the activations zeroed in training.
    positions : {"learned", "rotary"}
        A vector for each position, added; or queries and keys turned (Su et al. 2021).
    ngrams : tuple of int
        Rows of a table of vectors for pairs of tokens, then for triples, and so on; each
        token's vector has those of the pair and the triple it ends added. Empty: none.

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
        if isinstance(self.ngrams, list):  # as JSON has it
            object.__setattr__(self, "ngrams", tuple(self.ngrams))
        check_types(self)
        check_least(self, 1, "vocab_size", "context", "layers", "heads", "d_model")
        if self.d_model % self.heads:
            raise ValueError(f"{self.heads} heads do not divide d_model = {self.d_model}")
        if self.positions not in ("learned", "rotary"):
            raise ValueError(f"positions {self.positions!r}: not 'learned' or 'rotary'")
        if self.positions == "rotary" and self.d_model // self.heads % 2:
            raise ValueError("rotary positions turn pairs: d_model / heads must be even")
        if not 0 <= self.dropout < 1:
            raise ValueError(f"dropout {self.dropout} is not a share below 1")
        if any(rows < 1 for rows in self.ngrams):
            raise ValueError(f"ngrams {self.ngrams}: each table needs at least one row")


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

    def project(self, x):
        """Return query, key and value, each (batch, heads, tokens, d_head)."""
        qkv = self.qkv(x).unflatten(-1, (3, self.heads, -1))
        query, key, value = qkv.permute(2, 0, 3, 1, 4)  # (3, batch, heads, tokens, d_head)
        if self.rotary:
            query, key = rotate(query, layout="half"), rotate(key, layout="half")
        return query, key, value

    def weights(self, x):
        """Return who looks at whom, (batch, heads, tokens, tokens)."""
        return attention(*self.project(x), causal_mask(x.shape[1], x.device))[1]

    def forward(self, x):
        """Map (batch, tokens, d_model) to the same shape, and None for the weights."""
        dropout = self.dropout if self.training else 0.0
        output = F.scaled_dot_product_attention(
            *self.project(x), is_causal=True, dropout_p=dropout
        )  # (batch, heads, tokens, d_head)
        return self.output(output.transpose(1, 2).flatten(-2)), None


def gpt2_block(config):
    """Return the `lmcourse.transformer.Block` of a GPT with these sizes."""
    rotary = config.positions == "rotary"
    return Block(
        config.d_model,
        config.heads,
        4 * config.d_model,
        activation="gelu_new",
        dropout=config.dropout,
        norm=nn.LayerNorm,
        attention=partial(CausalAttention, dropout=config.dropout, rotary=rotary),
    )


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


@contextmanager
def _evaluating(model):
    """Put a model in evaluation mode, and back into the mode that it was in."""
    training = model.training
    model.eval()
    try:
        yield
    finally:
        model.train(training)


class GPT(nn.Module):
    """A decoder: token ids to the logits of the token that follows each.

    The matrix that reads the answer out is the table of token vectors (Press & Wolf 2017).

    Parameters
    ----------
    config : GPTConfig
    """

    def __init__(self, config):
        super().__init__()
        self.config = config
        self.tokens = nn.Embedding(config.vocab_size, config.d_model)
        self.positions = None
        if config.positions == "learned":
            self.positions = nn.Embedding(config.context, config.d_model)
        tables = (nn.Embedding(rows, config.d_model) for rows in config.ngrams)
        self.ngrams = nn.ModuleList(tables)
        self.dropout = nn.Dropout(config.dropout)
        self.blocks = nn.ModuleList(gpt2_block(config) for _ in range(config.layers))
        self.norm = nn.LayerNorm(config.d_model)
        self.initialise()

    def initialise(self):
        """Draw the weights as ``transformers`` does for GPT-2.

        All from N(0, 0.02²); what a block adds to the path, smaller the more blocks add
        (the scaling of residual layers: Radford et al. 2019, section 2.3).
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
        x = self.tokens(ids)
        if self.positions is not None:
            x = x + self.positions.weight[: ids.shape[1]]
        for order, table in enumerate(self.ngrams, start=2):
            x = x + table(ngram_rows(ids, order, table.num_embeddings))
        return self.dropout(x)

    def forward(self, ids):
        """Return the logits of the next token after each.

        Parameters
        ----------
        ids : int64 Tensor of shape (batch, tokens)

        Returns
        -------
        Tensor of shape (batch, tokens, vocab_size)

        Raises
        ------
        ValueError
            As `embed`.
        """
        x = self.embed(ids)
        for block in self.blocks:
            x, _ = block(x)
        return F.linear(self.norm(x), self.tokens.weight)

    @torch.no_grad()
    def attentions(self, ids):
        """Return each layer's attention weights, (batch, heads, tokens, tokens)."""
        seen = []
        with _evaluating(self):
            x = self.embed(ids)
            for block in self.blocks:
                seen.append(block.attention.weights(block.norm_1(x)))
                x, _ = block(x)
        return seen

    @torch.no_grad()
    def generate(self, ids, tokens, temperature=1.0, generator=None):
        """Write on: draw a token, append it, ask again.

        Parameters
        ----------
        ids : int64 Tensor of shape (batch, prompt)
            The model sees its last ``context`` tokens.
        tokens : int
            How many to write.
        temperature : float
            Divides the logits; 0 always takes the likeliest token.
        generator : torch.Generator, optional
            For the same text every time. On the CPU.

        Returns
        -------
        int64 Tensor of shape (batch, prompt + tokens)

        Raises
        ------
        ValueError
            If the prompt is empty or the temperature negative.
        """
        if temperature < 0:
            raise ValueError(f"temperature {temperature} is negative")
        with _evaluating(self):
            for _ in range(tokens):
                logits = self(ids[:, -self.config.context :])[:, -1].float().cpu()
                if temperature == 0:
                    drawn = logits.argmax(-1, keepdim=True)  # (batch, 1)
                else:
                    chances = (logits / temperature).softmax(-1)  # (batch, vocab_size)
                    drawn = torch.multinomial(chances, 1, generator=generator)
                ids = torch.cat([ids, drawn.to(ids.device)], dim=1)
        return ids
