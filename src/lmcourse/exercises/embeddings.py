"""Checks for the exercises of the chapter *embeddings*."""

from collections import Counter
from functools import cache

import numpy as np
import torch
from transformers import BertConfig, BertModel

from lmcourse.data import load_poems, load_sonnets
from lmcourse.embeddings import neighbour_overlap, word_vectors, words
from lmcourse.exercises import Wrong, compare, exercise, judge, predict, run
from lmcourse.exercises.answers import NotTried, array, number, strings, unpack
from lmcourse.models import load_bert

# The page counts the rows that have a gradient.
predict(
    "embeddings.rows",
    a="the others are multiplied by zero in the product: nothing comes back.",
    b="that is the tokens. Which rows were read? Some of them twice.",
    c=None,
    d="the loss reaches every row that was read: a lookup is a product.",
)


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
    try:
        labels, points = unpack(run(answer, tokens, vectors, stop), 2, what)
    except Wrong as wrong:
        if "zip() argument 2 is longer" in str(wrong):
            raise Wrong("zip refuses, rightly: filter the vectors, too.") from None
        raise
    labels = _poem(labels)
    if labels == tokens:
        raise Wrong("nothing was left out.")
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
        "these are the last few vectors, not those of the words that stay.": vectors[-4:],
        "these are the vectors of the stop words: keep the others.": (
            vectors[[token in stop for token in tokens]]
        ),
        "the second bee has the vector of the first: tokens.index finds the first place "
        "only.": vectors[[tokens.index(token) for token in stay]],
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
        "brought to length 1: what stands in the table is not.": word
        / word.norm(dim=-1, keepdim=True),
        "these are the rows of the places, not of the words.": place[None],
        "these are the vectors after a layer: they know the sentence.": layers[1],
        "that is three rows added, not yet normalised; the word's alone is wanted.": added,
        "the rows are normalised: what stands in the table is not.": norm(word),
        "the place's row is still added.": word + place,
        "the segment's row is still added.": added - place,
        "the axis of the batch is lost: (batch, tokens, d_model).": word[0],
        "the whole table was returned: look the tokens up in it.": table,
    }
    compare(run(answer, model, ids), word, mistakes)


predict(
    "embeddings.negatives",
    a=None,
    b="each term counts once in the sum, and there are five of the second kind.",
    c="as the score falls, drawing teaches less and meeting more: there is a balance.",
)


@exercise("embeddings.best_scores")
def best_scores(answer):
    """Compare with the odds of being met, pair by pair."""
    rng, k = np.random.default_rng(5), 4
    counts = rng.integers(0, 9, (5, 7)).astype(float)
    counts[:, 0] += 1
    counts[0] += 1
    total, met, seen = counts.sum(), counts.sum(axis=1, keepdims=True), counts.sum(axis=0)

    def score(drawn):
        with np.errstate(divide="ignore"):  # never met: -inf
            return np.log(counts / drawn)

    want, even = score(k * met * seen / total), k * met / len(seen)
    less = k * met * seen**0.75 / (seen**0.75).sum()
    mistakes = {
        "that is PMI alone: k negatives are drawn for each pair met.": want + np.log(k),
        "ln k is added; the more are drawn, the lower the score.": want + 2 * np.log(k),
        "k is subtracted, not its logarithm.": want + np.log(k) - k,
        "PMI is divided by k: take the logarithm of k off.": (want + np.log(k)) / k,
        "how often the word itself occurs is left out.": want + np.log(met),
        "that is a logarithm to the base 2: the loss has natural ones.": want / np.log(2),
        "that is a logarithm to the base 10: the loss has natural ones.": want / np.log(10),
        "the contexts are drawn evenly; draw them as often as they occur.": score(even),
        "the contexts are drawn by counts to the power 0.75; here by counts.": score(less),
        "how often the context occurs is left out: that decides how often it is drawn.": (
            score(k * met)
        ),
        "that is met over drawn itself: a score is its logarithm.": np.exp(want),
        "that is drawn over met, the sign reversed.": -want,
        "negative PMI is set to zero before ln k is taken off; here it counts.": (
            np.maximum(want + np.log(k), 0) - np.log(k)
        ),
        "counts are compared with the product of two counts: divide that by all pairs.": (
            want - np.log(total)
        ),
        "negative scores are set to zero, as PPMI does; here they count.": np.maximum(
            want, 0
        ),
        "a pair that was never met scores -inf, not 0.": np.where(counts == 0, 0, want),
    }
    given = array(run(answer, counts, k))
    if given.shape == counts.shape:
        never, met = given[counts == 0], given[counts > 0]
        if np.isfinite(never).all() and never.max() < min(met.min(), -5):
            raise Wrong("a pair never met scores -inf: no small number in its place.")
    compare(given, want, mistakes)


