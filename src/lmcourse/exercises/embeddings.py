"""Checks for the exercises of the chapter *embeddings*."""

import numpy as np
import torch

from lmcourse.exercises import Wrong, compare, exercise, run


def _best(vectors, query, left_out, cosine=True):
    """Return the row nearest to the query, one row at a time."""
    best, where = -np.inf, -1
    for row, vector in enumerate(vectors):
        if row in left_out:
            continue
        near = vector @ query / (np.linalg.norm(vector) if cosine else 1)
        if near > best:
            best, where = near, row
    return where


@exercise("embeddings.analogy")
def analogy(answer):
    """Compare with a loop over all rows, for many questions."""
    rng = np.random.default_rng(11)
    vectors = rng.standard_normal((40, 5)) * rng.uniform(0.3, 3, size=(40, 1))
    directions = [vector / np.linalg.norm(vector) for vector in vectors]
    asked = [tuple(rng.choice(40, 3, replace=False).tolist()) for _ in range(30)]
    got = [run(answer, vectors.copy(), *rows) for rows in asked]

    def solved(query, out=lambda a, b, c: (a, b, c), **kind):
        return [_best(vectors, query(*rows), out(*rows), **kind) for rows in asked]

    def shift(a, b, c):
        return directions[b] - directions[a] + directions[c]

    compare(
        got,
        solved(shift),
        {
            "it returns one of the three words of the question: leave all three out, "
            "for the nearest is nearly always one of them.": solved(
                shift, lambda a, b, c: ()
            ),
            "only c is left out; a and b may not be the answer either.": solved(
                shift, lambda a, b, c: (c,)
            ),
            "b and a are swapped: the way leads from a to b.": solved(
                lambda a, b, c: directions[a] - directions[b] + directions[c]
            ),
            "the three vectors are used with their lengths: make each one a unit vector "
            "first, or a long one decides alone.": solved(
                lambda a, b, c: vectors[b] - vectors[a] + vectors[c]
            ),
            "the candidates are ranked by their dot product, which favours long vectors: "
            "rank them by their cosine.": solved(shift, cosine=False),
        },
    )


@exercise("embeddings.content_words")
def content_words(answer):
    """Compare with pairs that were kept together from the start."""
    tokens = ["the", "bee", "is", "not", "a", "bee", "of", "noon"]
    stop = {"the", "is", "a", "of"}
    vectors = np.arange(24.0).reshape(8, 3)
    together = list(zip(tokens, vectors, strict=True))
    pairs = [(token, vector) for token, vector in together if token not in stop]
    got = run(answer, list(tokens), vectors.copy(), set(stop))
    if not isinstance(got, tuple) or len(got) != 2:
        raise Wrong("return two things: the tokens that stay, and their vectors.")
    labels, points = list(got[0]), np.asarray(got[1], dtype=float)
    if labels == [token for token in tokens if token in stop]:
        raise Wrong("you keep the stop words and drop the rest: it is the other way round.")
    if sorted(labels) == sorted({token for token, _ in pairs}):
        raise Wrong("a repeated word is lost: each of its points is a token of its own.")
    if labels != [token for token, _ in pairs]:
        raise Wrong(f"the tokens that stay are not {labels}.")
    compare(
        points,
        [vector for _, vector in pairs],
        {
            "the labels lost their stop words, the vectors did not: labels and points no "
            "longer match.": vectors,
            "as many points as labels, but the wrong ones: the first few vectors are not "
            "those of the words that stay. Filter both with the same mask.": vectors[:4],
        },
    )


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
    word_ids = [None, 0, 1, 1, 2, 3, 3, 3, None]
    generator = torch.Generator().manual_seed(2)
    states = torch.randn(9, 5, generator=generator)
    pieces = _pieces(states, word_ids)
    shifted = _pieces(states[:-2], word_ids[1:-1])
    special = states[[0, -1]].mean(0)
    want = torch.stack([piece.mean(0) for piece in pieces])
    compare(
        run(answer, states.clone(), list(word_ids)),
        want,
        {
            "only the first piece of each word is used.": torch.stack(
                [piece[0] for piece in pieces]
            ),
            "only the last piece of each word is used.": torch.stack(
                [piece[-1] for piece in pieces]
            ),
            "the pieces are added up: a word of many pieces gets a long vector. Take "
            "their mean.": torch.stack([piece.sum(0) for piece in pieces]),
            "special tokens stand for no word (their word is None), and yours are in "
            "the result.": torch.cat([special[None], want]),
            "special tokens stand for no word (their word is None), and yours come "
            "last in the result.": torch.cat([want, special[None]]),
            "shifted by one: word_ids has an entry for [CLS] too.": torch.stack(
                [piece.mean(0) for piece in shifted]
            ),
        },
    )


