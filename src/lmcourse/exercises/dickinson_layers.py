"""Checks for the exercises of the chapter *dickinson-layers*."""

import itertools

import numpy as np
import torch

from lmcourse.exercises import Wrong, compare, exercise, run
from lmcourse.exercises.answers import array


def _texts(lengths, d_model):
    """Random states with a mask, what stands at padding being far from zero."""
    generator = torch.Generator().manual_seed(3)
    states = torch.randn(len(lengths), max(lengths), d_model, generator=generator)
    mask = torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]
    states[~mask] += 5
    return states, mask


@exercise("dickinson-layers.content_mean")
def content_mean(answer):
    """Compare with each text cut out by hand."""
    lengths = [7, 3, 5]
    states, mask = _texts(lengths, d_model=4)

    def cut(start, stop):
        return torch.stack(
            [
                text[start(n) : stop(n)].mean(0)
                for text, n in zip(states, lengths, strict=True)
            ]
        )

    real = mask[..., None]
    compare(
        run(answer, states.clone(), mask.clone()),
        cut(lambda n: 1, lambda n: n - 1),
        {
            "[CLS] and [SEP] are still in the mean.": cut(lambda n: 0, lambda n: n),
            "[SEP] is still in the mean: it is the last real token of each text.": cut(
                lambda n: 1, lambda n: n
            ),
            "[CLS] is still in the mean.": cut(lambda n: 0, lambda n: n - 1),
            "you take the mean over all positions: padding is in it.": states.mean(1),
            "you cut the first and the last column. In a padded row the last column is "
            "padding: [SEP] stands earlier, and padding is still in the mean.": (
                states[:, 1:-1].mean(1)
            ),
            "you cut the last column, but in a shorter text [SEP] stands earlier: it is "
            "still in that text's mean.": _masked(states[:, 1:-1], mask[:, 1:-1]),
            "the sum is right, but it is divided by the number of all real tokens: count "
            "only those that are in the sum.": (
                cut(lambda n: 1, lambda n: n - 1)
                * torch.tensor([[(n - 2) / n] for n in lengths])
            ),
            "this is the sum over the real tokens, not a mean.": (states * real).sum(1),
        },
    )


def _masked(states, mask):
    kept = mask[..., None]
    return (states * kept).sum(1) / kept.sum(1)


def _cosine(a, b):
    a, b = a.double(), b.double()
    return (a @ b / (a.norm() * b.norm())).item()


def _layers(levels=7, texts=4, d_model=6):
    """Random levels that move slowly, but for a big step, 4, and a tiny one, 6."""
    generator = torch.Generator().manual_seed(8)
    moves = torch.randn(levels, texts, d_model, generator=generator)
    moves[1:] *= 0.3
    moves[4] *= 8
    moves[6] *= 0.2
    return moves.cumsum(0)


@exercise("dickinson-layers.to_last")
def to_last(answer):
    """Compare with one cosine at a time."""
    layers = _layers()
    levels, texts = layers.shape[:2]

    def looped(other):
        return [
            [_cosine(layers[i, t], layers[other(i), t]) for t in range(texts)]
            for i in range(levels)
        ]

    want = looped(lambda i: -1)
    compare(
        run(answer, layers.clone()),
        want,
        {
            "you compare with layer 0; the last layer was asked for.": looped(lambda i: 0),
            "these are the steps, each layer against the one before. Here all layers are "
            "compared with the same one, the last.": looped(lambda i: max(i - 1, 0))[1:],
            "the last layer is missing: it too is one of the layers, with a cosine of 1.": (
                want[:-1]
            ),
            "the cosine runs over the texts: dim must be the axis of d_model, the last.": (
                torch.nn.functional.cosine_similarity(layers, layers[-1:], dim=1)
            ),
            "this is the dot product: divide by both lengths.": (layers * layers[-1]).sum(
                -1
            ),
            "this is one minus the cosine, a distance.": 1 - np.array(want),
            "the texts are averaged; keep one number for each.": np.mean(want, axis=1),
            "the axes are swapped: layers come first, then texts.": np.transpose(want),
        },
    )


