"""Checks for the exercises of the chapter *embeddings*."""

from collections import Counter
from functools import cache, partial
from types import SimpleNamespace

import numpy as np
import torch
from transformers import BertConfig, BertModel

from lmcourse.data import load_poems, load_sonnets
from lmcourse.embeddings import neighbour_overlap, word_vectors, words
from lmcourse.exercises import Case, Faults, exercise, judge, predict, run
from lmcourse.exercises.answers import NotTried, Unfit, number, strings, unpack
from lmcourse.models import load_bert


@exercise("embeddings.content_words", kind="spot the bug")
def content_words():
    """Check a reader's filter of tokens, which must filter their vectors, too.

    The answer is a function of tokens (list of str), their vectors (tokens, d_model) and
    the words to leave out (set of str). It returns the tokens and the vectors that are
    left. Oracle: pairs that were kept together from the start.

    Yields
    ------
    Case
        How the answer is called (``ask``), the right result, and those of known mistakes.
    Faults
        What is measured of the answer, and how known mistakes show in it.
    """
    tokens = ["the", "bee", "is", "not", "a", "bee", "of", "noon"]
    stop = {"the", "is", "a", "of"}
    vectors = np.arange(24.0).reshape(8, 3)
    together = zip(tokens, vectors, strict=True)
    pairs = [(token, vector) for token, vector in together if token not in stop]
    left = [token for token in tokens if token in stop]
    stay = [token for token, _ in pairs]
    last = {token: row for row, token in enumerate(tokens)}  # where each occurs last

    def ask(place, answer):
        """Call an answer; return the tokens that stay (``place`` 0) or their vectors (1).

        ``answer`` : the reader's callable, from tokens, vectors and words to leave out to
        two things; anything else is `Unfit`.
        """
        what = "two things: the tokens that stay, and their vectors"
        return unpack(run(answer, tokens, vectors, stop), 2, what)[place]

    def labels(answer):
        """Return the tokens that an answer keeps, as ``labels`` of a SimpleNamespace.

        They are a list of str. ``answer`` : callable, the reader's filter.
        """
        return SimpleNamespace(labels=_poem(ask(0, answer)))

    faults = {
        "nothing was left out.": lambda seen: seen.labels == tokens,
        "you keep the stop words and drop the rest; do the opposite.": (
            lambda seen: seen.labels == left
        ),
        "a repeated word is lost: each of its points is a token of its own.": (
            lambda seen: sorted(seen.labels) == sorted(set(stay))
        ),
        "the tokens that stay are not {labels}.": lambda seen: seen.labels != stay,
    }
    refused = "zip refuses, rightly: filter the vectors, too."
    yield Faults(labels, faults, {"zip() argument 2 is longer": refused})
    mistakes = {
        "the labels lost their stop words, the vectors did not: labels and points no "
        "longer match.": vectors,
        "as many points as labels, but the wrong ones: the first few vectors are not those "
        "of the words that stay. Filter both with the same mask.": vectors[:4],
        "these are the last few vectors, not those of the words that stay.": vectors[-4:],
        "these are the vectors of the stop words: keep the others.": (
            vectors[[token in stop for token in tokens]]
        ),
        "the second bee has the vector of the first: tokens.index finds only the "
        "first position.": vectors[[tokens.index(token) for token in stay]],
        "the first bee has the vector of the second: a dict keeps one vector for each "
        "word.": vectors[[last[token] for token in stay]],
    }
    yield Case([], [vector for _, vector in pairs], mistakes, ask=partial(ask, 1))


predict(
    "embeddings.king",
    a="it is the second closest. Which word is in the sum already?",
    b="it was added, but so was another word, which is closer to the result.",
    c=None,
    d="it is among the five closest, but not the first.",
)


