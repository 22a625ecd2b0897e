"""What the chapter *fine-tuning* draws: data in, figure or view out."""

import math
from html import escape
from itertools import groupby

import matplotlib.pyplot as plt
import numpy as np

from lmcourse import views
from lmcourse.probe import score


def coloured(letters):
    """Return letters with the strength of their colour.

    Parameters
    ----------
    letters : list of (float, list)
        For each letter of a text its probability in per cent, and the likeliest letters
        there, of any form: they are passed on.

    Returns
    -------
    list of [float, float, list]
        The same with a strength between them, 0 to 1: the surprise in bits divided by ten,
        at most 1.
    """
    rows = []
    for share, likely in letters:
        bits = -math.log2(max(share, 1e-7) / 100)
        rows.append([share, round(min(bits / 10, 1), 2), likely])
    return rows


def losses_in_words(row):
    """Return a sentence with a model's two losses on held-out poems, a str.

    ``row`` : dict with "Dickinson validation" and "Shakespeare validation", in nats a
    character.
    """
    hers = row["Dickinson validation"]
    his = row["Shakespeare validation"]
    return (
        "Loss on poems kept apart, nats per character: "
        f"Dickinson {hers:.2f}, Shakespeare {his:.2f}."
    )


def _painted(text, letters):
    """Return a text as HTML, with each letter on its colour.

    Parameters
    ----------
    text : str
    letters : list of [float, float, list]
        For each letter of the text its probability in per cent; how strong its colour is,
        at most 1, by the surprise; and the likeliest letters.

    Returns
    -------
    str
    """
    strengths = [round(strength, 1) for _, strength, _ in letters]
    spans = [
        f'<span style="background: rgba(217, 100, 43, {0.62 * abs(strength):.2f})">'
        f"{escape(''.join(letter for _, letter in run))}</span>"
        for strength, run in groupby(
            zip(strengths, text, strict=True), key=lambda pair: pair[0]
        )
    ]
    return f'<p style="white-space: pre-wrap">{"".join(spans)}</p>'


def surprise(stanzas, taught, moments):
    """Show two pieces, each letter coloured by how little a model expected it.

    Parameters
    ----------
    stanzas : dict of str to str
        Poet, "Dickinson" or "Shakespeare" → the piece.
    taught : dict of str to list of dict
        How the model was taught → its stored readings, one a moment. A reading has for each
        poet a list of [probability in per cent, likeliest letters], a letter of the piece
        each, and the losses "Dickinson validation" and "Shakespeare validation" in nats a
        character.
    moments : list of int
        After how many steps the readings were made.

    Returns
    -------
    View
        Stored are the pieces before and after all steps, of the first way to teach. Its
        data: ``pieces``, dicts with ``name`` of the poet and ``text``; ``moments``;
        ``ways``, dicts with ``name``, ``losses``, a sentence for each moment, and
        ``letters``, for each piece and moment what `coloured` returns.
    """
    ways = []
    for name, rows in taught.items():
        letters = [[coloured(row[poet]) for row in rows] for poet in stanzas]
        sentences = [losses_in_words(row) for row in rows]
        ways.append({"name": name, "losses": sentences, "letters": letters})
    shown = [{"name": poet, "text": text} for poet, text in stanzas.items()]
    first = ways[0]["losses"][0]
    last = ways[0]["losses"][-1]
    columns = [
        f"<div><p>{when}: {ways[0]['losses'][i]}</p>"
        + "".join(
            _painted(text, moment[i])
            for text, moment in zip(stanzas.values(), ways[0]["letters"], strict=True)
        )
        + "</div>"
        for i, when in ((0, "Before"), (-1, f"After {moments[-1]} steps"))
    ]
    beside = "display: flex; flex-wrap: wrap; gap: 0 2rem; grid-column: 1 / -1"
    return views.View(
        "surprise",
        {"pieces": shown, "ways": ways, "moments": moments},
        f'<div style="{beside}">{"".join(columns)}</div>',
        alt=f"A stanza, each letter coloured by surprise. Before: {first} After "
        f"{moments[-1]} steps with all weights: {last}",
    )


