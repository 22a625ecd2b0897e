"""Checks for the exercises of the chapter *attention*."""

import math
from collections.abc import Mapping

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from lmcourse.attention import MultiHeadAttention
from lmcourse.exercises import Wrong, compare, exercise, expect, judge, predict, run
from lmcourse.exercises.answers import array, normal, number, type_name, unpack

SHARP = 0.99  # how much of its weight a previous-token head must put there
WIDTHS = (1, 2, 4)  # of the heads to be trained


# Softmax answers to differences of scores, which have become ten times greater.
predict(
    "attention.sharper",
    a="the division makes a row sum to one again, but not in the old proportions: "
    "exponentials of greater differences lie further apart.",
    b=None,
    c="even weights need even scores; these differ more than before.",
)


@exercise("attention.all_at_once")
def all_at_once(answer):
    """Compare with a loop over queries; leading axes, and every axis of its own size."""
    for lead in ((), (2, 3)):
        query, key = normal(*lead, 5, 4, seed=1), normal(*lead, 7, 4, seed=2)
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


def _compare_attention(output, weights, query, key, value):
    scores = torch.einsum("...qd,...kd->...qk", query, key)  # (..., queries, keys)
    root = math.sqrt(key.shape[-1])
    swapped = array(weights).shape == (*query.shape[:-1], value.shape[-1])
    if swapped and array(output).shape == scores.shape:
        raise Wrong("output and weights, in this order; yours are the other way round.")
    right = (scores / root).softmax(-1)
    mistakes = {
        "these are scores, not weights: the softmax is missing.": scores / root,
        "the scores are not divided by the square root of d_head.": scores.softmax(-1),
        "the scores are divided by d_head itself, not by its square root.": (
            scores / root**2
        ).softmax(-1),
        "the scores are divided by the root of the number of keys; the width of a key, its "
        "last axis, is asked for.": (scores / math.sqrt(key.shape[-2])).softmax(-1),
        "each column sums to 1: the softmax runs over the queries. It must run over the "
        "keys, the last axis.": (scores / root).softmax(-2),
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


@exercise("attention.narrow_head", kind="experiment")
def narrow_head(answer):
    """See whether the widths can have reached what is told of them."""
    if not isinstance(answer, Mapping) or not all(width in answer for width in WIDTHS):
        plain = isinstance(answer, Mapping) and all(type(key) is int for key in answer)
        raise Wrong(
            f"hand over a dict with the least weight at each of the widths {WIDTHS}; this "
            f"is {type_name(answer)}{f' of {sorted(answer)}' if plain else ''}."
        )
    least = {width: number(answer[width]) for width in WIDTHS}
    return {
        "weights lie between 0 and 1.": not all(0 <= w <= 1 for w in least.values()),
        # Of three keys on a line, the one between is never first for any query.
        "width 1 cannot reach a half, whoever trains it: was the width changed?": (
            least[1] >= 0.5
        ),
        f"width 4 reached {least[4]:.2f}: train longer, or with greater steps, until a "
        f"wide head has {SHARP}.": least[4] < SHARP,
        f"width 4 has learned it, width 2 has stopped at {least[2]:.2f}: it can reach "
        f"{SHARP}, but it takes more steps.": least[2] < SHARP,
    }


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
        "the mask is the wrong way round: True means that a query may look.": (
            scores.masked_fill(mask, -math.inf).softmax(-1)
        ),
        "a hidden score became 0, which is a score like any other; it must become so low "
        "that its exponential is 0.": (scores * mask).softmax(-1),
        "the mask changes nothing yet.": scores.softmax(-1),
    }
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
    expect(answer, [large, mask], _row_by_row(large, mask))
    large = torch.where(mask, large / 1e4, 1e4)
    if not np.isfinite(array(run(answer, large, mask))).all():
        raise Wrong(
            "0/0: a hidden score is the greatest of its row, and beside it every allowed "
            "exponential is 0. Subtract the greatest of the allowed scores."
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
        "the heads are added up; they must stand side by side.": x.sum(1),
    }
    expect(answer, [x], torch.cat(x.unbind(1), dim=-1), mistakes)


@torch.no_grad()
def _filled(
    fused, output, order=(0, 1, 2), whole=False, transposed=False, biases=True, mix=True
):
    """Return our module with some of their weights, as a mistake would leave it."""
    torch.manual_seed(1)
    heads, d_model = 3, output.in_features
    ours = MultiHeadAttention(d_model, heads).double()
    shape = (3, heads, -1) if whole else (heads, 3, -1)  # by parts, or head by head
    axis = 0 if whole else 1
    weight = fused.weight.unflatten(0, (*shape[:2], d_model // heads)).unbind(axis)
    bias = fused.bias.unflatten(0, shape).unbind(axis)
    for layer, part in zip((ours.query, ours.key, ours.value), order, strict=True):
        found = weight[part].flatten(0, 1)
        layer.weight.copy_(found.T if transposed else found)
        if biases:
            layer.bias.copy_(bias[part].flatten())
    if mix:
        ours.output.load_state_dict(output.state_dict())
    return ours


@torch.no_grad()
def _head_by_head(fused, output, x):
    """Attend with such a layer as its rows lie: a head's query, key, value, the next."""
    heads = []
    for part in fused(x).chunk(3, -1):  # (batch, tokens, 3 * d_head)
        heads.append(F.scaled_dot_product_attention(*part.chunk(3, -1)))
    return output(torch.cat(heads, -1))


@exercise("attention.borrow_weights")
def borrow_weights(answer):
    """Compare what the filled module computes with what the borrowed layers compute."""
    torch.manual_seed(2)
    fused, output = nn.Linear(12, 36).double(), nn.Linear(12, 12).double()
    torch.manual_seed(1)  # an answer that copies too little is ours, untouched
    got = run(answer, MultiHeadAttention(12, 3).double(), fused, output)
    if not isinstance(got, nn.Module):
        raise Wrong(f"return the module `ours`; this is of type {type_name(got)}.")
    wrong = {
        "you cut the layer in three, and a third of it is not all queries: it is all of "
        "one head, its query, key and value.": {"whole": True},
        "the query's and the key's weights are swapped.": {"order": (1, 0, 2)},
        "the key's and the value's weights are swapped.": {"order": (0, 2, 1)},
        "the matrices are transposed: `nn.Linear` stores (out, in) here as there.": {
            "transposed": True
        },
        "the weights are right, the biases of query, key and value are not copied.": {
            "biases": False
        },
        "query, key and value are right, the output projection is not copied.": {
            "mix": False
        },
        "both are left out: the output projection, and the biases of the other three.": (
            {"mix": False, "biases": False}
        ),
    }
    x = normal(2, 5, 12).double()
    mistakes = {text: _filled(fused, output, **how)(x)[0] for text, how in wrong.items()}
    found = unpack(run(got, x), 2, "ours")[0]
    compare(found, _head_by_head(fused, output, x), mistakes)


# What one head's row can support, and what it cannot.
judge(
    "attention.death",
    a="look again at “He” in this line: how much of its weight lies on “Death”? And "
    "what does the picture say of the other heads?",
    b="that would be a claim about the whole model. You have looked at one head of "
    "many, and not at what its look does.",
    c=None,
)
