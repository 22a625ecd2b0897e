"""Checks for the exercises of the chapter *pretraining*."""

import math
from functools import partial
from types import SimpleNamespace

import torch
import torch.nn.functional as F

from lmcourse.exercises import Case, Faults, exercise, judge, predict, run
from lmcourse.exercises.answers import Unfit, array, normal, unpack


def _chosen(answer, ids, share, generator, special=(0, 1, 2, 3, 4)):
    """Return which positions an answer chooses to mask.

    Parameters
    ----------
    answer : callable
        The reader's, called with ids, special ids (an int64 Tensor), share and generator.
    ids : int64 Tensor of shape (texts, tokens)
    share : float
        Which part of the ordinary tokens is to be chosen, from 0 to 1.
    generator : torch.Generator
    special : sequence of int
        Ids that may not be chosen: padding, [CLS] and the like.

    Returns
    -------
    bool Tensor of shape (texts, tokens)
        True at the chosen positions.

    Raises
    ------
    Unfit
        If the answer returns anything else.
    """
    chosen = array(run(answer, ids, torch.tensor(special), share, generator))
    if chosen.dtype != bool or chosen.shape != tuple(ids.shape):
        raise Unfit("return a tensor of True and False of the shape of ids.")
    return torch.as_tensor(chosen)


def _by_columns(seen):
    """Return whether whole texts, or whole columns, are chosen in the first draw.

    Texts count as chosen whole if those with any chosen token have more than 0.6 of their
    ordinary tokens chosen, on average; columns if all texts have the same positions chosen.

    ``seen`` : SimpleNamespace with ``first`` and ``ordinary``, bool Tensors (texts,
    tokens): what is chosen, and what may be (ordinary tokens, no special ones).
    """
    first = seen.first
    ordinary = seen.ordinary
    hidden = (first & ordinary).sum(1) / ordinary.sum(1)  # (texts,)
    return hidden[hidden > 0].mean() > 0.6 or (first == first[:1])[ordinary].all()


def _one_sided(seen):
    """Return whether one half of each text is chosen more than twice as often as the other.

    Both halves of a text's ordinary tokens are summed up over all texts.

    ``seen`` : SimpleNamespace with ``first``, ``second`` and ``ordinary``, bool Tensors
    (texts, tokens): what two draws choose, and what may be chosen (ordinary tokens, no
    special ones).
    """
    chosen = seen.first | seen.second
    ordinary = seen.ordinary
    first_half = ordinary.cumsum(1) <= ordinary.sum(1, keepdim=True) / 2
    shares = [chosen[ordinary & half].double().mean() for half in (first_half, ~first_half)]
    return 2 * min(shares) < max(shares)


# What may be wrong with two draws: what the reader is told → whether it is so. Seen are
# ``first``, ``second`` and ``ordinary``, bool (texts, tokens): what was chosen, and what is
# text; and ``moved``, whether PyTorch's own random state has changed.
DRAWN = {
    "special tokens are chosen.": lambda seen: (seen.first & ~seen.ordinary).any(),
    "two draws choose the same positions: draw with `generator`.": (
        lambda seen: torch.equal(seen.first, seen.second)
    ),
    "whole texts or whole columns are chosen: draw for each position.": _by_columns,
    "in each text, one half is hidden at least twice as often as the other.": _one_sided,
    "PyTorch's global random state has changed: draw with `generator`.": lambda seen: (
        seen.moved
    ),
}


def _chosen_positions(answer):
    """Let an answer choose: all, none, among other special ids, and twice among many.

    Special ids are 0 to 4, in the third of these 7 and 8.

    Parameters
    ----------
    answer : callable
        The reader's, from (ids, special, share, generator) to a bool Tensor like ``ids``.

    Returns
    -------
    SimpleNamespace
        Bool Tensors (2, 6), of two texts: ``every`` and ``none``, what is chosen at shares
        of 1 and 0; ``others``, the same at 1 with other special ids; ``text``, where
        ordinary tokens are. ``ids``, int64, the two texts. Bool Tensors (400, 20):
        ``first`` and ``second``, two draws of 400 texts at 0.15; ``ordinary``, what may be
        chosen there. Floats: ``share``, which part is chosen in the first; ``both``, the
        part of the pairs of neighbours of which both are. ``moved`` : bool, whether
        PyTorch's own generator was used.
    """
    ids = torch.tensor([[2, 7, 9, 6, 3, 0], [2, 5, 8, 3, 0, 0]])
    generator = torch.Generator().manual_seed(0)
    state = torch.get_rng_state()
    every, none = (_chosen(answer, ids, share, generator) for share in (1.0, 0.0))
    many = torch.randint(5, 90, (400, 20), generator=generator)
    first, second = (_chosen(answer, many, 0.15, generator) for _ in range(2))
    return SimpleNamespace(
        ids=ids,
        text=ids >= 5,
        every=every,
        none=none,
        others=_chosen(answer, ids, 1.0, generator, special=(7, 8)),
        first=first,
        second=second,
        ordinary=many > 0,
        share=first.double().mean().item(),
        both=(first[:, 1:] & first[:, :-1]).double().mean().item(),
        moved=not torch.equal(state, torch.get_rng_state()),
    )


