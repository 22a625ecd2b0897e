"""Checks for the exercises of the chapter *attention*."""

import math

import numpy as np
import torch
from torch import nn

from lmcourse.attention import MultiHeadAttention
from lmcourse.exercises import Wrong, compare, exercise, expect, run
from lmcourse.exercises.answers import array, blame, kind, normal, several

SHARP = 0.99  # how much of its weight a previous-token head must put there


@exercise("attention.window_mask")
def window_mask(answer):
    """Compare with a loop over every pair of positions."""
    want = torch.tensor([[0 <= i - j < 3 for j in range(7)] for i in range(7)])
    back = torch.arange(7)[:, None] - torch.arange(7)  # from a query to a key
    mistakes = {
        "your mask hides the past and shows the future: rows are queries, columns are "
        "keys, and query 3 must see key 2.": want.T,
        "True and False are swapped: True means that a query may look.": ~want,
        "it looks ahead: query 3 sees key 4.": back.abs() < 3,
        "it is causal, but the window is ignored: query 6 still sees key 0.": back >= 0,
        "one too wide: the token itself counts as one of the window.": (
            (back >= 0) & (back <= 3)
        ),
        "one too narrow: count the tokens that query 6 sees.": (back >= 0) & (back < 2),
        "a token must see itself too.": (back > 0) & (back < 3),
    }
    expect(answer, [7, 3], want, mistakes)
    expect(answer, [5, 1], torch.eye(5, dtype=torch.bool))


def _row_by_row(scores, mask):
    """Softmax of the allowed scores alone, put back in their places."""
    weights = torch.zeros_like(scores)
    for place in np.ndindex(scores.shape[:-1]):
        weights[place][mask[place]] = scores[place][mask[place]].softmax(0)
    return weights


@exercise("attention.masked_softmax")
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
    if not np.isfinite(array(run(answer, large, mask))).all():
        raise Wrong(
            "right for small scores, but exp(10000) overflows: subtract each row's "
            "greatest allowed score first. The weights stay the same."
        )
    expect(answer, [large, mask], _row_by_row(large, mask))


@exercise("attention.merge_heads")
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


def _leave_one_out(x, y, kernel):
    """Return the mean squared error when each point is predicted from all others."""
    errors = []
    for i in range(len(x)):
        weights = [kernel(x[i] - x[j]) if j != i else 0.0 for j in range(len(x))]
        predicted = sum(w * value for w, value in zip(weights, y, strict=True))
        errors.append((predicted / sum(weights) - y[i]) ** 2)
    return np.mean(errors)


@exercise("attention.leave_one_out")
def leave_one_out(answer):
    """Compare with a plain loop that leaves one point out at a time."""
    x, h = np.sort(np.random.default_rng(3).uniform(0, 3, 9)), 0.4
    y = np.sin(3 * x) + x
    rows = np.exp(-((x[:, None] - x) ** 2) / (2 * h**2))
    rows /= rows.sum(1, keepdims=True)
    want = _leave_one_out(x, y, lambda d: math.exp(-(d**2) / (2 * h**2)))
    mistakes = {
        "no point is left out: each one helps to predict itself.": np.mean(
            (rows @ y - y) ** 2
        ),
        "the point is hidden after the softmax, so the weights that are left do not sum to "
        "1. Hide its score before.": np.mean(((rows * (1 - np.eye(9))) @ y - y) ** 2),
        "the bandwidth must be squared.": _leave_one_out(
            x, y, lambda d: math.exp(-(d**2) / (2 * h))
        ),
        "the exponent lacks its factor one half.": _leave_one_out(
            x, y, lambda d: math.exp(-((d / h) ** 2))
        ),
        "this is the sum of the squared errors; the mean is asked for.": want * len(x),
        "this is the root of the mean squared error; leave the root out.": want**0.5,
    }
    expect(answer, [torch.tensor(x), torch.tensor(y), h], want, mistakes)


