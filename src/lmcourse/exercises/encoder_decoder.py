"""Checks for the exercises of the chapter *encoder-decoder*."""

import calendar
import datetime
import math
import random
import re
from types import SimpleNamespace

import numpy as np
import torch
import torch.nn.functional as F

from lmcourse.exercises import Case, Faults, Wrong, exercise, judge, predict, run
from lmcourse.exercises.answers import Unfit, array, normal, strings, type_name, unpack


@exercise("encoder-decoder.cross_attention")
def cross_attention():
    """Check a reader's cross-attention.

    The answer is a function of Y (batch, targets, d_model), M (batch, sources, d_model),
    `real`, bool (batch, sources), True where there is a token and no padding, and the
    matrices W_Q, W_K and W_V, (d_model, d_head or d_value). It returns the output (batch,
    targets, d_value) and the weights (batch, targets, sources). Oracle: PyTorch's
    attention, on two sources of which one has padding.

    Yields
    ------
    Case
        How the answer is called (``ask``), the right result, and those of known mistakes.
    Faults
        What is measured of the answer, and how known mistakes show in it.
    """
    Y, M = normal(2, 5, 6, seed=1).double(), normal(2, 7, 6, seed=2).double()
    W_Q, W_K, W_V = (normal(6, n, seed=n).double() for n in (4, 4, 3))
    W_K = W_K.flip(0)  # another matrix than W_Q
    real = torch.arange(7) < torch.tensor([[4], [7]])  # the first text is the shorter
    M[~real] *= 3  # large scores of padding, from which a small number does not take enough
    inputs = (Y, M, real, W_Q, W_K, W_V)
    query, key, value = Y @ W_Q, M @ W_K, M @ W_V
    scores = torch.einsum("btd,bsd->bts", query, key) / 2  # (batch, targets, sources)
    output = F.scaled_dot_product_attention(query, key, value, real[:, None])
    swap = _masked(Y @ W_K @ (M @ W_Q).mT / 2, real[:, None])
    mistakes = {"W_Q and W_K are exchanged.": swap} | _wrong_weights(scores, real)
    yield Faults(lambda answer: _shapes(_both(answer, inputs)), _WRONG_SHAPES)
    weights = _masked(scores, real[:, None])
    yield Case(inputs, weights, mistakes, ask=lambda answer: _both(answer, inputs)[1])
    mistakes = {
        "the weights are right; what is taken is the plain mean of the values.": (
            value.mean(1, keepdim=True).expand(2, 5, 3)
        ),
        "the weights are right, but the padding's values are taken, too: use the weights "
        "after the mask.": scores.softmax(-1) @ value,
    }
    yield Case(inputs, output, mistakes, ask=lambda answer: _both(answer, inputs)[0])


def _both(answer, inputs):
    """Call a reader's cross-attention; return its output and its weights.

    Parameters
    ----------
    answer : callable
        The reader's function.
    inputs : sequence of Tensor
        What it is called with: Y, M, `real`, W_Q, W_K and W_V.

    Returns
    -------
    tuple of two
        As the answer gave them. Anything but a pair is `Unfit`.
    """
    got = run(answer, *inputs)
    got = [got] if isinstance(got, (torch.Tensor, np.ndarray)) else got
    return unpack(got, 2, "what is taken and the weights, in this order")


def _shapes(both):
    """Return both shapes, and in which texts rows of the weights are NaN.

    Parameters
    ----------
    both : (array-like, array-like)
        An answer's output, (batch, targets, d_value) if right, and its weights, (batch,
        targets, sources).

    Returns
    -------
    SimpleNamespace
        ``output`` and ``weights``, shapes, tuples of int; ``broken``, a list with a bool
        for each text: whether some row of its weights is all NaN. It is empty if the
        weights have not three axes.
    """
    output, weights = map(array, both)
    broken = [np.isnan(text).all(-1).any() for text in weights] if weights.ndim == 3 else []
    return SimpleNamespace(output=output.shape, weights=weights.shape, broken=broken)


