"""The exercises of *mini-gpt*: each known mistake is recognised and named."""

import math
from itertools import pairwise

import pytest
import torch
from torch import nn

from lmcourse import exercises

CHAPTER = "mini-gpt"


def verdict(name, answer):
    return exercises.check(f"{CHAPTER}.{name}", answer)


def counts(ids, vocab_size, stride=1, wrap=False):
    table = torch.zeros(vocab_size, vocab_size)
    ids = [*ids.tolist(), ids[0].item()] if wrap else ids.tolist()
    for first, second in list(pairwise(ids))[::stride]:
        table[first, second] += 1
    return table


def once(ids, vocab_size):
    table = torch.zeros(vocab_size, vocab_size)
    table[ids[:-1], ids[1:]] += 1
    return table


def row_shares(ids, vocab_size):
    table = counts(ids, vocab_size)
    return table / table.sum(1, keepdim=True).clamp(min=1)


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (lambda ids, v: counts(ids, v).T, "rows and columns"),
        (once, "once only"),
        (lambda ids, v: counts(ids, v, stride=2), "every second pair"),
        (lambda ids, v: counts(ids, v, wrap=True), "paired with the first"),
        (lambda ids, v: counts(ids, v) / (len(ids) - 1), "shares"),
        (row_shares, "divided by its sum"),
        (lambda ids, v: counts(ids, v) + 1, "smoothed"),
        (lambda ids, v: torch.bincount(ids, minlength=v), "single characters"),
        (lambda ids, v: counts(ids, v)[:-1], "the shape is"),
        (lambda ids, v: counts(ids, v) * 2, "differ"),
    ],
)
def test_count_pairs(answer, said):
    assert said in verdict("count_pairs", answer).message
    assert verdict("count_pairs", counts)


def cut(first=0, second=1, more=0, less=0):
    def windows(ids, starts, context):
        rows = [
            torch.stack([ids[s + shift : s + shift + context + size] for s in starts])
            for shift, size in [(first, more), (second, less)]
        ]
        return tuple(rows)

    return windows


def rolled(ids, starts, context):
    inputs = cut()(ids, starts, context)[0]
    return inputs, inputs.roll(-1, dims=1)


def places(ids, starts, context):
    at = starts[:, None] + torch.arange(context)
    return at, at + 1


def one_target(ids, starts, context):
    inputs, targets = cut()(ids, starts, context)
    return inputs, targets[:, -1]


def first_start(ids, starts, context):
    return cut()(ids, starts[:1].repeat(len(starts)), context)


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (cut(second=0), "targets: they are the inputs again"),
        (cut(second=-1), "wrong way"),
        (cut(second=2), "shifted by two"),
        (cut(more=1), "inputs: the windows are one token too long"),
        (cut(more=-1, less=-1), "too short"),
        (cut(first=1, second=0), "swapped"),
        (lambda *given: tuple(x.T for x in cut()(*given)), "each window is to be a row"),
        (places, "places in the corpus"),
        (first_start, "first start"),
        (rolled, "`roll`"),
        (one_target, "only the token after"),
        (cut(less=-1), "last target is missing"),
        (lambda ids, starts, context: ids, "two tensors"),
    ],
)
def test_windows(answer, said):
    assert said in verdict("windows", answer).message
    assert verdict("windows", cut())


def weighted(losses, sizes):
    total = sum(loss * size for loss, size in zip(losses, sizes, strict=True))
    return total / sum(sizes)


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (lambda x, n: math.exp(sum(x) / len(x)), "every part counts the same"),
        (lambda x, n: weighted([math.exp(v) for v in x], n), "perplexities are averaged"),
        (lambda x, n: sum(map(math.exp, x)) / len(x), "perplexities of the parts"),
        (lambda x, n: weighted(x, n), "this is the loss"),
        (lambda x, n: sum(x) / len(x), "mean of the parts' losses"),
        (lambda x, n: math.exp(-weighted(x, n)), "the sign"),
        (lambda x, n: 2 ** weighted(x, n), "base is e"),
        (lambda x, n: math.exp(weighted(x, n) * sum(n)), "not divided"),
        (lambda x, n: math.exp(weighted(x, n)) + 1, "differ"),
    ],
)
def test_perplexity(answer, said):
    assert said in verdict("perplexity", answer).message
    assert verdict("perplexity", lambda x, n: math.exp(weighted(x, n)))


def schedule(up=lambda s, w: (s + 1) / w, down=lambda left, c: left / c):
    def trapezoid(step, steps, warmup, cooldown):
        return float(min(1, up(step, warmup), down(steps - step, cooldown)))

    return trapezoid