def _ignores_special(seen):
    """Return whether an answer does not heed which ids are called special.

    They were 7 and 8, at a share of 1. So 7 and 8 must not be chosen, and 0 must be.

    ``seen`` : SimpleNamespace with ``ids``, int64, and ``others``, bool, both of shape
    (texts, tokens): the ids of two texts, and what was chosen in them.
    """
    special = (seen.ids == 7) | (seen.ids == 8)
    return seen.others[special].any() or not seen.others[seen.ids == 0].all()


@exercise("pretraining.places", kind="spot the bug")
def places():
    """Check which tokens a reader's function chooses to hide.

    The answer is a function of ids (texts, tokens), the special ids (an int64 Tensor), a
    share from 0 to 1 and a `torch.Generator`, which returns a bool Tensor like ids: True at
    what is hidden. Oracle: none is needed for shares of 1 and 0; two random draws must
    differ, and have the share. `DRAWN` says what else may be wrong with two draws.

    Yields
    ------
    Faults
        What is measured of the answer, and how known mistakes show in it.
    """
    faults = {
        "with a share of 1, padding is left alone, but [CLS] or [SEP] is chosen: all ids "
        "in `special` are to be left alone.": (
            lambda seen: (
                not seen.every[seen.ids == 0].any() and seen.every[~seen.text].any()
            )
        ),
        "with a share of 1, special tokens are chosen, too: padding, [CLS], [SEP]. "
        "What would a model learn from predicting them?": (
            lambda seen: (seen.every & ~seen.text).any()
        ),
        "with a share of 1, some ordinary tokens are left out.": (
            lambda seen: (seen.text & ~seen.every).any()
        ),
        "with a share of 0, something is chosen.": lambda seen: seen.none.any(),
        "`special` is not used: in another vocabulary, special tokens have other ids.": (
            _ignores_special
        ),
        "with a share of 0.15, 85 % of the tokens are chosen: which way round is the "
        "comparison?": (lambda seen: seen.share > 0.8),
        **DRAWN,
        "with a share of 0.15, {share:.0%} of the tokens are chosen.": lambda seen: (
            abs(seen.share - 0.15) > 0.03
        ),
        "in {both:.0%} of the pairs of neighbours both are chosen. If each position "
        "were drawn by itself, it would be 2 %.": (
            lambda seen: abs(seen.both - 0.0225) > 0.01
        ),
    }
    yield Faults(_chosen_positions, faults)


predict(
    "pretraining.ever_asked",
    a=None,
    b="that is what ten independent draws would come to. How many draws were there?",
    c="every position is predicted sooner or later only if the choice is made afresh each "
    "time. How often was it made here?",
)


@exercise("pretraining.loss", kind="spot the bug")
def loss():
    """Check a reader's loss of the hidden tokens.

    The answer is a function of logits (texts, tokens, vocab_size), ids (texts, tokens),
    which are to be predicted, and `chosen`, bool (texts, tokens), the positions that count.
    It returns a mean in nats. Oracle: PyTorch's cross-entropy at the chosen positions.

    Yields
    ------
    Case
        Arguments, the right result, and the results that known mistakes give.
    """
    logits = 2 * normal(3, 6, 9, seed=0).double()  # (batch, tokens, vocab_size)
    ids = torch.randint(9, (3, 6), generator=torch.Generator().manual_seed(1))
    ids[0, 1] = 0  # an id like others
    chosen = torch.zeros(3, 6, dtype=torch.bool)
    chosen[0, [1, 4]] = chosen[1, 2] = chosen[2, [0, 3, 5]] = True
    each = F.cross_entropy(logits.mT, ids, reduction="none")  # (batch, tokens)
    mistakes = _mistakes(logits, ids, chosen, each)
    yield Case([logits, ids, chosen], each[chosen].mean(), mistakes)


