"""What the chapter *preferences* draws: data in, figure or view out."""

import matplotlib.pyplot as plt
import numpy as np

from lmcourse import views
from lmcourse.preferences import properties

WAYS = {
    "DPO": ("DPO, harder and harder", "o"),
    "equal lengths": ("DPO, pairs of equal length", "s"),
    "choices at random": ("DPO, choices at random", "v"),
    "filtered": ("fine-tuned on the best of four", "D"),
}
# An open square, larger than what it would hide behind.
OPEN = {"equal lengths": {"ms": 10, "mfc": "none", "mew": 1.5, "zorder": 3}}


def prices(rows):
    """Draw what each way to use a preference gains, and what it costs.

    Parameters
    ----------
    rows : list of list of dict
        Of each seed, for each way to train: ``way``, its name; ``echoes`` a line, words
        that begin with the same letter as another word of their line; and ``losses``, a
        dict, of which "answers" is used: on held-out lines, in nats a character. Names that
        are drawn begin with "DPO" (a line through all of them), "equal lengths", "choices
        at random" or "filtered"; "reference" is the model before, from which losses are
        counted, and "best of four" the best of its lines: both are lines across.

    Returns
    -------
    None
        The figure is shown.
    """
    _, axis = plt.subplots(figsize=(7.2, 4.4))
    best = np.mean([alike(row, "best of four")[0]["echoes"] for row in rows])
    start = np.mean([alike(row, "reference")[0]["echoes"] for row in rows])
    for height, style, name in ((best, "--", "best of four lines"), (start, ":", "before")):
        axis.axhline(height, color="0.5", ls=style, lw=1)
        # Its name stands at its end, where no point is.
        at = {"xy": (1, height), "xycoords": ("axes fraction", "data"), "ha": "right"}
        axis.annotate(name, xytext=(0, 2), textcoords="offset points", **at)
    for (way, (name, mark)), color in zip(WAYS.items(), views.PALETTE, strict=False):
        for number, row in enumerate(rows):
            before = alike(row, "reference")[0]["losses"]["answers"]
            points = alike(row, way)
            lost = [point["losses"]["answers"] - before for point in points]
            gained = [point["echoes"] for point in points]
            line = "-" if way == "DPO" else ""
            label = name if number == 0 else None
            look = {"color": color, "lw": 1, "label": label} | OPEN.get(way, {"ms": 6})
            axis.plot(lost, gained, mark + line, **look)
    axis.set(xlabel="what held-out lines lose, nats", ylabel="echoes a line")
    axis.set_xticks([0, 0.2, 0.4, 0.6, 0.8])
    axis.legend(loc="upper center", bbox_to_anchor=(0.45, -0.3), ncols=1)
    plt.show()


def alike(rows, way):
    """Return the rows whose ``way`` begins with a name, a list.

    ``rows`` : list of dict with ``way``, a str; ``way`` : the name, such as "DPO".
    """
    return [row for row in rows if row["way"].startswith(way)]


def best_of_n(rows, n):
    """Draw what the best of n lines have, chosen by a reward that knows no echoes.

    Parameters
    ----------
    rows : list of list of dict
        Of each seed, for each n: the mean ``reward``, without unit; ``words`` a line; ``a
        word``, the share of words, 0 to 1, that begin with the same letter as another word
        of their line.
    n : list of int
        Among how many lines the best is chosen.

    Returns
    -------
    None
        The figure is shown.
    """
    parts = {"reward": "the reward", "words": "words a line", "a word": "echoes a word"}
    _, axes = plt.subplots(1, len(parts), figsize=(7.2, 2.8))
    for axis, (key, name), color in zip(axes, parts.items(), views.PALETTE, strict=False):
        for row in rows:
            axis.plot(n, [point[key] for point in row], "o-", color=color, ms=4, lw=1)
        axis.set(xscale="log", xlabel="best of n", title=name)
        axis.set_xticks(n, n)
        axis.minorticks_off()
    axes[2].set_ylim(0, 1)
    plt.show()


def counted(answers):
    """Return answers, the number of echoes in brackets behind each, a list of str.

    An echo is a word that begins with the same letter as another word of the answer.

    ``answers`` : list of str.
    """
    return [f"{line} ({properties(line)['echoes']})" for line in answers]


def writers(lines):
    """Show the lines of several models, one of them at a time.

    Parameters
    ----------
    lines : dict of str to list of str
        Model → its answers, one line each.

    Returns
    -------
    View
        A panel a model: the mean number of echoes, words that begin with the same letter as
        another word of their line, and each answer with its number.
    """
    shown = {}
    for name, answers in lines.items():
        mean = np.mean([properties(line)["echoes"] for line in answers])
        note = f"{len(answers)} answers; echoes a line: {mean:.1f}"
        shown[name] = (note, "\n".join(counted(answers)))
    return views.samples("Who writes?", shown)
