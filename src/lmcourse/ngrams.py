"""Language models that only count: n-grams with modified Kneser–Ney smoothing.

An n-gram model guesses the next token from the ``order - 1`` tokens before it, by how often
it followed them in a text. Most long contexts were never seen, and what was seen once is
mostly chance. So each count gives a little of itself away, and the shorter context shares
that out; below the shortest, all tokens are equally likely [2]_:

    P(w | h) = (c(hw) - D(c(hw))) / c(h) + left(h) P(w | shorter h)

where left(h) is the sum of all that was taken from the counts after h, divided by c(h). How
much is taken from a count of 1, of 2, and of 3 or more, the text says itself, by how many
n-grams occur once, twice, three and four times. Below the longest n-grams a count is not
how often something occurred but after how many different tokens [1]_: a shorter context is
needed where the longer one is new, and there it matters in how many contexts a token fits.

.. [1] R. Kneser and H. Ney, "Improved backing-off for M-gram language modeling",
   Proceedings of ICASSP, 1995.
.. [2] S. F. Chen and J. Goodman, "An empirical study of smoothing techniques for language
   modeling", Computer Speech and Language 13(4), 1999: interpolated and modified.
"""

import numpy as np


def discounts(counts):
    """Return what is taken from counts of 1, of 2, and of 3 or more, shape (3,).

    With n_k for how many of the counts are k, and Y = n_1 / (n_1 + 2 n_2), Chen and
    Goodman take k - (k + 1) Y n_(k+1) / n_k from k. Where a text is too short to tell,
    because one of these n is zero or nothing would be taken, half of k is taken.

    Parameters
    ----------
    counts : int array, shape (n-grams,)
        How often each n-gram occurs, 1 or more.
    """
    n = np.bincount(np.minimum(counts, 5), minlength=6)  # how many counts are k
    taken = np.array([0.5, 1.0, 1.5])
    for k in (1, 2, 3):
        if n[[1, 2, k, k + 1]].all():
            discount = k - (k + 1) * n[1] / (n[1] + 2 * n[2]) * n[k + 1] / n[k]
            if discount > 0:
                taken[k - 1] = discount
    return taken


class Level:
    """What contexts of one length predict, and what they leave to shorter ones.

    Parameters
    ----------
    ngrams : int array of shape (n-grams,)
        Numbers of n-grams, ascending: that of the context times ``vocab_size``, plus the
        last token.
    counts : int array of shape (n-grams,)
        How often each occurs, or after how many different tokens.
    vocab_size : int

    Attributes
    ----------
    ngrams : int array of shape (n-grams,)
        As given.
    shares : float array of shape (n-grams,)
        Of each n-gram its count, less what is taken from it, as a share of all counts after
        its context.
    contexts : int array of shape (contexts,)
        Numbers of the contexts that occur, ascending.
    left : float array of shape (contexts,)
        What is taken from the counts after each context, as a share of them.
    """

    def __init__(self, ngrams, counts, vocab_size):
        self.ngrams = ngrams
        self.vocab_size = vocab_size
        taken = discounts(counts)[np.minimum(counts, 3) - 1]
        self.contexts, first, context = np.unique(
            ngrams // vocab_size, return_index=True, return_inverse=True
        )
        totals = np.add.reduceat(counts, first)
        self.shares = (counts - taken) / totals[context]
        self.left = np.add.reduceat(taken, first) / totals

    def interpolate(self, contexts, tokens, lower):
        """Return P(tokens | contexts), interpolated with that of the shorter contexts.

        ``contexts`` : int array (tokens,), the number of each token's context (its tokens
        read as digits to the base of the vocabulary's size), -1 for none; ``tokens`` : int
        array, ids; ``lower`` : float array, the probabilities after the shorter contexts.
        All have the same shape, as has what is returned. A context that is not known leaves
        all to the shorter one.
        """
        ngrams = contexts * self.vocab_size + tokens
        share = _look_up(self.ngrams, self.shares, ngrams, 0)
        # A context that was never seen leaves everything to the shorter one.
        return share + _look_up(self.contexts, self.left, contexts, 1) * lower


def _look_up(keys, values, wanted, otherwise):
    """Return the value of each wanted key, or ``otherwise`` where there is no such key.

    ``keys``, sorted, and ``values`` are arrays of one length; the result has the shape of
    ``wanted``.
    """
    index = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    return np.where(keys[index] == wanted, values[index], otherwise)


