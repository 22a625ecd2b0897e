"""How thin may LoRA's matrices be?

What varies: the rank of LoRA, 1, 2, 4 or 32, in a training of the model of the sonnets on
Dickinson; rank 8 is in the study *fine-tuning*. Each rank has as many steps as cost as much
arithmetic as a hundred steps of all weights, and the best of three learning rates, chosen
with seed 0 on Dickinson's validation poems. Then it is trained from three other seeds.

Rivals: all weights, trained from five seeds in the study *fine-tuning*; and as many
directions kept of what such a training changes, in the study *directions*.

Null: LoRA trained on Shakespeare's sonnets, in the study *fine-tuning*.

Statistic: the loss on Dickinson's test poems, in nats a character. The gain is how much
lower it is than before the training. The interval is that of the gain of rank 1 less half
the gain of all weights, over poems drawn again.

Foretold before it was run, and why: `FORETOLD`.
"""

import numpy as np

from lmcourse import adapters, data
from lmcourse import fine_tuning as teaching
from lmcourse.numbers import bootstrap_interval
from studies.fine_tuning.equal_work import steps_within
from studies.fine_tuning.fine_tuning import load_material, mean_loss, training_texts
from studies.harness import alike, best_tuned, count, grid, verdict

CHAPTER = "fine-tuning"
CLAIM = (
    "LoRA of rank 1, a single direction in each matrix, learns more than half of what a "
    "training of all weights teaches a GPT about a new poet"
)
RIVAL = (
    "the single strongest direction of each matrix's change, kept after a training of all "
    "weights"
)
NULL = "LoRA trained on Shakespeare's sonnets"
AFTER = ("sonnets", "fine-tuning")
FORETOLD = {
    "one": (
        "Rank 1 learns more than two thirds of what all weights learn, and more than the "
        "strongest direction of their change holds: it is trained to do without others."
    ),
    "more": (
        "Each doubling up to 8 brings something, and less than the one before. From 8 to "
        "32 it is less than 0.01 nats: the work is the same, and what is to be "
        "learned is a small thing."
    ),
    "rates": "The best learning rate falls as the rank rises, since the scale is fixed.",
    "forgetting": "Higher ranks forget no less of Shakespeare than lower ones.",
}
RATES = {  # by the rank; those of rank 8 had their best at 0.017, of five
    1: (1.7e-2, 3e-2, 5.5e-2),
    2: (1.7e-2, 3e-2, 5.5e-2),
    4: (1e-2, 1.7e-2, 3e-2),
    32: (5.5e-3, 1e-2, 1.7e-2),
}
SEEDS = (1, 2, 3)
SETTINGS = {"budget": 100, "ranks": [*RATES], "rates": [*RATES.values()]}
SETTINGS |= {"foretold": FORETOLD}


def plan(small):
    """Return the settings of all runs.

    Parameters
    ----------
    small : bool
        Whether to return those of rank 1 and one seed, with two steps.

    Returns
    -------
    list of dict
        The arguments of each run: ``group``, "tuning" or "runs"; ``rank`` of LoRA's
        matrices, 1, 2, 4 or 32; ``budget``, the work in steps of training all weights; of
        "tuning" also ``rate``, the learning rate that is tried, three a rank, of "runs"
        ``seed``, 1 to 3.
    """
    rates_of = RATES
    seeds = SEEDS
    budget = SETTINGS["budget"]
    if small:
        first = next(iter(RATES))
        rates_of = {first: RATES[first][:1]}
        seeds = SEEDS[:1]
        budget = 2
    settings = []
    for rank, rates in rates_of.items():
        settings += grid(group="tuning", rank=rank, rate=rates, budget=budget)
        settings += grid(group="runs", rank=rank, seed=seeds, budget=budget)
    return settings


def run(folder, group, rank, budget, rate=None, seed=0):
    """Train LoRA of one rank on Dickinson, in the model of the sonnets; measure its losses.

    Parameters
    ----------
    folder : Path
        Holds the finished runs of the group "tuning".
    group : {"tuning", "runs"}
        "tuning" measures on Dickinson's validation poems, "runs" on the others.
    rank : int
        Of LoRA's two matrices, whose product is added to each matrix of the model.
    budget : int
        The work, in steps of training all weights.
    rate : float, optional
        The highest learning rate. Default: the tuned one.
    seed : int
        Of the first weights and of the training.

    Returns
    -------
    dict
        The settings ``rank``, ``rate``, ``seed``; ``steps`` and ``parameters``, how many
        are trained. Of "tuning" also ``validation``, the mean loss on Dickinson's
        validation poems; of the others ``Dickinson test``, ``Shakespeare validation`` and
        ``Shakespeare test``, the loss on each poem. Losses are in nats a character.
    """
    _, base, poets = load_material()
    rate = rate or best_tuned(folder, rank=rank)["rate"]
    model = teaching.adapted(base, "LoRA", rank, seed)
    steps = steps_within(budget, model, base)
    draw = teaching.windows(training_texts()["Dickinson"])
    teaching.fine_tune(model, draw, steps, rate, seed)
    row = {"rank": rank, "rate": rate, "seed": seed, "steps": steps}
    row["parameters"] = adapters.trainable(model)
    if group == "tuning":
        return row | {"validation": mean_loss(model, "Dickinson")}
    held_out = [
        ("Dickinson", "test"),
        ("Shakespeare", "validation"),
        ("Shakespeare", "test"),
    ]
    for poet, part in held_out:
        losses = teaching.poem_losses(model, poets[poet][part])
        row[f"{poet} {part}"] = np.round(losses, 4).tolist()
    return row


def summary(results):
    """Compare rank 1 with half of what all weights learn, over poems.

    Parameters
    ----------
    results : dict of str to list of dict
        Group → outcomes of its runs; those of "runs" have ``rank``, ``seed`` and
        ``Dickinson test``, the loss on each test poem, a list in nats a character.

    Returns
    -------
    dict
        ``n``, the number of outcomes of "runs", and their ``seeds``; ``interval``, [low,
        high], 95 % of the gain of rank 1, mean of the seeds, less half the gain of all
        weights at their best rate, in nats a character, poems drawn again; ``verdict``,
        "holds" or "not so": whether it is above zero.
    """
    _, base, poets = load_material()
    before = teaching.poem_losses(base, poets["Dickinson"]["test"])
    all_weights = alike(
        data.stored("fine-tuning")["results"]["runs"],
        method="all weights",
        rate=3e-3,
        fed="Dickinson",
        replayed=0,
    )
    gain, gain_of_all = (
        before - np.mean([row["Dickinson test"] for row in rows], axis=0)
        for rows in (alike(results["runs"], rank=1), all_weights)
    )
    low, high = bootstrap_interval(gain - gain_of_all / 2)
    interval = [round(low, 4), round(high, 4)]
    return count(results["runs"]) | {"interval": interval, "verdict": verdict(low > 0)}
