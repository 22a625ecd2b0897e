"""The skip-gram model of *embeddings*, which its page shows and its study trains.

The page has the same code; a test compares the two.
"""

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from lmcourse.embeddings import cooccurrence


def unit(vectors):
    """Return vectors (..., d_model) scaled to length 1; a zero vector stays as it is."""
    lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)  # (..., 1)
    return vectors / np.where(lengths == 0, 1, lengths)


class SkipGram(nn.Module):
    """Two tables of vectors; the score of two words is the product of one from each.

    Parameters
    ----------
    size : int
        How many words there are.
    d_model : int
    shift : float
        A constant that is added to every score.

    Attributes
    ----------
    word, company : nn.Embedding
        The vector of a word itself, and its vector as a neighbour of another word.
    """

    def __init__(self, size, d_model, shift=0.0):
        """Draw the first vectors."""
        super().__init__()
        self.word = nn.Embedding(size, d_model)
        self.company = nn.Embedding(size, d_model)
        self.shift = shift  # added to every score; what for, we shall see

    def forward(self, words, others):  # (batch,), (batch, n) → (batch, n)
        """Return the scores of words (batch,) with others (batch, n)."""
        word = self.word(words)[:, None]  # (batch, 1, d_model)
        return (word * self.company(others)).sum(-1) + self.shift


def loss_of(model, words, met, drawn):  # (batch,), (batch,), (batch, k)
    """Return the mean loss of skip-gram with negative sampling (Mikolov et al. 2013).

    Parameters
    ----------
    model : SkipGram
    words, met : int64 Tensor of shape (batch,)
        Words, and a neighbour of each in the text.
    drawn : int64 Tensor of shape (batch, k)
        Negatives: k random words for each pair.

    Returns
    -------
    Tensor of shape ()
    """
    up = F.logsigmoid(model(words, met[:, None])).sum(1)  # (batch,)
    down = F.logsigmoid(-model(words, drawn)).sum(1)  # (batch,)
    return -(up + down).mean()


def company(texts, vocabulary, window=4):
    """Return all pairs of words that stand near each other.

    Parameters
    ----------
    texts : list of list of str
    vocabulary : list of str
        Other words are left out.
    window : int
        How many words apart two neighbours may be.

    Returns
    -------
    int array of shape (pairs, 2)
        Numbers in the vocabulary; a pair stands in it as often as it is met.
    """
    counts = cooccurrence(texts, vocabulary, window).tocoo()
    times = counts.data.astype(int)
    pairs = [np.repeat(place, times) for place in counts.coords]
    return np.stack(pairs, axis=1)  # (pairs, 2)


def learn(met, often, k, shift=0.0, seed=0, steps=330):
    """Train a `SkipGram` of 50 dimensions; yield it after each step.

    Parameters
    ----------
    met : int array of shape (pairs, 2)
        Of `company`.
    often : array of shape (words,)
        The probability with which each word is drawn as a negative.
    k : int
        Negatives for each pair.
    shift : float
        Of `SkipGram`.
    seed, steps : int

    Yields
    ------
    SkipGram
        The same model each time.
    """
    torch.manual_seed(seed)
    rng = np.random.default_rng(seed)
    model = SkipGram(len(often), 50, shift)
    for weight in model.parameters():
        nn.init.normal_(weight, std=0.01)  # small: nn.Embedding's own is 1
    optimizer = torch.optim.Adam(model.parameters(), lr=0.003, fused=True)
    for _ in range(steps):
        pair = met[rng.integers(len(met), size=1024)].T  # (2, batch)
        drawn = rng.choice(len(often), (1024, k), p=often)  # (batch, k)
        loss = loss_of(model, *torch.from_numpy(pair), torch.from_numpy(drawn))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        yield model


def mean_cosine(vectors):  # of all pairs, without forming them
    """Return the mean cosine of all pairs of vectors (number, d_model).

    Raises
    ------
    ValueError
        If there are fewer than two.
    """
    number = len(vectors)
    if number < 2:
        raise ValueError("a pair needs two vectors")
    total = unit(vectors).sum(axis=0)  # (d_model,)
    own = np.any(vectors, axis=1).sum()  # cosines of 1; zeros have none
    return float((total @ total - own) / (number * (number - 1)))


def lean_of(model):
    """Return how much the vectors of a `SkipGram` point the same way.

    Parameters
    ----------
    model : SkipGram

    Returns
    -------
    dict of str to float
        ``words`` and ``company``: the mean cosine of all pairs in each table. ``opposed``:
        the cosine between the means of the two tables. ``score``: the mean score of all
        pairs of words.
    """
    tables = model.word.weight, model.company.weight
    word, other = (x.detach().double().numpy() for x in tables)
    opposed = unit(word.mean(axis=0)) @ unit(other.mean(axis=0))
    scores = word @ other.T + model.shift  # (words, words)
    found = {"words": mean_cosine(word), "company": mean_cosine(other)}
    return found | {"opposed": opposed, "score": scores.mean()}
