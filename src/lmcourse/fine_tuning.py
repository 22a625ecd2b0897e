"""A GPT that has read one poet is taught another: the poems, the training, the losses.

`read_poets` splits the poems, `windows` draws batches, `fine_tune` trains whatever of a
model may change, `METHODS` say what that is, and `mean_losses` measures both poets
afterwards.
"""

import copy

import numpy as np
import pandas as pd
import torch
import torch.nn.functional as F
from torch.nn.utils.rnn import pad_sequence
from torch.optim.lr_scheduler import LambdaLR
from tqdm.auto import tqdm

from lmcourse import adapters
from lmcourse.data import load_poems, load_sonnets
from lmcourse.gpt.training import cut_windows
from lmcourse.training_loop import train_model

CONTEXT, BATCH = 64, 8  # characters that the model sees; windows of a step
AS_KNOWN = str.maketrans({'"': "'", "Q": "q"})  # Dickinson's text → the Sonnets' alphabet
MARKS = {"Shakespeare": "(W)\n", "Dickinson": "(E)\n"}

# --- poems ----------------------------------------------------------------------------


def read_poets(tokenizer):
    """Return the poems of both poets as ids, whole poems split into three parts.

    Parameters
    ----------
    tokenizer : CharTokenizer

    Returns
    -------
    dict of str to dict
        "Shakespeare" and "Dickinson" → ``training``, ``validation``, ``test``: lists of
        int64 Tensors (characters,), a poem each, with a new line before and after it. Of
        each ten poems the fifth is for validation, the tenth for the test. Dickinson's "
        and Q, which the Sonnets have not, become ' and q.
    """
    parts = {}
    for poet, table in {"Shakespeare": load_sonnets(), "Dickinson": load_poems()}.items():
        texts = [f"\n{text.translate(AS_KNOWN)}\n" for text in table.text]
        ids = [torch.tensor(tokenizer.encode(text)) for text in texts]
        learn = [x for i, x in enumerate(ids) if i % 10 not in (4, 9)]
        parts[poet] = {"training": learn, "validation": ids[4::10], "test": ids[9::10]}
    return parts


# --- batches --------------------------------------------------------------------------


def windows(ids, batch=BATCH):
    """Return a function that draws a batch of windows of a text.

    Parameters
    ----------
    ids : int64 Tensor of shape (characters,)
        The text.
    batch : int
        How many windows it draws at a time, by default 8.

    Returns
    -------
    callable
        From a torch.Generator to windows and their targets, int64 Tensors (batch, 64) each:
        in each window 64 characters that follow each other (`CONTEXT`), and those that
        follow them.
    """

    def draw(generator):
        """Return random windows and the characters that follow each of theirs.

        Both are int64 Tensors (batch, 64): the windows are 64 characters long (`CONTEXT`).

        ``generator`` : torch.Generator.
        """
        starts = torch.randint(len(ids) - CONTEXT, (batch,), generator=generator)
        return cut_windows(ids, starts, CONTEXT)

    return draw


def mixed(*draws):
    """Return a function that joins the batches of several functions.

    Parameters
    ----------
    *draws : callable
        Each from a torch.Generator to windows and their targets, (batch, 64) both: in each
        window 64 characters (`CONTEXT`), and those that follow them.

    Returns
    -------
    callable
        From a torch.Generator to windows and targets, (all batches together, 64) both.
    """

    def draw(generator):
        """Return windows and targets of all functions: two Tensors (all batches, 64).

        ``generator`` : torch.Generator.
        """
        drawn = [one(generator) for one in draws]
        return [torch.cat(side) for side in zip(*drawn, strict=True)]

    return draw


def behind(mark, ids, batch=4):
    """Return a function that draws windows which begin with a marker.

    Parameters
    ----------
    mark : list of int
        The marker's ids.
    ids : int64 Tensor of shape (characters,)
        The text.
    batch : int
        How many windows it draws at a time.

    Returns
    -------
    callable
        From a torch.Generator to windows and their targets, int64 Tensors (batch, 64) each:
        the marker and characters of the text from a random position on, 64 together
        (`CONTEXT`); and for each the one that follows it in the window.
    """

    def draw(generator):
        """Return windows that begin with the mark, and targets: int64 Tensors (batch, 64).

        A target is the id after each of the window's. 64 is `CONTEXT`.

        ``generator`` : torch.Generator.
        """
        inner = CONTEXT - len(mark)
        starts = torch.randint(len(ids) - inner, (batch,), generator=generator)
        parts = ids[starts[:, None] + torch.arange(inner + 1)]
        front = torch.tensor(mark).expand(batch, -1)
        cut = torch.cat([front, parts], 1)  # (batch, CONTEXT + 1)
        return cut[:, :-1], cut[:, 1:]

    return draw


# --- losses ---------------------------------------------------------------------------


@torch.no_grad()
def poem_losses(model, poems):
    """Return the mean loss over each poem's characters but its first, in nats.

    Parameters
    ----------
    model : GPT
        It is put into evaluation mode, and stays in it.
    poems : list of int64 Tensor of shape (characters,)
        Each is cut into windows of 64 characters (`CONTEXT`), and only what stands before a
        character in its window is read.

    Returns
    -------
    float64 array of shape (poems,)
    """
    cut = []
    owner = []
    for number, ids in enumerate(poems):
        for start in range(0, len(ids) - 1, CONTEXT):
            cut.append(ids[start : start + CONTEXT + 1])
            owner.append(number)
    cut = pad_sequence(cut, batch_first=True, padding_value=-1)
    inputs, targets = cut[:, :-1].clamp(min=0), cut[:, 1:]  # (windows, CONTEXT)
    logits = model.eval()(inputs.to(device_of(model))).cpu()
    losses = F.cross_entropy(logits.mT, targets, ignore_index=-1, reduction="none")
    sums = torch.stack([losses.sum(1), (targets >= 0).sum(1)])  # (2, windows)
    total = torch.zeros(2, len(poems)).index_add(1, torch.tensor(owner), sums)
    return (total[0] / total[1]).double().numpy()


