"""What goes wrong in the exercises of *dickinson-layers*, diagnosis → answer."""

import numpy as np
import torch

from lmcourse.data import load_poems
from lmcourse.pooling import step_similarity


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


def given(page):
    """No model reads what is left where words are struck out."""
    return {"strike_out": unread}


def reading(shelf="Nature", picture=("bee", "flower", "dew"), meant=("face", "home")):
    return {"shelf": shelf, "picture": list(picture), "meant": list(meant)}


TOLD = POEMS.str.contains(rf"(?i)\b(?:{SNOW})\b").to_numpy()


def by_cosine(levels):
    cosine = torch.nn.functional.cosine_similarity(levels[1:], levels[:-1], dim=-1)
    return int(cosine.mean(1).argmin()) + 1


WRONG = {
    "biggest_step": {"mean over the texts": lambda x: step_similarity(x).argmin(0)},
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
    "token_mean": [
        lambda x, mask: torch.stack(
            [text[real].mean(0) for text, real in zip(x, mask.bool(), strict=True)]
        )
    ],
    "biggest_step": [by_cosine],
    "content_mean": [
        lambda x, mask: torch.stack(
            [text[real][1:-1].mean(0) for text, real in zip(x, mask.bool(), strict=True)]
        )
    ],
    "paired_interval": [seeded(seed) for seed in range(20)],
    "strike_out": [struck()],
    "reading": [reading(), reading(shelf="Love", meant=["Housewife", "lost"])],
}

TYPED = {"strike_out": [struck()]}
