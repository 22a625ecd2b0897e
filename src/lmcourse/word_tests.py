"""What word vectors are tried on: analogies, and the neighbours that two spaces share.

Vectors are rows: a table is (words, d_model).
"""

import hashlib
import re

import numpy as np

from lmcourse.data import corpora_folder
from lmcourse.embeddings import unit

ANALOGIES = "90843bbddfbc666bb841df2d33656de153a7661a81dd5c545203f22730e14dd0"  # SHA-256


def load_analogies() -> dict[str, list[tuple[str, str]]]:
    """Return pairs of words in the same relation, kind by kind: ``("man", "woman")``.

    They are those of Google's questions (Mikolov et al. 2013, "Efficient estimation of word
    representations"), in small letters; its two lists of capitals are one. Returned is a
    dict: name of the relation → pairs of words.

    Raises
    ------
    ValueError
        If the file is missing or damaged.
    """
    path = corpora_folder() / "analogies.txt"
    content = path.read_bytes().replace(b"\r\n", b"\n") if path.is_file() else b""
    if hashlib.sha256(content).hexdigest() != ANALOGIES:
        raise ValueError(
            f"{path} is missing or not the file it should be: restore it with "
            "`git checkout -- data`, or install lmcourse again"
        )
    kinds = {}
    for part in content.decode().strip().split("\n\n"):
        kind, *lines = part.splitlines()
        kinds[kind.strip("[]")] = [tuple(line.split()) for line in lines]
    return kinds


def whole_words(tokenizer) -> tuple[list[str], list[int]]:
    """Return the tokens of a vocabulary that are words of small letters, and their IDs.

    ``tokenizer`` : PreTrainedTokenizerFast. The words are in the order of their IDs.
    """
    ids = tokenizer.get_vocab()
    words = sorted((w for w in ids if re.fullmatch("[a-z]+", w)), key=ids.get)
    return words, [ids[word] for word in words]


def questions(pairs, words) -> np.ndarray:
    """Ask each pair with each other one: "a is to b as c is to d".

    Parameters
    ----------
    pairs : list of (str, str)
        Pairs of words in one relation, such as ("man", "woman").
    words : list of str
        Those that have vectors. A pair of which one has none is left out.

    Returns
    -------
    int array of shape (questions, 4)
        Positions of a, b, c and d in ``words``, all four different.
    """
    row = {word: i for i, word in enumerate(words)}
    known = [(row[a], row[b]) for a, b in pairs if a in row and b in row]
    asked = [(*one, *other) for one in known for other in known]
    asked = [each for each in asked if len(set(each)) == 4]
    return np.array(asked, dtype=int).reshape(-1, 4)


def fourth_words(vectors, asked, weights=(-1, 1, 1)) -> np.ndarray:
    """Return the nearest word to −a + b + c, the question's own three left out.

    Nearest is the word with the largest cosine similarity; a, b and c are brought to length
    1 before they are added.

    Parameters
    ----------
    vectors : array of shape (words, d_model)
        Of all words among which the answer is looked for.
    asked : int array of shape (questions, 3) or (questions, 4)
        The rows of a, b and c in ``vectors``; a fourth column is not read.
    weights : three numbers
        Of the unit vectors of a, b and c: ``(0, 0, 1)`` asks for c's own neighbour.

    Returns
    -------
    int array of shape (questions,)
        The row of each word found.
    """
    directions = unit(vectors).astype(np.float32)
    used, where = np.unique(asked[:, :3], return_inverse=True)
    cosines = directions[used] @ directions.T  # (used, words)
    nearest = []
    for three in where.reshape(-1, 3):
        scores = np.asarray(weights, np.float32) @ cosines[three]  # (words,)
        scores[used[three]] = -np.inf
        nearest.append(scores.argmax())
    return np.array(nearest, dtype=int)


def shared_neighbours(first, second, k) -> np.ndarray:
    """Return, for each word, the share of its k nearest that two spaces have in common.

    Parameters
    ----------
    first, second : array of shape (words, d_first), (words, d_second)
        The same words in the same order.
    k : int
        Less than the number of words.

    Returns
    -------
    array of shape (words,)
        By chance, ``k / (words - 1)``.
    """
    nearest = []
    for vectors in (first, second):
        cosine = unit(vectors) @ unit(vectors).T  # (words, words)
        np.fill_diagonal(cosine, -np.inf)  # no word is its own neighbour
        nearest.append(np.argsort(-cosine, axis=1, kind="stable")[:, :k])  # (words, k)
    by_word = zip(*nearest, strict=True)
    return np.array([len(np.intersect1d(one, other)) / k for one, other in by_word])


def spelling_vectors(words) -> np.ndarray:
    """Count the pairs and triples of letters in each word, its two ends among them.

    Parameters
    ----------
    words : sequence of str

    Returns
    -------
    array of shape (words, pieces)
        How often each pair or triple that occurs at all stands in the word, whose ends are
        written "<" and ">"; columns in sorted order.
    """
    cut = [
        [f"<{w}>"[i : i + n] for n in (2, 3) for i in range(len(w) + 3 - n)] for w in words
    ]
    column = {piece: i for i, piece in enumerate(sorted({p for each in cut for p in each}))}
    counts = np.zeros((len(words), len(column)))
    for row, parts in enumerate(cut):
        for piece in parts:
            counts[row, column[piece]] += 1
    return counts


def shuffled_texts(texts, seed, across=False) -> list[list[str]]:
    """Return texts of the same lengths with their words in a random order.

    Parameters
    ----------
    texts : list of lists of str
    seed : int
    across : bool
        Whether words may move from one text to another; else each text is shuffled by
        itself.
    """
    rng = np.random.default_rng(seed)
    if not across:
        return [rng.permutation(text).tolist() for text in texts]
    ends = np.cumsum([len(text) for text in texts])[:-1]
    shuffled = rng.permutation(np.concatenate(texts))
    return [part.tolist() for part in np.split(shuffled, ends)]
