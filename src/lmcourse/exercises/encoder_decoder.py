"""Checks for the exercises of the chapter *encoder-decoder*."""

import calendar
import datetime
import math
import random
import re

import numpy as np
import torch
import torch.nn.functional as F

from lmcourse.exercises import Wrong, compare, exercise, expect, judge, predict, run
from lmcourse.exercises.answers import array, diagnose, normal, strings, type_name, unpack


@exercise("encoder-decoder.cross_attention")
def cross_attention(answer):
    """Compare with PyTorch's attention, on two sources of which one is filled up."""
    Y, M = normal(2, 5, 6, seed=1).double(), normal(2, 7, 6, seed=2).double()
    W_Q, W_K, W_V = (normal(6, n, seed=n).double() for n in (4, 4, 3))
    W_K = W_K.flip(0)  # another matrix than W_Q
    real = torch.arange(7) < torch.tensor([[4], [7]])  # the first text is the shorter
    M[~real] *= 30  # scores of padding that no small number outweighs
    got = run(answer, Y, M, real, W_Q, W_K, W_V)
    got = [got] if isinstance(got, (torch.Tensor, np.ndarray)) else got
    output, weights = unpack(got, 2, "what is taken and the weights, in this order")
    query, key, value = Y @ W_Q, M @ W_K, M @ W_V
    scores = torch.einsum("btd,bsd->bts", query, key) / 2  # (batch, targets, sources)
    shapes = array(output).shape, array(weights).shape
    faults = {
        "what is taken and the weights, in this order; yours are the other way round.": (
            shapes == ((2, 5, 7), (2, 5, 3))
        ),
        "the two texts are exchanged: queries come from what is written, keys and values "
        "from what was read. The weights are (batch, targets, sources).": (
            shapes[1] == (2, 7, 5)
        ),
        "whole rows were hidden; padding in the source is a column of the scores.": (
            shapes[1] == (2, 5, 7)
            and np.isnan(array(weights)).all(-1).any()
            and not np.isnan(array(weights)[1]).any()
        ),
        "what is written attends to itself; keys and values come from the memory.": (
            shapes[1] == (2, 5, 5)
        ),
    }
    diagnose(faults)
    swap = _masked(Y @ W_K @ (M @ W_Q).mT / 2, real[:, None])
    mistakes = {"W_Q and W_K are exchanged.": swap} | _wrong_weights(scores, real)
    compare(weights, _masked(scores, real[:, None]), mistakes)
    mistakes = {
        "the weights are right; what is taken is the plain mean of the values.": (
            value.mean(1, keepdim=True).expand(2, 5, 3)
        ),
        "the weights are right, but the padding's values are taken, too: use the weights "
        "after the mask.": scores.softmax(-1) @ value,
    }
    compare(
        output, F.scaled_dot_product_attention(query, key, value, real[:, None]), mistakes
    )


def _masked(scores, allowed, dim=-1):
    """Return the softmax of those scores, along ``dim``, that are allowed (bool)."""
    return scores.masked_fill(~allowed, -math.inf).softmax(dim)


def _wrong_weights(scores, real):
    """Return a dict, diagnosis → the weights (batch, targets, sources) that it gives.

    ``scores`` : (batch, targets, sources); ``real`` : bool (batch, sources), where tokens
    are.
    """
    real, causal = real[:, None], torch.ones(scores.shape[1:]).tril().bool()
    whole = scores.softmax(-1)
    inverse = torch.where(real.all(-1, keepdim=True), math.nan, _masked(scores, ~real))
    return {
        "padding gets weight: the mask is missing.": whole,
        "10 is taken from the scores of padding, which may still be the greatest; "
        "`-torch.inf` hides.": (scores - 10.0 * ~real).softmax(-1),
        "the mask is the wrong way round: `real` is True where there is a token.": inverse,
        "you mask after the softmax: the rows no longer sum to 1.": whole * real,
        "a hidden score became 0, which is a score like any other.": (
            (scores * real).softmax(-1)
        ),
        "the softmax runs over what is written; each row must sum to 1.": (
            _masked(scores, real, 1)
        ),
        "the scores are not divided by the square root of d_head.": _masked(
            2 * scores, real
        ),
        "the scores are divided by d_head, not by its square root.": _masked(
            scores / 2, real
        ),
        "the scores are divided by the root of d_model; d_head products are added up.": (
            _masked(scores * 2 / math.sqrt(6), real)
        ),
        "a causal mask is not needed here: the whole source has been read.": (
            _masked(scores, real & causal)
        ),
        "every source gets the mask of the first one.": _masked(scores, real[:1]),
        "these are scores; the softmax is missing.": scores,
    }


@exercise("encoder-decoder.one_ahead", kind="spot the bug")
def one_ahead(answer):
    """Compare on a toy decoder, with one number for padding, then with another."""
    for pad in (0, 7):
        _one_ahead(answer, pad)


