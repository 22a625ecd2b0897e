"""How a GPT of the sonnets is trained further, which *fine-tuning* shows and its study runs.

The page has the same code; a test compares the two.
"""

import copy

import numpy as np
import pandas as pd
import torch
import torch.nn.functional as F
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import RidgeClassifierCV
from torch import nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.flop_counter import FlopCounterMode
from tqdm.auto import tqdm

from lmcourse import adapters
from lmcourse.data import load_poems, load_sonnets
from lmcourse.gpt.inside import line_states
from lmcourse.gpt.training import cut_windows
from lmcourse.models import pick_device

DEVICE = pick_device()


AS_KNOWN = str.maketrans({'"': "'", "Q": "q"})  # Dickinson's text → the Sonnets' alphabet


def read_poets(tokenizer):
    """Return the poems of both poets as ids, whole poems split into three parts.

    Parameters
    ----------
    tokenizer : CharTokenizer

    Returns
    -------
    dict of str to dict
        Poet → ``training``, ``validation``, ``test``: lists of int64 Tensors (characters,).
        Of each ten poems eight are for training.
    """
    found = {}
    for poet, table in {"Shakespeare": load_sonnets(), "Dickinson": load_poems()}.items():
        texts = [f"\n{text.translate(AS_KNOWN)}\n" for text in table.text]
        ids = [torch.tensor(tokenizer.encode(text)) for text in texts]
        learn = [x for i, x in enumerate(ids) if i % 10 not in (4, 9)]
        found[poet] = {"training": learn, "validation": ids[4::10], "test": ids[9::10]}
    return found


CONTEXT, BATCH = 64, 8  # characters that the model sees; windows of a step


def windows(ids, batch=8):
    """Return a function that draws a batch of windows of a text.

    Parameters
    ----------
    ids : int64 Tensor of shape (tokens,)
    batch : int

    Returns
    -------
    callable
        From a torch.Generator to windows and their targets, (batch, CONTEXT) each.
    """

    def draw(generator):
        """Return windows and targets, (batch, CONTEXT) each."""
        starts = torch.randint(len(ids) - CONTEXT, (batch,), generator=generator)
        return cut_windows(ids, starts, CONTEXT)  # (batch, context) each

    return draw


@torch.no_grad()
def poem_losses(model, poems):
    """Return the mean loss of each poem, in nats a character.

    Parameters
    ----------
    model : GPT
    poems : list of int64 Tensor of shape (characters,)
        Each is cut into windows of `CONTEXT` characters.

    Returns
    -------
    float64 array of shape (poems,)
    """
    cut, owner = [], []
    for number, ids in enumerate(poems):
        for start in range(0, len(ids) - 1, CONTEXT):
            cut.append(ids[start : start + CONTEXT + 1])
            owner.append(number)
    cut = pad_sequence(cut, batch_first=True, padding_value=-1)
    inputs, targets = cut[:, :-1].clamp(min=0), cut[:, 1:]  # (windows, context)
    logits = model.eval()(inputs.to(DEVICE)).cpu()
    costs = F.cross_entropy(logits.mT, targets, ignore_index=-1, reduction="none")
    both = torch.stack([costs.sum(1), (targets >= 0).sum(1)])  # (2, windows)
    total = torch.zeros(2, len(poems)).index_add(1, torch.tensor(owner), both)
    return (total[0] / total[1]).double().numpy()


def rate(step, steps):
    """Return the share of the highest learning rate: up for a tenth of the steps, then down.

    Parameters
    ----------
    step : int
        From 0.
    steps : int
    """
    return min((step + 1) / (0.1 * steps), (steps - step) / (0.9 * steps))


