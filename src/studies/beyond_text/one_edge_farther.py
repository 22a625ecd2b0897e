"""How far does a graph Transformer see, and how often does a head take one rule?

What varies: the number of layers of a model that tells how many edges a node is from the
marked one; the number of training steps; the seed. Of models that read letters by two
rules, twelve seeds more than in the study *beyond-text*.

Rivals: a model of fewer layers, also one that is trained five times as long.

Null: the same models, given the edges of another graph.

Statistic: how well nodes at a distance are told apart from nodes that are farther: the
share of the former that are placed at the distance and the share of the latter that are
not, averaged, so that a guess has one half. The interval is that of a distance told by as
many layers less the same told by a layer fewer, from the lowest to the highest over
distances and seeds.
"""

import torch

from lmcourse import graphs, rules
from lmcourse.training_loop import train_one_cycle
from studies.beyond_text.beyond_text import (
    SETTINGS as EARLIER,
)
from studies.beyond_text.beyond_text import (
    graph_loss,
    sample_test_graphs,
    train_on_rules,
)
from studies.harness import alike, count, grid, paired

CHAPTER = "beyond-text"
CLAIM = "Each layer of a graph Transformer sees one edge farther"
RIVAL = "a layer fewer, also trained five times as long"
NULL = "the edges of another graph"
LAYERS = (1, 2, 3)
SETTINGS = {
    "steps": 400,
    "longer": 2000,
    "rate": EARLIER["graphs"]["rate"],
    "batch": EARLIER["graphs"]["batch"],
    "seeds": [0, 1, 2, 3, 4],
    "longer seeds": [0, 1, 2],
    "rule seeds": list(range(12, 24)),
    "rule steps": EARLIER["rules"]["steps"],
}


def plan(small):
    """Return the settings of all runs.

    Parameters
    ----------
    small : bool
        Whether to return one of each group, with two steps.

    Returns
    -------
    list of dict
        The arguments of each run: ``group``, "graphs" or "rules"; ``seed``; ``steps`` of
        training; of "graphs" also ``layers``, how many the model has.
    """
    sizes = SETTINGS
    trained = grid(group="graphs", layers=LAYERS, seed=sizes["seeds"], steps=sizes["steps"])
    longer = grid(
        group="graphs",
        layers=LAYERS[:2],
        seed=sizes["longer seeds"],
        steps=sizes["longer"],
    )
    letters = grid(group="rules", seed=sizes["rule seeds"], steps=sizes["rule steps"])
    if small:
        return [{**trained[0], "steps": 2}, {**letters[0], "steps": 2}]
    return trained + longer + letters


def run(folder, group, **setting):
    """Train a model of graphs or of letters.

    Parameters
    ----------
    folder : Path
        No model is saved.
    group : {"graphs", "rules"}
        What it is a model of: distances in graphs, or letters that follow a rule.
    **setting
        ``seed`` and ``steps`` of training; of "graphs" also ``layers``, how many.

    Returns
    -------
    dict
        The setting. Of graphs ``own`` and ``other``: how many nodes at each distance from
        the marked one (rows: 1, 2, 3, 4 or more edges) are predicted at each distance
        (columns), with their own edges and with those of another graph. Of letters
        ``kept``, 0.8, the probability that a letter follows the rule; ``whole``, the loss
        by rule, and ``without``, the same with each head ablated, (heads, rules), in nats a
        letter; ``looks``, each head's attention by distance, (heads, distances).
    """
    if group == "rules":
        return train_on_rules(folder, kept=rules.RULED, **setting)
    return distances_told(**setting)


