"""Checks for the exercises of the chapter *dickinson-layers*."""

import itertools
import math
import re
from collections.abc import Mapping
from statistics import NormalDist

import numpy as np
import torch

from lmcourse import probe
from lmcourse.data import load_poems
from lmcourse.exercises import Wrong, compare, exercise, expect, predict, run
from lmcourse.exercises.answers import array, diagnose, normal, number, strings, type_name

FEWEST = 15  # poems of a theme; fewer say next to nothing
ON_THE_PAGE = ("death", "bee", "sun", "heaven")  # words of themes that the page strikes out


@exercise("dickinson-layers.token_mean", kind="spot the bug")
def token_mean(answer):
    """Compare with each text's mean, taken by itself."""
    lengths = torch.tensor([6, 2, 4])
    mask = torch.arange(6) < lengths[:, None]
    states = normal(3, 6, 4, seed=2) + 3 * ~mask[..., None]  # padding is far from zero
    pairs = list(zip(states, lengths, strict=True))
    want = torch.stack([text[:n].mean(0) for text, n in pairs])
    total = want * lengths[:, None]
    mistakes = {
        "the sum is right, but it is divided by the length of the longest text of the "
        "batch: padding is counted, if as zeros.": total / 6,
        "padding is averaged in: the mask is not used.": states.mean(1),
        "this is the sum over the real tokens, not a mean.": total,
        "it is divided by the number of texts.": total / 3,
        "all texts are divided by the same number, the mean length; each has its own.": (
            total / lengths.double().mean()
        ),
        "the sum still has the padding in it; it is divided by the right number.": (
            states.sum(1) / lengths[:, None]
        ),
    }
    expect(answer, [states, mask], want, mistakes)


# Weights of the trained size turn a vector a long way, trained or not.
predict(
    "dickinson-layers.random_steps",
    a=None,
    b="that is what tiny weights do. Here they are as large as the trained ones, "
    "and what a block adds is as large too.",
    c="then learning would have changed nothing. Which of the steps would you "
    "expect it to change?",
)


def _turning(angles, sizes, texts=4, d_model=9):
    """Levels that turn by these angles (+ a little a text) and have these lengths."""
    basis = torch.linalg.qr(normal(texts, d_model, d_model, seed=8).double())[0]
    here, levels = basis[:, 0], [basis[:, 0] * sizes[0]]
    for step, (angle, size) in enumerate(zip(angles, sizes[1:], strict=True), 1):
        own = angle * (1 + 0.05 * torch.arange(texts).double()[:, None])
        here = here * own.cos() + basis[:, step] * own.sin()
        levels.append(here * size)
    return torch.stack(levels)


def _cosine(a, b):
    return (a @ b / (a.norm() * b.norm())).item()


def _steps(levels):
    pairs = itertools.pairwise(levels)
    texts = range(levels.shape[1])
    return [np.mean([_cosine(a[t], b[t]) for t in texts]) for a, b in pairs]


@exercise("dickinson-layers.biggest_step", kind="spot the bug")
def biggest_step(answer):
    """Turn most in one layer, move furthest in another; count the layers by hand."""
    cases = [  # turns, and lengths that change elsewhere
        ([0.3, 1.1, 0.25, 0.02, 0.3, 0.25, 0.3, 0.2], [1] * 6 + [9] * 3),
        ([0.3, 0.25, 0.02, 0.3, 0.9, 0.2], [12] * 2 + [1] * 5),
        ([1.2, 0.3, 0.3, 0.2, 0.02, 0.3, 0.1], [1] * 4 + [9] * 4),
    ]
    for angles, sizes in cases:
        levels = _turning(angles, sizes)
        got = array(run(answer, levels))
        if got.ndim:
            raise Wrong(
                f"one number is expected, not {got.shape} of them: take the mean over the "
                "texts first."
            )
        big = int(np.argmin(_steps(levels)))
        moved = (levels[1:] - levels[:-1]).norm(dim=-1).mean(dim=1)
        far = moved.argmax().item()
        mistakes = {
            "this is the length of the step, and it counts from 1. A vector that only "
            "grows has not turned; and row 0 belongs to layer 0.": far + 1,
            "this is the length of the step: a vector that only grows has not turned. "
            "Measure the cosine.": far,
            "one too high: row 0 of the steps belongs to layer 0.": big + 1,
            "this is the smallest step: the biggest has the lowest cosine.": (
                int(np.argmax(_steps(levels)))
            ),
            "one too low: count what the rows of the steps compare.": big - 1,
            "each layer is compared with layer 0; a step is from one layer to the next.": (
                len(angles) - 1
            ),
        }
        compare(got, big, mistakes)


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


def _normal_interval(mean, variance, count, tail=0.025):
    z = NormalDist().inv_cdf(1 - tail)
    half = z * math.sqrt(variance / count)
    return np.array([mean - half, mean + half])