def mean_losses(model, poets, part="validation"):
    """Return the mean loss of each poet's poems, a Series by poet, in nats a character.

    It is the mean over poems of their own means, so that each poem counts alike.

    Parameters
    ----------
    model : GPT
    poets : dict of str to dict
        Poet → part → list of poems as ids, int64 Tensors (characters,).
    part : {"training", "validation", "test"}
    """
    losses = {poet: poem_losses(model, parts[part]) for poet, parts in poets.items()}
    return pd.Series({poet: each.mean() for poet, each in losses.items()})


# --- training -------------------------------------------------------------------------


def device_of(model):
    """Return the torch.device of the parameters of a model.

    ``model`` : nn.Module.
    """
    return next(model.parameters()).device


def rate_share(step, steps):
    """Return the share of the highest learning rate that a step takes.

    It rises for a tenth of the steps, and then falls.

    Parameters
    ----------
    step : int
        From 0.
    steps : int
        How many there are.

    Returns
    -------
    float
        From 0 to 1.
    """
    return min((step + 1) / (0.1 * steps), (steps - step) / (0.9 * steps))


def fine_tune(model, draw, steps, learning_rate, seed=0, watch=None):
    """Train the parameters of a model that may change, and no others.

    Parameters
    ----------
    model : GPT
        It is changed. Parameters whose ``requires_grad`` is False stay as they are.
    draw : callable
        From a torch.Generator to windows and their targets, int64 Tensors (batch, 64) both:
        characters, and those that follow them.
    steps : int
    learning_rate : float
        The highest, of AdamW: it rises for a tenth of the steps, and then falls to 0.
    seed : int
        Of the batches and of dropout.
    watch : callable, optional
        Called before each step with its number and the model.

    Returns
    -------
    GPT
        The model, in evaluation mode.
    """
    torch.manual_seed(seed)  # for dropout
    generator = torch.Generator().manual_seed(seed)
    learned = [weight for weight in model.parameters() if weight.requires_grad]
    optimizer = torch.optim.AdamW(learned, learning_rate, weight_decay=0.0, fused=True)
    scheduler = LambdaLR(optimizer, lambda step: rate_share(step, steps))

    def loss_at(step):
        """Return the mean loss of a new batch, in nats a character: a Tensor without axes.

        ``watch``, if there is one, is called first, with the number of the ``step`` and the
        model.
        """
        if watch:
            watch(step, model)
        inputs, targets = (ids.to(device_of(model)) for ids in draw(generator))
        logits = model.train()(inputs)  # (batch, CONTEXT, vocab_size)
        return F.cross_entropy(logits.flatten(0, 1), targets.flatten())

    with tqdm(total=steps) as bar:
        train_model(
            model,
            loss_at,
            steps,
            [optimizer],
            [scheduler],
            max_norm=1.0,
            report=lambda step, loss: bar.update(),
        )
    return model


# --- what may change ------------------------------------------------------------------


def last_layer(model, size=None):
    """Freeze a model but for its last block and norm, and return it.

    ``model`` : GPT, changed in place; ``size`` is not used.
    """
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
    """Return a copy of a model of which a method trains some parameters.

    Parameters
    ----------
    model : GPT
    method : {"all weights", "last layer", "LoRA", "prefix"}
        A key of `METHODS`.
    size : int
        The rank of LoRA, or how many vectors a prefix has; the other methods ignore it.
    seed : int
        Of new weights.

    Returns
    -------
    GPT
        Parameters that are not trained have ``requires_grad`` False.
    """
    torch.manual_seed(seed)
    return METHODS[method](copy.deepcopy(model), size)


# --- writing --------------------------------------------------------------------------


@torch.no_grad()
def write_behind(model, tokenizer, mark, tokens=120, batch=16, seed=0):
    """Sample texts behind a marker that stays in the model's window of 64 tokens.

    Once the text is longer than the window, the model sees the marker and the last
    characters.

    Parameters
    ----------
    model : GPT
    tokenizer : CharTokenizer
    mark : list of int
        The marker's ids; the last is that of a line break.
    tokens, batch : int
        How many characters are drawn for each text, and how many texts.
    seed : int

    Returns
    -------
    list of str
        Each a line break and the characters that were drawn, without the marker; the model
        is left in evaluation mode.
    """
    device = device_of(model)
    front = torch.tensor(mark, device=device).expand(batch, -1)
    ids = torch.cat([front, front[:, -1:]], 1)  # a marker ends with a line
    generator = torch.Generator().manual_seed(seed)
    for _ in tqdm(range(tokens)):
        seen = torch.cat([front, ids[:, len(mark) :][:, len(mark) - CONTEXT :]], 1)
        probs = model.eval()(seen)[:, -1].cpu().softmax(-1)
        ids = torch.cat(
            [ids, torch.multinomial(probs, 1, generator=generator).to(device)], 1
        )
    return [tokenizer.decode(row) for row in ids[:, len(mark) :].tolist()]


def line_lengths(texts):
    """Return the mean length of the whole lines of each text, in characters.

    Parameters
    ----------
    texts : list of str
        The first and the last line of each may be cut, and are left out; so are empty
        lines, and a text that has no line left.

    Returns
    -------
    float array of shape (texts with a whole line,)
    """
    uncut = [[line for line in text.split("\n")[1:-1] if line] for text in texts]
    return np.array([np.mean([len(line) for line in lines]) for lines in uncut if lines])
