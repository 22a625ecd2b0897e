"""What the studies of *sequences* share with their page.

The page shows this code; a test compares the two.
"""

import itertools
import re
from collections import Counter

import numpy as np
import pandas as pd
import torch
import torch.nn.functional as F
from torch import nn

from lmcourse.attention import MultiHeadAttention
from lmcourse.data import POEMS, load_texts
from lmcourse.models import pick_device
from lmcourse.ngrams import NgramModel
from lmcourse.recurrent import load_char_lstm


def interval(differences, groups, draws=2000):
    """95 % interval of a mean difference, if other texts had been drawn."""
    rng = np.random.default_rng(0)
    by_text = pd.Series(np.asarray(differences, float)).groupby(np.asarray(groups))
    sums, sizes = by_text.sum().to_numpy(), by_text.size().to_numpy()
    drawn = rng.integers(len(sums), size=(draws, len(sums)))
    means = sums[drawn].sum(1) / sizes[drawn].sum(1)
    return np.quantile(means, [0.025, 0.975])


characters, reader = load_char_lstm()


sonnets = load_texts("sonnets")


shown_ids = [characters.encode("\n" + s[:300]) for s in sonnets[9::10]]


shown_ids = torch.tensor(shown_ids)  # (texts, tokens): unseen sonnets


place = torch.zeros_like(shown_ids)  # how far each character is in its line


class Poet(nn.Module):
    def __init__(self, kind, vocab_size, tokens, d_model=32):
        super().__init__()
        self.kind = kind
        self.table = nn.Embedding(vocab_size, d_model)
        if kind == "window":
            self.layer = nn.Conv1d(d_model, d_model, 5, padding=2)
        elif kind == "self-attention":
            self.layer = MultiHeadAttention(d_model, 4)
            self.near = nn.Parameter(torch.zeros(4, 2 * tokens - 1))
            place = torch.arange(tokens)
            self.offset = place[:, None] - place + tokens - 1
        elif kind != "bag":
            self.layer = nn.LSTM(d_model, d_model, batch_first=True)
        self.query = nn.Parameter(torch.zeros(d_model))
        self.output = nn.Linear(d_model, 1)

    def forward(self, ids):  # (batch, tokens)
        x = self.table(ids)  # (batch, tokens, d_model)
        if self.kind == "window":
            x = self.layer(x.mT).mT.relu()
        elif self.kind == "self-attention":
            bias = self.near[:, self.offset]  # (heads, tokens, tokens)
            x = (x + self.layer(x, bias=bias)[0]).relu()
        elif self.kind != "bag":
            x, _ = self.layer(x)  # a state at every token
        if self.kind == "LSTM, last":
            return self.output(x[:, -1])[:, 0]
        weights = torch.full_like(x[..., 0], 1 / x.shape[1])  # a plain mean
        if self.kind == "LSTM, attention":
            weights = (x @ self.query).softmax(1)  # (batch, tokens)
        return self.output((weights[..., None] * x).sum(1))[:, 0]


UNITS = {"word": (str.split, 8), "character": (list, 40)}  # cut, length


def passages(unit):
    """Ids (passages, tokens), whose they are, of which poem, and what is a test."""
    cut, length = UNITS[unit]
    rows = []
    for label, name in enumerate(POEMS):
        for number, text in enumerate(load_texts(name)):
            letters = re.findall("[a-z']+", text.lower().replace("’", "'"))
            tokens = cut(" ".join(letters))
            for i in range(0, len(tokens) - length + 1, length):
                rows.append((tokens[i : i + length], label, number))
    rows = pd.DataFrame(rows, columns=["tokens", "label", "number"])
    rows["tested"] = (rows.number % 10).isin([4, 9])
    size = rows.groupby(["tested", "label"]).size().groupby("tested").min()
    rows = pd.concat(  # as many of each poet
        group.sample(size[tested], random_state=0)
        for (tested, _), group in rows.groupby(["tested", "label"])
    )
    often = Counter(itertools.chain(*rows.tokens[~rows.tested]))
    kept = [token for token, n in often.most_common() if n > 1]
    ids = {token: i for i, token in enumerate(kept, 1)}  # 0: any other
    ids = [[ids.get(token, 0) for token in tokens] for tokens in rows.tokens]
    labels = torch.tensor(rows.label.to_numpy()).float()
    poems = (1000 * rows.label + rows.number).to_numpy()
    return torch.tensor(ids), labels, poems, rows.tested.to_numpy()


def shuffled(ids, seed):
    """Each passage's tokens in an order of its own."""
    keys = torch.rand(ids.shape, generator=torch.Generator().manual_seed(seed))
    return ids.gather(1, keys.argsort(1))


def train_poet(kind, ids, labels, learned, steps, rate, seed):
    """Train on some passages; return whether each of the others is told right."""
    device = pick_device()
    torch.manual_seed(seed)
    model = Poet(kind, int(ids.max()) + 1, ids.shape[1]).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), weight_decay=0.1, fused=True)
    ids, labels = ids.to(device), labels.to(device)
    chosen = torch.tensor(np.flatnonzero(learned))
    for step in range(steps):
        optimizer.param_groups[0]["lr"] = rate * (1 - step / steps)
        batch = chosen[torch.randint(len(chosen), (64,))].to(device)
        loss = F.binary_cross_entropy_with_logits(model(ids[batch]), labels[batch])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        right = (model(ids[~learned]) > 0) == (labels[~learned] > 0)
    return right.cpu().numpy()


def count_poets(order, ids, labels, learned):
    """The same by counting runs in each poet's passages, no training."""
    size, costs = int(ids.max()) + 1, []
    for label in (0, 1):
        own = ids.numpy()[learned & (labels.numpy() == label)]
        model = NgramModel(own.ravel(), order, size)
        probs = [model.probabilities(row) for row in ids.numpy()[~learned]]
        costs.append(-np.log(probs).sum(1))
    return (costs[1] < costs[0]) == (labels.numpy()[~learned] > 0)
