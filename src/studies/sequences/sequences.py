"""Who wrote it? Counting beside six small networks, on the same passages.

Varied: how a passage is read (six networks; counting, as a bag and in runs), what its
tokens are (forty characters, eight words), and whether they stand in order. Rivals:
counting, of the order that tells most of the inner validation passages; the mean of the
token vectors; the plain mean of an LSTM's states; the best network, ten times as long.
Rate and steps are chosen for each by the same rule, on a fifth of the poems learned from,
then three seeds train on all of them. Null: the same with every passage's tokens shuffled.
Statistic: the share of test passages told right; intervals of paired differences are over
poems drawn again, that which is stored of counting less the window, on characters.
"""

import itertools
import re
from collections import Counter
from functools import partial

import numpy as np
import pandas as pd
import torch
import torch.nn.functional as F
from torch import nn
from torch.optim.lr_scheduler import LambdaLR

from lmcourse.attention import MultiHeadAttention
from lmcourse.data import POEMS, load_texts
from lmcourse.models import pick_device
from lmcourse.ngrams import NgramModel
from lmcourse.numbers import bootstrap_interval
from lmcourse.training_loop import train_model
from studies.harness import grid, verdict
from studies.measures import ratio_of_sums

CHAPTER = "sequences"
CLAIM = (
    "Of passages of forty characters counting runs tells more right than any of six small "
    "networks, and all that can use the order lose when it is taken away"
)
RIVAL = "counting runs of characters, smoothed"
NULL = "the same passages, each one's tokens shuffled"
LSTMS = ["LSTM, last", "LSTM, mean", "LSTM, attention"]
NETWORKS = ["bag", "window", *LSTMS, "self-attention"]
COUNTS = ["bag of counts", "counts"]
ORDERS = {"character": [1, 2, 3, 4, 5, 6], "word": [1, 2, 3]}
SETTINGS = {"seeds": [0, 1, 2], "rates": [3e-3, 1e-2, 3e-2], "steps": [400, 1600, 4000]}
SETTINGS["longer"] = {"steps": 40_000, "rate": 3e-2}  # the window again, ten times as long


def plan(small):
    """Return the settings of all runs.

    Parameters
    ----------
    small : bool
        Whether to return only the kinds "counts" and "window", trained for two steps.

    Returns
    -------
    list of dict
        The arguments of each run: ``group``: "sizes", without a training; "word" and
        "character", what passages are made of; "longer", one long training. ``kind``, the
        model: "bag of counts" or "counts" (n-grams), or one of `NETWORKS`: "bag", "window",
        "LSTM, last", "LSTM, mean", "LSTM, attention", "self-attention"; ``shuffled``,
        whether the tokens of a passage are; ``steps``, a list of numbers of steps, of which
        a run chooses one; of "longer" also ``rate``, the learning rate.
    """
    steps = [2] if small else SETTINGS["steps"]
    kinds = ["counts", "window"] if small else [*COUNTS, *NETWORKS]
    runs = [
        {"group": unit, "kind": kind, "shuffled": mixed, "steps": steps}
        for unit in ORDERS
        for kind in kinds
        for mixed in (False, True)
        if not (mixed and kind.startswith("bag"))  # a bag has no order to lose
    ]
    long = {"kind": "window", "shuffled": False, "rate": SETTINGS["longer"]["rate"]}
    long |= {"steps": [2] if small else [SETTINGS["longer"]["steps"]]}
    return [{"group": "sizes"}, *runs, {"group": "longer"} | long]


