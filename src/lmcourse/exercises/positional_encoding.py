"""Checks for the exercises of the chapter *positional-encoding*."""

import math
from collections.abc import Mapping

import pandas as pd
import torch
from torch.nn import functional as F

from lmcourse.exercises import Wrong, compare, exercise, expect, judge, predict, run
from lmcourse.exercises.answers import normal, number, rotated, type_name, unpack

TRAINED = 10_000  # the base with which the page's models were trained
LOW, HIGH = 0.3, 2.0  # nats: has learned to count to three; has not


# One block's last output is made of a sum over what it sees.
predict(
    "positional-encoding.shuffled_past",
    a=None,
    b="each weight is still computed from two words alone, and a sum does not care "
    "for the order of its terms. Nothing of the last word’s sum has changed.",
    c="a feed-forward network works on each token’s own vector. What attention has "
    "not put in, it cannot see.",
)


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


# What the table's own numbers can tell, and what they cannot.
judge(
    "positional-encoding.seam",
    a=None,
    b="an untrained row would be like none of its neighbours. Look at the picture "
    "again: does the band along the diagonal end at 128?",
    c="a row that was trained is not yet a text that is read. How well the model "
    "reads there is a question for its answers, not for its table.",
)


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
        "the columns are reordered, and all of them together; a head's dimensions are the "
        "rows of nn.Linear's weight.": weight[:, order(1, 30)],
        "all rows are reordered as one head: each head has its own pairs.": weight[
            order(1, 30)
        ],
        "this is the way back, from half-split to interleaved.": weight[rows.argsort()],
        "the rows are cut in two halves, as if they were half-split already; they are "
        "interleaved.": weight[
            torch.tensor([h * 10 + r for h in range(3) for r in (*range(5, 10), *range(5))])
        ],
        "nothing has changed.": weight,
    }
    expect(answer, [weight, 3], weight[rows], mistakes)
    tall = torch.arange(40.0).view(8, 5)
    expect(answer, [tall, 2], tall[order(2, 4)])


def _attended(query, key, value):
    return F.scaled_dot_product_attention(query, key, value)


@exercise("positional-encoding.values_too", kind="spot the bug")
def values_too(answer):
    """Compare with PyTorch's attention on queries and keys turned by complex numbers."""
    fused = normal(2, 5, 12, seed=5).double()  # (heads, tokens, 3 * d_head)
    positions = torch.tensor([3, 4, 5, 6, 7])
    query, key, value = fused.chunk(3, -1)

    def turn(x, half=False):
        return rotated(x, positions.tolist(), half)

    first = turn(fused).chunk(3, -1)
    mistakes = {
        "the values are still turned, and each third is turned at the speeds of a vector "
        "three times as wide: separate first, then turn.": _attended(*first),
        "the values are left alone, but queries and keys are turned at the speeds of a "
        "vector three times as wide: separate first, then turn.": _attended(
            first[0], first[1], value
        ),
        "the values are turned, too: the output then depends on where the text begins. "
        "Turn what is compared, not what is handed over.": _attended(
            turn(query), turn(key), turn(value)
        ),
        "the keys are not turned: then the score depends on the query’s position, not on "
        "the offset.": _attended(turn(query), key, value),
        "the queries are not turned: then the score depends on the key’s position, not on "
        "the offset.": _attended(query, turn(key), value),
        "nothing is turned: the positions are not used.": _attended(query, key, value),
        "`positions` is not used: this text begins at position 3. (The scores are right, "
        "for they see offsets only; so the values must be turned.)": _attended(
            rotated(query), rotated(key), rotated(value)
        ),
        "queries and keys are turned in the half-split layout; these are interleaved.": (
            _attended(turn(query, half=True), turn(key, half=True), value)
        ),
    }
    want = _attended(turn(query), turn(key), value)
    expect(answer, [fused, positions], want, mistakes)


@exercise("positional-encoding.append_key", kind="spot the bug")
def append_key(answer):
    """Compare with turning the whole text at once, by complex numbers."""
    keys = normal(2, 6, 6, seed=3).double()  # (heads, tokens, d_head)
    old, new = rotated(keys[:, :5]), keys[:, 5:]
    right = rotated(new, [5])
    mistakes = {
        "the new key is turned as if it stood at position 0, that is, not at all.": [
            old,
            new,
        ],
        "the cached keys are turned a second time; they were turned when they came.": [
            rotated(torch.cat((old, new), 1))
        ],
        "one too few: the cache holds positions 0 to tokens - 1, so the new one is …?": [
            old,
            rotated(new, [4]),
        ],
        "one too many: positions count from 0.": [old, rotated(new, [6])],
        "this is the number of heads, not of tokens: look at the cache’s axes.": [
            old,
            rotated(new, [2]),
        ],
        "the position is right, the layout is not: this key is turned in the half-split "
        "layout, the cache is interleaved. No shape tells.": [
            old,
            rotated(new, [5], half=True),
        ],
        "the new key is missing from the cache: return all of it.": [right],
        "the new key belongs at the end.": [right, old],
    }
    mistakes = {text: torch.cat(parts, 1) for text, parts in mistakes.items()}
    expect(answer, [old, new], rotated(keys), mistakes)


@exercise("positional-encoding.base", kind="experiment")
def base(answer):
    """See whether the losses can be what is told of them, on both sides of the best."""
    if isinstance(answer, pd.DataFrame):
        answer = dict(zip(answer.index, answer.to_numpy().tolist(), strict=True))
    if not isinstance(answer, Mapping) or not answer:
        raise Wrong(
            "hand over a dict, base → (loss at trained lengths, loss on the last 32); this "
            f"is {type_name(answer)}."
        )
    pair = "two losses for each base: at trained lengths, on the last 32"
    found = {
        number(base): tuple(number(loss) for loss in unpack(losses, 2, pair))
        for base, losses in answer.items()
    }
    worst = {base: max(losses) for base, losses in found.items()}
    best = min(worst, key=worst.get)
    greater = [near for base, (near, _) in found.items() if base > best]
    return {
        "losses in nats are not negative.": min(map(min, found.values())) < 0,
        f"the base of the training, {TRAINED:,}, is missing: it is what the others are "
        "compared with.": TRAINED not in found,
        f"with the base of the training, {TRAINED:,}, the model should count well at "
        "trained lengths and fail on the last 32; yours does not. Are the losses in "
        "this order, and those of *three back*?": TRAINED in found
        and not found[TRAINED][0] < LOW < HIGH < found[TRAINED][1],
        f"with a base of {best:,.0f} positions come round sooner than in training; no "
        "model counts better so. Are these losses measured?": best < TRAINED,
        f"the best of your bases is {best:,.0f}, with {worst[best]:.2f} on the worse "
        f"of the two spans. Both can be below {LOW}: try bases "
        f"{'greater' if best == max(worst) else 'between those around it'}.": (
            worst[best] >= LOW
        ),
        "you have seen that a greater base mends the end. Go on: does it only get "
        "better?": not any(near > found[best][0] + LOW for near in greater),
    }