# What the reader is told → whether it is so of what `_shapes` returns.
_WRONG_SHAPES = {
    "what is taken and the weights, in this order; yours are the other way round.": (
        lambda seen: (seen.output, seen.weights) == ((2, 5, 7), (2, 5, 3))
    ),
    "the two texts are exchanged: queries come from what is written, keys and values from "
    "what was read. The weights are (batch, targets, sources).": (
        lambda seen: seen.weights == (2, 7, 5)
    ),
    "whole rows were hidden; padding in the source is a column of the scores.": (
        lambda seen: seen.weights == (2, 5, 7) and seen.broken == [True, False]
    ),
    "what is written attends to itself; keys and values come from the memory.": (
        lambda seen: seen.weights == (2, 5, 5)
    ),
}


def _masked(scores, allowed, dim=-1):
    """Return the softmax along an axis of the scores that are allowed; 0 elsewhere.

    Parameters
    ----------
    scores : Tensor
    allowed : bool Tensor
        Of a shape that broadcasts to that of ``scores``.
    dim : int

    Returns
    -------
    Tensor
        Of the shape of ``scores``. Where nothing is allowed it is NaN.
    """
    return scores.masked_fill(~allowed, -math.inf).softmax(dim)


def _wrong_weights(scores, real):
    """Return the weights that known mistakes in cross-attention give.

    Parameters
    ----------
    scores : Tensor of shape (batch, targets, sources)
        Already divided by 2, the root of d_head; d_model is 6.
    real : bool Tensor of shape (batch, sources)
        True where there is a token, False at padding.

    Returns
    -------
    dict of str to Tensor of shape (batch, targets, sources)
        What the reader is told → the weights that the mistake gives.
    """
    real = real[:, None]
    causal = torch.ones(scores.shape[1:]).tril().bool()
    unmasked = scores.softmax(-1)
    # In a text without padding nothing is left to attend to: NaN, as in an answer.
    inverse = torch.where(real.all(-1, keepdim=True), math.nan, _masked(scores, ~real))
    return {
        "padding gets weight: the mask is missing.": unmasked,
        "10 is taken from the scores of padding, which may still be the greatest; "
        "`-torch.inf` hides.": (scores - 10.0 * ~real).softmax(-1),
        "the mask is the wrong way round: `real` is True where there is a token.": inverse,
        "you mask after the softmax: the rows no longer sum to 1.": unmasked * real,
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
def one_ahead():
    """Check a reader's loss of an encoder-decoder: each position predicts the next token.

    The answer is a function of a model, source and target, int64 (batch, tokens), and the
    id of padding, which returns the mean loss in nats. The model is a callable from a
    source and the target so far to logits. Oracle: cross-entropy on a toy decoder, with one
    id for padding, then with another.

    Yields
    ------
    Case
        Arguments, the right result, and the results that known mistakes give.
    """
    for pad in (0, 7):
        yield _one_ahead(pad)


def _one_ahead(pad):
    """Return the case of a loss of the next token, with a toy decoder.

    The decoder sees the source and what is given, up to each position.

    ``pad`` : int, the id of padding. Returns a `Case`: what the answer is called with
    (model, source, target, ``pad``), the right loss, and known mistakes: what the reader is
    told → the loss that the mistake gives.
    """
    table = 2 * normal(8, 8, seed=4).double()
    source = torch.tensor([[3, 4], [5, 6]])
    target = torch.tensor([[1, 4, 3, 2, pad, pad], [1, 6, 3, 5, 4, 2]])

    def model(source, given):
        """Return logits that depend on the whole source and on what was given so far.

        ``source``, ``given`` : int64 Tensors (batch, sources) and (batch, targets). Returns
        a Tensor (batch, targets, vocab_size).
        """
        past = table[given].cumsum(1)  # (batch, given, vocab_size)
        return past + table[source].sum(1, keepdim=True)

    def loss(given, wanted, of=source, to=lambda x: x, **how):
        """Return the cross-entropy of the toy decoder's predictions, padding left out.

        Parameters
        ----------
        given : int64 Tensor of shape (batch, targets)
            What the decoder reads.
        wanted : int64 Tensor of shape (batch, tokens)
            What it is to predict at the first positions of ``given``; logits of further
            ones are not used.
        of : int64 Tensor of shape (batch, sources)
            The source.
        to : callable
            Changes the logits, (batch, targets, vocab_size).
        **how
            ``skip``, the id that does not count (default: padding), and options of
            PyTorch's ``cross_entropy``.

        Returns
        -------
        Tensor
            In nats a token, one mean unless an option says otherwise.
        """
        logits = to(model(of, given))[:, : wanted.shape[1]]
        return F.cross_entropy(logits.mT, wanted, ignore_index=how.pop("skip", pad), **how)

    cut = target[:, :-1]
    rest = target[:, 1:]
    rows = [loss(cut[[i]], rest[[i]], of=source[[i]]) for i in range(2)]
    losses = loss(cut, rest, reduction="none")
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
        "what is given and what is asked are still the same, one position shorter.": (
            loss(cut, cut)
        ),
        "this asks for the character two ahead; the next one is wanted.": loss(
            target[:, :-2], target[:, 2:]
        ),
        "the end mark of the longest target is not asked for.": loss(
            cut[:, :-1], rest[:, :-1]
        ),
        "source and target are exchanged.": loss(source[:, :-1], source[:, 1:], of=target),
        "padding counts: leave out what equals `pad`, whatever its number.": loss(
            cut, rest, skip=-1
        ),
        "padding counts as a loss of 0: divide by the number of positions that count.": (
            losses.mean()
        ),
        "the losses are summed; take their mean.": losses.sum(),
    }
    return Case([model, source, target, pad], loss(cut, rest), mistakes)


