"""Models that read dates: a small encoder-decoder, its data, and what is hidden from it.

A source is a date as people write it ("15 May 1886"), its target the same date as
"1886-05-15". Models read and write characters, whose ids are their positions in
`CHARACTERS`. The chapter *encoder-decoder* arrives at `Transformer`; a test compares the
two as syntax trees.
"""

import datetime
import random
import string

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from tqdm.auto import tqdm

from lmcourse.attention import causal_mask, padding_mask
from lmcourse.training_loop import train_model
from lmcourse.transformer import Embed, Stack

PAD, START, STOP = range(3)
CHARACTERS = "_<>" + string.ascii_letters + string.digits + " ,-./"
NUMBER = {character: i for i, character in enumerate(CHARACTERS)}
MONTHS = (
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
)
SHOWN = ("1886-05-15", "1830-12-10", "1861-03-01", "1899-09-09")  # days of the page
ANSWER = {"day": slice(8, 10), "month": slice(5, 7), "year": slice(0, 4)}
PARTS = ("day", "month", "year", "spaces")  # of a source in the first style
SIZES = {"layers": 1, "d_model": 64, "heads": 4, "d_ff": 128}


class Transformer(nn.Module):
    """An encoder and a decoder that share a table of token vectors.

    Parameters
    ----------
    vocab_size, layers, d_model, heads, d_ff : int
        Encoder and decoder have so many layers each.
    pad : int
        The id that fills short rows.
    **options
        Of every block: ``norm``, ``activation``, ``norm_first``, ``dropout`` and
        ``attention``, as `lmcourse.transformer.Block` explains them.
    """

    def __init__(self, vocab_size, layers, d_model, heads, d_ff, pad=0, **options):
        """Draw the first weights.

        Parameters
        ----------
        vocab_size, layers, d_model, heads, d_ff : int
            Encoder and decoder have ``layers`` blocks each.
        pad : int
            The id that fills short rows.
        **options
            Of every block: ``norm``, ``activation``, ``norm_first``, ``dropout``,
            ``attention``.
        """
        super().__init__()
        self.embed = Embed(vocab_size, d_model)
        self.encoder = Stack(layers, d_model, heads, d_ff, **options)
        self.decoder = Stack(layers, d_model, heads, d_ff, cross=True, **options)
        self.output = nn.Linear(d_model, vocab_size)
        self.pad = pad

    def encode(self, source):
        """Run the encoder.

        Parameters
        ----------
        source : int64 Tensor of shape (batch, sources)
            Ids, filled up with ``pad``.

        Returns
        -------
        memory : Tensor of shape (batch, sources, d_model)
            The states.
        mask : bool Tensor of shape (batch, 1, 1, sources)
            Which of them the decoder may attend to.
        """
        mask = padding_mask(source != self.pad)  # (batch, 1, 1, sources)
        memory, _ = self.encoder(self.embed(source), mask=mask)
        return memory, mask

    def decode(self, target, memory, memory_mask):
        """Run the decoder.

        Parameters
        ----------
        target : int64 Tensor of shape (batch, targets)
            The ids that are written so far.
        memory : Tensor of shape (batch, sources, d_model)
            The encoder's states.
        memory_mask : bool Tensor of shape (batch, 1, 1, sources)
            Which of them may be attended to.

        Returns
        -------
        logits : Tensor of shape (batch, targets, vocab_size)
            Of the next token at each position.
        weights : list of Tensor of shape (batch, heads, targets, sources)
            Each block's attention to the source.
        """
        mask = causal_mask(target.shape[-1], target.device)
        options = {"mask": mask, "memory": memory, "memory_mask": memory_mask}
        x, weights = self.decoder(self.embed(target), **options)
        return self.output(x), weights  # (batch, targets, vocab_size)

    def forward(self, source, target):
        """Return the logits of the token that follows each token of a target.

        Parameters
        ----------
        source : int64 Tensor of shape (batch, sources)
        target : int64 Tensor of shape (batch, targets)

        Returns
        -------
        Tensor of shape (batch, targets, vocab_size)
        """
        logits, _ = self.decode(target, *self.encode(source))
        return logits


