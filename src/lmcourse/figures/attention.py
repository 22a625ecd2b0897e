"""What the chapter *attention* draws: data in, figure or view out."""

import math

import matplotlib.pyplot as plt
import numpy as np
import plotly.graph_objects as go

from lmcourse import views
from lmcourse.numbers import percent
from lmcourse.pronouns import LINE, encode_attention, head_parts, word_positions

MANY = 12  # how often a word must occur to be drawn
BESIDE, END = 0.09, 0.06  # of a row's length: what a dot's name covers; its two ends

# --- sentences to choose from -------------------------------------------------------------


def _one_layer(tokenizer, model, sentence, word, layer):
    """Return a sentence with the attention weights of one layer, for a view of sentences.

    Parameters
    ----------
    tokenizer, model
        A BERT's, as `lmcourse.models.load_bert` loads them, with attention weights.
    sentence : lmcourse.pronouns.Sentence
        Its ``text`` and its ``nouns``, both str.
    word : str
        The pronoun, from which attention goes out.
    layer : int
        Whose attention weights, counted from 0.

    Returns
    -------
    tokens : list of str
    weights : Tensor of shape (heads, tokens, tokens)
    query : int
        The pronoun's position.
    nouns : list of (int, int)
        For each noun of the sentence its first position, and the one after its last.
    """
    batch, weights = encode_attention(tokenizer, model, [sentence.text])
    nouns = [word_positions(batch, 0, sentence.text, noun) for noun in sentence.nouns]
    ends = [(at[0], at[-1] + 1) for at in nouns]
    query = word_positions(batch, 0, sentence.text, word)[0]
    return batch.tokens(), weights[0, layer], query, ends


def _given_to_first(read, head):
    """Return how much attention a head gives the sentence's first noun, such as "46 %".

    ``read`` is a tuple: the sentence's tokens; the weights, (heads, tokens, tokens); the
    position of the token that attends; and the nouns, (first position, last position + 1)
    each. ``head`` is the number of the head.
    """
    _, weights, query, nouns = read
    return percent(weights[head, query, slice(*nouns[0])].sum().item())


def attended(tokenizer, model, untrained, sentences, layer, head):
    """Show what "it" attends to in twelve sentences, in every head of a layer.

    Parameters
    ----------
    tokenizer, model
        A BERT that returns its attention weights: `lmcourse.models.load_bert` with
        ``attn_implementation="eager"``.
    untrained : BertModel
        The same with random weights.
    sentences : list of lmcourse.pronouns.Sentence
        Twelve, each with its ``text`` and its two ``nouns``.
    layer, head : int
        The layer, and the head in it that is shown first; both counted from 0.

    Returns
    -------
    View
        The reader can type other sentences, which the site's BERT reads.
    """
    read, random = (
        [_one_layer(tokenizer, each, sentence, "it", layer) for sentence in sentences]
        for each in (model, untrained)
    )
    first, second = (_given_to_first(each, head) for each in read[:2])
    return views.sentences(
        read,
        head=head,
        notes=["What does a reader take “it” for?"] * len(read),
        layer=layer,
        around=(tokenizer.cls_token_id, tokenizer.sep_token_id),
        untrained=[weights for _, weights, _, _ in random],
        alt=f"Twelve sentences to choose from, in the {len(read[0][1])} heads of layer "
        f"{layer}. In head {head} “it” gives “animal” {first} of its attention in the "
        f"first sentence, which ends with “tired”, and {second} in the second, which "
        "ends with “wide”. A switch puts random weights in the model's place.",
    )


def lines(tokenizer, model, untrained, sentences, notes, layer, head):
    """Show what "He" attends to in versions of a line by Dickinson.

    The line is "Because I could not stop for Death, He kindly stopped for me".

    Parameters
    ----------
    tokenizer, model
        A BERT that returns its attention weights: `lmcourse.models.load_bert` with
        ``attn_implementation="eager"``.
    untrained : BertModel
        The same with random weights.
    layer, head : int
        The layer, and the head in it, both counted from 0.
    sentences : list of lmcourse.pronouns.Sentence
        Each with the noun that stands in the place of *Death*.
    notes : list of str
        What stands below each sentence.

    Returns
    -------
    View
    """
    read, random = (
        [_one_layer(tokenizer, each, sentence, "He", layer) for sentence in sentences]
        for each in (model, untrained)
    )
    shares = [
        f"{_given_to_first(each, head)} to {sentence.nouns[0]}"
        for each, sentence in zip(read, sentences, strict=True)
    ]
    return views.sentences(
        read,
        head=head,
        notes=notes,
        layer=layer,
        around=(tokenizer.cls_token_id, tokenizer.sep_token_id),
        pair="\n".join(LINE.format(words) for words in ("Love", "the horse")),
        untrained=[weights for _, weights, _, _ in random],
        alt=f"{len(read)} versions of a line. In head {head} “He” gives "
        + ", ".join(shares)
        + ". A switch puts random weights in the model's place.",
    )