def tune(model, draw, steps, learning_rate, seed=0, watch=None):
    """Train the parameters of a model that have gradients.

    Parameters
    ----------
    model : GPT
    draw : callable
        From a torch.Generator to a batch, as of `windows`.
    steps : int
    learning_rate : float
        The highest.
    seed : int
    watch : callable, optional
        Called before each step with its number and the model.

    Returns
    -------
    GPT
        The model, in evaluation mode.
    """
    torch.manual_seed(seed)  # for dropout
    generator = torch.Generator().manual_seed(seed)
    learned = [w for w in model.parameters() if w.requires_grad]
    optimizer = torch.optim.AdamW(learned, learning_rate, weight_decay=0.0, fused=True)
    for step in tqdm(range(steps)):
        if watch:
            watch(step, model)
        optimizer.param_groups[0]["lr"] = learning_rate * rate(step, steps)
        inputs, targets = draw(generator)
        logits = model.train()(inputs.to(DEVICE))  # (batch, context, vocab_size)
        loss = F.cross_entropy(logits.flatten(0, 1), targets.flatten().to(DEVICE))
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(learned, 1.0)
        optimizer.step()
    return model.eval()


def last_layer(model, size=None):
    """Freeze a model but for its last block and norm, and return it; ``size`` is unused."""
    model.requires_grad_(False)
    model.blocks[-1].requires_grad_(True)
    model.norm.requires_grad_(True)
    return model


METHODS = {
    "all weights": lambda model, size: model,
    "last layer": last_layer,
    "LoRA": adapters.add_lora,
    "prefix": adapters.add_prefix,
}


def adapted(model, method, size=8, seed=0):
    """Return a copy of a model, a GPT, of which a method trains some parameters.

    Parameters
    ----------
    model : GPT
    method : str
        A key of `METHODS`.
    size : int
        The rank of LoRA, or the vectors of a prefix.
    seed : int
        Of new weights.
    """
    torch.manual_seed(seed)
    return METHODS[method](copy.deepcopy(model), size)


def step_flops(model):
    """Return the floating-point operations of a training step of a `GPT`, an int.

    The step is on one batch of `BATCH` windows.
    """
    inputs = torch.zeros(BATCH, CONTEXT, dtype=torch.long, device=DEVICE)
    with FlopCounterMode(display=False) as counter:
        model(inputs).sum().backward()
    model.zero_grad()
    return counter.get_total_flops()


def steps_within(budget, model, full):
    """Return how many steps of a model cost as much as ``budget`` steps of another, full.

    Parameters
    ----------
    budget : int
    model, full : GPT
    """
    return round(budget * step_flops(full) / step_flops(model))


def mixed(*draws):
    """Return a function that joins the batches of several functions, as of `windows`.

    Each is from a torch.Generator to windows and their targets, (batch, CONTEXT); so is
    what is returned.
    """

    def draw(generator):
        """Return windows and targets of all of them, a list of two (batch, CONTEXT)."""
        return [torch.cat(side) for side in zip(*[one(generator) for one in draws])]

    return draw


MARKS = {"Shakespeare": "(W)\n", "Dickinson": "(E)\n"}


def behind(mark, ids, batch=4):
    """Return a function that draws windows which begin with a marker.

    Parameters
    ----------
    mark : list of int
        The marker's ids.
    ids : int64 Tensor of shape (tokens,)
        The text.
    batch : int

    Returns
    -------
    callable
        From a torch.Generator to windows and their targets, (batch, CONTEXT) each.
    """

    def draw(generator):
        """Return windows and targets, (batch, CONTEXT) each."""
        inner = CONTEXT - len(mark)
        starts = torch.randint(len(ids) - inner, (batch,), generator=generator)
        parts = ids[starts[:, None] + torch.arange(inner + 1)]
        front = torch.tensor(mark).expand(batch, -1)
        cut = torch.cat([front, parts], 1)  # (batch, context + 1)
        return cut[:, :-1], cut[:, 1:]

    return draw


