"""What goes wrong in the exercises of *embeddings*, diagnosis → answer."""

from collections import Counter
from functools import cache

import numpy as np
import torch

from lmcourse.data import load_poems, load_sonnets
from lmcourse.embeddings import neighbour_overlap, word_vectors, words
from lmcourse.models import load_bert

POEMS = [words(text) for text in [*load_poems().text, *load_sonnets().text]]


@cache
def page_values():
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
    return page_values()


def shuffled(seed=3):
    rng = np.random.default_rng(seed)
    return [rng.permutation(poem).tolist() for poem in POEMS]


def shuffled_across():
    ends = np.cumsum([len(poem) for poem in POEMS])[:-1]
    every = np.random.default_rng(3).permutation(np.concatenate(POEMS))
    return [poem.tolist() for poem in np.split(every, ends)]


def keep(tokens, stop):
    return [i for i, token in enumerate(tokens) if token not in stop]


def units_of(vectors):
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def answered(signs=(-1, 1, 1), out=(0, 1, 2), with_lengths=False, by_cosine=True, rank=0):
    """Return a calculator with one of the known mistakes, or with none."""

    def fourth_word(vectors, *rows):
        used = vectors if with_lengths else units_of(vectors)
        target = np.array(signs) @ used[list(rows)]
        order = np.argsort(-((units_of(vectors) if by_cosine else vectors) @ target))
        return [row for row in order if row not in [rows[i] for i in out]][rank]

    return fourth_word


def by_hand(vectors, a, b, c):
    a_unit, b_unit, c_unit = (vectors[i] / np.linalg.norm(vectors[i]) for i in (a, b, c))
    products = {}
    for row, vector in enumerate(vectors):
        if row not in (a, b, c):
            products[row] = vector @ (b_unit - a_unit + c_unit) / np.linalg.norm(vector)
    return max(products, key=products.get)


def zeroed(vectors, a, b, c):
    units = units_of(vectors)
    cosine = units @ (units[b] - units[a] + units[c])
    cosine[[a, b, c]] = 0
    return cosine.argmax()


def table_of(model):
    """Return the rows of a model's table of words, as NumPy has them."""
    return model.get_input_embeddings().weight.detach().numpy()


def two_by_two(poem):
    """Return a poem in which neighbours have changed places, pair by pair."""
    return [word for i in range(0, len(poem), 2) for word in poem[i : i + 2][::-1]]


@cache
def measured(seed=3):
    """Return the two numbers that the page's function gives for shuffled poems."""
    rarer, numbers = page_values()["common"][60:], []
    for window in (2, 5):
        names, vectors = word_vectors(shuffled(seed), 50, window=window)
        rows = vectors[[names.index(word) for word in rarer]]
        numbers.append(neighbour_overlap(rows, page_values()["theirs"][60:], 10))
    return numbers


