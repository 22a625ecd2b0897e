"""What does a small GPT gain by width, heads, depth, shape? And what from little text?

What varies: one size of the page's model at a time, and its shape with about as many
parameters, each at the learning rate with the lowest validation loss of seed 0, then from
three other seeds. And training on a thirtieth of the text, with and without dropout, at two
learning rates.

Rivals: only the number of parameters counts; dropout lowers the best loss of a run.

Null: models of all sizes end within what seeds differ by.

Statistic: the validation loss after equally many steps. The interval is that of the
narrowest model's loss less the widest's, over the seeds.
"""

from functools import cache
from itertools import pairwise

import torch

from lmcourse.data import load_corpus, load_texts, train_val_test_split
from lmcourse.gpt.generation import generate
from lmcourse.gpt.training import estimate
from lmcourse.train import new_run
from studies.harness import alike, best_tuned, count, grid, paired

CHAPTER = "mini-gpt"
CLAIM = (
    "After equally many steps, each wider model has a lower validation loss than the "
    "narrower ones, whatever the seed"
)
RIVAL = "a model of another shape with about as many parameters"
NULL = "all widths end within what seeds differ by"
BASE = {"layers": 2, "heads": 4, "d_model": 64, "steps": 1000, "batch": 24, "warmup": 40}
BASE |= {"weight_decay": 0.01, "evaluate_every": 100, "validation_windows": 150}
SPREAD = 0.05  # of the first weights
RATES = (3e-3, 1e-2, 3e-2)  # highest learning rates
SEEDS = (1, 2, 3)
SHARE = 30  # little text: one part in so many
SETTINGS = {"base": BASE, "spread": SPREAD, "rates": RATES, "share": SHARE}
AXES = {"d_model": (16, 32, 64, 128), "heads": (1, 2, 4, 8), "layers": (1, 2, 3, 4)}
# Layers and width of models of about the same number of parameters.
AXES["shape"] = ([1, 88], [2, 64], [3, 52], [4, 44])
PROMPT = "\nShall I "


def plan(small):
    """Return the settings of all runs.

    Parameters
    ----------
    small : bool
        Whether to return those of the two ends of each axis, with two steps.

    Returns
    -------
    list of dict
        The arguments of each run: ``group``, which is "tuning", "runs" or "little" (text);
        ``changes``, settings of the training by name, such as ``steps``, that differ from
        `BASE`. "tuning" and "runs": ``axis``, which size is varied, "d_model", "heads",
        "layers" or "shape", and ``value``, the size, four an axis. "little": ``dropout``,
        the share of numbers that are dropped. ``rate``, the learning rate, three of
        "tuning", 0.003 to 0.03, and two of "little"; ``seed``, 1 to 3, of "runs" and
        "little".
    """
    few = {"steps": 2, "warmup": 1, "validation_windows": 4} if small else {}
    short = {"steps": 300, "evaluate_every": 25} | few
    seeds = SEEDS[: 1 if small else 3]
    models = []
    for axis, values in AXES.items():
        tried = [values[0], values[-1]] if small else values
        models += [{"axis": axis, "value": value, "changes": few} for value in tried]
    tuned = [each | {"rate": r} for r in RATES[: 1 if small else 3] for each in models]
    little = grid(dropout=(0.0, 0.3), rate=RATES[:2], seed=seeds, changes=short)
    runs = [each | {"seed": seed} for seed in seeds for each in models]
    groups = {"tuning": tuned, "runs": runs, "little": little}
    return [{"group": name} | each for name, group in groups.items() for each in group]


def settings_at(axis, value):
    """Return the sizes and training settings of the model with a value on an axis.

    Parameters
    ----------
    axis : str
        The size that is varied: "d_model", "heads", "layers" or "shape".
    value : int or list of int
        The size; on the axis "shape" the layers and the width.

    Returns
    -------
    dict
        Setting, such as ``layers`` or ``steps`` → value: those of `BASE` (two layers, four
        heads, a width of 64, 1,000 steps …), but for the size that is varied.
    """
    if axis == "shape":
        layers, d_model = value
        return BASE | {"layers": layers, "d_model": d_model}
    return BASE | {axis: value}


def run(folder, group, **setting):
    """Train one GPT on the sonnets.

    Parameters
    ----------
    folder : Path
        Holds the finished runs of the group "tuning".
    group : str
        What to do. "tuning": train at one learning rate; "runs": train at the best one;
        "little": train on a thirtieth of the text.
    **setting
        ``changes``, training settings by name. Of "tuning" and "runs" ``axis``, which size
        is varied, and ``value``, the size; of "little" ``dropout``; ``rate``, of "tuning"
        and "little"; ``seed``, of "runs" and "little".

    Returns
    -------
    dict
        The setting that varies, ``rate`` and what the training gave, losses in nats a
        character: of "tuning" ``validation``, a loss; of "runs" ``history``, pairs of a
        step and the validation loss, ``parameters``, how many, ``seconds`` and ``sample``,
        a text; of "little" ``history``, triples of a step, the loss on the training text
        and the validation loss.
    """
    functions = {
        "tuning": tune_model,
        "runs": train_at_best_rate,
        "little": train_on_little,
    }
    return functions[group](folder, **setting)


def tune_model(folder, axis, value, changes, rate):
    """Train a model from seed 0 at one learning rate.

    Parameters
    ----------
    folder : Path
        Unused.
    axis : str
        The size that is varied: "d_model", "heads", "layers" or "shape".
    value : int or list of int
        The size; of "shape" the layers and the width.
    changes : dict
        Training settings by name, such as ``steps``, that replace those of `BASE`.
    rate : float
        The highest learning rate.

    Returns
    -------
    dict
        The settings ``axis``, ``value``, ``rate``; ``validation``, the last validation
        loss, in nats a character.
    """
    settings = settings_at(axis, value) | changes | {"learning_rate": rate, "seed": 0}
    _, loss = train_cached(tuple(settings.items()))["history"][-1]
    return {"axis": axis, "value": value, "rate": rate, "validation": loss}