def _head_weights(pair, tokens):
    """Return the weights that a reader's two matrices give to one-hot positions."""
    w_query, w_key = map(array, several(pair, 2, "two matrices, W_query and W_key"))
    if w_query.shape != w_key.shape or w_query.ndim != 2 or len(w_query) != tokens:
        raise Wrong(
            f"both matrices need the shape ({tokens}, d_head), one row a position; "
            f"yours are {w_query.shape} and {w_key.shape}."
        )
    query, key = (torch.tensor(w, dtype=torch.float64) for w in (w_query, w_key))
    scores = query @ key.T  # (tokens, tokens)
    weights = (scores / math.sqrt(w_query.shape[1])).softmax(-1)
    if not torch.isfinite(weights).all():
        raise Wrong("the weights are not finite: large entries will do, not infinity.")
    return weights


@exercise("attention.previous_token_head")
def previous_token_head(answer):
    """See where the head looks; any matrices that do it are right."""
    for tokens in (6, 9):
        weights = _head_weights(run(answer, tokens), tokens)  # (tokens, tokens)
        here, seen = np.arange(1, tokens), weights[1:].argmax(-1).numpy()
        off = int((seen != here - 1).argmax())
        least = float(weights[1:].diagonal().min())
        faults = {
            "your head looks at the next token: swap the two matrices.": (
                (seen[:-1] == here[:-1] + 1).all()
            ),
            "your head looks at the token itself: shift one of the matrices.": (
                (seen == here).all()
            ),
            "every token looks at the first one, or at all of them alike.": not seen.any(),
            f"with {tokens} tokens, token {here[off]} looks most at token {seen[off]}.": (
                (seen != here - 1).any()
            ),
            f"the right place, but only {least:.2f} of the weight goes there with {tokens} "
            f"tokens; at least {SHARP} is asked for. Which scores give that?": least
            < SHARP,
        }
        blame(faults)


@torch.no_grad()
def _filled(theirs, order=(0, 1, 2), transposed=False, biases=True, output=True):
    """Return our module with some of theirs' weights, as a mistake would leave it."""
    torch.manual_seed(1)
    ours = MultiHeadAttention(theirs.embed_dim, theirs.num_heads).double()
    weights, bias = theirs.in_proj_weight.chunk(3), theirs.in_proj_bias.chunk(3)
    for layer, part in zip((ours.query, ours.key, ours.value), order, strict=True):
        layer.weight.copy_(weights[part].T if transposed else weights[part])
        if biases:
            layer.bias.copy_(bias[part])
    if output:
        ours.output.load_state_dict(theirs.out_proj.state_dict())
    return ours


@exercise("attention.borrow_weights")
def borrow_weights(answer):
    """Compare what the filled module computes with what PyTorch's computes."""
    torch.manual_seed(2)
    theirs = nn.MultiheadAttention(12, 3, batch_first=True).double()
    nn.init.normal_(theirs.in_proj_bias)
    nn.init.normal_(theirs.out_proj.bias)
    torch.manual_seed(1)  # an answer that copies too little is ours, untouched
    got = run(answer, MultiHeadAttention(12, 3).double(), theirs)
    if not isinstance(got, nn.Module):
        raise Wrong(f"return the module `ours`; this is of type {kind(got)}.")
    wrong = {
        "the query's and the key's weights are swapped.": {"order": (1, 0, 2)},
        "the key's and the value's weights are swapped.": {"order": (0, 2, 1)},
        "the matrices are transposed: `nn.Linear` stores (out, in), as in_proj does.": {
            "transposed": True
        },
        "the weights are right, the biases of query, key and value are not copied.": {
            "biases": False
        },
        "query, key and value are right, the output projection is not copied.": {
            "output": False
        },
        "both are left out: the output projection, and the biases of the other three.": (
            {"output": False, "biases": False}
        ),
    }
    x = normal(2, 5, 12).double()
    mistakes = {text: _filled(theirs, **how)(x)[0] for text, how in wrong.items()}
    compare(several(run(got, x), 2, "ours")[0], theirs(x, x, x)[0], mistakes)
