"""What the chapter *backpropagation* draws: data in, figure or view out."""

from html import escape

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import torch

from lmcourse import views
from lmcourse.numbers import format_number, percent
from lmcourse.numpy_nn.decoder import mean_distances
from lmcourse.views.choice import choice
from lmcourse.views.markup import table

LAYERS = 2
LINES = {"sonnets": ("o-", 0), "shuffled": ("s--", 1), "dealt": ("^:", 2)}
NAMES = {"sonnets": "sonnets", "shuffled": "shuffled once", "dealt": "shuffled every step"}


def training_run(study):
    """Show where the last word attends, and a sample, after so many steps of training.

    Parameters
    ----------
    study : dict
        The stored study *backpropagation*. ``settings["marks"]`` lists the steps at which
        was measured. In ``results`` a run of the groups "sonnets" and "shuffled" has
        ``states``, a dict for each mark: the losses ``trained`` and ``unseen`` in nats a
        word, ``looks``, the attention weights of the last of seven words (layers, heads,
        7), the farthest word first, and for "sonnets" ``samples``, three texts. The first
        run of each group is shown.

    Returns
    -------
    View
        One panel a mark: two losses, the longest of the three samples, and bar charts of
        ``looks``, means over the heads.
    """
    marks = study["settings"]["marks"]
    runs = {name: study["results"][name][0]["states"] for name in ("sonnets", "shuffled")}
    back = {
        name: mean_distances(study["results"][name])[0] for name in ("sonnets", "shuffled")
    }
    shown = {}
    pictures = []
    for i, step in enumerate(marks):
        state = runs["sonnets"][i]
        name = f"{step:,}" if step else "0 (random weights)"
        note = (
            f"Loss on the sonnets that it learns from: {state['trained']:.1f} nats; on "
            f"sonnets that it never reads: {state['unseen']:.1f}."
        )
        shown[name] = note, max(state["samples"], key=len)
        shares = [np.array(states[i]["looks"]).mean(1) for states in runs.values()]
        alt = (
            f"Bar charts after {step:,} steps. The decoder of the sonnets attends "
            f"{back['sonnets'][i, 0]:.1f} words back in layer 0 and "
            f"{back['sonnets'][i, 1]:.1f} in layer 1; that of the shuffled words "
            f"{back['shuffled'][i, 0]:.1f} and {back['shuffled'][i, 1]:.1f}."
        )
        pictures.append(views.looks(shares, ["sonnets", "shuffled"], alt=alt, top=0.8))
    return views.samples("Steps of training", shown, pictures, first=f"{marks[-1]:,}")


def _passes(q, k, v, t):
    """Run the smallest attention forward and back: loss = (sigmoid(q k) v - t)².

    ``q``, ``k``, ``v``, ``t`` : float. Returns a dict: the letter of each value → the
    value, and the gradient of the loss by it.
    """
    q, k, v, t = (torch.tensor(x, requires_grad=True) for x in (q, k, v, t))
    s = q * k
    a = s.sigmoid()
    o = a * v
    d = o - t
    loss = d * d
    named = {"q": q, "k": k, "v": v, "t": t, "s": s, "a": a, "o": o, "d": d, "L": loss}
    slopes = torch.autograd.grad(loss, [*named.values()])
    return {
        name: (value.item(), slope.item())
        for (name, value), slope in zip(named.items(), slopes, strict=True)
    }


def graph():
    """Show the smallest attention, whose numbers can be dragged, with its gradients.

    Its loss is (sigmoid(q k) v - t)², of four numbers q, k, v and t.

    Returns
    -------
    View
        Stored is a table of all values and of the gradient of the loss by each.
    """
    start = {"q": 2.0, "k": 0.5, "v": 3.0, "t": 1.0}
    rows = [
        (name, format_number(value, ".2f"), format_number(slope, ".2f"))
        for name, (value, slope) in _passes(**start).items()
    ]
    return views.View(
        "graph-view",
        {"start": start, "rate": 0.1},
        table(["", "value", "gradient"], rows),
        alt="Four numbers to drag, q, k, v and t, with the values and gradients that "
        "follow from them, and a button for one step of gradient descent.",
    )


