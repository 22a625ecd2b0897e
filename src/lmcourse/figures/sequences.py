"""What the chapter *sequences* draws: data in, figure out."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from lmcourse import views

MODELS = {  # of the study *sequences*, as the figure names them
    "bag of counts": "1-grams (a bag)",
    "counts": "n-grams",
    "bag": "bag",
    "window": "window",
    "LSTM, last": "LSTM, last",
    "LSTM, mean": "LSTM, mean",
    "LSTM, attention": "LSTM, attention",
    "self-attention": "self-attention",
}
CHRONOLOGY = {  # year and name → what it does with the past
    "1913 Markov": "count",
    "1948 Shannon": "count",
    "1989 Waibel": "window",
    "1990 Elman": "state",
    "1995 Kneser, Ney": "count",
    "1997 LSTM": "state",
    "2003 Bengio": "window",
    "2010 Mikolov": "state",
    "2011 Collobert": "window",
    "2014 GRU": "state",
    "2015 Bahdanau": "attention",
    "2017 Gehring": "window",
    "2017 Transformer": "attention",
    "2018 GPT, BERT": "attention",
    "2023 Mamba": "state",
}


def clock(position, memory):
    """Draw a unit's memory by the position in the line: the median and nine tenths.

    Parameters
    ----------
    position : int Tensor of shape (texts, tokens)
        How many characters ago the line began.
    memory : Tensor of shape (texts, tokens)
        One unit's memory there, without unit.

    Returns
    -------
    None
        The figure is shown.
    """
    table = pd.DataFrame({"position": position.ravel(), "memory": memory.ravel()})
    table = table[table.position.between(1, 41)].groupby("position").memory
    _, ax = plt.subplots(figsize=(6.4, 2.8))
    low, middle, high = (table.quantile(share) for share in (0.05, 0.5, 0.95))
    ax.fill_between(middle.index, low, high, alpha=0.25, lw=0)
    ax.plot(middle.index, middle, lw=2)
    ax.set(xlabel="characters since the line began", ylabel="memory")
    plt.show()


def context(read, counted, at_end):
    """Draw the loss by how many characters a model may read, everywhere and at line ends.

    Parameters
    ----------
    read, counted : dict of int to Tensor of shape (characters,)
        Of the LSTM and of n-grams: how many characters are read → the loss of each
        character, in nats.
    at_end : bool Tensor of shape (characters,)
        Which characters end a line.

    Returns
    -------
    None
        The figure is shown.
    """
    _, axes = plt.subplots(1, 2, figsize=(7.2, 3.2))
    every = np.ones(len(at_end), dtype=bool)
    lines = {"n-grams": (counted, "s:", 0), "LSTM": (read, "o-", 1)}
    for ax, chosen in zip(axes, (every, at_end.numpy()), strict=True):
        for name, (losses, form, color) in lines.items():
            means = [loss.numpy()[chosen].mean() for loss in losses.values()]
            ax.plot([*losses], means, form, color=views.PALETTE[color], label=name)
        ax.set(xscale="log", xlabel="characters read")
        ax.set_xticks([*read], [*read])
        ax.minorticks_off()
    axes[0].set(title="all characters", ylabel="loss (nats)")
    axes[1].set_title("line ends only")
    axes[0].legend()
    plt.show()


def gradients(fresh, runs=()):
    """Draw how much of a gradient is left so many tokens back.

    Parameters
    ----------
    fresh : dict of str to Tensor of shape (tokens,)
        Layers before training: name → the size of the gradient by a token so far back, as a
        multiple of that by the last one.
    runs : list of dict, optional
        Trained networks of the study *recurrence*: ``kind``, "RNN" or "LSTM"; ``gradient``,
        a list of the same numbers.

    Returns
    -------
    None
        The figure is shown.
    """
    panels = 2 if runs else 1
    _, axes = plt.subplots(1, panels, figsize=(7.2, 4.6), sharey=True, squeeze=False)
    forms = ("-", "--", "-.", ":")
    for place, (name, shares) in enumerate(fresh.items()):
        color = views.PALETTE[place]
        form = forms[place]
        axes[0, 0].plot(shares, form, color=color, lw=2, label=name)
    axes[0, 0].set(yscale="log", ylim=(1e-9, 1e5), ylabel="share of the gradient")
    axes[0, 0].set_title("before training")
    if runs:
        _trained_gradients(axes[0, 1], runs)
    for ax in axes[0]:
        ax.set_xlabel("tokens back")
        ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1.18), frameon=False)
    plt.show()


def _trained_gradients(ax, runs):
    """Draw the gradient by distance of each trained network, in the colour of its kind.

    Parameters
    ----------
    ax : Axes
    runs : list of dict
        ``kind``, "RNN" or "LSTM"; ``gradient``, its size by a token 0, 1, 2 … back, as a
        multiple of that by the last one.
    """
    for kind, color, form in (("RNN", 0, "-"), ("LSTM", 2, "-.")):
        mine = [run["gradient"] for run in runs if run["kind"] == kind]
        for number, shares in enumerate(mine):
            label = None if number else kind
            ax.plot(shares, form, color=views.PALETTE[color], label=label)
    ax.set_title("trained on the Sonnets")


def times(seconds):
    """Draw the time of one layer by the length of a text.

    Parameters
    ----------
    seconds : dict of str to dict of int to float
        Name of a layer → tokens of the text → seconds; three layers.

    Returns
    -------
    None
        The figure is shown.
    """
    _, ax = plt.subplots(figsize=(6.4, 3.2))
    for (name, by_length), form in zip(seconds.items(), ("o-", "s--", "D:"), strict=True):
        ax.plot([*by_length], [1000 * s for s in by_length.values()], form, label=name)
    ax.set(xscale="log", yscale="log", xlabel="tokens", ylabel="milliseconds")
    lengths = [*by_length]
    ax.set_xticks(lengths, lengths)
    ax.minorticks_off()
    ax.legend()
    plt.show()


def share_right(results, unit, kind, is_shuffled=False):
    """Return the mean share of passages given to the right poet, over seeds.

    Parameters
    ----------
    results : dict of str to list of dict
        Of the study *sequences*: by unit ("character" or "word") rows of ``kind``, whether
        it is ``shuffled``, and ``share``, of passages told right.
    unit : str
        "character" or "word": what a model reads.
    kind : str
        The model, a key of `MODELS`, such as "counts" (n-grams) or "LSTM, last".
    is_shuffled : bool
        Whether each passage's tokens were shuffled. Of a bag the share in order is
        returned, as it has no order to lose.

    Returns
    -------
    float
        0 to 1.
    """
    is_shuffled = is_shuffled and "bag" not in kind
    rows = [r for r in results[unit] if (r["kind"], r["shuffled"]) == (kind, is_shuffled)]
    return float(np.mean([row["share"] for row in rows]))


def contest(results):
    """Draw who recognises the poet of a passage, in order and shuffled.

    A row for each of eight models (`MODELS`), models that count as squares; a filled mark
    is the share in order, an open one that of shuffled passages. A panel for passages of 40
    characters, one for 8 words.

    Parameters
    ----------
    results : dict of str to list of dict
        Of the study *sequences*: "character" and "word", what a model reads, → rows:
        ``kind`` of model; ``shuffled``, whether its texts are; ``share`` of passages
        assigned to the right poet, 0 to 1. The mean over the seeds is drawn.

    Returns
    -------
    None
        The figure is shown.
    """
    _, axes = plt.subplots(1, 2, figsize=(7.2, 3.4), sharey=True)
    limits = {"character": (50, 88), "word": (78, 86)}
    for ax, unit in zip(axes, limits, strict=True):
        for row, kind in enumerate(MODELS):
            color = views.PALETTE[0 if "counts" in kind else 1]
            mark = "s" if "counts" in kind else "o"
            ends = [
                100 * share_right(results, unit, kind, mixed) for mixed in (False, True)
            ]
            ax.plot(ends, [row, row], color="0.7", lw=1, zorder=0)
            ax.plot(ends[1], row, mark, color=color, mfc="white")
            ax.plot(ends[0], row, mark, color=color)
        ax.set(xlabel="right, per cent", xlim=limits[unit])
    axes[0].set_title("40 characters")
    axes[1].set_title("8 words")
    axes[0].set_yticks(range(len(MODELS)), MODELS.values())
    axes[0].invert_yaxis()
    plt.show()


def chronology():
    """Draw models of sequences by year, and what each does with the past.

    A row for each of fifteen (`CHRONOLOGY`), from Markov in 1913 to Mamba in 2023; a column
    for each way: to count, to read a window, to carry a state, to attend.

    Returns
    -------
    None
        The figure is shown.
    """
    ways = ["count", "window", "state", "attention"]
    _, ax = plt.subplots(figsize=(6.4, 4.6))
    for row, way in enumerate(CHRONOLOGY.values()):
        column = ways.index(way)
        ax.plot(column, row, "o", color=views.PALETTE[column], ms=9)
    ax.set_yticks(range(len(CHRONOLOGY)), CHRONOLOGY)
    ax.set_xticks(range(len(ways)), ways, rotation=60)
    ax.xaxis.tick_top()
    ax.set(xlim=(-0.5, 3.5))
    ax.invert_yaxis()
    plt.show()