def falls_at_once(step, steps, warmup, cooldown):
    return (step + 1) / warmup if step < warmup else (steps - step) / (steps - warmup + 1)


def early(step, steps, warmup, cooldown):
    fall = (steps - step) / (steps - cooldown)
    return min(1, (step + 1) / warmup, fall)


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (schedule(up=lambda s, w: s / w), "does nothing: begin"),
        (falls_at_once, "as soon as it is up"),
        (schedule(down=lambda left, c: 1), "falls"),
        (schedule(up=lambda s, w: 1), "no warm-up"),
        (early, "begins at step `cooldown`"),
        (schedule(down=lambda left, c: left > c), "at once to 0"),
        (schedule(down=lambda left, c: (left - 1) / (c - 1)), "a step early"),
        (lambda step, steps, warmup, cooldown: 0.5, "differ"),
    ],
)
def test_trapezoid(answer, said):
    assert said in verdict("trapezoid", answer).message
    assert verdict("trapezoid", schedule())


def scaled(factor):
    def clip(gradients, limit):
        norm = torch.cat([g.flatten() for g in gradients]).norm()
        return [g * factor(limit, norm) for g in gradients]

    return clip


def right(gradients, limit):
    return scaled(lambda limit, norm: min(1, limit / norm))(gradients, limit)


def added(gradients, limit):
    norm = sum(g.norm() for g in gradients)
    return [g * min(1, limit / norm) for g in gradients]


def each(gradients, limit):
    return [g * min(1, limit / g.norm()) for g in gradients]


def pytorchs(gradients, limit):
    parameters = [nn.Parameter(g) for g in gradients]
    for parameter, gradient in zip(parameters, gradients, strict=True):
        parameter.grad = gradient
    nn.utils.clip_grad_norm_(parameters, limit)
    return [parameter.grad for parameter in parameters]


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (scaled(lambda limit, norm: limit / norm), "made longer"),
        (each, "clipped by itself"),
        (lambda gs, limit: [g.clamp(-limit, limit) for g in gs], "cut off"),
        (scaled(lambda limit, norm: min(1, limit / norm**2)), "square root"),
        (lambda gs, limit: gs, "not changed"),
        (added, "squares that add up"),
        (scaled(lambda limit, norm: 1 / norm), "whatever the limit"),
        (lambda gs, limit: gs[0], "one tensor for each"),
        (lambda gs, limit: [g.flatten() for g in right(gs, limit)], "keeps its shape"),
        (lambda gs, limit: [2 * g for g in right(gs, limit)], "differ"),
    ],
)
def test_clip(answer, said):
    assert said in verdict("clip", answer).message
    assert verdict("clip", right)
    assert verdict("clip", pytorchs)


def keep(scores, k, fill=-math.inf, largest=True):
    kept = torch.zeros_like(scores, dtype=torch.bool)
    kept.scatter_(-1, scores.topk(k, largest=largest).indices, True)
    return scores.masked_fill(~kept, fill)


def shrunk(logits, temperature, k):
    scores = logits / temperature
    return scores.softmax(-1) * (keep(scores, k) > -math.inf)


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (lambda x, t, k: keep(x * t, k).softmax(-1), "multiplies"),
        (lambda x, t, k: keep(x, k).softmax(-1), "temperature is not used"),
        (lambda x, t, k: keep(x.softmax(-1) / t, k).softmax(-1), "divides the prob"),
        (lambda x, t, k: (x / t).softmax(-1), "k is not used"),
        (shrunk, "sum to 1 again"),
        (lambda x, t, k: keep(x / t, k, fill=0).softmax(-1), "-inf"),
        (lambda x, t, k: keep(x / t, k + 1).softmax(-1), "too many"),
        (lambda x, t, k: keep(x / t, k - 1).softmax(-1), "too few"),
        (lambda x, t, k: keep(x / t, k, largest=False).softmax(-1), "least likely"),
        (lambda x, t, k: keep(x / t, k).softmax(0), "over the texts"),
        (lambda x, t, k: (x / t).topk(k).values.softmax(-1), "only the k chances"),
        (lambda x, t, k: keep(x / t, k), "a softmax is missing"),
        (lambda x, t, k: x * 0, "differ"),
    ],
)
def test_chances(answer, said):
    assert said in verdict("chances", answer).message
    assert verdict("chances", lambda x, t, k: keep(x / t, k).softmax(-1))
