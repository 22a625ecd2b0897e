"""What goes wrong in the exercises of *mini-gpt*, diagnosis → answer."""

import torch
import torch.nn.functional as F
from torch import nn

from lmcourse.data import load_corpus, load_texts, train_val_test_split
from lmcourse.gpt.training import cut_windows, estimate, split
from lmcourse.tokenization import CharTokenizer

CONTEXT = 64


def one_by_one(ids, starts, context):
    rows = [(ids[s : s + context], ids[s + 1 : s + context + 1]) for s in starts]
    return tuple(map(torch.stack, zip(*rows, strict=True)))


def by_lists(ids, starts, context):
    text = ids.tolist()
    rows = [text[start : start + context + 1] for start in starts.tolist()]
    cut = torch.tensor(rows)
    return cut[:, :-1], cut[:, 1:]


def unfolded(ids, starts, context):
    cut = ids.unfold(0, context + 1, 1)[starts]
    return torch.stack([cut[:, :-1], cut[:, 1:]])


def gathered(ids, starts, context):
    positions = torch.add(starts.unsqueeze(1), torch.arange(context))
    return [ids.take(positions), ids.take(positions + 1)]


@torch.no_grad()
def loss_of(model, inputs, targets):
    return F.cross_entropy(model(inputs).flatten(0, 1), targets.flatten()).item()


def mode_restored(model, inputs, targets):
    was_training = model.training
    loss = loss_of(model.eval(), inputs, targets)
    model.train(was_training)
    return loss


def left_training(model, inputs, targets):
    loss = loss_of(model.eval(), inputs, targets)
    model.train()
    return loss


# --- models without a training: tables of what follows a character ----------------------


def ids_of(text, alphabet=None):
    return torch.tensor(CharTokenizer(alphabet or text).encode(text))


class Pairs(nn.Module):
    """Counts pairs, and is as sure of them as it is told."""

    def __init__(self, ids, size, sure=1.0):
        super().__init__()
        counts = torch.full((size, size), 0.1)
        counts.index_put_((ids[:-1], ids[1:]), torch.tensor(1.0), accumulate=True)
        self.logits = nn.Parameter(sure * (counts / counts.sum(1, keepdim=True)).log())

    def forward(self, ids):
        return self.logits[ids]


class Table(Pairs):
    """Sees a little of the character before, too."""

    def forward(self, ids):
        logits = self.logits[ids]
        return logits + 0.02 * logits.roll(1, dims=1)


class Counter(Pairs):
    """Sees which characters came before, too, in whatever order."""

    def forward(self, ids):
        met = F.one_hot(ids, self.logits.shape[1]).cumsum(1)  # how often each, until here
        return self.logits[ids] + 0.01 * met


class Parrot(nn.Module):
    """Knows a text by heart."""

    def __init__(self, ids, size):
        super().__init__()
        self.unused = nn.Parameter(torch.zeros(1))
        self.known, self.size = ids, size

    def forward(self, ids):
        logits = torch.zeros(*ids.shape, self.size)
        for row, window in enumerate(ids):
            at = (self.known.unfold(0, len(window), 1) == window).all(1).nonzero()
            if len(at):
                after = self.known[at[0] + 1 :][: len(window)]
                logits[row, torch.arange(len(after)), after] = 9.0
        return logits


class Flat(nn.Module):
    """Gives one logit too few dimensions."""

    def forward(self, ids):
        return torch.zeros(ids.shape)


parts = train_val_test_split(load_texts("sonnets"))
training, apart = (ids_of(text, load_corpus("sonnets")) for text in parts[:2])
size = CharTokenizer(load_corpus("sonnets")).vocab_size


class Shifted(Table):
    """Sees a little of the character before, and has weights that it does not use."""

    def __init__(self, ids, size, unused):
        super().__init__(ids, size)
        self.unused = nn.Parameter(torch.zeros(unused))


tables = [Shifted(training, size, unused) for unused in (1, 2, 3, 4)]
nudged = [Table(training, size, sure) for sure in (0.97, 0.98, 0.99, 1.0)]


def pairs_of(models):
    starts = torch.arange(0, len(apart) - CONTEXT - 1, CONTEXT)
    inputs, targets = cut_windows(apart, starts, CONTEXT)
    return [(model, loss_of(model, inputs, targets)) for model in models]


def told_training_loss(models):
    return [(model, estimate(model, training, CONTEXT, 60)) for model in models]


swept, poems = pairs_of(tables), load_corpus("poems")
first, last = split(ids_of(poems))
poet = Table(first, int(max(first.max(), last.max())) + 1)
seen = Parrot(last, poet.logits.shape[0])


def given(page):
    """Return what the page has computed where a task stands."""
    text = load_corpus("sonnets")
    values = {"sonnets_text": text, "tokenizer": CharTokenizer(text), "context": CONTEXT}
    values |= {"vocab_size": size, "train_ids": training, "val_ids": apart}
    return values | {"device": torch.device("cpu"), "my_text": poems, "mine": poet}


WRONG = {
    "windows": {"two tensors": lambda ids, starts, context: ids},
    "estimate": {
        "dropout is still on": lambda m, x, y: loss_of(m, x, y),
        "leave it in evaluation mode": lambda m, x, y: loss_of(m.eval(), x, y),
        "leave it in training mode": [left_training],
    },
    "own": {
        "a pair: your text": [poet, (poems, poet, 2.4)],
        "should be your text": (ids_of(poems), poet),
        "characters are too few": (poems[:4000], poet),
        "another alphabet": [(poems, tables[0]), (poems + "ß€", poet)],
        "Shakespeare's": (load_corpus("sonnets"), tables[0]),
        "should be the trained model itself": [(poems, 2.4), (poems, 2.4 * torch.ones(1))],
        "Train longer": (poems, Table(first[:2], poet.logits.shape[0])),
        "trained on the text that should test it": (poems, seen),
        "a logit for each": (poems, Flat()),
        "not a GPT": (poems, Pairs(first, poet.logits.shape[0])),
    },
    "sweep": {
        "a list of pairs": [1.0, [(20_000, 2.4, 1)] * 4, tables],
        "too few for a sweep": [swept[:3]],
        "should be the trained model itself": [[(54_912, 2.3), *swept]],
        "Train longer": [pairs_of([*tables[:3], Table(training[:2], size)])],
        "On which text": [[(model, loss - 0.5) for model, loss in swept]],
        "trained on the text that should test it": [
            pairs_of([*tables[:3], Parrot(apart, size)])
        ],
        "nearly the same weights": [swept[:1] * 4, pairs_of(nudged)],
        "its loss on the training text": [told_training_loss(tables)],
        "not a GPT": [pairs_of([*tables[:3], Pairs(training, size)])],
    },
}

RIGHT = {
    "windows": [unfolded, gathered],
    "estimate": [mode_restored],
    "own": [
        (poems, poet),
        [poems, Table(first, poet.logits.shape[0], 0.9)],
        (poems, Counter(first, poet.logits.shape[0])),
    ],
    "sweep": [swept, tuple(pairs_of([*tables, Shifted(training, size, 5)]))],
}

FORBIDDEN = {"windows": {"in a loop": one_by_one, "over Python's numbers": by_lists}}
TYPED = {
    "own": [(poems, 2.3), [poems, [2.3]]],
    "sweep": [[(20_000, 2.41), (20_100, 2.4), (21_000, 2.45), (22_000, 2.39)]],
}
