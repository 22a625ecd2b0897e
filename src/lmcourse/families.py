"""Three families of language models, made of one block and trained on one text.

A decoder is asked for the next token, an encoder for hidden ones (Devlin et al. 2019), an
encoder-decoder for hidden spans (Raffel et al. 2020). `Family` is any of the three: what
differs is who may look where, and what is asked. The chapter *pretraining* compares them.
Texts stay on the CPU; a model takes what it is given to its own device.
"""

from functools import partial

import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.flop_counter import FlopCounterMode

from lmcourse.attention import causal_mask, padding_mask
from lmcourse.masking import corrupt_spans, masked_loss
from lmcourse.pooling import pool
from lmcourse.positions import rotate
from lmcourse.transformer import Stack

KINDS = ("decoder", "encoder", "encoder-decoder")
SENTINELS = 20  # ids after the tokenizer's, which stand for spans that were cut out
_rotate = partial(rotate, layout="half", base=100.0)


class Family(nn.Module):
    """A stack that reads, and for an encoder-decoder another that writes.

    Parameters
    ----------
    kind : {"decoder", "encoder", "encoder-decoder"}
    vocab_size : int
        Pieces and sentinels. Id 0 is padding.
    layers, d_model, heads : int
        Of each stack.
    dropout : float

    Raises
    ------
    ValueError
        If there is no such kind.
    """

    def __init__(self, kind, vocab_size, layers=1, d_model=128, heads=4, dropout=0.1):
        super().__init__()
        if kind not in KINDS:
            raise ValueError(f"there is no family {kind!r}; there are: {', '.join(KINDS)}")
        self.kind = kind
        self.embeddings = nn.Embedding(vocab_size, d_model)
        nn.init.normal_(self.embeddings.weight, std=0.02)
        sizes = (layers, d_model, heads, 4 * d_model)
        options = {"norm": nn.LayerNorm, "dropout": dropout}
        self.reader = Stack(*sizes, **options)
        self.writer = None
        if kind == "encoder-decoder":
            self.writer = Stack(*sizes, cross=True, **options)
        self.bias = nn.Parameter(torch.zeros(vocab_size))
        for name, weight in self.named_parameters():  # at first no block adds anything
            if name.endswith(("output.weight", "down.weight")):
                nn.init.zeros_(weight)

    def read(self, ids):
        """Return the states of a text, (batch, tokens, d_model)."""
        ids = ids.to(self.bias.device)
        mask = padding_mask(ids != 0)  # (batch, 1, 1, tokens)
        if self.kind == "decoder":
            before = causal_mask(ids.shape[1], ids.device)  # (tokens, tokens)
            mask = mask & before  # (batch, 1, tokens, tokens)
        return self.reader(self.embeddings(ids), mask=mask, rotate=_rotate)[0]

    def forward(self, ids, written=None, places=None):
        """Score every piece of the vocabulary.

        Parameters
        ----------
        ids : int Tensor of shape (batch, tokens)
        written : int Tensor of shape (batch, targets)
            What an encoder-decoder has written so far; of the others, nothing.
        places : bool Tensor of shape (batch, tokens) or (batch, targets), optional
            Where to score.

        Returns
        -------
        Tensor of shape (batch, tokens or targets, vocab_size), or (places, vocab_size)
            On the model's device.
        """
        states = self.read(ids)
        if self.writer is not None:
            ids, written = ids.to(states.device), written.to(states.device)
            looking = {"memory": states, "memory_mask": padding_mask(ids != 0)}
            looking["mask"] = causal_mask(written.shape[1], written.device)
            states, _ = self.writer(self.embeddings(written), rotate=_rotate, **looking)
        states = states if places is None else states[places.to(states.device)]
        return states @ self.embeddings.weight.T + self.bias


def family_loss(model, ids, tokenizer, random, share):
    """Ask a model what its family is asked in training.

    Parameters
    ----------
    model : Family
    ids : int Tensor of shape (batch, tokens)
    tokenizer : PreTrainedTokenizerFast
    random : torch.Generator
    share : float
        Of the places that an encoder or an encoder-decoder is asked for.

    Returns
    -------
    Tensor
        The mean of minus the log probability of what it was asked for.
    """
    if model.kind == "encoder":
        return masked_loss(model, ids, tokenizer, random, share)
    if model.kind == "decoder":
        wanted, given = ids[:, 1:], (ids[:, :-1],)
    else:
        sentinels = range(len(tokenizer), len(tokenizer) + SENTINELS)
        rows = [row[row != 0] for row in ids]
        pairs = [corrupt_spans(row, sentinels, random, share) for row in rows]
        source, target = (
            pad_sequence(x, batch_first=True) for x in zip(*pairs, strict=True)
        )
        wanted, given = target[:, 1:], (source, target[:, :-1])
    asked = wanted != 0
    logits = model(*given, places=asked)  # (places, vocab_size)
    return F.cross_entropy(logits, wanted[asked].to(logits.device))


