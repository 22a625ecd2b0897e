"""Checks for the exercises of the chapter *mini-gpt*."""

import math
from itertools import pairwise

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from transformers import TemperatureLogitsWarper, TopKLogitsWarper

from lmcourse.exercises import Wrong, compare, exercise, expect, run
from lmcourse.exercises.answers import array, normal, several


@exercise("mini-gpt.count_pairs")
def count_pairs(answer):
    """Compare with counting one pair of neighbours after the other."""
    ids, vocab_size = [3, 0, 0, 0, 2, 3, 0, 2, 2, 4, 3, 0], 6

    def counted(pairs):
        counts = np.zeros((vocab_size, vocab_size))
        for first, second in pairs:
            counts[first, second] += 1
        return counts

    want = counted(pairwise(ids))
    mistakes = {
        "rows and columns are swapped: the row is the character that comes first.": want.T,
        "every pair is counted once only. `counts[first, second] += 1` with whole tensors "
        "sets each place once, however often it is named.": (want > 0) * 1.0,
        "every second pair is missing: pairs overlap, each character but the ends is in "
        "two of them.": counted(list(pairwise(ids))[::2]),
        "the last character is paired with the first; nothing follows the last.": counted(
            pairwise([*ids, ids[0]])
        ),
        "these are shares, not counts.": want / want.sum(),
        "each row is divided by its sum; leave the counts as they are.": (
            want / np.maximum(want.sum(1, keepdims=True), 1)
        ),
        "one is added to every count; here nothing is smoothed.": want + 1,
        "these are counts of single characters, not of pairs.": np.bincount(ids, None, 6),
    }
    expect(answer, [torch.tensor(ids), vocab_size], want, mistakes)


@exercise("mini-gpt.windows")
def windows(answer):
    """Compare with slices of the corpus."""
    ids = torch.arange(40) ** 2 % 41  # whoever is off by one gets other numbers
    starts, context = torch.tensor([3, 17, 3, 30]), 5

    def cut(shift, size=context, starts=starts):
        return torch.stack([ids[start + shift :][:size] for start in starts.tolist()])

    first, second = cut(0), cut(1)
    wrong_inputs = {
        "inputs: the windows are one token too long: cut the inputs without their last "
        "token, the targets without their first.": cut(0, context + 1),
        "inputs: the windows are one token too short.": cut(0, context - 1),
        "inputs: these are the targets: inputs and targets are swapped.": second,
        "inputs: the shape is (context, batch); each window is to be a row.": first.T,
        "inputs: these are places in the corpus, not what stands there.": (
            starts[:, None] + torch.arange(context)
        ),
        "inputs: every window begins at the first start.": cut(0, starts=starts[[0] * 4]),
    }
    wrong_targets = {
        "targets: they are the inputs again, not shifted. A model would learn to "
        "copy.": first,
        "targets: they are shifted the wrong way: this is what stood *before* each "
        "token.": cut(-1),
        "targets: they are shifted by two.": cut(2),
        "targets: the last one is the first token of the window: `roll` brings round what "
        "fell off. Cut one token more instead.": first.roll(-1, 1),
        "targets: only the token after the window is there; every token has a target.": (
            second[:, -1]
        ),
        "targets: the last one is missing: it is the token after the window.": second[
            :, :-1
        ],
    }
    got = run(answer, ids, starts, context)
    inputs, targets = several(got, 2, "two tensors: inputs, targets")
    compare(inputs, first, wrong_inputs)
    compare(targets, second, wrong_targets)


@exercise("mini-gpt.perplexity")
def perplexity(answer):
    """Compare with the perplexity of all tokens at once, cut into unequal parts."""
    logits, sizes = 2 * normal(11, 7).double(), [6, 4, 1]
    targets = torch.randint(7, (11,), generator=torch.Generator().manual_seed(0))
    parts = zip(logits.split(sizes), targets.split(sizes), strict=True)
    losses = np.array([F.cross_entropy(*part).item() for part in parts])
    mean, shares = F.cross_entropy(logits, targets).item(), np.array(sizes) / sum(sizes)
    mistakes = {
        "every part counts the same here, whatever its size; every token should.": math.exp(
            losses.mean()
        ),
        "perplexities are averaged; average the losses, then take the exponential.": (
            shares @ np.exp(losses)
        ),
        "the perplexities of the parts are averaged; average the losses over the tokens, "
        "then take the exponential.": np.exp(losses).mean(),
        "this is the loss; perplexity is its exponential.": mean,
        "this is the mean of the parts' losses, each part counted the same; and perplexity "
        "is an exponential.": losses.mean(),
        "the sign: perplexity is never below 1.": math.exp(-mean),
        "the losses are in nats: the base is e, not 2.": 2**mean,
        "the weighted losses are summed but not divided by the number of tokens.": math.exp(
            mean * sum(sizes)
        ),
    }
    expect(answer, [losses.tolist(), sizes], math.exp(mean), mistakes)


