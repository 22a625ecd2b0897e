"""Checks for the exercises of the chapter *mini-gpt*."""

import math
from collections import Counter
from itertools import pairwise

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from transformers import TemperatureLogitsWarper, TopKLogitsWarper

from lmcourse.exercises import Wrong, compare, exercise, run


@exercise("mini-gpt.count_pairs")
def count_pairs(answer):
    """Compare with a Counter over neighbours."""
    ids, vocab_size = torch.tensor([3, 0, 0, 0, 2, 3, 0, 2, 2, 4, 3, 0]), 6
    counter = Counter(pairwise(ids.tolist()))
    want = np.zeros((vocab_size, vocab_size))
    for (first, second), number in counter.items():
        want[first, second] = number
    apart = np.zeros_like(want)
    for first, second in list(pairwise(ids.tolist()))[::2]:
        apart[first, second] += 1
    round_again = want.copy()
    round_again[ids[-1], ids[0]] += 1
    alone = torch.bincount(ids, minlength=vocab_size)
    mistakes = {
        "rows and columns are swapped: the row is the character that comes first.": want.T,
        "every pair is counted once only. `counts[first, second] += 1` with whole tensors "
        "sets each place once, however often it is named.": (want > 0) * 1.0,
        "every second pair is missing: pairs overlap, each character but the ends is in "
        "two of them.": apart,
        "the last character is paired with the first; nothing follows the last.": (
            round_again
        ),
        "these are shares, not counts.": want / want.sum(),
        "each row is divided by its sum; leave the counts as they are.": want
        / np.maximum(want.sum(1, keepdims=True), 1),
        "one is added to every count; here nothing is smoothed.": want + 1,
        "these are counts of single characters, not of pairs.": alone,
    }
    compare(run(answer, ids.clone(), vocab_size), want, mistakes)


def _sliced(ids, starts, size, shift):
    rows = [ids[start + shift : start + shift + size] for start in starts.tolist()]
    return np.array([row.tolist() for row in rows])


@exercise("mini-gpt.windows")
def windows(answer):
    """Compare with slices of the corpus."""
    ids = torch.arange(40) ** 2 % 41  # whoever is off by one gets other numbers
    starts, context = torch.tensor([3, 17, 3, 30]), 5
    want = _sliced(ids, starts, context, 0), _sliced(ids, starts, context, 1)
    got = run(answer, ids.clone(), starts.clone(), context)
    if not isinstance(got, tuple | list) or len(got) != 2:
        raise Wrong("return two tensors: inputs, targets.")
    inputs, targets = got
    both = {
        "the windows are one token too long: cut the inputs without their last token, the "
        "targets without their first.": _sliced(ids, starts, context + 1, 0),
        "the windows are one token too short.": _sliced(ids, starts, context - 1, 0),
        "these are the targets: inputs and targets are swapped.": want[1],
        "the shape is (context, batch); each window is to be a row.": want[0].T,
        "these are places in the corpus, not what stands there.": starts.numpy()[:, None]
        + np.arange(context),
        "every window begins at the first start.": np.repeat(want[0][:1], 4, axis=0),
    }
    _labelled("inputs", inputs, want[0], both)
    _labelled(
        "targets",
        targets,
        want[1],
        {
            "they are the inputs again, not shifted. A model would learn to copy.": want[0],
            "they are shifted the wrong way: this is what stood *before* each token.": (
                _sliced(ids, starts, context, -1)
            ),
            "they are shifted by two.": _sliced(ids, starts, context, 2),
            "the last one is the first token of the window: `roll` brings round what fell "
            "off. Cut one token more instead.": np.roll(want[0], -1, axis=1),
            "only the token after the window is there; every token has a target.": (
                want[1][:, -1]
            ),
            "the last target is missing: it is the token after the window.": want[1][
                :, :-1
            ],
        },
    )


def _labelled(name, got, want, mistakes):
    """Compare whole numbers; say which of two results is wrong."""
    try:
        compare(got, want, mistakes, tolerance=1e-9)
    except Wrong as wrong:
        raise Wrong(f"{name}: {wrong}") from None


@exercise("mini-gpt.perplexity")
def perplexity(answer):
    """Compare with the perplexity of all tokens at once, cut into unequal parts."""
    generator = torch.Generator().manual_seed(0)
    logits = 2 * torch.randn(11, 7, generator=generator, dtype=torch.float64)
    targets = torch.randint(7, (11,), generator=generator)
    sizes = [6, 4, 1]
    parts = zip(logits.split(sizes), targets.split(sizes), strict=True)
    losses = [F.cross_entropy(*part).item() for part in parts]
    mean = F.cross_entropy(logits, targets).item()
    flat = sum(losses) / len(losses)
    shares = [n / sum(sizes) for n in sizes]
    mistakes = {
        "every part counts the same here, whatever its size; every token should.": math.exp(
            flat
        ),
        "perplexities are averaged; average the losses, then take the exponential.": sum(
            s * math.exp(x) for s, x in zip(shares, losses, strict=True)
        ),
        "the perplexities of the parts are averaged; average the losses over the tokens, "
        "then take the exponential.": sum(map(math.exp, losses)) / len(losses),
        "this is the loss; perplexity is its exponential.": mean,
        "this is the mean of the parts' losses, each part counted the same; and "
        "perplexity is an exponential.": flat,
        "the sign: perplexity is never below 1.": math.exp(-mean),
        "the losses are in nats: the base is e, not 2.": 2**mean,
        "the weighted losses are summed but not divided by the number of tokens.": _exp(
            mean * sum(sizes)
        ),
    }
    compare(run(answer, list(losses), list(sizes)), math.exp(mean), mistakes)


def _exp(x):
    return math.exp(min(x, 700.0))