def control(runs, rate=3e-3):
    """Draw the loss on Shakespeare while a model reads one poet or the other.

    A line is the mean over the seeds, a band reaches from the least to the most.

    Parameters
    ----------
    runs : DataFrame
        Stored runs, a row each: ``method``; ``fed``, the poet it read; ``rate``, the
        highest learning rate; ``replayed``, how many windows of a batch are Shakespeare's
        all the same; ``curve``, a dict from the step (str) to the loss on Shakespeare in
        nats a character. Those that trained all weights and replayed nothing are drawn.
    rate : float
        The highest learning rate of the runs that are drawn.

    Returns
    -------
    None
        The figure is shown.
    """
    _, ax = plt.subplots(figsize=(7, 3.2))
    runs = runs[(runs.method == "all weights") & (runs.rate == rate)]
    for color, poet in enumerate(("Dickinson", "Shakespeare")):
        curves = runs[(runs.fed == poet) & (runs.replayed == 0)].curve
        steps = [int(step) for step in curves.iloc[0]]
        losses = np.array([list(curve.values()) for curve in curves])  # (seeds, moments)
        ink = views.PALETTE[color]
        form = ("o-", "s--")[color]
        ax.fill_between(
            steps, losses.min(0), losses.max(0), color=ink, alpha=0.25, linewidth=0
        )
        ax.plot(steps, losses.mean(0), form, color=ink, ms=4, label=f"reads {poet}")
    ax.set(xlabel="steps", ylabel="loss on Shakespeare")
    ax.legend(loc="lower right")
    plt.show()


def ways(runs):
    """Draw the losses on both poets for each method, learning rate by learning rate.

    A line a method, a point a learning rate; across is the mean loss on Dickinson, up that
    on Shakespeare.

    Parameters
    ----------
    runs : DataFrame
        Stored runs, a row each: ``method``, "all weights", "last layer", "LoRA" or
        "prefix"; ``fed``, the poet it read; ``rate``, the highest learning rate; ``seed``;
        ``replayed``, how many windows of a batch are Shakespeare's all the same; "Dickinson
        test", "Shakespeare validation" and "Shakespeare test", each a list of losses, one a
        poem, in nats a character. Those of seed 0 that read Dickinson alone are drawn.

    Returns
    -------
    None
        The figure is shown.
    """
    _, ax = plt.subplots(figsize=(7, 3.6))
    runs = runs[(runs.fed == "Dickinson") & (runs.replayed == 0) & (runs.seed == 0)]
    for color, method in enumerate(("all weights", "last layer", "LoRA", "prefix")):
        mine = runs[runs.method == method].sort_values("rate")
        his = mine["Shakespeare validation"] + mine["Shakespeare test"]
        form = ("o-", "s-", "^-", "D-")[color]
        ax.plot(
            mine["Dickinson test"].map(np.mean),
            his.map(np.mean),
            form,
            color=views.PALETTE[color],
            label=method,
        )
    ax.set(xlabel="loss on Dickinson", ylabel="loss on Shakespeare")
    ax.legend()
    plt.show()


