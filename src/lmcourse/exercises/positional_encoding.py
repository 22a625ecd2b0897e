"""Checks for the exercises of the chapter *positional-encoding*."""

import math

import torch

from lmcourse.exercises import Wrong, compare, exercise, number, run


@exercise("positional-encoding.dot_by_offset")
def dot_by_offset(answer):
    """Compare with the dot product of two encodings, written out."""
    d_model, offsets = 10, (0, 1, 3, 12, -4)

    def encoding(position):
        angles = [position / 10000 ** (2 * i / d_model) for i in range(d_model // 2)]
        return [f(angle) for angle in angles for f in (math.sin, math.cos)]

    def product(offset, start=5):
        pairs = zip(encoding(start), encoding(start + offset), strict=True)
        return sum(a * b for a, b in pairs)

    def summed(f, exponents, factor=1):
        return [
            factor * sum(f(o / 10000 ** (e / d_model)) for e in exponents) for o in offsets
        ]

    got = [run(answer, offset, d_model) for offset in offsets]
    pairs = range(0, d_model, 2)
    compare(
        got,
        [product(offset) for offset in offsets],
        {
            "a sine where a cosine belongs: a vector times itself is not zero.": summed(
                math.sin, pairs
            ),
            "twice too much: there are d_model / 2 pairs, and each gives one "
            "cosine.": summed(math.cos, pairs, 2),
            "each pair is counted as if every dimension had a frequency of its own: "
            "there are d_model / 2 frequencies.": summed(math.cos, range(d_model)),
            "the exponent is half of what it should be: pair i has 2 i / d_model.": summed(
                math.cos, range(d_model // 2)
            ),
            "this is the mean over the pairs; a dot product is a sum.": summed(
                math.cos, pairs, 2 / d_model
            ),
        },
    )


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
    generator = torch.Generator().manual_seed(3)
    heads, tokens, d_head = 2, 5, 6
    keys = torch.randn(heads, tokens + 1, d_head, generator=generator, dtype=torch.float64)
    old, new = _turned(keys[:, :-1], range(tokens)), keys[:, -1:]
    got = run(answer, old.clone(), new.clone())
    compare(
        got,
        _turned(keys, range(tokens + 1)),
        {
            "the new key is turned as if it stood at position 0, that is, not at "
            "all.": torch.cat((old, new), 1),
            "the cached keys are turned a second time; they were turned when they "
            "came.": _turned(torch.cat((old, new), 1), range(tokens + 1)),
            "one too few: the cache holds positions 0 to tokens - 1, so the new one "
            "is …?": torch.cat((old, _turned(new, [tokens - 1])), 1),
            "one too many: positions count from 0.": torch.cat(
                (old, _turned(new, [tokens + 1])), 1
            ),
            "the new key is missing from the cache: return all of it.": _turned(
                new, [tokens]
            ),
            "the new key belongs at the end.": torch.cat((_turned(new, [tokens]), old), 1),
        },
    )


@exercise("positional-encoding.half_rows")
def half_rows(answer):
    """Compare with a list of row numbers, head by head."""
    heads, d_head = 3, 10
    d_model = heads * d_head
    weight = torch.arange(d_model * d_model, dtype=torch.float64).view(d_model, d_model)

    def order(heads, width):
        one = [*range(0, width, 2), *range(1, width, 2)]
        return torch.tensor([head * width + row for head in range(heads) for row in one])

    rows = order(heads, d_head)
    compare(
        run(answer, weight.clone(), heads),
        weight[rows],
        {
            "the columns are reordered; a head's dimensions are the rows of "
            "nn.Linear's weight.": weight[:, rows],
            "all rows are reordered as one head: each head has its own pairs.": weight[
                order(1, d_model)
            ],
            "this is the way back, from half-split to interleaved.": weight[rows.argsort()],
            "nothing has changed.": weight,
        },
    )
    tall = torch.arange(8.0 * 5).view(8, 5)
    compare(run(answer, tall.clone(), 2), tall[order(2, 4)])


@exercise("positional-encoding.alibi_step")
def alibi_step(answer):
    """Compare with a loop over heads and keys."""

    def looped(heads, tokens, one):
        rows = [[one(h, tokens - 1 - key) for key in range(tokens)] for h in range(heads)]
        return torch.tensor(rows)[:, None]

    def slope(head, heads):
        return 2.0 ** (-8 * (head + 1) / heads)

    heads, tokens = 4, 6
    want = looped(heads, tokens, lambda h, back: -slope(h, heads) * back)
    got = run(answer, heads, tokens)
    compare(
        got,
        want,
        {
            "the oldest key is free and the newest pays most: distance is counted from "
            "the wrong end.": want.flip(-1),
            "far keys are rewarded: the bias is a penalty, so it is negative.": -want,
            "the newest token is at distance 0 from itself.": looped(
                heads, tokens, lambda h, back: -slope(h, heads) * (back + 1)
            ),
            "the heads are in the opposite order: the first has the steepest "
            "slope.": want.flip(0),
            "every head has the same slope.": looped(
                heads, tokens, lambda h, back: -slope(0, heads) * back
            ),
            "the axis of the query is missing: (heads, 1, tokens).": want[:, 0],
            "this is the bias of every query; only the newest one asks.": -torch.tensor(
                [
                    [
                        [slope(h, heads) * abs(i - j) for j in range(tokens)]
                        for i in range(6)
                    ]
                    for h in range(heads)
                ]
            ),
        },
    )
    compare(run(answer, 8, 3), looped(8, 3, lambda h, back: -slope(h, 8) * back))


@exercise("positional-encoding.clipped_bias")
def clipped_bias(answer):
    """Compare with a loop over every pair of positions."""
    heads, reach, tokens = 3, 2, 7
    generator = torch.Generator().manual_seed(4)
    table = torch.randn(2 * reach + 1, heads, generator=generator)

    def looped(row):
        places = range(tokens)
        rows = [[table[row(j - i)] for j in places] for i in places]  # each (heads,)
        return torch.stack([torch.stack(each) for each in rows]).permute(2, 0, 1)

    def clip(offset):
        return max(-reach, min(reach, offset))

    want = looped(lambda offset: clip(offset) + reach)
    compare(
        run(answer, table.clone(), tokens),
        want,
        {
            "past and future are swapped: an offset is key minus query.": want.mT,
            "the heads should be the first axis: (heads, tokens, tokens).": want.permute(
                1, 2, 0
            ),
            "offsets beyond the table wrap around to its other end: clip them "
            "first.": looped(lambda offset: (offset + reach) % (2 * reach + 1)),
            "the row of offset 0 is not the first: add reach, or the past is read from "
            "the table's end.": looped(clip),
            "the future is read as the past: the sign of the offset is lost.": looped(
                lambda offset: -abs(clip(offset)) + reach
            ),
        },
    )


@exercise("positional-encoding.smallest_base")
def smallest_base(answer):
    """Compare with a bisection on the slowest pair's angle."""
    questions = [(8, 100), (64, 4096), (128, 131072)]

    def logs(turn, slowest=lambda width: width - 2):
        return _logs(questions, turn, slowest)

    got = [run(answer, *question) for question in questions]
    got = [number(base) for base in got]
    if min(got) <= 0:
        raise Wrong("the base should be positive.")
    got = [math.log(base) for base in got]
    compare(
        got,
        logs(math.tau),
        {
            "a full turn is 2π radians, not one.": logs(1.0),
            "that is half a turn.": logs(math.pi),
            "the slowest pair's exponent is not 1: the last pair is number "
            "width / 2 - 1, so it turns by base ** (-(width - 2) / width).": logs(
                math.tau, lambda width: width
            ),
        },
    )


def _logs(questions, turn, slowest):
    """Bisect the logarithm of the base at which the slowest pair just makes ``turn``."""
    found = []
    for width, tokens in questions:
        low, high = 0.0, 60.0
        for _ in range(100):
            middle = (low + high) / 2
            enough = tokens * math.exp(-middle * slowest(width) / width) <= turn
            low, high = (low, middle) if enough else (middle, high)
        found.append(high)
    return found
