"""What the studies of *encoder-decoder* share with their page.

The page shows this code; a test compares the two.
"""

import datetime
import random
import string

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence
from tqdm.auto import tqdm

from lmcourse.attention import MultiHeadAttention, causal_mask, padding_mask
from lmcourse.positions import sinusoidal
from lmcourse.transformer import Block, LayerNorm

PAD, START, STOP = range(3)


CHARACTERS = "_<>" + string.ascii_letters + string.digits + " ,-./"


def ends(rows):
    return np.array([np.min(rows), np.max(rows)])


class Embed(nn.Module):
    def __init__(self, vocab_size, d_model):
        super().__init__()
        self.table = nn.Embedding(vocab_size, d_model)

    def forward(self, ids):
        x = self.table(ids)  # (batch, tokens, d_model)
        return x + sinusoidal(*x.shape[-2:]).to(x)


class Stack(nn.Module):
    def __init__(self, layers, d_model, heads, d_ff, norm=LayerNorm, **options):
        super().__init__()
        sizes = {"d_model": d_model, "heads": heads, "d_ff": d_ff, "norm": norm}
        blocks = (Block(**sizes, **options) for _ in range(layers))
        self.blocks = nn.ModuleList(blocks)
        self.norm = norm(d_model)

    def forward(self, x, **options):
        weights = []
        for block in self.blocks:
            x, seen = block(x, **options)
            weights.append(seen)
        return self.norm(x), weights


class Transformer(nn.Module):
    def __init__(self, vocab_size, layers, d_model, heads, d_ff, pad=0, **options):
        super().__init__()
        self.embed = Embed(vocab_size, d_model)
        self.encoder = Stack(layers, d_model, heads, d_ff, **options)
        self.decoder = Stack(layers, d_model, heads, d_ff, cross=True, **options)
        self.output = nn.Linear(d_model, vocab_size)
        self.pad = pad

    def encode(self, source):
        mask = padding_mask(source != self.pad)  # (batch, 1, 1, sources)
        memory, _ = self.encoder(self.embed(source), mask=mask)
        return memory, mask

    def decode(self, target, memory, memory_mask):
        mask = causal_mask(target.shape[-1], target.device)
        options = {"mask": mask, "memory": memory, "memory_mask": memory_mask}
        x, weights = self.decoder(self.embed(target), **options)
        return self.output(x), weights  # (batch, targets, vocab_size)

    def forward(self, source, target):
        logits, _ = self.decode(target, *self.encode(source))
        return logits


NUMBER = {character: i for i, character in enumerate(CHARACTERS)}


MONTHS = [
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
]


SHOWN = ["1886-05-15", "1830-12-10", "1861-03-01", "1899-09-09"]


ANSWER = {"day": slice(8, 10), "month": slice(5, 7), "year": slice(0, 4)}


def ids(texts):
    """Turn strings into an int tensor (batch, tokens), padded on the right."""
    width = max(map(len, texts))
    rows = [[NUMBER[c] for c in text.ljust(width, "_")] for text in texts]
    return torch.tensor(rows)


def text(row):
    """Turn a row of ids into a string, up to the end mark."""
    return "".join(CHARACTERS[i] for i in row.tolist()).partition(">")[0]


def tensors(pairs):
    """Turn pairs of strings into sources and targets, between their marks."""
    sources, targets = zip(*pairs)
    return ids(sources), ids([f"<{target}>" for target in targets])


def styles(day):
    """Write a day in eight ways; the first three are learned from."""
    number, month, year = day.day, MONTHS[day.month - 1], day.year
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
    """Return what is to be read, and what is to be written."""
    return [(styles(day)[style], day.isoformat()) for day in days]


def new_model(seed, kind=Transformer):
    """Make a Transformer of one block on either side."""
    torch.manual_seed(seed)
    sizes = {"layers": 1, "d_model": 64, "heads": 4, "d_ff": 128}
    sizes["norm"] = nn.LayerNorm  # the same numbers as ours, in less time
    return kind(len(CHARACTERS), **sizes)


def train(model, draw, steps, learning_rate=3e-3):
    optimizer = torch.optim.AdamW(model.parameters(), learning_rate, fused=True)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, learning_rate, steps, pct_start=0.15
    )  # warm up, then decay
    losses = []
    for _ in tqdm(range(steps)):
        source, target = tensors(draw())
        logits = model(source, target[:, :-1])  # (batch, targets, vocab_size)
        loss = F.cross_entropy(logits.mT, target[:, 1:], ignore_index=PAD)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        losses.append(loss.item())
    return losses


def days_of(*centuries):
    """Return every day of some centuries; 18 stands for 1800 to 1899."""
    ends = [[datetime.date(100 * n, 1, 1) for n in (c, c + 1)] for c in centuries]
    spans = [range(one.toordinal(), end.toordinal()) for one, end in ends]
    return [datetime.date.fromordinal(n) for span in spans for n in span]