def _best(vectors, target, out, by_cosine, rank):
    """Return the number of the row that is closest to a target, found in a loop.

    Parameters
    ----------
    vectors : array of shape (rows, d_model)
    target : array of shape (d_model,)
    out : collection of int
        Rows that do not take part.
    by_cosine : bool
        Whether the row's length is divided out of its product with the target.
    rank : int
        0 for the closest, 1 for the one after it, -1 for the farthest.

    Returns
    -------
    int
    """
    ranked = []
    for row, vector in enumerate(vectors):
        length = np.linalg.norm(vector) if by_cosine else 1
        ranked.append((-float(vector @ target) / length, row))
    return sorted(each for each in ranked if each[1] not in out)[rank][1]


@exercise("embeddings.fourth_word")
def fourth_word():
    """Check a reader's answer to "a is to b as c is to what?".

    The answer is a function of vectors (words, d_model) and the rows a, b and c, int, which
    returns the row nearest to b - a + c by cosine, none of the three; all vectors are
    brought to length 1 first. Oracle: a loop over all rows, for thirty questions.

    Yields
    ------
    Case
        How the answer is called (``ask``), the right result, and those of known mistakes.
    """
    rng = np.random.default_rng(11)
    vectors = rng.standard_normal((40, 5)) * rng.uniform(0.3, 3, size=(40, 1))
    units = [vector / np.linalg.norm(vector) for vector in vectors]
    asked = [tuple(rng.choice(40, 3, replace=False).tolist()) for _ in range(30)]

    def solved(x=units, signs=(-1, 1, 1), out=slice(None), by_cosine=True, rank=0):
        """Return the answer to each of the thirty questions, right by default: row numbers.

        Parameters
        ----------
        x : sequence of array of shape (d_model,)
            The vectors that are added: by default all of length 1.
        signs : sequence of three int
            How often the vectors of a, b and c are added.
        out : slice
            Which of a, b and c cannot be an answer.
        by_cosine : bool
            Whether candidates are compared by their cosine, or by their product.
        rank : int
            0 takes the best candidate, 1 the second, -1 the worst.

        Returns
        -------
        list of int
        """
        closest = []
        for rows in asked:
            target = sum(sign * x[row] for sign, row in zip(signs, rows, strict=True))
            closest.append(_best(vectors, target, rows[out], by_cosine, rank))
        return closest

    mistakes = {
        "it returns one of the three words of the question: rule all three out, since the "
        "nearest is nearly always one of them.": solved(out=slice(0)),
        "only c is ruled out; a and b may not be the answer either.": solved(
            out=slice(2, 3)
        ),
        "a and b are ruled out, but c may not be the answer either.": solved(
            out=slice(0, 2)
        ),
        "a and b have changed places: the step leads from a to b.": solved(
            signs=(1, -1, 1)
        ),
        "all three are added: a is subtracted.": solved(signs=(1, 1, 1)),
        "that is the neighbour of c alone: no step was added to it.": solved(
            signs=(0, 0, 1)
        ),
        "the vectors are used at their own lengths: bring them to length 1 before you "
        "subtract and add, or a long one decides alone.": solved(vectors),
        "the candidates are ranked by their dot product, which favours long vectors: rank "
        "them by their cosine.": solved(by_cosine=False),
        "that is the second nearest: with the three ruled out, take the first.": solved(
            rank=1
        ),
        "that is the word farthest away: argsort begins with the smallest.": solved(
            rank=-1
        ),
    }

    def ask(answer):
        """Return what an answer gives for each of the thirty questions, a list of float.

        ``answer`` : the reader's callable, called with the vectors and the rows a, b and c;
        if it returns anything but one number, that is `Unfit`.
        """
        return [number(run(answer, vectors, *rows)) for rows in asked]

    yield Case([], solved(), mistakes, ask=ask)
    away = np.array([[1, 0.1], [1, 0.2], [1, 0.3], [-1, -0.2], [-1, 0.5]])
    zero = "a cosine of 0 rules nothing out where the others are below 0: take -np.inf."
    yield Case([], 4, {zero: 0}, ask=lambda answer: run(answer, away, 0, 1, 2))


