"""Checks for the exercises of the chapter *attention*."""

import math
from functools import cache

import numpy as np
import torch
from torch.nn import functional as F

from lmcourse.exercises import Wrong, compare, exercise, expect, judge, predict, run
from lmcourse.exercises.answers import Called, array, diagnose, normal, number, unpack
from lmcourse.models import load_bert
from lmcourse.pronouns import crossings

# Softmax answers to differences of scores, which have become ten times greater.
predict(
    "attention.sharper",
    a="the division makes a row sum to one again, but not in the old proportions: "
    "exponentials of greater differences lie further apart.",
    b=None,
    c="even weights need even scores; these differ more than before.",
)


def _called(answer, *inputs):
    """Return the names of what an answer calls."""
    with Called() as watch:
        run(answer, *inputs)
    return watch.names


@exercise("attention.all_at_once")
def all_at_once(answer):
    """Compare with another computation: two widths, leading axes, no two sizes alike."""
    for lead, width in (((), 4), ((), 9), ((2, 3), 9)):
        query, key = normal(*lead, 5, width, seed=1), normal(*lead, 7, width, seed=2)
        value = normal(*lead, 7, 6, seed=3)
        inputs = [x.double() for x in (query, key, value)]
        try:
            got = run(answer, *inputs)
        except Wrong as wrong:
            if not lead:
                raise
            where = " Each matrix is right, a batch of heads is not: "
            where += "swap the last two axes only, with `mT`."
            raise Wrong(f"{str(wrong).rstrip('.')}.{where}") from None
        output, weights = unpack(got, 2, "output and weights, in this order")
        _compare_attention(output, weights, *inputs)
    few, many = (_called(answer, normal(n, 4), normal(7, 4), normal(7, 6)) for n in (2, 9))
    if len(few) != len(many):
        raise Wrong(
            "right, but by a loop over the queries; one matrix product has them all."
        )


def _compare_attention(output, weights, query, key, value):
    scores = torch.einsum("...qd,...kd->...qk", query, key)  # (..., queries, keys)
    root = math.sqrt(key.shape[-1])
    swapped = array(weights).shape == (*query.shape[:-1], value.shape[-1])
    if swapped and array(output).shape == scores.shape:
        raise Wrong("output and weights, in this order; yours are the other way round.")

    def over(divisor, axis=-1):
        return (scores / divisor).softmax(axis)

    right = over(root)
    mistakes = {
        "these are scores, not weights: the softmax is missing.": scores / root,
        "the scores are not divided by the square root of d_head.": over(1),
        "the scores are divided by d_head itself, not by its square root.": over(root**2),
        "the scores are divided by 2, which is right for a width of 4 only; take the width "
        "of the keys that are given.": over(2),
        "the scores are divided by the root of the page's `d_head`, 32; take the width of "
        "the keys that are given.": over(math.sqrt(32)),
        "the scores are divided by the root of the number of keys; the width of a key, its "
        "last axis, is asked for.": over(math.sqrt(key.shape[-2])),
        "the scores are divided by the root of the width of a value; queries and keys are "
        "compared, so their width counts.": over(math.sqrt(value.shape[-1])),
        "each column sums to 1: the softmax runs over the queries. It must run over the "
        "keys, the last axis.": over(root, -2),
        "all weights together sum to 1; each row must, since every query has its own.": (
            (scores / root).flatten().softmax(0).view_as(scores)
        ),
        "the scores are divided by the root of d_model; what is added up is d_head "
        "products, so the root of d_head counts.": over(math.sqrt(384)),
    }
    compare(weights, right, mistakes)
    theirs = F.scaled_dot_product_attention(query, key, value)
    mistakes = {
        "the weights are right; the output is the plain mean of the values.": (
            value.mean(-2, keepdim=True).expand(theirs.shape)
        ),
        "the weights are right; the output averages the keys. The values are asked for.": (
            torch.einsum("...qk,...kd->...qd", right, key)
        ),
    }
    compare(output, theirs, mistakes)


def _row_by_row(scores, mask):
    """Softmax of the allowed scores alone, put back in their places."""
    weights = torch.zeros_like(scores)
    for place in np.ndindex(scores.shape[:-1]):
        weights[place][mask[place]] = scores[place][mask[place]].softmax(0)
    return weights


predict(
    "attention.future",
    a="shares of a row sum to one, but a row whose keys have not changed keeps its shares.",
    b="“it” may not attend to the last word: the mask hides what stands later.",
    c=None,
)


@exercise("attention.masked_softmax", kind="spot the bug")
def masked_softmax(answer):
    """Compare with the softmax of each row's allowed scores, small and enormous ones."""
    scores, mask = normal(2, 4, 4, seed=5).double(), normal(2, 4, 4, seed=6) < 0.3
    mask |= torch.eye(4, dtype=torch.bool)  # every row and column allows something
    hidden = scores.masked_fill(~mask, -math.inf)
    mistakes = {
        "you mask after the softmax: the rows no longer sum to 1, and hidden scores still "
        "count in the denominator.": scores.softmax(-1) * mask,
        "each column sums to 1: the softmax runs over the queries. It must run over the "
        "keys, the last axis.": hidden.softmax(-2),
        "the mask is the wrong way round: True means that a query may attend there.": (
            scores.masked_fill(mask, -math.inf).softmax(-1)
        ),
        "a hidden score became 0, which is a score like any other; it must become so low "
        "that its exponential is 0.": (scores * mask).softmax(-1),
        "the mask changes nothing yet.": scores.softmax(-1),
        "all is NaN: 0 × ∞ is no number, so a mask times infinity spoils what is allowed, "
        "too. Put minus infinity in the hidden places only.": scores * math.nan,
    }
    if any("softmax" in name for name in _called(answer, scores, mask)):
        raise Wrong("do without PyTorch's softmax: exponentials, and a sum to divide by.")
    expect(answer, [scores, mask], _row_by_row(scores, mask), mistakes)
    large = 1e4 * scores
    _check_large(answer, large.masked_fill(~mask, float(large.min()) - 1), mask)


