"""Shuffled models and texts, in which findings must fail (`studies.findings`).

Each function returns something new, from a fixed seed, and leaves what it is given as
it is. A null is written with them in a few lines; it also replaces what the page
computed:

>>> def random_weights(page):
...     '''A BERT whose weights are shuffled.'''
...     bert = nulls.shuffled_weights(page.bert)
...     return page.replaced(bert=bert, weights=attention_weights(bert, page.sentences))
"""

from collections.abc import Sequence
from itertools import islice

import numpy as np

from lmcourse.shuffled import shuffled_weights

__all__ = ["shuffled", "shuffled_weights", "shuffled_words"]


def shuffled_words(texts: Sequence[str], seed: int = 0) -> list[str]:
    """Return texts with all their words shuffled across them, each of as many as before.

    Parameters
    ----------
    texts : sequence of str
        Words are separated by white space; line breaks become spaces.
    seed : int
        Of all that is drawn at random.

    Returns
    -------
    list of str
    """
    words = [text.split() for text in texts]
    mixed = iter(shuffled([word for each in words for word in each], seed))
    return [" ".join(islice(mixed, len(each))) for each in words]


def shuffled(items: Sequence, seed: int = 0) -> list:
    """Return a sequence, for instance of labels, as a list in a random order.

    ``items`` : sequence; ``seed`` : int.
    """
    order = np.random.default_rng(seed).permutation(len(items))
    return [items[index] for index in order]