# --- the mechanism ------------------------------------------------------------------------


def plane():
    """Show five words in a plane and a query, to drag.

    A word's two numbers are its key and its value; the query is that of the last word,
    "it", and fits "animal" best.

    Returns
    -------
    View
    """
    words = {
        "animal": (2.2, 1.3),
        "street": (1.2, -1.6),
        "cross": (-2.1, 1.7),
        "because": (-1.9, -1.9),
        "it": (-0.4, 2.5),
    }
    return views.attention_toy([*words], [*words.values()], (1.9, -0.4))


def apart(tokenizer, model, texts, word, layer, head):
    """Show what a word's attention is computed from, number by number.

    Parameters
    ----------
    tokenizer, model
        A BERT that returns its attention weights: `lmcourse.models.load_bert` with
        ``attn_implementation="eager"``.
    layer, head : int
        The layer, and the head in it, both counted from 0.
    texts : dict of str to str
        What the sentence is called → the sentence.
    word : str
        Whose query it is.

    Returns
    -------
    View
    """
    shown = {}
    for name, text in texts.items():
        query, key, value = head_parts(tokenizer, model, text, layer, head)
        batch = tokenizer(text)
        at = word_positions(batch, 0, text, word)[0]
        shown[name] = (batch.tokens(), query[at], key, value)
    return views.apart("The sentence ends with", shown)


def grid(weights, tokens, query, key, head):
    """Show all heads of a layer as heat maps.

    Parameters
    ----------
    weights : Tensor of shape (heads, tokens, tokens)
        A row attends, a column is attended to; each row sums to 1.
    tokens : list of str
    query, key : int
        Positions of two tokens, for the alternative text.
    head : int
        Counted from 0; also for the alternative text.

    Returns
    -------
    View
    """
    share = percent(weights[head, query, key].item())
    return views.attention_heads(
        weights,
        tokens,
        alt=f"A heat map for each of {len(weights)} heads. In head {head} the row of "
        f"“{tokens[query]}” has {share} of its weight in the column of "
        f"“{tokens[key]}”.",
    )


def saturation(table):
    """Draw the greatest weight against the width, with raw and with scaled scores.

    Parameters
    ----------
    table : DataFrame
        A row for each width; columns ``raw`` and ``scaled``, the greatest attention weight,
        0 to 1, of unscaled scores and of scores divided by the root of the width. The index
        is the width.

    Returns
    -------
    None
        The figure is shown.
    """
    _, ax = plt.subplots(figsize=(5, 3))
    ax.plot(table["raw"], "o--", color=views.PALETTE[1], label="raw")
    ax.plot(table["scaled"], "s-", color=views.PALETTE[0], label="÷ √d")
    ax.set(xscale="log", xlabel="d_head", ylabel="greatest weight", ylim=(0, 1.05))
    ax.legend()
    plt.show()


def bandwidths(keys, values, grid, truth, guesses, first):
    """Show a kernel regression with a slider for its bandwidth.

    Parameters
    ----------
    keys, values : Tensor of shape (points,)
        Where each known point is, and its value.
    grid, truth : Tensor of shape (places,)
        Where the curve is guessed, and what it is there.
    guesses : dict of float to Tensor of shape (places,)
        Bandwidth → what is guessed with it.
    first : int
        Which guess is shown first, counted from 0.

    Returns
    -------
    View
    """
    names = [f"{bandwidth:.2f}" for bandwidth in guesses]
    curves = list(guesses.values())
    figure = go.Figure(layout={"showlegend": False, "height": 420})
    figure.add_scatter(x=keys, y=values, mode="markers", marker_color=views.PALETTE[2])
    line = {"dash": "dash", "color": views.PALETTE[1]}
    figure.add_scatter(x=grid, y=truth, mode="lines", line=line)
    figure.add_scatter(x=grid, y=curves[first], mode="lines", line_color=views.PALETTE[0])
    figure.frames = [
        go.Frame(name=name, traces=[2], data=[{"y": curve}])
        for name, curve in zip(names, curves, strict=True)
    ]
    steps = [
        {"label": name, "method": "animate", "args": [[name], views.AT_ONCE]}
        for name in names
    ]
    slider = {"active": first, "steps": steps, "pad_t": 45}
    slider["currentvalue_prefix"] = "bandwidth = "
    figure.update_layout(sliders=[slider], xaxis_title="position", yaxis_title="value")
    return views.plot(
        figure,
        alt="A noisy wave with a regression curve and a slider for the bandwidth. At the "
        "smallest the curve jumps from point to point; at the largest it is a smooth "
        "slope.",
    )