def run(_folder, group, kind="", shuffled=False, steps=(), rate=None):
    """Train or count from each seed; return how many passages are told rightly, by poem.

    First the order of n-grams, or the rate and the steps of a network, are chosen: on the
    training poems whose number ends in 0 or 1, by models of the other training poems. Then
    each seed learns from all training poems.

    Parameters
    ----------
    _folder : Path
        Unused: no weights are saved.
    group : {"sizes", "word", "character", "longer"}
        What passages are made of, eight words or forty characters; "longer" has characters,
        "sizes" counts passages only.
    kind : str
        The model: "bag of counts" or "counts" (n-grams), "bag", "window", "LSTM, last",
        "LSTM, mean", "LSTM, attention" or "self-attention".
    shuffled : bool
        Whether the tokens of each passage are shuffled.
    steps : list of int
        Numbers of training steps, of which one is chosen.
    rate : float, optional
        The learning rate. Default: one of three is chosen.

    Returns
    -------
    list of dict
        Of each seed ``kind``, ``shuffled``, ``seed``; ``order``, or ``steps`` and ``rate``,
        that were chosen; ``share``, of the test passages that are assigned to the right
        poet, 0 to 1; ``right``, a list of int, how many these are in each test poem. Of
        "sizes" a dict instead: "character" or "word" → how many test passages each test
        poem has, a list of int.
    """
    if group == "sizes":
        return sizes()
    unit = "character" if group == "longer" else group
    ids, labels, poems, tested = passages(unit)
    seeds = SETTINGS["seeds"]
    shuffle = shuffle_tokens if shuffled else lambda ids, seed: ids
    if kind in COUNTS:
        choices = counting_choices(kind, unit)
        right_passages = count_poets
    else:
        choices = training_choices(steps, rate)
        right_passages = partial(train_poet, kind)
    choice = choices[0]
    if len(choices) > 1:
        # The data of the choice: training poems alone, shuffled as with no other seed.
        own_ids = shuffle(ids, len(seeds))[~tested]
        learned = ~np.isin(poems[~tested] % 10, (0, 1))
        accuracies = [
            right_passages(own_ids, labels[~tested], learned, **each, seed=9).mean()
            for each in choices
        ]
        choice = choices[int(np.argmax(accuracies))]
    rows = []
    for seed in seeds:
        right = right_passages(shuffle(ids, seed), labels, ~tested, **choice, seed=seed)
        row = {"kind": kind, "shuffled": shuffled, "seed": seed} | choice
        poem_of = poems[tested]
        per_poem = [int(right[poem_of == poem].sum()) for poem in np.unique(poem_of)]
        rows.append(row | {"share": round(float(right.mean()), 4), "right": per_poem})
    return rows


def counting_choices(kind, unit):
    """Return the orders of n-grams from which a run chooses.

    Parameters
    ----------
    kind : {"bag of counts", "counts"}
        A bag has single tokens alone.
    unit : {"word", "character"}
        What a token is.

    Returns
    -------
    list of dict
        Each with ``order``, an argument of `count_poets`.
    """
    orders = [1] if kind == "bag of counts" else ORDERS[unit]
    return [{"order": order} for order in orders]


def training_choices(steps, rate=None):
    """Return the trainings of a network from which a run chooses.

    Parameters
    ----------
    steps : list of int
        Numbers of training steps.
    rate : float, optional
        The learning rate. Default: each of three.

    Returns
    -------
    list of dict
        Each with ``steps`` and ``rate``, arguments of `train_poet`.
    """
    rates = SETTINGS["rates"] if rate is None else [rate]
    return grid(steps=steps, rate=rates)


def sizes():
    """Return how many test passages each poem has.

    The result is a dict from unit ("character" or "word") to a list of int, by the numbers
    of the poems, ascending.
    """
    counts = {}
    for unit in ORDERS:
        _, _, poems, tested = passages(unit)
        counts[unit] = np.unique(poems[tested], return_counts=True)[1].tolist()
    return counts


def gap(results, one, other):
    """Return the 95 % interval of the difference of two models' shares of right passages.

    The passages are of characters, and each poem's counts are first averaged over seeds.

    Parameters
    ----------
    results : dict of str to list of dict
        Group → outcomes of its runs. Those of "character", one a seed: ``kind``, the model;
        ``shuffled``, bool; ``right``, list of int, how many passages of each test poem are
        right. ``results["sizes"][0]["character"]`` is how many passages each test poem has.
    one, other : (str, bool)
        A kind of model, and whether the characters of each passage are shuffled, in
        training and test.

    Returns
    -------
    low, high : float
        Of the share of right passages of ``one`` less that of ``other``, poems drawn again.
    """
    counts = results["sizes"][0]["character"]
    each = []
    for chosen in (one, other):
        rows = [r for r in results["character"] if (r["kind"], r["shuffled"]) == chosen]
        each.append(np.mean([row["right"] for row in rows], axis=0))  # (poems,)
    return bootstrap_interval(each[0] - each[1], counts, statistic=ratio_of_sums)


