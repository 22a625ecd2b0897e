"""What goes wrong in the exercises of *dickinson-layers*, diagnosis → answer."""

import numpy as np
import torch
from torch.nn import functional as F

from lmcourse.pooling import batches, step_similarity


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

WRONG = {
    "content_mean": {
        "[CLS] and [SEP] are still": masked_mean,
        "[SEP] is still": lambda s, m: masked_mean(s, but_first(m)),
        "[CLS] is still": lambda s, m: masked_mean(s, but_last(m)),
        "all positions": lambda s, m: s.mean(1),
        "first and the last column": lambda s, m: s[:, 1:-1].mean(1),
        "you cut the last column, but": lambda s, m: masked_mean(s[:, 1:-1], m[:, 1:-1]),
        "number of all real tokens": lambda s, m: (
            (s * content(m)[..., None]).sum(1) / m.sum(1, keepdim=True)
        ),
        "not a mean": lambda s, m: (s * m[..., None]).sum(1),
        "the shape is (4,)": lambda s, m: masked_mean(s, content(m))[0],
    },
    "to_last": {
        "compare with layer 0": lambda x: cosine(x, x[0]),
        "these are the steps": step_similarity,
        "the last layer is missing": lambda x: cosine(x[:-1], x[-1]),
        "runs over the texts": lambda x: cosine(x, x[-1:], dim=1),
        "dot product": lambda x: (x * x[-1]).sum(-1),
        "a distance": lambda x: 1 - cosine(x, x[-1]),
        "averaged": lambda x: cosine(x, x[-1]).mean(1),
        "axes are swapped": lambda x: cosine(x, x[-1]).T,
    },
    "biggest_step": {
        "one too low": lambda x: step_similarity(x).mean(1).argmin().item(),
        "smallest step": lambda x: step_similarity(x).mean(1).argmax().item() + 1,
        "one too high": lambda x: step_similarity(x).mean(1).argmin().item() + 2,
        "mean over the texts": lambda x: step_similarity(x).argmin(0),
    },
    "padding_share": {
        "by the real tokens": lambda n, b: computed(batches(n, b), n) / sum(n) - 1,
        "share of real tokens": lambda n, b: sum(n) / computed(batches(n, b), n),
        "number of padding tokens": lambda n, b: computed(batches(n, b), n) - sum(n),
        "not to the longest of all": lambda n, b: 1 - sum(n) / (len(n) * max(n)),
        "as they come": lambda n, b: 1 - sum(n) / computed(unsorted(n, b), n),
        "not the budget": lambda n, b: 1 - sum(n) / (b * len(list(batches(n, b)))),
        "percentage": lambda n, b: 100 * (1 - sum(n) / computed(batches(n, b), n)),
    },
    "bootstrap": {
        "two numbers are expected": lambda h, d: resampled(h, d),
        "without replacement": lambda h, d: np.quantile(
            resampled(h, d, replace=False), MIDDLE
        ),
        "single hits": lambda h, d: np.quantile(h, MIDDLE),
        "middle 90 %": lambda h, d: np.quantile(resampled(h, d), [0.05, 0.95]),
        "low end comes first": lambda h, d: np.quantile(resampled(h, d), MIDDLE)[::-1],
        "too narrow": lambda h, d: np.quantile(resampled(h, d, size=4 * len(h)), MIDDLE),
        "is not what 400 poems give": lambda h, d: np.quantile(
            resampled(h, d, size=10), MIDDLE
        ),
        "numbers are expected, not str": lambda h, d: "wide",
        "NaN": lambda h, d: [np.nan, 1.0],
    },
}


def seeded(seed):
    def other(hits, draws):
        rng = np.random.default_rng(seed)
        return np.quantile(rng.binomial(len(hits), hits.mean(), draws) / len(hits), MIDDLE)

    return other


RIGHT = {"bootstrap": [seeded(seed) for seed in range(20)]}