def training_flops(model, ids, tokenizer, share, seed=0):
    """Return how many floating-point operations a step of training takes.

    PyTorch counts them: those of the matrix products, there and back.
    """
    random = torch.Generator().manual_seed(seed)
    with FlopCounterMode(display=False) as counter:
        family_loss(model, ids, tokenizer, random, share).backward()
    model.zero_grad()
    return counter.get_total_flops()


def mean_states(model, ids):
    """Return the mean of the states of each text, (texts, d_model), on the model's device.

    Parameters
    ----------
    model : Family
    ids : list of int Tensors of shape (tokens,)
    """
    rows = pad_sequence(ids, batch_first=True).to(model.bias.device)  # (texts, tokens)
    return pool(model.read(rows), rows != 0)


def fine_tune(model, ids, labels, learning_rate, steps=60, batch=16, seed=0):
    """Train a model, and a linear layer on its `mean_states`, to tell two kinds of text.

    Parameters
    ----------
    model : Family
        Changed in place.
    ids : list of int Tensors of shape (tokens,)
    labels : float Tensor of shape (texts,)
        0 or 1.
    learning_rate : float
        AdamW's highest; it falls to zero in a straight line.
    steps, batch, seed : int

    Returns
    -------
    callable
        From such a list of texts to a float Tensor (texts,), above 0 for label 1, on the
        CPU.
    """
    random = torch.Generator().manual_seed(seed)
    head = nn.Linear(model.embeddings.embedding_dim, 1)
    nn.init.zeros_(head.weight)
    head.to(model.bias.device)
    weights = [*model.parameters(), *head.parameters()]
    optimizer = torch.optim.AdamW(weights, learning_rate)
    falling = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.0, steps)
    model.train()
    for _ in range(steps):
        rows = torch.randint(len(ids), (batch,), generator=random)
        said = head(mean_states(model, [ids[row] for row in rows]))[:, 0]  # (batch,)
        wanted = labels[rows].to(said.device)
        loss = F.binary_cross_entropy_with_logits(said, wanted)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        falling.step()
    model.eval()
    return torch.no_grad()(lambda texts: head(mean_states(model, texts))[:, 0].cpu())


@torch.no_grad()
def blank_log_probs(model, left, right, tokenizer):
    """Return the log probability of each ordinary piece at a blank, shape (vocab_size,).

    An encoder is given [MASK] there, an encoder-decoder a sentinel, and is asked what it
    stands for. A decoder can only say how likely a text is, and is given one for each
    piece; where nothing stands on the right, it says what comes next. On the CPU.

    Parameters
    ----------
    model : Family
        In evaluation mode.
    left, right : int Tensors of shape (tokens,)
        What stands on both sides; the right may be empty.
    tokenizer : PreTrainedTokenizerFast
        The special pieces, and sentinels, get no probability at all.
    """
    pieces = torch.arange(len(tokenizer))
    special = torch.isin(pieces, torch.tensor(tokenizer.all_special_ids))
    if model.kind == "decoder" and len(right):
        ordinary = pieces[~special][:, None]  # (candidates, 1)
        sides = [x.expand(len(ordinary), -1) for x in (left, right)]
        texts = torch.cat([sides[0], ordinary, sides[1]], 1)  # (candidates, tokens)
        log_p = model(texts[:, :-1])[:, len(left) - 1 :].log_softmax(-1).cpu()
        rest = texts[:, len(left) :, None]  # (candidates, tokens - left, 1)
        scores = log_p.new_full((len(pieces),), -torch.inf)
        scores[~special] = log_p.gather(-1, rest).sum((1, 2))
        return scores.log_softmax(-1)
    if model.kind == "decoder":
        scores = model(left[None])[0, -1]
    else:
        blank = tokenizer.mask_token_id if model.kind == "encoder" else len(tokenizer)
        text = torch.cat([left, torch.tensor([blank]), right])[None]
        written = torch.tensor([[blank]])
        encoder = model.kind == "encoder"
        scores = model(text)[0, len(left)] if encoder else model(text, written)[0, 0]
    return scores[: len(pieces)].cpu().masked_fill(special, -torch.inf).log_softmax(-1)