@exercise("dickinson-layers.paired_interval")
def paired_interval(answer):
    """Compare with the normal distribution, which a mean over 400 poems follows."""
    ours = np.repeat([1.0, 1.0, 0.0, 0.0], [180, 60, 28, 132])
    theirs = np.repeat([1.0, 0.0, 1.0, 0.0], [180, 60, 28, 132])
    got = array(run(answer, ours, theirs, 4000)).astype(float)
    if got.shape != (2,):
        raise Wrong(f"the shape is {got.shape}; two numbers are expected, low and high.")
    if np.isnan(got).any():
        raise Wrong("there is a NaN in the result.")
    if got[0] > got[1]:
        raise Wrong("the low end comes first.")
    gain, count = ours - theirs, len(ours)

    def like(mean, variance, tail=0.025):
        return np.allclose(got, _normal_interval(mean, variance, count, tail), atol=5e-3)

    mean, apart = gain.mean(), ours.var() + theirs.var()
    if like(mean, gain.var()):
        return None
    narrow = abs(got.mean() - mean) < 0.03 and np.ptp(got) < 0.08
    return {
        "the interval has no width: drawn without replacement, every resample is the same "
        "poems again.": np.allclose(got, mean),
        "too wide: ours and theirs are drawn apart. They are answers about the same poems; "
        "subtract first, then draw poems.": like(mean, apart),
        "this is theirs less ours.": like(-mean, gain.var()),
        "this is the interval of `ours` alone.": like(ours.mean(), ours.var()),
        "these are quantiles of single differences; take those of the means.": (
            np.allclose(got, [-1, 1])
        ),
        "this is the middle 90 %: leave out 2.5 % on each side.": (
            like(mean, gain.var(), 0.05)
        ),
        "too narrow: each resample must have as many poems as there are, and the quantiles "
        "are 0.025 and 0.975.": narrow,
        f"an interval from {got[0]:.3f} to {got[1]:.3f} is not what {count} poems give "
        f"that differ by {mean:.2f} in the mean.": True,
    }


def _entries(answer, names):
    if not isinstance(answer, Mapping) or not all(name in answer for name in names):
        raise Wrong(
            f"hand over a dict with {', '.join(names)}; this is {type_name(answer)}."
        )
    return [answer[name] for name in names]


@exercise("dickinson-layers.strike_out", kind="experiment")
def strike_out(answer):
    """See whether the words are gone, a gap is in every poem, and the score is balanced."""
    words, texts, hits, score = _entries(answer, ("words", "texts", "hits", "score"))
    if not isinstance(words, str) or not re.fullmatch(r"[\w'-]+(\|[\w'-]+)*", words):
        raise Wrong("words should be one string, words joined by |, as in 'snow|snows'.")
    poems, texts, hits = load_poems().text.tolist(), strings(texts), array(hits)
    spoken = np.array([_has(words, poem) for poem in poems])
    diagnose(_unfit_words(words, spoken))
    if len(texts) != len(poems) or hits.shape != (len(poems),):
        raise Wrong(f"texts and hits should be as many as the poems, {len(poems)}.")
    diagnose(_badly_struck_out(words, texts, poems, hits))
    mistakes = {
        "this is the share of all poems guessed right. Most do not speak of the theme: "
        "take the mean of both groups' shares.": hits.mean(),
        "this is the share of the poems that speak of it, guessed right: how many of the "
        "others were?": hits[spoken].mean(),
    }
    compare(number(score), probe.score(hits, spoken), mistakes)


def _unfit_words(words, spoken):
    """Ask if the words are the page's, or in too few or too many poems."""
    return {
        "the page has struck these out already: choose words of your own.": (
            set(ON_THE_PAGE) & set(words.lower().split("|"))
        ),
        f"only {spoken.sum()} of the poems speak of it: the score of so few says next to "
        f"nothing. Take more words, until there are {FEWEST}.": spoken.sum() < FEWEST,
        f"{spoken.sum()} of {len(spoken)} poems speak of it: too few do not.": (
            (~spoken).sum() < FEWEST
        ),
    }


def _badly_struck_out(words, texts, poems, hits):
    """Ask if a text still has the words, or lacks nothing of its poem."""
    whole = [text == poem for text, poem in zip(texts, poems, strict=True)]
    return {
        "a poem still has one of the words: strike out every one, whatever its case.": (
            any(_has(words, text) for text in texts)
        ),
        "the other poems have no gap: that alone would give the theme away. Delete one "
        "random word from each.": any(whole),
        "hits should be 1 where a poem was guessed right, else 0.": (
            not np.isin(hits, [0, 1]).all()
        ),
    }


def _has(words, text):
    return re.search(rf"(?i)\b(?:{words})\b", text) is not None


@exercise("dickinson-layers.reading", kind="judge")
def reading(answer):
    """See that a reading speaks of the poem's own words; whether it is right nobody can."""
    shelf, *lists = _entries(answer, ("shelf", "picture", "meant"))
    poems = load_poems()
    poem = next(text for text in poems.text if text.startswith("Except to heaven"))
    own = set(re.findall(r"[\w'-]+", poem.lower()))
    shelves = sorted(set(poems.section))
    if not isinstance(shelf, str) or shelf not in shelves:
        raise Wrong(f"shelf should be one of {', '.join(shelves)}.")
    picture, meant = ([word.lower() for word in strings(part)] for part in lists)
    strange = [word for word in (*picture, *meant) if word not in own]
    both = sorted(set(picture) & set(meant))
    return {
        f"{' and '.join(map(repr, strange[:3]))} the poem does not say, word for word: "
        "single words of the poem, please.": strange,
        f"{' and '.join(map(repr, both[:3]))} stand in both lists. They may well be "
        "both; decide which they are first.": both,
        "too few words for a reading: at least three of the picture and two of what is "
        "meant. What does the last stanza say of her?": len(picture) < 3 or len(meant) < 2,
    }