@torch.no_grad()
def write_behind(model, tokenizer, mark, tokens=120, batch=16, seed=0):
    """Sample texts behind a marker that stays in the model's window.

    Parameters
    ----------
    model : GPT
    tokenizer : CharTokenizer
    mark : list of int
        The marker's ids; the last is that of a line break.
    tokens, batch : int
        How long the texts are, and how many.
    seed : int

    Returns
    -------
    list of str
        Without the marker, but with its line break.
    """
    front = torch.tensor(mark, device=DEVICE).expand(batch, -1)
    ids = torch.cat([front, front[:, -1:]], 1)  # a marker ends with a line
    draw = torch.Generator().manual_seed(seed)
    for _ in tqdm(range(tokens)):
        seen = torch.cat([front, ids[:, len(mark) :][:, len(mark) - CONTEXT :]], 1)
        probs = model.eval()(seen)[:, -1].cpu().softmax(-1)
        ids = torch.cat([ids, torch.multinomial(probs, 1, generator=draw).to(DEVICE)], 1)
    return [tokenizer.decode(row) for row in ids[:, len(mark) :].tolist()]


LINES, CUT, WHOLE = 4, 20, 64  # lines of a poem; characters of a line


def cut_poems(length):
    """Return four lines of each poem that has four of 20 characters or more.

    Parameters
    ----------
    length : int
        Characters to which each line is cut.

    Returns
    -------
    DataFrame
        Columns ``lines`` (a list of str), ``poet``, and ``held``: whether the poem is held
        out from training.
    """
    found = []
    for poet, table in {"Shakespeare": load_sonnets(), "Dickinson": load_poems()}.items():
        for number, text in enumerate(table.text):
            lines = text.translate(AS_KNOWN).splitlines()
            lines = [line[:length] for line in lines if len(line) >= CUT][:LINES]
            if len(lines) == LINES:
                found.append((lines, poet, number % 10 in (4, 9)))
    return pd.DataFrame(found, columns=["lines", "poet", "held"])


def readings(model, tokenizer, table, last=False):
    """Return a vector of each poem before the first layer and after each.

    Parameters
    ----------
    model : GPT
    tokenizer : CharTokenizer
    table : DataFrame
        Of `cut_poems`: a row for each poem, with ``lines``, four str, and ``held``, whether
        it is held out from training.
    last : bool
        Whether to use the state of each line's last character, instead of their mean.

    Returns
    -------
    array of shape (layers + 1, poems, d_model)
        The mean over a poem's lines, less the mean of training poems, of unit length.
    """
    lines = [torch.tensor(tokenizer.encode(line)) for line in table.lines.explode()]
    ids = pad_sequence(lines, batch_first=True)  # (lines, tokens)
    parts = zip(ids.split(256), torch.tensor([*map(len, lines)]).split(256))
    x = torch.cat([line_states(model, *part, last) for part in parts], dim=1)
    x = x.unflatten(1, (-1, LINES)).mean(2)  # (layers + 1, poems, d_model)
    x = x - x[:, ~torch.tensor(table.held.to_numpy())].mean(1, keepdim=True)
    return (x / x.norm(dim=-1, keepdim=True)).numpy()  # of unit length


def told_right(x, table, size, seed, **kind):
    """Return which held-out poems a ridge classifier assigns to the right poet.

    Parameters
    ----------
    x : array of shape (poems, d_model), or list of str
        Vectors of all poems, or their texts, which become bags of words.
    table : DataFrame
        Of `cut_poems`: a row for each poem, with ``poet`` and ``held``, whether it is held
        out from training.
    size : int
        How many labelled poems it is trained on, as many of each poet.
    seed : int
        Of the draw of these poems.
    **kind
        Arguments of `TfidfVectorizer`.

    Returns
    -------
    bool array of shape (held-out poems,)
    """
    rng, who = np.random.default_rng(seed), table.poet.to_numpy()
    held = table.held.to_numpy()
    pools = [np.flatnonzero(~held & (who == poet)) for poet in MARKS]
    rows = np.concatenate([rng.choice(each, size // 2, replace=False) for each in pools])
    if isinstance(x, list):  # texts, for a bag of words or of another kind
        counter = TfidfVectorizer(sublinear_tf=True, **kind).fit([x[i] for i in rows])
        x = counter.transform(x).toarray()
    ridge = RidgeClassifierCV(np.logspace(-4, 3, 15), class_weight="balanced")
    return ridge.fit(x[rows], who[rows]).predict(x[held]) == who[held]
