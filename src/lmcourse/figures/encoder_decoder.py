"""What the chapter *encoder-decoder* draws: data in, figure out."""

import html

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from lmcourse import views
from lmcourse.dates import ANSWER, CHARACTERS, SIZES
from lmcourse.numbers import percent
from lmcourse.views import View

DAY = "1886-05-15"
ODD = {  # a date that training had not → the day, or None where nobody can say
    "15 May 1750": "1750-05-15",
    "15 May 2050": "2050-05-15",
    "Sept 1, 1886": "1886-09-01",
    "15 Mai 1886": None,
    "February 31, 1886": None,
}
MONTH_DIGIT = 6  # the position of the 5 in DAY
KINDS = {  # of the studies, as the figure names them
    "LSTM, looking back": "attends to all",
    "LSTM, one vector at every step": "one vector,\nat every step",
    "LSTM, one vector": "one vector,\nonce",
}
TRAININGS = {"case": "+ small letters", "commas": "+ comma", "centuries": "+ centuries"}
ASKED = {"15 may 1886": 5, "May 15 1886": 4, "other centuries": 8}  # → place in "right"
WORK = {  # system → floating-point operations of training, BLEU (Vaswani et al. 2017)
    "GNMT": (2.3e19, 24.6),
    "ConvS2S": (9.6e18, 25.16),
    "mixture of experts": (2.0e19, 26.03),
    "GNMT, ensemble": (1.8e20, 26.30),
    "ConvS2S, ensemble": (7.7e19, 26.36),
    "base Transformer": (3.3e18, 27.3),
    "big Transformer": (2.3e19, 28.4),
}


def reader(run):
    """Show a model that reads dates, to be tried.

    Parameters
    ----------
    run : dict
        The first run of the study *encoder-decoder*: ``weights``, of the model, by name;
        ``written``, what it reads → what it writes, both str; ``look``, a list of its
        attention weights while it writes the month's second digit, one for each character
        of the source.

    Returns
    -------
    View
        On the site the model computes in the page; elsewhere it is a table of what it
        writes. Its data: ``weights``; ``vocabulary``, the characters by id; ``heads`` of a
        layer; ``examples``, pairs of a source and its day, such as "1886-05-15", or None
        where nobody can say; ``seen``, of how many of them, the first, training had the
        style; ``place``, the position of the month's second digit in what is written.
    """
    days = dict.fromkeys(run["written"], DAY) | ODD
    rows = "".join(
        f"<tr><td>{html.escape(source)}</td><td>{html.escape(written)}</td></tr>"
        for source, written in run["written"].items()
    )
    data = {
        "weights": run["weights"],
        "vocabulary": CHARACTERS,
        "heads": SIZES["heads"],
        "examples": [*days.items()],
        "seen": 3,
        "place": MONTH_DIGIT,
    }
    head = "<tr><th>it reads</th><th>it writes</th></tr>"
    return View(
        "dates-view",
        data,
        f"<table>{head}{rows}</table>",
        alt="A date in several styles, each with what the model writes for it. While it "
        f"writes the 5 of {DAY} for 15 May 1886, the M of May has "
        f"{percent(run['look'][3])} of its attention.",
    )


def two_dates(vectors, longer):
    """Draw how many sources with one date, and with two, three kinds of LSTM read.

    Parameters
    ----------
    vectors : DataFrame
        Of the study *encoder-decoder*, a row a training: ``kind``, "LSTM, looking back"
        (its decoder attends to all states of the encoder), "LSTM, one vector at every step"
        or "LSTM, one vector" (the decoder is given one, at every step or once); ``dates``,
        how many a source has, 1 or 2; ``steps`` of the training, of which the most are
        drawn; ``right``, the share of sources read right, 0 to 1.
    longer : list of dict
        Of the study *bottleneck*: LSTMs trained four times as long on two dates, one a
        seed, with ``kind`` and ``right``, as above. They are drawn as squares.

    Returns
    -------
    None
        The figure is shown.
    """
    _, axes = plt.subplots(1, 2, figsize=(7.2, 2.6), sharey=True)
    for ax, dates in zip(axes, (1, 2), strict=True):
        for row, kind in enumerate(KINDS):
            mine = vectors[(vectors.kind == kind) & (vectors.dates == dates)]
            mine = mine[mine.steps == mine.steps.max()]
            ax.plot(
                100 * mine.right, [row] * len(mine), "o", color=views.PALETTE[row], ms=8
            )
        ax.set(xlabel="read right, per cent", xlim=(-6, 106), ylim=(2.5, -0.5))
    for row, kind in enumerate(KINDS):
        shares = [100 * each["right"] for each in longer if each["kind"] == kind]
        style = {"color": views.PALETTE[row], "mfc": "none", "ms": 8}
        axes[1].plot(shares, [row + 0.25] * len(shares), "s", **style)
    axes[0].set_title("one date")
    axes[1].set_title("two dates")
    axes[0].set_yticks(range(len(KINDS)), KINDS.values())
    plt.show()


