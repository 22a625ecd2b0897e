"""Models whose decoder gets one vector of the source, and LSTMs that attend to all of it.

They read dates as `lmcourse.dates.Transformer` does, with its ``encode`` and ``decode``.
"""

import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from lmcourse import dates
from lmcourse.attention import MultiHeadAttention
from lmcourse.dates import Transformer

KINDS = ["Transformer", "Transformer, one vector", "LSTM, looking back"]
KINDS += ["LSTM, one vector at every step", "LSTM, one vector"]


def new_kind(kind, seed):
    """Return an untrained model, an nn.Module.

    ``kind`` : one of `KINDS`: "Transformer", "Transformer, one vector", "LSTM, looking
    back", "LSTM, one vector at every step", "LSTM, one vector"; ``seed`` : int, of the
    first weights.
    """
    torch.manual_seed(seed)
    if kind.startswith("LSTM"):
        make = EveryStep if "every" in kind else Recurrent
        return make(len(dates.CHARACTERS), 64, kind != "LSTM, one vector")
    return dates.new_model(seed, OneVector if "one" in kind else Transformer)


def join_pairs(pairs, dates):
    """Join each few pairs of dates to one pair, with spaces between the dates on a side.

    Parameters
    ----------
    pairs : list of (str, str)
        A date as it is written, and as it should be read: ("15 May 1886", "1886-05-15").
    dates : int
        How many pairs become one. What is left over at the end makes a shorter one.

    Returns
    -------
    list of (str, str)
    """
    groups = [pairs[i : i + dates] for i in range(0, len(pairs), dates)]
    return [tuple(" ".join(side) for side in zip(*group, strict=True)) for group in groups]


class OneVector(Transformer):
    """A Transformer whose decoder gets the mean of the encoder's states alone."""

    def encode(self, source):
        """Return the mean state of a source, and a mask that allows it.

        Parameters
        ----------
        source : int64 Tensor of shape (batch, sources)

        Returns
        -------
        memory : Tensor of shape (batch, 1, d_model)
            The mean over the source's characters without padding.
        mask : bool Tensor of shape (batch, 1, 1, 1)
            True.
        """
        memory, mask = super().encode(source)
        real = mask[:, 0, 0, :, None]  # (batch, sources, 1)
        mean = (memory * real).sum(1, keepdim=True) / real.sum(1, keepdim=True)
        return mean, mask[..., :1]  # (batch, 1, d_model): no place to choose


class Recurrent(nn.Module):
    """An encoder and a decoder that are LSTMs, the encoder's in both directions.

    Parameters
    ----------
    vocab_size, d_model : int
        How many characters there are, and the width of all vectors, an even number.
    looks : bool
        Whether the decoder attends to the encoder's states (Bahdanau et al. 2015), instead
        of getting the last ones alone.
    pad : int
        The number of the character that fills a batch up.
    """

    def __init__(self, vocab_size, d_model, looks, pad=0):
        """Make the layers; their first weights are drawn from torch's global generator.

        The parameters are those of the class.
        """
        super().__init__()
        self.table = nn.Embedding(vocab_size, d_model)
        both = {"batch_first": True, "bidirectional": True}
        self.read = nn.LSTM(d_model, d_model // 2, **both)
        self.write = nn.LSTM(d_model, d_model, batch_first=True)
        self.look = MultiHeadAttention(d_model, 1) if looks else None
        self.output = nn.Linear(d_model, vocab_size)
        self.pad = pad

    def encode(self, source):
        """Run the encoder.

        Parameters
        ----------
        source : int64 Tensor of shape (batch, sources)

        Returns
        -------
        memory : tuple
            The states (batch, sources, d_model), and a pair of Tensors of shape
            (1, batch, d_model): the LSTM's last state and memory (cell), both directions
            joined.
        mask : bool Tensor of shape (batch, 1, 1, sources)
            False at padding.
        """
        real = source != self.pad  # (batch, sources)
        how = {"batch_first": True, "enforce_sorted": False}
        x = pack_padded_sequence(self.table(source), real.sum(1), **how)
        states, ends = self.read(x)  # ends: state and memory, (2, batch, half)
        states, _ = pad_packed_sequence(states, batch_first=True)
        ends = [end.transpose(0, 1).flatten(1)[None] for end in ends]
        return (states, tuple(ends)), real[:, None, None]

    def decode(self, target, memory, mask):
        """Run the decoder.

        Parameters
        ----------
        target : int64 Tensor of shape (batch, targets)
            What is written so far.
        memory : tuple
            The encoder's states (batch, sources, d_model), and its last state and memory, a
            pair of Tensors of shape (1, batch, d_model).
        mask : bool Tensor of shape (batch, 1, 1, sources)
            Which states may be attended to.

        Returns
        -------
        logits : Tensor of shape (batch, targets, vocab_size)
        weights : list of one Tensor of shape (batch, 1, targets, sources) or None
            The attention to the source; None if the decoder does not attend.
        """
        states, ends = memory
        x, _ = self.write(self.table(target), ends)  # (batch, targets, d_model)
        weights = None
        if self.look is not None:
            update, weights = self.look(x, states, mask)
            x = torch.tanh(x + update)
        return self.output(x), [weights]

    def forward(self, source, target):
        """Return the logits of a target's next characters.

        Parameters
        ----------
        source : int64 Tensor of shape (batch, sources)
            Numbers of characters that are read.
        target : int64 Tensor of shape (batch, targets)
            Numbers of those that are written so far.

        Returns
        -------
        Tensor of shape (batch, targets, vocab_size)
        """
        return self.decode(target, *self.encode(source))[0]


class EveryStep(Recurrent):
    """LSTMs whose decoder gets the encoder's last state at every step."""

    def encode(self, source):
        """Run the encoder; the last state stands in the place of all states.

        Parameters
        ----------
        source : int64 Tensor of shape (batch, sources)

        Returns
        -------
        memory : tuple
            That state (batch, 1, d_model), and a pair of Tensors of shape (1, batch,
            d_model): the LSTM's last state and memory (cell).
        mask : bool Tensor of shape (batch, 1, 1, 1)
            Whether that state may be attended to: True.
        """
        (_, ends), mask = super().encode(source)
        return (ends[0].transpose(0, 1), ends), mask[..., :1]