def _mistakes(logits, ids, chosen, each):
    """Return the losses of the hidden tokens that known mistakes give.

    They are computed from other positions, from other logits or as another sum.

    Parameters
    ----------
    logits : Tensor of shape (texts, tokens, vocab_size)
    ids : int64 Tensor of shape (texts, tokens)
        What is to be predicted.
    chosen : bool Tensor of shape (texts, tokens)
        The positions that count.
    each : Tensor of shape (texts, tokens)
        The loss at every position, in nats.

    Returns
    -------
    dict of str to Tensor without axes
        What is said of the mistake → the loss that it gives.
    """
    right = ids[chosen]
    probs = logits[chosen].softmax(-1)
    equal_logits = F.cross_entropy((logits * chosen[..., None]).mT, ids)
    text_means = [row[c].mean() for row, c in zip(each, chosen, strict=True)]
    of_probs = F.cross_entropy(probs, right)
    target_0 = F.cross_entropy(logits.mT, ids * chosen)
    over_tokens = F.nll_loss(logits.log_softmax(1)[chosen], right)
    total = each[chosen].sum()
    takes = "`nll_loss` takes log probabilities"
    return {
        "all positions count: the model is rewarded for copying what was never "
        "hidden.": each.mean(),
        "`cross_entropy` takes logits; it was given what a softmax returned.": of_probs,
        f"{takes}: `log_softmax` first.": F.nll_loss(logits[chosen], right),
        f"{takes}: the logarithm is missing.": F.nll_loss(probs, right),
        "positions that were not chosen have all their logits set to one number, and "
        "they still count.": equal_logits,
        "positions that were not chosen have id 0 as their target, and they still "
        "count.": target_0,
        "only the positions that were *not* chosen count.": each[~chosen].mean(),
        "the losses are divided by the number of all positions.": total / each.numel(),
        "the losses are divided by the number of texts.": total / len(each),
        "id 0 is left out of the mean; here it is a token like any other.": each[
            chosen & (ids != 0)
        ].mean(),
        "these are bits; the natural logarithm is wanted.": total
        / len(right)
        / math.log(2),
        "the softmax is over the tokens, not over the vocabulary.": over_tokens,
        "this is the exponential of the loss.": (total / len(right)).exp(),
        "the losses are summed; take their mean.": total,
        "the sign is wrong: a loss is minus the logarithm.": -each[chosen].mean(),
        "each text is averaged by itself; every chosen position should count the "
        "same.": sum(text_means) / 3,
    }


def _chosen_blanks(answer):
    """Let an answer choose in texts of its own, twice at one share and once at another.

    The shares are 0.15 and 0.3. Each of 400 texts has [CLS] (2) first, [SEP] (3) last, then
    padding (0).

    Parameters
    ----------
    answer : callable
        The reader's, from ids, special ids, share and generator to a bool Tensor.

    Returns
    -------
    SimpleNamespace
        Bool Tensors (400, 30): ``first`` and ``second``, the draws at 0.15; ``ordinary``,
        what may be chosen; ``ever``, what any of the three draws chose. ``moved``, bool,
        whether PyTorch's own generator was used. Floats: ``one`` and ``two``, the parts of
        the ordinary tokens chosen at 0.15 and at 0.3; ``both``, the part of the chosen
        tokens in ``first`` that have both neighbours unchosen.
    """
    generator = torch.Generator().manual_seed(7)
    ids = torch.randint(5, 90, (400, 30), generator=generator)
    end = torch.randint(20, 30, (400, 1), generator=generator)
    ids = ids.masked_fill(torch.arange(30) > end, 0).scatter(1, end, 3)
    ids[:, 0] = 2
    ordinary = ids >= 5
    state = torch.get_rng_state()
    shares = (0.15, 0.15, 0.3)
    first, second, more = (_chosen(answer, ids, share, generator) for share in shares)
    alone = first & ~first.roll(1, 1) & ~first.roll(-1, 1)
    return SimpleNamespace(
        first=first,
        second=second,
        ordinary=ordinary,
        moved=not torch.equal(state, torch.get_rng_state()),
        ever=first | second | more,
        one=first[ordinary].double().mean().item(),
        two=more[ordinary].double().mean().item(),
        both=(alone.sum() / first.sum()).item(),
    )


