"""Which ideas let a small Transformer learn Shakespeare's letters sooner, and how much?

What varies: the recipe. `WAYS` names the recipes: "reference" is nanoGPT's for a CPU,
"textbook" the same with as few steps as the others; "size" is a smaller model, which the
rules ask for, and the others add ideas to it: one alone, several added up, or all but one.
"record" is the fastest, trained for longer; "simple" has a simpler schedule and as many
steps as the reference. Three seeds each, one of "textbook", nine of "record".

Rivals: nanoGPT's recipe, whole and as short as the others; apart, an n-gram model of the
order that the tuning text and the rules allow.

Null: the ideas save no time.

Statistic: seconds of the processor for this process on one thread, from the call of a
recipe to the model that it returns. The interval is that of the reference's seconds
over the record's, from the lowest to the highest over three seeds, each pair run one
right after the other.

The last tenth of the text is not for training. Ideas and learning rates were tuned on its
first half; there, and with seeds of its own, it was also chosen whether the record has the
idea "norm" (the group "tuning"). The losses reported are those of fixed windows of the
second half. One choice has seen these: with 460 steps other seeds did not always reach the
target, so the record has 500.
"""

import math
import time
from functools import cache
from statistics import median

import numpy as np
import torch
from torch import nn

from lmcourse.data import load_corpus
from lmcourse.gpt.training import cut_windows, estimate, split
from lmcourse.ngrams import NgramModel
from lmcourse.speedrun import CONTEXT, Recipe, train_recipe
from lmcourse.tokenization import CharTokenizer
from studies.harness import alike, count, verdict

CHAPTER = "scaling"
CLAIM = (
    "A small Transformer usually reaches the target loss on tiny Shakespeare in a "
    "fifteenth of the processor time that nanoGPT's recipe takes"
)
RIVAL = "nanoGPT's recipe in the same loop, whole and cut short; an n-gram model"
NULL = "the ideas save no time: a ratio of 1"
SETTINGS = {"corpus": "tinyshakespeare", "target": 1.909, "parameters": 800_000}
SETTINGS |= {"windows": 400, "threads": 1, "goal": 15}
# What the fastest recipe changes in nanoGPT's, in the order in which ideas are added up.
IDEAS = {
    "size": {"layers": 1, "heads": 2, "d_model": 64},
    "schedule": {"learning_rate": 1e-2, "linear_schedule": True, "weight_decay": 0.0},
    "rotary": {"positions": "rotary"},
    "norm": {"norm": "rms", "activation": "relu_squared"},
    "scale": {"initialisation": "width", "tied": False},
    "muon": {"optimizer": "muon", "muon_learning_rate": 0.05, "learning_rate": 0.06},
    "before": {"previous_tokens": 3},
}
TABLES = "tables"  # an idea against the rules: vectors for pairs and triples of characters
ORDERS = range(2, 8)  # of n-grams
STEPS = 420  # of a short run
LONGER = 500  # of the record


def ideas_by_way():
    """Return which ideas each recipe has, a dict of str to list of str.

    A list has the ideas in the order in which they are applied.
    """
    names = [*IDEAS]
    size, *others = names
    # nanoGPT's recipe: as long as it is, and as short as the recipes below.
    ways = {"reference": [], "textbook": []}
    # The smaller model, by itself and with one other idea.
    ways[size] = [size]
    for idea in others:
        ways[f"{idea} alone"] = [size, idea]
    # Ideas added up. The first two are "schedule alone", all but the last "without before".
    for last in ("rotary", "norm", "scale"):
        ways[f"up to {last}"] = names[: names.index(last) + 1]
    # All ideas but one.
    for idea in others:
        ways[f"without {idea}"] = [name for name in names if name != idea]
    # All ideas, and one more that is against the rules.
    ways["whole"] = names
    ways["tables"] = [*names, TABLES]
    # The fastest recipe and a simple one: recipes from above, with steps of their own.
    ways["record"] = ways["without norm"]
    ways["simple"] = ways["schedule alone"]
    return ways


WAYS = ideas_by_way()
TUNED = ["whole", "without norm"]  # of which the better one is the record
TUNING = range(10, 16)  # the seeds by which it is chosen
LENGTHS = {"reference": Recipe().steps, "simple": Recipe().steps, "record": LONGER}


