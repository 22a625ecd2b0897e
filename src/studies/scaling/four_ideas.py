"""Are four of the speedrun's seven ideas enough?

What varies: the recipe. "record" is the fastest of the study *speedrun*; "four" has only
its plain ideas, that is, a smaller model, a higher rate that falls in a line, rotary
positions, and vectors for the three characters before. It has AdamW, GPT-2's norms and
initial weights, and more steps than the record. The two take turns on three seeds, so that
their times can be compared; the four ideas go on to nine.

Also, the whole of the ideas without the characters before, at half and at twice the
learning rates: perhaps it was missed only because the rates no longer fitted.

Rival: the record, with all its ideas.

Null: the ideas that are left out save no time: a ratio of 1.

Statistic: seconds of the processor on one thread, and the loss on the speedrun's test
windows. The interval is that of the four ideas' seconds over the record's, from the lowest
to the highest over three seeds.
"""

from statistics import median

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
    "With four of the speedrun's seven ideas a small GPT reaches the target loss on tiny "
    "Shakespeare in less than twice the record's processor time"
)
RIVAL = "the fastest recipe, with all seven ideas"
NULL = "the ideas that are left out save no time: a ratio of 1"
FOUR = ["size", "schedule", "rotary", "before"]
FOUR_STEPS = 800
RATES = {"without before, half the rates": 0.5, "without before, twice the rates": 2.0}
TURNS = ("record", "four")


def plan(small):
    """Return the settings of all runs: "record" and "four" in turn, then the others.

    There are three seeds, of "four" nine.

    Parameters
    ----------
    small : bool
        Whether it is one step of each, on the Sonnets.

    Returns
    -------
    list of dict
        The arguments of each run: ``corpus``, its name; ``steps`` of training, None for the
        recipe's own; ``group``, which is "ways"; ``way``, the recipe ("record", "four", or
        one of two at other rates); ``seed``.
    """
    corpus = "sonnets" if small else SETTINGS["corpus"]
    steps = 1 if small else None
    seeds = [0] if small else [0, 1, 2]
    runs = [(way, seed) for seed in seeds for way in TURNS]
    if not small:
        runs += [("four", seed) for seed in range(3, 9)]
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
        "four"; a recipe of the study *speedrun*, such as "record"; or one of these at other
        learning rates, "without before, half the rates" or "without before, twice the
        rates".
    steps : int, optional
        Default: as many as the recipe has.

    Returns
    -------
    lmcourse.speedrun.Recipe
        The settings of a model and of its training. "four" is a smaller model with a
        higher rate that falls in a line, rotary positions and vectors for the three
        characters before; "without before" has all ideas but the last.
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
        The only kind of run; unused.
    corpus : str
        Its name: "sonnets", "tinyshakespeare" or another that `load_corpus` knows.
    steps : int or None
        None stands for as many as the recipe has.
    seed : int
        Of the first weights, and of all that is drawn.
    way : str
        The name of a recipe: "four"; one of the ways of the study *speedrun*, such as
        "record"; or "without before, half the rates" or "without before, twice the rates".

    Returns
    -------
    dict
        The settings ``way``, ``seed``; ``parameters``, how many; ``loss``, on the test
        text, and ``tuning``, on the tuning text, in nats a character; ``seconds`` of the
        processor for the training.
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
    """Compare the seconds of the four ideas and of the record, seed by seed.

    Parameters
    ----------
    results : dict of str to list of dict
        Group → outcomes of its runs. Those of "ways": ``way``, the recipe, "record" or
        "four" among others; ``seed``; ``seconds`` of the processor; ``loss`` on the test
        text, in nats a character.

    Returns
    -------
    dict
        ``n``, the number of outcomes, and their ``seeds``; ``interval``, [lowest, highest]
        of the four ideas' seconds over the record's, seed by seed; ``verdict``, "holds" or
        "not so": whether all these are below two, and the median loss of the four ideas is
        the target or below.
    """
    record, four = (
        sorted(alike(results["ways"], way=way), key=lambda row: row["seed"])
        for way in TURNS
    )
    ratios = [
        slow["seconds"] / fast["seconds"]
        for slow, fast in zip(four, record, strict=False)  # the four ideas: more seeds
    ]
    reached = median(row["loss"] for row in four) <= SETTINGS["target"]
    holds = max(ratios) < 2 and reached
    interval = [round(min(ratios), 2), round(max(ratios), 2)]
    return count(results["ways"]) | {"interval": interval, "verdict": verdict(holds)}