def _one_ahead(answer, pad):
    """Compare on a toy decoder that sees what is given, up to each place.

    ``pad`` is the id of padding. A wrong answer raises `Wrong`.
    """
    table = 2 * normal(8, 8, seed=4).double()
    source = torch.tensor([[3, 4], [5, 6]])
    target = torch.tensor([[1, 4, 3, 2, pad, pad], [1, 6, 3, 5, 4, 2]])

    def model(source, given):
        """Return logits that depend on the whole source and on what was given so far."""
        past = table[given].cumsum(1)  # (batch, given, vocab_size)
        return past + table[source].sum(1, keepdim=True)

    def loss(given, wanted, of=source, to=lambda x: x, **how):
        """Return the cross-entropy of the model's predictions, padding left out."""
        logits = to(model(of, given))[:, : wanted.shape[1]]
        return F.cross_entropy(logits.mT, wanted, ignore_index=how.pop("skip", pad), **how)

    cut, rest = target[:, :-1], target[:, 1:]
    rows = [loss(cut[[i]], rest[[i]], of=source[[i]]) for i in range(2)]
    each = loss(cut, rest, reduction="none")
    mistakes = {
        "`cross_entropy` takes a softmax, too.": loss(cut, rest, to=lambda x: x.softmax(2)),
        "`roll` brings the start mark to the end.": loss(target, target.roll(-1, 1)),
        "this is the mean of the rows' means.": torch.stack(rows).mean(),
        "the logits are shifted the wrong way.": loss(target, cut, to=lambda x: x[:, 1:]),
        "it is given a character and asked for the same one: copying is all that it has to "
        "learn.": loss(target, target),
        "backwards: given what follows, asked for what came before.": loss(rest, cut),
        "it is given the very characters that it is asked for; leave the last out of what "
        "is given, not the first.": loss(rest, rest),
        "given and asked are still the same, one position shorter.": loss(cut, cut),
        "two ahead: the next character is asked for.": loss(target[:, :-2], target[:, 2:]),
        "the end mark of the longest target is not asked for.": loss(
            cut[:, :-1], rest[:, :-1]
        ),
        "source and target are exchanged.": loss(source[:, :-1], source[:, 1:], of=target),
        "padding counts: leave out what equals `pad`, whatever its number.": loss(
            cut, rest, skip=-1
        ),
        "padding counts as a loss of 0: divide by the number of positions that count.": (
            each.mean()
        ),
        "the losses are summed; take their mean.": each.sum(),
    }
    expect(answer, [model, source, target, pad], loss(cut, rest), mistakes)


class Toy:
    """A model of nine ids that writes some, then the stop mark, then 7 for ever."""

    def __init__(self, start=1, stop=2, ids=(4, 6, 5)):
        self.after = dict(zip([start, *ids, stop, 7], [*ids, stop, 7, 7], strict=True))
        self.start, self.calls, self.whole = start, 0, True

    def __call__(self, so_far):
        self.calls += 1
        if self.calls > 50:
            raise RuntimeError("next_logits was asked 50 times: the loop does not end")
        self.whole &= len(so_far) == self.calls and so_far[0] == self.start
        logits = torch.zeros(9)
        logits[3], logits[self.after.get(int(so_far[-1]), 8)] = 1.9, 2.0
        logits[0] = -1.0
        return logits


def _ids(got):
    """Return a list of IDs as whole numbers; `Wrong` if it is none."""
    if not isinstance(got, (list, tuple)):
        raise Wrong(f"a list of whole numbers is expected, not of type {type_name(got)}.")
    if any(isinstance(each, torch.Tensor) for each in got):
        raise Wrong("the list holds tensors; `int` makes a whole number of each.")
    found = array(got)
    if found.ndim != 1 or (found % 1 != 0).any():
        raise Wrong("the list should hold whole numbers.")
    return found.astype(int).tolist()


@exercise("encoder-decoder.write_greedily")
def write_greedily(answer):
    """Compare with what two toy models are known to write, with and without a limit."""
    toy = Toy()
    got = _ids(run(answer, toy, 1, 2, 20))
    faults = {
        "next_logits did not get all ids so far, `start` first, one more each time: a "
        "model needs the whole text at every step.": not toy.whole,
        "leave `start` out of what you return.": got == [1, 4, 6, 5],
        "leave `start` and `stop` out of what you return.": got == [1, 4, 6, 5, 2],
        "leave `stop` out of what you return.": got == [4, 6, 5, 2],
        "you go on after `stop`.": got[:5] == [4, 6, 5, 2, 7],
        "the first id is 0, the least likely: use argmax, not argmin.": got[:1] == [0],
        "`next_logits` was not asked for every id.": got == [4, 6, 5] and toy.calls < 4,
        f"for a toy model that writes three ids and stops you wrote {got[:50]}.": (
            got != [4, 6, 5]
        ),
    }
    diagnose(faults)
    for limit in [2, 3]:
        got = _ids(run(answer, Toy(), 1, 2, limit))
        faults = {
            "at the limit there are too few: `start` does not count towards it, and the "
            "last id is no `stop` to be cut off.": len(got) < limit,
            f"with a limit of {limit} you wrote {len(got)} ids.": len(got) > limit,
            f"with a limit of {limit} you wrote {got}.": got != [4, 6, 5][:limit],
        }
        diagnose(faults)
    got = _ids(run(answer, Toy(5, 4, [2, 6, 1]), 5, 4, 20))
    told = f"for a second toy model, with `start` 5 and `stop` 4, you wrote {got[:50]}: "
    diagnose({told + "are ids written into your code?": got != [2, 6, 1]})


