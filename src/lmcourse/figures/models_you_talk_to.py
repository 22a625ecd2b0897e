"""What the chapter *models-you-talk-to* draws: data in, figure or view out."""

from html import escape

import matplotlib.pyplot as plt
import numpy as np

from lmcourse import views
from lmcourse.numbers import bootstrap_interval, percent
from lmcourse.views.choice import choice
from lmcourse.views.markup import table


def next_words(question, continuations):
    """Show what may follow a sentence, in several states of a model, one to choose.

    Parameters
    ----------
    question : str
        What the reader is asked to choose.
    continuations : dict of str to (str, list of (str, float))
        What was done to the model → the sentence, and the likeliest next words with
        probabilities, 0 to 1.

    Returns
    -------
    View
    """
    plain, panels = [], []
    for name, (text, words) in continuations.items():
        rows = [(word.strip() or repr(word), percent(share)) for word, share in words]
        panels.append(
            f"<p><em>{escape(text)} …</em></p>{table(('next', 'probability'), rows)}"
        )
        listed = ", ".join(f"{word} {share}" for word, share in rows)
        plain.append(f"[{name}]\n{text} … {listed}")
    return choice(
        "samples", question, "\n\n".join(plain), [*map(escape, continuations)], panels
    )


def answers(rows):
    """Show questions and what the model answers, one to choose.

    Parameters
    ----------
    rows : list of dict
        Of the study *models-you-talk-to*: ``question``; ``text``, the answer; ``ended``,
        whether it came to its end.

    Returns
    -------
    View
    """
    choices = {
        row["question"]: ("It answers:", row["text"] + ("" if row["ended"] else " …"))
        for row in rows
    }
    return views.samples("Ask it:", choices)


def written(rows, line):
    """Show how a line goes on by each way to choose the next token.

    Parameters
    ----------
    rows : list of dict
        Of the study *models-you-talk-to*: ``line``; ``way``, how tokens were chosen;
        ``text``, what follows the line.
    line : str
        The one whose rows are shown.

    Returns
    -------
    View
    """
    choices = {
        row["way"]: ("The first words are ours.", line + row["text"])
        for row in rows
        if row["line"] == line
    }
    return views.samples("How the next token is chosen:", choices)


def bits(rows, counted):
    """Draw the loss by the bits of a weight.

    Parameters
    ----------
    rows : list of dict
        Of the study *models-you-talk-to*: ``block``, how many weights share a scale (0: a
        whole row); ``bits``; ``losses``, poem by poem, in nats a token.
    counted : list of float
        The losses of a model that counts single tokens, poem by poem, in nats a token.

    Returns
    -------
    None
        The figure is shown.
    """
    _, ax = plt.subplots(figsize=(7, 3.2))
    kinds = {"a scale for each 32": (32, "o-", 0), "a scale for each row": (0, "s--", 1)}
    for label, (block, form, color) in kinds.items():
        mine = sorted((r for r in rows if r["block"] == block), key=lambda r: r["bits"])
        x = [row["bits"] for row in mine]
        ends = [bootstrap_interval(row["losses"]) for row in mine]
        means = [np.mean(row["losses"]) for row in mine]
        views.band(ax, x, ends, color=views.PALETTE[color])
        ax.plot(x, means, form, color=views.PALETTE[color], label=label)
    ax.axhline(np.mean(counted), color=views.PALETTE[6], ls=":", label="counting tokens")
    ax.set(xlabel="bits for each weight", ylabel="loss (nats a token)", ylim=(0, None))
    ax.legend(loc="upper right")
    plt.show()


def fewer_bits(rows, line):
    """Show what the model writes with so many bits for each weight, one to choose.

    Parameters
    ----------
    rows : list of dict
        Of the study *models-you-talk-to*: ``block``, how many weights share a scale (those
        of 32 are shown); ``bits``; ``text``, what follows the line.
    line : str
        How it begins.

    Returns
    -------
    View
    """
    choices = {
        f"{row['bits']} bits": ("A scale for each 32 weights.", line + row["text"])
        for row in rows
        if row["block"] == 32
    }
    return views.samples("Bits for each weight:", choices)


