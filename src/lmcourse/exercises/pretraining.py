"""Checks for the exercises of the chapter *pretraining*."""

import math

import torch
import torch.nn.functional as F

from lmcourse.exercises import Wrong, compare, exercise, judge, predict, run
from lmcourse.exercises.answers import array, diagnose, normal, unpack


def _chosen(answer, ids, share, random, special=(0, 1, 2, 3, 4)):
    """Return which places an answer chooses to mask: bool of the shape of ``ids``.

    It is called with ids (texts, tokens), the special ids, the share to choose and a
    torch.Generator. Anything else than such a tensor raises `Wrong`.
    """
    found = array(run(answer, ids, torch.tensor(special), share, random))
    if found.dtype != bool or found.shape != tuple(ids.shape):
        raise Wrong("return a tensor of True and False of the shape of ids.")
    return torch.as_tensor(found)


def _drawn(first, second, ordinary, state):
    """Return which mistakes two draws have: a dict, diagnosis → bool.

    ``first``, ``second`` and ``ordinary`` are bool (texts, tokens): what was chosen, and
    what is text; ``state`` is PyTorch's own random state before the draws.
    """
    moved = not torch.equal(state, torch.get_rng_state())
    hidden = (first & ordinary).sum(1) / ordinary.sum(1)  # (texts,)
    near = ordinary.cumsum(1) <= ordinary.sum(1, keepdim=True) / 2
    sides = [(first | second)[ordinary & x].double().mean() for x in (near, ~near)]
    return {
        "special tokens are chosen.": (first & ~ordinary).any(),
        "two draws are the same: use the generator.": torch.equal(first, second),
        "whole texts or whole columns are chosen: draw for each place.": (
            hidden[hidden > 0].mean() > 0.6 or (first == first[:1])[ordinary].all()
        ),
        "one half of the texts is hidden twice as often.": 2 * min(sides) < max(sides),
        "the reader's own random state moved: use the generator.": moved,
    }


@exercise("pretraining.places", kind="spot the bug")
def places(answer):
    """Check which tokens an answer chooses to mask: with shares of 1 and 0, in two draws.

    Parameters
    ----------
    answer : callable
        The reader's, from (ids, special, share, generator) to a bool Tensor like ``ids``.

    Returns
    -------
    dict of str to bool
        Diagnosis → whether the answer has that fault.
    """
    ids = torch.tensor([[2, 7, 9, 6, 3, 0], [2, 5, 8, 3, 0, 0]])
    ordinary, random = ids >= 5, torch.Generator().manual_seed(0)
    state = torch.get_rng_state()
    every, none = (_chosen(answer, ids, share, random) for share in (1.0, 0.0))
    many = torch.randint(5, 90, (400, 20), generator=random)
    first, second = (_chosen(answer, many, 0.15, random) for _ in range(2))
    share = first.double().mean().item()
    both = (first[:, 1:] & first[:, :-1]).double().mean().item()
    others = _chosen(answer, ids, 1.0, random, special=(7, 8))
    return {
        "with a share of 1 special tokens are chosen: padding, [CLS], [SEP]. A model "
        "would learn to say that texts begin with [CLS].": (every & ~ordinary).any(),
        "with a share of 1 ordinary places are left out.": (ordinary & ~every).any(),
        "with a share of 0 something is chosen.": none.any(),
        "`special` is not used: in another vocabulary other ids are no text.": (
            others[(ids == 7) | (ids == 8)].any() or not others[ids == 0].all()
        ),
        "a share of 0.15 chooses 85 %: which way round is the comparison?": share > 0.8,
        **_drawn(first, second, many > 0, state),
        f"a share of 0.15 chooses {share:.0%}.": abs(share - 0.15) > 0.03,
        f"{both:.0%} of pairs of neighbours are chosen, not 2 %.": abs(both - 0.0225)
        > 0.01,
    }


predict(
    "pretraining.ever_asked",
    a=None,
    b="that is what ten independent draws would come to. How many draws were there?",
    c="to be asked for everything a place must be drawn again and again. How often "
    "was it drawn here?",
)


@exercise("pretraining.loss", kind="spot the bug")
def loss(answer):
    """Compare with PyTorch's cross-entropy at the chosen places."""
    logits = 2 * normal(3, 6, 9, seed=0).double()  # (batch, tokens, vocab_size)
    ids = torch.randint(9, (3, 6), generator=torch.Generator().manual_seed(1))
    ids[0, 1] = 0  # an id like others
    chosen = torch.zeros(3, 6, dtype=torch.bool)
    chosen[0, [1, 4]] = chosen[1, 2] = chosen[2, [0, 3, 5]] = True
    each = F.cross_entropy(logits.mT, ids, reduction="none")  # (batch, tokens)
    mistakes = _mistakes(logits, ids, chosen, each)
    compare(run(answer, logits, ids, chosen), each[chosen].mean(), mistakes)