@exercise("dickinson-layers.biggest_step")
def biggest_step(answer):
    """Move the big step about, and count the blocks by hand."""
    layers = _layers()
    for shift, big in enumerate((4, 3, 2)):
        part = layers[shift:]
        got = run(answer, part.clone())
        if isinstance(got, torch.Tensor | np.ndarray) and got.ndim:
            raise Wrong(
                f"one number is expected, not {tuple(got.shape)} of them: take the mean "
                "over the texts first."
            )
        means = [
            np.mean([_cosine(a, b) for a, b in zip(low, high, strict=True)])
            for low, high in itertools.pairwise(part)
        ]
        compare(
            got,
            big,
            {
                "one too low: row 0 of the steps belongs to block 1.": big - 1,
                "this is the smallest step: the biggest has the lowest cosine.": (
                    int(np.argmax(means)) + 1
                ),
                "one too high: count what the rows of the steps compare.": big + 1,
            },
        )


@exercise("dickinson-layers.padding_share")
def padding_share(answer):
    """Count the tokens of each batch one by one."""
    lengths, budget = [9, 3, 8, 2, 5, 4, 3], 18
    sorted_lengths = sorted(lengths, reverse=True)

    def count(lengths):
        computed, rest = 0, list(lengths)
        while rest:
            size = max(1, budget // rest[0])
            group, rest = rest[:size], rest[size:]
            computed += sum(max(group) for _ in group)
        return computed

    real, computed = sum(lengths), count(sorted_lengths)
    want = 1 - real / computed
    compare(
        run(answer, list(lengths), budget),
        want,
        {
            "you divide the padding by the real tokens: divide by all that is computed.": (
                computed / real - 1
            ),
            "this is the share of real tokens; the padding is the rest.": real / computed,
            "this is the number of padding tokens: divide by all that is computed.": (
                computed - real
            ),
            "each batch is padded to its own longest text, not to the longest of all.": (
                1 - real / (len(lengths) * max(lengths))
            ),
            "the texts are batched as they come: batches() sorts them by length.": (
                1 - real / count(lengths)
            ),
            "a batch computes what its texts need, not the budget.": (
                1 - real / (budget * _number_of_batches(sorted_lengths, budget))
            ),
            "this is a percentage; a number from 0 to 1 is asked for.": 100 * want,
        },
    )
    compare(run(answer, [4, 4, 4], 8), 0.0)


def _number_of_batches(lengths, budget):
    number, rest = 0, list(lengths)
    while rest:
        rest, number = rest[max(1, budget // rest[0]) :], number + 1
    return number


@exercise("dickinson-layers.bootstrap")
def bootstrap(answer):
    """Compare with the binomial distribution, which a resampled mean follows."""
    from scipy.stats import binom

    poems, draws = 400, 4000
    hits = np.array([1.0] * 120 + [0.0] * 280)
    got = run(answer, hits.copy(), draws)
    got = array(got).astype(float)
    if got.shape != (2,):
        raise Wrong(f"the shape is {got.shape}; two numbers are expected, low and high.")
    low, high = binom.ppf([0.025, 0.975], poems, hits.mean()) / poems
    width, share = high - low, hits.mean()
    if np.isnan(got).any():
        raise Wrong("there is a NaN in the result.")
    if got[0] > got[1]:
        raise Wrong("the low end comes first.")
    if np.allclose(got, share):
        raise Wrong(
            "the interval has no width: drawn without replacement, every resample is the "
            "same poems again."
        )
    if np.allclose(got, [0, 1]):
        raise Wrong("these are quantiles of single hits; take those of the means.")
    if np.allclose(got, [low, high], atol=0.004):
        return
    narrow = binom.ppf([0.05, 0.95], poems, share) / poems
    if np.allclose(got, narrow, atol=0.004):
        raise Wrong("this is the middle 90 %: leave out 2.5 % on each side.")
    if abs(got.mean() - share) < 0.25 * width and got[1] - got[0] < 0.6 * width:
        raise Wrong(
            "too narrow: each resample must have as many poems as there are, and the "
            "quantiles are 0.025 and 0.975."
        )
    raise Wrong(
        f"an interval from {got[0]:.3f} to {got[1]:.3f} is not what {poems} poems give "
        f"when a share of {share:.1f} are hits."
    )
