"""What goes wrong in the exercises of *mini-gpt*, diagnosis → answer."""

import math
from itertools import pairwise

import torch
from torch import nn


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


def cut(first=0, second=1, more=0, less=0):
    def cut_windows(ids, starts, context):
        rows = [
            torch.stack([ids[s + shift : s + shift + context + size] for s in starts])
            for shift, size in [(first, more), (second, less)]
        ]
        return tuple(rows)

    return cut_windows


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


def weighted(losses, sizes):
    total = sum(loss * size for loss, size in zip(losses, sizes, strict=True))
    return total / sum(sizes)


def schedule(up=lambda s, w: (s + 1) / w, down=lambda left, c: left / c):
    def trapezoid(step, steps, warmup, cooldown):
        return float(min(1, up(step, warmup), down(steps - step, cooldown)))

    return trapezoid


def falls_at_once(step, steps, warmup, cooldown):
    return (step + 1) / warmup if step < warmup else (steps - step) / (steps - warmup + 1)


def early(step, steps, warmup, cooldown):
    fall = (steps - step) / (steps - cooldown)
    return min(1, (step + 1) / warmup, fall)


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


def keep(scores, k, fill=-math.inf, largest=True):
    kept = torch.zeros_like(scores, dtype=torch.bool)
    kept.scatter_(-1, scores.topk(k, largest=largest).indices, True)
    return scores.masked_fill(~kept, fill)


def shrunk(logits, temperature, k):
    scores = logits / temperature
    return scores.softmax(-1) * (keep(scores, k) > -math.inf)


WRONG = {
    "count_pairs": {
        "rows and columns": lambda ids, v: counts(ids, v).T,
        "once only": once,
        "every second pair": lambda ids, v: counts(ids, v, stride=2),
        "paired with the first": lambda ids, v: counts(ids, v, wrap=True),
        "shares": lambda ids, v: counts(ids, v) / (len(ids) - 1),
        "divided by its sum": row_shares,
        "smoothed": lambda ids, v: counts(ids, v) + 1,
        "single characters": lambda ids, v: torch.bincount(ids, minlength=v),
        "the shape is": lambda ids, v: counts(ids, v)[:-1],
        "differ": lambda ids, v: counts(ids, v) * 2,
    },
    "windows": {
        "targets: they are the inputs again": cut(second=0),
        "wrong way": cut(second=-1),
        "shifted by two": cut(second=2),
        "inputs: the windows are one token too long": cut(more=1),
        "too short": cut(more=-1, less=-1),
        "swapped": cut(first=1, second=0),
        "each window is to be a row": lambda *given: tuple(x.T for x in cut()(*given)),
        "places in the corpus": places,
        "first start": first_start,
        "`roll`": rolled,
        "only the token after": one_target,
        "the last one is missing": cut(less=-1),
        "two tensors": lambda ids, starts, context: ids,
    },
    "perplexity": {
        "every part counts the same": lambda x, n: math.exp(sum(x) / len(x)),
        "perplexities are averaged": lambda x, n: weighted([math.exp(v) for v in x], n),
        "perplexities of the parts": lambda x, n: sum(map(math.exp, x)) / len(x),
        "this is the loss": lambda x, n: weighted(x, n),
        "mean of the parts' losses": lambda x, n: sum(x) / len(x),
        "the sign": lambda x, n: math.exp(-weighted(x, n)),
        "base is e": lambda x, n: 2 ** weighted(x, n),
        "not divided": lambda x, n: math.exp(weighted(x, n) * sum(n)),
        "differ": lambda x, n: math.exp(weighted(x, n)) + 1,
    },
    "trapezoid": {
        "does nothing: begin": schedule(up=lambda s, w: s / w),
        "as soon as it is up": falls_at_once,
        "never falls": schedule(down=lambda left, c: 1),
        "no warm-up": schedule(up=lambda s, w: 1),
        "begins at step `cooldown`": early,
        "at once to 0": schedule(down=lambda left, c: left > c),
        "a step early": schedule(down=lambda left, c: (left - 1) / (c - 1)),
        "differ": lambda step, steps, warmup, cooldown: 0.5,
    },
    "clip": {
        "made longer": scaled(lambda limit, norm: limit / norm),
        "clipped by itself": each,
        "cut off": lambda gs, limit: [g.clamp(-limit, limit) for g in gs],
        "square root": scaled(lambda limit, norm: min(1, limit / norm**2)),
        "not changed": lambda gs, limit: gs,
        "squares that add up": added,
        "whatever the limit": scaled(lambda limit, norm: 1 / norm),
        "one tensor for each": lambda gs, limit: gs[0],
        "keeps its shape": lambda gs, limit: [g.flatten() for g in right(gs, limit)],
        "differ": lambda gs, limit: [2 * g for g in right(gs, limit)],
    },
    "chances": {
        "multiplies": lambda x, t, k: keep(x * t, k).softmax(-1),
        "temperature is not used": lambda x, t, k: keep(x, k).softmax(-1),
        "divides the prob": lambda x, t, k: keep(x.softmax(-1) / t, k).softmax(-1),
        "k is not used": lambda x, t, k: (x / t).softmax(-1),
        "sum to 1 again": shrunk,
        "-inf": lambda x, t, k: keep(x / t, k, fill=0).softmax(-1),
        "too many": lambda x, t, k: keep(x / t, k + 1).softmax(-1),
        "too few": lambda x, t, k: keep(x / t, k - 1).softmax(-1),
        "least likely": lambda x, t, k: keep(x / t, k, largest=False).softmax(-1),
        "over the texts": lambda x, t, k: keep(x / t, k).softmax(0),
        "only the k chances": lambda x, t, k: (x / t).topk(k).values.softmax(-1),
        "a softmax is missing": lambda x, t, k: keep(x / t, k),
        "differ": lambda x, t, k: x * 0,
    },
}

RIGHT = {
    "count_pairs": [counts],
    "windows": [cut()],
    "perplexity": [lambda x, n: math.exp(weighted(x, n))],
    "trapezoid": [schedule()],
    "clip": [right, pytorchs],
    "chances": [lambda x, t, k: keep(x / t, k).softmax(-1)],
}