def _agreement(texts, windows):
    """Yield the neighbours shared with BERT's table, as the page counts them."""
    tokenizer, bert = load_bert(device="cpu")
    table = bert.embeddings.word_embeddings.weight.detach().double().numpy()
    rows, counted = tokenizer.get_vocab(), Counter(word for text in texts for word in text)
    for names, vectors in (word_vectors(texts, 50, window=w) for w in windows):
        kept = [i for i, w in enumerate(names) if counted[w] >= 10 and w in rows][60:]
        yield neighbour_overlap(vectors[kept], table[[rows[names[i]] for i in kept]], 10)


def _poem(words_of_it) -> list[str]:
    """Return a poem's words, of a list or an array of them, as plain strings."""
    listed = words_of_it.tolist() if isinstance(words_of_it, np.ndarray) else words_of_it
    return [str(word) for word in strings(listed)]


def _surviving(before, after) -> float:
    """Return the share of all company, within two places, that is as it was."""

    def company(text):
        pairs = [pair for far in (1, 2) for pair in zip(text, text[far:], strict=False)]
        return Counter(map(frozenset, pairs))

    both = [(company(a), company(b)) for a, b in zip(before, after, strict=True)]
    return sum((a & b).total() for a, b in both) / sum(a.total() for a, _ in both)


@cache
def _ours() -> tuple[list[list[str]], float]:
    """Return the words of all poems, and the share of company that a shuffle leaves."""
    mine = [words(text) for text in [*load_poems().text, *load_sonnets().text]]
    rng = np.random.default_rng(0)
    return mine, _surviving(mine, [rng.permutation(text).tolist() for text in mine])


def _refuse_unshuffled(theirs) -> None:
    """Raise if texts are not ours, each with its words in another order."""
    mine, null = _ours()
    if len(theirs) != len(mine):
        raise Wrong(f"there are {len(mine)} poems, and {len(theirs)} in your list.")
    if any(Counter(a) != Counter(b) for a, b in zip(mine, theirs, strict=True)):
        if sorted(map(sorted, mine)) == sorted(map(sorted, theirs)):
            raise Wrong("the poems stand in another order: shuffle the words in each.")
        if Counter(w for t in mine for w in t) == Counter(w for t in theirs for w in t):
            raise Wrong(
                "words went from poem to poem: that is our control. Shuffle each one."
            )
        raise Wrong("a poem has other words than before: shuffle them, and keep them all.")
    if mine == theirs:
        raise Wrong("that is the text as it was: permutation returns a shuffled copy.")
    if sum(text == sorted(text) for text in theirs) > 9:
        raise Wrong("the words stand in an order still, that of the alphabet.")
    if _surviving(mine, theirs) > 2 * null:
        raise Wrong(
            "too many words have their old company still, within two places: more than "
            "twice as many as a shuffle leaves. Shuffle the whole poem."
        )


@exercise("embeddings.scrambled", kind="experiment")
def scrambled(answer):
    """Look at the reader's texts, and measure them again."""
    texts, measured = unpack(answer, 2, "two things: the texts, and two numbers")
    if texts is None or texts is ...:
        raise NotTried
    if not isinstance(texts, (list, tuple)) or any(isinstance(t, str) for t in texts):
        raise Wrong("the texts are a list of lists of words, as split is.")
    theirs = [_poem(text) for text in texts]
    _refuse_unshuffled(theirs)
    if isinstance(measured, (list, tuple)) and any(value is ... for value in measured):
        raise NotTried
    found = [number(value) for value in unpack(measured, 2, "two numbers, at 2 and at 5")]
    want = [*_agreement(theirs, (2, 5))]
    if np.allclose(found, 100 * np.array(want), atol=0.3):
        raise Wrong("that is in percent: give the shares themselves, as mean() does.")
    near = [np.isclose(found, w, rtol=0, atol=5e-4).all() for w in (want, want[::-1])]
    if near[1] and not near[0]:
        raise Wrong("your two numbers have changed places: first the window of 2.")
    if not near[0]:
        raise Wrong(
            f"{found[0]:.3f} and {found[1]:.3f} are not what these texts give: call "
            "agreement with them and a window, and take the mean."
        )


judge(
    "embeddings.whose",
    a="that one was counted in the sonnets.",
    b=None,
    c="that one was counted in Dickinson's poems.",
)