def attention_and_use(attended, wrong):
    """Draw a decoder's attention to each part of a date, and what is wrong without it.

    Two tables of per cents in colours: a row for each of the ten characters of the date
    that is written, such as 1886-05-15, and one for the end; a column for each part of the
    date that is read: day, month, year and spaces.

    Parameters
    ----------
    attended : Tensor of shape (targets, parts)
        Attention weights, 0 to 1, in these rows and columns.
    wrong : Tensor of shape (targets, parts)
        Shares of characters that are wrong with the part hidden, 0 to 1.

    Returns
    -------
    None
        The figure is shown.
    """
    _, axes = plt.subplots(1, 2, figsize=(6.6, 4.4), layout="constrained")
    panels = {"attention, %": attended, "wrong without it, %": wrong}
    parts = [*ANSWER, "spaces"]
    written = [*DAY, "end"]
    for ax, (title, shares) in zip(axes, panels.items(), strict=True):
        cells = 100 * np.asarray(shares)
        ax.imshow(cells, cmap=views.SEQUENTIAL, vmin=0, vmax=100, aspect="auto")
        for row, column in np.ndindex(*cells.shape):
            share = cells[row, column]
            ax.text(
                column,
                row,
                f"{share:.0f}",
                ha="center",
                va="center",
                color="white" if share > 60 else "black",
            )
        ax.set_xticks(range(len(parts)), parts)
        ax.set_yticks(range(len(written)), written)
        ax.set_title(title)
        ax.grid(visible=False)
    plt.show()


def trainings(results):
    """Return how many dates the models of four trainings read right, style by style.

    Parameters
    ----------
    results : dict of str to list of dict
        Of the study *encoder-decoder*: the groups ``runs`` and ``varied``. A run's
        ``right`` lists the share of dates that are read right in each of eight styles and,
        last, of dates of other centuries; ``vary`` says what the training had besides three
        styles: "case", "commas" or "centuries".

    Returns
    -------
    dict of str to array of shape (seeds, styles)
        Name of the training → shares from 0 to 1.
    """
    shares = {"three styles": [run["right"] for run in results["runs"]]}
    for vary, name in TRAININGS.items():
        shares[name] = [r["right"] for r in results["varied"] if r["vary"] == vary]
    return {name: np.array(rows) for name, rows in shares.items()}


def carried_over(results):
    """Draw how many dates of three new kinds are read after four trainings.

    A panel for each kind: small letters ("15 may 1886"), no comma ("May 15 1886"), other
    centuries. A row for each training, a mark for each seed; a square where the training
    had what the panel asks for.

    Parameters
    ----------
    results : dict of str to list of dict
        Of the study *encoder-decoder*: the groups ``runs``, trained on three styles, and
        ``varied``. A run's ``right`` lists the share of dates that are read right in each
        of eight styles (the fifth and the sixth are drawn) and, last, of dates of other
        centuries; ``vary`` says what the training had besides three styles: "case",
        "commas" or "centuries".

    Returns
    -------
    None
        The figure is shown.
    """
    trained = trainings(results)
    _, axes = plt.subplots(1, 3, figsize=(7.2, 2.6), sharey=True, layout="constrained")
    for column, (ax, (asked, place)) in enumerate(zip(axes, ASKED.items(), strict=True)):
        for row, shares in enumerate(trained.values()):
            has_asked = row == column + 1  # the training had what this panel asks for
            color = views.PALETTE[0 if has_asked else 1]
            mark = "s" if has_asked else "o"
            across = 100 * shares[:, place]
            ax.plot(across, [row] * len(across), mark, color=color, alpha=0.6)
        ax.set(title=asked, xlabel="read, per cent", xlim=(-5, 105), ylim=(3.5, -0.5))
    axes[0].set_yticks(range(len(trained)), trained)
    plt.show()


def first_scores():
    """Draw how well the first Transformers translated, by the work of their training.

    Of seven systems, Transformers as squares: floating-point operations of the training and
    BLEU from English to German (`WORK`), from Vaswani et al. 2017.

    Returns
    -------
    None
        The figure is shown.
    """
    table = pd.DataFrame(WORK, index=["work", "bleu"]).T
    # Names that would lie on a neighbour's, or on the axis, on a phone too.
    moved = {"GNMT, ensemble": (0, -16), "ConvS2S, ensemble": (0, 22)}
    moved["base Transformer"] = (-6, 8)
    _, ax = plt.subplots(figsize=(6.4, 3.4))
    for name, (work, bleu) in table.iterrows():
        is_transformer = "Transformer" in name
        mark = "s" if is_transformer else "o"
        color = 0 if is_transformer else 1
        ax.plot(work, bleu, mark, color=views.PALETTE[color], ms=8)
        side = "left" if name == "base Transformer" else "center"
        where = moved.get(name, (0, 8))
        ax.annotate(name, (work, bleu), where, textcoords="offset points", ha=side)
    ax.set(xscale="log", xlim=(1.2e18, 6e20), ylim=(24, 29.3))
    ax.set(xlabel="operations in training", ylabel="BLEU")
    plt.show()
