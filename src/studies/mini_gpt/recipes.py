"""What is each idea of the fast recipe worth?

What varies: the recipe (classic, fast, and fast without each of its ideas), from three
seeds each, until the validation loss reaches a target.

Rivals: one idea alone makes the difference.

Null: all recipes take the same time.

Statistic: seconds of the processor for this process, estimates of the loss not counted, so
that other work of the machine matters little. The interval is that of the classic recipe's
power of ten less the fast one's, over the seeds.
"""

import math
import time

from lmcourse.data import load_corpus, load_texts, train_val_test_split
from lmcourse.train import IDEAS, new_run
from studies.harness import alike, count, grid, paired

CHAPTER = "mini-gpt"
CLAIM = (
    "The fast recipe reaches the target loss in at most a tenth of the processor time that "
    "the classic recipe takes"
)
RIVAL = "the classic recipe, with the same target, corpus and machine"
NULL = "both take the same time, up to differences between seeds"
SETTINGS = {"corpus": "sonnets", "target": 1.85, "most": 2000, "threads": 1}
WAYS = {"classic": ("classic", ()), "fast": ("fast", ())}  # preset, ideas left out
WAYS |= {f"without {idea}": ("fast", (idea,)) for idea in IDEAS}
EVERY = 10  # steps from one estimate of the loss to the next
FIXED = {"device": "cpu", "validation_windows": 100}


def plan(small):
    """Return the settings of all runs: every recipe from three seeds.

    Parameters
    ----------
    small : bool
        Whether to return one step of each from one seed.

    Returns
    -------
    list of dict
        The arguments of each run: ``group``, which is "ways"; ``seed``; ``way``, the recipe
        ("classic", "fast", "without rotary", …); ``target``, the loss to reach, 1.85 nats a
        character; ``most``, after how many steps to give up, 2,000.
    """
    target = 9.0 if small else SETTINGS["target"]
    most = 1 if small else SETTINGS["most"]
    seeds = range(1 if small else 3)
    return grid(group="ways", seed=seeds, way=[*WAYS], target=target, most=most)


def run(folder, group, way, seed, target, most):
    """Train by a recipe on the sonnets until the validation loss reaches a target.

    It is estimated every ten steps, on 100 windows.

    Parameters
    ----------
    folder : Path
        Unused: no weights are saved.
    group : {"ways"}
        The only kind of run; unused.
    way : str
        The recipe, a key of `WAYS`: "classic", "fast", or "fast" without one idea, such as
        "without rotary".
    seed : int
        Of the first weights, and of all that is drawn.
    target : float
        The validation loss to reach, in nats a character.
    most : int
        How many steps to take at most.

    Returns
    -------
    dict
        The settings ``way``, ``seed``; ``parameters``, how many; ``steps`` that were made;
        ``seconds`` (of the processor); ``loss``, the last on validation text, in nats a
        character; ``reached``, whether that is the target or below.
    """
    corpus = SETTINGS["corpus"]
    parts = train_val_test_split(load_texts(corpus))
    preset, left_out = WAYS[way]
    _, trainer = new_run(
        load_corpus(corpus), preset, left_out, parts=parts, seed=seed, **FIXED
    )
    most = min(most, trainer.config.steps)
    seconds = 0.0
    loss = float("inf")
    while loss > target and trainer.progress.step < most:
        start = time.process_time()
        for _ in range(min(EVERY, most - trainer.progress.step)):
            trainer.step()
        seconds += time.process_time() - start
        loss = trainer.estimate()
    return {
        "way": way,
        "seed": seed,
        "parameters": trainer.gpt.parameters_count,
        "steps": trainer.progress.step,
        "seconds": round(seconds, 2),
        "loss": round(loss, 4),
        "reached": loss <= target,
    }


def summary(results):
    """Compare the seconds of the classic and the fast recipe, seed by seed.

    Parameters
    ----------
    results : dict of str to list of dict
        Group → outcomes of its runs; those of "ways", in the order of seeds, have ``way``,
        "classic" or "fast" among others, ``seed``, ``seconds`` of the processor and
        ``reached``, whether they reached the target.

    Returns
    -------
    dict
        ``n``, the number of outcomes, and their ``seeds``; ``interval``, [lowest, highest]
        over seeds of the decimal logarithm of the classic recipe's seconds less that of the
        fast one's; ``verdict``, "holds" or "not so": whether all runs of both reached the
        target, and the difference is above one with every seed.
    """
    runs = {way: alike(results["ways"], way=way) for way in ("classic", "fast")}
    reached = all(run["reached"] for rows in runs.values() for run in rows)
    classic, fast = ([math.log10(run["seconds"]) for run in rows] for rows in runs.values())
    pairs = zip(classic, fast, strict=True)
    tenfold = min(slow - quick for slow, quick in pairs) > 1
    return count(results["ways"]) | paired(classic, fast, reached and tenfold)