class NgramModel:
    """An n-gram model of a text.

    Parameters
    ----------
    ids : sequence of int, shape (tokens,)
        The text it counts, at least ``order`` tokens of it.
    order : int
        How long the n-grams are: 1 looks at no context, 2 at one token before.
    vocab_size : int
        How many tokens there are. All IDs are below it.

    Raises
    ------
    ValueError
        If the text is too short, an ID is not in the vocabulary, the order is below 1, or
        there are more n-grams than a 64-bit number can name.
    """

    def __init__(self, ids, order, vocab_size):
        if order < 1:
            raise ValueError(f"the order of n-grams is at least 1, got {order}")
        if vocab_size**order >= 2**63:
            raise ValueError(f"too many {order}-grams of {vocab_size} tokens for 64 bits")
        self.order = order
        self.vocab_size = vocab_size
        ids = self._checked(ids)
        if len(ids) < order:
            raise ValueError(f"{len(ids)} tokens hold no {order}-gram")
        self._levels = [self._level(ids, size) for size in range(1, order + 1)]

    def _level(self, ids, size):
        """Count the n-grams of one length for interpolation.

        The longest are counted as they occur; shorter ones by how many different tokens
        precede them.

        Parameters
        ----------
        ids : int64 array of shape (tokens,)
            The text.
        size : int
            The length.

        Returns
        -------
        Level
            What contexts of this length predict, and what they leave to shorter ones.
        """
        longer = min(size + 1, self.order)
        contexts = self._contexts(ids, longer - 1)
        occurrences = (contexts * self.vocab_size + ids)[longer - 1 :]
        ngrams, counts = np.unique(occurrences, return_counts=True)
        if size < self.order:  # each longer one once, without its first token
            ngrams, counts = np.unique(ngrams % self.vocab_size**size, return_counts=True)
        return Level(ngrams, counts, self.vocab_size)

    def _checked(self, ids):
        """Return ids as an int64 array of shape (tokens,).

        Parameters
        ----------
        ids : array-like of int

        Raises
        ------
        ValueError
            If it is no flat sequence of whole numbers, or one is not in the vocabulary.
        """
        ids = np.asarray(ids)
        if ids.ndim != 1 or not (ids.size == 0 or np.issubdtype(ids.dtype, np.integer)):
            raise ValueError("a text is a flat sequence of whole numbers, its tokens' IDs")
        if ids.size and not 0 <= ids.min() <= ids.max() < self.vocab_size:
            wrong = ids[(ids < 0) | (ids >= self.vocab_size)][0]
            raise ValueError(f"ID {wrong} is not in a vocabulary of {self.vocab_size}")
        return ids.astype(np.int64)

    def _contexts(self, ids, length):
        """Number the ``length`` tokens before each token; -1 where there are fewer.

        They are read as digits to the base of the vocabulary's size, the last one the
        lowest.

        ``ids`` : int64 array (tokens,). The result has the same shape.
        """
        number = np.zeros(len(ids), dtype=np.int64)
        for back in range(length, 0, -1):
            number[back:] = number[back:] * self.vocab_size + ids[: len(ids) - back]
        number[:length] = -1
        return number

    def probabilities(self, ids):
        """Return the probability of each token of a text after those before it.

        The first tokens have short contexts: what stands before the text is unknown.

        Parameters
        ----------
        ids : sequence of int, shape (tokens,)

        Returns
        -------
        float array of shape (tokens,)
        """
        ids = self._checked(ids)
        probs = np.full(len(ids), 1 / self.vocab_size)
        for length, level in enumerate(self._levels):
            probs = level.interpolate(self._contexts(ids, length), ids, probs)
        return probs

    def loss(self, ids):
        """Return the mean of minus the log probability of each token, a float in nats.

        ``ids`` : sequence of int, shape (tokens,).
        """
        return float(-np.log(self.probabilities(ids)).mean())

    def next_probs(self, context):
        """Return the distribution of the next token, shape (vocab_size,).

        Parameters
        ----------
        context : sequence of int, shape (tokens,)
            The text so far, perhaps empty; its last ``order - 1`` tokens count.
        """
        context = self._checked(context)[max(len(context) - self.order + 1, 0) :]
        tokens = np.arange(self.vocab_size)
        probs = np.full(self.vocab_size, 1 / self.vocab_size)
        for length, level in enumerate(self._levels[: len(context) + 1]):
            number = self._contexts(np.append(context, 0), length)[-1]
            probs = level.interpolate(np.full_like(tokens, number), tokens, probs)
        return probs

    def sample(self, context, length, rng):
        """Return ``length`` more tokens after a context, drawn one by one.

        Parameters
        ----------
        context : sequence of int, shape (tokens,)
        length : int
        rng : numpy.random.Generator

        Returns
        -------
        list of int
            The new tokens alone.
        """
        text = [int(token) for token in self._checked(context)]
        for _ in range(length):
            text.append(int(rng.choice(self.vocab_size, p=self.next_probs(text))))
        return text[len(text) - length :]
