"""A small model that continues a row of tokens which it has read once, and its training.

Texts are rows of random tokens, drawn with replacement and repeated: what follows can be
known from the text itself and from nothing else.
"""

import torch
import torch.nn.functional as F
from torch import nn

from lmcourse.ablation import hooked_heads
from lmcourse.attention import MultiHeadAttention, causal_mask
from lmcourse.positions import rotate
from lmcourse.training_loop import train_scheduled

TOKENS = 32  # kinds of token
LONGEST = 24  # tokens of the longest row
TEXT = 49  # tokens of a text: the longest row twice, and one token more to predict


def repeat_rows(lengths, generator):
    """Return texts that are each a row of random tokens, again and again, 49 tokens long.

    Parameters
    ----------
    lengths : int64 Tensor of shape (texts,)
        How many tokens stand in each text before they come again, at most 24.
    generator : torch.Generator

    Returns
    -------
    int64 Tensor of shape (texts, 49)
        From 0 to 31.
    """
    rows = torch.randint(TOKENS, (len(lengths), LONGEST), generator=generator)
    return rows.gather(1, torch.arange(TEXT) % lengths[:, None])


def sample_texts(count, generator):
    """Return texts of random tokens that come again and again, after 8 to 24 tokens.

    Parameters
    ----------
    count : int
        How many texts.
    generator : torch.Generator

    Returns
    -------
    int64 Tensor of shape (count, 49)
        From 0 to 31.
    """
    return repeat_rows(torch.randint(8, 25, (count,), generator=generator), generator)


def held_out_texts(lengths):
    """Return texts of repeated random tokens that no training draws, always the same.

    Parameters
    ----------
    lengths : int64 Tensor of shape (texts,)
        How many tokens stand in each text before they come again, at most 24.

    Returns
    -------
    int64 Tensor of shape (texts, 49)
        From 0 to 31.
    """
    return repeat_rows(lengths, torch.Generator().manual_seed(10**6))


class Repeater(nn.Module):
    """Layers of attention, and no feed-forward network, on tokens of 32 kinds.

    Parameters
    ----------
    layers, heads, d_model : int
    rotary : bool
        Positions rotate queries and keys, as Llama's do; else a learned vector for each is
        added to the token's, as GPT-2's are, for up to 49 tokens.
    """

    def __init__(self, layers=2, heads=2, d_model=64, rotary=True):
        super().__init__()
        self.rotate = rotate if rotary else None
        self.positions = None if rotary else nn.Embedding(TEXT, d_model)
        self.tokens = nn.Embedding(TOKENS, d_model)
        self.norms = nn.ModuleList(nn.LayerNorm(d_model) for _ in range(layers + 1))
        attention = (MultiHeadAttention(d_model, heads, False) for _ in range(layers))
        self.layers = nn.ModuleList(attention)
        self.output = nn.Linear(d_model, TOKENS, bias=False)

    def forward(self, ids):
        """Score the next token.

        Parameters
        ----------
        ids : int64 Tensor of shape (batch, tokens)
            From 0 to 31.

        Returns
        -------
        logits : Tensor of shape (batch, tokens, 32)
            Of the token after each.
        weights : list of Tensor of shape (batch, heads, tokens, tokens)
            Each layer's attention weights.
        """
        mask = causal_mask(ids.shape[1])
        x = self.tokens(ids)  # (batch, tokens, d_model)
        if self.positions is not None:
            x = x + self.positions.weight[: ids.shape[1]]
        weights = []
        for norm, attention in zip(self.norms, self.layers, strict=False):
            update, own_weights = attention(norm(x), mask=mask, rotate=self.rotate)
            x = x + update
            weights.append(own_weights)
        return self.output(self.norms[-1](x)), weights


