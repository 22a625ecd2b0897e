"""What the chapter *beyond-text* draws: data in, figure, table or view out."""

import matplotlib.pyplot as plt
import networkx as nx
import numpy as np
import pandas as pd

from lmcourse import views
from lmcourse.digit_readers import reader_accuracies
from lmcourse.graphs import FAR
from lmcourse.numbers import format_number, percent
from lmcourse.rules import REACH, TURNS

# --- digits ---------------------------------------------------------------------------


def _ink(image):
    """Return a drawing of 8 × 8 cells as an SVG.

    ``image`` : array of shape (8, 8), ink from 0 to 1.
    """
    cells = "".join(
        f'<rect x="{x}" y="{y}" width="1" height="1" fill-opacity="{ink:.2f}"/>'
        for (y, x), ink in np.ndenumerate(np.asarray(image))
        if ink > 0
    )
    frame = (
        '<rect width="8" height="8" fill="none" stroke="currentColor" stroke-width="0.1"/>'
    )
    return (
        '<svg viewBox="-0.1 -0.1 8.2 8.2" width="160" height="160" fill="currentColor" '
        f'role="img" aria-label="A drawn digit.">{frame}{cells}</svg>'
    )


def digits(reader, images, chosen):
    """Show a field to draw a digit in, and what a vision Transformer makes of it.

    Parameters
    ----------
    reader : lmcourse.vision.VisionTransformer
        From images to logits (digits, 10) and attention weights, a Tensor a layer. Its
        answer to the first digit is stored in the page.
    images : Tensor of shape (digits, 8, 8)
        Ink, from 0 to 1.
    chosen : list of int
        Rows of ``images``: the digits that the button *Another* goes through.

    Returns
    -------
    View
        Its data are the examples, a dict each: ``ink``, 64 numbers row by row; of the first
        also the probabilities of the ten digits, ``probs``, and the attention ``weights``,
        nested lists (layers, heads, tokens, tokens).
    """
    logits, weights = reader(images[chosen[:1]])
    probabilities = logits[0].softmax(-1).numpy().round(4).tolist()
    examples = [{"ink": images[row].flatten().tolist()} for row in chosen]
    examples[0] |= {
        "probs": probabilities,
        "weights": [layer[0].numpy().round(4).tolist() for layer in weights],
    }
    listed = ", ".join(
        f"{digit}: {format_number(share, '.0%')}"
        for digit, share in enumerate(probabilities)
    )
    return views.View(
        "digits-view",
        {"examples": examples},
        f"{_ink(images[chosen[0]])}<p>What the model makes of this drawing: {listed}.</p>",
        alt="A square of 8 by 8 cells to draw a digit in, the same digit as 16 patches "
        "with the attention that each gets, and the probabilities of the ten digits. A "
        "switch puts random weights in the model's place.",
        stores=["digits", "digits-random"],
    )


def readers(study):
    """Draw the accuracy of each reader on each fifth of the digits, and its mean.

    A row for each of six readers, the best on top: nearest neighbours, logistic regression,
    a convolutional network, and a vision Transformer, also trained longer and without
    positions. A dashed line shows a guess, a tenth.

    Parameters
    ----------
    study : dict
        The stored study *beyond-text*. ``settings["digits"]`` has the ``steps`` of short
        trainings, and of ``longer`` ones. In ``results`` a run of "digits" has ``reader``,
        ``steps``, ``fold``, ``seed``, and the shares right ``validation`` and ``test``; a
        row of "simple" has ``fold`` and the shares right of ``neighbours`` and
        ``logistic``.

    Returns
    -------
    None
        The figure is shown.
    """
    accuracies = reader_accuracies(study)
    sizes = study["settings"]["digits"]
    short = sizes["steps"]
    long = sizes["longer"]
    named = {
        "nearest neighbours": ("nearest neighbours", 0),
        "logistic regression": ("logistic regression", 0),
        "convolution": ("convolution", short),
        "Transformer, trained\nten times as long": ("Transformer", long),
        "Transformer": ("Transformer", short),
        "Transformer without\npositions": ("no places", short),
    }
    means = accuracies.groupby(["reader", "steps", "fold"]).accuracy.mean()
    rows = {name: means[key].to_numpy() for name, key in named.items()}
    order = sorted(rows, key=lambda name: -rows[name].mean())
    _, ax = plt.subplots(figsize=(6.6, 3.6))
    for y, name in enumerate(order):
        ax.plot(rows[name], [y] * len(rows[name]), "o", color=views.PALETTE[0], alpha=0.6)
        ax.plot(rows[name].mean(), y, "|", color="0.3", ms=18, mew=2)
    ax.axvline(0.1, color="0.4", ls="--", lw=1)
    ax.set_yticks(range(len(order)), order)
    ax.set(xlabel="share of digits read right", xlim=(0, 1.02))
    ax.invert_yaxis()
    plt.show()