@exercise("embeddings.static_vectors", kind="spot the bug")
def static_vectors():
    """Check a reader's static vectors of a text.

    The answer is a function of a `BertModel` and ids (1, tokens), which returns the rows of
    its table of words, (1, tokens, d_model). Oracle: the rows of a small model's table,
    picked by hand.

    Yields
    ------
    Case
        Arguments, the right result, and the results that known mistakes give.
    """
    torch.manual_seed(0)
    sizes = {"vocab_size": 30, "hidden_size": 8, "intermediate_size": 8}
    sizes |= {"num_hidden_layers": 1, "num_attention_heads": 2}
    model = BertModel(BertConfig(**sizes)).eval()
    ids = torch.tensor([[4, 9, 4, 17, 2]])
    parts = dict(model.embeddings.named_children())
    table = parts["word_embeddings"].weight
    norm = parts["LayerNorm"]
    word = table[ids]
    place = parts["position_embeddings"](torch.arange(ids.shape[1]))
    added = word + place + parts["token_type_embeddings"].weight[0]
    with torch.no_grad():
        layers = model(ids, output_hidden_states=True).hidden_states
    mistakes = {
        "that is hidden_states[0]: the rows of position and segment have been added, and "
        "the sum normalised. Token 4 occurs twice here, and your two vectors differ.": (
            layers[0]
        ),
        "your rows have length 1; those in the table don't.": word
        / word.norm(dim=-1, keepdim=True),
        "these are the rows of the positions, not of the words.": place[None],
        "these are the vectors after a layer: other words are mixed in.": layers[1],
        "these are three rows added up; only the word's row is wanted.": added,
        "these rows are normalised; those in the table aren't.": norm(word),
        "the position's row is still added.": word + place,
        "the segment's row is still added.": added - place,
        "the axis of the batch is lost: return (batch, tokens, d_model).": word[0],
        "the whole table was returned: look the tokens up in it.": table,
    }
    instead = {
        "Can't call numpy()": "weights that are trained carry a gradient, and NumPy can't: "
        "take the numbers with `.detach()` first, then `.numpy()`. A tensor is as good an "
        "answer.",
        "the shape is": "{error}. The check hands in a small model of its own: are your "
        "rows those of its table?",
    }
    yield Case([model, ids], word, mistakes, instead=instead)


predict(
    "embeddings.negatives",
    a=None,
    b="each term counts once in the sum, and there are five of the second kind.",
    c="the lower the score, the less a negative teaches: there is a balance.",
)


def _agreement(texts, windows):
    """Yield for each window how many nearest neighbours texts and BERT's table agree on.

    A word's ten nearest words by vectors made from the texts (50 numbers each) are compared
    with its ten nearest in BERT's word table. The words are those that occur at least ten
    times and are tokens of BERT, without the sixty most frequent.

    Parameters
    ----------
    texts : list of list of str
        The words of each poem.
    windows : iterable of int
        How many words to each side count as a word's context when its vector is made.

    Yields
    ------
    float
        The share of the ten that both have, from 0 to 1, a mean over the words.
    """
    tokenizer, bert = load_bert(device="cpu")
    table = bert.embeddings.word_embeddings.weight.detach().double().numpy()
    rows = tokenizer.get_vocab()
    counted = Counter(word for text in texts for word in text)
    for names, vectors in (word_vectors(texts, 50, window=w) for w in windows):
        frequent = [i for i, w in enumerate(names) if counted[w] >= 10 and w in rows][60:]
        yield neighbour_overlap(
            vectors[frequent], table[[rows[names[i]] for i in frequent]], 10
        )


def _poem(words_of_it) -> list[str]:
    """Return a poem's words as a list of plain str.

    ``words_of_it`` : list or array of str; anything else is `Unfit`.
    """
    listed = words_of_it.tolist() if isinstance(words_of_it, np.ndarray) else words_of_it
    return [str(word) for word in strings(listed)]


