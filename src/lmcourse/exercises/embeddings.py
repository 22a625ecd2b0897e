"""Checks for the exercises of the chapter *embeddings*."""

from collections import Counter

import numpy as np
import torch
from transformers import BertConfig, BertModel

from lmcourse.data import load_poems, load_sonnets
from lmcourse.embeddings import neighbour_overlap, word_vectors, words
from lmcourse.exercises import Wrong, compare, exercise, expect, predict, run
from lmcourse.exercises.answers import NotTried, number, strings, type_name, unpack
from lmcourse.models import load_bert

# The page counts the rows that have a gradient.
predict(
    "embeddings.rows",
    a="the others are multiplied by zero in the product: nothing comes back.",
    b="that is the tokens. Which rows were read? Some of them twice.",
    c=None,
    d="the loss reaches every row that was read: a lookup is a product.",
)


def _best(vectors, query, left_out, cosine, rank=1):
    """Return the row nearest to the query, or that of another rank, row by row."""
    near = {
        row: vector @ query / (np.linalg.norm(vector) if cosine else 1)
        for row, vector in enumerate(vectors)
        if row not in left_out
    }
    return sorted(near, key=near.get)[-rank]


@exercise("embeddings.analogy")
def analogy(answer):
    """Compare with a loop over all rows, for many questions."""
    rng = np.random.default_rng(11)
    vectors = rng.standard_normal((40, 5)) * rng.uniform(0.3, 3, size=(40, 1))
    units = [vector / np.linalg.norm(vector) for vector in vectors]
    asked = [tuple(rng.choice(40, 3, replace=False).tolist()) for _ in range(30)]

    def solved(x=units, signs=(-1, 1, 1), out=slice(None), cosine=True, rank=1):
        queries = [signs @ np.array([x[row] for row in rows]) for rows in asked]
        pairs = zip(queries, asked, strict=True)
        return [_best(vectors, query, rows[out], cosine, rank) for query, rows in pairs]

    mistakes = {
        "it returns one of the three words of the question: leave all three out, for the "
        "nearest is nearly always one of them.": solved(out=slice(0)),
        "only c is left out; a and b may not be the answer either.": solved(
            out=slice(2, 3)
        ),
        "b and a are swapped: the way leads from a to b.": solved(signs=(1, -1, 1)),
        "the three vectors are used with their lengths: make each one a unit vector first, "
        "or a long one decides alone.": solved(vectors),
        "that is the second nearest of the others: with the three left out, the first is "
        "wanted.": solved(rank=2),
        "that is the second nearest of all, which may be a word of the question: leave the "
        "three out, instead of skipping one.": solved(out=slice(0), rank=2),
        "that is the one farthest away: argsort begins with the smallest.": solved(rank=0),
        "the candidates are ranked by their dot product, which favours long vectors: rank "
        "them by their cosine.": solved(cosine=False),
    }
    compare([run(answer, vectors, *rows) for rows in asked], solved(), mistakes)
    away = np.array([[1, 0.1], [1, 0.2], [1, 0.3], [-1, -0.2], [-1, 0.5]])
    zero = "a cosine of 0 leaves nothing out where the others are below 0: take -inf."
    compare(run(answer, away, 0, 1, 2), 4, {zero: 0})


@exercise("embeddings.content_words", kind="spot the bug")
def content_words(answer):
    """Compare with pairs that were kept together from the start."""
    tokens = ["the", "bee", "is", "not", "a", "bee", "of", "noon"]
    stop = {"the", "is", "a", "of"}
    vectors = np.arange(24.0).reshape(8, 3)
    together = zip(tokens, vectors, strict=True)
    pairs = [(token, vector) for token, vector in together if token not in stop]
    left, stay = [token for token in tokens if token in stop], [token for token, _ in pairs]
    what = "two things: the tokens that stay, and their vectors"
    labels, points = unpack(run(answer, tokens, vectors, stop), 2, what)
    labels = _poem(labels)
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