# --- graphs ---------------------------------------------------------------------------


def one_graph(walker, joined, marked):
    """Draw a graph with the distance that each node is given, and the learned bonuses.

    Parameters
    ----------
    walker : lmcourse.graphs.GraphTransformer
        It gives each node logits of its distance from the marked one: 0, 1, 2, 3, 4 edges
        or more. Its ``bonus``, (heads, 3), is added to the scores of two nodes that no edge
        joins, of two that one joins, and of a node with itself.
    joined : bool Tensor of shape (nodes, nodes)
        Which nodes an edge joins.
    marked : int Tensor of shape ()
        The marked node.

    Returns
    -------
    None
        The figure is shown.
    """
    logits, _ = walker(joined[None], marked[None])
    predicted = logits[0].argmax(-1).tolist()
    names = [f"{FAR}+" if each == FAR else str(each) for each in predicted]
    network = nx.from_numpy_array(joined.numpy())
    spots = nx.kamada_kawai_layout(network)
    _, (left, right) = plt.subplots(1, 2, figsize=(7.2, 3.2), layout="constrained")
    for a, b in network.edges:
        left.plot(*zip(spots[a], spots[b], strict=True), color="0.6", lw=1, zorder=1)
    for node, spot in spots.items():
        is_marked = node == int(marked)
        face = views.PALETTE[1] if is_marked else "white"
        left.plot(*spot, "o", ms=17, color=face, mec="0.4", zorder=2)
        text = "" if is_marked else names[node]
        left.text(*spot, text, ha="center", va="center", fontsize=9, color="black")
    left.set_title("predicted distances")
    left.axis("off")
    left.margins(0.12)
    bonus = walker.bonus.detach().numpy()  # (heads, 3)
    for kind, label in enumerate(("not joined", "joined", "itself")):
        x = np.arange(len(bonus)) + 0.27 * (kind - 1)
        right.bar(x, bonus[:, kind], 0.27, color=views.PALETTE[kind], label=label)
    right.axhline(0, color="0.4", lw=1)
    right.set(title="learned bonus", xlabel="head", xticks=range(len(bonus)))
    right.set_ylim(bonus.min() - 0.5, bonus.max() + 3.5)
    right.legend(ncols=1, loc="upper right")
    plt.show()


def distances_told(study):
    """Draw which distances are given to nodes at each distance, by number of layers.

    A panel for each number of layers: a row is a true distance, 1, 2, 3 edges or 4 and
    more, a cell the share of its nodes that are given a distance.

    Parameters
    ----------
    study : dict
        The stored study *one-edge-farther*. In ``results`` a run of the group "graphs" has
        ``layers``, ``steps`` and ``own``, how many nodes of each distance are given each
        distance: nested lists (true, predicted). ``settings["steps"]`` are those of the
        runs drawn.

    Returns
    -------
    None
        The figure is shown.
    """
    runs = study["results"]["graphs"]
    steps = study["settings"]["steps"]
    depths = sorted({run["layers"] for run in runs})
    names = [*map(str, range(1, FAR)), f"{FAR}+"]
    _, axes = plt.subplots(1, len(depths), figsize=(7.2, 2.9), layout="constrained")
    for ax, layers in zip(axes, depths, strict=True):
        mine = [r["own"] for r in runs if r["layers"] == layers and r["steps"] == steps]
        counts = np.sum(mine, axis=0)  # (true distances, predicted distances)
        shares = counts / counts.sum(axis=1, keepdims=True)
        ax.imshow(shares, cmap=views.SEQUENTIAL, vmin=0, vmax=1)
        for (true, predicted), share in np.ndenumerate(shares):
            ink = "white" if share > 0.6 else "black"
            text = percent(share)
            ax.text(predicted, true, text, ha="center", va="center", color=ink, fontsize=9)
        ax.set_xticks(range(FAR), names)
        ax.set_yticks(range(FAR), names)
        ax.set(xlabel="predicted", ylabel="true distance")
        ax.set_title("1 layer" if layers == 1 else f"{layers} layers")
        ax.grid(visible=False)
    plt.show()