@exercise("mini-gpt.trapezoid")
def trapezoid(answer):
    """Compare with straight lines between four corners."""
    steps, warmup, cooldown = 50, 8, 12
    at = np.arange(steps)

    def lines(*corners):
        return np.interp(at, *zip(*corners, strict=True))

    start, up, flat, end = (-1, 0), (warmup - 1, 1), (steps - cooldown, 1), (steps, 0)
    rising, early = lines(start, up), at < steps - cooldown
    mistakes = {
        "the first step has a rate of 0 and does nothing: begin at 1 / warmup.": lines(
            (0, 0), (warmup, 1), flat, end
        ),
        "it begins to fall as soon as it is up; it should stay at 1 until `cooldown` steps "
        "are left.": lines(start, up, end),
        "it never falls.": rising,
        "there is no warm-up.": lines(flat, end),
        "it falls too late: the last step should not be at full rate.": np.where(
            early, rising, 1
        ),
        "the fall begins at step `cooldown`; it should begin `cooldown` steps before the "
        "end.": lines(start, up, (cooldown, 1), end),
        "it reaches 0 a step early, and the last step does nothing: it is 0 only at "
        "`steps`, which is never taken.": lines(start, up, flat, (steps - 1, 0)),
        "the rate falls at once to 0; let it go down in a straight line.": rising * early,
    }
    got = [run(answer, int(step), steps, warmup, cooldown) for step in at]
    compare(got, lines(start, up, flat, end), mistakes)


def _clipped(gradients, limit):
    """Let PyTorch clip copies of the gradients."""
    parameters = [nn.Parameter(torch.zeros_like(g)) for g in gradients]
    for parameter, gradient in zip(parameters, gradients, strict=True):
        parameter.grad = gradient.clone()
    nn.utils.clip_grad_norm_(parameters, limit)
    return _flat(parameter.grad for parameter in parameters)


def _flat(tensors):
    return torch.cat([tensor.flatten() for tensor in tensors])


@exercise("mini-gpt.clip")
def clip(answer):
    """Compare with `nn.utils.clip_grad_norm_`, on long and on short gradients."""
    long = [
        3 * normal(*shape, seed=len(shape)).double() for shape in [(3, 4), (5,), (2, 3, 1)]
    ]
    for gradients, limit in [(long, 1.5), ([g / 100 for g in long], 1.5)]:
        flat = _flat(gradients)
        norm = flat.norm()
        mistakes = {
            "short gradients are made longer. Only one that is longer than the limit is to "
            "be changed.": flat * limit / norm,
            "each tensor is clipped by itself, which turns the direction of the whole. "
            "Take one norm over all of them.": _flat(
                g * min(1, limit / g.norm()) for g in gradients
            ),
            "each number is cut off at the limit. That changes the direction; scale all "
            "numbers by the same factor.": flat.clamp(-limit, limit),
            "the square root is missing from the norm.": flat * min(1, limit / norm**2),
            "the gradients are not changed.": flat,
            "the norms of the tensors are added; it is their squares that add up.": (
                flat * min(1, limit / sum(g.norm() for g in gradients))
            ),
            "the length is 1, whatever the limit.": flat / norm,
        }
        what = "a list with one tensor for each of the gradients"
        got = [array(one) for one in several(run(answer, gradients, limit), 3, what)]
        if [one.shape for one in got] != [tuple(g.shape) for g in gradients]:
            raise Wrong("each clipped gradient keeps its shape.")
        got = np.concatenate([one.ravel() for one in got])
        compare(got, _clipped(gradients, limit), mistakes)


@exercise("mini-gpt.chances")
def chances(answer):
    """Compare with the samplers of `transformers`."""
    logits, temperature, k = 2 * normal(3, 8).double(), 0.6, 3
    warm = TemperatureLogitsWarper(temperature)(None, logits)

    def top(scores, k=k):
        return TopKLogitsWarper(k)(None, scores)

    def kept(scores, k=k):
        return top(scores, k).softmax(-1)

    want = kept(warm)
    mistakes = {
        "the temperature multiplies; it should divide.": kept(logits * temperature),
        "the temperature is not used.": kept(logits),
        "the temperature divides the probabilities instead of the logits.": kept(
            logits.softmax(-1) / temperature
        ),
        "k is not used.": warm.softmax(-1),
        "after the others are struck out, the rest must sum to 1 again.": (
            warm.softmax(-1) * (want > 0)
        ),
        "struck-out logits are set to 0. That still is a chance; set them to -inf.": (
            (warm * (want > 0)).softmax(-1)
        ),
        "one too many is kept.": kept(warm, k + 1),
        "one too few is kept.": kept(warm, k - 1),
        "these are the k least likely.": (-top(-warm))
        .nan_to_num(posinf=-math.inf)
        .softmax(-1),
        "the softmax runs over the texts; it belongs on the last axis.": top(warm).softmax(
            0
        ),
        "only the k chances are returned; the others are there too, with a chance of 0.": (
            want.sort(descending=True).values[:, :k]
        ),
        "these are logits; a softmax is missing.": top(warm),
    }
    expect(answer, [logits, temperature, k], want, mistakes)
