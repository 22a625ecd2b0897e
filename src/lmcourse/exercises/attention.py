"""Checks for the exercises of the chapter *attention*."""

import math

import numpy as np
import torch
from torch import nn

from lmcourse.attention import MultiHeadAttention
from lmcourse.exercises import Wrong, compare, exercise, run

SHARP = 0.99  # how much of its weight a previous-token head must put there


@exercise("attention.window_mask")
def window_mask(answer):
    """Compare with a loop over every pair of positions."""
    tokens, window = 7, 3
    got = run(answer, tokens, window)
    if not isinstance(got, torch.Tensor) or got.dtype != torch.bool:
        kind = getattr(got, "dtype", type(got).__name__)
        raise Wrong(f"the mask should be a tensor of True and False, not {kind}.")

    def looped(allowed):
        return torch.tensor([[allowed(i, j) for j in range(tokens)] for i in range(tokens)])

    want = looped(lambda i, j: j <= i and i - j < window)
    compare(
        got,
        want,
        {
            "your mask hides the past and shows the future: rows are queries, columns "
            "are keys, and query 3 must see key 2.": want.T,
            "True and False are swapped: True means that a query may look.": ~want,
            "it looks ahead: query 3 sees key 4.": looped(lambda i, j: abs(i - j) < window),
            "it is causal, but the window is ignored: query 6 still sees key 0.": looped(
                lambda i, j: j <= i
            ),
            "one too wide: the token itself counts as one of the window.": looped(
                lambda i, j: j <= i and i - j <= window
            ),
            "one too narrow: count the tokens that query 6 sees.": looped(
                lambda i, j: j <= i and i - j < window - 1
            ),
            "a token must see itself too.": looped(lambda i, j: 0 < i - j < window),
        },
    )
    compare(run(answer, 5, 1), torch.eye(5, dtype=torch.bool))


def _row_by_row(scores, mask):
    """Softmax of the allowed scores alone, put back in their places."""
    weights = torch.zeros_like(scores)
    for place in np.ndindex(scores.shape[:-1]):
        allowed = mask[place]
        weights[place][allowed] = scores[place][allowed].softmax(0)
    return weights


@exercise("attention.masked_softmax")
def masked_softmax(answer):
    """Compare with the softmax of each row's allowed scores, small and enormous ones."""
    generator = torch.Generator().manual_seed(5)
    scores = torch.randn(2, 4, 4, generator=generator, dtype=torch.float64)
    mask = torch.rand(2, 4, 4, generator=generator) < 0.6
    mask |= torch.eye(4, dtype=torch.bool)  # every row and column allows something
    hidden = scores.masked_fill(~mask, -math.inf)
    compare(
        run(answer, scores.clone(), mask.clone()),
        _row_by_row(scores, mask),
        {
            "you mask after the softmax: the rows no longer sum to 1, and hidden scores "
            "still count in the denominator.": scores.softmax(-1) * mask,
            "each column sums to 1: the softmax runs over the queries. It must run over "
            "the keys, the last axis.": hidden.softmax(-2),
            "the mask is the wrong way round: True means that a query may look.": (
                scores.masked_fill(mask, -math.inf).softmax(-1)
            ),
            "a hidden score became 0, which is a score like any other; it must become "
            "so low that its exponential is 0.": (scores * mask).softmax(-1),
            "the mask changes nothing yet.": scores.softmax(-1),
        },
    )
    large = 1e4 * scores
    got = run(answer, large.clone(), mask.clone())
    if not torch.isfinite(torch.as_tensor(got)).all():
        raise Wrong(
            "right for small scores, but exp(10000) overflows: subtract each row's "
            "greatest allowed score first. The weights stay the same."
        )
    compare(got, _row_by_row(large, mask))


@exercise("attention.merge_heads")
def merge_heads(answer):
    """Compare with the heads' outputs laid side by side."""
    batch, heads, tokens, d_head = 2, 3, 5, 4
    x = torch.arange(batch * heads * tokens * d_head, dtype=torch.float64)
    x = x.reshape(batch, heads, tokens, d_head)
    want = torch.cat([x[:, head] for head in range(heads)], dim=-1)
    compare(
        run(answer, x.clone()),
        want,
        {
            "the shape is right, the contents are not: `view` or `reshape` read the "
            "numbers in memory order, so a row mixes several tokens of one head. Bring "
            "heads next to d_head first.": x.reshape(batch, tokens, heads * d_head),
            "each head's numbers are scattered: d_head stands before heads. A head's "
            "numbers must stay together.": x.permute(0, 2, 3, 1).flatten(2),
            "the heads are added up; they must stand side by side.": x.sum(1),
        },
    )


def _leave_one_out(x, y, kernel):
    """Predict each point from all others, one at a time."""
    predictions = []
    for i in range(len(x)):
        others = [j for j in range(len(x)) if j != i]
        weights = [kernel(x[i] - x[j]) for j in others]
        total = sum(w * y[j] for w, j in zip(weights, others, strict=True))
        predictions.append(total / sum(weights))
    return np.array(predictions)


