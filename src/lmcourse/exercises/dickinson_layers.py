"""Checks for the exercises of the chapter *dickinson-layers*."""

import itertools

import numpy as np
import torch
from scipy.stats import binom

from lmcourse.exercises import Wrong, compare, exercise, expect, run
from lmcourse.exercises.answers import array, blame, normal


@exercise("dickinson-layers.content_mean")
def content_mean(answer):
    """Compare with each text cut out by hand."""
    lengths = torch.tensor([7, 3, 5])
    mask = torch.arange(7) < lengths[:, None]
    states = normal(3, 7, 4, seed=3) + 5 * ~mask[..., None]  # padding is far from zero

    def cut(start, end):
        texts = zip(states, lengths, strict=True)
        return torch.stack([text[start : n - end].mean(0) for text, n in texts])

    def masked(states, mask):
        return (states * mask[..., None]).sum(1) / mask.sum(1, keepdim=True)

    want = cut(1, 1)
    mistakes = {
        "[CLS] and [SEP] are still in the mean.": cut(0, 0),
        "[SEP] is still in the mean: it is the last real token of each text.": cut(1, 0),
        "[CLS] is still in the mean.": cut(0, 1),
        "you take the mean over all positions: padding is in it.": states.mean(1),
        "you cut the first and the last column. In a padded row the last column is "
        "padding: [SEP] stands earlier, and padding is still in the mean.": states[
            :, 1:-1
        ].mean(1),
        "you cut the last column, but in a shorter text [SEP] stands earlier: it is still "
        "in that text's mean.": masked(states[:, 1:-1], mask[:, 1:-1]),
        "the sum is right, but it is divided by the number of all real tokens: count only "
        "those that are in the sum.": want * ((lengths - 2) / lengths)[:, None],
        "this is the sum over the real tokens, not a mean.": cut(0, 0) * lengths[:, None],
    }
    expect(answer, [states, mask], want, mistakes)


def _cosine(a, b):
    a, b = a.double(), b.double()
    return (a @ b / (a.norm() * b.norm())).item()


def _layers(levels=7, texts=4, d_model=6):
    """Random levels that move slowly, but for a big step, 4, and a tiny one, 6."""
    moves = normal(levels, texts, d_model, seed=8)
    moves[1:] *= 0.3
    moves[4] *= 8
    moves[6] *= 0.2
    return moves.cumsum(0)


@exercise("dickinson-layers.to_last")
def to_last(answer):
    """Compare with one cosine at a time."""
    layers = _layers()

    def looped(other):
        rows = [zip(layers[i], layers[other(i)], strict=True) for i in range(len(layers))]
        return np.array([[_cosine(*pair) for pair in row] for row in rows])

    want = looped(lambda i: -1)
    mistakes = {
        "you compare with layer 0; the last layer was asked for.": looped(lambda i: 0),
        "these are the steps, each layer against the one before. Here all layers are "
        "compared with the same one, the last.": looped(lambda i: max(i - 1, 0))[1:],
        "the last layer is missing: it too is one of the layers, with a cosine of 1.": (
            want[:-1]
        ),
        "the cosine runs over the texts: dim must be the axis of d_model, the last.": (
            torch.nn.functional.cosine_similarity(layers, layers[-1:], dim=1)
        ),
        "this is the dot product: divide by both lengths.": (layers * layers[-1]).sum(-1),
        "this is one minus the cosine, a distance.": 1 - want,
        "the texts are averaged; keep one number for each.": want.mean(axis=1),
        "the axes are swapped: layers come first, then texts.": want.T,
    }
    expect(answer, [layers], want, mistakes)


@exercise("dickinson-layers.biggest_step")
def biggest_step(answer):
    """Move the big step about, and count the blocks by hand."""
    for shift, big in enumerate((4, 3, 2)):
        part = _layers()[shift:]
        got = array(run(answer, part))
        if got.ndim:
            raise Wrong(
                f"one number is expected, not {got.shape} of them: take the mean over the "
                "texts first."
            )
        means = [
            np.mean([_cosine(a, b) for a, b in zip(low, high, strict=True)])
            for low, high in itertools.pairwise(part)
        ]
        mistakes = {
            "one too low: row 0 of the steps belongs to block 1.": big - 1,
            "this is the smallest step: the biggest has the lowest cosine.": (
                int(np.argmax(means)) + 1
            ),
            "one too high: count what the rows of the steps compare.": big + 1,
        }
        compare(got, big, mistakes)


def _groups(lengths, budget):
    """Cut off as many texts as fit, each as long as the first; return the lists."""
    groups, rest = [], list(lengths)
    while rest:
        size = max(1, budget // rest[0])
        groups, rest = [*groups, rest[:size]], rest[size:]
    return groups


@exercise("dickinson-layers.padding_share")
def padding_share(answer):
    """Count the tokens of each batch one by one."""
    lengths, budget = [9, 3, 8, 2, 5, 4, 3], 18
    groups, real = _groups(sorted(lengths, reverse=True), budget), sum(lengths)

    def computed(groups):
        return sum(max(group) for group in groups for _ in group)

    total = computed(groups)
    mistakes = {
        "you divide the padding by the real tokens: divide by all that is computed.": (
            total / real - 1
        ),
        "this is the share of real tokens; the padding is the rest.": real / total,
        "this is the number of padding tokens: divide by all that is computed.": (
            float(total - real)
        ),
        "each batch is padded to its own longest text, not to the longest of all.": (
            1 - real / computed([lengths])
        ),
        "the texts are batched as they come: batches() sorts them by length.": (
            1 - real / computed(_groups(lengths, budget))
        ),
        "a batch computes what its texts need, not the budget.": (
            1 - real / (budget * len(groups))
        ),
        "this is a percentage; a number from 0 to 1 is asked for.": 100
        * (1 - real / total),
    }
    expect(answer, [lengths, budget], 1 - real / total, mistakes)
    expect(answer, [[4, 4, 4], 8], 0.0)


@exercise("dickinson-layers.bootstrap")
def bootstrap(answer):
    """Compare with the binomial distribution, which a resampled mean follows."""
    hits = np.repeat([1.0, 0.0], [120, 280])
    poems, share = len(hits), hits.mean()
    got = array(run(answer, hits, 4000)).astype(float)
    if got.shape != (2,):
        raise Wrong(f"the shape is {got.shape}; two numbers are expected, low and high.")
    if np.isnan(got).any():
        raise Wrong("there is a NaN in the result.")
    if got[0] > got[1]:
        raise Wrong("the low end comes first.")
    low, high = binom.ppf([0.025, 0.975], poems, share) / poems
    if np.allclose(got, [low, high], atol=0.004):
        return
    narrow = abs(got.mean() - share) < (high - low) / 4 and np.ptp(got) < 0.6 * (high - low)
    faults = {
        "the interval has no width: drawn without replacement, every resample is the same "
        "poems again.": np.allclose(got, share),
        "these are quantiles of single hits; take those of the means.": (
            np.allclose(got, [0, 1])
        ),
        "this is the middle 90 %: leave out 2.5 % on each side.": (
            np.allclose(got, binom.ppf([0.05, 0.95], poems, share) / poems, atol=0.004)
        ),
        "too narrow: each resample must have as many poems as there are, and the quantiles "
        "are 0.025 and 0.975.": narrow,
        f"an interval from {got[0]:.3f} to {got[1]:.3f} is not what {poems} poems give "
        f"when a share of {share:.1f} are hits.": True,
    }
    blame(faults)
