"""What goes wrong in the exercises of *embeddings*, diagnosis → answer."""

from collections import Counter
from functools import cache

import numpy as np

from lmcourse.data import load_poems, load_sonnets
from lmcourse.embeddings import words
from lmcourse.models import load_bert

POEMS = [words(text) for text in [*load_poems().text, *load_sonnets().text]]


@cache
def made():
    """Return what the page has made when it comes to the experiment."""
    tokenizer, bert = load_bert(device="cpu")
    table = bert.embeddings.word_embeddings.weight.detach().double().numpy()
    rows, counted = tokenizer.get_vocab(), Counter(word for poem in POEMS for word in poem)
    common = sorted(
        (w for w in counted if counted[w] >= 10 and w in rows),
        key=lambda w: (-counted[w], w),
    )
    theirs = table[[rows[word] for word in common]]
    return {"split": POEMS, "common": common, "theirs": theirs}


def given(page):
    return made()


def shuffled():
    rng = np.random.default_rng(3)
    return [rng.permutation(poem).tolist() for poem in POEMS]


def shuffled_across():
    ends = np.cumsum([len(poem) for poem in POEMS])[:-1]
    every = np.random.default_rng(3).permutation(np.concatenate(POEMS))
    return [poem.tolist() for poem in np.split(every, ends)]


def keep(tokens, stop):
    return [i for i, token in enumerate(tokens) if token not in stop]


def nearest(vectors, a, b, c):
    directions = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    order = np.argsort(-(directions @ (directions[b] - directions[a] + directions[c])))
    return next(int(row) for row in order if row not in (a, b, c))


def by_eigenvectors(vectors, k):
    centred = vectors - vectors.mean(axis=0)
    axes = np.linalg.eigh(centred.T @ centred)[1][:, vectors.shape[1] - k :]
    return centred - centred @ axes @ axes.T


WRONG = {
    "content_words": {
        "a repeated word is lost": lambda t, v, s: (sorted({*t} - s), v[:3]),
        "the other way round": lambda t, v, s: (
            [w for w in t if w in s],
            v[[i for i, w in enumerate(t) if w in s]],
        ),
        "return two things": lambda t, v, s: v[keep(t, s)],
        "the tokens that stay are not": lambda t, v, s: (t, v),
    },
    "scrambled": {
        "give two things": [POEMS, 0.06],
        "a list of lists of words": [(" ".join(POEMS[0]), 0.06), (["a b"], 0.06)],
        "poems, and": (POEMS[:3], 0.06),
        "from poem to poem": (shuffled_across(), 0.05),
        "other words than before": ([poem[:-1] for poem in POEMS], 0.06),
        "the text as it was": (POEMS, 0.094),
        "stand in an order still": [
            ([sorted(poem) for poem in POEMS], 0.06),
            ([poem[::-1] for poem in POEMS], 0.06),
        ],
        "not what these texts give": (shuffled(), 0.094),
    },
    "whose": {
        "four letters": ["BDS", 7, "BBDS"],
        "start with BERT's": "BDSR",
        "day and night": "RSBD",
        "one is chance": "SDBR",
    },
}

RIGHT = {
    "analogy": [nearest],
    "content_words": [
        lambda t, v, s: ([t[i] for i in keep(t, s)], v[keep(t, s)]),
        lambda t, v, s: ([t[i] for i in keep(t, s)], [v[i] for i in keep(t, s)]),
    ],
    "all_but_the_top": [by_eigenvectors],
    "static_vectors": [lambda model, ids: model.embeddings.word_embeddings(ids)],
    "whose": ["srbd ", "SrBd\n"],
}

TYPED = {"scrambled": [(shuffled(), 0.045), (shuffled(), 0.02)]}
