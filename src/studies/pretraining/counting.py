"""Counting what stands between neighbours: rivals of models that fill in hidden tokens.

A piece is a token of any kind, by its number.
"""

import numpy as np

from lmcourse.ngrams import Level, NgramModel


def count_infill(ids, vocab_size, reach):
    """Count n-grams of a text, and predict a piece from its neighbours on both sides.

    Each piece of the vocabulary is put between them, and from there on the sequence is
    scored by an n-gram model (`lmcourse.ngrams.NgramModel`) of ``reach + 1`` pieces. With
    ``reach`` 1, in a chain of pairs, P(piece | left, right) is P(piece | left) P(right |
    piece), made to sum to 1.

    Parameters
    ----------
    ids : int array of shape (tokens,)
        The text that is counted.
    vocab_size : int
        How many different pieces there are.
    reach : int
        How many neighbours on each side.

    Returns
    -------
    callable
        From the ``reach`` pieces on the left and ``reach`` or fewer on the right to the
        log probability of every piece between them, (vocab_size,).
    """
    counted = NgramModel(ids, reach + 1, vocab_size)
    middle = np.arange(vocab_size)[:, None]

    def infill(left, right):
        """Return the log probabilities (vocab_size,) of the piece between two lists.

        ``left`` and ``right`` : lists of int, the pieces before it and after it.
        """
        sides = [np.tile(np.asarray(x, int), (vocab_size, 1)) for x in (left, right)]
        rows = np.hstack([sides[0], middle, sides[1]])  # (vocab_size, tokens)
        probs = counted.probabilities(rows.ravel()).reshape(rows.shape)
        # Of the piece itself and of those after it: those before it are always the same.
        scores = np.log(probs[:, reach:]).sum(1)  # (vocab_size,)
        return scores - np.logaddexp.reduce(scores)

    return infill


def between_infill(ids, vocab_size):
    """Count what stood between two neighbours, and predict a piece from that.

    Something is taken from each count, as in modified Kneser–Ney smoothing
    (`lmcourse.ngrams.Level`), and shared out as a chain of pairs says, which knows each
    neighbour by itself (`count_infill` with ``reach`` 1).

    Parameters
    ----------
    ids : int array of shape (tokens,)
        The text that is counted.
    vocab_size : int
        How many different pieces there are.

    Returns
    -------
    callable
        From the piece on the left and the piece on the right, a list each, to the log
        probability of every piece between them, (vocab_size,).
    """
    pairs = count_infill(ids, vocab_size, 1)
    middle = np.arange(vocab_size)
    runs = (ids[:-2] * vocab_size + ids[2:]) * vocab_size + ids[1:-1]  # piece last
    level = Level(*np.unique(runs, return_counts=True), vocab_size)

    def infill(left, right):
        """Return the log probabilities (vocab_size,) of the piece between two pieces.

        ``left`` and ``right`` : lists of one int, the piece before it and the one after it.
        """
        sides = np.full_like(middle, left[0] * vocab_size + right[0])
        return np.log(level.interpolate(sides, middle, np.exp(pairs(left, right))))

    return infill