def _mistakes(logits, ids, chosen, each):
    """Return what other places, other logits and other sums would give."""
    right, share = ids[chosen], logits[chosen].softmax(-1)
    zero = F.cross_entropy((logits * chosen[..., None]).mT, ids)
    texts = [row[c].mean() for row, c in zip(each, chosen, strict=True)]
    soft, rest = F.cross_entropy(share, right), F.cross_entropy(logits.mT, ids * chosen)
    across = F.nll_loss(logits.log_softmax(1)[chosen], right)
    total, takes = each[chosen].sum(), "`nll_loss` takes log probabilities"
    return {
        "all places count: copying what was never hidden is rewarded.": each.mean(),
        "`cross_entropy` takes logits; a softmax was taken before.": soft,
        f"{takes}: `log_softmax` first.": F.nll_loss(logits[chosen], right),
        f"{takes}: the logarithm is missing.": F.nll_loss(share, right),
        "places that were not chosen have their logits set to 0, and still count.": zero,
        "places that were not chosen are asked for id 0, and still count.": rest,
        "only the places that were *not* chosen count.": each[~chosen].mean(),
        "the losses are divided by the number of all places.": total / each.numel(),
        "the losses are divided by the number of texts.": total / len(each),
        "id 0 is left out of the mean; here it is a piece like others.": each[
            chosen & (ids != 0)
        ].mean(),
        "these are bits; the natural logarithm is wanted.": total
        / len(right)
        / math.log(2),
        "the softmax is over the tokens, not over the vocabulary.": across,
        "this is the exponential of the loss.": (total / len(right)).exp(),
        "the losses are summed; take their mean.": total,
        "the sign: a loss is minus the logarithm.": -each[chosen].mean(),
        "each text is averaged by itself; all places count the same.": sum(texts) / 3,
    }


@exercise("pretraining.runs", kind="experiment")
def runs(answer):
    """Count blanks with both neighbours in sight, in texts of its own, at two shares."""
    random = torch.Generator().manual_seed(7)
    ids = torch.randint(5, 90, (400, 30), generator=random)
    end = torch.randint(20, 30, (400, 1), generator=random)
    ids = ids.masked_fill(torch.arange(30) > end, 0).scatter(1, end, 3)
    ids[:, 0] = 2
    ordinary, state = ids >= 5, torch.get_rng_state()
    shares = (0.15, 0.15, 0.3)
    first, second, more = (_chosen(answer, ids, share, random) for share in shares)
    one, two = (x[ordinary].double().mean().item() for x in (first, more))
    both = (first & ~first.roll(1, 1) & ~first.roll(-1, 1)).sum() / first.sum()
    off = abs(one - 0.15) > 0.03 or abs(two - 0.3) > 0.05
    every = (first | second | more)[:, 1:29].any(0).all()
    return _drawn(first, second, ordinary, state) | {
        f"shares of 0.15 and 0.3 hide {one:.0%} and {two:.0%}.": off,
        "some places are never hidden, so they are never asked for.": not every,
        f"{both:.0%} of the blanks keep both neighbours.": both > 0.1,
    }


@exercise("pretraining.target")
def target(answer):
    """Compare source and target of a text with two spans cut out, and of others."""
    cases = [
        ([11, 12, 13, 14, 15, 16, 17], [(1, 3), (5, 6)], [90, 91, 92]),
        ([11, 12, 13, 14], [(0, 1), (2, 4)], [90, 91, 92]),
        ([11, 12, 13], [(1, 2)], [90, 91]),
    ]
    for ids, spans, names in cases:
        got = unpack(run(answer, ids, spans, names), 2, "two lists: source and target")
        source, asked = (array(part).tolist() for part in got)
        named = [(name, ids[a:b]) for name, (a, b) in zip(names, spans, strict=False)]
        right, wanted = _cut(ids, spans, names)
        if (source, asked) == (wanted, right):
            raise Wrong("source and target are swapped.")
        diagnose(_how_cut(source, asked, ids, spans, names))
        diagnose(_source_faults(source, right, ids, named))
        diagnose(_target_faults(asked, wanted, ids, named))


def _cut(ids, spans, names):
    """Return source and target of T5's denoising, two lists of int.

    ``ids`` is the text, ``spans`` the (begin, end) that are cut out, ``names`` the
    sentinels in their order.
    """
    source, asked = [*ids], []
    for name, (a, b) in reversed(list(zip(names, spans, strict=False))):
        source[a:b], asked = [name], [name, *ids[a:b], *asked]
    return source, [*asked, names[len(spans)]]


def _how_cut(source, asked, ids, spans, names):
    """Return which mistakes about the ends and the place of a span an answer has.

    Parameters
    ----------
    source, asked : list of int
        The reader's source and target.
    ids : list of int
        The whole text.
    spans : list of (int, int)
        Begin and end of each span that was to be cut out.
    names : list of int
        The sentinels, in their order.

    Returns
    -------
    dict of str to bool
        Diagnosis → whether the answer has this mistake.
    """
    _, closed = _cut(ids, [(a, b + 1) for a, b in spans], names)
    forwards = [*ids]
    for name, (a, b) in zip(names, spans, strict=False):
        forwards[a:b] = [name]
    return {
        f"the end of a span is not part of it: of {ids} the span {spans[0]} is "
        f"{ids[slice(*spans[0])]}.": asked == closed,
        "once a span is cut out of the list, all behind it moves to the left, and the next "
        f"pair points elsewhere: of {ids} with {spans} {forwards} is left.": (
            source == forwards != _cut(ids, spans, names)[0]
        ),
    }


