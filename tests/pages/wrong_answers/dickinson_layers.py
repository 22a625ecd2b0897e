"""What goes wrong in the exercises of *dickinson-layers*, diagnosis → answer."""

import numpy as np
import torch
from torch.nn import functional as F

from lmcourse.data import load_poems
from lmcourse.pooling import step_similarity


def masked_mean(states, keep):
    return (states * keep[..., None]).sum(1) / keep.sum(1, keepdim=True)


def but_last(mask):
    return mask & F.pad(mask[:, 1:], (0, 1))


def but_first(mask):
    return torch.cat([torch.zeros_like(mask[:, :1]), mask[:, 1:]], dim=1)


def content(mask):
    return but_first(but_last(mask))


def kept(states, mask):
    return states * mask[..., None]


def moved(layers):
    return (layers[1:] - layers[:-1]).norm(dim=-1).mean(1)


def to_first(layers):
    return F.cosine_similarity(layers[1:], layers[0], dim=-1).mean(1)


def gains(ours, theirs, draws, size=None, replace=True):
    rng = np.random.default_rng(0)
    gain, size = ours - theirs, size or len(ours)
    return np.array([rng.choice(gain, size, replace).mean() for _ in range(draws)])


def apart(ours, theirs, draws):
    rng = np.random.default_rng(0)
    n = len(ours)
    means = [
        rng.choice(ours, n).mean() - rng.choice(theirs, n).mean() for _ in range(draws)
    ]
    return np.quantile(means, MIDDLE)


MIDDLE = [0.025, 0.975]
POEMS = load_poems().text
SNOW = "snow|snows|frost|winter|ice|cold"


def struck(words=SNOW, **changes):
    """A right answer to the experiment, for any words, but for the changes."""
    told = POEMS.str.contains(rf"(?i)\b(?:{words})\b").to_numpy()
    texts = POEMS.str.replace(rf"(?i)\b(?:{words})\b", "", regex=True)
    texts = [t if said else t[: t.rindex(" ")] for t, said in zip(texts, told, strict=True)]
    hits = (np.arange(len(told)) % 3 > 0).astype(float)
    score = (hits[told].mean() + hits[~told].mean()) / 2 if 0 < told.sum() < 306 else 0.0
    return {"words": words, "texts": texts, "hits": hits, "score": score} | changes


def unread(words):
    """What the page's `strike_out` returns, with random vectors in place of a model's."""
    told = POEMS.str.contains(rf"(?i)\b(?:{words})\b").to_numpy()
    levels = torch.randn(2, len(told), 5, generator=torch.Generator().manual_seed(0))
    return struck(words)["texts"], levels, told


def reading(shelf="Nature", picture=("bee", "flower", "dew"), meant=("face", "home")):
    return {"shelf": shelf, "picture": list(picture), "meant": list(meant)}


TOLD = POEMS.str.contains(rf"(?i)\b(?:{SNOW})\b").to_numpy()

WRONG = {
    "token_mean": {
        "length of the longest text": lambda s, m: kept(s, m).mean(1),
        "the mask is not used": lambda s, m: s.mean(1),
        "not a mean": lambda s, m: kept(s, m).sum(1),
        "number of texts": lambda s, m: kept(s, m).sum(1) / len(s),
        "the mean length": lambda s, m: kept(s, m).sum(1) / m.sum(1).double().mean(),
        "still has the padding": lambda s, m: s.sum(1) / m.sum(1, keepdim=True),
        "the shape is (4,)": lambda s, m: masked_mean(s, m)[0],
    },
    "random_steps": {
        "tiny weights": "a",
        "learning would have changed nothing": ["c", " C "],
        "choose one letter": ["d", "b and c", 2],
    },
    "biggest_step": {
        "and it counts from 0": lambda x: moved(x).argmax().item(),
        "Measure the cosine": lambda x: moved(x).argmax().item() + 1,
        "one too low": lambda x: step_similarity(x).mean(1).argmin().item(),
        "smallest step": lambda x: step_similarity(x).mean(1).argmax().item() + 1,
        "one too high": lambda x: step_similarity(x).mean(1).argmin().item() + 2,
        "compared with layer 0": lambda x: to_first(x).argmin().item() + 1,
        "mean over the texts": lambda x: step_similarity(x).argmin(0),
    },
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
    "paired_interval": {
        "two numbers are expected": gains,
        "without replacement": lambda a, b, d: np.quantile(
            gains(a, b, d, replace=False), MIDDLE
        ),
        "drawn apart": apart,
        "theirs less ours": lambda a, b, d: np.quantile(gains(b, a, d), MIDDLE),
        "`ours` alone": lambda a, b, d: np.quantile(gains(a, 0 * b, d), MIDDLE),
        "single differences": lambda a, b, d: np.quantile(a - b, MIDDLE),
        "middle 90 %": lambda a, b, d: np.quantile(gains(a, b, d), [0.05, 0.95]),
        "low end comes first": lambda a, b, d: np.quantile(gains(a, b, d), MIDDLE)[::-1],
        "too narrow": lambda a, b, d: np.quantile(gains(a, b, d, size=4 * len(a)), MIDDLE),
        "is not what 400 poems give": lambda a, b, d: np.quantile(
            gains(a, b, d, size=10), MIDDLE
        ),
        "numbers are expected, not str": lambda a, b, d: "wide",
        "NaN": lambda a, b, d: [np.nan, 1.0],
    },
    "strike_out": {
        "hand over a dict": [{"words": "snow"}, 0.6],
        "one string, words joined": struck(words=["snow", "frost"]),
        "struck these out already": struck("death|grave|tomb|dying|dead|die"),
        "only ": struck("scarlet|crimson"),
        "too few do not": struck("the|a|of"),
        "as many as the poems": struck(texts=struck()["texts"][:99]),
        "still has one of the words": struck(
            texts=[f"Snow {t}" for t in struck()["texts"]]
        ),
        "have no gap": struck(
            texts=[
                t if told else p
                for t, told, p in zip(struck()["texts"], TOLD, POEMS, strict=True)
            ]
        ),
        "should be 1": struck(hits=np.full(len(TOLD), 0.5)),
        "share of all poems": struck(score=struck()["hits"].mean()),
        "share of the poems that speak": struck(score=struck()["hits"][TOLD].mean()),
        "the numbers differ": struck(score=0.123),
    },
    "reading": {
        "hand over a dict": ["Nature", {"shelf": "Nature"}],
        "one of Life, Love": reading(shelf="Death"),
        "single words of the poem": reading(picture=["rose", "bee", "dew"]),
        "stand in both lists": reading(meant=["face", "bee"]),
        "too few words": [reading(meant=["face"]), reading(picture=["bee", "dew"])],
        "a list of strings": {"shelf": "Love", "picture": "bee", "meant": "face"},
    },
}


def seeded(seed):
    def other(ours, theirs, draws):
        rng = np.random.default_rng(seed)
        picked = rng.integers(len(ours), size=(draws, len(ours)))
        return np.quantile((ours - theirs)[picked].mean(axis=1), MIDDLE)

    return other


RIGHT = {
    "random_steps": ["b", "B "],
    "paired_interval": [seeded(seed) for seed in range(20)],
    "strike_out": [struck()],
    "reading": [reading(), reading(shelf="Love", meant=["Housewife", "lost"])],
}