def directions(outcomes, thin):
    """Draw what is learned if the change of each matrix has few directions.

    Parameters
    ----------
    outcomes : list of dict
        Of the study *directions*, one a seed, losses by test poem in nats a character:
        ``before`` the training of all weights, and ``rows``, each with ``losses`` if
        ``rank`` directions of each matrix's change are kept; ``kind`` says which,
        "strongest", "random" or "shuffled".
    thin : DataFrame
        Runs of LoRA, trained with few directions: ``rank``, and "Dickinson test", the
        losses on her test poems.

    Returns
    -------
    None
        The figure is shown.
    """
    _, ax = plt.subplots(figsize=(7, 3.2))
    trained = thin.assign(loss=thin["Dickinson test"].map(np.mean)).groupby("rank").loss
    means = trained.mean()
    ax.plot(means.index, means, "D-", color=views.PALETTE[3], label="LoRA")
    for color, kind in enumerate(("strongest", "random", "shuffled")):
        ranks = [row["rank"] for row in outcomes[0]["rows"] if row["kind"] == kind]
        losses = [
            np.mean([row["losses"] for row in each["rows"] if row["kind"] == kind], axis=1)
            for each in outcomes
        ]  # (seeds, ranks)
        means = np.mean(losses, axis=0)
        form = ("o-", "s--", "^:")[color]
        ax.plot(ranks, means, form, color=views.PALETTE[color], label=kind)
    before = np.mean([each["before"] for each in outcomes])
    ax.axhline(before, color=views.PALETTE[6], ls=":", label="before")
    ax.set_xscale("log", base=2)
    ticks = [1, 2, 4, 8, 16, 32, 64, 128]
    ax.set_xticks(ticks, ticks)
    ax.set(xlabel="directions in each change", ylabel="loss on Dickinson")
    ax.legend(ncols=2, loc="lower center", bbox_to_anchor=(0.5, 1.0), frameon=False)
    plt.show()


def marked(samples, untrained):
    """Show what models write behind a marker, or without one, one to choose.

    Parameters
    ----------
    samples : dict of str to list of str
        The marker, such as "(E)", which is shown first, or the model → texts, of which the
        first is shown.
    untrained : str
        A text of a model with random weights.

    Returns
    -------
    View
    """
    choices = {
        name: ("The first of the texts that were judged.", texts[0])
        for name, texts in samples.items()
    }
    choices["random weights"] = ("A model that has learned nothing.", untrained)
    return views.samples("Behind which marker?", choices, first="(E)")


def layers(rows, poets):
    """Draw how many poems are assigned to the right poet, layer by layer.

    Parameters
    ----------
    rows : DataFrame
        Stored results: ``length`` of a line in characters; ``reader``, what a classifier is
        given: "mean state" or "last state" of the line, the same with ", untrained", and
        "bag of words" or "pairs of letters", which have no layers; ``layer``, after how
        many layers; ``size``, how many poems have labels; ``hits``, for each held-out poem
        how often it is assigned rightly, 0 to 1. Drawn are lines of 20 characters, with 96
        labelled poems: the mean over the poets of the share assigned rightly.
    poets : array of shape (poems,)
        Whose the held-out poems are, str.

    Returns
    -------
    None
        The figure is shown.
    """
    _, ax = plt.subplots(figsize=(7, 3.6))
    rows = rows[(rows.length == 20) & (rows["size"] == 96)]
    names = {
        "mean state": "mean, trained",
        "mean state, untrained": "mean, random",
        "last state": "last, trained",
        "last state, untrained": "last, random",
    }
    for at, (reader, label) in enumerate(names.items()):
        mine = rows[rows.reader == reader].sort_values("layer")
        shares = [score(np.array(hits), poets) for hits in mine.hits]
        levels = ["before", *map(str, range(len(shares) - 1))]
        form = ("o-", "o:", "s-", "s:")[at]
        ax.plot(levels, shares, form, color=views.PALETTE[at // 2], label=label)
    for reader, form in {"bag of words": "--", "pairs of letters": "-."}.items():
        hits = rows[rows.reader == reader].hits.iloc[0]
        ink = views.PALETTE[6]
        ax.axhline(score(np.array(hits), poets), color=ink, ls=form, label=reader)
    ax.set(ylabel="balanced accuracy", xlabel="after layer", ylim=(0.4, 0.9))
    above = {"loc": "lower center", "bbox_to_anchor": (0.5, 1.0)}
    ax.legend(ncols=2, columnspacing=1, handlelength=1.6, frameon=False, **above)
    plt.show()