def to_ids(texts):
    """Return texts as rows of ids, padded on the right with 0 to the longest.

    Parameters
    ----------
    texts : list of str
        Of letters, digits, " ,-./" and the tokens of start, "<", and end, ">"; any other
        character is a KeyError. An id is the position of a character in `CHARACTERS`:
        padding, "_", is 0, start 1, end 2.

    Returns
    -------
    int64 Tensor of shape (batch, tokens)
    """
    width = max(map(len, texts))
    rows = [[NUMBER[c] for c in text.ljust(width, "_")] for text in texts]
    return torch.tensor(rows)


def to_text(row):
    """Turn a row of ids (tokens,) into a string, up to the token of the end, ">".

    Parameters
    ----------
    row : int Tensor of shape (tokens,)
        Positions of characters in `CHARACTERS`.

    Returns
    -------
    str
    """
    return "".join(CHARACTERS[i] for i in row.tolist()).partition(">")[0]


def tensors(pairs):
    """Turn pairs of strings into ids.

    Parameters
    ----------
    pairs : list of (str, str)
        A date as people write it, "15 May 1886", and as it should be read, "1886-05-15".

    Returns
    -------
    sources : int64 Tensor of shape (batch, sources)
        A row of characters' ids for each date, filled up with 0.
    targets : int64 Tensor of shape (batch, targets)
        The same of the dates as they should be read, between the tokens of the start and
        the end.
    """
    sources, targets = zip(*pairs, strict=True)
    return to_ids(sources), to_ids([f"<{target}>" for target in targets])


def styles(day):
    """Return a date (datetime.date) written in eight styles, a list of str.

    They are: "15 May 1886"; "May 15, 1886"; "15-May-1886" (with three letters of the
    month); and five that no training has: "15 May, 1886"; "May 15 1886"; the first and the
    third with the month in small letters; "1886 May 15".

    Parameters
    ----------
    day : datetime.date

    Returns
    -------
    list of str
    """
    number = day.day
    month = MONTHS[day.month - 1]
    year = day.year
    return [
        f"{number} {month} {year}",
        f"{month} {number}, {year}",
        f"{number}-{month[:3]}-{year}",
        f"{number} {month}, {year}",
        f"{month} {number} {year}",
        f"{number} {month.lower()} {year}",
        f"{number}-{month[:3].lower()}-{year}",
        f"{year} {month} {number}",
    ]


def pairs_of(days, style=0):
    """Return a pair of strings of each day: written in a style, and as "1886-05-15".

    ``days`` : list of datetime.date; ``style`` : int, the number of one of the eight
    styles, from 0.
    """
    return [(styles(day)[style], day.isoformat()) for day in days]


def new_model(seed, kind=Transformer):
    """Return an untrained model with one block in the encoder and one in the decoder.

    Its states are 64 wide, with 4 heads and a feed-forward network of 128; its vocabulary
    is that of dates, `CHARACTERS`.

    Parameters
    ----------
    seed : int
        Of the first weights.
    kind : type
        `Transformer` or a class derived from it.

    Returns
    -------
    Transformer
        Of that kind.
    """
    torch.manual_seed(seed)
    # PyTorch's norm has the same numbers as ours, in less time.
    return kind(len(CHARACTERS), **SIZES, norm=nn.LayerNorm)


def train_on_dates(model, draw, steps, learning_rate=3e-3):
    """Train a model to write the targets of pairs; return its losses.

    Parameters
    ----------
    model : nn.Module
        From sources (batch, sources) and targets (batch, targets), both ids, to logits
        (batch, targets, vocab_size).
    draw : callable
        Without arguments; returns a batch, a list of pairs of strings, a date as people
        write it and as it should be read.
    steps : int
    learning_rate : float
        The highest, of one cycle.

    Returns
    -------
    list of float
        The loss of each step, in nats a character.
    """
    optimizer = torch.optim.AdamW(model.parameters(), learning_rate, fused=True)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, learning_rate, steps, pct_start=0.15
    )  # warm up, then decay

    def loss_at(_step):
        """Return the mean loss of a new batch, each character predicted from those before.

        ``_step`` is not used: every step draws anew. A Tensor without axes, in nats.
        """
        source, target = tensors(draw())
        logits = model(source, target[:, :-1])  # (batch, targets, vocab_size)
        return F.cross_entropy(logits.mT, target[:, 1:], ignore_index=PAD)

    with tqdm(total=steps) as bar:
        return train_model(
            model,
            loss_at,
            steps,
            [optimizer],
            [schedule],
            max_norm=1.0,
            report=lambda *_: bar.update(),
        )


