"""What the chapter *inside-gpt* draws: data in, figure out."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from lmcourse import views
from lmcourse.numbers import bootstrap_interval, format_number

COUNTED = {1: "counting tokens", 2: "counting pairs", 3: "counting triples"}


def _head_name(head):
    """Return a head, (layer, number), as the text writes it: "3.0"."""
    return ".".join(map(str, head))


def _label_rows(ax, names):
    """Write names along the y axis of a plot, the first at the top.

    ``ax`` : matplotlib.axes.Axes; ``names`` : list of str.
    """
    ax.set_yticks(range(len(names)), names)
    ax.invert_yaxis()


def _means(ax, samples, **style):
    """Draw the mean of each sample with its 95 % interval along x, one row a sample.

    Parameters
    ----------
    ax : matplotlib Axes
    samples : iterable of array-like of shape (texts,)
        One number a text.
    **style
        Of matplotlib's ``errorbar``, such as ``color`` and ``label``.
    """
    samples = [np.asarray(each, dtype=float) for each in samples]
    values = [each.mean() for each in samples]
    ends = [bootstrap_interval(each) for each in samples]
    views.error_bars(ax, range(len(samples)), values, ends, horizontal=True, **style)


def rules(measured):
    """Draw the surprise and the repetition of texts, a row for each way to write them.

    Parameters
    ----------
    measured : dict of str to (Tensor of shape (texts,), Tensor of shape (texts,))
        Who wrote → the model's loss on each text, in nats a character; the share of its
        ten-character sequences that it had before, 0 to 1. The last one is drawn as a
        square.

    Returns
    -------
    None
        The figure is shown.
    """
    _, axes = plt.subplots(1, 2, figsize=(6.8, 3), sharey=True, layout="constrained")
    titles = "surprise (nats a character)", "repetition"
    for column, (ax, title) in enumerate(zip(axes, titles, strict=True)):
        samples = [both[column] for both in measured.values()]
        *by_rule, own = samples
        _means(ax, by_rule, color=views.PALETTE[0])
        mean = float(own.mean())
        interval = bootstrap_interval(np.asarray(own, dtype=float))
        row = len(by_rule)
        style = {"fmt": "s", "color": views.PALETTE[1], "horizontal": True}
        views.error_bars(ax, [row], [mean], [interval], **style)
        ax.set_xlabel(title)
    axes[1].set_xlim(left=0)
    _label_rows(axes[0], list(measured))
    plt.show()


def reach(rows):
    """Draw how often a *t* is expected, by the number of words after the pronoun.

    The prompts are such as "And thou … shal", which goes on with t or l.

    Parameters
    ----------
    rows : list of dict
        One a number of words: ``words``, how many; and, under the names of the three lines
        that are drawn, the share of prompts after which *t* is likelier than *l*, 0 to 1.

    Returns
    -------
    None
        The figure is shown.
    """
    table = pd.DataFrame(rows).set_index("words")
    _, ax = plt.subplots(figsize=(6.4, 3.2))
    forms = ("o-", "s--", "^:")
    for name, form, color in zip(table, forms, views.PALETTE[:3], strict=True):
        ax.plot(table.index, table[name], form, color=color, label=name)
    ax.set(xlabel="words in between", ylabel="share that expects t", ylim=(-0.05, 1.05))
    ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2)
    plt.show()


def ablated(rises, together):
    """Draw how much the loss rises without each head, and without all of them.

    A row for each head, means with 95 % intervals; then one for the sum of these rises, and
    one for all heads removed at once.

    Parameters
    ----------
    rises : dict of (int, int) to Tensor or ndarray of shape (windows,)
        Layer and head, both from 0 → how much the loss of each window rises without the
        head, in nats a character.
    together : Tensor or ndarray of shape (windows,)
        The same without all of these heads.

    Returns
    -------
    None
        The figure is shown.
    """
    added_up = sum(rises.values())
    samples = [*rises.values(), added_up, together]
    heads = [_head_name(head) for head in rises]
    _, ax = plt.subplots(figsize=(5.4, 4.8), layout="constrained")
    _means(ax, samples, color=views.PALETTE[0])
    ax.set(xlabel="rise of the loss (nats a character)")
    _label_rows(ax, [*heads, "all, added up", "all at once"])
    plt.show()


def copied(shares):
    """Draw which part of a difference heads bring along, a row for each group of heads.

    Parameters
    ----------
    shares : dict of str to array-like of shape (prompts,)
        Which heads were copied → for each prompt the share of the difference between two
        prompts that comes along; 1 is all of it. Drawn are the mean, the least and the
        most.

    Returns
    -------
    None
        The figure is shown.
    """
    samples = [100 * np.asarray(share) for share in shares.values()]
    means = [sample.mean() for sample in samples]
    ends = [(sample.min(), sample.max()) for sample in samples]
    rows = range(len(samples))
    _, ax = plt.subplots(figsize=(5.4, 4.8), layout="constrained")
    views.error_bars(ax, rows, means, ends, horizontal=True, color=views.PALETTE[0])
    ax.set(xlabel="share of the difference (%)")
    _label_rows(ax, list(shares))
    plt.show()


def repeats(study):
    """Draw the loss on a repetition in training: of two layers, and of one.

    Parameters
    ----------
    study : dict
        The stored study *inside-gpt*. In ``results`` a run of "runs" has ``kind``, "two
        layers", "one layer", "eight heads" (of one layer) or "added positions" (not drawn),
        and ``history``, losses in nats a token on what is repeated, at even distances; a
        row of "counts" the ``loss`` of n-grams and their ``order``, 1 to 3 tokens, which
        are dashed lines. ``settings["steps"]`` has the steps of each kind.

    Returns
    -------
    None
        The figure is shown.
    """
    results = study["results"]
    steps = study["settings"]["steps"]
    counts = {row["order"]: row["loss"] for row in results["counts"]}
    colors = {"two layers": 0, "one layer": 0, "eight heads": 2}
    _, axes = plt.subplots(1, 2, figsize=(6.8, 3), sharey=True, layout="constrained")
    panels = {"two layers": ["two layers"], "one layer": ["one layer", "eight heads"]}
    for ax, (title, kinds) in zip(axes, panels.items(), strict=True):
        for kind in kinds:
            color = views.PALETTE[colors[kind]]
            for run in results["runs"]:
                if run["kind"] != kind:
                    continue
                history = run["history"]
                at = np.linspace(0, steps[kind], len(history))
                ax.plot(at, history, color=color, lw=1)
        for loss in counts.values():
            ax.axhline(loss, ls="--", color=views.PALETTE[1], lw=1)
        ax.set(title=title, xlabel="step", ylim=(-0.1, 3.7))
    end = steps["one layer"]
    for order, loss in counts.items():
        axes[1].text(end, loss + 0.05, COUNTED[order], ha="right", fontsize=9)
    axes[1].text(end, 1.4, "eight heads", ha="right", fontsize=9)
    axes[0].set(ylabel="loss (nats a token)")
    plt.show()


def positions(runs):
    """Tabulate where heads of two layers attend, by how positions are put in.

    Parameters
    ----------
    runs : list of dict
        Of the study *inside-gpt*, one a seed: ``kind``, of which "two layers" and "added
        positions" are used; ``heads``, a list of dicts with ``layer``, from 0, ``before``
        and ``followed``, the shares of the head's attention to the token before and to what
        followed, 0 to 1.

    Returns
    -------
    DataFrame
        A column for each way to put positions in, two rows; the least and the most over
        seeds as text: in layer 0 of the head that attends most to the token before, in
        layer 1 of both heads to what followed.
    """
    kinds = {"rotary (Llama)": "two layers", "added (GPT-2)": "added positions"}
    table = {}
    for name, kind in kinds.items():
        to_before = []
        to_followed = []
        for run in runs:
            if run["kind"] != kind:
                continue
            layers = {0: [], 1: []}
            for head in run["heads"]:
                layers[head["layer"]].append(head)
            to_before.append(max(head["before"] for head in layers[0]))
            to_followed += [head["followed"] for head in layers[1]]
        table[name] = {
            "layer 0, to the token before": _span(to_before),
            "layer 1, to what followed": _span(to_followed),
        }
    return pd.DataFrame(table)


def _span(shares):
    """Return the least and the most of some shares, such as "0.31 to 0.42".

    ``shares`` : sequence of float, from 0 to 1.
    """
    return format_number((min(shares), max(shares)), ".2f")