def _surviving(before, after) -> float:
    """Return the share of all pairs of near words that are still near after shuffling.

    Near are words at most two positions apart. The order within a pair does not count.

    Parameters
    ----------
    before, after : list of list of str
        The words of each text, before and after shuffling.

    Returns
    -------
    float
        From 0 to 1.
    """

    def near(text):
        """Count the unordered pairs of words at most two places apart.

        Parameters
        ----------
        text : list of str
            Words.

        Returns
        -------
        Counter of frozenset of str
            A pair → how often it occurs.
        """
        pairs = [pair for far in (1, 2) for pair in zip(text, text[far:], strict=False)]
        return Counter(map(frozenset, pairs))

    both = [(near(a), near(b)) for a, b in zip(before, after, strict=True)]
    return sum((a & b).total() for a, b in both) / sum(a.total() for a, _ in both)


@cache
def _ours() -> tuple[list[list[str]], float]:
    """Return the words of all poems, and the share of pairs that a shuffle leaves.

    Returns
    -------
    texts : list of list of str
        The words of each poem of Dickinson, then of each Sonnet.
    share : float
        Of the pairs of words at most two positions apart, those that still are when each
        text's words are shuffled.
    """
    mine = [words(text) for text in [*load_poems().text, *load_sonnets().text]]
    rng = np.random.default_rng(0)
    return mine, _surviving(mine, [rng.permutation(text).tolist() for text in mine])


def _texts(answer):
    """Return our poems and those of an answer, each a list of words.

    Parameters
    ----------
    answer : tuple
        The reader's: the texts, a list of lists of str, and two numbers, which are not
        used.

    Returns
    -------
    SimpleNamespace
        ``mine`` and ``theirs``: lists of lists of words; ``null``: the share of pairs of
        near words that a shuffle leaves; ``ours`` and ``count``: how many texts.

    Raises
    ------
    NotTried
        If the texts are None or ``...``.
    Unfit
        If they are no lists of words.
    """
    texts, _ = unpack(answer, 2, "two things: the texts, and two numbers")
    if texts is None or texts is ...:
        raise NotTried
    if not isinstance(texts, (list, tuple)) or any(isinstance(t, str) for t in texts):
        raise Unfit("the texts are a list of lists of words, as split is.")
    if any(text is None for text in texts):
        raise Unfit(
            "some of the texts are None: `shuffle` changes a list and returns nothing; "
            "`permutation` returns a shuffled copy."
        )
    mine, null = _ours()
    theirs = [_poem(text) for text in texts]
    counts = {"ours": len(mine), "count": len(theirs)}
    return SimpleNamespace(mine=mine, theirs=theirs, null=null, **counts)


def _has_other_words(seen):
    """Return whether a poem has other words than ours, or another number of one.

    ``seen`` : SimpleNamespace with ``mine`` and ``theirs``, our poems and the answer's,
    lists of lists of words of the same length.
    """
    pairs = zip(seen.mine, seen.theirs, strict=True)
    return any(Counter(ours) != Counter(theirs) for ours, theirs in pairs)


def _is_reordered(seen):
    """Return whether the poems are ours, in another order.

    ``seen`` : SimpleNamespace with ``mine`` and ``theirs``, our poems and the answer's,
    lists of lists of words of the same length. The words of a poem may stand in any order.
    """
    mine, theirs = (sorted(map(sorted, texts)) for texts in (seen.mine, seen.theirs))
    return _has_other_words(seen) and mine == theirs


def _went_from_poem_to_poem(seen):
    """Return whether words were moved from poem to poem: a known mistake.

    Single poems have other words than ours then, all poems together have not.

    ``seen`` : SimpleNamespace with ``mine`` and ``theirs``, our poems and the answer's,
    lists of lists of words of the same length.
    """
    mine, theirs = (
        Counter(word for text in texts for word in text)
        for texts in (seen.mine, seen.theirs)
    )
    return _has_other_words(seen) and mine == theirs


