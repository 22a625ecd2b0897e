"""The exercises of *dickinson-layers*: each known mistake is recognised and named."""

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from lmcourse.exercises import check
from lmcourse.pooling import batches, step_similarity

CHAPTER = "dickinson-layers"


def masked_mean(states, keep):
    return (states * keep[..., None]).sum(1) / keep.sum(1, keepdim=True)


def but_last(mask):
    return mask & F.pad(mask[:, 1:], (0, 1))


def but_first(mask):
    return torch.cat([torch.zeros_like(mask[:, :1]), mask[:, 1:]], dim=1)


def content(mask):
    return but_first(but_last(mask))


def cosine(a, b, dim=-1):
    return F.cosine_similarity(a, b, dim=dim)


def computed(groups, lengths):
    return sum(len(group) * max(lengths[i] for i in group) for group in groups)


def unsorted(lengths, budget):
    order, groups = list(range(len(lengths))), []
    while order:
        size = max(1, budget // lengths[order[0]])
        groups, order = [*groups, order[:size]], order[size:]
    return groups


def resampled(hits, draws, size=None, replace=True):
    rng = np.random.default_rng(0)
    size = size or len(hits)
    return np.array([rng.choice(hits, size, replace).mean() for _ in range(draws)])


MIDDLE = [0.025, 0.975]
MISTAKES = [
    ("content_mean", masked_mean, "[CLS] and [SEP] are still"),
    ("content_mean", lambda s, m: masked_mean(s, but_first(m)), "[SEP] is still"),
    ("content_mean", lambda s, m: masked_mean(s, but_last(m)), "[CLS] is still"),
    ("content_mean", lambda s, m: s.mean(1), "all positions"),
    ("content_mean", lambda s, m: s[:, 1:-1].mean(1), "first and the last column"),
    (
        "content_mean",
        lambda s, m: masked_mean(s[:, 1:-1], m[:, 1:-1]),
        "you cut the last column, but",
    ),
    (
        "content_mean",
        lambda s, m: (s * content(m)[..., None]).sum(1) / m.sum(1, keepdim=True),
        "number of all real tokens",
    ),
    ("content_mean", lambda s, m: (s * m[..., None]).sum(1), "not a mean"),
    ("content_mean", lambda s, m: masked_mean(s, content(m))[0], "the shape is (4,)"),
    ("to_last", lambda x: cosine(x, x[0]), "compare with layer 0"),
    ("to_last", step_similarity, "these are the steps"),
    ("to_last", lambda x: cosine(x[:-1], x[-1]), "the last layer is missing"),
    ("to_last", lambda x: cosine(x, x[-1:], dim=1), "runs over the texts"),
    ("to_last", lambda x: (x * x[-1]).sum(-1), "dot product"),
    ("to_last", lambda x: 1 - cosine(x, x[-1]), "a distance"),
    ("to_last", lambda x: cosine(x, x[-1]).mean(1), "averaged"),
    ("to_last", lambda x: cosine(x, x[-1]).T, "axes are swapped"),
    (
        "biggest_step",
        lambda x: step_similarity(x).mean(1).argmin().item(),
        "one too low",
    ),
    (
        "biggest_step",
        lambda x: step_similarity(x).mean(1).argmax().item() + 1,
        "smallest step",
    ),
    (
        "biggest_step",
        lambda x: step_similarity(x).mean(1).argmin().item() + 2,
        "one too high",
    ),
    ("biggest_step", lambda x: step_similarity(x).argmin(0), "mean over the texts"),
    (
        "padding_share",
        lambda n, b: computed(batches(n, b), n) / sum(n) - 1,
        "by the real tokens",
    ),
    (
        "padding_share",
        lambda n, b: sum(n) / computed(batches(n, b), n),
        "share of real tokens",
    ),
    (
        "padding_share",
        lambda n, b: computed(batches(n, b), n) - sum(n),
        "number of padding tokens",
    ),
    (
        "padding_share",
        lambda n, b: 1 - sum(n) / (len(n) * max(n)),
        "not to the longest of all",
    ),
    (
        "padding_share",
        lambda n, b: 1 - sum(n) / computed(unsorted(n, b), n),
        "as they come",
    ),
    (
        "padding_share",
        lambda n, b: 1 - sum(n) / (b * len(list(batches(n, b)))),
        "not the budget",
    ),
    (
        "padding_share",
        lambda n, b: 100 * (1 - sum(n) / computed(batches(n, b), n)),
        "percentage",
    ),
    ("bootstrap", lambda h, d: resampled(h, d), "two numbers are expected"),
    (
        "bootstrap",
        lambda h, d: np.quantile(resampled(h, d, replace=False), MIDDLE),
        "without replacement",
    ),
    ("bootstrap", lambda h, d: np.quantile(h, MIDDLE), "single hits"),
    (
        "bootstrap",
        lambda h, d: np.quantile(resampled(h, d), [0.05, 0.95]),
        "middle 90 %",
    ),
    (
        "bootstrap",
        lambda h, d: np.quantile(resampled(h, d), MIDDLE)[::-1],
        "low end comes first",
    ),
    (
        "bootstrap",
        lambda h, d: np.quantile(resampled(h, d, size=4 * len(h)), MIDDLE),
        "too narrow",
    ),
    (
        "bootstrap",
        lambda h, d: np.quantile(resampled(h, d, size=10), MIDDLE),
        "is not what 400 poems give",
    ),
    ("bootstrap", lambda h, d: "wide", "two numbers are expected"),
    ("bootstrap", lambda h, d: [np.nan, 1.0], "NaN"),
]


@pytest.mark.parametrize(
    ("name", "answer", "says"), MISTAKES, ids=[f"{n}-{s}" for n, _, s in MISTAKES]
)
def test_known_mistakes_get_their_own_diagnosis(name, answer, says):
    verdict = check(f"{CHAPTER}.{name}", answer)
    assert not verdict.ok
    assert says in verdict.message, verdict


@pytest.mark.parametrize("seed", range(20))
def test_another_generator_passes_too(seed):
    def other(hits, draws):
        rng = np.random.default_rng(seed)
        return np.quantile(rng.binomial(len(hits), hits.mean(), draws) / len(hits), MIDDLE)

    assert check(f"{CHAPTER}.bootstrap", other).ok
