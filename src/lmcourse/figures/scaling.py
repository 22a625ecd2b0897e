"""What the chapter *scaling* draws: data in, figure, table or view out."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from lmcourse import views
from lmcourse.in_context import ANSWERS, QUESTIONS

# --- how numbers are written --------------------------------------------------------------


def power_of_ten(number):
    """Return a number such as 400,000,000 as "4 · 10⁸", a str.

    ``number`` : 1 or more; two of its digits are kept. A factor of 1 is not written: "10⁸".
    """
    mantissa, _, digits = f"{number:.1e}".partition("e")  # rounded before it is split
    raised = "".join("⁰¹²³⁴⁵⁶⁷⁸⁹"[int(digit)] for digit in str(int(digits)))
    return f"{float(mantissa):g} · 10{raised}".removeprefix("1 · ")


# --- the grid -----------------------------------------------------------------------------


def written(runs, untrained):
    """Show what the best model within each budget writes, one to choose.

    The budgets are 10⁸ to 10¹¹ floating-point operations, and the most of any run; the best
    has the lowest loss. A text of random weights comes first.

    Parameters
    ----------
    runs : DataFrame
        Stored runs, a row each: ``seed``, from 1; ``flops`` of the training;
        ``parameters``; ``tokens``, characters read; ``test``, a loss in nats; ``sample``, a
        text.
    untrained : str
        A text of a model with random weights.

    Returns
    -------
    View
    """
    first = runs[runs.seed == 1]
    choices = {"random weights": ("A model that has learned nothing.", untrained)}
    for budget in [1e8, 1e9, 1e10, 1e11, first.flops.max()]:
        within = first[first.flops <= budget]
        best = within.loc[within.test.idxmin()]
        note = f"{best.parameters:,} parameters, {best.tokens:,} characters read"
        choices[power_of_ten(budget)] = (f"{note}: loss {best.test:.2f}.", best["sample"])
    return views.samples("How many operations?", choices, first=[*choices][-1])


def grid(runs):
    """Draw the losses of runs over the text that they read, and over their operations.

    Parameters
    ----------
    runs : DataFrame
        Stored runs, a row each: ``parameters``; ``tokens``, characters read; ``flops`` of
        the training; ``test``, a loss in nats.

    Returns
    -------
    None
        The figure is shown.
    """
    means = runs.groupby(["parameters", "tokens", "flops"], as_index=False).test.mean()
    colors = plt.get_cmap("viridis")(np.linspace(0, 0.88, means.parameters.nunique()))
    fig, axes = plt.subplots(1, 2, figsize=(7.2, 3.4), sharey=True)
    for (size, rows), color, mark in zip(
        means.groupby("parameters"), colors, "osD^vP", strict=False
    ):
        for ax, what in zip(axes, ("tokens", "flops"), strict=True):
            form = {"color": color, "ms": 5, "label": f"{size:,}"}
            ax.plot(rows[what], rows.test, mark + "-", **form)
    for ax, label in zip(axes, ("characters read", "operations (FLOPs)"), strict=True):
        ax.set(xscale="log", yscale="log", xlabel=label)
        ax.set_yticks([1.5, 2, 2.5, 3], ["1.5", "2", "2.5", "3"])
        ax.minorticks_off()
    axes[0].set_ylabel("test loss, nats")
    below = {"loc": "upper center", "bbox_to_anchor": (0.5, 0), "ncols": 3}
    handles = axes[0].get_legend_handles_labels()
    fig.legend(*handles, title="parameters", fontsize=9, **below)
    plt.show()


def predictions(predicted, runs):
    """Draw what each way predicted of the largest runs, and what came.

    Parameters
    ----------
    predicted : list of dict
        Of the study *scaling*, one for each amount of text: ``tokens``, characters read;
        the predicted loss in nats by "law" (a power law with an offset), "line" (without
        offset), "neighbour" (the gain of the next smaller size), "ratio" (the last gain
        again) and "same" (no more gain); ``interval``, the lower and upper end of the
        law's.
    runs : DataFrame
        The runs that came, a row each: ``tokens``; ``test``, the loss in nats.

    Returns
    -------
    None
        The figure is shown.
    """
    names = {
        "law": "law with offset",
        "line": "straight line",
        "neighbour": "next smaller\nsize's gain",
        "ratio": "last gain again",
        "same": "no more gain",
    }
    _, axes = plt.subplots(1, len(predicted), figsize=(7.2, 2.8), sharey=True)
    for ax, guess in zip(axes, predicted, strict=True):
        came = runs[runs.tokens == guess["tokens"]].test.mean()
        ax.axvline(came, color=views.PALETTE[1], ls="--")
        values = [guess[way] for way in names]
        ax.hlines(0, *guess["interval"], color=views.PALETTE[0], lw=3, alpha=0.4)
        ax.plot(values, range(len(names)), "o", color=views.PALETTE[0])
        ax.set(xlabel=f"loss after {guess['tokens']:,} characters", xlim=(1.5, 2.5))
    axes[0].set_yticks(range(len(names)), names.values())
    axes[0].set_ylim(len(names) - 0.5, -0.5)  # the law is on top
    plt.show()


def gains(runs):
    """Draw how much the most text of the grid gains over the least, size by size.

    Parameters
    ----------
    runs : DataFrame
        Stored runs, a row each: ``parameters``; ``tokens``, characters read; ``test``, a
        loss in nats.

    Returns
    -------
    None
        The figure is shown.
    """
    losses = runs.pivot_table(index="parameters", columns="tokens", values="test")
    gained = losses[losses.columns[0]] - losses[losses.columns[-1]]
    _, ax = plt.subplots(figsize=(6, 3))
    ax.plot(gained.index, gained, "o-", color=views.PALETTE[0])
    ax.set(xscale="log", xlabel="parameters", ylabel="nats gained", ylim=(0, 1.4))
    plt.show()


def laws(ours, published):
    """Return a table of exponents and floors: our fit, and published ones.

    Parameters
    ----------
    ours : tuple of float
        E, A, a, B, b of the law: loss = E + A / parameters^a + B / tokens^b.
    published : dict of str to tuple of float
        Source → the same five.

    Returns
    -------
    DataFrame
        A row for E, a and b, as text; a column for each law.
    """
    columns = {"our grid": ours} | published
    rounded = {
        name: {"E": f"{fit[0]:.2f}", "a": f"{fit[2]:.2f}", "b": f"{fit[4]:.2f}"}
        for name, fit in columns.items()
    }
    return pd.DataFrame(rounded)


# --- what a training costs ----------------------------------------------------------------


def shards(counts):
    """Return a table of what each of eight processes holds in memory, by what they share.

    What they share is split among them (sharded), as in ZeRO's stages 1, 2 and 3: each
    process holds an eighth of it, and all of the rest. A parameter has 16 bytes: weight,
    gradient and AdamW's two averages, four each.

    Parameters
    ----------
    counts : dict of str to float
        Model → how many parameters it has.

    Returns
    -------
    DataFrame
        A row for each model; columns "shared: nothing", "shared: averages", "shared:
        averages, gradients" and "shared: averages, gradients, weights"; cells are text, in
        MB or GB.
    """
    shared = {  # bytes of a parameter of which each process has an eighth
        "nothing": 0,
        "averages": 8,
        "averages, gradients": 12,
        "averages, gradients, weights": 16,
    }

    def written_bytes(number):
        """Return a number of bytes in GB or MB, a str."""
        return f"{number / 1e9:,.0f} GB" if number > 1e9 else f"{number / 1e6:.1f} MB"

    return pd.DataFrame(
        {
            f"shared: {what}": {
                name: written_bytes(count * (16 - cut + cut / 8))
                for name, count in counts.items()
            }
            for what, cut in shared.items()
        }
    )


# --- examples in the window ---------------------------------------------------------------


def as_letters(text):
    """Return a text of little tasks as a str such as "c3 F1 C3".

    ``text`` : int64 Tensor (48,), question and answer in turn; questions have the numbers 0
    to 15, answers 16 to 19. Questions become letters, the first eight small ones, the
    others the capitals, each the partner of a small one; answers become digits from 1.
    """
    half = QUESTIONS // 2
    letters = "abcdefghijklm"[:half] + "ABCDEFGHIJKLM"[:half]
    digits = "123456789"[:ANSWERS]
    pairs = zip(text[::2].tolist(), text[1::2].tolist(), strict=True)
    return " ".join(letters[q] + digits[a - QUESTIONS] for q, a in pairs)


def examples(runs, rivals):
    """Draw the loss of an answer by how many examples came before it.

    Parameters
    ----------
    runs : DataFrame
        Stored runs, a row for each seed: ``kind``, "new" (trained on many tasks) or "known"
        (on sixteen); ``examples``, the loss in nats after 0, 1, 2 … 23 examples.
    rivals : DataFrame
        Stored rivals, a row each: ``way``, "copy" (of the last answer), "count" (of the
        question's answers) or "count pairs" (of its partner's, too); ``examples``, as
        above.

    Returns
    -------
    None
        The figure is shown.
    """
    _, ax = plt.subplots(figsize=(6.4, 3.8))
    names = {"new": "trained on many tasks", "known": "trained on sixteen tasks"}
    for (kind, label), color in zip(names.items(), views.PALETTE, strict=False):
        curves = np.array([*runs[runs.kind == kind].examples])  # (seeds, 24)
        ax.plot(curves[0], "-", color=color, label=label)
        ax.plot(curves[1:].T, "-", color=color)
    styles = {
        "copy": (":", "copy the last answer"),
        "count": ("--", "count the question's answers"),
        "count pairs": ("-.", "count its partner's, too"),
    }
    by_way = rivals.set_index("way").examples
    for way, (style, label) in styles.items():
        ax.plot(by_way[way], style, color="0.25", label=label)
    ax.set(xlabel="examples before", ylabel="loss, nats per answer", ylim=(0, None))
    ax.legend(fontsize=9, loc="lower center", bbox_to_anchor=(0.5, 1))
    plt.show()


def partners(runs, rivals):
    """Draw the loss of an answer by what was shown before it.

    Questions come in pairs, partners, that share their answer.

    Parameters
    ----------
    runs : list of dict
        Of the study *partners*: ``kind``, whether partners shared answers in training,
        "linked" or "cut"; ``loss``, a dict in nats by what was shown before: "neither",
        "itself", "partner" or "both".
    rivals : dict
        Of the same study: ``count``, the loss of counting, a dict by what was shown.

    Returns
    -------
    None
        The figure is shown.
    """
    shown = {
        "neither": "neither",
        "itself": "itself",
        "partner": "partner",
        "both": "both",
    }
    names = {"linked": "trained on pairs", "cut": "trained without pairs"}
    _, ax = plt.subplots(figsize=(6.4, 3.4))
    for at, (kind, label) in enumerate(names.items()):
        losses = [
            [run["loss"][key] for key in shown] for run in runs if run["kind"] == kind
        ]
        positions = np.arange(len(shown)) + 0.16 * (2 * at - 1)
        form = {"color": views.PALETTE[at], "ms": 6, "alpha": 0.7}
        ax.plot(positions, losses[0], "os"[at], label=label, **form)
        ax.plot(positions, np.transpose(losses[1:]), "os"[at], **form)
    counted = [rivals["count"][key] for key in shown]
    form = {"color": "0.3", "ms": 18, "mew": 2, "label": "counting its own answers"}
    ax.plot(range(len(shown)), counted, "_", **form)
    ax.set_xticks(range(len(shown)), shown.values())
    ax.set(xlabel="what has been answered before", ylabel="loss, nats", ylim=(0, None))
    ax.legend(fontsize=9, loc="lower center", bbox_to_anchor=(0.5, 1))
    plt.show()


# --- the speedrun -------------------------------------------------------------------------

IDEAS = {  # as the study calls them → as the page does
    "schedule": "line",
    "rotary": "rotary",
    "norm": "norm",
    "scale": "scale",
    "muon": "Muon",
    "before": "before",
}


def ideas(runs):
    """Draw the loss with each idea alone, added to those above it, and left out.

    A row for each of six ideas (`IDEAS`), with the median over the seeds, and a line from
    the least to the most. Dotted lines show the model without ideas and with all of them.

    Parameters
    ----------
    runs : DataFrame
        Of the study *speedrun*, a row each: ``way``, the recipe: an idea alone, such as
        "muon alone"; it and those above it, such as "up to norm"; all but it, such as
        "without muon"; no idea, "size"; all of them, "whole"; ``loss``, in nats a
        character.

    Returns
    -------
    None
        The figure is shown.
    """
    by_way = runs.groupby("way").loss
    # Sums that the study knows by another name than "up to …".
    other_names = {
        "schedule": "schedule alone",
        "muon": "without before",
        "before": "whole",
    }
    up_to = [other_names.get(idea, f"up to {idea}") for idea in IDEAS]
    rows = [
        ("alone", "o", views.PALETTE[1], [f"{idea} alone" for idea in IDEAS]),
        ("added up", "D", views.PALETTE[0], up_to),
        ("left out", "X", views.PALETTE[2], [f"without {idea}" for idea in IDEAS]),
    ]
    _, ax = plt.subplots(figsize=(6.4, 3.4))
    for at, (label, mark, color, ways) in enumerate(rows):
        losses = [by_way.get_group(way) for way in ways]
        positions = np.arange(len(ways)) + 0.22 * (at - 1)
        low = [x.min() for x in losses]
        high = [x.max() for x in losses]
        ax.hlines(positions, low, high, color, lw=1.5)
        middle = [x.median() for x in losses]
        ax.plot(middle, positions, mark, color=color, ms=7, label=label)
    for way in ("size", "whole"):
        ax.axvline(by_way.get_group(way).median(), color="0.4", ls=":", lw=1.2)
    ax.set_yticks(range(len(IDEAS)), IDEAS.values())
    ax.invert_yaxis()
    ax.set_xlabel("loss, nats per character")
    ax.legend(fontsize=9, ncols=3, loc="lower center", bbox_to_anchor=(0.5, 1))
    plt.show()


def race(runs, four):
    """Return a table of the recipes: size, loss, and how much sooner each is done.

    Parameters
    ----------
    runs : DataFrame
        Of the study *speedrun*, a row for each run: ``way``, the recipe, of which
        "reference" (nanoGPT's), "simple" and "record" are used; ``seed``; ``seconds`` of
        the processor for all that the recipe does; ``parameters``, how many the model has;
        ``loss`` on the test text, in nats a character.
    four : DataFrame
        Of the study *four-ideas*, the same, of "four" and "record": since computers differ,
        the time of "four" is taken from how much longer it needs here than the record.

    Returns
    -------
    DataFrame
        A row for each recipe, all cells formatted as text: ``parameters`` and ``loss``,
        medians over seeds; ``times sooner``, the seconds of nanoGPT's recipe over the
        recipe's own, by medians of the three seeds whose runs took turns ("" where it is
        1).
    """
    names = {
        "reference": "nanoGPT's recipe",
        "simple": "small, with a line",
        "four": "four ideas",
        "record": "the record",
    }
    medians = pd.concat([runs, four[four.way == "four"]]).groupby("way").median(True)
    in_speedrun, in_four_ideas = (
        each[each.seed < 3].groupby("way").seconds.median() for each in (runs, four)
    )
    slower = in_four_ideas["four"] / in_four_ideas["record"]
    seconds = in_speedrun.to_dict() | {"four": in_speedrun["record"] * slower}
    times = pd.Series({way: seconds["reference"] / seconds[way] for way in names})
    table = {
        "parameters": medians.parameters[[*names]].map("{:,.0f}".format),
        "loss": medians.loss[[*names]].map("{:.2f}".format),
        "times sooner": times.map("{:.0f}".format).replace("1", ""),
    }
    return pd.DataFrame(table).rename(index=names)


# --- the tree of models -------------------------------------------------------------------

TREE = [  # name, year, millions of parameters, kind, built on
    ("Transformer", 2017.4, 213, "both", ""),
    ("GPT", 2018.4, 117, "decoder", "Transformer"),
    ("BERT", 2018.8, 340, "encoder", "Transformer"),
    ("GPT-2", 2019.1, 1542, "decoder", "GPT"),
    ("RoBERTa", 2019.6, 355, "encoder", "BERT"),
    ("T5", 2019.8, 11_000, "both", "Transformer"),
    ("GPT-3", 2020.4, 175_000, "decoder", "GPT-2"),
    ("LLaMA", 2023.1, 65_200, "decoder", "Transformer"),
    ("Llama 3.1", 2024.5, 405_000, "decoder", "LLaMA"),
    ("DeepSeek-V3", 2024.9, 671_000, "decoder", "Transformer"),
]


def tree():
    """Draw models by year, kind and size, each joined to what it was built on.

    They are those of `TREE`: ten from the Transformer of 2017 to DeepSeek-V3. The kind
    (decoder, encoder or with both) is the mark and its colour.

    Returns
    -------
    None
        The figure is shown.
    """
    models = pd.DataFrame(TREE, columns=["name", "year", "millions", "kind", "parent"])
    models = models.set_index("name")
    forms = dict(zip(("decoder", "encoder", "both"), "osD", strict=True))
    colors = dict(zip(forms, views.PALETTE, strict=False))
    offsets = {"Transformer": ((-8, -4), "right"), "GPT-2": ((6, -19), "left")}
    _, ax = plt.subplots(figsize=(7.2, 3.8))
    for name, model in models.iterrows():
        if model.parent:
            root = models.loc[model.parent]
            years = [root.year, model.year]
            sizes = [root.millions, model.millions]
            ax.plot(years, sizes, "0.7", lw=1.2, zorder=0)
        form = {"color": colors[model.kind], "ms": 7}
        ax.plot(model.year, model.millions, forms[model.kind], **form)
        beside, side = offsets.get(name, ((6, -12), "left"))
        shift = {"textcoords": "offset points", "ha": side, "fontsize": 9}
        ax.annotate(name, (model.year, model.millions), beside, **shift)
    for kind, form in forms.items():
        ax.plot([], [], form, color=colors[kind], label=kind.replace("both", "with both"))
    ax.set(yscale="log", xlim=(2015.6, 2026), ylim=(40, 2e6), ylabel="million parameters")
    ax.set_xticks(range(2016, 2027, 2))
    ticks = [1e2, 1e3, 1e4, 1e5, 1e6]
    ax.set_yticks(ticks, [f"{tick:,.0f}" for tick in ticks])
    ax.minorticks_off()
    ax.legend(fontsize=9, ncols=3, loc="lower center", bbox_to_anchor=(0.5, 1))
    plt.show()