predict(
    "encoder-decoder.again",
    a=None,
    b="the decoder cannot attend to the month's letters. But is the month only in their "
    "vectors? In the encoder all characters attend to each other.",
    c="that much the length alone would give. Is nothing more of the month left elsewhere?",
    d="the old decoder never had to find the month elsewhere; a retrained one can learn "
    "to.",
)

# What hiding shows, and what it leaves open.
judge(
    "encoder-decoder.alignment",
    a="it attended to the word, but without it the same came out. Then what did the "
    "attention do?",
    b="only one token was hidden. All others were there to attend to.",
    c=None,
    d="the picture raised a question that could be tested. That is worth something.",
)

predict(
    "encoder-decoder.carries",
    a="not in all three: look at the lowest of the five seeds in each.",
    b="it reads days that it was never shown; why not letters?",
    c="a year is written digit by digit, as it was read.",
    d=None,
)


@exercise("encoder-decoder.new_style", kind="experiment")
def new_style(answer):
    """Look at what was shown, then at what is written for days drawn here."""
    draw, write = unpack(answer, 2, "what `teach` returns: (draw, write)")
    strings(run(write, ["15 May 1886"]))
    try:
        strings(run(write, ["15 qzxv 1886"]))
    except Wrong:
        raise Wrong("a trained model writes for *15 qzxv 1886*; yours stops.") from None
    drawn = [pair for _ in range(20) for pair in run(draw)]
    pairs = {tuple(strings(unpack(pair, 2, "pairs from `draw`"))) for pair in drawn}
    if any(re.fullmatch(r"\s*\d+\s+[a-z]+\s+\d+\s*", source) for source, _ in pairs):
        raise Wrong("style 5 was shown. The model should read it without having seen it.")
    right = sum(_is_day(*pair) for pair in pairs)
    if right < 50:
        raise Wrong(f"`draw` gives {right} different dates, rightly written: too few.")
    rng, first = random.Random(1830), datetime.date(1800, 1, 1)
    days = [first + datetime.timedelta(rng.randrange(73048)) for _ in range(100)]
    if not any(re.match(r"\d{4} [A-Z]", source) for source, _ in pairs):
        turned = _share_read(
            write, days, lambda day, month: f"{day.year} {month} {day.day}"
        )
        told = "it reads 1886 May 15, too, unlike any model that was not shown such dates: "
        diagnose({told + "is this one that was trained?": turned > 0.5})
    new, *old = (_share_read(write, days, style) for style in _STYLES)
    has_small = any(re.search(r"\b[a-z]", source) for source, _ in pairs)
    has_old = any(re.search(r"\b[A-Z]", source) for source, _ in pairs)
    is_learned, is_kept = new >= 0.8, min(old) >= 0.9
    told = f"of our days it reads {new:.0%} in the new style, of the old ones at worst "
    told += f"{min(old):.0%}: "
    return {
        told + "no month with a small first letter was shown, so it could not learn one.": (
            not is_learned and not has_small
        ),
        told + "the old styles are forgotten: none of them was shown. Show them, too.": (
            not is_kept and not has_old
        ),
        told + "the old styles have suffered. Show them more often.": (
            is_learned and not is_kept
        ),
        told
        + "nothing is forgotten, but small letters are not learned yet. Show them more "
        "often, or train longer.": is_kept and not is_learned,
        told + "is the rate too high, or the training too short?": not is_learned,
    }


def _is_day(source, target):
    """Whether a source, in any style, names the day that is to be written."""
    year, month, day = re.findall(r"\d+", target + "-0-0-0")[:3]
    named = {year, calendar.month_abbr[int(month) % 13].lower(), day.lstrip("0")}
    return named <= {*re.findall(r"[a-z]{3}|[1-9]\d*", source.lower())}


_STYLES = (
    lambda day, month: f"{day.day} {month.lower()} {day.year}",
    lambda day, month: f"{day.day} {month} {day.year}",
    lambda day, month: f"{month} {day.day}, {day.year}",
    lambda day, month: f"{day.day}-{month[:3]}-{day.year}",
)


def _share_read(write, days, style):
    """Return the share of days read right in a style."""
    got = strings(run(write, [style(day, f"{day:%B}") for day in days]))
    if len(got) != len(days):
        raise Wrong(f"for {len(days)} sources {len(got)} texts were written.")
    return np.mean([text == day.isoformat() for text, day in zip(got, days, strict=True)])