def recipe_of(ideas=IDEAS, steps=STEPS, **changes):
    """Return nanoGPT's recipe with some ideas, each of which sets some fields.

    Parameters
    ----------
    ideas : iterable of str
        In the order in which they are applied: "size" (a smaller model), "schedule" (a
        higher learning rate that falls in a line), "rotary" (positions), "norm" (root mean
        square, and squared ReLU), "scale" (of initial weights, and an output matrix of its
        own), "muon" (the optimizer), "before" (vectors for the three characters before); or
        "tables" (vectors for pairs and triples of characters). Default: the first seven.
    steps : int
        How many steps of training.
    **changes
        Other fields of the recipe by name, such as ``learning_rate``; they overrule ideas.

    Returns
    -------
    lmcourse.speedrun.Recipe
        The settings of a model and of its training.
    """
    settings = {"steps": steps, "warmup": steps // 20}
    for idea in ideas:
        settings |= {"ngrams": (2048, 4096)} if idea == TABLES else IDEAS[idea]
    return Recipe(**settings | changes)


class Refused(ValueError):
    """An entry broke a rule; the message says which."""


@cache
def parts(corpus):
    """Load a corpus as ids of characters, in three parts.

    Parameters
    ----------
    corpus : str
        Its name: "sonnets", "tinyshakespeare" or another that `load_corpus` knows.

    Returns
    -------
    vocab_size : int
    training, tuning, test : integer Tensor of shape (characters,)
        Nine tenths of the text, and the halves of the last tenth. The type is the smallest
        that holds the ids, such as int8.
    """
    text = load_corpus(corpus)
    tokenizer = CharTokenizer(text)
    training, held = split(torch.from_numpy(tokenizer.encode_array(text)))
    half = len(held) // 2
    return tokenizer.vocab_size, training, held[:half], held[half:]


@torch.no_grad()
def check(model, windows, vocab_size, most):
    """Check that an entry's model keeps the rules.

    Parameters
    ----------
    model : object
        What the entry returned: to pass, an nn.Module from ids to logits (batch, 64,
        vocab_size), 64 being `CONTEXT`. It is left in evaluation mode.
    windows : int64 Tensor of shape (batch, 64)
        Ids to try it on.
    vocab_size : int
    most : int
        How many parameters and buffers it may have.

    Raises
    ------
    Refused
        If it is no model, is too large, returns something else than logits, or if a logit
        depends on a later token.
    """
    if not isinstance(model, nn.Module):
        raise Refused(f"train must return a torch.nn.Module, not {type(model).__name__}")
    size = count_parameters(model)
    if size > most:
        raise Refused(f"{size:,} parameters and buffers: at most {most:,} are allowed")
    logits = model.eval()(windows)
    expected = (*windows.shape, vocab_size)
    shape = getattr(logits, "shape", type(logits).__name__)
    if shape != expected:
        raise Refused(f"the model must return logits {expected}, not {shape}")
    for position in (1, CONTEXT // 2, CONTEXT - 1):
        changed = (windows + (torch.arange(CONTEXT) == position)) % vocab_size
        before = logits[:, :position]
        after = model(changed)[:, :position]
        if not torch.allclose(before, after, rtol=0, atol=1e-3, equal_nan=True):
            raise Refused("a logit depends on a later token: the model looks ahead")


def count_parameters(model):
    """Return how many numbers a model has in parameters and buffers, shared ones once.

    ``model`` : nn.Module.
    """
    return sum(x.numel() for x in (*model.parameters(), *model.buffers()))


@cache
def warm_up():
    """Take one step, so that no run is timed while PyTorch loads what it needs."""
    train_recipe(Recipe(steps=1, warmup=0), torch.arange(100) % 2, 2)


def judge(entry, corpus, seed, most=math.inf):
    """Train, time and judge one entry, a function that trains a model.

    Parameters
    ----------
    entry : callable
        Given copies of the ids to train on and to tune on (integer Tensors of one
        dimension), the size of the vocabulary and a seed, it returns an nn.Module: ids
        (batch, 64) to logits (batch, 64, vocab_size). It never sees the rest of the text.
    corpus : str
        Its name: "sonnets", "tinyshakespeare" or another that `load_corpus` knows.
    seed : int
        Given to the entry, for all that it draws.
    most : int, optional
        How many parameters and buffers it may have. Default: any number.

    Returns
    -------
    dict
        ``parameters``, how many numbers the model has, buffers counted; ``loss``, on 400
        windows of the test text, and ``tuning``, on the tuning text, in nats a character;
        ``seconds`` of the processor for the training, and those on the ``wall`` clock.

    Raises
    ------
    Refused
        If the entry fails or breaks a rule, or its loss is no finite number.
    """
    warm_up()
    vocab_size, training, tuning, test = parts(corpus)
    # Copies, since from a view an entry could reach the rest of the text.
    own_training = training.clone()
    own_tuning = tuning.clone()
    wall_start = time.perf_counter()
    processor_start = time.process_time()
    try:
        model = entry(own_training, own_tuning, vocab_size, seed)
        seconds = time.process_time() - processor_start
        wall = time.perf_counter() - wall_start
        check(model, test[: 2 * CONTEXT].long().view(2, CONTEXT), vocab_size, most)
        tuning_loss, loss = (
            estimate(model, ids, CONTEXT, SETTINGS["windows"]) for ids in (tuning, test)
        )
    except Refused:
        raise
    except Exception as error:
        raise Refused(f"it failed: {type(error).__name__}: {error}") from error
    if not math.isfinite(loss):
        raise Refused(f"its loss is {loss}")
    return {
        "parameters": count_parameters(model),
        "loss": round(loss, 4),
        "tuning": round(tuning_loss, 4),
        "seconds": round(max(seconds, 0.001), 3),
        "wall": round(max(wall, 0.001), 3),
    }


def entry_of(way, steps=None):
    """Return a recipe as an entry, which can be trained and judged.

    Parameters
    ----------
    way : str
        A key of `WAYS`: the name of a recipe, such as "record" or "without muon", for which
        `WAYS` says what ideas it has.
    steps : int, optional
        Of training. Default: as many as that recipe has.

    Returns
    -------
    entry : callable
        Given the ids to train on and to tune on, the size of the vocabulary and a seed, it
        returns a trained model.
    tokens : int
        How many tokens it reads in training: steps times windows of a batch times 64.
    """
    recipe = recipe_of(WAYS[way], steps or LENGTHS.get(way, STEPS))

    def entry(training, tuning, vocab_size, seed):
        """Return a model trained by the recipe; the tuning text is not used.

        ``training``, ``tuning`` : ids (characters,); ``vocab_size``, ``seed`` : int.
        """
        return train_recipe(recipe, training, vocab_size, seed)

    return entry, recipe.steps * recipe.batch * CONTEXT


def plan(small):
    """Return the settings of all runs: every recipe from three seeds.

    But "textbook" has one seed, "record" nine, and "tuning" tries two recipes on six
    others.

    Parameters
    ----------
    small : bool
        Whether to return one step of each recipe, on the Sonnets.

    Returns
    -------
    list of dict
        The arguments of each run: ``corpus``, its name; ``steps`` of training, None for the
        recipe's own; ``way``, the recipe, such as "record"; ``seed``; ``group``: first
        "tuning"; then "ways", where "reference", "simple" and "record" take turns so that
        their times can be compared; then "counting".
    """
    others = [way for way in WAYS if way not in LENGTHS]
    if small:
        size = {"corpus": "sonnets", "steps": 1}
        runs = [("tuning", TUNED[0], TUNING[0])]
        runs += [("ways", way, 0) for way in (*LENGTHS, *others)]
    else:
        size = {"corpus": SETTINGS["corpus"], "steps": None}
        runs = [("tuning", way, seed) for way in TUNED for seed in TUNING]
        runs += [("ways", way, seed) for seed in range(3) for way in LENGTHS]
        runs += [("ways", "record", seed) for seed in range(3, 9)]
        runs += [("ways", way, 0) for way in others]
        repeated = [way for way in others if way != "textbook"]
        runs += [("ways", way, seed) for seed in (1, 2) for way in repeated]
    runs.append(("counting", "counting", 0))
    return [size | {"group": group, "way": way, "seed": seed} for group, way, seed in runs]


def run(folder, group, corpus, steps, seed, way):
    """Train by a recipe and judge the model, or count n-grams.

    Parameters
    ----------
    folder : Path
        Unused: no weights are saved.
    group : {"tuning", "ways", "counting"}
        "tuning" judges a recipe on the tuning text alone, "ways" on the test text, too;
        "counting" judges n-grams.
    corpus : str
        Its name: "sonnets", "tinyshakespeare" or another that `load_corpus` knows.
    steps : int or None
        None stands for as many as the recipe has.
    seed : int
        Of the first weights, and of all that is drawn.
    way : str
        The recipe, a key of `WAYS`, such as "record"; "counting" in the group of that name.

    Returns
    -------
    dict
        ``way``, ``seed``. Of "tuning" also ``tuning``, the loss on the tuning text; of
        "ways" ``tokens``, those of the training, ``parameters``, how many, ``loss`` and
        ``tuning``, on the test and the tuning text in nats a character, and ``seconds`` of
        the processor. Of "counting" the same of n-grams, with ``order``, their length;
        ``parameters`` are n-grams and contexts, ``tokens`` those of the training text.
    """
    if group == "counting":
        return ngram_losses(corpus)
    entry, tokens = entry_of(way, steps)
    outcome = judge(entry, corpus, seed)
    if group == "tuning":
        return {"way": way, "seed": seed, "tuning": outcome["tuning"]}
    outcome.pop("wall")  # it depends on what else the machine does
    return {"way": way, "seed": seed, "tokens": tokens} | outcome


def ngram_losses(corpus):
    """Test n-gram models on the windows on which recipes are judged.

    Parameters
    ----------
    corpus : str
        Its name: "sonnets", "tinyshakespeare" or another that `load_corpus` knows.

    Returns
    -------
    dict
        Of the model with the lowest loss on the tuning text, among those that have no more
        parameters than the rules of the contest allow: ``way``, "counting"; ``seed``, 0;
        ``tokens``, how many the training text has; ``seconds`` of the processor, for
        counting; ``order``, the length of its n-grams; ``parameters``, how many n-grams and
        contexts it has; ``tuning`` and ``loss``, on the tuning text and on the test text,
        in nats a character.
    """
    vocab_size, training, tuning, test = parts(corpus)
    rows = []
    for order in ORDERS:
        start = time.process_time()
        model = NgramModel(training.numpy(), order, vocab_size)
        row = {"seconds": round(time.process_time() - start, 3), "order": order}
        row["parameters"] = sum(
            level.ngrams.size + level.contexts.size for level in model._levels
        )
        for name, ids in {"tuning": tuning, "loss": test}.items():
            last = len(ids) - CONTEXT - 1
            starts = torch.linspace(0, last, SETTINGS["windows"], dtype=torch.float64)
            inputs, targets = cut_windows(ids, starts.long(), CONTEXT)
            texts = torch.cat((inputs, targets[:, -1:]), dim=1).numpy()
            probabilities = [model.probabilities(text)[1:] for text in texts]
            row[name] = round(-np.log(probabilities).mean().item(), 4)
        rows.append(row)
    allowed = [row for row in rows if row["parameters"] <= SETTINGS["parameters"]]
    best = min(allowed, key=lambda row: row["tuning"])
    return {"way": "counting", "seed": 0, "tokens": len(training)} | best


def summary(results):
    """Compare the seconds of the record and of the reference, seed by seed.

    Parameters
    ----------
    results : dict of str to list of dict
        Group → outcomes of its runs. Those of "ways": ``way``, the recipe, "reference" or
        "record" for two; ``seed``; ``seconds`` of the processor; ``loss`` on the test text,
        in nats a character; ``parameters``, how many.

    Returns
    -------
    dict
        ``n``, the number of outcomes of "ways", and their ``seeds``; ``interval``, [lowest,
        highest] over seeds of the reference's seconds over the record's; ``verdict``,
        "holds" or "not so": whether this is fifteen or more with each of the three seeds
        that both have, the record's median loss is the target or below, and it has no more
        parameters than are allowed.
    """
    by_seed = sorted(results["ways"], key=lambda row: row["seed"])
    reference = alike(by_seed, way="reference")
    record = alike(by_seed, way="record")  # of more seeds
    ratios = [
        slow["seconds"] / fast["seconds"]
        for slow, fast in zip(reference, record, strict=False)
    ]
    holds = (
        median(row["loss"] for row in record) <= SETTINGS["target"]
        and max(row["parameters"] for row in record) <= SETTINGS["parameters"]
        and min(ratios) >= SETTINGS["goal"]
    )
    interval = [round(min(ratios), 2), round(max(ratios), 2)]
    return count(by_seed) | {"interval": interval, "verdict": verdict(holds)}
