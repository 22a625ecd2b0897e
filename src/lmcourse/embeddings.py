"""Word vectors: comparing them, looking at them, and making them from counts.

The forms at which the chapter *embeddings* arrives, in NumPy. Vectors are rows: a matrix
is (words, d_model).
"""

import re
from collections import Counter

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import svds


def unit(vectors):
    """Divide each vector by its length, so that a dot product is a cosine.

    Parameters
    ----------
    vectors : array of shape (..., d_model)
        A vector of zeros has no direction and stays zero.

    Returns
    -------
    array of shape (..., d_model)
    """
    lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)  # (..., 1)
    return vectors / np.where(lengths == 0, 1, lengths)


def neighbours(vectors, row, k):
    """Find the vectors with the largest cosine to one of them, itself left out.

    Parameters
    ----------
    vectors : array of shape (words, d_model)
    row : int
        Whose neighbours; ``0 <= row < words``.
    k : int
        How many, at most ``words - 1``.

    Returns
    -------
    nearest : int array of shape (k,)
        Row numbers, the nearest first.
    cosine : array of shape (k,)
    """
    directions = unit(vectors)
    cosine = directions @ directions[row]  # (words,)
    order = np.argsort(-cosine, kind="stable")
    nearest = order[order != row][:k]
    return nearest, cosine[nearest]


def fix_signs(columns):
    """Turn each column so that its largest entry, in absolute value, is positive.

    Singular vectors are determined up to their sign; this makes the choice the same on
    every machine.

    Parameters
    ----------
    columns : array of shape (words, k)

    Returns
    -------
    array of shape (words, k)
    """
    largest = np.abs(columns).argmax(axis=0)  # (k,)
    return columns * np.sign(columns[largest, np.arange(columns.shape[1])])


def principal_components(vectors, k):
    """Project the vectors on the ``k`` directions in which they vary most.

    Parameters
    ----------
    vectors : array of shape (words, d_model)
    k : int
        At most ``min(words, d_model)``.

    Returns
    -------
    points : array of shape (words, k)
        Each direction has the sign that `fix_signs` gives it.
    share : array of shape (k,)
        The part of the variance along each direction.
    """
    centred = vectors - vectors.mean(axis=0)  # (words, d_model)
    left, sizes, _ = np.linalg.svd(centred, full_matrices=False)
    points = fix_signs(left[:, :k]) * sizes[:k]  # (words, k)
    return points, sizes[:k] ** 2 / (sizes**2).sum()


def neighbour_overlap(first, second, k):
    """Measure how alike two spaces of the same words are, by who is near whom.

    Parameters
    ----------
    first : array of shape (words, d_first)
    second : array of shape (words, d_second)
        The same words in the same order.
    k : int
        How many neighbours of each word are compared.

    Returns
    -------
    float
        The share of the ``k`` nearest neighbours in one space that are among those in
        the other, averaged over the words; by chance, ``k / (words - 1)``.

    Raises
    ------
    ValueError
        If the two do not have the same number of rows, or not more than ``k``.
    """
    if len(first) != len(second) or len(first) <= k:
        raise ValueError(f"{len(first)} and {len(second)} rows, {k} neighbours")
    nearest = []
    for vectors in (first, second):
        cosine = unit(vectors) @ unit(vectors).T  # (words, words)
        np.fill_diagonal(cosine, -np.inf)
        nearest.append(np.argsort(-cosine, axis=1)[:, :k])  # (words, k)
    both = zip(*nearest, strict=True)
    shared = [len(np.intersect1d(ours, theirs)) for ours, theirs in both]
    return float(np.mean(shared) / k)


def words(text):
    """Return the words of a text, a list of str in lower case.

    A word is a run of letters, apostrophes inside it included; everything else, hyphens
    too, separates.

    ``text`` : str.
    """
    return re.findall(r"[^\W\d_]+(?:'[^\W\d_]+)*", text.lower().replace("’", "'"))


