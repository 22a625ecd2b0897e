"""What the chapter *transformer-block* draws: data in, figure or view out."""

import math

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import seaborn as sns
import torch
from scipy.spatial import ConvexHull
from torch.nn import functional as F

from lmcourse import views

# What a stack lacks (`lmcourse.lacking.LACKING`) → what a figure calls it, and its colour.
NAMES = {
    "nothing": ("nothing", 0),
    "attention": ("attention", 3),
    "feed-forward": ("feed-forward", 5),
    "norms": ("norms", 1),
    "norms, one constant": ("norms (one constant instead)", 2),
    "paths": ("paths", 4),
    "paths, other tokens": ("paths (each token alone)", 6),
}

# --- the block ----------------------------------------------------------------------------


def parts(measured, line, untrained, reordered):
    """Show a block whose parts can be switched off.

    Parameters
    ----------
    measured : DataFrame
        A row for each ``layer``, from 0, and ``part`` of it, a str such as "norm_1" or the
        number of a head, an int, with the ``loss`` without it in nats a character, its
        ``change`` with the ends of its interval, ``low`` and ``high``, and the ``line``
        that the model then writes. Layer 1 is shown first.
    line : str
        What the model writes with all its parts.
    untrained, reordered : (DataFrame, str)
        The same table and line of a model with random weights; and of text whose letters
        are in another order.

    Returns
    -------
    View
    """
    first = min(1, int(measured.layer.max()))
    return views.block(measured, first, line, untrained=untrained, reordered=reordered)


# --- averages -----------------------------------------------------------------------------


def hull(rounds):
    """Draw points, what attention makes of them round by round, and a line around each.

    The line is the convex hull; it is left out if no two points are more than 0.01 apart.

    Parameters
    ----------
    rounds : list of Tensor of shape (tokens, 2)
        The tokens at first, and after each round.

    Returns
    -------
    None
        The figure is shown.
    """
    _, ax = plt.subplots(figsize=(5.2, 3.6))
    for i, x in enumerate(rounds):
        name = "the tokens" if i == 0 else f"after round {i}"
        ax.scatter(*x.T, s=24, label=name, color=views.PALETTE[i])
        if torch.cdist(x, x).max() > 1e-2:
            ring = ConvexHull(x.numpy()).vertices
            ax.plot(*x[[*ring, ring[0]]].T, lw=1.5, color=views.PALETTE[i])
    ax.set(xlabel="first number", ylabel="second number")
    ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), fontsize=9, ncols=3)
    plt.show()


def _plot_by_depth(ax, flows, kind, names):
    """Draw one number of random stacks against the blocks passed: medians over seeds.

    Parameters
    ----------
    ax : matplotlib Axes
    flows : dict of str to list of dict
        What is removed, such as "paths" → one dict for each random stack.
    kind : str
        The key of the list that is drawn, "spread" or "size": one number before the first
        block and one after each, (blocks + 1).
    names : iterable of str
        Which keys of ``flows`` are drawn, four at most; `NAMES` says how the legend calls
        them, and their colours.
    """
    for name, marker in zip(names, "os^D", strict=False):
        label, color = NAMES[name]
        middle = np.median([run[kind] for run in flows[name]], axis=0)
        style = {"marker": marker, "ms": 4, "color": views.PALETTE[color]}
        ax.plot(middle, label=label, **style)
    ax.set(xlabel="blocks passed")


def spreads(flows):
    """Draw how different the tokens are after each block of random stacks that lack a part.

    Parameters
    ----------
    flows : dict of str to list of dict
        What is missing ("nothing", "paths", "paths, other tokens", "attention") → a dict
        for each seed. Its ``spread`` lists how far the tokens are from their mean, before
        the first block and after each; the median over the seeds is drawn.

    Returns
    -------
    None
        The figure is shown.
    """
    _, ax = plt.subplots(figsize=(6.4, 3.4))
    names = ["nothing", "paths", "paths, other tokens", "attention"]
    _plot_by_depth(ax, flows, "spread", names)
    ax.set(ylabel="spread of the tokens", ylim=(-0.05, 1.1), yticks=[0, 0.5, 1])
    above = {"loc": "lower center", "bbox_to_anchor": (0.5, 1.0)}  # on a phone it is wider
    ax.legend(title="missing", fontsize=9, ncols=2, **above)
    plt.show()


def sizes(flows, small_flows):
    """Draw how large the numbers are after each block of random stacks.

    Parameters
    ----------
    flows, small_flows : dict of str to list of dict
        Of random stacks with Xavier's first weights and with PyTorch's own: what is missing
        ("nothing", "norms", "norms, one constant"; of the second only "norms" is drawn) → a
        dict for each seed. Its ``size`` lists how large the numbers are, before the first
        block and after each; the median over the seeds is drawn.

    Returns
    -------
    None
        The figure is shown.
    """
    _, ax = plt.subplots(figsize=(6.4, 3.4))
    _plot_by_depth(ax, flows, "size", ["nothing", "norms", "norms, one constant"])
    middle = np.median([run["size"] for run in small_flows["norms"]], axis=0)
    style = {"ls": "--", "color": views.PALETTE[1], "label": "norms; PyTorch's weights"}
    ax.plot(middle, **style)
    ax.set(ylabel="size of the numbers", yscale="log", ylim=(0.5, 1e8))
    ax.legend(title="missing", fontsize=9, loc="upper left")
    plt.show()


# --- the feed-forward network -------------------------------------------------------------