def _check_large(answer, large, mask):
    """Enormous scores, then enormous ones that are hidden."""
    if not np.isfinite(array(run(answer, large, mask))).all():
        raise Wrong(
            "right for small scores, but exp(10000) overflows: subtract each row's "
            "greatest allowed score first. The weights stay the same."
        )
    _check_penalty(answer, large, mask)
    large = torch.where(mask, large / 1e4, 1e4)
    if not np.isfinite(array(run(answer, large, mask))).all():
        raise Wrong(
            "0/0: a hidden score is the greatest of its row, and beside it every allowed "
            "exponential is 0. Subtract the greatest of the allowed scores."
        )
    _check_penalty(answer, large, mask)


def _check_penalty(answer, large, mask):
    """A finite penalty hides small scores only; below -inf there is nothing."""
    got = array(run(answer, large, mask))
    if got.shape == mask.shape and np.abs(got[~mask.numpy()]).max() > 1e-9:
        raise Wrong(
            "a hidden score of ten thousand shows through: the penalty is finite, and a "
            "score may be greater. Only minus infinity is below every score."
        )
    expect(answer, [large, mask], _row_by_row(large, mask))


@exercise("attention.merge_heads", kind="spot the bug")
def merge_heads(answer):
    """Compare with the heads' outputs laid side by side."""
    x = torch.arange(120.0).reshape(2, 3, 5, 4)  # (batch, heads, tokens, d_head)
    mistakes = {
        "the shape is right, the contents are not: `view` or `reshape` read the numbers in "
        "memory order, so a row mixes several tokens of one head. Bring heads next to "
        "d_head first.": x.reshape(2, 5, 12),
        "each head's numbers are scattered: d_head stands before heads. A head's numbers "
        "must stay together.": x.permute(0, 2, 3, 1).flatten(2),
        "tokens and d_head have changed places; heads and tokens must, so that heads stand "
        "beside d_head.": x.transpose(2, 3).reshape(2, 5, 12),
        "heads and d_head have changed places; heads and tokens must, so that heads stand "
        "beside d_head.": x.transpose(1, 3).reshape(2, 5, 12),
        "each token's numbers stand one below the other: after `permute` or `transpose` "
        "the axes are in another order than the shape says.": (
            x.permute(0, 2, 3, 1).reshape(2, 12, 5).mT
        ),
        "the heads are added up; they must stand side by side.": x.sum(1),
    }
    expect(answer, [x], torch.cat(x.unbind(1), dim=-1), mistakes)


# What the attention of one head can support, and what it cannot.
judge(
    "attention.death",
    a="this is one head of many: what the others make of “He” these pictures do not show.",
    b=None,
    c="go back to the first picture: the head attends to a street, too.",
)


@cache
def _bert():
    return load_bert()


@torch.no_grad()
def _vectors(texts):
    """Return the mean of each text's states after the last layer, as a unit vector."""
    tokenizer, bert = _bert()
    batch = tokenizer(texts, padding=True, return_tensors="pt").to(bert.device)
    mask = batch["attention_mask"][..., None]
    states = bert(**batch).last_hidden_state * mask  # (texts, tokens, d_model)
    return F.normalize(states.sum(1) / mask.sum(1), dim=-1).cpu().double()


@cache
def _falls():
    """Return the mean fall of the lean, by which of the nouns are "thing"."""
    pairs = [crossings(end) for end in ("tired", "wide")]
    plain = [_vectors([f"The {s.nouns[n]} was tired." for s in pairs[0]]) for n in (0, 1)]
    way = plain[0] - plain[1]  # (pairs, d_model)

    def texts(sentences, hidden):
        made = []
        for sentence in sentences:
            text = sentence.text
            for noun in hidden:
                text = text.replace(sentence.nouns[noun], "thing")
            made.append(text)
        return made

    leans = {
        hidden: [
            (_vectors(texts(each, hidden)) * way).sum(1).mean().item() for each in pairs
        ]
        for hidden in ((), (0,), (1,), (0, 1))
    }
    return {hidden: tired - wide for hidden, (tired, wide) in leans.items()}, leans[0, 1][0]


@exercise("attention.fooled", kind="experiment")
def fooled(answer):
    """Measure the fall with "thing" for both nouns again, by other code."""
    got = array(answer)
    falls, lean = _falls()
    want = falls[0, 1]
    near = 0.02 * abs(want)
    if got.shape == (24,):
        raise Wrong("these are 24 falls, one a pair; their mean is asked for.")
    got = number(answer)
    mistakes = {
        "this is the fall with the nouns in their places: nothing has been replaced.": (
            falls[()]
        ),
        "the animals are replaced, the places are not: write *thing* for both.": falls[0,],
        "the places are replaced, the animals are not: write *thing* for both.": falls[1,],
        "the sign is turned: the lean with *tired*, less the lean with *wide*.": -want,
        "this is the sum over the pairs; the mean is asked for.": 24 * want,
        "this is the lean with *tired*; take off the lean with *wide*.": lean,
        "nothing is left to lean to: replace the nouns in the long sentences only, not in "
        "the plain ones they are compared with.": 0.0,
    }
    if abs(got - want) < near:
        return
    diagnose({words: abs(got - value) < near for words, value in mistakes.items()})
    raise Wrong(
        "the check measures the 48 sentences again and finds another number. Is the lean "
        "still that towards the animals' and away from the places' plain sentences?"
    )