def guesses(rows, lengths):
    """Draw how much the best of so many random steps helps, beside one along the gradient.

    Across is the number of random steps that are tried, from 3 on, up is the fall of the
    loss, the mean over the sequences.

    Parameters
    ----------
    rows : list of dict
        Of the study *guesses*, one for each sequence of words. How far a step lowers the
        loss, in nats: ``random``, nested lists (guesses, lengths), and ``gradient``,
        (lengths,).
    lengths : list of float
        The two lengths of the steps.

    Returns
    -------
    None
        The figure is shown.
    """
    drawn = np.array([row["random"] for row in rows])  # (sequences, guesses, lengths)
    best = np.maximum.accumulate(drawn, axis=1).mean(axis=0)  # (guesses, lengths)
    steps = np.mean([row["gradient"] for row in rows], axis=0)  # (lengths,)
    _, ax = plt.subplots(figsize=(7, 3.8))
    shown = slice(2, None)  # of fewer guesses the best may be worse than no step
    many = np.arange(1, len(best) + 1)[shown]
    for i, length in enumerate(lengths):
        color = views.PALETTE[i]
        form = ("-", "--")[i]
        label = f"length {length:g}"
        ax.axhline(steps[i], color=color, ls=form, lw=3, label=f"gradient, {label}")
        ax.plot(many, best[shown, i], form, color=color, lw=1.5, label=f"guesses, {label}")
    ax.set(xscale="log", yscale="log", xlabel="random guesses", ylim=(5e-4, 20))
    ax.set_ylabel("fall of the loss (nats)")
    ax.legend(loc="lower left", bbox_to_anchor=(0, 1), frameon=False)
    plt.show()


def head_step(words, weights, d_weights, d_scores, after):
    """Draw a head's weights, their gradients, and the weights after a step: four heat maps.

    Only the lower triangle and the diagonal are drawn: nothing later is attended to. The
    gradients are drawn with the other sign, as what a step of descent raises or lowers.

    Parameters
    ----------
    words : list of str
        The tokens, one for each row and column.
    weights, d_weights, d_scores, after : array of shape (tokens, tokens)
        The attention weights, the gradients of the loss by them and by the scores, and the
        weights after a step. A row attends, a column is attended to.

    Returns
    -------
    None
        The figure is shown.
    """
    future = np.triu(np.ones(weights.shape, dtype=bool), 1)
    parts = {"A": weights, "dA": d_weights, "dS": d_scores, "A after": after}
    _, axes = plt.subplots(1, 4, figsize=(9, 3.1), sharey=True, layout="constrained")
    for ax, (title, part) in zip(axes, parts.items(), strict=True):
        signed = title.startswith("d")
        top = np.abs(part).max() if signed else 1
        ax.imshow(
            np.where(future, np.nan, -part if signed else part),
            vmin=-top if signed else 0,
            vmax=top,
            cmap=views.DIVERGING if signed else views.SEQUENTIAL,
        )
        ax.set_xticks(range(len(words)), words, rotation=90)
        ax.set_yticks(range(len(words)), words)
        ax.set_title(title)
        ax.grid(False)
    plt.show()


def turning(study):
    """Draw how far back nine decoders attend, step by step, a panel for each of two layers.

    Parameters
    ----------
    study : dict
        The stored study *backpropagation*. ``settings["marks"]`` lists the steps at which
        was measured; ``results`` has three runs for each text of the training: "sonnets",
        "shuffled", their words shuffled once, and "dealt", shuffled anew at every step. A
        run has ``states``, a dict for each mark, with ``looks``, the attention weights of
        the last of seven words, (layers, heads, 7), the farthest word first.

    Returns
    -------
    None
        The figure is shown.
    """
    marks = study["settings"]["marks"]
    _, axes = plt.subplots(1, LAYERS, figsize=(8, 3.4), sharey=True, layout="constrained")
    for name, (form, color) in LINES.items():
        curves = mean_distances(study["results"][name])  # (seeds, marks, layers)
        for seed, curve in enumerate(curves):
            label = None if seed else NAMES[name]
            for layer, ax in enumerate(axes):
                ax.plot(
                    marks[: len(curve)],
                    curve[:, layer],
                    form,
                    color=views.PALETTE[color],
                    label=label,
                )
    for layer, ax in enumerate(axes):
        ax.set_xscale("symlog", linthresh=25)
        ax.set_xticks([0, 25, 100, 500, 2000], ["0", "25", "100", "500", "2,000"])
        ax.set(title=f"layer {layer}", xlabel="steps", ylim=(0, 6), xlim=(-1, 2400))
    axes[0].set_ylabel("words back")
    axes[0].legend(loc="upper center", fontsize=9, frameon=False)
    plt.show()