def _source_faults(found, right, ids, named):
    """Return which mistakes a source has.

    Parameters
    ----------
    found, right : list of int
        The reader's source, and the right one.
    ids : list of int
        The whole text.
    named : list of (int, list of int)
        Each sentinel with the ids that were cut out for it.

    Returns
    -------
    dict of str to bool
        Diagnosis → whether the source has this mistake.
    """
    names = [name for name, _ in named]
    cuts = dict(named)
    several_each = [y for x in right for y in [x] * len(cuts.get(x, [x]))]
    return {
        "a span of several tokens becomes one sentinel, each span another; here all "
        "are the same.": (
            len(named) > 1
            and found == [names[0] if x in names else x for x in several_each] != right
        ),
        "a span of several tokens becomes one sentinel, not one for each token.": (
            found == several_each != right
        ),
        "all spans have the same sentinel: which is which?": (
            found == [names[0] if x in names else x for x in right] != right
        ),
        "the sentinels are not taken in their order: the first span has the first.": (
            found != right
            and [x in ids and x for x in found] == [x in ids and x for x in right]
        ),
        "the source keeps what should be cut out.": found == ids,
        "the spans are cut out of the source, but nothing marks where.": (
            found == [x for x in right if x not in names]
        ),
        "the source ends at a sentinel: what stands behind the last span is missing.": found
        == right[: right.index(names[-1]) + 1]
        != right,
        "the last sentinel belongs to the target alone.": found[:-1] == right,
        "the source is not right.": found != right,
    }


def _target_faults(found, wanted, ids, named):
    """Return which mistakes a target has.

    Parameters
    ----------
    found, wanted : list of int
        The reader's target, and the right one.
    ids : list of int
        The whole text.
    named : list of (int, list of int)
        Each sentinel with the ids that were cut out for it.

    Returns
    -------
    dict of str to bool
        Diagnosis → whether the target has this mistake.
    """
    return {
        "the target lacks its last sentinel, which says that it ends.": found
        == wanted[:-1],
        "the target ends in the first sentinel again; the one left over says that it "
        "ends.": found == [*wanted[:-1], wanted[0]],
        "the target holds what was cut out, without its sentinels.": (
            found == [x for _, cut in named for x in cut]
        ),
        "in the target each sentinel stands before what it stands for.": (
            found == [x for name, cut in named for x in (*cut, name)] + wanted[-1:]
        ),
        "the target is the whole text; only what was cut out is asked for.": (found == ids),
        "the target is not right.": found != wanted,
    }


@exercise("pretraining.mask", kind="spot the bug")
def mask(answer):
    """Look at who may look at whom, two texts of different lengths at once."""
    ids = torch.tensor([[5, 6, 0, 8], [5, 9, 1, 1], [1, 1, 9, 5]])  # 1 is padding
    found = array(run(answer, ids, 1))
    if found.dtype != bool:
        raise Wrong("a mask of True and False is expected: True where one may look.")
    try:
        seen = torch.as_tensor(found).expand(3, 1, 4, 4)  # (batch, heads, queries, keys)
    except RuntimeError:
        said = f"{found.shape} does not broadcast with (batch, 1, 1, tokens)."
        raise Wrong(said) from None
    first, second, third = seen[0, 0], seen[1, 0, :2], seen[2, 0, 2:]
    padded = second[:, 2:].any() or third[:, :2].any()
    whole = first.all() and second[:, :2].all() and third[:, 2:].all()
    below = not first[:, 2].any() and first[:, 3].any()
    later = torch.ones(4, 4, dtype=torch.bool).triu(1)
    return {
        "nothing can be seen at all.": not seen.any(),
        "True and False are swapped: padding is all that can be seen.": (
            seen[1, 0, :2, 2:].all() and not seen[1, 0, :2, :2].any()
        ),
        "each token sees itself only.": torch.equal(first, torch.eye(4, dtype=torch.bool)),
        "padding can be looked at: its id is `pad`, on either side.": padded,
        "an id below `pad` can't be looked at; only `pad` itself is padding.": below,
        "the mask is causal: no token sees what stands after it. A decoder must not; "
        "an encoder that fills blanks needs both sides.": not first[later].any(),
        "no token sees what stands before it.": not first[later.T].any(),
        "some real token can't be looked at.": not whole,
    }


judge(
    "pretraining.compare",
    a="one model saw both sides of what it was asked for, the other one side: piece by "
    "piece they were not asked the same.",
    b="it hid more, but it also saw both sides; nothing here says which weighs more.",
    c="both can be right: one is a mean over all pieces from the left, the other over "
    "hidden ones.",
    d=None,
)