def split_days():
    """Deal the days of two centuries: held out, and to learn from."""
    days = days_of(18, 19)
    random.Random(0).shuffle(days)
    shown = [datetime.date.fromisoformat(day) for day in SHOWN]
    held_out = shown + [day for day in days if day not in shown][:2000]
    return held_out, sorted(set(days) - set(held_out))


def drawing(known, seed, kinds=(0, 1, 2), size=128):
    """Return a function that draws days, each in one of the styles."""
    rng = random.Random(seed)

    def draw():
        chosen = rng.choices(known, k=size)
        return [(styles(d)[rng.choice(kinds)], d.isoformat()) for d in chosen]

    return draw


@torch.no_grad()
def greedy(model, source, start, stop, limit):
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
    """Return what the model writes for each source."""
    rows = greedy(model.eval(), ids(sources), START, STOP, limit)
    return [text(row) for row in rows]


def share_right(model, pairs, cut=slice(None)):
    """Return the share of pairs written right, or of a part of the answer."""
    sources, answers = zip(*pairs)
    both = zip(write(model, sources), answers, strict=True)
    return np.mean([written[cut] == answer[cut] for written, answer in both])


class OneVector(Transformer):
    def encode(self, source):
        memory, mask = super().encode(source)
        real = mask[:, 0, 0, :, None]  # (batch, sources, 1)
        mean = (memory * real).sum(1, keepdim=True) / real.sum(1, keepdim=True)
        return mean, mask[..., :1]  # (batch, 1, d_model): no place to choose


class Recurrent(nn.Module):
    def __init__(self, vocab_size, d_model, looks, pad=0):
        super().__init__()
        self.table = nn.Embedding(vocab_size, d_model)
        both = {"batch_first": True, "bidirectional": True}
        self.read = nn.LSTM(d_model, d_model // 2, **both)
        self.write = nn.LSTM(d_model, d_model, batch_first=True)
        self.look = MultiHeadAttention(d_model, 1) if looks else None
        self.output = nn.Linear(d_model, vocab_size)
        self.pad = pad

    def encode(self, source):
        real = source != self.pad  # (batch, sources)
        how = {"batch_first": True, "enforce_sorted": False}
        x = pack_padded_sequence(self.table(source), real.sum(1), **how)
        states, ends = self.read(x)  # ends: state and memory, (2, batch, half)
        states, _ = pad_packed_sequence(states, batch_first=True)
        ends = [end.transpose(0, 1).flatten(1)[None] for end in ends]
        return (states, tuple(ends)), real[:, None, None]

    def decode(self, target, memory, mask):
        states, ends = memory
        x, _ = self.write(self.table(target), ends)  # (batch, targets, d_model)
        weights = None
        if self.look is not None:
            update, weights = self.look(x, states, mask)
            x = torch.tanh(x + update)
        return self.output(x), [weights]

    def forward(self, source, target):
        return self.decode(target, *self.encode(source))[0]


class EveryStep(Recurrent):
    def encode(self, source):
        (_, ends), mask = super().encode(source)
        return (ends[0].transpose(0, 1), ends), mask[..., :1]


def parts(source):
    """Number the words of each row of ids, first style: 3 spaces, 4 padding."""
    gap = source == NUMBER[" "]
    part = gap.cumsum(1).masked_fill(gap, 3)
    return part.masked_fill(source == PAD, 4)  # (batch, sources)


@torch.no_grad()
def look(model, pairs):
    """The weight on each part, (targets, parts), the right answer given."""
    source, target = tensors(pairs)
    _, weights = model.decode(target[:, :-1], *model.encode(source))
    weights = weights[-1].mean(1)  # (batch, targets, sources)
    of = F.one_hot(parts(source), 5)[..., :4].float()  # (batch, sources, parts)
    return (weights @ of).mean(0)


class Hidden(Transformer):
    part = -1  # the part of the source that the decoder may not look at

    def encode(self, source):
        memory, mask = super().encode(source)
        return memory, mask & (parts(source) != self.part)[:, None, None]


def hidden(reader, part):
    """Return a copy of a reader to which a part is hidden, its encoder fixed."""
    model = new_model(0, Hidden)
    model.load_state_dict(reader.state_dict())
    model.part = part
    model.embed.requires_grad_(False)
    model.encoder.requires_grad_(False)
    return model


@torch.no_grad()
def right_at(model, pairs):
    """The share right at each place, (targets,), the right answer given."""
    source, target = tensors(pairs)
    said = model(source, target[:, :-1]).argmax(-1)  # (batch, targets)
    return (said == target[:, 1:]).double().mean(0)


def dealt(pairs):
    """Exchange months of the same length: only the length can be told."""
    rows, by_length = [source.split() for source, _ in pairs], {}
    for row in rows:
        by_length.setdefault(len(row[1]), []).append(row)
    for same in by_length.values():
        months = [row[1] for row in same]
        for row, month in zip(same, months[1:] + months[:1]):
            row[1] = month
    return [(" ".join(row), answer) for row, (_, answer) in zip(rows, pairs)]
