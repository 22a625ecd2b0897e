"""What the studies of *embeddings* share with their page.

The page shows this code; a test compares the two.
"""

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from lmcourse.embeddings import cooccurrence


class SkipGram(nn.Module):
    """The skip-gram model with a constant that can be added to every score."""

    def __init__(self, vocab_size, d_model, constant=0.0):
        """Make random vectors of words and of contexts, each (vocab_size, d_model).

        ``constant`` : float, added to every score.
        """
        super().__init__()
        self.words = nn.Embedding(vocab_size, d_model)
        self.contexts = nn.Embedding(vocab_size, d_model)
        self.constant = constant  # added to every score

    def forward(self, words, contexts):  # (batch,), (batch, n) → (batch, n)
        """Return the scores (batch, n) of words (batch,) and their contexts (batch, n)."""
        word = self.words(words)[:, None]  # (batch, 1, d_model)
        return (word * self.contexts(contexts)).sum(-1) + self.constant


def skip_gram_loss(model, words, contexts, negatives):
    """Return the mean loss of skip-gram with negative samples, a scalar Tensor in nats.

    Parameters
    ----------
    model : SkipGram
    words, contexts : int64 Tensor of shape (batch,)
        Words, and a word near each.
    negatives : int64 Tensor of shape (batch, k)
        Words drawn at random.
    """
    up = F.logsigmoid(model(words, contexts[:, None])).sum(1)  # (batch,)
    down = F.logsigmoid(-model(words, negatives)).sum(1)  # (batch,)
    return -(up + down).mean()


def word_pairs(texts, vocabulary, window=4):
    """Return all pairs of words that stand near each other, as often as they do.

    Parameters
    ----------
    texts : list of list of str
        The words of each.
    vocabulary : list of str
        Other words are left out.
    window : int
        How many words apart at most.

    Returns
    -------
    int array of shape (pairs, 2)
        Numbers of words in the vocabulary, from 0.
    """
    counts = cooccurrence(texts, vocabulary, window).tocoo()
    times = counts.data.astype(int)
    sides = [np.repeat(side, times) for side in counts.coords]
    return np.stack(sides, axis=1)  # (pairs, 2)


def train_skip_gram(pairs, shares, k, constant=0.0, seed=0, steps=330):
    """Train word vectors by skip-gram with negative samples; yield the model at each step.

    Parameters
    ----------
    pairs : int array of shape (pairs, 2)
        A word and a word near it, by their numbers.
    shares : float array of shape (words,)
        With what probability each word is drawn as a negative sample.
    k : int
        Negative samples for each pair.
    constant : float
        What is added to every score.
    seed : int
        Of the first weights, and of all that is drawn.
    steps : int
        How many steps of training.

    Yields
    ------
    SkipGram
        The same model, one step further.
    """
    torch.manual_seed(seed)
    rng = np.random.default_rng(seed)
    model = SkipGram(len(shares), 50, constant)
    for weight in model.parameters():
        nn.init.normal_(weight, std=0.01)  # small: nn.Embedding's own is 1
    optimizer = torch.optim.Adam(model.parameters(), lr=0.003, fused=True)
    for _ in range(steps):
        batch = torch.tensor(pairs[rng.integers(len(pairs), size=1024)])
        drawn = torch.tensor(rng.choice(len(shares), (1024, k), p=shares))
        loss = skip_gram_loss(model, batch[:, 0], batch[:, 1], drawn)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        yield model