# --- what a trained head does -------------------------------------------------------------


def noun_heads(shares, random_shares, even, layer, head):
    """Draw what "it" gives the two nouns in every head, trained and with random weights.

    A mark is the share of both nouns together, mean over sentences.

    Parameters
    ----------
    shares, random_shares : Tensor of shape (sentences, nouns, layers, heads)
        The share of its attention that "it" gives to each noun
        (`lmcourse.pronouns.noun_shares`).
    even : float
        What two nouns would get if attention were spread evenly, from 0 to 1.
    layer, head : int
        The layer and, in it, the head that is labelled, counted from 0.

    Returns
    -------
    None
        The figure is shown.
    """
    _, ax = plt.subplots(figsize=(6, 3.4))
    models = (
        ("trained", shares, "o", 0, -0.12),
        ("random weights", random_shares, "x", 6, 0.12),
    )
    for label, given, mark, color, shift in models:
        means = given.sum(dim=1).mean(dim=0)  # (layers, heads)
        layers = np.repeat(np.arange(len(means)) + shift, means.shape[1])
        ax.plot(layers, means.flatten(), mark, color=views.PALETTE[color], label=label)
    height = shares.sum(dim=1).mean(dim=0)[layer, head].item()
    ax.annotate(f"head {head}", (layer, height), xytext=(4, 0), textcoords="offset points")
    ax.axhline(even, color="gray", linestyle="--", label="an even share")
    ax.set(xlabel="layer", ylabel="to the two nouns", ylim=(0, 1.05))
    ax.set_xticks(range(shares.shape[2]))
    ax.yaxis.set_major_formatter(lambda share, _: percent(share))
    # One below the other: side by side they would be wider than a phone.
    ax.legend(loc="upper left", frameon=False, handlelength=1.6)
    plt.show()


def words(shares, it, even):
    """Draw what "it" and the words that occur most often give the two nouns, on average.

    Words that occur less than 12 times (`MANY`) are left out.

    Parameters
    ----------
    shares : DataFrame
        A row for each word of each sentence (`lmcourse.pronouns.word_shares`): ``word``,
        and ``share``, what it gives to the two nouns, from 0 to 1.
    it : float
        The mean share of "it", from 0 to 1.
    even : float
        What the nouns would get if attention were spread evenly; it is marked.

    Returns
    -------
    None
        The figure is shown.
    """
    common = shares[shares.word != "it"].groupby("word").share
    means = common.mean()[common.count() >= MANY]
    means["it"] = it
    means = means.sort_values()
    _, ax = plt.subplots(figsize=(5, 0.26 * len(means) + 1))
    colors = [views.PALETTE[int(word == "it")] for word in means.index]
    ax.barh(means.index, means, color=colors)
    ax.axvline(even, color="gray", linestyle="--")
    ax.set(xlim=(0, 0.9), xlabel="to the two nouns")
    ax.xaxis.set_major_formatter(lambda share, _: percent(share))
    plt.show()


def _strips(ax, groups, named, spread=0.22, place=float):
    """Draw a row of dots for each group of words, and name some of them.

    Parameters
    ----------
    ax : Axes
    groups : dict of str to dict of str to float
        Name of the group → word → number.
    named : collection of str
        The words that are written beside their dots, which are larger and stand in the
        middle of the row; above and below by turns, clear of the dots that are near along
        the axis.
    spread : float
        How far at most dots are moved up or down at random, so that they do not cover each
        other: in rows, which are 1 apart.
    place : callable
        From a number to where it stands along the axis. Default: the number itself, for a
        linear axis; the logarithm, ``math.log``, is for a logarithmic one.
    """
    rng = np.random.default_rng(0)
    everywhere = [place(number) for group in groups.values() for number in group.values()]
    low = min(everywhere)
    high = max(everywhere)
    for row, group in enumerate(groups.values()):
        heights = row + rng.uniform(-spread, spread, len(group))
        numbers = np.array([*group.values()])
        along = (np.array([*map(place, numbers)]) - low) / (high - low)  # from 0 to 1
        ax.plot(numbers, heights, "o", ms=4, alpha=0.6, color=views.PALETTE[row])
        # One above, the next below: on a narrow page they would touch.
        written = [word for word in group if word in named]
        for n, word in enumerate(written):
            x = group[word]
            up = n % 2 == 0
            ax.plot(x, row, "o", ms=6, color=views.PALETTE[row])
            at = (place(x) - low) / (high - low)
            beside = [row, *heights[abs(along - at) < BESIDE]]
            height = max(beside) + 0.05 if up else min(beside) - 0.05
            # At the ends a word grows inwards, away from the axis and the margin.
            side = "center"
            shift = 0
            if at < END:
                side = "left"
                shift = -4
            elif at > 1 - END:
                side = "right"
                shift = 4
            how = {"ha": side, "va": "bottom" if up else "top"}
            ax.annotate(word, (x, height), (shift, 0), textcoords="offset points", **how)
    ax.set_yticks(range(len(groups)), groups)
    ax.set_ylim(-0.6, len(groups) - 0.4)


