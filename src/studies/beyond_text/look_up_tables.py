"""Look-up tables that predict distances in graphs: rivals of the graph Transformer."""

import torch

from lmcourse.graphs import FAR, NODES, distance_classes, sample_graphs, unmarked_nodes


def table_accuracies(joined, marked, learned=20_000):
    """Return the accuracy of look-up tables, which predict the most frequent distance.

    Distances from the marked node are classes, 0 to 3 edges, and 4 or more.

    A table has an entry for each combination of what is known of a node. ``nothing``: all
    nodes have the same entry. ``counts``: how many neighbours the node has, and how many
    the marked one. ``one step``: these, and whether the two are joined. ``two steps``: also
    whether they share a neighbour.

    Parameters
    ----------
    joined : bool Tensor of shape (count, nodes, nodes)
        Which nodes an edge joins, in the graphs to predict; of 12 nodes each (`NODES`), as
        those on which the tables are counted.
    marked : int64 Tensor of shape (count,)
        The marked node of each graph.
    learned : int
        How many other graphs the tables are counted on.

    Returns
    -------
    dict of str to float
        Name of a table → the share of unmarked nodes that are predicted right, rounded to 4
        decimals.
    """
    training = sample_graphs(learned, torch.Generator().manual_seed(7))
    classes = FAR + 1
    train_keys, train_classes = _table_keys(*training)
    test_keys, test_classes = _table_keys(joined, marked)
    accuracies = {}
    for name, keys in train_keys.items():
        counts = torch.bincount(
            classes * keys + train_classes, None, 3 * classes * NODES**2
        )
        most_frequent = counts.view(-1, classes).argmax(-1)  # by key
        right = most_frequent[test_keys[name]] == test_classes
        accuracies[name] = round(right.float().mean().item(), 4)
    return accuracies


def _table_keys(joined, marked):
    """Return what tables of counts know of each unmarked node, as a number.

    Parameters
    ----------
    joined : bool Tensor of shape (count, nodes, nodes)
        Which nodes an edge joins.
    marked : int64 Tensor of shape (count,)
        The marked node of each graph.

    Returns
    -------
    keys : dict of str to int64 Tensor of shape (unmarked nodes,)
        Name of a table, "nothing", "counts", "one step" or "two steps" → the row of it that
        each node looks up: a number that says how many neighbours the node and the marked
        one have (12, `NODES`, times the first plus the second), and whether the two are
        joined or share a neighbour, as far as the table knows.
    distances : int64 Tensor of shape (unmarked nodes,)
        In edges from the marked node, or 4 (`FAR`) where it is longer.
    """
    judged = unmarked_nodes(joined, marked)
    to_marked = joined[torch.arange(len(marked)), marked]  # (count, nodes)
    neighbours = joined.sum(-1)  # (count, nodes)
    counts = NODES * neighbours + neighbours.gather(1, marked[:, None])
    in_two_steps = ~to_marked & (joined & to_marked[:, None]).any(-1)
    # The last digit, to the base of 3: 2 if joined, 1 if they share a neighbour, else 0.
    in_one_step = 3 * counts + torch.where(to_marked, 2, 0)
    keys = {
        "nothing": torch.zeros_like(neighbours),
        "counts": counts,
        "one step": in_one_step,
        "two steps": in_one_step + torch.where(in_two_steps, 1, 0),
    }
    keys = {name: key[judged] for name, key in keys.items()}
    return keys, distance_classes(joined, marked)[judged]
