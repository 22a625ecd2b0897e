"""What the studies of *tokenization* share with their page.

The page shows this code; a test compares the two.
"""

from collections import Counter
from itertools import pairwise

from lmcourse.tokenization import merge_pair


def count_pairs(corpus):
    """Count the pairs of neighbouring symbols.

    Parameters
    ----------
    corpus : iterable of (tuple of str, int)
        Words as symbols, and how often each occurs.

    Returns
    -------
    Counter
        Pair of symbols, (str, str) → how often it occurs.
    """
    counts = Counter()
    for symbols, frequency in corpus:
        for pair in pairwise(symbols):
            counts[pair] += frequency
    return counts


def naive_train_bpe(words, merges):
    """Learn merges by counting all pairs anew for each.

    Parameters
    ----------
    words : iterable of (str, int)
        Words, and how often each occurs.
    merges : int
        How many at most.

    Returns
    -------
    list of (str, str)
        The pairs that are merged, in their order; of equally frequent pairs the older first.
    """
    corpus = [(tuple(word), frequency) for word, frequency in words]
    letters = sorted({symbol for symbols, _ in corpus for symbol in symbols})
    age = {symbol: i for i, symbol in enumerate(letters)}
    learned = []
    while len(learned) < merges and (counts := count_pairs(corpus)):
        best = min(counts, key=lambda p: (-counts[p], age[p[0]], age[p[1]]))
        learned.append(best)
        age.setdefault(best[0] + best[1], len(age))
        corpus = [(merge_pair(s, best), count) for s, count in corpus]
    return learned