def train_at_best_rate(folder, axis, value, changes, seed):
    """Train a model at its tuned learning rate.

    Parameters
    ----------
    folder : Path
        Holds the finished runs of the group "tuning".
    axis : str
        The size that is varied: "d_model", "heads", "layers" or "shape".
    value : int or list of int
        The size; of "shape" the layers and the width.
    changes : dict
        Training settings by name, such as ``steps``, that replace those of `BASE`.
    seed : int
        Of the first weights, and of all that is drawn.

    Returns
    -------
    dict
        ``axis``, ``value``, ``rate``, ``seed``, ``parameters``, how many; ``seconds``;
        ``history``, a list of (step, validation loss in nats a character); ``sample``, a
        text that it writes.
    """
    rate = best_tuned(folder, axis=axis, value=value)["rate"]
    settings = settings_at(axis, value) | changes | {"learning_rate": rate, "seed": seed}
    row = {"axis": axis, "value": value, "rate": rate, "seed": seed}
    return row | train_cached(tuple(settings.items()))


def new_trainer(settings, share=1):
    """Return a tokenizer and a trainer of a GPT on the sonnets, before its first step.

    The first weights of its matrices have a standard deviation of 0.05 (`SPREAD`).

    Parameters
    ----------
    settings : dict
        Sizes of the model and settings of the training, by name, such as ``layers`` and
        ``learning_rate``.
    share : int
        The trainer has one part in so many of the training text.

    Returns
    -------
    tokenizer : CharTokenizer
    trainer : lmcourse.gpt.training.Trainer
    """
    parts = train_val_test_split(load_texts("sonnets"))
    parts = parts._replace(training=parts.training[: len(parts.training) // share])
    options = settings | {"parts": parts, "device": "cpu"}
    tokenizer, trainer = new_run(load_corpus("sonnets"), "classic", **options)
    with torch.no_grad():
        for weight in trainer.gpt.parameters():
            if weight.ndim == 2:
                weight.mul_(SPREAD / 0.02)  # GPT's own spread is 0.02
    return tokenizer, trainer


@cache
def train_cached(settings):
    """Train a GPT on the sonnets, once for all axes that it is on.

    Parameters
    ----------
    settings : tuple of (str, value)
        Sizes of the model and settings of the training, as pairs of name and value, so that
        they can be a key of the cache.

    Returns
    -------
    dict
        ``parameters``, how many; ``seconds`` of training; ``history``, a list of (step,
        validation loss in nats a character); ``sample``, a text that it writes after "Shall
        I".
    """
    tokenizer, trainer = new_trainer(dict(settings))
    history = trainer.run(quiet=True)
    start = torch.tensor([tokenizer.encode(PROMPT)])
    generator = torch.Generator().manual_seed(0)
    # 160 characters at temperature 0.8; beyond the context a cache can keep nothing.
    ids = generate(trainer.gpt.eval(), start, 160, 0.8, generator, cached=False)
    return {
        "parameters": trainer.gpt.parameters_count,
        "seconds": round(trainer.progress.seconds, 1),
        "history": [[each["step"], round(each["val_loss"], 4)] for each in history],
        "sample": tokenizer.decode(ids[0].tolist()),
    }


def train_on_little(folder, dropout, rate, seed, changes):
    """Train a GPT on a thirtieth of the training sonnets.

    Parameters
    ----------
    folder : Path
        Unused.
    dropout, rate : float
        The share of numbers that are dropped, 0 to 1; the highest learning rate.
    seed : int
        Of the first weights, and of all that is drawn.
    changes : dict
        Training settings by name, such as ``steps``, that replace those of `BASE`.

    Returns
    -------
    dict
        The settings ``dropout``, ``rate``, ``seed``; ``history``, a list of (step, loss on
        the training text, validation loss), in nats a character.
    """
    settings = BASE | {"dropout": dropout, "learning_rate": rate, "seed": seed} | changes
    _, trainer = new_trainer(settings, SHARE)
    history = []

    def watch(trainer):
        """Note step, loss on the training text and validation loss at an estimate.

        ``trainer`` : Trainer.
        """
        own = estimate(trainer.gpt.eval(), trainer.training, trainer.context, 50)
        last = trainer.history[-1]
        history.append([last["step"], round(own, 4), round(last["val_loss"], 4)])

    trainer.run(on_estimate=watch, quiet=True)
    return {"dropout": dropout, "rate": rate, "seed": seed, "history": history}


def summary(results):
    """Compare models of different widths, seed by seed.

    Parameters
    ----------
    results : dict of str to list of dict
        Group → outcomes of its runs; those of "runs", in the order of seeds, have ``axis``,
        of which "d_model" counts, ``value``, the width, ``seed`` and ``history``, pairs of
        a step and its validation loss.

    Returns
    -------
    dict
        ``n``, the number of outcomes on that axis, and their ``seeds``; ``interval``,
        [lowest, highest] over seeds of the narrowest model's last validation loss less the
        widest's, in nats a character; ``verdict``, "holds" or "not so": whether each width
        has a lower loss than the one before, with every seed.
    """
    runs = alike(results["runs"], axis="d_model")
    widths = (alike(runs, value=width) for width in AXES["d_model"])
    losses = [[run["history"][-1][1] for run in rows] for rows in widths if rows]
    holds = all(
        narrow > wide
        for narrower, wider in pairwise(losses)
        for narrow, wide in zip(narrower, wider, strict=True)
    )
    return count(runs) | paired(losses[0], losses[-1], holds)