def summary(results):
    """Compare counting with each network, and each in order with itself shuffled.

    Parameters
    ----------
    results : dict of str to list of dict
        Group → outcomes of its runs. Those of "character", one a seed: ``kind``, the model,
        "counts" for n-grams; ``shuffled``, whether the tokens were, bool; ``right``, list
        of int, how many passages of each test poem are right.
        ``results["sizes"][0]["character"]`` is how many passages each has.

    Returns
    -------
    dict
        ``n``, how many test passages of characters there are; ``seeds``; ``interval``,
        [low, high], 95 % of the share (0 to 1) that counting tells right less that of the
        network of windows, poems drawn again; ``verdict``, "holds" or "not so": whether
        counting is ahead of each network, and each is better in order than shuffled,
        intervals above zero.
    """
    known = {row["kind"] for row in results["character"]}
    ways = [kind for kind in NETWORKS if kind in known]
    ahead = {kind: gap(results, ("counts", False), (kind, False)) for kind in ways}
    reads = [kind for kind in ("counts", *ways) if kind != "bag"]
    gains = [gap(results, (kind, False), (kind, True)) for kind in reads]
    holds = all(low > 0 for low, _ in (*ahead.values(), *gains))
    record = {"n": sum(results["sizes"][0]["character"]), "seeds": SETTINGS["seeds"]}
    record |= {"interval": np.round(ahead["window"], 4).tolist(), "verdict": verdict(holds)}
    return record


# --- passages, networks, n-grams -------------------------------------------------------


class Poet(nn.Module):
    """A network that tells which of two poets wrote a text, Dickinson or Shakespeare.

    It has token vectors, a layer that may use their order, a mean of the results over the
    text, and a score of the class.

    Parameters
    ----------
    kind : str
        What happens between the token vectors and the class, one of `NETWORKS`: "bag",
        "window", "LSTM, last", "LSTM, mean", "LSTM, attention" or "self-attention".
    vocab_size, tokens, d_model : int
        How many different tokens there are, how many a text has, and the width.
    """

    def __init__(self, kind, vocab_size, tokens, d_model=32):
        """Make the layers of a kind; first weights are of torch's global generator.

        The parameters are those of the class.
        """
        super().__init__()
        self.kind = kind
        self.table = nn.Embedding(vocab_size, d_model)
        if kind == "window":
            self.layer = nn.Conv1d(d_model, d_model, 5, padding=2)
        elif kind == "self-attention":
            self.layer = MultiHeadAttention(d_model, 4)
            # a bias of each head for each distance, from -(tokens - 1) on
            self.near = nn.Parameter(torch.zeros(4, 2 * tokens - 1))
            place = torch.arange(tokens)
            self.offset = place[:, None] - place + tokens - 1
        elif kind != "bag":
            self.layer = nn.LSTM(d_model, d_model, batch_first=True)
        self.query = nn.Parameter(torch.zeros(d_model))
        self.output = nn.Linear(d_model, 1)

    def forward(self, ids):  # (batch, tokens)
        """Return a score of Dickinson for each text, a Tensor of shape (batch,).

        ``ids`` : int64 Tensor (batch, tokens), as many tokens as the network was made for.
        A score is a log odds: above 0 it is that poet. What happens between the token
        vectors and the mean over the text depends on the kind, as `Poet` says.
        """
        x = self.table(ids)  # (batch, tokens, d_model)
        if self.kind == "window":
            x = self.layer(x.mT).mT.relu()
        elif self.kind == "self-attention":
            # for each query and key the head's number of their distance
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
    """Cut both poets' texts into passages of one length, as many of each poet.

    A passage has eight words or forty characters of one poem, in lower case; of signs only
    apostrophes and single spaces are left.

    Parameters
    ----------
    unit : {"word", "character"}
        What a token is.

    Returns
    -------
    ids : int64 Tensor of shape (passages, tokens)
        0 for tokens that occur once or never in the training passages.
    labels : float Tensor of shape (passages,)
        The poet: 0 for Shakespeare, 1 for Dickinson.
    poems : int array of shape (passages,)
        The number of the poem that each is from, from 0; Dickinson's from 1,000.
    tested : bool array of shape (passages,)
        Whether that is a test poem: one whose number ends in 4 or 9.
    """
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
    frequent = [token for token, n in often.most_common() if n > 1]
    ids = {token: i for i, token in enumerate(frequent, 1)}  # 0: any other
    ids = [[ids.get(token, 0) for token in tokens] for tokens in rows.tokens]
    labels = torch.tensor(rows.label.to_numpy()).float()
    poems = (1000 * rows.label + rows.number).to_numpy()
    return torch.tensor(ids), labels, poems, rows.tested.to_numpy()


