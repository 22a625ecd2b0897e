"""Are four of the speedrun's seven ideas enough?

What varies: the recipe. "reference" is nanoGPT's for a CPU, "record" the fastest of the
study *speedrun*; "four" has only its plain ideas, that is, a smaller model, a higher rate
that falls in a line, rotary positions, and vectors for the three characters before. It has
AdamW, GPT-2's norms and initial weights, and more steps than the record. The three take
turns, so that their times can be compared; the record and the four go on to nine seeds.

Also, the whole of the ideas without the characters before, at half and at twice the
learning rates: perhaps it was missed only because the rates no longer fitted.

Rivals: nanoGPT's recipe; the record with all its ideas.

Null: the ideas save no time: a ratio of 1.

Statistic: seconds of the processor on one thread, and the loss on the speedrun's test
windows. The interval is that of the reference's seconds over those of the four ideas, from
the lowest to the highest over three seeds.
"""

from studies.harness import alike, count, verdict
from studies.scaling.speedrun import (
    IDEAS,
    LENGTHS,
    SETTINGS,
    STEPS,
    WAYS,
    judge,
    recipe_of,
    train_recipe,
)

CHAPTER = "scaling"
CLAIM = (
    "A small GPT with four plain ideas reaches the loss of nanoGPT's recipe on tiny "
    "Shakespeare in less than a tenth of its processor time"
)
RIVAL = "nanoGPT's recipe; the fastest recipe, with all seven ideas"
NULL = "the ideas save no time: a ratio of 1"
FOUR = ["size", "schedule", "rotary", "before"]
FOUR_STEPS = 800
RATES = {"without before, half the rates": 0.5, "without before, twice the rates": 2.0}
TURNS = ("reference", "record", "four")


def plan(small):
    """Return the settings of all runs, or one step of each on the Sonnets if ``small``."""
    corpus, steps = ("sonnets", 1) if small else (SETTINGS["corpus"], None)
    seeds = [0] if small else [0, 1, 2]
    runs = [(way, seed) for seed in seeds for way in TURNS]
    if not small:
        runs += [(way, seed) for seed in range(3, 9) for way in TURNS[1:]]
    runs += [(way, seed) for way in RATES for seed in seeds]
    return [
        {"corpus": corpus, "steps": steps, "group": "ways", "way": way, "seed": seed}
        for way, seed in runs
    ]


def recipe(way, steps=None):
    """Return a recipe of this study.

    Parameters
    ----------
    way : str
        One of `TURNS` or of `RATES`.
    steps : int, optional
        Default: as many as the recipe has.

    Returns
    -------
    lmcourse.speedrun.Recipe
    """
    if way == "four":
        return recipe_of(FOUR, steps or FOUR_STEPS)
    if way in RATES:
        rates = {
            name: RATES[way] * IDEAS["muon"][name]
            for name in ("muon_learning_rate", "learning_rate")
        }
        return recipe_of(WAYS["without before"], steps or STEPS, **rates)
    return recipe_of(WAYS[way], steps or LENGTHS[way])


def run(_folder, group, corpus, steps, seed, way):
    """Train by a recipe and judge the model.

    Parameters
    ----------
    _folder : Path
        Unused: no weights are saved.
    group : {"ways"}
    corpus : str
        Its name, as `load_corpus` takes it.
    steps : int or None
        None stands for as many as the recipe has.
    seed : int
    way : str
        As of `recipe`.

    Returns
    -------
    dict
        ``way``, ``seed``, and of what `studies.scaling.speedrun.judge` returns
        ``parameters``, ``loss``, ``tuning`` and ``seconds``.
    """

    def entry(training, tuning, vocab_size, seed):
        """Return a model trained by the recipe; the tuning text is not used.

        ``training``, ``tuning`` : ids (characters,); ``vocab_size``, ``seed`` : int.
        """
        return train_recipe(recipe(way, steps), training, vocab_size, seed)

    outcome = judge(entry, corpus, seed)
    outcome.pop("wall")  # it depends on what else the machine does
    return {"way": way, "seed": seed} | outcome


def summary(results):
    """Compare the seconds of the four ideas and of the reference, seed by seed.

    Parameters
    ----------
    results : dict of str to list of dict
        Group → outcomes of its runs (`studies.harness`).

    Returns
    -------
    dict
        ``n``, ``seeds``; ``interval``, of the reference's seconds over the four ideas';
        ``verdict``: whether all these are above ten, and each run of the four ideas has a
        lower loss than each of the reference.
    """
    by_way = {
        way: sorted(alike(results["ways"], way=way), key=lambda row: row["seed"])
        for way in ("reference", "four")
    }
    pairs = zip(by_way["reference"], by_way["four"], strict=False)  # the four: more seeds
    ratios = [slow["seconds"] / fast["seconds"] for slow, fast in pairs]
    losses = {way: [row["loss"] for row in rows] for way, rows in by_way.items()}
    holds = min(ratios) > 10 and max(losses["four"]) < min(losses["reference"])
    interval = [round(min(ratios), 2), round(max(ratios), 2)]
    return count(results["ways"]) | {"interval": interval, "verdict": verdict(holds)}