def shots(rows):
    """Draw how many words are answered rightly by the number of examples.

    Parameters
    ----------
    rows : list of dict
        Of the study *models-you-talk-to*: ``task``, its name; ``shots``, the number of
        examples; ``right``, whether the examples are right, a bool; ``hits``, word by word
        1 for a right answer, else 0.

    Returns
    -------
    None
        The figure is shown.
    """
    _, ax = plt.subplots(figsize=(7, 3.2))
    tasks = list(dict.fromkeys(row["task"] for row in rows))
    positions = {count: x for x, count in enumerate(sorted({r["shots"] for r in rows}))}
    for color, task in enumerate(tasks):
        mine = [row for row in rows if row["task"] == task and row["right"]]
        wrong = [row for row in rows if row["task"] == task and not row["right"]]
        x = [positions[row["shots"]] for row in mine]
        shares = [np.mean(row["hits"]) for row in mine]
        form = ("o-", "s-", "^-")[color % 3]
        ink = views.PALETTE[color]
        ax.plot(x, shares, form, color=ink, label=task)
        x = [positions[row["shots"]] + 0.12 for row in wrong]
        shares = [np.mean(row["hits"]) for row in wrong]
        ax.plot(x, shares, "x", color=ink, ms=9)
    ax.plot([], [], "x", color=views.PALETTE[6], label="wrong examples")
    ax.set_xticks([*positions.values()], [*positions])
    ax.set(xlabel="examples", ylabel="right answers", ylim=(-0.03, 1.03))
    ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2, columnspacing=1)
    plt.show()


def moves(row):
    """Draw layer by layer where an answer sits, and when the lens can read it.

    Parameters
    ----------
    row : dict
        Of the study *models-you-talk-to*, in which the model is asked for capitals:
        ``word`` and ``last``, lists of how many answers become another country's if the
        state of the country's name, or of the prompt's last word, is copied from a prompt
        with that country, before each layer; ``of``, how many countries there are;
        ``lens``, for each country the first state from which on the lens (what the model
        would say if it ended there) reads the capital: 0 is before layer 0.

    Returns
    -------
    None
        The figure is shown.
    """
    _, ax = plt.subplots(figsize=(7, 3.4))
    depth = len(row["word"])
    read = [np.mean(np.array(row["lens"]) <= state) for state in range(depth + 1)]
    lines = {
        "the country's state is copied": (np.array(row["word"]) / row["of"], "o-", 1),
        "the last word's state is copied": (np.array(row["last"]) / row["of"], "s-", 0),
        "the lens reads the capital": (np.array(read), "^--", 2),
    }
    for label, (shares, form, color) in lines.items():
        ax.plot(
            range(len(shares)), shares, form, color=views.PALETTE[color], label=label, ms=4
        )
    ax.set(
        xlabel=f"before layer ({depth}: at the end)",
        ylabel="share of countries",
        ylim=(-0.03, 1.03),
    )
    ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0))
    plt.show()


def heads(rows):
    """Draw what copying each head from the twin sentence does to the name that follows.

    Parameters
    ----------
    rows : list of dict
        Of the study *models-you-talk-to*, one a head: ``layer`` and ``head``, from 0;
        ``effect``, the mean change of how far the other person's name is ahead of the
        giver's, in logits, when the head's output at the last token is copied from the twin
        sentence, in which the other person gives.

    Returns
    -------
    None
        The figure is shown.
    """
    layers = 1 + max(row["layer"] for row in rows)
    count = 1 + max(row["head"] for row in rows)
    effect = np.zeros((count, layers))
    for row in rows:
        effect[row["head"], row["layer"]] = row["effect"]
    most = np.abs(effect).max()
    _, ax = plt.subplots(figsize=(7, 2.6))
    drawn = ax.imshow(effect, cmap=views.DIVERGING, vmin=-most, vmax=most, aspect="auto")
    ax.set(xlabel="layer", ylabel="head")
    ax.set_yticks(range(0, count, 2))
    ax.grid(visible=False)
    plt.colorbar(drawn, label="shift in logits")
    plt.show()
