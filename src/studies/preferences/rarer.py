"""Does DPO make the chosen lines likelier, and does the rejected line matter?

What varies: the seed of our GPT, those of *preferences*; which two of four lines are a
pair: those with the most and the fewest echoes; the two with the fewest, so that both are
poor; the best one and another best one that was written to the same request and has as many
echoes.

Rival: the chosen lines become likelier, as in fine-tuning. Null: pairs of equals, in which
chosen lines are as good as before, but nothing is better in them than in the rejected.

Statistics: nats by which the chosen lines and the rejected ones become likelier than under
the reference, on the pairs it was trained on and on others; echoes a line of drawn answers,
and of the lines that were chosen.

Foretold before it was run, and why: `FORETOLD`. Of this, what it says of chosen and
rejected lines had been seen in two models of other seeds, what it says of equals in one.
"""

import numpy as np

from lmcourse.preferences import (
    best_of,
    reference_log_probs,
)
from studies.harness import count, grid, verdict
from studies.preferences.answering import answering_model
from studies.preferences.preferences import (
    SETTINGS,
    Runs,
    counted,
    echoes,
    extremes,
)

CHAPTER = "preferences"
AFTER = ("sonnets",)
CLAIM = (
    "Trained for a hundred steps of DPO to prefer its best lines to its worst, our GPT "
    "finds both less likely than before"
)
RIVAL = "DPO makes the chosen lines likelier"
NULL = (
    "pairs of two lines with equally many echoes: they become less likely, too, but by far "
    "fewer nats"
)
FORETOLD = {
    "likelier": "The chosen lines become less likely, the rejected ones far less.",
    "both poor": (
        "Trained on pairs of two poor lines, the model writes more echoes than are in the "
        "lines that were chosen: what is learned is a direction."
    ),
    "equals": (
        "Trained on the best lines against others as good, it writes hardly more echoes "
        "than before."
    ),
}


def plan(small):
    """Return the settings of all runs: one for each seed.

    Parameters
    ----------
    small : bool
        Whether to return one short run.

    Returns
    -------
    list of dict
        The arguments of each run: ``group``, which is "gpt"; ``seed``; ``share`` of all
        steps and answers, 1 for a whole run.
    """
    if small:
        return grid(group="gpt", seed=0, share=0.05)
    return grid(group="gpt", seed=SETTINGS["seeds"], share=1.0)


def run(folder, group, seed, share):
    """Train our GPT from one seed by DPO on each kind of pairs, and measure it.

    Parameters
    ----------
    folder : Path
        Not used: no weights are kept.
    group : {"gpt"}
        The only kind of run; unused.
    seed : int
        Of all that is drawn at random.
    share : float
        Which part of all steps and answers is done, above 0 to 1.

    Returns
    -------
    dict
        The setting ``seed``; ``before``: of the answers before DPO, a dict with ``echoes``
        a line, words that begin with the same letter as another word of their line, and
        other means. For each kind of pairs (``far apart``, ``both poor``,
        ``equals``) a dict: ``pairs``, how many; ``after``, the same of the lines after
        training on them; ``chosen`` and ``rejected``, echoes a line of the pairs;
        ``gained`` and ``gained, new``, dicts, by how many nats ``chosen`` and ``rejected``
        lines became likelier: those trained on, and others that are far apart.
    """
    runs = Runs(seed, share)
    reference = answering_model(runs)
    row = {"seed": seed, "before": counted(runs.answers(reference))}
    number = runs.part(SETTINGS["groups"])
    pairs = kinds_of_pairs(*runs.groups(reference, number, 4, 2000 + seed), seed)
    new = kinds_of_pairs(*runs.groups(reference, number, 4, 7000 + seed), seed)
    for kind, trained_on in pairs.items():
        row[kind] = moved_by(runs, reference, trained_on, new["far apart"])
    return row