def distances_told(layers, seed, steps):
    """Train a graph Transformer, and count which distances it predicts for nodes.

    A distance is that from the graph's marked node, in edges.

    Parameters
    ----------
    layers : int
        How many the model has.
    seed : int
        Of the first weights, and of all that is drawn.
    steps : int
        How many steps of training.

    Returns
    -------
    dict
        The settings ``layers``, ``seed``, ``steps``; ``own`` and ``other``, lists of lists
        of int: how many nodes at each distance (rows: 1, 2, 3, 4 or more) are given each
        distance (columns), with the graph's own edges and with those of another graph.
    """
    torch.manual_seed(seed)
    generator = torch.Generator().manual_seed(seed)
    model = graphs.GraphTransformer(layers=layers)

    def loss_at(step):
        """Return the mean loss of a batch of new graphs, in nats; ``step`` is not used."""
        batch = graphs.sample_graphs(SETTINGS["batch"], generator)
        return graph_loss(model, *batch)

    train_one_cycle(model, loss_at, steps, SETTINGS["rate"])
    joined, marked = sample_test_graphs()
    return {
        "layers": layers,
        "seed": seed,
        "steps": steps,
        "own": count_told(model, joined, joined, marked),
        "other": count_told(model, joined.roll(1, 0), joined, marked),
    }


@torch.no_grad()
def count_told(model, given, joined, marked):
    """Count for each true distance how many nodes are predicted at each distance.

    Parameters
    ----------
    model : lmcourse.graphs.GraphTransformer
    given : bool Tensor of shape (graphs, nodes, nodes)
        The edges that the model is given.
    joined : bool Tensor of shape (graphs, nodes, nodes)
        The edges by which distances are measured.
    marked : int64 Tensor of shape (graphs,)
        The marked node of each graph.

    Returns
    -------
    list of list of int
        A row for each true distance from the marked node, 1 to 4 (`graphs.FAR`, which is 4
        or more), a column for each distance that the model predicts. A prediction of 0
        counts in no column.
    """
    classes = graphs.FAR + 1
    predicted = model(given, marked)[0].argmax(-1)  # (graphs, nodes)
    pairs = classes * graphs.distance_classes(joined, marked) + predicted
    unmarked = graphs.unmarked_nodes(joined, marked)
    counts = torch.bincount(pairs[unmarked], None, classes**2)
    return counts.view(classes, classes)[1:, 1:].tolist()


def told_apart(told, distance):
    """Return how well nodes at a distance are told apart from nodes that are farther.

    Parameters
    ----------
    told : list of list of int
        How many nodes of each true distance (rows: 1, 2, 3, 4 or more edges) are predicted
        at each distance (columns).
    distance : int
        From 1 to 3.

    Returns
    -------
    float
        From 0 to 1, the mean of two shares: of the nodes at the distance that are predicted
        there, and of the farther ones that are not. A guess has one half.
    """
    here = told[distance - 1]
    farther = told[distance:]
    column = distance - 1
    right = here[column] / sum(here)
    mistaken = sum(row[column] for row in farther) / sum(map(sum, farther))
    return (right + 1 - mistaken) / 2


def summary(results):
    """Compare each distance told by as many layers with the same by a layer fewer.

    Parameters
    ----------
    results : dict of str to list of dict
        Group → outcomes of its runs, each with ``seed``. "graphs": ``layers``, ``steps``,
        and ``own``, how many nodes at each distance (rows: 1, 2, 3, 4 or more) are given
        each distance (columns). Of "rules" only the seeds are used. Both may be missing.

    Returns
    -------
    dict
        ``n``, the number of outcomes, and their ``seeds``; ``interval``, of how much better
        a distance of as many edges as layers is told apart than with a layer fewer, in
        shares of the nodes, lowest and highest; ``verdict``, "holds" or "not so": whether
        every distance up to the number of layers is told apart in more than 98 % of the
        nodes, and no farther one in more than 80 %.
    """
    rows = results.get("graphs", [])
    within = []
    beyond = []
    for row in rows:
        for distance in LAYERS:
            share = told_apart(row["own"], distance)
            (within if distance <= row["layers"] else beyond).append(share)
    ones = []
    others = []
    for seed in SETTINGS["seeds"]:
        for distance in LAYERS[1:]:
            same = alike(rows, seed=seed, layers=distance, steps=SETTINGS["steps"])
            fewer = alike(rows, seed=seed, layers=distance - 1, steps=SETTINGS["steps"])
            if same and fewer:
                ones.append(told_apart(same[0]["own"], distance))
                others.append(told_apart(fewer[0]["own"], distance))
    holds = bool(ones) and min(within) > 0.98 and max(beyond) < 0.8
    if not ones:  # a short run
        ones = [0.0]
        others = [0.0]
    return count(rows + results.get("rules", [])) | paired(ones, others, holds)
