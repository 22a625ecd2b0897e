"""What the chapter *tokenization* draws: data in, figure out."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from lmcourse import views

MARKS = "os^"


def memory(bits):
    """Draw how well a text is predicted, by how many tokens a model remembers.

    Parameters
    ----------
    bits : DataFrame
        Bits per byte of the text, which the figure calls letters; the index is the number
        of tokens remembered, a column is a way to cut the text.

    Returns
    -------
    None
        The figure is shown.
    """
    _, ax = plt.subplots(figsize=(6, 3.4))
    for n, name in enumerate(bits):
        style = f"{MARKS[n % 3]}-"
        ax.plot(bits.index, bits[name], style, color=views.PALETTE[n], label=name)
    ax.set(xlabel="tokens remembered", ylabel="bits per letter")
    ax.set_xticks(bits.index)
    ax.legend()
    plt.show()


def endings(shares):
    """Draw which endings are alike in lines that rhyme and in lines that do not.

    Parameters
    ----------
    shares : DataFrame
        Shares of pairs of lines that end alike, 0 to 1; the index names what is compared
        (an ending), a column is a kind of pair of lines, such as those that rhyme.

    Returns
    -------
    None
        The figure is shown.
    """
    _, ax = plt.subplots(figsize=(5.5, 3.4))
    heights = np.arange(len(shares))
    for n, name in enumerate(shares):
        ink = views.PALETTE[n]
        ax.barh(heights + 0.4 * n, shares[name], 0.4, color=ink, label=name)
    ax.set_yticks(heights + 0.2, shares.index)
    ax.invert_yaxis()
    ax.set(xlim=(0, 1), xlabel="share that ends alike")
    ax.legend(loc="lower right", fontsize=9, handlelength=1)
    plt.show()


def one_sentence(prices, lost):
    """Draw how many tokens a sentence has in each language, as a multiple of English.

    Parameters
    ----------
    prices : DataFrame
        Tokens of the sentence; the index names languages, "English" among them, a column is
        a tokenizer, three of them.
    lost : Series
        For each language the share of letters, 0 to 1, in words that BERT does not know;
        where it is above a tenth, BERT's mark is hollow.

    Returns
    -------
    None
        The figure is shown.
    """
    times = prices / prices.loc["English"]
    ordered = times.sort_values(times.columns[0]).index
    _, ax = plt.subplots(figsize=(5.5, 5.2))
    for n, (name, mark, size) in enumerate(zip(times, MARKS, (90, 36, 36), strict=True)):
        ink = views.PALETTE[n]
        hollow = (lost[ordered] > 0.1) & (name == "BERT")
        face = np.where(hollow, "none", ink)
        look = {"marker": mark, "facecolors": face, "edgecolors": ink, "s": size}
        ax.scatter(times[name][ordered], ordered, label=name, zorder=3, **look)
    ax.grid(axis="y", alpha=0.4)
    ax.set(xlim=(0, 11.5), xlabel="tokens, as a multiple of English")
    ax.legend(loc="lower right")
    plt.show()


def names(runs, languages):
    """Draw what names cost in a language, by the language in which BPE learned.

    Parameters
    ----------
    runs : list of dict
        Of the study *tokenization*, one for each language and seed: ``language``;
        ``english`` and ``own``, by where BPE learned, each [tokens of the names in English,
        tokens in the language].
    languages : list of str
        Those that are drawn: of each the mean over the seeds, as a multiple of English.

    Returns
    -------
    None
        The figure is shown.
    """
    table = pd.DataFrame([run for run in runs if run["language"] in languages])
    for way in ("english", "own"):
        table[way] = [other / english for english, other in table[way]]
    table = table.groupby("language")[["english", "own"]].mean().sort_values("english")
    _, ax = plt.subplots(figsize=(5.5, 5.2))
    ax.axvline(1, color=views.PALETTE[6], ls=":")
    ax.hlines(table.index, table.own, table.english, color=views.PALETTE[6], alpha=0.4)
    labels = {"english": "learned from English", "own": "learned from the language"}
    for n, (way, label) in enumerate(labels.items()):
        ax.scatter(
            table[way], table.index, color=views.PALETTE[n], marker=MARKS[n], label=label
        )
    ax.set_xscale("log")
    ticks = [0.5, 1, 2, 4, 8]
    ax.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    ax.xaxis.minorticks_off()
    ax.set(xlabel="tokens, as a multiple of English")
    ax.legend(loc="lower center", bbox_to_anchor=(0.4, 1.0), frameon=False)
    plt.show()


def sizes(tokens_per_word):
    """Draw how many tokens a word takes, by how many pieces there are.

    Parameters
    ----------
    tokens_per_word : DataFrame
        Tokens per word; the index is the number of pieces in the vocabulary, a column is a
        text, three at most.

    Returns
    -------
    None
        The figure is shown.
    """
    _, ax = plt.subplots(figsize=(5.5, 3.6))
    for n, name in enumerate(tokens_per_word):
        ax.plot(
            tokens_per_word.index,
            tokens_per_word[name],
            f"{MARKS[n]}-",
            color=views.PALETTE[n],
            label=name,
        )
    ax.set(xlabel="pieces", ylabel="tokens per word", ylim=(0, None), xscale="log")
    ticks = [256, 512, 1024, 2048]
    ax.set_xticks(ticks, ["256", "512", "1k", "2k"])
    ax.xaxis.minorticks_off()
    ax.legend()
    plt.show()