# What may be wrong with texts that should be ours, each with its words in another order:
# what the reader is told → whether it is so of what `_texts` returns.
UNSHUFFLED = {
    "there are {ours} poems, and {count} in your list.": (
        lambda seen: seen.ours != seen.count
    ),
    "the poems are in another order; shuffle the words in each.": _is_reordered,
    "words went from poem to poem, as in the figure. Shuffle each by itself.": (
        _went_from_poem_to_poem
    ),
    "a poem has other words than before: shuffle them, and keep them all.": (
        _has_other_words
    ),
    "that is the text as it was: permutation returns a shuffled copy.": (
        lambda seen: seen.mine == seen.theirs
    ),
    "the words are in alphabetical order; shuffle them.": (
        lambda seen: sum(text == sorted(text) for text in seen.theirs) > 9
    ),
    "too many words still have their old neighbours within two positions: more than twice "
    "as many as a shuffle leaves. Shuffle the whole poem.": (
        lambda seen: _surviving(seen.mine, seen.theirs) > 2 * seen.null
    ),
}


def _measured(answer):
    """Return the two numbers of an answer, and what its texts give.

    Parameters
    ----------
    answer : sequence
        The texts, and two numbers: which share of neighbours agrees with BERT's table, with
        windows of 2 and of 5 words.

    Returns
    -------
    SimpleNamespace
        ``got``, the answer's numbers, a list of float, also as ``near_2`` and ``near_5``;
        ``want``, ours, by `_agreement` of the answer's texts.

    Raises
    ------
    NotTried
        If a number is ``...``.
    Unfit
        If the answer has another form.
    """
    measured = unpack(answer, 2, "two things: the texts, and two numbers")[1]
    if isinstance(measured, (list, tuple)) and any(value is ... for value in measured):
        raise NotTried
    got = [number(value) for value in unpack(measured, 2, "two numbers, at 2 and at 5")]
    want = [*_agreement(_texts(answer).theirs, (2, 5))]
    return SimpleNamespace(got=got, want=want, near_2=got[0], near_5=got[1])


def _is_close(got, want):
    """Return whether two pairs of shares, ``got`` and ``want``, agree to 0.0005."""
    return np.isclose(got, want, rtol=0, atol=5e-4).all()


@exercise("embeddings.scrambled", kind="experiment")
def scrambled():
    """Check poems whose words a reader shuffled, and what windows measure in them.

    The answer is a pair: the texts, a list of lists of words, and two numbers measured in
    them, the shares of neighbours that agree with BERT's table: with a window of 2 first,
    then of 5. Oracle: the texts are compared with ours (`UNSHUFFLED` says what may be
    wrong), and measured again.

    Yields
    ------
    Faults
        What is measured of the answer, and how known mistakes show in it.
    """
    yield Faults(_texts, UNSHUFFLED)
    numbers = {
        "that is in percent: give the shares themselves, as mean() does.": (
            lambda seen: np.allclose(seen.got, 100 * np.array(seen.want), atol=0.3)
        ),
        "your two numbers have changed places: the window of 2 comes first.": (
            lambda seen: (
                _is_close(seen.got, seen.want[::-1]) and not _is_close(seen.got, seen.want)
            )
        ),
        "they are rounded too far: hand in the numbers as mean() returns them.": (
            lambda seen: (
                np.allclose(seen.got, np.round(seen.want, 2), rtol=0, atol=1e-9)
                and not _is_close(seen.got, seen.want)
            )
        ),
        "{near_2:.3f} and {near_5:.3f} are not what these texts give: call agreement with "
        "them and a window, and take the mean.": (
            lambda seen: not _is_close(seen.got, seen.want)
        ),
    }
    yield Faults(_measured, numbers)


judge(
    "embeddings.whose",
    a="that one was counted in the sonnets.",
    b=None,
    c="that one was counted in Dickinson's poems.",
)