@exercise("mini-gpt.trapezoid")
def trapezoid(answer):
    """Compare with straight lines between four corners."""
    steps, warmup, cooldown = 50, 8, 12
    at = np.arange(steps)

    def lines(*corners):
        return np.interp(at, *zip(*corners, strict=True))

    up, flat, end = (warmup - 1, 1), (steps - cooldown, 1), (steps, 0)
    mistakes = {
        "the first step has a rate of 0 and does nothing: begin at 1 / warmup.": lines(
            (0, 0), (warmup, 1), flat, end
        ),
        "it begins to fall as soon as it is up; it should stay at 1 until `cooldown` steps "
        "are left.": lines((-1, 0), up, end),
        "it never falls.": lines((-1, 0), up),
        "there is no warm-up.": lines(flat, end),
        "it falls too late: the last step should not be at full rate.": np.where(
            at < steps - cooldown, lines((-1, 0), up), 1.0
        ),
        "the fall begins at step `cooldown`; it should begin `cooldown` steps before the "
        "end.": lines((-1, 0), up, (cooldown, 1), end),
        "it reaches 0 a step early, and the last step does nothing: it is 0 only at "
        "`steps`, which is never taken.": lines((-1, 0), up, flat, (steps - 1, 0)),
        "the rate falls at once to 0; let it go down in a straight line.": np.where(
            at < steps - cooldown, lines((-1, 0), up), 0.0
        ),
    }
    got = [run(answer, int(step), steps, warmup, cooldown) for step in at]
    compare(got, lines((-1, 0), up, flat, end), mistakes)


def _clipped(gradients, limit):
    """Let PyTorch clip copies of the gradients."""
    parameters = [nn.Parameter(torch.zeros_like(g)) for g in gradients]
    for parameter, gradient in zip(parameters, gradients, strict=True):
        parameter.grad = gradient.clone()
    nn.utils.clip_grad_norm_(parameters, limit)
    return _flat([parameter.grad for parameter in parameters])


def _flat(tensors):
    return torch.cat([torch.as_tensor(tensor).flatten() for tensor in tensors])


@exercise("mini-gpt.clip")
def clip(answer):
    """Compare with `nn.utils.clip_grad_norm_`, on long and on short gradients."""
    generator = torch.Generator().manual_seed(0)
    shapes = [(3, 4), (5,), (2, 3)]
    long = [torch.randn(*s, generator=generator, dtype=torch.float64) * 3 for s in shapes]
    short = [gradient / 100 for gradient in long]
    for gradients, limit in [(long, 1.5), (short, 1.5)]:
        want, flat = _clipped(gradients, limit), _flat(gradients)
        norm = flat.norm()
        square = limit / (flat**2).sum()
        mistakes = {
            "short gradients are made longer. Only one that is longer than the limit is to "
            "be changed.": flat * limit / norm,
            "each tensor is clipped by itself, which turns the direction of the whole. "
            "Take one norm over all of them.": _flat(
                [g * min(1, limit / g.norm()) for g in gradients]
            ),
            "each number is cut off at the limit. That changes the direction; scale all "
            "numbers by the same factor.": flat.clamp(-limit, limit),
            "the square root is missing from the norm.": flat * min(1.0, square),
            "the gradients are not changed.": flat,
            "the norms of the tensors are added; it is their squares that add up.": flat
            * min(1.0, limit / sum(g.norm() for g in gradients)),
            "the length is 1, whatever the limit.": flat / norm,
        }
        got = run(answer, [g.clone() for g in gradients], limit)
        if not isinstance(got, list | tuple) or len(got) != len(gradients):
            raise Wrong("return a list with one tensor for each of the gradients.")
        for one, gradient in zip(got, gradients, strict=True):
            if tuple(getattr(one, "shape", ())) != tuple(gradient.shape):
                raise Wrong("each clipped gradient keeps its shape.")
        compare(_flat(got), want, mistakes)


@exercise("mini-gpt.chances")
def chances(answer):
    """Compare with the samplers of `transformers`."""
    generator = torch.Generator().manual_seed(0)
    logits = 2 * torch.randn(3, 8, generator=generator, dtype=torch.float64)
    temperature, k = 0.6, 3
    warm, top = TemperatureLogitsWarper(temperature), TopKLogitsWarper(k)
    want = top(None, warm(None, logits)).softmax(-1)
    p = (logits / temperature).softmax(-1)
    kept = want > 0
    least = TopKLogitsWarper(k)(None, -logits / temperature) > -math.inf
    mistakes = {
        "the temperature multiplies; it should divide.": top(
            None, logits * temperature
        ).softmax(-1),
        "the temperature is not used.": top(None, logits).softmax(-1),
        "the temperature divides the probabilities instead of the logits.": top(
            None, logits.softmax(-1) / temperature
        ).softmax(-1),
        "k is not used.": p,
        "after the others are struck out, the rest must sum to 1 again.": p * kept,
        "struck-out logits are set to 0. That still is a chance; set them to -inf.": (
            logits / temperature * kept
        ).softmax(-1),
        "one too many is kept.": TopKLogitsWarper(k + 1)(
            None, logits / temperature
        ).softmax(-1),
        "one too few is kept.": TopKLogitsWarper(k - 1)(None, logits / temperature).softmax(
            -1
        ),
        "these are the k least likely.": (logits / temperature)
        .masked_fill(~least, -math.inf)
        .softmax(-1),
        "the softmax runs over the texts; it belongs on the last axis.": top(
            None, logits / temperature
        ).softmax(0),
        "only the k chances are returned; the others are there too, with a chance of 0.": (
            want.sort(-1, descending=True).values[:, :k]
        ),
        "these are logits; a softmax is missing.": top(None, logits / temperature),
    }
    compare(run(answer, logits.clone(), temperature, k), want, mistakes)