def kinds_of_pairs(requests, groups, seed):
    """Return pairs of three kinds from groups of answers.

    Parameters
    ----------
    requests : list of str
        What the answers answer: one a group.
    groups : list of list of str
        The answers to each request.
    seed : int
        Of the draw of equals.

    Returns
    -------
    dict of str to list of (str, str, str)
        Kind → request, chosen line, rejected line. Echoes are words that begin with the
        same letter as another word of their line.

        - ``far apart``: the lines of a group with the most and with the fewest echoes,
        - ``both poor``: the two with the fewest, the better one chosen,
        - ``equals``: the line of a group with the most echoes, and another one, as good,
          that is the best of a group with the same request; groups without such a line are
          left out.

        Of the first two kinds pairs with equally many echoes are left out.
    """
    asked = list(zip(requests, groups, strict=True))
    # Sorted, the second is the better one of the two poorest, and the first the worse.
    poor = [(ask, *sorted(group, key=echoes)[1::-1]) for ask, group in asked]
    apart = [(ask, *extremes(group)) for ask, group in asked]
    rng = np.random.default_rng(seed)
    best = best_of(groups, echoes)
    equals = []
    for ask, line in zip(requests, best, strict=True):
        others = [
            other
            for its, other in zip(requests, best, strict=True)
            if its == ask and other != line and echoes(other) == echoes(line)
        ]
        if others:
            equals.append((ask, line, others[rng.integers(len(others))]))
    return {
        "far apart": [pair for pair in apart if echoes(pair[1]) > echoes(pair[2])],
        "both poor": [pair for pair in poor if echoes(pair[1]) > echoes(pair[2])],
        "equals": equals,
    }


def moved_by(runs, reference, pairs, new):
    """Train a model by DPO on pairs; measure what it writes, and which lines are likelier.

    A whole run takes 100 steps.

    Parameters
    ----------
    runs : Runs
        Of the study *preferences*, from one seed: its methods ``dpo`` trains, ``encoded``
        makes ids of dialogues, ``answers`` writes a model's lines.
    reference : GPT
        The model that answers, with which the training begins; it is left as it is.
    pairs, new : list of (str, str, str)
        Those it is trained on, and others of the kind ``far apart``.

    Returns
    -------
    dict
        ``pairs``, how many; ``after``, what its lines have: ``echoes`` a line (words that
        begin with the same letter as another word of their line), ``characters``, ``words``
        and more; ``chosen`` and ``rejected``: echoes a line of the pairs' lines; ``gained``
        and ``gained, new``: dicts of the nats by which ``chosen`` and ``rejected`` lines
        have become likelier on average.
    """
    model = runs.dpo(reference, pairs, SETTINGS["steps"][-1])

    def gained(some):
        """Return by how many nats both sides of some pairs have become likelier.

        ``some`` : list of (request, chosen, rejected). A dict: "chosen" and "rejected" →
        the mean over pairs of a line's log-probability under the model, less that under the
        reference.
        """
        requests, *sides = zip(*some, strict=True)
        dialogues = [runs.encoded(requests, side) for side in sides]
        nats = [
            (
                reference_log_probs(model, *each) - reference_log_probs(reference, *each)
            ).mean()
            for each in dialogues
        ]
        return {name: round(x.item(), 3) for name, x in zip(SIDES, nats, strict=True)}

    lines = dict(zip(SIDES, list(zip(*pairs, strict=True))[1:], strict=True))
    return {
        "pairs": len(pairs),
        "after": counted(runs.answers(model)),
        **{
            side: round(float(np.mean(list(map(echoes, lines[side])))), 3) for side in SIDES
        },
        "gained": gained(pairs),
        "gained, new": gained(new),
    }


SIDES = ("chosen", "rejected")


def summary(results):
    """Return what is stored beside the outcomes.

    Parameters
    ----------
    results : dict of str to list of dict
        Group → outcomes of its runs. Those of "gpt" have ``seed``, and "far apart", a dict,
        in which ``["gained"]["chosen"]`` is by how many nats the chosen lines of the
        best-against-worst pairs have become likelier than before DPO.

    Returns
    -------
    dict
        ``n``, the number of outcomes, and their ``seeds``; ``interval``: [lowest, highest]
        of these nats over seeds; ``verdict``, "holds" or "not so": whether all are below 0.
    """
    nats = [row["far apart"]["gained"]["chosen"] for row in results["gpt"]]
    return count(results["gpt"]) | {
        "interval": [round(min(nats), 4), round(max(nats), 4)],
        "verdict": verdict(max(nats) < 0),
    }
