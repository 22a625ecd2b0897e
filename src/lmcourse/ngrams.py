"""Language models that only count: n-grams with Witten–Bell smoothing.

An n-gram model guesses the next token from the ``order - 1`` tokens before it, by how often
it followed them in a text. Most long contexts were never seen, so each order leans on the
one below it, and the lowest on all tokens being equally likely [1]_:

    P(w | h) = (count(h, w) + kinds(h) P(w | shorter h)) / (count(h) + kinds(h))

where kinds(h) is how many different tokens followed h: the more surprises a context has
held, the more its shorter form has to say.

.. [1] I. H. Witten and T. C. Bell, "The zero-frequency problem: estimating the
   probabilities of novel events in adaptive text compression", IEEE Transactions on
   Information Theory 37(4), 1991; interpolated as in S. F. Chen
   and J. Goodman, TR-10-98, Harvard, 1998.
"""

import numpy as np

__all__ = ["NgramModel"]


class _Counts:
    """How often each token followed each context of one length."""

    def __init__(self, contexts, tokens, vocab_size):
        pairs, self.pair_counts = np.unique(
            contexts * vocab_size + tokens, return_counts=True
        )
        self.pairs, self.vocab_size = pairs, vocab_size
        self.contexts, first = np.unique(pairs // vocab_size, return_index=True)
        self.totals = np.add.reduceat(self.pair_counts, first)
        self.kinds = np.diff(np.append(first, len(pairs)))

    def interpolate(self, contexts, tokens, lower):
        """Return P(tokens | contexts), given the same of the shorter contexts."""
        count = _look_up(self.pairs, self.pair_counts, contexts * self.vocab_size + tokens)
        total = _look_up(self.contexts, self.totals, contexts)
        kinds = _look_up(self.contexts, self.kinds, contexts)
        seen = total > 0  # nothing is known of the others: what the shorter ones say
        return np.where(
            seen, (count + kinds * lower) / np.where(seen, total + kinds, 1), lower
        )


def _look_up(keys, values, wanted):
    """Return the value of each wanted key, 0 where there is no such key."""
    place = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    return np.where(keys[place] == wanted, values[place], 0)


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
        self.order, self.vocab_size = order, vocab_size
        ids = self._checked(ids)
        if len(ids) < order:
            raise ValueError(f"{len(ids)} tokens hold no {order}-gram")
        self._counts = []
        for length in range(order):
            contexts = self._contexts(ids, length)[length:]
            self._counts.append(_Counts(contexts, ids[length:], vocab_size))

    def _checked(self, ids):
        ids = np.asarray(ids)
        if ids.ndim != 1 or not (ids.size == 0 or np.issubdtype(ids.dtype, np.integer)):
            raise ValueError("a text is a flat sequence of whole numbers, its tokens' IDs")
        if ids.size and not 0 <= ids.min() <= ids.max() < self.vocab_size:
            wrong = ids[(ids < 0) | (ids >= self.vocab_size)][0]
            raise ValueError(f"ID {wrong} is not in a vocabulary of {self.vocab_size}")
        return ids.astype(np.int64)

    def _contexts(self, ids, length):
        """Number the ``length`` tokens before each token; -1 where there are fewer."""
        number = np.zeros(len(ids), dtype=np.int64)
        for back in range(length, 0, -1):
            number[back:] = number[back:] * self.vocab_size + ids[: len(ids) - back]
        number[:length] = -1
        return number

    def probabilities(self, ids):
        """Return the probability of each token after those before it, shape (tokens,).

        The first tokens have short contexts: what stands before the text is unknown.
        """
        ids = self._checked(ids)
        guess = np.full(len(ids), 1 / self.vocab_size)
        for length, counts in enumerate(self._counts):
            guess = counts.interpolate(self._contexts(ids, length), ids, guess)
        return guess

    def loss(self, ids):
        """Return the mean of minus the log probability of each token, in nats."""
        return float(-np.log(self.probabilities(ids)).mean())

    def following(self, context):
        """Return the distribution of the next token, shape (vocab_size,).

        Parameters
        ----------
        context : sequence of int, shape (tokens,)
            The text so far, perhaps empty; its last ``order - 1`` tokens count.
        """
        context = self._checked(context)[max(len(context) - self.order + 1, 0) :]
        tokens = np.arange(self.vocab_size)
        guess = np.full(self.vocab_size, 1 / self.vocab_size)
        for length, counts in enumerate(self._counts[: len(context) + 1]):
            number = 0
            for token in context[len(context) - length :]:
                number = number * self.vocab_size + int(token)
            guess = counts.interpolate(np.full_like(tokens, number), tokens, guess)
        return guess

    def sample(self, context, length, rng):
        """Return ``length`` more tokens after a context, drawn one by one.

        Parameters
        ----------
        context : sequence of int, shape (tokens,)
        length : int
        rng : numpy.random.Generator
        """
        text = [int(token) for token in self._checked(context)]
        for _ in range(length):
            recent = text[max(len(text) - self.order + 1, 0) :]
            text.append(int(rng.choice(self.vocab_size, p=self.following(recent))))
        return text[len(text) - length :]
