"""What does a small model lack that never had a part of its blocks?

What varies: the part that is missing from the beginning, the number of blocks, and the size
of the first weights (PyTorch's own, and Xavier's). All models train at the same learning
rate, lower the deeper they are. Where they learned least, other rates are tried; and four
blocks of all kinds train for ten times the steps. Without norms there is none after the
last block either.

Rivals: one constant factor in the place of the norms. For residual paths, depth alone:
models without paths in which each token attends only to itself.

Null: models with and without the part end at the same loss.

Statistic: the loss on held-out sonnets in nats a character, by seed, and how different the
tokens of a window are. The interval is that of the loss of four blocks without paths less
that of four whose tokens attend only to themselves.
"""

import math
from collections import Counter

from lmcourse.data import load_texts, train_val_test_split
from lmcourse.lacking import LACKING
from studies.harness import alike, count, grid, paired
from studies.transformer_block.models import train_without

CHAPTER = "transformer-block"
CLAIM = (
    "Trained for 100 steps without residual paths, four blocks learn little more than how "
    "frequent each letter is"
)
RIVAL = (
    "depth alone: the same blocks without paths, each token attending only to itself, "
    "learn more"
)
NULL = "models with and without the part end at the same loss"
NEAR_FREQUENCIES = 0.1  # nats a character
SETTINGS = {
    "seeds": [0, 1, 2],
    "layers": [1, 2, 4, 8, 12],
    "weights": ["PyTorch's", "Xavier"],
    "steps": 100,
    "rate": 6e-3,  # over the root of the number of blocks
    "other": {"rates": [3e-4, 1e-3, 1e-2], "norms": 8, "paths": 4},  # and layers
    "longer": 1000,
}


def plan(small):
    """Return the settings of all runs.

    Parameters
    ----------
    small : bool
        Whether to return every fortieth of them, with two steps.

    Returns
    -------
    list of dict
        The arguments of each run: ``group``: "grid", every missing part, depth and first
        weights, two missing parts with Xavier's weights alone; "longer", four blocks, ten
        times the steps; "other", further learning rates for models without norms or without
        paths. ``off``, the part that is missing, such as "norms" or "nothing"; ``weights``,
        whose first weights, "PyTorch's" or "Xavier"; ``layers``, how many blocks; ``seed``;
        ``steps`` of training; ``rate``, the learning rate, in "grid" and "longer" 0.006
        over the root of ``layers``.
    """
    kinds = [*LACKING]
    single = [off for off in kinds if "," not in off]
    seeds = SETTINGS["seeds"]
    settings = grid(
        group="grid",
        off=kinds,
        weights=SETTINGS["weights"],
        layers=SETTINGS["layers"],
        seed=seeds,
        steps=SETTINGS["steps"],
    )
    settings = [
        each for each in settings if each["weights"] == "Xavier" or each["off"] in single
    ]
    other = SETTINGS["other"]
    settings += grid(
        group="longer",
        off=single,
        weights="PyTorch's",
        layers=other["paths"],
        seed=seeds,
        steps=SETTINGS["longer"],
    )
    settings = [
        each | {"rate": SETTINGS["rate"] / each["layers"] ** 0.5} for each in settings
    ]
    for off, weights in (("norms", "Xavier"), ("paths", "PyTorch's")):  # learned least
        settings += grid(
            group="other",
            off=off,
            weights=weights,
            layers=other[off],
            rate=other["rates"],
            seed=seeds,
            steps=SETTINGS["steps"],
        )
    return [each | {"steps": 2} for each in settings[::40]] if small else settings


def run(_folder, group, off, weights, layers, seed, steps, rate):
    """Train one model that lacks a part of its blocks.

    Parameters
    ----------
    _folder : Path
        Unused: no weights are saved.
    group : {"grid", "longer", "other"}
        Which part of the plan the run belongs to; unused.
    off : str
        What is missing: "nothing", "attention", "feed-forward", "norms", "norms, one
        constant" (a factor in their place), "paths", or "paths, other tokens" (each token
        attends only to itself).
    weights : {"PyTorch's", "Xavier"}
        The first weights.
    layers : int
        How many blocks.
    seed : int
        Of the first weights, and of all that is drawn.
    steps : int
        How many steps of training.
    rate : float
        The learning rate.

    Returns
    -------
    dict
        The settings ``off``, ``weights``, ``layers``, ``seed``, ``rate``; ``loss``, on
        validation sonnets in nats a character; ``spread``, how different the states of a
        text's tokens are after the last block; None for a number that has grown beyond a
        billion.
    """
    missing = LACKING[off]
    loss, spread = train_without(missing, layers, weights, rate, seed, steps)
    row = {"off": off, "weights": weights, "layers": layers, "seed": seed, "rate": rate}
    return row | {"loss": round_finite(loss), "spread": round_finite(spread)}


def round_finite(number):
    """Return a float rounded to four digits; None if it is above a billion, or NaN.

    ``number`` : float.
    """
    return float(f"{number:.4g}") if abs(number) < 1e9 else None


def losses_of(results, off, layers):
    """Return the losses of models with Xavier's first weights.

    Parameters
    ----------
    results : dict of str to list of dict
        Group → outcomes of its runs. Those of "grid" have ``off``, ``layers``, ``weights``
        and ``loss``.
    off : str
        What the blocks lack, a key of `lmcourse.lacking.LACKING`: "nothing", "paths",
        "paths, other tokens", …
    layers : int
        How many blocks the models have.

    Returns
    -------
    list of float
        The validation loss of each model, in nats a character, in the order of the seeds;
        empty if there is none.
    """
    rows = alike(results["grid"], off=off, layers=layers, weights="Xavier")
    return [row["loss"] for row in rows]


def frequency_loss():
    """Return the loss of guessing by how frequent each letter is, a float.

    In nats a character. It counts the training sonnets, with one more for each character,
    and is tested on the validation sonnets.
    """
    texts = train_val_test_split(load_texts("sonnets"))
    counts = Counter(texts.training) + Counter({*texts.training, *texts.validation})
    total = sum(counts.values())
    return -sum(math.log(counts[c] / total) for c in texts.validation) / len(
        texts.validation
    )


def summary(results):
    """Compare four blocks without paths with those whose tokens attend to themselves.

    Parameters
    ----------
    results : dict of str to list of dict
        Group → outcomes of its runs, which have ``seed``. Those of "grid", in the order of
        seeds: ``off``, what is missing ("paths"; "paths, other tokens", where tokens attend
        to themselves; "nothing"); ``layers``, how many blocks; ``weights``, of which those
        with "Xavier" count; ``loss``, in nats a character.

    Returns
    -------
    dict
        ``n``, the number of outcomes of all groups, and their ``seeds``; ``interval``,
        [lowest, highest] over seeds of the loss without paths less that of those whose
        tokens attend to themselves; ``verdict``, "holds" or "not so": whether every model
        without paths ends within 0.1 nats of the loss of guessing by the frequencies of
        letters, or above it, and above every one whose tokens attend only to themselves,
        which in turn end above all whole models.
    """
    without_paths = losses_of(results, "paths", 4)
    attending_to_self = losses_of(results, "paths, other tokens", 4)
    whole = losses_of(results, "nothing", 4)
    if not (without_paths and attending_to_self and whole):  # a short run
        without_paths = attending_to_self = whole = [0.0]
    rows = [row for group in results.values() for row in group]
    little = min(without_paths) > frequency_loss() - NEAR_FREQUENCIES
    holds = little and min(without_paths) > max(attending_to_self) > max(whole)
    return count(rows) | paired(without_paths, attending_to_self, holds)