class Toy:
    """A model of nine ids that writes some, then the stop id, then 7 for ever.

    Parameters
    ----------
    start, stop : int
        The ids that begin and end a text.
    ids : sequence of int
        What it writes between them.

    Attributes
    ----------
    calls : int
        How often it was called.
    whole : bool
        Whether it was given all ids so far at every call.
    """

    def __init__(self, start=1, stop=2, ids=(4, 6, 5)):
        """Note which id follows which: ``start``, the ``ids``, ``stop``, and 7 for ever.

        ``start`` and ``stop`` : int; ``ids`` : sequence of int, what the model writes.
        ``after`` is a dict from an id to the next; ``calls`` and ``whole`` are what
        `__call__` notes.
        """
        self.after = dict(zip([start, *ids, stop, 7], [*ids, stop, 7, 7], strict=True))
        self.start = start
        self.calls = 0
        self.whole = True

    def __call__(self, so_far):
        """Return logits (9,), the highest for what follows the last id of ``so_far``.

        ``so_far`` : sequence of int. ``calls`` counts the calls; ``whole`` stays True as
        long as all ids were given each time, the start first and one more at every call.
        The 51st call is a RuntimeError.
        """
        self.calls += 1
        if self.calls > 50:
            raise RuntimeError("next_logits was asked 50 times: the loop does not end")
        self.whole &= len(so_far) == self.calls and so_far[0] == self.start
        logits = torch.zeros(9)
        logits[3], logits[self.after.get(int(so_far[-1]), 8)] = 1.9, 2.0
        logits[0] = -1.0
        return logits


def _ids(got):
    """Return an answer's list of ids as whole numbers; `Unfit` if it is none.

    Parameters
    ----------
    got : list or tuple of int
        The numbers may also be floats without a fraction, or arrays without axes.

    Returns
    -------
    list of int
    """
    if not isinstance(got, (list, tuple)):
        raise Unfit(f"a list of whole numbers is expected, not of type {type_name(got)}.")
    ids = array(got)
    if ids.ndim != 1 or (ids % 1 != 0).any():
        raise Unfit("the list should hold whole numbers.")
    return ids.astype(int).tolist()