def cooccurrence(texts, vocabulary, window):
    """Count how often each word stands within ``window`` places of each other one.

    Parameters
    ----------
    texts : list of lists of str
        No pair is counted across two texts. A word that is not in the vocabulary keeps
        its place but is counted with nobody.
    vocabulary : list of str
        The words that are counted, in the order of the rows.
    window : int
        The largest distance counted; 1 is the word next to it.

    Returns
    -------
    sparse array of shape (words, words)
        Symmetric.
    """
    number = {word: row for row, word in enumerate(vocabulary)}
    lefts, rights = [], []
    for text in texts:
        ids = np.array([number.get(word, -1) for word in text], dtype=int)
        for distance in range(1, window + 1):
            lefts.append(ids[:-distance])
            rights.append(ids[distance:])
    left, right = np.concatenate(lefts), np.concatenate(rights)  # (pairs,)
    known = (left >= 0) & (right >= 0)
    pairs = left[known], right[known]
    size = len(vocabulary), len(vocabulary)
    counts = sparse.coo_array((np.ones(known.sum()), pairs), shape=size)
    return (counts + counts.T).tocsr()  # (words, words)


def ppmi(counts, smoothing=1.0):
    """Compare counts with what chance would give: positive pointwise mutual information.

    Parameters
    ----------
    counts : sparse array of shape (words, contexts)
    smoothing : float
        The power to which the counts of the contexts are raised before they are made a
        probability (Levy et al. 2015, section 3.2); 1 leaves them, 0.75 keeps rare
        contexts from looking overly telling.

    Returns
    -------
    sparse array of shape (words, contexts)
        max(0, ln(count / expected)), in nats; 0 where the count is 0.
    """
    pairs = counts.tocoo()
    row, column = pairs.coords
    words_total = pairs.sum(axis=1)  # (words,)
    contexts_total = pairs.sum(axis=0) ** smoothing  # (contexts,)
    chance = contexts_total / contexts_total.sum()  # (contexts,), sums to 1
    expected = words_total[row] * chance[column]  # (pairs,)
    information = np.log(pairs.data / expected)
    positive = information > 0
    cells = row[positive], column[positive]
    return sparse.csr_array((information[positive], cells), shape=counts.shape)


def word_vectors(texts, d_model, *, window=2, smoothing=0.75, min_count=1):
    """Make word vectors from counts: co-occurrence → PPMI → truncated SVD.

    Levy et al. (2015), with the singular values to the power 1/2. Deterministic: the
    solver starts from a fixed vector, and signs are fixed.

    Parameters
    ----------
    texts : list of str, or of lists of str
        Texts are split by `words`; lists are taken as they are, so that any tokens can
        be counted.
    d_model : int
        Width of the vectors, at least 1 and less than the number of words.
    window : int
        The largest distance at which two words are counted together.
    smoothing : float
        The power to which counts of contexts are raised.
    min_count : int
        Words that occur less often get no vector.

    Returns
    -------
    vocabulary : list of str
        The most frequent first, then alphabetical.
    vectors : float array of shape (words, d_model)
        Row i belongs to ``vocabulary[i]``. Columns by falling singular value.

    Raises
    ------
    ValueError
        If the window is less than 1, or ``d_model`` does not fit the vocabulary.
    """
    split = [words(text) if isinstance(text, str) else list(text) for text in texts]
    counted = Counter(word for text in split for word in text)
    frequent = [word for word in counted if counted[word] >= min_count]
    vocabulary = sorted(frequent, key=lambda word: (-counted[word], word))
    if window < 1:
        raise ValueError(f"a window of {window} holds no neighbour")
    if not 1 <= d_model < len(vocabulary):
        raise ValueError(f"d_model is {d_model}, with {len(vocabulary)} words to place")
    matrix = ppmi(cooccurrence(split, vocabulary, window), smoothing)
    start = np.random.default_rng(0).uniform(size=len(vocabulary))
    left, sizes, _ = svds(matrix, k=d_model, v0=start)  # (words, d_model)
    order = np.argsort(-sizes)
    vectors = fix_signs(left[:, order]) * np.sqrt(sizes[order])
    return vocabulary, vectors