@exercise("attention.leave_one_out")
def leave_one_out(answer):
    """Compare with a plain loop that leaves one point out at a time."""
    rng = np.random.default_rng(3)
    x, h = np.sort(rng.uniform(0, 3, 9)), 0.4
    y = np.sin(3 * x) + x
    got = run(answer, torch.tensor(x), torch.tensor(y), h)

    def error(kernel):
        return np.mean((_leave_one_out(x, y, kernel) - y) ** 2)

    full = np.exp(-((x[:, None] - x) ** 2) / (2 * h**2))
    rows = full / full.sum(1, keepdims=True)
    off = 1 - np.eye(len(x))
    want = error(lambda d: math.exp(-(d**2) / (2 * h**2)))
    compare(
        got,
        want,
        {
            "no point is left out: each one helps to predict itself.": np.mean(
                (rows @ y - y) ** 2
            ),
            "the point is hidden after the softmax, so the weights that are left do not "
            "sum to 1. Hide its score before.": np.mean(((rows * off) @ y - y) ** 2),
            "the bandwidth must be squared.": error(lambda d: math.exp(-(d**2) / (2 * h))),
            "the exponent lacks its factor one half.": error(
                lambda d: math.exp(-((d / h) ** 2))
            ),
            "this is the sum of the squared errors; the mean is asked for.": want * len(x),
            "this is the root of the mean squared error; leave the root out.": want**0.5,
        },
    )


def _head_weights(pair, tokens):
    """Return the weights that a reader's two matrices give to one-hot positions."""
    if not isinstance(pair, (tuple, list)) or len(pair) != 2:
        raise Wrong("return two matrices, W_query and W_key.")
    w_query, w_key = (torch.as_tensor(w, dtype=torch.float64) for w in pair)
    if w_query.shape != w_key.shape or w_query.ndim != 2 or len(w_query) != tokens:
        raise Wrong(
            f"both matrices need the shape ({tokens}, d_head), one row a position; yours "
            f"are {tuple(w_query.shape)} and {tuple(w_key.shape)}."
        )
    x = torch.eye(tokens, dtype=torch.float64)
    scores = (x @ w_query) @ (x @ w_key).T / math.sqrt(w_query.shape[1])
    return scores.softmax(-1)


@exercise("attention.previous_token_head")
def previous_token_head(answer):
    """See where the head looks; any matrices that do it are right."""
    for tokens in (6, 9):
        weights = _head_weights(run(answer, tokens), tokens)  # (tokens, tokens)
        if not torch.isfinite(weights).all():
            raise Wrong("the weights are not finite: large entries will do, not infinity.")
        seen = weights[1:].argmax(-1)
        here = torch.arange(1, tokens)
        if bool((seen[:-1] == here[:-1] + 1).all()):
            raise Wrong("your head looks at the next token: swap the two matrices.")
        if bool((seen == here).all()):
            raise Wrong("your head looks at the token itself: shift one of the matrices.")
        if bool((seen == 0).all()):
            raise Wrong("every token looks at the first one, or at all of them alike.")
        if not bool((seen == here - 1).all()):
            wrong = int((seen != here - 1).nonzero()[0]) + 1
            raise Wrong(
                f"with {tokens} tokens, token {wrong} looks most at token "
                f"{int(seen[wrong - 1])}."
            )
        least = float(weights[1:].diagonal().min())
        if least < SHARP:
            raise Wrong(
                f"the right place, but only {least:.2f} of the weight goes there with "
                f"{tokens} tokens; at least {SHARP} is asked for. Which scores give that?"
            )


def _filled(theirs, order=(0, 1, 2), transposed=False, biases=True, output=True):
    """Return our module with some of theirs' weights, as a mistake would leave it."""
    torch.manual_seed(1)
    ours = MultiHeadAttention(theirs.embed_dim, theirs.num_heads).double()
    weights, bias = theirs.in_proj_weight.chunk(3), theirs.in_proj_bias.chunk(3)
    with torch.no_grad():
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
    d_model, heads = 12, 3
    theirs = nn.MultiheadAttention(d_model, heads, batch_first=True).double()
    nn.init.normal_(theirs.in_proj_bias)
    nn.init.normal_(theirs.out_proj.bias)
    torch.manual_seed(1)
    ours = MultiHeadAttention(d_model, heads).double()
    got = run(answer, ours, theirs)
    if not isinstance(got, nn.Module):
        raise Wrong(f"return the module `ours`; this is a {type(got).__name__}.")
    x = torch.randn(2, 5, d_model, dtype=torch.float64)
    want = theirs(x, x, x)[0]
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
        "both are left out: the output projection, and the biases of the other three.": {
            "output": False,
            "biases": False,
        },
    }
    with torch.no_grad():
        mistakes = {text: _filled(theirs, **how)(x)[0] for text, how in wrong.items()}
        compare(run(got, x)[0], want, mistakes)
