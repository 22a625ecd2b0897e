"""A word's nearest in tables of vectors, learned or not; on the site, of any word typed."""

import html
import json
from collections import Counter
from typing import NamedTuple

import numpy as np

from lmcourse.data import load_poems, load_sonnets
from lmcourse.embeddings import unit, word_vectors, words
from lmcourse.numbers import format_number, plural
from lmcourse.views.view import View
from lmcourse.word_tests import shuffled_texts

NEAREST = 6
ASKED, SHOWN = 2, 5  # times that a word occurs to be asked for, and to be a neighbour
FREQUENT = 60  # words that may be left out
WIDTH = 50
ROWS = 1024  # whose cosines are computed at a time


class Space(NamedTuple):
    """Words and their vectors.

    Attributes
    ----------
    name : str
    words : list of str
        Of a corpus, the most frequent first.
    vectors : float array of shape (words, d_model)
        Of length 1.
    counts : list of int or None
        How often each word occurs; None for a model's table.
    asked : int
        How many of the words, the first ones, are shown with their neighbours.
    shown : list of int array
        One or two sets of rows that may be neighbours: of a model's table, all but special
        tokens; of a corpus, all that are frequent enough, and the same without the most
        frequent words.
    learned : bool
        False of random weights and of shuffled text.
    """

    name: str
    words: list[str]
    vectors: np.ndarray
    counts: list[int] | None
    asked: int
    shown: list[np.ndarray]
    learned: bool = True


def spaces(tokenizer, bert) -> list[Space]:
    """Return BERT's table and vectors counted in two poets, and both with nothing learned.

    Parameters
    ----------
    tokenizer, bert
        A BERT's, such as those that `lmcourse.models.load_bert` loads.

    Returns
    -------
    list of Space
        BERT's table; vectors counted in the poems of Dickinson and the Sonnets of
        Shakespeare; BERT's table with its numbers in another order; vectors counted in the
        same texts with their words shuffled.
    """
    table = bert.embeddings.word_embeddings.weight.detach().cpu().numpy()
    tokens = tokenizer.convert_ids_to_tokens(range(len(table)))
    special = set(tokenizer.all_special_tokens)
    is_shown = [p not in special and not p.startswith("[unused") for p in tokens]
    shown = np.flatnonzero(is_shown)
    rng = np.random.default_rng(0)
    mixed = rng.permutation(table.ravel()).reshape(table.shape)
    split = [words(text) for text in [*load_poems().text, *load_sonnets().text]]
    shuffled = shuffled_texts(split, 0, across=True)
    rows = len(tokens), [shown]  # all can be asked for; those shown may be neighbours
    return [
        Space("BERT's table", tokens, unit(table), None, *rows),
        _counted("Two poets", split),
        Space("BERT's table, random", tokens, unit(mixed), None, *rows, learned=False),
        _counted("Two poets, shuffled", shuffled, learned=False),
    ]


def _counted(name: str, texts: list[list[str]], learned: bool = True) -> Space:
    """Return a space of word vectors made from counts in some texts.

    Parameters
    ----------
    name : str
        Of the space.
    texts : list of list of str
        The words of each text.
    learned : bool
        False of shuffled text.

    Returns
    -------
    Space
        Its words stand in the order of `word_vectors`, the most frequent first, so a range
        of rows is a range of frequencies: words that occur 2 times or more (`ASKED`) can be
        asked for; those that occur 5 times or more (`SHOWN`) may be neighbours, with or
        without the 60 most frequent (`FREQUENT`). A vector has 50 numbers (`WIDTH`).
    """
    names, vectors = word_vectors(texts, WIDTH)
    counted = Counter(word for text in texts for word in text)
    counts = [counted[word] for word in names]
    asked, shown = (sum(n >= least for n in counts) for least in (ASKED, SHOWN))
    rows = [np.arange(shown), np.arange(FREQUENT, shown)]
    return Space(name, names, unit(vectors), counts, asked, rows, learned)


def _nearest(space: Space, rows, shown) -> tuple[np.ndarray, np.ndarray]:
    """Return the six nearest neighbours of some words (`NEAREST`), and their cosines.

    No word is a neighbour of itself.

    Parameters
    ----------
    space : Space
    rows : sequence of int
        Of the words that are asked for.
    shown : int array
        The rows that may be neighbours.

    Returns
    -------
    near : int array of shape (rows, NEAREST)
        Rows of the space, the nearest first.
    cosines : int8 array of shape (rows, NEAREST)
        In hundredths.
    """
    near = []
    cosines = []
    for start in range(0, len(rows), ROWS):
        part = np.asarray(rows[start : start + ROWS])
        cosine = space.vectors[part] @ space.vectors[shown].T  # (part, shown)
        cosine[part[:, None] == shown] = -np.inf  # not itself
        best = np.argpartition(-cosine, NEAREST, axis=1)[:, :NEAREST]
        values = np.take_along_axis(cosine, best, axis=1)
        order = np.argsort(-values, axis=1)
        near.append(shown[np.take_along_axis(best, order, axis=1)])
        cosines.append(np.take_along_axis(values, order, axis=1))
    return np.concatenate(near), np.rint(100 * np.concatenate(cosines)).astype(np.int8)


