"""Checks for the exercises of the chapter *positional-encoding*."""

import math

import torch

from lmcourse.exercises import Wrong, compare, exercise, expect, number, run
from lmcourse.exercises.answers import normal


@exercise("positional-encoding.dot_by_offset")
def dot_by_offset(answer):
    """Compare with the dot product of two encodings, written out."""
    d_model, offsets, pairs = 10, (0, 1, 3, 12, -4), range(0, 10, 2)

    def encoding(position):
        angles = [position / 10000 ** (e / d_model) for e in pairs]
        return [f(angle) for angle in angles for f in (math.sin, math.cos)]

    def product(offset, start=5):
        both = zip(encoding(start), encoding(start + offset), strict=True)
        return sum(a * b for a, b in both)

    def summed(f, exponents, factor=1.0):
        return [
            factor * sum(f(o / 10000 ** (e / d_model)) for e in exponents) for o in offsets
        ]

    mistakes = {
        "a sine where a cosine belongs: a vector times itself is not zero.": summed(
            math.sin, pairs
        ),
        "twice too much: there are d_model / 2 pairs, and each gives one cosine.": summed(
            math.cos, pairs, 2
        ),
        "each pair is counted as if every dimension had a frequency of its own: there are "
        "d_model / 2 frequencies.": summed(math.cos, range(d_model)),
        "the exponent is half of what it should be: pair i has 2 i / d_model.": summed(
            math.cos, range(d_model // 2)
        ),
        "this is the mean over the pairs; a dot product is a sum.": summed(
            math.cos, pairs, 2 / d_model
        ),
    }
    got = [number(run(answer, offset, d_model)) for offset in offsets]
    compare(got, [product(offset) for offset in offsets], mistakes)


def _turned(x, positions):
    """Turn interleaved pairs, taken as complex numbers; (..., tokens, d_head)."""
    width = x.shape[-1]
    slow = [10000 ** (-2 * i / width) for i in range(width // 2)]
    angle = torch.tensor([[p * s for s in slow] for p in positions], dtype=x.dtype)
    turn = torch.polar(torch.ones_like(angle), angle)  # (tokens, d_head / 2)
    plane = torch.view_as_complex(x.unflatten(-1, (-1, 2)).contiguous())
    return torch.view_as_real(plane * turn).flatten(-2)


@exercise("positional-encoding.append_key")
def append_key(answer):
    """Compare with turning the whole text at once, by complex numbers."""
    keys = normal(2, 6, 6, seed=3).double()  # (heads, tokens, d_head)
    old, new = _turned(keys[:, :5], range(5)), keys[:, 5:]
    right = _turned(new, [5])
    mistakes = {
        "the new key is turned as if it stood at position 0, that is, not at all.": [
            old,
            new,
        ],
        "the cached keys are turned a second time; they were turned when they came.": [
            _turned(torch.cat((old, new), 1), range(6))
        ],
        "one too few: the cache holds positions 0 to tokens - 1, so the new one is …?": [
            old,
            _turned(new, [4]),
        ],
        "one too many: positions count from 0.": [old, _turned(new, [6])],
        "the new key is missing from the cache: return all of it.": [right],
        "the new key belongs at the end.": [right, old],
    }
    mistakes = {text: torch.cat(parts, 1) for text, parts in mistakes.items()}
    expect(answer, [old, new], _turned(keys, range(6)), mistakes)


@exercise("positional-encoding.half_rows")
def half_rows(answer):
    """Compare with a list of row numbers, head by head."""
    weight = torch.arange(900.0).view(30, 30)  # three heads of 10

    def order(heads, width):
        one = [*range(0, width, 2), *range(1, width, 2)]
        return torch.tensor([head * width + row for head in range(heads) for row in one])

    rows = order(3, 10)
    mistakes = {
        "the columns are reordered; a head's dimensions are the rows of nn.Linear's "
        "weight.": weight[:, rows],
        "all rows are reordered as one head: each head has its own pairs.": weight[
            order(1, 30)
        ],
        "this is the way back, from half-split to interleaved.": weight[rows.argsort()],
        "nothing has changed.": weight,
    }
    expect(answer, [weight, 3], weight[rows], mistakes)
    tall = torch.arange(40.0).view(8, 5)
    expect(answer, [tall, 2], tall[order(2, 4)])


@exercise("positional-encoding.alibi_step")
def alibi_step(answer):
    """Compare with a loop over heads and keys."""

    def bias(heads, tokens, more=0, steep=None, query=None):
        """Return (heads, tokens): minus the slope times the distance."""
        query = tokens - 1 if query is None else query
        slopes = [
            2.0 ** (-8 * (1 + (h if steep is None else steep)) / heads)
            for h in range(heads)
        ]
        return torch.tensor(
            [[-s * (abs(query - key) + more) for key in range(tokens)] for s in slopes]
        )

    want = bias(4, 6)[:, None]
    mistakes = {
        "the oldest key is free and the newest pays most: distance is counted from the "
        "wrong end.": want.flip(-1),
        "far keys are rewarded: the bias is a penalty, so it is negative.": -want,
        "the newest token is at distance 0 from itself.": bias(4, 6, more=1)[:, None],
        "the heads are in the opposite order: the first has the steepest slope.": (
            want.flip(0)
        ),
        "every head has the same slope.": bias(4, 6, steep=0)[:, None],
        "the axis of the query is missing: (heads, 1, tokens).": want[:, 0],
        "this is the bias of every query; only the newest one asks.": torch.stack(
            [bias(4, 6, query=query) for query in range(6)], 1
        ),
    }
    expect(answer, [4, 6], want, mistakes)
    expect(answer, [8, 3], bias(8, 3)[:, None])


@exercise("positional-encoding.clipped_bias")
def clipped_bias(answer):
    """Compare with a loop over every pair of positions."""
    heads, reach, tokens = 3, 2, 7
    table = normal(2 * reach + 1, heads, seed=4)

    def looped(row):
        rows = [[table[row(j - i)] for j in range(tokens)] for i in range(tokens)]
        return torch.stack([torch.stack(each) for each in rows]).permute(2, 0, 1)

    def clip(offset):
        return max(-reach, min(reach, offset))

    want = looped(lambda offset: clip(offset) + reach)
    mistakes = {
        "past and future are swapped: an offset is key minus query.": want.mT,
        "the heads should be the first axis: (heads, tokens, tokens).": want.permute(
            1, 2, 0
        ),
        "offsets beyond the table wrap around to its other end: clip them first.": looped(
            lambda offset: (offset + reach) % (2 * reach + 1)
        ),
        "the row of offset 0 is not the first: add reach, or the past is read from the "
        "table's end.": looped(clip),
        "the future is read as the past: the sign of the offset is lost.": looped(
            lambda offset: -abs(clip(offset)) + reach
        ),
    }
    expect(answer, [table, tokens], want, mistakes)


QUESTIONS = [(8, 100), (64, 4096), (128, 131072)]  # width of a head, tokens


def _logs(turn, rest=2):
    """Bisect the logarithm of the base at which the slowest pair just makes ``turn``."""
    found = []
    for width, tokens in QUESTIONS:
        low, high = 0.0, 60.0
        for _ in range(100):
            middle = (low + high) / 2
            enough = tokens * math.exp(-middle * (width - rest) / width) <= turn
            low, high = (low, middle) if enough else (middle, high)
        found.append(high)
    return found


@exercise("positional-encoding.smallest_base")
def smallest_base(answer):
    """Compare with a bisection on the slowest pair's angle."""
    got = [number(run(answer, *question)) for question in QUESTIONS]
    if min(got) <= 0:
        raise Wrong("the base should be positive.")
    mistakes = {
        "a full turn is 2π radians, not one.": _logs(1.0),
        "that is half a turn.": _logs(math.pi),
        "the slowest pair's exponent is not 1: the last pair is number width / 2 - 1, so "
        "it turns by base ** (-(width - 2) / width).": _logs(math.tau, rest=0),
    }
    compare([math.log(base) for base in got], _logs(math.tau), mistakes)