def _written(start, stop, limit, ids=(4, 6, 5)):
    """Return a function that lets an answer write with a toy model and looks at it.

    Parameters
    ----------
    start, stop : int
        The ids that begin and end a text.
    limit : int
        How many ids may be written.
    ids : sequence of int
        What the toy model writes.

    Returns
    -------
    callable
        From the reader's function to a SimpleNamespace: ``ids``, ``has_tensors``,
        ``limit``, ``shown``, ``count``, ``calls`` and ``whole``, which its docstring
        explains.
    """

    def look(answer):
        """Return the ids that an answer writes, how many, and what the toy model was asked.

        Parameters
        ----------
        answer : callable
            The reader's, from a model, start, stop and limit to a list of ids. The model is
            a callable from all ids so far to logits.

        Returns
        -------
        SimpleNamespace
            ``ids``, a list of int, ``has_tensors``, whether Tensors stand in the answer's
            list, and ``limit``; unless they do also ``shown`` (the first 50 ids), ``count``
            of the ids, ``calls`` of the model, and ``whole``, whether it was always given
            all ids so far.
        """
        toy = Toy(start, stop, ids)
        got = run(answer, toy, start, stop, limit)
        if isinstance(got, (list, tuple)) and any(map(torch.is_tensor, got)):
            return SimpleNamespace(ids=[], has_tensors=True, limit=limit)
        written = _ids(got)
        return SimpleNamespace(
            ids=written,
            shown=written[:50],
            has_tensors=False,
            count=len(written),
            limit=limit,
            calls=toy.calls,
            whole=toy.whole,
        )

    return look


@exercise("encoder-decoder.write_greedily")
def write_greedily():
    """Check a reader's loop that writes the likeliest token, again and again.

    The answer is a function of `next_logits` (a callable from a list of all ids so far to
    logits (vocab_size,)), `start`, `stop` and `limit`, int, which returns the list of ids
    between start and stop, ``limit`` of them at most. Oracle: what two toy models (`Toy`)
    are known to write, with and without a limit. What may be wrong with the first is in
    `_WRONGLY_WRITTEN`.

    Yields
    ------
    Faults
        What is measured of the answer, and how known mistakes show in it.
    """
    yield Faults(_written(1, 2, 20), _WRONGLY_WRITTEN)
    limits = {
        "at the limit there are too few: `start` does not count towards it, and the last "
        "id is no `stop` to be cut off.": lambda seen: seen.count < seen.limit,
        "with a limit of {limit} you wrote {count} ids.": (
            lambda seen: seen.count > seen.limit
        ),
        "with a limit of {limit} you wrote {shown}.": (
            lambda seen: seen.ids != [4, 6, 5][: seen.limit]
        ),
    }
    for limit in (2, 3):
        yield Faults(_written(1, 2, limit), limits)
    second = (
        "for a second toy model, with `start` 5 and `stop` 4, you wrote {shown}: are ids "
        "written into your code?"
    )
    yield Faults(
        _written(5, 4, 20, (2, 6, 1)), {second: lambda seen: seen.ids != [2, 6, 1]}
    )


# What the reader is told → whether it is so of what an answer wrote (`_written`).
_WRONGLY_WRITTEN = {
    "the list holds tensors; `int` makes a whole number of each.": (
        lambda seen: seen.has_tensors
    ),
    "next_logits did not get all ids so far, `start` first, one more each time: a model "
    "needs the whole text at every step.": lambda seen: not seen.whole,
    "leave `start` out of what you return.": lambda seen: seen.ids == [1, 4, 6, 5],
    "leave `start` and `stop` out of what you return.": (
        lambda seen: seen.ids == [1, 4, 6, 5, 2]
    ),
    "leave `stop` out of what you return.": lambda seen: seen.ids == [4, 6, 5, 2],
    "you go on after `stop`.": lambda seen: seen.ids[:5] == [4, 6, 5, 2, 7],
    "the first id is 0, the least likely: use argmax, not argmin.": (
        lambda seen: seen.ids[:1] == [0]
    ),
    "`next_logits` was not asked for every id.": (
        lambda seen: seen.ids == [4, 6, 5] and seen.calls < 4
    ),
    "for a toy model that writes three ids and stops you wrote {shown}.": (
        lambda seen: seen.ids != [4, 6, 5]
    ),
}