def lengths(rows, marks):
    """Draw how far back layers attend, with the long vectors in one layer or the other.

    Two panels, in each a line for every seed and layer.

    Parameters
    ----------
    rows : list of dict
        Of the study *vector-lengths*: ``way``, which layer is given the long vectors ("as
        it is": layer 1, "swapped": layer 0); ``back``, how many words back the last word
        attends, (marks, layers).
    marks : list of int
        The steps after which was measured.

    Returns
    -------
    None
        The figure is shown.
    """
    titles = {"as it is": "layer 1 is given long vectors", "swapped": "layer 0 is"}
    _, axes = plt.subplots(1, 2, figsize=(8, 3.2), sharey=True, layout="constrained")
    for ax, (way, title) in zip(axes, titles.items(), strict=True):
        own = [row for row in rows if row["way"] == way]
        for seed, row in enumerate(own):
            back = np.array(row["back"])  # (marks, layers)
            for layer, form in enumerate(("o-", "s--")):
                label = None if seed else f"layer {layer}"
                color = views.PALETTE[layer]
                ax.plot(marks, back[:, layer], form, color=color, label=label)
        ax.set(title=title, xlabel="steps", ylim=(1.8, 3.2))
    axes[0].set_ylabel("words back")
    axes[0].legend(loc="lower left")
    plt.show()


def starts(results):
    """Draw the losses on test sonnets of decoders and of counting.

    Parameters
    ----------
    results : dict of str to list of dict
        Of the study *starts*: ``runs`` with ``start``, "random", "frequencies" or
        "shuffled", and ``test``; ``counting`` with ``order``, the words of an n-gram (1 to
        3), and ``test``. ``test`` is a loss in nats a word.

    Returns
    -------
    None
        The figure is shown.
    """
    counted = {row["order"]: row["test"] for row in results["counting"]}
    rows = {
        "decoder, random start": [],
        "decoder, word frequencies": [],
        "the same, shuffled words": [],
    }
    keys = dict(zip(("random", "frequencies", "shuffled"), rows, strict=True))
    for row in results["runs"]:
        rows[keys[row["start"]]].append(row["test"])
    rows |= {"counts of words": [counted[1]], "counts of pairs": [counted[2]]}
    rows["counts of triples"] = [counted[3]]
    _, ax = plt.subplots(figsize=(7, 2.8))
    for place, losses in enumerate(rows.values()):
        kind = 1 if place > 2 else 0  # 1: n-gram models
        marker = ("o", "s")[kind]
        ax.plot(losses, [place] * len(losses), marker, color=views.PALETTE[kind])
    ax.set_yticks(range(len(rows)), list(rows))
    ax.invert_yaxis()
    ax.set(xlabel="loss on new sonnets (nats a word)")
    plt.show()


# --- heads on a line ----------------------------------------------------------------------

CELL, LEFT, TOP = 12, 60, 18  # of a small heat map, in pixels


def _heat_map(words, weights, title):
    """Return a head's weights as a small SVG; rows are the words that attend.

    Only the diagonal and what is left of it are drawn, one square a weight: no word of a
    decoder attends to a later one. The words stand on the left, the title above.

    Parameters
    ----------
    words : list of str
        The tokens, one for each row and column.
    weights : array of shape (tokens, tokens)
        Rows attend, columns are attended to; 0 to 1.
    title : str
        What the drawing shows, in words.

    Returns
    -------
    str
        SVG markup.
    """
    size = CELL * len(words)
    marks = [f'<text x="{LEFT}" y="12">{escape(title)}</text>']
    for row, word in enumerate(words):
        y = TOP + CELL * row
        marks.append(
            f'<text class="lm-end" x="{LEFT - 5}" y="{y + 10}">{escape(word)}</text>'
        )
        marks += [
            f'<rect x="{LEFT + CELL * column}" y="{y}" width="{CELL - 1}" '
            f'height="{CELL - 1}" fill-opacity="{weight:.2f}"/>'
            for column, weight in enumerate(weights[row][: row + 1])
        ]
    width = LEFT + size + 2
    height = TOP + size + 2
    return (
        f'<svg viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        f'aria-hidden="true">{"".join(marks)}</svg>'
    )


