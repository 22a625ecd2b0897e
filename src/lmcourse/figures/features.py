"""What the chapter *features* draws: data in, figure or view out."""

import textwrap

import matplotlib.pyplot as plt
import numpy as np

from lmcourse import views

LOSSES = {
    "whole": "nothing is replaced",
    "features": "eight features",
    "principal directions": "eight principal directions",
    "mean": "the mean state",
    "zero": "zeros",
}
KINDS = {"features": "o", "neurons": "s", "random directions": "v", "labels": "D"}
TOLD = {"labels": "difference of means"}


def losses(rows):
    """Draw the loss of our GPT with each replacement of a layer's states, a bar for each.

    Parameters
    ----------
    rows : dict of str to list of float
        What was put in place of the states → the loss on each window of held-out text, in
        nats a character: "whole" (they stay), "features" (eight),
        "principal directions" (eight), "mean" (the mean state), "zero".

    Returns
    -------
    None
        The figure is shown.
    """
    means = [np.mean(rows[name]) for name in LOSSES]
    _, axis = plt.subplots(figsize=(7.2, 2.4))
    axis.barh(range(len(means)), means, color=views.PALETTE[0])
    axis.set_yticks(range(len(means)), LOSSES.values())
    axis.set_ylim(len(means) - 0.5, -0.5)  # the whole model is on top
    axis.set_xlabel("loss on held-out sonnets, nats a character")
    plt.show()


def scores(rows, marks):
    """Draw how well the best unit of each kind detects each property.

    Parameters
    ----------
    rows : list of dict
        One a seed: kind of unit ("features", "neurons", "random directions", or "labels",
        which are differences of means) → a list of the best unit's F1 for each property, 0
        to 1. Means over the seeds are drawn.
    marks : sequence of str
        The properties, such as "vowel".

    Returns
    -------
    None
        The figure is shown.
    """
    means = {kind: np.mean([row[kind] for row in rows], 0) for kind in KINDS}
    _, axis = plt.subplots(figsize=(7.2, 6.5))
    for (kind, mark), color in zip(KINDS.items(), views.PALETTE, strict=False):
        form = {"color": color, "label": TOLD.get(kind, kind), "ms": 6}
        axis.plot(means[kind], range(len(marks)), mark, **form)
    names = [textwrap.fill(mark, 24) for mark in marks]  # else a phone has no room beside
    axis.set_yticks(range(len(marks)), names, linespacing=0.9)
    axis.set_ylim(len(marks) - 0.5, -0.5)
    axis.set(xlabel="F1", xlim=(0, 1.02), xticks=[0, 0.5, 1])
    axis.legend(loc="upper center", bbox_to_anchor=(0.4, -0.1))
    plt.show()


def steering(rows, target):
    """Draw what a push does to a character, and what the others lose by it.

    Parameters
    ----------
    rows : list of dict
        Of one seed, one for each push: ``target``, the character; ``way``, along which
        direction, of which "best of five" (features), "difference of means" and "random
        direction" are drawn, each as a line through its strengths; ``probs``, of each
        window the mean probability of the character, and ``losses``, of each window the
        mean loss of the other characters, in nats.
    target : str
        The character towards which states are pushed, by its name, such as "a comma".

    Returns
    -------
    None
        The figure is shown.
    """
    _, axis = plt.subplots(figsize=(7.2, 3.2))
    ways = ("best of five", "difference of means", "random direction")
    names = ("best feature of five", "difference of means", "random direction")
    chosen = [row for row in rows if row["target"] == target]
    for way, name, mark, color in zip(ways, names, "oDv", views.PALETTE, strict=False):
        points = [row for row in chosen if row["way"] == way]
        probs = [np.mean(row["probs"]) for row in points]
        lost = [np.mean(row["losses"]) for row in points]
        axis.plot(probs, lost, mark + "-", color=color, label=name)
    axis.set(xlabel=f"probability of {target}", ylabel="loss of the others, nats")
    axis.legend(fontsize=9)
    plt.show()


def places(text, at, question, before=24):
    """Show the text that leads to given positions of a feature, a set of them at a time.

    The reader chooses which set.

    Parameters
    ----------
    text : str
        Where the feature was looked for.
    at : dict of str to list of int
        Name of a set of positions, such as "its ten strongest" → the positions of
        characters in the text, from 0.
    question : str
        What stands above the choice, such as "Which places?".
    before : int
        How many characters are shown before that at each position.

    Returns
    -------
    View
    """
    shown = {}
    for name, numbers in at.items():
        lines = [text[max(0, end - before) : end + 1] for end in numbers]
        listed = "\n".join("… " + line.replace("\n", " / ") for line in lines)
        shown[name] = ("The last character of each is where the feature is.", listed)
    return views.samples(question, shown)
