"""What the studies of *embeddings* share with their page.

The page shows this code; a test compares the two.
"""

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from lmcourse.embeddings import cooccurrence


def unit(vectors):
    lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)  # (..., 1)
    return vectors / np.where(lengths == 0, 1, lengths)


class SkipGram(nn.Module):
    def __init__(self, size, d_model, shift=0.0):
        super().__init__()
        self.word = nn.Embedding(size, d_model)
        self.company = nn.Embedding(size, d_model)
        self.shift = shift  # added to every score; what for, we shall see

    def forward(self, words, others):  # (batch,), (batch, n) → (batch, n)
        word = self.word(words)[:, None]  # (batch, 1, d_model)
        return (word * self.company(others)).sum(-1) + self.shift


def loss_of(model, words, met, drawn):  # (batch,), (batch,), (batch, k)
    up = F.logsigmoid(model(words, met[:, None])).sum(1)  # (batch,)
    down = F.logsigmoid(-model(words, drawn)).sum(1)  # (batch,)
    return -(up + down).mean()


def company(texts, vocabulary, window=4):
    counts = cooccurrence(texts, vocabulary, window).tocoo()
    times = counts.data.astype(int)
    pairs = [np.repeat(place, times) for place in counts.coords]
    return np.stack(pairs, axis=1)  # (pairs, 2)


def learn(met, often, k, shift=0.0, seed=0, steps=330):
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
    number = len(vectors)
    if number < 2:
        raise ValueError("a pair needs two vectors")
    total = unit(vectors).sum(axis=0)  # (d_model,)
    own = np.any(vectors, axis=1).sum()  # cosines of 1; zeros have none
    return float((total @ total - own) / (number * (number - 1)))


def lean_of(model):
    tables = model.word.weight, model.company.weight
    word, other = (x.detach().double().numpy() for x in tables)
    opposed = unit(word.mean(axis=0)) @ unit(other.mean(axis=0))
    scores = word @ other.T + model.shift  # (words, words)
    found = {"words": mean_cosine(word), "company": mean_cosine(other)}
    return found | {"opposed": opposed, "score": scores.mean()}