@exercise("embeddings.static_vectors", kind="spot the bug")
def static_vectors(answer):
    """Compare with the rows of a small model's table, picked by hand."""
    torch.manual_seed(0)
    sizes = {"vocab_size": 30, "hidden_size": 8, "intermediate_size": 8}
    sizes |= {"num_hidden_layers": 1, "num_attention_heads": 2}
    model = BertModel(BertConfig(**sizes)).eval()
    ids = torch.tensor([[4, 9, 4, 17, 2]])
    parts = dict(model.embeddings.named_children())
    table, norm = parts["word_embeddings"].weight, parts["LayerNorm"]
    word, place = table[ids], parts["position_embeddings"](torch.arange(ids.shape[1]))
    added = word + place + parts["token_type_embeddings"].weight[0]
    with torch.no_grad():
        layers = model(ids, output_hidden_states=True).hidden_states
    mistakes = {
        "that is hidden_states[0]: the row has been added to those of its place and its "
        "segment, and normalised. Token 4 stands there twice; your two vectors differ.": (
            layers[0]
        ),
        "these are the vectors after a layer: they know the sentence.": layers[1],
        "that is the sum of word, position and segment, not yet normalised; the row of the "
        "word alone is wanted.": added,
        "the rows are normalised: what stands in the table is not.": norm(word),
        "the place's row is still added.": word + place,
        "the axis of the batch is lost: (batch, tokens, d_model).": word[0],
        "the whole table was returned: look the tokens up in it.": table,
    }
    compare(run(answer, model, ids), word, mistakes)


def _along_columns(centred, k):
    """Remove the first columns of the transposed right factor, which are no directions."""
    wrong = np.linalg.svd(centred, full_matrices=False)[2][:, :k]  # (d_model, k)
    return centred - centred @ wrong @ wrong.T


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
        "the directions are the rows of the third result, which is already transposed: you "
        "took columns.": _along_columns(vectors - mean, 2),
    }
    expect(answer, [vectors, 2], projected(), mistakes)
    expect(answer, [vectors, 0], vectors - mean)


def _agreement(texts):
    """Measure shared neighbours with BERT's table, as the page does."""
    tokenizer, bert = load_bert(device="cpu")
    table = bert.embeddings.word_embeddings.weight.detach().double().numpy()
    rows, counted = tokenizer.get_vocab(), Counter(word for text in texts for word in text)
    names, vectors = word_vectors(texts, 50)
    kept = [i for i, w in enumerate(names) if counted[w] >= 10 and w in rows]
    return neighbour_overlap(vectors[kept], table[[rows[names[i]] for i in kept]], 10)


def _poem(words_of_it) -> list[str]:
    """Return a poem's words, of a list or an array of them, as plain strings."""
    listed = words_of_it.tolist() if isinstance(words_of_it, np.ndarray) else words_of_it
    return [str(word) for word in strings(listed)]


@exercise("embeddings.scrambled", kind="experiment")
def scrambled(answer):
    """Look at the reader's texts, and measure them again."""
    if not isinstance(answer, (list, tuple)) or len(answer) != 2:
        raise Wrong(
            f"give two things: the texts, and the number; this is {type_name(answer)}."
        )
    texts, measured = answer
    if texts is None or texts is ...:
        raise NotTried
    if not isinstance(texts, (list, tuple)) or any(isinstance(t, str) for t in texts):
        raise Wrong("the texts are a list of lists of words, as split is.")
    mine = [words(text) for text in [*load_poems().text, *load_sonnets().text]]
    theirs = [_poem(text) for text in texts]
    if len(theirs) != len(mine):
        raise Wrong(f"there are {len(mine)} poems, and {len(theirs)} in your list.")
    if any(Counter(a) != Counter(b) for a, b in zip(mine, theirs, strict=True)):
        if Counter(w for t in mine for w in t) == Counter(w for t in theirs for w in t):
            raise Wrong(
                "words went from poem to poem: that is our control. Shuffle each one."
            )
        raise Wrong("a poem has other words than before: shuffle them, and keep them all.")
    if mine == theirs:
        raise Wrong("that is the text as it was: permutation returns a shuffled copy.")
    pairs = zip(mine, theirs, strict=True)
    if sum((a == b) + (b == sorted(b)) + (a == b[::-1]) for a, b in pairs) > 9:
        raise Wrong("the words stand in an order still, by the alphabet or as they were.")
    if not np.isclose(number(measured), _agreement(theirs), rtol=0, atol=2e-3):
        raise Wrong(
            f"{number(measured):.3f} is not what these texts give: call "
            "agreement_with_bert with them, and with nothing else."
        )


@exercise("embeddings.whose", kind="judge")
def whose(answer):
    """Compare with the order in which the page shows the lists."""
    said = answer.strip().upper() if isinstance(answer, str) else ""
    return {
        "give four letters in one string: B, D, S and R, each once.": (
            sorted(said) != sorted("BDRS")
        ),
        "start with BERT's: which list has words that are no words of a poem?": (
            said[2:3] != "B"
        ),
        "which of the poets says day and night together, again and again?": (
            said[:1] != "S"
        ),
        "BERT's and Shakespeare's are right. Of the other two one is chance: which has "
        "words that shine, or turn, with the day?": said != "SRBD",
    }
