"""Checks for the exercises of the chapter *embeddings*."""

import numpy as np
import torch

from lmcourse.exercises import Wrong, compare, exercise, expect, run
from lmcourse.exercises.answers import normal, several, strings


def _best(vectors, query, left_out, cosine):
    """Return the row nearest to the query, one row at a time."""
    near = {
        row: vector @ query / (np.linalg.norm(vector) if cosine else 1)
        for row, vector in enumerate(vectors)
        if row not in left_out
    }
    return max(near, key=near.get)


@exercise("embeddings.analogy")
def analogy(answer):
    """Compare with a loop over all rows, for many questions."""
    rng = np.random.default_rng(11)
    vectors = rng.standard_normal((40, 5)) * rng.uniform(0.3, 3, size=(40, 1))
    units = [vector / np.linalg.norm(vector) for vector in vectors]
    asked = [tuple(rng.choice(40, 3, replace=False).tolist()) for _ in range(30)]

    def solved(x=units, signs=(-1, 1, 1), out=slice(None), cosine=True):
        queries = [signs @ np.array([x[row] for row in rows]) for rows in asked]
        pairs = zip(queries, asked, strict=True)
        return [_best(vectors, query, rows[out], cosine) for query, rows in pairs]

    mistakes = {
        "it returns one of the three words of the question: leave all three out, for the "
        "nearest is nearly always one of them.": solved(out=slice(0)),
        "only c is left out; a and b may not be the answer either.": solved(
            out=slice(2, 3)
        ),
        "b and a are swapped: the way leads from a to b.": solved(signs=(1, -1, 1)),
        "the three vectors are used with their lengths: make each one a unit vector first, "
        "or a long one decides alone.": solved(vectors),
        "the candidates are ranked by their dot product, which favours long vectors: rank "
        "them by their cosine.": solved(cosine=False),
    }
    compare([run(answer, vectors, *rows) for rows in asked], solved(), mistakes)


@exercise("embeddings.content_words")
def content_words(answer):
    """Compare with pairs that were kept together from the start."""
    tokens = ["the", "bee", "is", "not", "a", "bee", "of", "noon"]
    stop = {"the", "is", "a", "of"}
    vectors = np.arange(24.0).reshape(8, 3)
    together = zip(tokens, vectors, strict=True)
    pairs = [(token, vector) for token, vector in together if token not in stop]
    left, stay = [token for token in tokens if token in stop], [token for token, _ in pairs]
    what = "two things: the tokens that stay, and their vectors"
    labels, points = several(run(answer, tokens, vectors, stop), 2, what)
    labels = strings(labels)
    if labels == left:
        raise Wrong("you keep the stop words and drop the rest: it is the other way round.")
    if sorted(labels) == sorted(set(stay)):
        raise Wrong("a repeated word is lost: each of its points is a token of its own.")
    if labels != stay:
        raise Wrong(f"the tokens that stay are not {labels[:12]}.")
    mistakes = {
        "the labels lost their stop words, the vectors did not: labels and points no "
        "longer match.": vectors,
        "as many points as labels, but the wrong ones: the first few vectors are not those "
        "of the words that stay. Filter both with the same mask.": vectors[:4],
    }
    compare(points, [vector for _, vector in pairs], mistakes)


def _pieces(states, word_ids):
    """Collect each word's vectors, in the order of the words."""
    found = {}
    for state, word in zip(states, word_ids, strict=True):
        if word is not None:
            found.setdefault(word, []).append(state)
    return [torch.stack(found[word]) for word in sorted(found)]


@exercise("embeddings.whole_words")
def whole_words(answer):
    """Compare with the pieces of each word, collected one by one."""
    word_ids, states = [None, 0, 1, 1, 2, 3, 3, 3, None], normal(9, 5, seed=2)
    pieces, shifted = _pieces(states, word_ids), _pieces(states[:-2], word_ids[1:-1])
    want, special = torch.stack([p.mean(0) for p in pieces]), states[[0, -1]].mean(0)[None]
    mistakes = {
        "only the first piece of each word is used.": torch.stack([p[0] for p in pieces]),
        "only the last piece of each word is used.": torch.stack([p[-1] for p in pieces]),
        "the pieces are added up: a word of many pieces gets a long vector. Take their "
        "mean.": torch.stack([p.sum(0) for p in pieces]),
        "special tokens stand for no word (their word is None), and yours are in the "
        "result.": torch.cat([special, want]),
        "special tokens stand for no word (their word is None), and yours come last in the "
        "result.": torch.cat([want, special]),
        "shifted by one: word_ids has an entry for [CLS] too.": torch.stack(
            [p.mean(0) for p in shifted]
        ),
    }
    expect(answer, [states, word_ids], want, mistakes)


@exercise("embeddings.weighted_counts")
def weighted_counts(answer):
    """Compare with a loop over ordered pairs of places."""
    ids, size, window = [0, 1, 2, 1, 3, 3, 0, 4, 2], 6, 3

    def counted(weight=lambda step: 1 / abs(step), window=window):
        counts = np.zeros((size, size))
        for i, one in enumerate(ids):
            for j, other in enumerate(ids):
                if i != j and abs(i - j) <= window:
                    counts[one, other] += weight(j - i)
        return counts

    mistakes = {
        "each pair counts 1: give it 1 / distance.": counted(lambda step: 1),
        "each pair is counted one way: the left word is a neighbour of the right one, "
        "too.": counted(lambda step: (step > 0) / abs(step)),
        "each pair is counted one way, the right word's.": counted(
            lambda step: (step < 0) / abs(step)
        ),
        "the weight falls in equal steps, as in word2vec; here it is 1 / distance.": (
            counted(lambda step: (window + 1 - abs(step)) / window)
        ),
        "the window is one too wide: the largest distance counted is the window.": counted(
            window=window + 1
        ),
        "the window is one too narrow: `range(1, window)` ends before it.": counted(
            window=window - 1
        ),
        "every pair is counted twice.": 2 * counted(),
    }
    expect(answer, [ids, size, window], counted(), mistakes)


@exercise("embeddings.all_but_the_top")
def all_but_the_top(answer):
    """Compare with a projection on the eigenvectors that remain."""
    rng = np.random.default_rng(7)
    vectors = rng.standard_normal((30, 6)) * [5, 3, 2, 1, 0.7, 0.4] + [1, 2, 0, -1, 3, 1]
    mean = vectors.mean(axis=0)

    def projected(centre=mean, keep=slice(4)):
        centred = vectors - centre
        axes = np.linalg.eigh(centred.T @ centred)[1][:, keep]  # eigenvalues rising
        return centred @ axes @ axes.T

    mistakes = {
        "the mean is still there: subtract it, and do not add it again.": mean
        + projected(),
        "nothing was centred: subtract the mean vector before the SVD.": projected(0),
        "the mean was taken over each vector's own numbers; take it over the words.": (
            projected(vectors.mean(axis=1, keepdims=True))
        ),
        "you keep the top directions: they are what should go.": projected(
            keep=slice(4, None)
        ),
        "the mean is gone, the top directions are not.": vectors - mean,
        "the directions with the least variance went, not those with the most: how does "
        "your SVD order them?": projected(keep=slice(2, None)),
        "one direction too few went.": projected(keep=slice(5)),
    }
    expect(answer, [vectors, 2], projected(), mistakes)
    expect(answer, [vectors, 0], vectors - mean)
