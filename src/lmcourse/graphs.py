"""A graph Transformer: the nodes of a graph are tokens, its edges a bias of the scores.

Every graph has one marked node, and for each node the model predicts how far it is from
that one.
"""

import torch
import torch.nn.functional as F
from torch import nn

from lmcourse.transformer import Stack

NODES = 12  # of a graph
MORE_EDGES = 3  # beyond those of a tree
FAR = 4  # distances from here on are one class


def sample_graphs(count, generator, nodes=NODES, more_edges=MORE_EDGES):
    """Return random connected graphs: each a tree, and some edges more.

    Parameters
    ----------
    count : int
        How many graphs.
    generator : torch.Generator
    nodes, more_edges : int
        Of each graph: its nodes, by default 12, and how many random edges it gets beside
        its tree's, by default 3; one that joins a node to itself, or two joined ones, adds
        none.

    Returns
    -------
    joined : bool Tensor of shape (count, nodes, nodes)
        Which nodes an edge joins; symmetric.
    marked : int64 Tensor of shape (count,)
        The marked node of each graph.
    """
    joined = torch.zeros(count, nodes, nodes, dtype=torch.bool)
    graph = torch.arange(count)
    order = torch.rand(count, nodes, generator=generator).argsort(1)  # of joining the tree
    share = torch.rand(count, nodes, generator=generator)
    for place in range(1, nodes):  # each is joined to one that is there already
        earlier = (share[:, place] * place).long()
        joined[graph, order[:, place], order[graph, earlier]] = True
    for _ in range(more_edges):
        a, b = torch.randint(nodes, (2, count), generator=generator)
        joined[graph, a, b] = a != b
    marked = torch.randint(nodes, (count,), generator=generator)
    return joined | joined.mT, marked


def distances(joined, marked):
    """Return how many edges each node is from the marked one.

    Parameters
    ----------
    joined : bool Tensor of shape (count, nodes, nodes)
        Which nodes an edge joins.
    marked : int64 Tensor of shape (count,)
        The marked node of each graph.

    Returns
    -------
    int64 Tensor of shape (count, nodes)
        In edges; where no path leads to the marked node, as many as the graph has nodes.
    """
    nodes = joined.shape[-1]
    reached = F.one_hot(marked, nodes).bool()  # (count, nodes)
    distance = torch.where(reached, 0, nodes)
    for step in range(1, nodes):  # one edge further each time
        reached = reached | (joined & reached[:, None]).any(-1)
        distance = torch.where(reached, distance.clamp(max=step), distance)
    return distance


def edge_bias(joined, bonus):
    """Return what is added to the attention scores of each pair of nodes.

    Parameters
    ----------
    joined : bool Tensor of shape (count, nodes, nodes)
        Which nodes an edge joins.
    bonus : Tensor of shape (heads, 3)
        What each head adds for two nodes that are not joined, for two that are joined, and
        for a node and itself.

    Returns
    -------
    Tensor of shape (count, heads, nodes, nodes)
    """
    itself = 2 * torch.eye(joined.shape[-1], dtype=torch.long)
    kinds = joined.long() + itself  # (count, nodes, nodes): 0, 1 or 2
    return bonus[:, kinds].transpose(0, 1)


class GraphTransformer(nn.Module):
    """Blocks on the nodes of a graph, of which one is marked.

    They predict how far each node is from the marked one: a class, 0 to 3 edges, 4 or more.

    Parameters
    ----------
    counted : bool
        Whether edges come in as the number of a node's neighbours (below 12), in its token.
        Default: as a bias of the scores.
    layers, d_model, heads : int
    """

    def __init__(self, counted=False, layers=3, d_model=32, heads=4):
        super().__init__()
        self.marks = nn.Embedding(2, d_model)
        self.bonus = nn.Parameter(torch.randn(heads, 3))
        self.counts = nn.Embedding(NODES, d_model) if counted else None
        self.stack = Stack(layers, d_model, heads, 4 * d_model)
        self.answer = nn.Linear(d_model, FAR + 1)

    def forward(self, joined, marked):
        """Score the distance of each node.

        Parameters
        ----------
        joined : bool Tensor of shape (count, nodes, nodes)
            Which nodes an edge joins.
        marked : int64 Tensor of shape (count,)
            The marked node of each graph.

        Returns
        -------
        logits : Tensor of shape (count, nodes, 5)
            Of the distances 0, 1, 2, 3 in edges; the last class is 4 (`FAR`) or more.
        weights : list of Tensor of shape (count, heads, nodes, nodes)
            Each block's attention weights.
        """
        x = self.marks(F.one_hot(marked, joined.shape[-1]))  # (count, nodes, d_model)
        if self.counts is not None:
            x = x + self.counts(joined.sum(-1))
            bias = None
        else:
            bias = edge_bias(joined, self.bonus)
        x, weights = self.stack(x, bias=bias)
        return self.answer(x), weights


def distance_classes(joined, marked):
    """Return the class of each node's distance from the marked one, 0 to 4.

    Parameters
    ----------
    joined : bool Tensor of shape (count, nodes, nodes)
        Which nodes an edge joins.
    marked : int64 Tensor of shape (count,)
        The marked node of each graph.

    Returns
    -------
    int64 Tensor of shape (count, nodes)
        The distance in edges, or 4 (`FAR`) where it is longer.
    """
    return distances(joined, marked).clamp(max=FAR)


def unmarked_nodes(joined, marked):
    """Return which nodes are not the marked one, a bool Tensor of shape (count, nodes).

    Parameters
    ----------
    joined : bool Tensor of shape (count, nodes, nodes)
        Which nodes an edge joins.
    marked : int64 Tensor of shape (count,)
        The marked node of each graph.
    """
    return F.one_hot(marked, joined.shape[-1]) == 0


@torch.no_grad()
def accuracy(model, joined, marked, shown=None):
    """Return the share of nodes whose distance from the marked one is predicted right.

    Distances are classes: 0 to 3 edges, and 4 or more.

    Parameters
    ----------
    model : GraphTransformer
    joined : bool Tensor of shape (count, nodes, nodes)
        Which nodes an edge joins.
    marked : int64 Tensor of shape (count,)
        The marked node of each graph.
    shown : bool Tensor of shape (count, nodes, nodes), optional
        Other edges that the model is given instead of the true ones.

    Returns
    -------
    float
        Rounded to 4 decimals; the marked node does not count.
    """
    given = joined if shown is None else shown
    predicted = model(given, marked)[0].argmax(-1)  # (count, nodes)
    right = predicted == distance_classes(joined, marked)
    return round(right[unmarked_nodes(joined, marked)].float().mean().item(), 4)