def days_of(*centuries):
    """Return every day of some centuries, a list of datetime.date; 18: 1800 to 1899."""
    ends = [[datetime.date(100 * n, 1, 1) for n in (c, c + 1)] for c in centuries]
    spans = [range(one.toordinal(), end.toordinal()) for one, end in ends]
    return [datetime.date.fromordinal(n) for span in spans for n in span]


def split_days():
    """Split the days of 1800 to 1999 at random.

    Returns
    -------
    held_out, known : list of datetime.date
        Four days that the page shows (`SHOWN`), then 2,000 others in random order; and all
        the rest, sorted, which are for training.
    """
    days = days_of(18, 19)
    random.Random(0).shuffle(days)
    of_page = [datetime.date.fromisoformat(day) for day in SHOWN]
    held_out = of_page + [day for day in days if day not in of_page][:2000]
    return held_out, sorted(set(days) - set(held_out))


def drawing(known, seed, kinds=(0, 1, 2), size=128):
    """Return a function that draws a batch of days, each in a random style.

    Parameters
    ----------
    known : list of datetime.date
        The days to draw from.
    seed : int
    kinds : tuple of int
        The styles to choose from: their numbers in the list of `styles`, 0 to 7.
    size : int
        Days in a batch.

    Returns
    -------
    callable
        Each call, without arguments, returns the next batch, a list of pairs of strings: a
        day in a style, and as "1886-05-15".
    """
    rng = random.Random(seed)

    def draw():
        """Return a batch, a list of pairs: a day in a random style, and as "1886-05-15"."""
        chosen = rng.choices(known, k=size)
        return [(styles(d)[rng.choice(kinds)], d.isoformat()) for d in chosen]

    return draw


@torch.no_grad()
def greedy(model, source, start, stop, limit):
    """Let a model write, always the token of the highest probability.

    Parameters
    ----------
    model : Transformer
    source : int64 Tensor of shape (batch, sources)
        Ids, short rows filled with padding.
    start, stop : int
        The ids before and after what is written.
    limit : int
        How many tokens to write at most.

    Returns
    -------
    int64 Tensor of shape (batch, written)
        Padding follows ``stop``.
    """
    memory, mask = model.encode(source)
    ids = source.new_full((len(source), 1), start)
    done = torch.zeros_like(ids, dtype=torch.bool)
    while ids.shape[1] <= limit and not done.all():
        logits, _ = model.decode(ids, memory, mask)  # (batch, now, vocab_size)
        best = logits[:, -1:].argmax(-1)  # (batch, 1)
        ids = torch.cat([ids, best.masked_fill(done, model.pad)], dim=1)
        done = done | (best == stop)
    return ids[:, 1:]


def write(model, sources, limit=24):
    """Return the date that a model writes for each source, such as "1886-05-15".

    It takes the likeliest character every time, up to the token of the end.

    Parameters
    ----------
    model : Transformer
        It is put into evaluation mode, and stays in it.
    sources : list of str
        Dates as people write them, such as "15 May 1886".
    limit : int
        How many characters it writes at most.

    Returns
    -------
    list of str
        One for each source, in their order.
    """
    rows = greedy(model.eval(), to_ids(sources), START, STOP, limit)
    return [to_text(row) for row in rows]


def share_right(model, pairs, cut=slice(None)):
    """Return the share of pairs whose target a model writes without a fault.

    Parameters
    ----------
    model : Transformer
    pairs : list of (str, str)
        Dates as people write them, and as the model should write them, "1886-05-15".
    cut : slice
        The characters of the target that count, for instance slice(0, 4) for the year (a
        value of `ANSWER`). Default: all.

    Returns
    -------
    float
        From 0 to 1.
    """
    sources, answers = zip(*pairs, strict=True)
    compared = zip(write(model, sources), answers, strict=True)
    return np.mean([written[cut] == answer[cut] for written, answer in compared])


