"""What goes wrong in the exercises of *embeddings*, diagnosis → answer."""

from collections import Counter

import numpy as np
import torch

from lmcourse.data import load_poems, load_sonnets
from lmcourse.embeddings import unit, words
from lmcourse.models import load_bert

POEMS = [words(text) for text in [*load_poems().text, *load_sonnets().text]]


def given():
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


def shuffled():
    rng = np.random.default_rng(3)
    return [rng.permutation(poem).tolist() for poem in POEMS]


def shuffled_across():
    ends = np.cumsum([len(poem) for poem in POEMS])[:-1]
    every = np.random.default_rng(3).permutation(np.concatenate(POEMS))
    return [poem.tolist() for poem in np.split(every, ends)]


def analogy(directions, query, candidates, left_out=(), rank=-1):
    cosine = candidates(directions) @ query
    cosine[list(left_out)] = -np.inf
    return int(cosine.argsort()[rank])


def states(model, ids):
    with torch.no_grad():
        return model(ids, output_hidden_states=True).hidden_states


def rows(model, ids):
    return model.get_input_embeddings().weight[ids]


def by_columns(centred, k):
    columns = np.linalg.svd(centred, full_matrices=False)[2][:, :k]
    return centred - centred @ columns @ columns.T


def step(v, a, b, c):
    return unit(v)[b] - unit(v)[a] + unit(v)[c]


def long_step(v, a, b, c):
    return v[b] - v[a] + v[c]


def keep(tokens, stop):
    return [i for i, token in enumerate(tokens) if token not in stop]


def labels(tokens, stop):
    return [tokens[i] for i in keep(tokens, stop)]


def removed(v, k, *, centre=0.0, keep_top=False, weakest=False, add=0.0):
    centred = v - centre
    directions = np.linalg.svd(centred, full_matrices=False)[2]
    chosen = directions[len(directions) - k :] if weakest else directions[:k]
    along = centred @ chosen.T @ chosen
    return (along if keep_top else centred - along) + add


def m(v):
    return v.mean(axis=0)


WRONG = {
    "rows": {
        "multiplied by zero": "a",
        "Which rows were read?": "b",
        "reaches every row that was read": "d",
        "one letter of a, b, c, d": ["e", 4],
    },
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
        "second nearest of the others": lambda v, a, b, c: analogy(
            v, step(v, a, b, c), unit, [a, b, c], -2
        ),
        "second nearest of all": lambda v, a, b, c: analogy(
            v, step(v, a, b, c), unit, [], -2
        ),
        "the one farthest away": lambda v, a, b, c: analogy(
            -v, step(v, a, b, c), unit, [a, b, c]
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
    "static_vectors": {
        "that is hidden_states[0]": lambda m, ids: states(m, ids)[0],
        "after a layer": lambda m, ids: states(m, ids)[-1],
        "word, position and segment": lambda m, ids: (
            rows(m, ids)
            + m.embeddings.position_embeddings.weight[: ids.shape[1]]
            + m.embeddings.token_type_embeddings.weight[0]
        ),
        "the rows are normalised": lambda m, ids: m.embeddings.LayerNorm(rows(m, ids)),
        "the place's row": lambda m, ids: (
            rows(m, ids) + m.embeddings.position_embeddings.weight[: ids.shape[1]]
        ),
        "the axis of the batch": lambda m, ids: rows(m, ids)[0],
        "the whole table": lambda m, ids: m.get_input_embeddings().weight,
        "numbers differ": lambda m, ids: rows(m, ids) + 1,
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
        "you took columns": lambda v, k: by_columns(v - m(v), k),
        "numbers differ": lambda v, k: removed(v, k, centre=m(v)) + 0.01,
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
        "one number": (shuffled(), [0.06, 0.07]),
    },
    "whose": {
        "four letters": ["BDS", 7, "BBDS"],
        "start with BERT's": "BDSR",
        "day and night": "RSBD",
        "one is chance": "SDBR",
    },
}

RIGHT = {
    "rows": [" C"],
    "static_vectors": [lambda model, ids: model.embeddings.word_embeddings(ids)],
    "whose": ["srbd "],
}