predict(
    "encoder-decoder.again",
    a=None,
    b="the decoder cannot attend to the month's letters. But is the month only in their "
    "vectors? In the encoder all characters attend to each other.",
    c="the length alone would give that much. Is nothing more of the month left elsewhere?",
    d="the old decoder never had to find the month elsewhere; a retrained one can learn "
    "to.",
)

# What hiding shows, and what it leaves open.
judge(
    "encoder-decoder.alignment",
    a="the model attended to the word, but when the word was hidden it wrote the same. "
    "Then what did the attention do?",
    b="only one token was hidden. All others were there to attend to.",
    c=None,
    d="the picture raised a question that could be tested. That is worth something.",
)

predict(
    "encoder-decoder.carries",
    a="not in all three: look at the lowest of the five seeds in each.",
    b="it reads days that it was never shown; why not letters?",
    c="the model reads a year digit by digit, and writes it in the same way.",
    d=None,
)


@exercise("encoder-decoder.new_style", kind="experiment")
def new_style():
    """Check the training that a reader gave a model so that it reads a new style of dates.

    The answer is (draw, write), as the page's `teach` returns it: ``draw`` returns a list
    of pairs of str, such as ("15 may 1886", "1886-05-15"), on which the model was trained;
    ``write`` takes a list of str, sources, and returns a list of str, what the model
    writes. First it is looked at which dates were shown (`_shown`). Then the model reads
    days that are drawn here (`_read`), in the new style, months with a small first letter,
    and in the old ones. It must read 80 % in the new style (`_NEW`), and 90 % in every old
    one (`_OLD`).

    Yields
    ------
    Faults
        What is measured of the answer, and how known mistakes show in it.
    """
    shown = {
        "a trained model writes for *15 qzxv 1886*; yours stops.": lambda seen: seen.stops,
        "style 5 was shown. The model should read it without having seen it.": (
            lambda seen: any(_FIFTH.fullmatch(source) for source, _ in seen.pairs)
        ),
        "`draw` gives {right} different dates, rightly written: too few.": (
            lambda seen: seen.right < 50
        ),
    }
    yield Faults(_shown, shown)
    summary = "of our days it reads {new:.0%} in the new style, of the old ones at worst "
    summary += "{old:.0%}: "
    learned = {
        "it reads 1886 May 15, too, unlike any model that was not shown such dates: is "
        "this one that was trained?": lambda seen: seen.turned > 0.5,
        f"{summary}no month with a small first letter was shown, so it could not learn "
        "one.": lambda seen: seen.new < _NEW and not seen.has_small,
        f"{summary}the old styles are forgotten: none of them was shown. Show them, too.": (
            lambda seen: seen.old < _OLD and not seen.has_old
        ),
        f"{summary}the old styles have suffered. Show them more often.": (
            lambda seen: seen.new >= _NEW and seen.old < _OLD
        ),
        f"{summary}nothing is forgotten, but small letters are not learned yet. Show them "
        "more often, or train longer.": lambda seen: seen.new < _NEW and seen.old >= _OLD,
        f"{summary}is the rate too high, or the training too short?": (
            lambda seen: seen.new < _NEW
        ),
    }
    yield Faults(_read, learned)


_NEW, _OLD = 0.8, 0.9  # shares to be read right in the new style, and in each old one
# A date in the page's fifth style, which must not be shown, such as "15 may 1886".
_FIFTH = re.compile(r"\s*\d+\s+[a-z]+\s+\d+\s*")


def _shown(answer):
    """Look at the dates that a reader's `draw` shows, and try `write` on an unknown month.

    Parameters
    ----------
    answer : pair of callable
        ``draw`` returns a batch, a list of pairs (source, target) such as ("15 may 1886",
        "1886-05-15"); ``write`` takes a list of sources and returns a list of str.

    Returns
    -------
    SimpleNamespace
        ``stops``, whether ``write`` fails at letters that are no month. If not, also
        ``pairs``, a set of (str, str) from twenty batches, ``right``, how many name their
        day, and ``write``.

    Raises
    ------
    Unfit
        If ``draw`` or ``write`` returns something else.
    """
    draw, write = unpack(answer, 2, "what `teach` returns: (draw, write)")
    strings(run(write, ["15 May 1886"]))
    try:
        strings(run(write, ["15 qzxv 1886"]))
    except Wrong:
        return SimpleNamespace(stops=True)
    drawn = [pair for _ in range(20) for pair in run(draw)]
    pairs = {tuple(strings(unpack(pair, 2, "pairs from `draw`"))) for pair in drawn}
    right = sum(_is_day(*pair) for pair in pairs)
    return SimpleNamespace(stops=False, pairs=pairs, right=right, write=write)