def shuffle_tokens(ids, seed):
    """Return passages with the tokens of each in a random order, of the shape of ``ids``.

    ``ids`` : int64 Tensor (passages, tokens); ``seed`` : int.
    """
    keys = torch.rand(ids.shape, generator=torch.Generator().manual_seed(seed))
    return ids.gather(1, keys.argsort(1))


def train_poet(kind, ids, labels, learned, steps, rate, seed):
    """Train a network on some passages; return which of the others it assigns rightly.

    Parameters
    ----------
    kind : str
        Of network: "bag", "window", "LSTM, last", "LSTM, mean", "LSTM, attention" or
        "self-attention".
    ids : int64 Tensor of shape (passages, tokens)
    labels : Tensor of shape (passages,)
        The poet: 0 for Shakespeare, 1 for Dickinson.
    learned : bool array of shape (passages,)
        Which passages are trained on.
    steps : int
        How many steps of training.
    rate : float
        The learning rate at first; it falls to 0.
    seed : int
        Of the first weights, and of all that is drawn.

    Returns
    -------
    bool array of shape (other passages,)
        In the order of ``ids``.
    """
    device = pick_device()
    torch.manual_seed(seed)
    model = Poet(kind, int(ids.max()) + 1, ids.shape[1]).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), rate, weight_decay=0.1, fused=True)
    ids = ids.to(device)
    labels = labels.to(device)
    scheduler = LambdaLR(optimizer, lambda step: 1 - step / steps)
    chosen = torch.tensor(np.flatnonzero(learned))

    def loss_at(_step):
        """Return the mean loss of 64 passages drawn at random, in nats.

        ``_step`` is not used.
        """
        batch = chosen[torch.randint(len(chosen), (64,))].to(device)
        return F.binary_cross_entropy_with_logits(model(ids[batch]), labels[batch])

    train_model(model, loss_at, steps, [optimizer], [scheduler])
    with torch.no_grad():
        right = (model(ids[~learned]) > 0) == (labels[~learned] > 0)
    return right.cpu().numpy()


def count_poets(ids, labels, learned, order, seed=None):
    """Count n-grams in each poet's passages; return which others are assigned rightly.

    Parameters
    ----------
    ids : int64 Tensor of shape (passages, tokens)
    labels : Tensor of shape (passages,)
        The poet: 0 for Shakespeare, 1 for Dickinson.
    learned : bool array of shape (passages,)
        Which passages are counted, those of a poet as one text.
    order : int
        The longest n-gram.
    seed : int, optional
        Unused: nothing is drawn.

    Returns
    -------
    bool array of shape (other passages,)
        In the order of ``ids``: whether the right poet's n-grams have the lower loss.
    """
    size = int(ids.max()) + 1
    losses = []
    for label in (0, 1):
        own = ids.numpy()[learned & (labels.numpy() == label)]
        model = NgramModel(own.ravel(), order, size)
        probs = [model.probabilities(row) for row in ids.numpy()[~learned]]
        losses.append(-np.log(probs).sum(1))
    return (losses[1] < losses[0]) == (labels.numpy()[~learned] > 0)