def activations():
    """Draw five activations, each in a panel of its own.

    Returns
    -------
    None
        The figure is shown.
    """
    x = torch.linspace(-4, 4, 161)
    curves = {
        "sigmoid": torch.sigmoid(x),
        "tanh": torch.tanh(x),
        "ReLU": F.relu(x),
        "GELU": F.gelu(x),
        "SiLU": F.silu(x),
    }
    _, axes = plt.subplots(1, 5, figsize=(7.2, 1.9), sharey=True)
    for color, (ax, (name, y)) in enumerate(zip(axes, curves.items(), strict=True)):
        ax.axhline(0, color=views.PALETTE[6], lw=0.7)
        ax.axvline(0, color=views.PALETTE[6], lw=0.7)
        ax.plot(x, y, color=views.PALETTE[color])
        ax.set(title=name, ylim=(-1.5, 4), xticks=[-3, 0, 3], yticks=[-1, 0, 1, 2, 3])
    plt.show()


def neurons(own, copy, before, every=16):
    """Show where neurons are most active, beside copies with shuffled weights.

    The reader guesses which of two lists is the neuron's.

    Parameters
    ----------
    own, copy : Tensor of shape (neurons, number)
        The positions in a text at which each neuron, or its copy, is most active.
    before : callable
        From a position, a Tensor of shape (), to the text that ends there, a str.
    every : int
        Every so many neurons are shown.

    Returns
    -------
    View
    """
    shown = range(0, len(own), every)
    return views.neurons(
        {f"neuron {i}": ([*map(before, own[i])], [*map(before, copy[i])]) for i in shown}
    )


# --- trained without a part ---------------------------------------------------------------


def trained_without(runs):
    """Draw the losses of models that were trained without a part, by depth.

    Parameters
    ----------
    runs : list of dict
        Of the study *transformer-block*, its group "grid": ``weights``, the first ones,
        "PyTorch's" or "Xavier"; ``off``, the part that is missing, one of `NAMES`, such as
        "norms" or "nothing"; ``layers``, how many blocks; ``loss``, in nats a character.
        Two heat maps, one for each kind of weights, with the mean over the seeds in each
        cell; a part without a loss at every depth is left out.

    Returns
    -------
    None
        The figure is shown.
    """
    runs = pd.DataFrame(runs)
    fig, axes = plt.subplots(2, 1, figsize=(6.4, 6), height_ratios=(5, 7))
    fig.set_layout_engine("constrained")
    for ax, weights in zip(axes, ["PyTorch's", "Xavier"], strict=True):
        losses = runs[runs.weights == weights].pivot_table("loss", "off", "layers")
        losses = losses.reindex([*NAMES]).dropna()
        labels = losses.map(lambda x: f"{x:.2f}" if x < 10 else f"{x:.0f}")
        losses.index = [NAMES[name][0].replace(" (", "\n(") for name in losses.index]
        options = {"annot": labels.to_numpy(), "fmt": "", "cbar": False}
        options |= {"vmin": 2.4, "vmax": 3.2, "cmap": views.SEQUENTIAL}
        sns.heatmap(losses, ax=ax, **options)
        ax.set(xlabel="blocks", ylabel="missing", title=f"First weights: {weights}")
    plt.show()


def norm_orders(runs):
    """Draw the loss of pre-norm and post-norm stacks against the learning rate.

    Parameters
    ----------
    runs : list of dict
        Of the study *norm-place*: ``norm_first``, whether the norm stands before attention
        and feed-forward network (pre-norm); ``warmup``, in steps, 0 for none; ``rate``, the
        learning rate; ``loss``, in nats. Dots are runs, lines join the means over the
        seeds; a dotted line is the loss of a guess among ten.

    Returns
    -------
    None
        The figure is shown.
    """
    _, ax = plt.subplots(figsize=(6.4, 3.4))
    rates = sorted({run["rate"] for run in runs})
    for (first, warmup), rows in pd.DataFrame(runs).groupby(["norm_first", "warmup"]):
        name = f"{'pre' if first else 'post'}-norm, {'' if warmup else 'no '}warm-up"
        color = views.PALETTE[0 if first else 1]
        line = "s--" if warmup else "o-"
        means = rows.groupby("rate").loss.mean().reindex(rates)
        ax.plot(range(len(rates)), means, line, color=color, label=name)
        ax.plot(rows.rate.map(rates.index), rows.loss, ".", color=color)
    ax.axhline(math.log(10), ls=":", color=views.PALETTE[6])
    ax.set_xticks(range(len(rates)), rates)
    ax.set(xlabel="learning rate", ylabel="loss (nats)")
    ax.legend(fontsize=9)
    plt.show()


def end_gradients(measured):
    """Draw the gradient of the last block against the depth of a stack.

    Parameters
    ----------
    measured : dict of str to dict of int to list of float
        Order of the norm, "pre-norm" or "post-norm" → number of blocks → the length of the
        gradient of the last block's weights, for each seed.

    Returns
    -------
    None
        The figure is shown.
    """
    _, ax = plt.subplots(figsize=(5.2, 3.2))
    for i, (name, by_depth) in enumerate(measured.items()):
        middle = [np.median(lengths) for lengths in by_depth.values()]
        ax.plot([*by_depth], middle, "os"[i] + "-", color=views.PALETTE[i], label=name)
    ax.set(xlabel="blocks", ylabel="gradient of the last block", xscale="log", yscale="log")
    ax.set_xticks([*by_depth], [*by_depth])
    ax.minorticks_off()
    ax.legend(loc="lower left")
    plt.show()
