"""What does it bring to draw lines, choose and train again and again?

What varies: the seed of our GPT, those of *preferences*; how the choices between lines are
used: fine-tuning on the best of each four, fine-tuning on any of each four, or DPO on the
best and the worst; the round. In each round the model that the last round has made writes
four new lines to each request, and is trained on them for a hundred steps.

Rival: one round of DPO. Null: fine-tuning on any of the four.

Statistics: echoes a line of drawn answers, words that begin with the same letter as another
word of their line; the loss of held-out text and answers, in nats a character; how far the
model is from where it began, in nats an answer (KL); the share of different answers.

Foretold before it was run, and why: `FORETOLD`. Of this, four rounds of fine-tuning on the
best had been seen with one other seed.
"""

import numpy as np

from lmcourse.preferences import best_of, train_answers
from studies.harness import count, grid, verdict
from studies.preferences.answering import answering_model
from studies.preferences.preferences import SETTINGS, Runs, echoes, extremes

CHAPTER = "preferences"
AFTER = ("sonnets",)
CLAIM = (
    "If our GPT writes new lines, and is fine-tuned on the best of each four again, it has "
    "more echoes in the second round than after one round of DPO"
)
RIVAL = "one round of DPO, with half as many lines and steps"
NULL = "in each round, fine-tuning on any of each four"
FORETOLD = {
    "again": (
        "Fine-tuned on its best lines again, the model passes one round of DPO in the "
        "second round, and has more echoes still in the third: the best of four new lines "
        "are better each time, since those they are chosen from are."
    ),
    "price": (
        "In the second round answers are predicted worse than after one round of DPO, by "
        "twice as many nats a character or more."
    ),
    "DPO again": "A second round of DPO brings more echoes than two rounds of fine-tuning.",
    "any line": "Fine-tuned on any of its lines, the model moves by less than one echo.",
}
ROUNDS = {"the best": 3, "any line": 3, "DPO": 2}
RATE = 1e-3  # of fine-tuning: the better of the two rates of *preferences*


def plan(small):
    """Return the settings of all runs: one for each seed and way.

    Parameters
    ----------
    small : bool
        Whether to return short runs, one of each way.

    Returns
    -------
    list of dict
        The arguments of each run: ``group``, the way of training, "the best", "any line" or
        "DPO"; ``seed``; ``share`` of all steps and answers, 1 for a whole run.
    """
    if small:
        return grid(group=list(ROUNDS), seed=0, share=0.05)
    return grid(group=list(ROUNDS), seed=SETTINGS["seeds"], share=1.0)


def run(folder, group, seed, share):
    """Make one run: three rounds of one way of training, of DPO two.

    In each round of a whole run the model writes four lines to each of 400 requests.

    Parameters
    ----------
    folder : Path
        Not used: no weights are kept.
    group : {"the best", "any line", "DPO"}
        The way: fine-tuning on the best of each four lines or on any of them, or DPO on the
        best and the worst.
    seed : int
        Of all that is drawn at random.
    share : float
        Which part of all steps and answers is done, above 0 to 1.

    Returns
    -------
    dict
        The setting ``seed``; ``rounds``: list of dict, one a round, the first is before any
        training. Means of the answers: ``echoes`` (words that begin with the same letter as
        another word of their line), ``characters`` and ``words`` a line and more;
        ``obeyed``, the share with the letter asked for; ``losses``, a dict in nats a
        character, of held-out ``text`` and ``answers``; ``kl`` from the model before any
        training, in nats an answer; ``trained on``, the mean of echoes of the lines that
        the round has chosen, None before any training.
    """
    runs = Runs(seed, share)
    model = reference = answering_model(runs)
    rounds = [{"trained on": None} | runs.measured(reference, reference)]
    rng = np.random.default_rng(seed)
    for number in range(ROUNDS[group]):
        # The first round's lines are those of *preferences*.
        drawn = runs.groups(
            model, runs.part(SETTINGS["groups"]), 4, 2000 + seed + 100 * number
        )
        model, chosen = one_round(runs, model, group, *drawn, rng)
        mean = round(float(np.mean([echoes(line) for line in chosen])), 3)
        rounds.append({"trained on": mean} | runs.measured(model, reference))
    return {"seed": seed, "rounds": rounds}


def one_round(runs, model, way, requests, groups, rng):
    """Train a model on what is chosen of its own lines.

    A whole run takes 100 steps.

    Parameters
    ----------
    runs : Runs
        Of the study *preferences*, from one seed: its methods ``dpo`` trains by DPO,
        ``encoded`` makes ids of dialogues, and ``part`` says how many of the steps a
        shorter run takes.
    model : GPT
        The model that wrote the lines; it is left as it is.
    way : {"the best", "any line", "DPO"}
        The way of training: fine-tuning on the best of each four lines or on any of them,
        or DPO on the best and the worst.
    requests : list of str
        What the lines answer: one a group.
    groups : list of list of str
        Four lines to each request.
    rng : Generator
        NumPy's, which draws any line of each four.

    Returns
    -------
    model : GPT
        The trained copy.
    chosen : list of str
        The lines that it was trained on; of DPO, the better of each pair: the one with more
        echoes, words that begin with the same letter as another word of their line.
    """
    steps = SETTINGS["steps"][-1]
    if way == "DPO":
        pairs = [
            (ask, *extremes(group)) for ask, group in zip(requests, groups, strict=True)
        ]
        pairs = [pair for pair in pairs if echoes(pair[1]) > echoes(pair[2])]
        return runs.dpo(model, pairs, steps), [chosen for _, chosen, _ in pairs]
    if way == "the best":
        chosen = best_of(groups, echoes)
    else:
        chosen = [group[rng.integers(len(group))] for group in groups]
    trained = train_answers(
        model,
        runs.encoded(requests, chosen),
        runs.part(steps),
        RATE,
        batch=2 * SETTINGS["batch"],  # DPO reads two answers a pair
        seed=runs.seed,
    )
    return trained, chosen


def summary(results):
    """Return what is stored beside the outcomes.

    Parameters
    ----------
    results : dict of str to list of dict
        Way ("the best", "any line", "DPO") → outcomes of its runs, one a seed, in the order
        of seeds: ``seed``; ``rounds``, list of dict, one a round, the first before any
        training, with ``echoes``, the mean a line, words that begin with the same letter as
        another word of their line.

    Returns
    -------
    dict
        ``n``, the number of outcomes of "the best", and their ``seeds``; ``interval``:
        [lowest, highest] difference over seeds, in echoes a line: two rounds of fine-tuning
        on the best less one of DPO; ``verdict``, "holds" or "not so": whether all are above
        0.
    """
    more = [
        best["rounds"][2]["echoes"] - dpo["rounds"][1]["echoes"]
        for best, dpo in zip(results["the best"], results["DPO"], strict=True)
    ]
    return count(results["the best"]) | {
        "interval": [round(min(more), 4), round(max(more), 4)],
        "verdict": verdict(min(more) > 0),
    }
