"""Does a model get worse at its first poet even if it is taught nothing new?

What varies: the text on which the model of the sonnets is trained further. Here these are
passages that the model wrote itself, at temperature 1 and from its own probabilities, so
that on average there is nothing in them to learn. Three seeds, each with texts of its own.
The same trainings on Dickinson and on the sonnets are in the study *fine-tuning*.

Rivals: the training on Dickinson; the training on the real sonnets.

Null: the model as it was before.

Statistic: the rise of the loss on 30 held-out sonnets, in nats a character, mean of the
seeds; the interval is that of 95 % over sonnets drawn again.

The group "letters" is for the page to show: a model with random weights, taught Dickinson.
"""

import numpy as np
import torch

from lmcourse import data
from lmcourse import fine_tuning as teaching
from lmcourse.gpt.generation import generate
from lmcourse.gpt.model import GPT
from lmcourse.numbers import bootstrap_interval
from studies.fine_tuning.fine_tuning import LETTER_STEPS, load_material, train_with_readings
from studies.harness import alike, count, grid, verdict

CHAPTER = "fine-tuning"
CLAIM = (
    "A GPT of the sonnets that is trained on text which it wrote itself gets worse at the "
    "sonnets, by more than half of what the same training on Dickinson costs it"
)
RIVAL = "the same training on Dickinson, or on the sonnets themselves"
NULL = "the model before the training"
AFTER = ("sonnets", "fine-tuning")
SETTINGS = {"rates": [3e-3], "seeds": [0, 1, 2], "steps": 100}
SETTINGS |= {"texts": 1200, "characters": 64}


def plan(small):
    """Return the settings of all runs.

    Parameters
    ----------
    small : bool
        Whether to return one run of each group, with few steps on a short text.

    Returns
    -------
    list of dict
        The arguments of each run: ``group``, "runs" or "letters"; ``rate``, the highest
        learning rate, 0.003; ``steps`` of training, a hundred; of "runs" also ``seed``, and
        ``characters``, the length of each text that the model writes.
    """
    runs = grid(group="runs", seed=SETTINGS["seeds"], rate=SETTINGS["rates"])
    size = {"steps": SETTINGS["steps"], "characters": SETTINGS["characters"]}
    if small:
        runs = runs[:1]
        size = {"steps": 2, "characters": 3}
    letters = {"group": "letters", "rate": 3e-3, "steps": size["steps"]}
    return [*(each | size for each in runs), letters]


def run(_folder, group, **setting):
    """Train our GPT on its own texts, or random weights on Dickinson, and measure losses.

    Parameters
    ----------
    _folder : Path
        Unused: no weights are saved.
    group : {"runs", "letters"}
        "runs" trains on a text that the model wrote itself, "letters" trains a model with
        random weights and measures it on the way.
    **setting
        ``rate``, the highest learning rate, and ``steps``; of "runs" also ``seed`` and
        ``characters``, the length of each text that the model writes.

    Returns
    -------
    dict
        ``rate``. Of "runs" ``seed``, ``text``, one that the model wrote, and its losses on
        each sonnet, ``Shakespeare validation`` and ``Shakespeare test``, in nats a
        character. Of "letters" ``rows``, list of dict, one for each moment of the training
        of a model with random weights: by a poet's name the probabilities of the letters of
        a piece in per cent, by "POET validation" a mean loss in nats a character.
    """
    return {"runs": train_on_own, "letters": letters_of_random}[group](**setting)


def own_texts(characters, seed):
    """Return texts that the model of the sonnets writes, from its own probabilities.

    Parameters
    ----------
    characters : int
        How many it writes of each text, besides the line break with which it begins.
    seed : int
        Of all that is drawn at random.

    Returns
    -------
    int64 Tensor of shape (texts, 1 + characters)
        Ids of 1,200 texts.
    """
    tokenizer, model, _ = load_material()
    begin = torch.tensor(tokenizer.encode("\n")).expand(SETTINGS["texts"], 1)
    generator = torch.Generator().manual_seed(seed)
    return generate(model, begin, characters, generator=generator)