def neighbours_file(tables: list[Space]) -> bytes:
    """Return the nearest of all words, for the site: a line of JSON, then numbers.

    The JSON has ``nearest``, how many neighbours a word has, and ``spaces``, a dict each:
    ``name``, ``words``, ``counts`` and ``asked`` (`Space`). For each space follow the rows
    of the nearest of its words that can be asked for, as 16-bit numbers (32 if it has more
    words than these can count), then their cosines in hundredths, a byte each, both filled
    up to four bytes; of a corpus then the same without the most frequent words. The words
    of a model's table are BERT's pieces and not repeated.

    ``tables`` : the spaces, each with its words, their vectors and the rows that are shown.
    """
    fields = ("name", "words", "counts", "asked")
    descriptions = [{name: getattr(space, name) for name in fields} for space in tables]
    for each in descriptions:
        if each["counts"] is None:
            each["words"] = None
    head = {"nearest": NEAREST, "spaces": descriptions}
    parts = [json.dumps(head, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"]
    for space in tables:
        wide = len(space.words) > 2**16
        for shown in space.shown:
            near, cosines = _nearest(space, range(space.asked), shown)
            parts += [near.astype("<u4" if wide else "<u2").tobytes(), cosines.tobytes()]
    return b"".join(part + b" " * (-len(part) % 4) for part in parts)


def neighbours(word, tables) -> View:
    """Show the words nearest to one, in BERT's table and in vectors from counts.

    On the site the reader types any word, may leave the most frequent words out, and may
    switch to what was not learned; neighbours are buttons that lead on.

    Parameters
    ----------
    word : str
        What it begins with, in small letters.
    tables : list of Space
        The word vectors to look in, each with its ``words`` and ``name``; those that have
        learned something (``learned``) come first.

    Returns
    -------
    View
        Its alternative text tells the nearest three in each space.
    """
    lists = [[space.name, *_list(word, space)] for space in tables]
    nearest = [
        f"{name}: {', '.join(w for w, _ in near[:3])}"
        for name, _, [near, *_] in lists
        if near
    ]
    alt = f"The words nearest to “{word}” in tables of vectors. {'; '.join(nearest)}."
    learned = sum(space.learned for space in tables)
    data = {"word": word, "lists": lists, "learned": learned}
    stores = ["neighbours", "bert-pieces"]
    stored = f"<p>Your word: <b>{html.escape(word)}</b></p>" + "".join(map(_stored, lists))
    return View("neighbours-view", data, stored, alt=alt, stores=stores)


def _list(word: str, space: Space) -> tuple[str, list]:
    """Return what is said of a word in a space, and its lists of nearest with cosines.

    The first is a str such as "12 times in the text". There is a list for each set of rows
    that may be neighbours (of a corpus with the most frequent words, and without); it has
    [word, cosine in hundredths], the nearest first. A word that isn't there or is too
    seldom has one empty list.
    """
    row = space.words.index(word) if word in space.words else None
    if space.counts is None:
        note = (
            f"one of {len(space.words):,} rows" if row is not None else "no row of its own"
        )
    else:
        count = space.counts[row] if row is not None else 0
        note = f"{count:,} {plural(count, 'time')} in the text"
    if row is None:
        return note, [[]]
    if row >= space.asked:
        return f"{note}: too seldom", [[]]
    lists = []
    for shown in space.shown:
        near, cosines = _nearest(space, [row], shown)
        pairs = zip(near[0].tolist(), cosines[0].tolist(), strict=True)
        lists.append([[space.words[i], cosine] for i, cosine in pairs])
    return note, lists


def _stored(entry: list) -> str:
    """Return what is shown without scripts: a word's nearest in one space, as HTML.

    ``entry`` : the space's name, what is said of the word there, and lists of its nearest,
    pairs of word and cosine in hundredths; the first list is shown.
    """
    name, note, [near, *_] = entry
    rows = "".join(
        f"<li>{html.escape(w)} {format_number(c / 100, '.2f')}</li>" for w, c in near
    )
    return f"<p><b>{html.escape(name)}</b>, {note}</p><ol>{rows}</ol>"
