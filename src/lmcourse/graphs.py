"""A graph Transformer: the nodes of a graph are tokens, its edges a bias of the scores.

Every graph has one marked node, and each node is to say how far it is from that.
"""

import torch
import torch.nn.functional as F
from torch import nn

from lmcourse.transformer import Stack

NODES, MORE, FAR = 12, 3, 4


def draw(count, dice, nodes=NODES, more=MORE):
    """Return random connected graphs: a tree each, and some edges more.

    Returns
    -------
    joined : bool Tensor of shape (count, nodes, nodes)
    marked : Tensor of shape (count,)
    """
    joined = torch.zeros(count, nodes, nodes, dtype=torch.bool)
    every = torch.arange(count)
    names = torch.rand(count, nodes, generator=dice).argsort(1)
    share = torch.rand(count, nodes, generator=dice)
    for node in range(1, nodes):  # it hangs on one that is there
        other = (share[:, node] * node).long()
        joined[every, names[:, node], names[every, other]] = True
    for _ in range(more):
        a, b = torch.randint(nodes, (2, count), generator=dice)
        joined[every, a, b] = a != b
    return joined | joined.mT, torch.randint(nodes, (count,), generator=dice)


def distances(joined, marked):
    """Return how many steps each node is from the marked one: (count, nodes)."""
    nodes = joined.shape[-1]
    reached = F.one_hot(marked, nodes).bool()
    found = torch.where(reached, 0, nodes)
    for step in range(1, nodes):
        reached = reached | (joined & reached[:, None]).any(-1)
        found = torch.where(reached, found.clamp(max=step), found)
    return found


def edge_bias(joined, prices):
    """Return the price of each pair's kind in each head: (count, heads, nodes, nodes).

    ``prices``, (heads, 3), are those of nodes that are not joined, joined, and the same.
    """
    itself = 2 * torch.eye(joined.shape[-1], dtype=torch.long)
    kinds = joined.long() + itself  # (count, nodes, nodes): 0, 1 or 2
    return prices[:, kinds].transpose(0, 1)


class GraphTransformer(nn.Module):
    """Blocks on the nodes of a graph, of which one is marked.

    Parameters
    ----------
    layers, d_model, heads : int
    told : {"bias", "nothing", "degree", "rows"}
        How the edges come in: as a bias, not at all, as the count of each node's
        neighbours in its token, or as the node's row of the adjacency matrix there.
    """

    def __init__(self, told="bias", layers=3, d_model=32, heads=4):
        super().__init__()
        self.told = told
        self.marks = nn.Embedding(2, d_model)
        self.prices = nn.Parameter(torch.zeros(heads, 3))
        self.degrees = nn.Embedding(NODES, d_model)
        self.rows = nn.Linear(2 * NODES, d_model)
        self.stack = Stack(layers, d_model, heads, 4 * d_model)
        self.answer = nn.Linear(d_model, FAR + 1)

    def forward(self, joined, marked):
        """Return logits (count, nodes, FAR + 1), and of each block the weights."""
        x = self.marks(F.one_hot(marked, joined.shape[-1]))  # (count, nodes, d_model)
        if self.told == "degree":
            x = x + self.degrees(joined.sum(-1))
        if self.told == "rows":
            names = torch.eye(joined.shape[-1]).expand(len(x), -1, -1)
            x = x + self.rows(torch.cat([joined.float(), names], -1))
        bias = edge_bias(joined, self.prices) if self.told == "bias" else None
        x, weights = self.stack(x, bias=bias)
        return self.answer(x), weights


def answers(joined, marked):
    """Return the distances, from `FAR` on as one."""
    return distances(joined, marked).clamp(max=FAR)


def loss_on(model, joined, marked):
    """Return the mean cross-entropy of all nodes but the marked one."""
    logits, _ = model(joined, marked)
    other = F.one_hot(marked, joined.shape[-1]) == 0
    return F.cross_entropy(logits[other], answers(joined, marked)[other])


@torch.no_grad()
def right(model, joined, marked, shown=None):
    """Return the share of nodes that are told right, perhaps by edges that are `shown`."""
    found = model(joined if shown is None else shown, marked)[0].argmax(-1)
    other = F.one_hot(marked, joined.shape[-1]) == 0
    return round((found == answers(joined, marked))[other].float().mean().item(), 4)