def _all_heads(words, weights):
    """Return a heat map for each head of each layer, a row of drawings a layer.

    Parameters
    ----------
    words : list of str
        The tokens, one for each row and column.
    weights : array of shape (layers, heads, tokens, tokens)
        Rows attend, columns are attended to; 0 to 1.

    Returns
    -------
    str
        HTML markup.
    """
    rows = []
    for layer, heads in enumerate(weights):
        maps = [
            _heat_map(words, each, f"layer {layer}, head {head}")
            for head, each in enumerate(heads)
        ]
        rows.append(f'<div class="lm-heads">{"".join(maps)}</div>')
    return "".join(rows)


def heads(lines, models):
    """Show every head of a trained and of an untrained decoder on lines, one to choose.

    Parameters
    ----------
    lines : dict of str to str
        What a line is → the line; its last word is to be predicted.
    models : dict of str to lmcourse.numpy_nn.Decoder
        "trained" and "random weights" → a model of words: ``dictionary.encode`` goes from
        words to ids, ``forward`` from ids to logits (tokens, words), after which
        ``weights(i)`` are the attention weights of layer i, (heads, tokens, tokens);
        ``sizes["layers"]`` is how many layers there are.

    Returns
    -------
    View
        A panel for each line and model: the probability of the last word, and a heat map
        for each head of each layer.
    """
    plain = []
    labels = []
    panels = []
    for what, line in lines.items():
        for kind, model in models.items():
            words = line.split()
            numbers = model.dictionary.encode(words)
            logits = model.forward(numbers[:-1])[-1]
            shares = np.exp(logits - logits.max())
            share = shares[numbers[-1]] / shares.sum()
            weights = [model.weights(i) for i in range(model.sizes["layers"])]
            note = (
                f"“{' '.join(words[:-1])} …” The probability of “{words[-1]}”: "
                f"{percent(share)}."
            )
            plain.append(f"[{what}, {kind}] {note}")
            labels.append(escape(f"{what}, {kind}"))
            panels.append(f"<p>{escape(note)}</p>{_all_heads(words[:-1], weights)}")
    return choice("samples", "Line and weights", "\n\n".join(plain), labels, panels)


# --- what it writes -----------------------------------------------------------------------


def progress(study, copied):
    """Return losses and the share of copied five-word sequences, by steps of training.

    Parameters
    ----------
    study : dict
        The stored study *backpropagation*. ``settings["marks"]`` lists the steps at which
        was measured. In ``results`` a run of the group "sonnets" has ``states``, a dict for
        each mark: the losses ``trained`` and ``unseen`` in nats a word, and ``samples``,
        texts.
    copied : callable
        From a sample to a list of bool, one a sequence of five words.

    Returns
    -------
    DataFrame
        A row for each mark, its steps as the index, such as "1,000"; means over three
        decoders: the losses on the sonnets of the training and on new ones, in nats a word,
        and the share copied of all their five-word sequences, formatted in per cent.
    """
    rows = []
    for i, step in enumerate(study["settings"]["marks"]):
        states = [run["states"][i] for run in study["results"]["sonnets"]]
        hits = [
            hit for state in states for text in state["samples"] for hit in copied(text)
        ]
        rows.append(
            {
                "steps": f"{step:,}",
                "loss, sonnets it learns": np.mean([state["trained"] for state in states]),
                "loss, new sonnets": np.mean([state["unseen"] for state in states]),
                "copied": percent(np.mean(hits or 0)),
            }
        )
    return pd.DataFrame(rows).set_index("steps").round(1)