@exercise("pretraining.runs", kind="experiment")
def runs():
    """Check a reader's function that hides runs of neighbouring tokens.

    The answer is a function of ids (texts, tokens), the special ids (an int64 Tensor), a
    share and a `torch.Generator`, which returns a bool Tensor like ids. Oracle: the hidden
    tokens that keep both neighbours are counted, in texts made here, at two shares. `DRAWN`
    says what else may be wrong with two draws.

    Yields
    ------
    Faults
        What is measured of the answer, and how known mistakes show in it.
    """
    faults = DRAWN | {
        "with shares of 0.15 and 0.3, {one:.0%} and {two:.0%} of the tokens are hidden.": (
            lambda seen: abs(seen.one - 0.15) > 0.03 or abs(seen.two - 0.3) > 0.05
        ),
        "some positions are never hidden, so the model never has to predict them.": (
            lambda seen: not seen.ever[:, 1:29].any(0).all()
        ),
        "{both:.0%} of the blanks keep both neighbours; at most 10 % may.": lambda seen: (
            seen.both > 0.1
        ),
    }
    yield Faults(_chosen_blanks, faults)


def _denoised(ids, spans, names, answer):
    """Return source and target of an answer for one text, and what is right (T5).

    In the source, a sentinel stands in place of each span that was cut out. The target has
    each sentinel followed by the ids it replaced, then one more sentinel.

    Parameters
    ----------
    ids : list of int
        The text.
    spans : list of (int, int)
        What is cut out: first position, and the one after the last.
    names : list of int
        The sentinels' ids, one more than spans at least.
    answer : callable
        From these three to two lists of ids.

    Returns
    -------
    SimpleNamespace
        ``ids`` and ``spans``, as given; ``names``, the sentinels that are used; ``named``,
        a list of (sentinel, ids cut out), one for each span; ``source`` and ``asked``, the
        answer's source and target; ``right`` and ``wanted``, the right source and target;
        ``first``, the first span, ``inside``, its ids. Of two mistakes: ``closed``, the
        target if a span's end belongs to it, and ``forwards``, the source if positions move
        after the first cut.

    Raises
    ------
    Unfit
        If the answer does not return two lists.
    """
    got = unpack(run(answer, ids, spans, names), 2, "two lists: source and target")
    source, asked = (array(part).tolist() for part in got)
    if not (isinstance(source, list) and isinstance(asked, list)):
        raise Unfit("two lists of ids are expected, source and target; these are numbers.")
    right, wanted = _cut(ids, spans, names)
    named = [(name, ids[a:b]) for name, (a, b) in zip(names, spans, strict=False)]
    return SimpleNamespace(
        ids=ids,
        spans=spans,
        names=[name for name, _ in named],
        named=named,
        source=source,
        asked=asked,
        right=right,
        wanted=wanted,
        first=spans[0],
        inside=ids[slice(*spans[0])],
        closed=_cut(ids, [(a, b + 1) for a, b in spans], names)[1],
        forwards=_cut_forwards(ids, spans, names),
    )


@exercise("pretraining.target")
def target():
    """Check a reader's source and target of a text from which spans are cut (T5).

    The answer is a function of ids, a list of int, spans, a list of (begin, end), whose end
    is not cut, and a list of the sentinels' ids that stand for spans. It returns the source
    and the target, two lists of ids: the text with a sentinel for each span, and each
    sentinel with what it replaced, then one more. Oracle: `_cut`, for three texts. What may
    be wrong is in `CUT`, `SOURCE` and `TARGET`.

    Yields
    ------
    Faults
        What is measured of the answer, and how known mistakes show in it.
    """
    cases = [
        ([11, 12, 13, 14, 15, 16, 17], [(1, 3), (5, 6)], [90, 91, 92]),
        ([11, 12, 13, 14], [(0, 1), (2, 4)], [90, 91, 92]),
        ([11, 12, 13], [(1, 2)], [90, 91]),
    ]
    for ids, spans, names in cases:
        yield Faults(partial(_denoised, ids, spans, names), CUT | SOURCE | TARGET)