# --- letters --------------------------------------------------------------------------


def rule_heads(heads):
    """Draw where two heads attend, and what is lost without each.

    A letter depends on the one two places before, or in other texts on the one four places
    before: the two rules. A dashed line shows the loss of a guess among 20 letters.

    Parameters
    ----------
    heads : dict
        ``attention``: of each of two heads the mean attention weight by distance, 1 to 8
        letters back; ``whole``: the two losses under the rules, in nats a letter;
        ``without``: the same pair for each head, which is ablated.

    Returns
    -------
    None
        The figure is shown.
    """
    _, (left, right) = plt.subplots(1, 2, figsize=(7.2, 2.9), layout="constrained")
    for head, weights in enumerate(heads["attention"]):
        x = np.arange(1, REACH + 1) + 0.4 * head - 0.2
        left.bar(x, weights, 0.4, color=views.PALETTE[head], label=f"head {head}")
    left.set(title="attention", xlabel="letters back", xticks=range(1, REACH + 1))
    left.legend()
    losses = {"both heads": heads["whole"]}
    losses |= {f"without {head}": loss for head, loss in enumerate(heads["without"])}
    for index, (turn, hatch) in enumerate(zip(TURNS, ("//", ""), strict=True)):
        x = np.arange(len(losses)) + 0.4 * index - 0.2
        y = [loss[index] for loss in losses.values()]
        color = views.PALETTE[2 + index]
        label = f"rule: {turn} back"
        right.bar(x, y, 0.4, ec="white", hatch=hatch, color=color, label=label)
    right.axhline(np.log(20), ls="--", color="0.4", lw=1, label="a guess")
    right.set(title="loss (nats a letter)", ylim=(0, 6.6))
    right.set_xticks(range(len(losses)), losses)
    right.legend(loc="upper left")
    plt.show()


def letter_losses(study):
    """Return the losses of the model of letters, and of models that count.

    Parameters
    ----------
    study : dict
        The stored study *beyond-text*, losses in nats a letter. Of ``results`` the group
        "rules" has models: ``whole``, their loss under each of two rules; ``steps`` of
        training; ``kept``, how probably a letter keeps the rule: those of 0 are left out.
        The second row of "counted" has models that count: "three in a row", trigrams; "two
        places", the letters two and four back; "again", a mixture of models that know one
        distance each. ``settings["rules"]["steps"]`` are those of the short trainings.

    Returns
    -------
    DataFrame
        A row for each predictor, a guess among 20 letters first; columns ``lowest`` and
        ``highest``, over its trainings, of the mean loss under both rules, in nats a
        letter, as text.
    """
    counted = study["results"]["counted"][1]
    short = study["settings"]["rules"]["steps"]
    runs = [run for run in study["results"]["rules"] if run["kept"] > 0]
    model = [np.mean(run["whole"]) for run in runs if run["steps"] == short]
    longer = [np.mean(run["whole"]) for run in runs if run["steps"] != short]
    rows = {
        "a guess": [np.log(20)],
        "counting three letters in a row": [counted["three in a row"]],
        "counting letters two and four back": [counted["two places"]],
        "the model: one layer, two heads": model,
        "the same, trained ten times as long": longer,
        "counting that sorts the sequences first": [counted["again"]],
    }
    ends = {name: [min(values), max(values)] for name, values in rows.items()}
    table = pd.DataFrame(ends, index=["lowest", "highest"]).T
    return table.map("{:.2f}".format)
