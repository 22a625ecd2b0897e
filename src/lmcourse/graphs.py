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


def edge_bias(joined, bonus):
    """Return the bonus of each pair in each head: (count, heads, nodes, nodes).

    ``bonus``, (heads, 3), is that of nodes not joined, of joined ones, of one and itself.
    """
    itself = 2 * torch.eye(joined.shape[-1], dtype=torch.long)
    kinds = joined.long() + itself  # (count, nodes, nodes): 0, 1 or 2
    return bonus[:, kinds].transpose(0, 1)


class GraphTransformer(nn.Module):
    """Blocks on the nodes of a graph, of which one is marked.

    Parameters
    ----------
    counted : bool
        Whether edges come in as the count of a node's neighbours, in its token. Default:
        as a bias of the scores.
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
        """Return logits (count, nodes, FAR + 1), and of each block the weights."""
        x = self.marks(F.one_hot(marked, joined.shape[-1]))  # (count, nodes, d_model)
        if self.counts is not None:
            x, bias = x + self.counts(joined.sum(-1)), None
        else:
            bias = edge_bias(joined, self.bonus)
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


def looked_up(joined, marked, learned=20_000):
    """Return what tables tell right: the commonest distance in other graphs, `learned`.

    Such a table has an entry for whatever may be seen of a node: ``nothing``; ``counts``,
    its neighbours' and the marked one's; these and whether the two are joined (``one
    step``), or else share a neighbour (``two steps``).
    """
    texts = draw(learned, torch.Generator().manual_seed(7))

    def keys(joined, marked):
        other = F.one_hot(marked, NODES) == 0
        row = joined[torch.arange(len(marked)), marked]  # (count, nodes)
        own = joined.sum(-1)  # (count, nodes)
        counts = NODES * own + own.gather(1, marked[:, None])
        near = 2 * row + (~row & (joined & row[:, None]).any(-1))
        ways = {"nothing": 0 * own, "counts": counts, "one step": 3 * counts + 2 * row}
        ways["two steps"] = 3 * counts + near
        found = {name: way[other] for name, way in ways.items()}
        return found, answers(joined, marked)[other]

    (seen, wanted), (asked, truth) = keys(*texts), keys(joined, marked)
    found, kinds = {}, FAR + 1
    for name, way in seen.items():
        table = torch.bincount(kinds * way + wanted, None, 3 * kinds * NODES**2)
        guess = table.view(-1, kinds).argmax(-1)[asked[name]]
        found[name] = round((guess == truth).float().mean().item(), 4)
    return found