def parts(source):
    """Return to which part of a date such as "15 May 1886" each character belongs.

    Parameters
    ----------
    source : int64 Tensor of shape (batch, sources)
        The ids of dates' characters, in that style; 0 is padding.

    Returns
    -------
    int64 Tensor of shape (batch, sources)
        0 is the day, 1 the month, 2 the year, 3 the spaces, 4 padding.
    """
    gap = source == NUMBER[" "]
    part = gap.cumsum(1).masked_fill(gap, 3)
    return part.masked_fill(source == PAD, 4)  # (batch, sources)


@torch.no_grad()
def attention_to_parts(model, pairs):
    """Return how much the last block of a decoder attends to each part of the source.

    Parameters
    ----------
    model : Transformer
    pairs : list of (str, str)
        Dates such as "15 May 1886", and as they should be read, "1886-05-15"; the decoder
        is given the right characters.

    Returns
    -------
    Tensor of shape (targets, 4)
        Attention weights on the day, the month, the year and the spaces, for each character
        that is written; the mean over heads and pairs.
    """
    source, target = tensors(pairs)
    _, weights = model.decode(target[:, :-1], *model.encode(source))
    weights = weights[-1].mean(1)  # (batch, targets, sources)
    belongs = F.one_hot(parts(source), 5)[..., :4].float()  # (batch, sources, parts)
    return (weights @ belongs).mean(0)


class WithoutPart(Transformer):
    """A Transformer whose decoder cannot attend to one part of the source, a date.

    Attributes
    ----------
    part : int
        0 is the day, 1 the month, 2 the year, 3 the spaces (`parts`); -1 hides nothing.
    """

    part = -1  # the part of the source that the decoder may not attend to

    def encode(self, source):
        """Run the encoder, and hide one part of the source from the decoder.

        Parameters
        ----------
        source : int64 Tensor of shape (batch, sources)
            Ids of dates such as "15 May 1886"; 0 is padding.

        Returns
        -------
        memory : Tensor of shape (batch, sources, d_model)
            The states of all characters.
        mask : bool Tensor of shape (batch, 1, 1, sources)
            False at padding and at the hidden part, ``part``: 0 is the day, 1 the month, 2
            the year, 3 the spaces, -1 none.
        """
        memory, mask = super().encode(source)
        return memory, mask & (parts(source) != self.part)[:, None, None]


def without_part(reader, part):
    """Return a copy of a model whose decoder cannot attend to a part of the source.

    Parameters
    ----------
    reader : Transformer
        A model that reads dates such as "15 May 1886"; it is left as it is.
    part : int
        0 is the day, 1 the month, 2 the year, 3 the spaces; -1 hides nothing.

    Returns
    -------
    WithoutPart
        With the weights of the reader. Its table of token vectors and its encoder are
        frozen.
    """
    model = new_model(0, WithoutPart)
    model.load_state_dict(reader.state_dict())
    model.part = part
    model.embed.requires_grad_(False)
    model.encoder.requires_grad_(False)
    return model


@torch.no_grad()
def right_at(model, pairs):
    """Return the share of characters that a model writes right at each position.

    Parameters
    ----------
    model : Transformer
    pairs : list of (str, str)
        Dates as people write them, and as they should be read, "1886-05-15". The decoder is
        given the right characters before each.

    Returns
    -------
    float64 Tensor of shape (targets,)
        From 0 to 1; the last position is that of the token of the end.
    """
    source, target = tensors(pairs)
    predicted = model(source, target[:, :-1]).argmax(-1)  # (batch, targets)
    return (predicted == target[:, 1:]).double().mean(0)


def exchange_months(pairs):
    """Exchange the months of dates among each other, each for one with as many letters.

    Of the dates whose months have equally many letters, each gets the month of the next
    one, and the last that of the first; it may be the same month again. What a model gets
    right of the month afterwards, it has from the length of its name.

    Parameters
    ----------
    pairs : list of (str, str)
        Dates such as "15 May 1886", and as they should be read.

    Returns
    -------
    list of (str, str)
        In the same order, with the same targets, which are those of the true months.
    """
    rows = [source.split() for source, _ in pairs]
    by_length = {}
    for row in rows:
        by_length.setdefault(len(row[1]), []).append(row)
    for same in by_length.values():
        months = [row[1] for row in same]
        for row, month in zip(same, months[1:] + months[:1], strict=True):
            row[1] = month
    return [(" ".join(row), answer) for row, (_, answer) in zip(rows, pairs, strict=True)]