def _read(answer):
    """Let a reader's model read a hundred days drawn here, in new and old styles.

    Parameters
    ----------
    answer : pair of callable
        ``draw`` returns a batch, a list of pairs (source, target) such as ("15 may 1886",
        "1886-05-15"); ``write`` takes a list of sources and returns a list of str.

    Returns
    -------
    SimpleNamespace
        ``stops``, False; ``pairs``, a set of (str, str) that ``draw`` showed, ``right``,
        how many of them name their day, and ``write``; ``new``, the share read right in the
        new style, "15 may 1886"; ``old``, the lowest of the old styles (`_STYLES` has the
        new one first); ``turned``, the share with the year first, "1886 May 15", 0 if such
        sources were shown; ``has_small`` and ``has_old``, whether words with small and with
        capital first letters were shown.
    """
    seen = _shown(answer)
    rng = random.Random(1830)
    first = datetime.date(1800, 1, 1)
    days = [first + datetime.timedelta(rng.randrange(73048)) for _ in range(100)]
    sources = [source for source, _ in seen.pairs]
    seen.turned = 0.0
    if not any(re.match(r"\d{4} [A-Z]", source) for source in sources):
        seen.turned = _share_read(seen.write, days, _year_first)
    seen.new, *old = (_share_read(seen.write, days, style) for style in _STYLES)
    seen.old = min(old)
    seen.has_small = any(re.search(r"\b[a-z]", source) for source in sources)
    seen.has_old = any(re.search(r"\b[A-Z]", source) for source in sources)
    return seen


def _is_day(source, target):
    """Return whether a source, in any style, names the day that is to be written.

    Parameters
    ----------
    source : str
        For example "15 may 1886"; months may be shortened to three letters.
    target : str
        The day as "1886-05-15"; what is missing at the end counts as 0.

    Returns
    -------
    bool
        Whether the year, the day without leading zero and the month's first three letters
        all stand in the source.
    """
    year, month, day = re.findall(r"\d+", target + "-0-0-0")[:3]
    named = {year, calendar.month_abbr[int(month) % 13].lower(), day.lstrip("0")}
    return named <= {*re.findall(r"[a-z]{3}|[1-9]\d*", source.lower())}


# How days are written, from a date and its month's name: the new style, then the old ones.
_STYLES = (
    lambda day, month: f"{day.day} {month.lower()} {day.year}",
    lambda day, month: f"{day.day} {month} {day.year}",
    lambda day, month: f"{month} {day.day}, {day.year}",
    lambda day, month: f"{day.day}-{month[:3]}-{day.year}",
)


def _year_first(day, month):
    """Write a day with the year first, a style that no model was shown: "1886 May 15".

    Parameters
    ----------
    day : datetime.date
    month : str
        Its name.

    Returns
    -------
    str
    """
    return f"{day.year} {month} {day.day}"


def _share_read(write, days, style):
    """Return the share of days that a reader's model reads right in a style.

    Parameters
    ----------
    write : callable
        From a list of str, sources, to a list of str, what the model writes; right is a day
        as "1886-05-15".
    days : list of datetime.date
    style : callable
        From a date and its month's name to the source, such as "15 May 1886".

    Returns
    -------
    float
        From 0 to 1.

    Raises
    ------
    Unfit
        If there are not as many texts as days.
    """
    got = strings(run(write, [style(day, f"{day:%B}") for day in days]))
    if len(got) != len(days):
        raise Unfit(f"for {len(days)} sources {len(got)} texts were written.")
    return np.mean([text == day.isoformat() for text, day in zip(got, days, strict=True)])