def whole_texts(texts, batch=teaching.BATCH):
    """Return a function that draws a batch of whole texts.

    Parameters
    ----------
    texts : int64 Tensor of shape (texts, 1 + characters)
    batch : int
        How many texts.

    Returns
    -------
    callable
        From a torch.Generator to texts and their targets, (batch, characters) each.
    """

    def draw(generator):
        """Return random texts and their targets, int64 Tensors (batch, characters) each.

        ``generator`` : torch.Generator.
        """
        rows = torch.randint(len(texts), (batch,), generator=generator)
        return texts[rows, :-1], texts[rows, 1:]

    return draw


def train_on_own(seed, rate, steps, characters):
    """Train all weights of the model on texts that it wrote, and measure its losses.

    Parameters
    ----------
    seed : int
        Of the texts and of the training.
    rate : float
        The highest learning rate.
    steps : int
        How many steps of training.
    characters : int
        Of each text that the model writes.

    Returns
    -------
    dict
        ``rate``, ``seed``; ``text``, one that it wrote; ``Shakespeare validation`` and
        ``Shakespeare test``: the loss on each sonnet, in nats a character.
    """
    tokenizer, base, poets = load_material()
    texts = own_texts(characters, seed)
    model = teaching.adapted(base, "all weights")
    teaching.fine_tune(model, whole_texts(texts), steps, rate, seed)
    row = {"rate": rate, "seed": seed, "text": tokenizer.decode(texts[0].tolist())}
    for part in ("validation", "test"):
        losses = teaching.poem_losses(model, poets["Shakespeare"][part])
        row[f"Shakespeare {part}"] = np.round(losses, 4).tolist()
    return row


def letters_of_random(rate, steps):
    """Teach Dickinson to a model with random weights, which reads two pieces on the way.

    The pieces are a few lines by either poet, `PIECES` of the study *fine-tuning*.

    Parameters
    ----------
    rate : float
        The highest learning rate.
    steps : int
        How many steps of training.

    Returns
    -------
    dict
        ``rate``, and ``rows``, a list of dict, one for each of five moments of the
        training, the first before it: by each poet's name a list with a pair for each
        letter of a piece, its probability in per cent and the most probable characters with
        theirs; and as ``Dickinson validation`` and ``Shakespeare validation`` mean losses
        in nats a character.
    """
    _, base, _ = load_material()
    torch.manual_seed(0)
    model = GPT(base.config)
    return {"rate": rate, "rows": train_with_readings(model, steps, rate, LETTER_STEPS)}


def mean_rise(rows, before):
    """Return by how much the loss on each held-out sonnet is higher than before.

    Parameters
    ----------
    rows : list of dict
        Outcomes with ``Shakespeare validation`` and ``Shakespeare test``, lists of the loss
        on each sonnet, in nats a character; one outcome a seed.
    before : array of shape (sonnets,)
        The loss on each before the training, those of validation first.

    Returns
    -------
    float array of shape (sonnets,)
        The mean over the seeds.
    """
    losses = [row["Shakespeare validation"] + row["Shakespeare test"] for row in rows]
    return np.mean(losses, axis=0) - before


def summary(results):
    """Compare training on the model's own texts with training on Dickinson.

    Parameters
    ----------
    results : dict of str to list of dict
        Group → outcomes of its runs; those of "runs" have ``seed``, and the loss on each
        sonnet in nats a character, lists: ``Shakespeare validation`` and ``Shakespeare
        test``.

    Returns
    -------
    dict
        ``n``, the number of outcomes of "runs", and their ``seeds``; ``interval``, [low,
        high], 95 % of the rise of the loss after own texts less half of the rise after
        Dickinson at the same rate, 0.003, in nats a character, sonnets drawn again;
        ``verdict``, "holds" or "not so": whether it is above zero.
    """
    _, base, poets = load_material()
    parts = (poets["Shakespeare"][part] for part in ("validation", "test"))
    before = np.concatenate([teaching.poem_losses(base, part) for part in parts])
    stored = alike(
        data.stored("fine-tuning")["results"]["runs"],
        method="all weights",
        fed="Dickinson",
        replayed=0,
    )
    after_dickinson = mean_rise(alike(stored, rate=SETTINGS["rates"][0]), before)
    after_own = mean_rise(results["runs"], before)
    low, high = bootstrap_interval(after_own - after_dickinson / 2)
    interval = [round(low, 4), round(high, 4)]
    return count(results["runs"]) | {"interval": interval, "verdict": verdict(low > 0)}