def _cut(ids, spans, names):
    """Return source and target of T5's denoising, two lists of int.

    The source has a sentinel in place of each span; the target has each sentinel with the
    ids that it replaced, then one more sentinel.

    ``ids`` : list of int, the text; ``spans`` : list of (begin, end) that are cut out, the
    end not included; ``names`` : list of int, the sentinels' ids in their order.
    """
    source = [*ids]
    asked = []
    for name, (a, b) in reversed(list(zip(names, spans, strict=False))):
        source[a:b] = [name]
        asked = [name, *ids[a:b], *asked]
    return source, [*asked, names[len(spans)]]


def _cut_forwards(ids, spans, names):
    """Return the source of T5's denoising by a known mistake, a list of int.

    The first span is cut out of the list first. That moves everything behind it to the
    left, so that the next positions point to other tokens.

    ``ids`` : list of int; ``spans`` : list of (begin, end), the end not included; ``names``
    : list of int, the sentinels' ids in their order.
    """
    forwards = [*ids]
    for name, (a, b) in zip(names, spans, strict=False):
        forwards[a:b] = [name]
    return forwards


def _one_for_each(seen):
    """Return the source with a sentinel for each token that was cut out, a list of int.

    The right one has one sentinel for each span; this is a known mistake.

    ``seen`` : SimpleNamespace with ``right``, the right source, a list of int, and
    ``named``, pairs of a sentinel and the list of ids cut out for it.
    """
    cuts = dict(seen.named)
    return [y for x in seen.right for y in [x] * len(cuts.get(x, [x]))]


def _all_the_same(source, seen):
    """Return a source, a list of int, in which all sentinels are the first one.

    ``source`` : list of int; ``seen`` : SimpleNamespace with ``names``, the sentinels' ids.
    """
    return [seen.names[0] if x in seen.names else x for x in source]


def _mixes_up_sentinels(seen):
    """Return whether the source is right but for which sentinel stands where.

    ``seen`` : SimpleNamespace with lists of int: ``source``, the answer's, ``right``, and
    ``ids``, those of the text; what is not among these is a sentinel.
    """
    got, right = (  # False in the place of each sentinel
        [x in seen.ids and x for x in source] for source in (seen.source, seen.right)
    )
    return seen.source != seen.right and got == right


# What may be wrong with where spans begin and end, with the source and with the target:
# what the reader is told → whether it is so of what `_denoised` returns.
CUT = {
    "source and target are swapped.": (
        lambda seen: (seen.source, seen.asked) == (seen.wanted, seen.right)
    ),
    "the end of a span is not part of it: in {ids}, the span {first} is {inside}.": (
        lambda seen: seen.asked == seen.closed
    ),
    "once a span is cut out of the list, everything after it moves to the left, and "
    "the next pair points to other tokens: {ids} with the spans {spans} becomes "
    "{forwards}.": (lambda seen: seen.source == seen.forwards != seen.right),
}
SOURCE = {
    "each span, however long, becomes one sentinel of its own; yours becomes several, "
    "and all of them are the same.": (
        lambda seen: (
            len(seen.named) > 1
            and seen.source == _all_the_same(_one_for_each(seen), seen) != seen.right
        )
    ),
    "a span of several tokens becomes one sentinel, not one for each token.": (
        lambda seen: seen.source == _one_for_each(seen) != seen.right
    ),
    "all spans have the same sentinel: how could the decoder tell them apart?": (
        lambda seen: seen.source == _all_the_same(seen.right, seen) != seen.right
    ),
    "the sentinels are not in their order: the first span gets the first one.": (
        _mixes_up_sentinels
    ),
    "the source keeps what should be cut out.": lambda seen: seen.source == seen.ids,
    "the spans are cut out of the source, but nothing marks where they were.": (
        lambda seen: seen.source == [x for x in seen.right if x not in seen.names]
    ),
    "the source ends at a sentinel: what comes after the last span is missing.": (
        lambda seen: (
            seen.source == seen.right[: seen.right.index(seen.names[-1]) + 1] != seen.right
        )
    ),
    "the last sentinel belongs in the target only.": (
        lambda seen: seen.source[:-1] == seen.right
    ),
    "the source is not right.": lambda seen: seen.source != seen.right,
}
TARGET = {
    "the target lacks its last sentinel, which marks its end.": (
        lambda seen: seen.asked == seen.wanted[:-1]
    ),
    "the target ends in the first sentinel again; it should end in the one that is "
    "left over.": (lambda seen: seen.asked == [*seen.wanted[:-1], seen.wanted[0]]),
    "the target holds the tokens that were cut out, but not their sentinels.": (
        lambda seen: seen.asked == [x for _, cut in seen.named for x in cut]
    ),
    "in the target, each sentinel comes before the tokens that it replaced.": (
        lambda seen: (
            seen.asked
            == [x for name, cut in seen.named for x in (*cut, name)] + seen.wanted[-1:]
        )
    ),
    "the target is the whole text; only what was cut out belongs in it.": (
        lambda seen: seen.asked == seen.ids
    ),
    "the target is not right.": lambda seen: seen.asked != seen.wanted,
}


