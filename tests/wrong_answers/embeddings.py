"""What goes wrong in the exercises of *embeddings*, diagnosis → answer."""

import numpy as np
import torch

from lmcourse.embeddings import unit


def analogy(directions, query, candidates, left_out=()):
    cosine = candidates(directions) @ query
    cosine[list(left_out)] = -np.inf
    return int(cosine.argmax())


def step(v, a, b, c):
    return unit(v)[b] - unit(v)[a] + unit(v)[c]


def long_step(v, a, b, c):
    return v[b] - v[a] + v[c]


def keep(tokens, stop):
    return [i for i, token in enumerate(tokens) if token not in stop]


def labels(tokens, stop):
    return [tokens[i] for i in keep(tokens, stop)]


def by_word(reduce, *, special=False, shift=0):
    def whole_words(states, word_ids):
        if shift:
            states, word_ids = states[: -2 * shift], word_ids[shift:-shift]
        groups = list(dict.fromkeys(w for w in word_ids if special or w is not None))
        if special == "last":
            groups = [*groups[1:], None]
        rows = [[i for i, w in enumerate(word_ids) if w == group] for group in groups]
        return torch.stack([reduce(states[places]) for places in rows])

    return whole_words


def mean(pieces):
    return pieces.mean(0)


def counted(weight, *, ways=(1, 1), more=0):
    def weighted_counts(ids, size, window):
        counts = np.zeros((size, size))
        for distance in range(1, window + 1 + more):
            for left, right in zip(ids, ids[distance:], strict=False):
                counts[left, right] += ways[0] * weight(distance, window)
                counts[right, left] += ways[1] * weight(distance, window)
        return counts

    return weighted_counts


def near(distance, window):
    return 1 / distance


def removed(v, k, *, centre=0.0, keep_top=False, weakest=False, add=0.0):
    centred = v - centre
    directions = np.linalg.svd(centred, full_matrices=False)[2]
    chosen = directions[len(directions) - k :] if weakest else directions[:k]
    along = centred @ chosen.T @ chosen
    return (along if keep_top else centred - along) + add


def m(v):
    return v.mean(axis=0)


WRONG = {
    "analogy": {
        "it returns one of the three": lambda v, a, b, c: analogy(
            v, step(v, a, b, c), unit
        ),
        "only c is left out": lambda v, a, b, c: analogy(v, step(v, a, b, c), unit, [c]),
        "b and a are swapped": lambda v, a, b, c: analogy(
            v, step(v, b, a, c), unit, [a, b, c]
        ),
        "used with their lengths": lambda v, a, b, c: analogy(
            v, long_step(v, a, b, c), unit, [a, b, c]
        ),
        "ranked by their dot product": lambda v, a, b, c: analogy(
            v, step(v, a, b, c), lambda x: x.copy(), [a, b, c]
        ),
        "numbers differ": lambda v, a, b, c: 0,
    },
    "content_words": {
        "labels lost their stop words, the vectors did not": lambda t, v, s: (
            labels(t, s),
            v,
        ),
        "as many points as labels, but the wrong ones": lambda t, v, s: (
            labels(t, s),
            v[: len(labels(t, s))],
        ),
        "a repeated word is lost": lambda t, v, s: (sorted({*t} - s), v[:3]),
        "the other way round": lambda t, v, s: (
            [w for w in t if w in s],
            v[[i for i, w in enumerate(t) if w in s]],
        ),
        "return two things": lambda t, v, s: v[keep(t, s)],
        "the tokens that stay are not": lambda t, v, s: (t, v),
        "numbers differ": lambda t, v, s: (labels(t, s), v[keep(t, s)] + 1),
    },
    "whole_words": {
        "only the first piece": by_word(lambda pieces: pieces[0]),
        "only the last piece": by_word(lambda pieces: pieces[-1]),
        "the pieces are added up": by_word(lambda pieces: pieces.sum(0)),
        "yours are in the result": by_word(mean, special=True),
        "yours come last": by_word(mean, special="last"),
        "shifted by one": by_word(mean, shift=1),
        "numbers differ": by_word(lambda pieces: pieces.amax(0)),
    },
    "weighted_counts": {
        "each pair counts 1": counted(lambda distance, window: 1),
        "the left word is a neighbour of the right": counted(near, ways=(1, 0)),
        "one way, the right word's": counted(near, ways=(0, 1)),
        "falls in equal steps": counted(lambda d, window: (window + 1 - d) / window),
        "one too wide": counted(near, more=1),
        "one too narrow": counted(near, more=-1),
        "counted twice": counted(near, ways=(2, 2)),
        "numbers differ": counted(lambda distance, window: 1 / distance**2),
    },
    "all_but_the_top": {
        "the mean is still there": lambda v, k: removed(v, k, centre=m(v), add=m(v)),
        "nothing was centred": lambda v, k: removed(v, k),
        "each vector's own numbers": lambda v, k: removed(
            v, k, centre=v.mean(axis=1, keepdims=True)
        ),
        "you keep the top directions": lambda v, k: removed(
            v, k, centre=m(v), keep_top=True
        ),
        "the top directions are not": lambda v, k: v - m(v),
        "the directions with the least variance": lambda v, k: removed(
            v, k, centre=m(v), weakest=True
        ),
        "one direction too few": lambda v, k: removed(v, k - 1, centre=m(v)),
        "numbers differ": lambda v, k: removed(v, k, centre=m(v)) + 0.01,
    },
}