def _weighted(ids, size, window, weight):
    """Count with a loop over ordered pairs of places."""
    counts = np.zeros((size, size))
    for i, one in enumerate(ids):
        for j, other in enumerate(ids):
            if i != j and abs(i - j) <= window:
                counts[one, other] += weight(j - i)
    return counts


@exercise("embeddings.weighted_counts")
def weighted_counts(answer):
    """Compare with a loop over ordered pairs of places."""
    ids, size, window = [0, 1, 2, 1, 3, 3, 0, 4, 2], 6, 3

    def near(step):
        return 1 / abs(step)

    compare(
        run(answer, list(ids), size, window),
        _weighted(ids, size, window, near),
        {
            "each pair counts 1: give it 1 / distance.": _weighted(
                ids, size, window, lambda step: 1
            ),
            "each pair is counted one way: the left word is a neighbour of the right "
            "one, too.": _weighted(ids, size, window, lambda s: (s > 0) * near(s)),
            "each pair is counted one way, the right word's.": _weighted(
                ids, size, window, lambda s: (s < 0) * near(s)
            ),
            "the weight falls in equal steps, as in word2vec; here it is 1 / distance.": (
                _weighted(ids, size, window, lambda s: (window + 1 - abs(s)) / window)
            ),
            "the window is one too wide: the largest distance counted is the "
            "window.": _weighted(ids, size, window + 1, near),
            "the window is one too narrow: `range(1, window)` ends before it.": _weighted(
                ids, size, window - 1, near
            ),
            "every pair is counted twice.": 2 * _weighted(ids, size, window, near),
        },
    )


@exercise("embeddings.all_but_the_top")
def all_but_the_top(answer):
    """Compare with a projection on the eigenvectors that remain."""
    rng = np.random.default_rng(7)
    vectors = rng.standard_normal((30, 6)) * [5, 3, 2, 1, 0.7, 0.4] + [1, 2, 0, -1, 3, 1]

    def projected(centre, keep):
        centred = vectors - centre
        _, axes = np.linalg.eigh(centred.T @ centred)  # (d_model, d_model), rising
        return centred @ axes[:, keep] @ axes[:, keep].T

    mean = vectors.mean(axis=0)
    low, high = slice(None, 4), slice(4, None)
    own = vectors - vectors.mean(axis=1, keepdims=True)
    _, axes = np.linalg.eigh(own.T @ own)
    compare(
        run(answer, vectors.copy(), 2),
        projected(mean, low),
        {
            "the mean is still there: subtract it, and do not add it again.": mean
            + projected(mean, low),
            "nothing was centred: subtract the mean vector before the SVD.": projected(
                0, low
            ),
            "the mean was taken over each vector's own numbers; take it over the "
            "words.": own @ axes[:, low] @ axes[:, low].T,
            "you keep the top directions: they are what should go.": projected(mean, high),
            "the mean is gone, the top directions are not.": vectors - mean,
            "the directions with the least variance went, not those with the most: how "
            "does your SVD order them?": projected(mean, slice(2, None)),
            "one direction too few went.": projected(mean, slice(None, 5)),
        },
    )
    compare(run(answer, vectors.copy(), 0), vectors - mean)