def token_losses(model, ids):
    """Return the loss of each token but the first.

    Parameters
    ----------
    model : Repeater
    ids : int64 Tensor of shape (batch, 49)

    Returns
    -------
    Tensor of shape (batch, 48)
        In nats.
    """
    logits = model(ids[:, :-1])[0].transpose(1, 2)  # (batch, 32, 48)
    return F.cross_entropy(logits, ids[:, 1:], reduction="none")


def train_repeater(seed, layers=2, steps=250, learning_rate=5e-3, **sizes):
    """Train a `Repeater` on texts of random tokens that come again after 8 to 24 tokens.

    Each step sees 32 new ones.

    Parameters
    ----------
    seed : int
        Of the first weights and of the texts.
    layers, steps : int
        Of the model, and of the training.
    learning_rate : float
        Of AdamW. It is reached after 50 steps, and stays.
    **sizes
        ``heads``, ``d_model`` and ``rotary`` of the model.

    Returns
    -------
    model : Repeater
    history : list of float
        At each step the loss on the second half of its texts, where every row repeats, in
        nats a token.
    """
    torch.manual_seed(seed)
    generator = torch.Generator().manual_seed(seed)
    model = Repeater(layers, **sizes)
    history = []

    def loss_at(step):
        """Return the mean loss of a new batch, in nats; note that of its repeated halves.

        ``step`` is not used: every batch is new.
        """
        losses = token_losses(model, sample_texts(32, generator))
        history.append(losses[:, LONGEST:].mean().item())
        return losses.mean()

    def share_at(step):
        """Return the share of the learning rate at a step: it rises for fifty steps.

        ``step`` : int, from 0.
        """
        return min(1, (step + 1) / 50)

    train_scheduled(model, loss_at, steps, learning_rate, share_at, max_norm=1.0)
    return model, history


def ablate_heads(model, texts):
    """Replace each head of a `Repeater` by its mean over the texts, one at a time.

    Parameters
    ----------
    model : Repeater
    texts : int64 Tensor of shape (texts, 49)
        Rows of 24 tokens, each twice, and its first token a third time: what `repeat_rows`
        makes of the length 24.

    Returns
    -------
    list of dict
        One a head: ``layer`` and ``head``, from 0; its mean attention weight, in the
        repetition, on the token ``before`` and on what ``followed`` last time, 0 to 1; how
        much the loss rises without it on the ``first`` row and on the tokens after the
        first one of the repetition (``again``), in nats a token. The first token of each
        is in neither.
    """
    with torch.no_grad():
        intact = token_losses(model, texts)  # (texts, 48)
        weights = model(texts[:, :-1])[1]
    rows = []
    for layer, attention in enumerate(model.layers):
        for head in range(attention.heads):
            with averaged_heads(attention, head), torch.no_grad():
                rise = (token_losses(model, texts) - intact).mean(0)  # (48,)
            own = weights[layer][:, head, LONGEST:]  # (texts, 24, tokens)
            # Row r attends from position 24 + r, and the same token stood at r: the token
            # before is at 23 + r, and what followed last time is at r + 1.
            rows.append(
                {
                    "layer": layer,
                    "head": head,
                    "before": own.diagonal(LONGEST - 1, -2, -1).mean().item(),
                    "followed": own.diagonal(1, -2, -1).mean().item(),
                    "first": rise[: LONGEST - 1].mean().item(),
                    "again": rise[LONGEST:].mean().item(),
                }
            )
    return rows


def averaged_heads(attention, *heads):
    """Let heads return their mean over all texts and tokens of a batch, inside a ``with``.

    Parameters
    ----------
    attention : MultiHeadAttention
    *heads : int
        Which ones, from 0.

    Returns
    -------
    context manager
    """

    def average(outputs):
        """Return the heads' outputs, some replaced by their mean over texts and tokens.

        ``outputs`` : Tensor (texts, tokens, heads, d_head), which is not changed.
        """
        outputs = outputs.clone()  # (texts, tokens, heads, d_head)
        for head in heads:
            outputs[..., head, :] = outputs[..., head, :].mean((0, 1))
        return outputs

    return hooked_heads(attention, average)