def _seen(answer):
    """Return which tokens may attend to which, in three texts with an answer's mask.

    Parameters
    ----------
    answer : callable
        The reader's, from ids (batch, tokens) and the id of padding to a bool mask, True
        where a token may attend, that broadcasts to (batch, heads, queries, keys).

    Returns
    -------
    SimpleNamespace
        Bool Tensors: ``all``, (3, 1, 4, 4), the whole mask; (queries, keys) of those
        queries that are real tokens: ``whole``, (4, 4), of a text without padding;
        ``second``, (2, 4), with padding after the text; ``third``, (2, 4), with padding
        before it.

    Raises
    ------
    Unfit
        If the mask is not bool, or does not broadcast.
    """
    ids = torch.tensor([[5, 6, 0, 8], [5, 9, 1, 1], [1, 1, 9, 5]])  # 1 is padding
    allowed = array(run(answer, ids, 1))
    if allowed.dtype != bool:
        raise Unfit("a mask of True and False is expected: True where a token may attend.")
    try:
        seen = torch.as_tensor(allowed).expand(3, 1, 4, 4)  # (batch, heads, queries, keys)
    except RuntimeError:
        message = f"{allowed.shape} does not broadcast with (batch, 1, 1, tokens)."
        raise Unfit(message) from None
    whole = seen[0, 0]
    second = seen[1, 0, :2]
    third = seen[2, 0, 2:]
    return SimpleNamespace(all=seen, whole=whole, second=second, third=third)


# (queries, keys): True where a key comes after the query.
LATER = torch.ones(4, 4, dtype=torch.bool).triu(1)


@exercise("pretraining.mask", kind="spot the bug")
def mask():
    """Check a reader's mask of an encoder.

    The answer is a function of ids (texts, tokens) and the id of padding, which returns a
    bool mask that broadcasts to (texts, heads, tokens, tokens): True where a token may
    attend. Oracle: three texts with padding after, before or without, whose masks are
    known.

    Yields
    ------
    Faults
        What is measured of the answer, and how known mistakes show in it.
    """
    faults = {
        "no token can attend to anything.": lambda seen: not seen.all.any(),
        "True and False are swapped: the tokens attend to padding and to nothing else.": (
            lambda seen: seen.second[:, 2:].all() and not seen.second[:, :2].any()
        ),
        "each token attends only to itself.": (
            lambda seen: torch.equal(seen.whole, torch.eye(4, dtype=torch.bool))
        ),
        "padding is not hidden: its id is `pad`, and it may come before a text or "
        "after it.": (lambda seen: seen.second[:, 2:].any() or seen.third[:, :2].any()),
        "tokens with an id below `pad` are hidden; only `pad` itself is padding.": (
            lambda seen: not seen.whole[:, 2].any() and seen.whole[:, 3].any()
        ),
        "the mask is causal: no token attends to what comes after it. That is right "
        "in a decoder; an encoder that fills blanks needs both sides.": (
            lambda seen: not seen.whole[LATER].any()
        ),
        "no token attends to what comes before it.": lambda seen: (
            not seen.whole[LATER.T].any()
        ),
        "some of the real tokens are hidden.": (
            lambda seen: (
                not (
                    seen.whole.all()
                    and seen.second[:, :2].all()
                    and seen.third[:, 2:].all()
                )
            )
        ),
    }
    yield Faults(_seen, faults)


judge(
    "pretraining.compare",
    a="one model saw both sides of each token that it predicted, the other only one "
    "side. Which of them had it easier?",
    b="much was hidden, but the encoder also saw both sides. Nothing here shows which "
    "matters more.",
    c="both numbers can be right: one is a mean over all tokens, each predicted from "
    "its left side, the other a mean over the hidden tokens.",
    d=None,
)