def endings(leads, named):
    """Draw by how much the animal is ahead of the place, for each last word.

    Parameters
    ----------
    leads : dict of str to dict of str to float
        A group of last words → word → the share of its attention that "it" gives the
        animal, less the share it gives the place; from -1 to 1.
    named : list of str
        The words that are written beside their dots.

    Returns
    -------
    None
        The figure is shown.
    """
    _, ax = plt.subplots(figsize=(6, 3.2))
    _strips(ax, leads, named)
    ax.axvline(0, color="gray", linestyle=":")
    ax.set(xlabel="to the animal less to the place", ylabel="said of")
    ax.set_xticks([-0.4, -0.2, 0])
    ax.xaxis.set_major_formatter(lambda share, _: percent(share))
    plt.show()


def persons(shares, named):
    """Draw what "He" gives to words in the place of *Death*.

    Parameters
    ----------
    shares : dict of str to dict of str to float
        A group of words → word → the share of its attention that "He" gives it, from 0 to
        1.
    named : list of str
        The words that are written beside their dots.

    Returns
    -------
    None
        The figure is shown.
    """
    _, ax = plt.subplots(figsize=(6, 2.8))
    _strips(ax, shares, named, place=math.log)
    ax.set(xscale="log", xlabel="attention of “He” (logarithmic)")
    ax.set_xticks([0.001, 0.01, 0.1, 0.5])
    ax.minorticks_off()
    ax.xaxis.set_major_formatter(lambda share, _: percent(share, 1 if share < 0.01 else 0))
    plt.show()


def removed(results, layer, head):
    """Draw how much less "it" says about the nouns without each head.

    Parameters
    ----------
    results : dict of str to list of dict
        Group → outcomes of the study *nouns-in-it*. ``world`` says which model, "trained",
        which is drawn, or "random"; ``auc`` has how well it can be read from the vector of
        "it", after either of two layers, which nouns are in the sentence: "after 3" and the
        like → for each kind of sentence the share, 0 to 1, of pairs of a noun in it and one
        not in it in which the first scores higher. In the group "whole" all heads
        are there, in "heads" the ``head`` of the ``layer``, both counted from 0, is
        removed.
    layer, head : int
        The layer and, in it, the head that is labelled, counted from 0.

    Returns
    -------
    None
        The figure is shown.
    """
    intact = next(row for row in results["whole"] if row["world"] == "trained")
    _, axes = plt.subplots(1, 2, figsize=(7, 3), sharey=True)
    for ax, (name, before) in zip(axes, intact["auc"].items(), strict=True):
        rows = [row for row in results["heads"] if row["world"] == "trained"]
        rows = [row for row in rows if name in row["auc"]]
        falls = [np.mean(before) - np.mean(row["auc"][name]) for row in rows]
        layers = [row["layer"] for row in rows]
        ax.plot(layers, falls, "o", color=views.PALETTE[0], alpha=0.7)
        for row, fall in zip(rows, falls, strict=True):
            if (row["layer"], row["head"]) == (layer, head):
                ax.plot(layer, fall, "o", color=views.PALETTE[1])
                beside = ax is axes[0]
                where = {"xytext": (-6, 0) if beside else (0, 8)}
                where |= {"ha": "right" if beside else "center"}
                where |= {"va": "center" if beside else "bottom"}
                label = f"head {head}"
                ax.annotate(label, (layer, fall), textcoords="offset points", **where)
        ax.axhline(0, color="gray", linestyle=":")
        number = name.removeprefix("after ")
        ax.set(title=f"after layer {number}", xlabel="layer of the removed head")
        ax.set_xticks(range(1 + max(layers)))
    axes[0].set_ylabel("fall of the score")
    axes[0].yaxis.set_major_formatter(lambda share, _: percent(share))
    plt.show()
