"""Three families of language models, made of one block and trained on one text.

A decoder is asked for the next token, an encoder for hidden ones (Devlin et al. 2019), an
encoder-decoder for hidden spans (Raffel et al. 2020). `Family` is any of the three: what
differs is which token may attend to which, and what is asked.
Texts stay on the CPU; a model takes what it is given to its own device.
"""

from functools import partial

import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils.rnn import pad_sequence

from lmcourse.attention import causal_mask, padding_mask
from lmcourse.ids import check_ids
from lmcourse.masking import corrupt_spans, masked_loss
from lmcourse.positions import rotate
from lmcourse.transformer import Stack

KINDS = ("decoder", "encoder", "encoder-decoder")
SENTINELS = 20  # ids after the tokenizer's, which stand for spans that were cut out
_rotate = partial(rotate, layout="half", base=100.0)


class Family(nn.Module):
    """A language model of one of three families: one stack of blocks, or two.

    The first stack encodes the text; an encoder-decoder has a second one, which writes.

    Parameters
    ----------
    kind : {"decoder", "encoder", "encoder-decoder"}
    vocab_size : int
        Pieces, and sentinels: ids that stand for spans that were cut out of a text. Id 0 is
        padding.
    layers, d_model, heads : int
        Of each stack.
    dropout : float
        Share of each block's updates that is zeroed in training.

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
        """Run the first stack: return the states of a text after its last norm.

        In a decoder each token attends to itself and those before it, in the other families
        to all tokens; nothing attends to padding. Positions rotate queries and keys.

        Parameters
        ----------
        ids : int64 Tensor of shape (batch, tokens)
            0 is padding.

        Returns
        -------
        Tensor of shape (batch, tokens, d_model)

        Raises
        ------
        ValueError
            If ids are not whole numbers in two axes, or one is not in the vocabulary.
        """
        check_ids(ids, len(self.bias))
        ids = ids.to(self.bias.device)
        mask = padding_mask(ids != 0)  # (batch, 1, 1, tokens)
        if self.kind == "decoder":
            before = causal_mask(ids.shape[1], ids.device)  # (tokens, tokens)
            mask = mask & before  # (batch, 1, tokens, tokens)
        return self.reader(self.embeddings(ids), mask=mask, rotate=_rotate)[0]

    def forward(self, ids, written=None, positions=None):
        """Score every piece of the vocabulary at each position: return logits.

        A decoder's are of the next token, an encoder's of the token that stands (or is
        hidden) there, an encoder-decoder's of what it writes next.

        Parameters
        ----------
        ids : int Tensor of shape (batch, tokens)
            The text; 0 is padding.
        written : int Tensor of shape (batch, targets), optional
            What an encoder-decoder has written so far. It needs them; the others ignore
            them.
        positions : bool Tensor of shape (batch, tokens) or (batch, targets), optional
            The positions at which to score. Default: all.

        Returns
        -------
        Tensor of shape (batch, tokens or targets, vocab_size), or (positions, vocab_size)
            On the model's device; with ``positions`` a row for each that is True, text by
            text.

        Raises
        ------
        ValueError
            If ids are not whole numbers in two axes, or one is not in the vocabulary; the
            same of ``written``, of an encoder-decoder, or if it is given none.
        """
        states = self.read(ids)
        if self.writer is not None:
            if written is None:
                raise ValueError("an encoder-decoder needs `written`: begin with one id")
            check_ids(written, len(self.bias))
            written = written.to(states.device)
            states, _ = self.writer(
                self.embeddings(written),
                memory=states,
                memory_mask=padding_mask(ids.to(states.device) != 0),
                mask=causal_mask(written.shape[1], written.device),
                rotate=_rotate,
            )
        if positions is not None:
            states = states[positions.to(states.device)]
        return states @ self.embeddings.weight.T + self.bias


def family_loss(model, ids, tokenizer, generator, share):
    """Return the loss of what a model's family is asked in training.

    A decoder is asked for each next token. An encoder is asked what stood at random
    positions, most of which are hidden (`masked_loss`). For an encoder-decoder random spans
    are cut out of the text, a sentinel in the place of each, and it is to write them
    (`corrupt_spans`); the sentinels are 20 ids after those of the tokenizer (`SENTINELS`).

    Parameters
    ----------
    model : Family
        Its ``kind`` is "decoder", "encoder" or "encoder-decoder".
    ids : int Tensor of shape (batch, tokens)
        0 is padding.
    tokenizer : PreTrainedTokenizerFast
        Of a BERT, with [MASK]; a decoder does not need it.
    generator : torch.Generator
        On the CPU; it chooses positions and spans.
    share : float
        Of the tokens, 0 to 1, that an encoder or an encoder-decoder is asked for.

    Returns
    -------
    Tensor
        Without axes: the mean loss of what it was asked for, in nats a token.
    """
    if model.kind == "encoder":
        return masked_loss(model, ids, tokenizer, generator, share)
    if model.kind == "decoder":
        inputs = (ids[:, :-1],)
        targets = ids[:, 1:]
    else:
        sentinels = range(len(tokenizer), len(tokenizer) + SENTINELS)
        sources = []
        spans = []
        for row in ids:
            source, span = corrupt_spans(row[row != 0], sentinels, generator, share)
            sources.append(source)
            spans.append(span)
        written = pad_sequence(spans, batch_first=True)
        inputs = (pad_sequence(sources, batch_first=True), written[:, :-1])
        targets = written[:, 1:]
    scored = targets != 0  # not padding
    logits = model(*inputs, positions=scored)  # (scored, vocab_size)
    return F.cross_entropy(logits, targets[scored].to(logits.device))