WRONG = {
    "content_words": {
        "a repeated word is lost": lambda t, v, s: (sorted({*t} - s), v[:3]),
        "do the opposite": lambda t, v, s: (
            [w for w in t if w in s],
            v[[i for i, w in enumerate(t) if w in s]],
        ),
        "return two things": lambda t, v, s: v[keep(t, s)],
        "the tokens that stay are not": lambda t, v, s: (t[:4], v[:4]),
        "vectors of the stop words": lambda t, v, s: (
            [w for w in t if w not in s],
            v[[i for i, w in enumerate(t) if w in s]],
        ),
        "the last few vectors": lambda t, v, s: ([w for w in t if w not in s], v[-4:]),
        "nothing was left out": lambda t, v, s: (t, v),
        "zip refuses": lambda t, v, s: (
            [w for w in t if w not in s],
            np.array([x for _, x in zip([w for w in t if w not in s], v, strict=True)]),
        ),
        "second bee": lambda t, v, s: (
            [w for w in t if w not in s],
            v[[t.index(w) for w in t if w not in s]],
        ),
        "first bee": lambda t, v, s: (
            [w for w in t if w not in s],
            [dict(zip(t, v, strict=True))[w] for w in t if w not in s],
        ),
    },
    "fourth_word": {
        "one of the three words": answered(out=()),
        "only c is ruled out": answered(out=(2,)),
        "a and b are ruled out": answered(out=(0, 1)),
        "from a to b": answered(signs=(1, -1, 1)),
        "a is subtracted": answered(signs=(1, 1, 1)),
        "no step was added": answered(signs=(0, 0, 1)),
        "own lengths": answered(with_lengths=True),
        "dot product": answered(by_cosine=False),
        "second nearest": answered(rank=1),
        "farthest away": answered(rank=-1),
        "take -np.inf": zeroed,
        "one number is expected": lambda vectors, a, b, c: vectors[
            by_hand(vectors, a, b, c)
        ],
    },
    "static_vectors": {
        "rows of the positions": lambda model, ids: model.embeddings.position_embeddings(
            torch.arange(ids.shape[1])
        )[None],
        "have length 1": lambda model, ids: torch.nn.functional.normalize(
            model.embeddings.word_embeddings(ids), dim=-1
        ),
        "segment's row is still added": lambda model, ids: (
            model.embeddings.word_embeddings(ids)
            + model.embeddings.token_type_embeddings(torch.zeros_like(ids))
        ),
        "hidden_states[0]": lambda model, ids: (
            model(ids, output_hidden_states=True).hidden_states[0].detach().numpy()
        ),
        "`.detach()` first": [
            lambda model, ids: model.get_input_embeddings().weight.numpy()[ids],
            lambda model, ids: model(ids).last_hidden_state.numpy(),
        ],
        "a small model of its own": lambda model, ids: np.zeros((30522, 384))[ids],
    },
    "scrambled": {
        "`shuffle` changes a list": ([None for _ in POEMS], (0.04, 0.06)),
        "rounded too far": (shuffled(), [round(share, 2) for share in measured()]),
        "two things: the texts": [POEMS, 0.06],
        "a list of lists of words": [
            (" ".join(POEMS[0]), (0.04, 0.06)),
            (["a b"], (0.04, 0.06)),
        ],
        "poems, and": (POEMS[:3], (0.04, 0.06)),
        "poems are in another order": (POEMS[::-1], (0.08, 0.06)),
        "from poem to poem": (shuffled_across(), (0.03, 0.03)),
        "other words than before": ([poem[:-1] for poem in POEMS], (0.04, 0.06)),
        "the text as it was": (POEMS, (0.08, 0.06)),
        "alphabetical order": ([sorted(poem) for poem in POEMS], (0.04, 0.06)),
        "old neighbours": [
            ([poem[::-1] for poem in POEMS], (0.04, 0.06)),
            ([poem[1:] + poem[:1] for poem in POEMS], (0.04, 0.06)),
            ([two_by_two(poem) for poem in POEMS], (0.04, 0.06)),
        ],
        "two numbers, at 2 and at 5": (shuffled(), 0.04),
        "changed places": (shuffled(), measured()[::-1]),
        "that is in percent": (shuffled(), [100 * x for x in measured()]),
        "not what these texts give": (shuffled(), (0.094, 0.094)),
    },
}

RIGHT = {
    "content_words": [
        lambda t, v, s: ([t[i] for i in keep(t, s)], v[keep(t, s)]),
        lambda t, v, s: (np.array(t)[keep(t, s)], v[keep(t, s)]),
    ],
    "fourth_word": [by_hand, answered()],
    "static_vectors": [
        lambda model, ids: model.embeddings.word_embeddings(ids),
        lambda model, ids: (
            torch.nn.functional.one_hot(ids, model.config.vocab_size).float()
            @ model.get_input_embeddings().weight
        ),
        lambda model, ids: table_of(model)[ids.numpy()],
        lambda model, ids: np.take(table_of(model).astype(np.float64), ids, axis=0),
        lambda model, ids: [
            [model.get_input_embeddings().weight[token] for token in row] for row in ids
        ],
    ],
    "scrambled": [
        (shuffled(), measured()),
        (tuple(map(np.array, shuffled(5))), np.array(measured(5))),
    ],
}

TYPED = {"scrambled": [(shuffled(), (0.055, 0.07)), (shuffled(), (0.02, 0.02))]}
