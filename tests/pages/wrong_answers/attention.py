"""What goes wrong in the exercises of *attention*, diagnosis → answer."""

import math

import torch


def attend(query, key, value):
    weights = (query @ key.mT / math.sqrt(key.shape[-1])).softmax(-1)
    return weights @ value, weights


def one_matrix(query, key, value):
    weights = (query @ key.transpose(0, 1) / math.sqrt(key.shape[-1])).softmax(-1)
    return weights @ value, weights


def naive_softmax(scores, mask):
    exps = scores.exp() * mask
    return exps / exps.sum(-1, keepdim=True)


def all_hidden_too(scores, mask):
    """Subtract the greatest score of all, hidden or not."""
    exps = (scores - scores.amax(-1, keepdim=True)).exp() * mask
    return exps / exps.sum(-1, keepdim=True)


@torch.no_grad()
def borrow(ours, fused, output):
    weight = fused.weight.unflatten(0, (ours.heads, 3, -1)).unbind(1)
    bias = fused.bias.unflatten(0, (ours.heads, 3, -1)).unbind(1)
    for part, layer in enumerate((ours.query, ours.key, ours.value)):
        layer.weight.copy_(weight[part].flatten(0, 1))
        layer.bias.copy_(bias[part].flatten())
    ours.output.load_state_dict(output.state_dict())
    return ours


def query_by_query(query, key, value):
    """Attend in a loop, which the page forbids."""
    rows = [attend(query[..., [i], :], key, value) for i in range(query.shape[-2])]
    return tuple(torch.cat(part, -2) for part in zip(*rows, strict=True))


def row_by_row(scores, mask):
    weights = torch.zeros_like(scores)
    for *batch, row in torch.argwhere(mask.any(-1)).tolist():
        place = (*batch, row)
        allowed = scores[place][mask[place]]
        exps = (allowed - allowed.max()).exp()
        weights[place][mask[place]] = exps / exps.sum()
    return weights


def hidden(scores, mask):
    return scores.masked_fill(~mask, -math.inf)


WRONG = {
    "all_at_once": {
        "the other way round": lambda q, k, v: attend(q, k, v)[::-1],
        "output and weights, in this order; this": lambda q, k, v: attend(q, k, v)[1],
        "a batch of heads is not": one_matrix,
    },
    "narrow_head": {
        "hand over a dict": [lambda: 1, {1: 0.2, 2: 0.99}, [0.2, 0.9, 1.0]],
        "between 0 and 1": {1: 0.2, 2: 1.2, 4: 1.0},
        "width 1 cannot": {1: 0.99, 2: 0.99, 4: 0.99},
        "train longer": {1: 0.2, 2: 0.4, 4: 0.5},
        "it takes more steps": {1: 0.2, 2: 0.4, 4: 0.999},
    },
    "masked_softmax": {"overflows": naive_softmax, "0/0": all_hidden_too},
    "borrow_weights": {"return the module": lambda ours, fused, output: fused.weight},
}

RIGHT = {
    "masked_softmax": [
        row_by_row,
        lambda s, m: (hidden(s, m) - hidden(s, m).logsumexp(-1, keepdim=True)).exp(),
    ],
    "all_at_once": [attend],
    "narrow_head": [{1: 0.21, 2: 0.995, 4: 1.0, 8: 1.0}],
    "merge_heads": [lambda x: x.permute(0, 2, 1, 3).flatten(2)],
    "borrow_weights": [borrow],
}

FORBIDDEN = {
    "all_at_once": {"loop": query_by_query},
    "masked_softmax": {"softmax": lambda s, m: hidden(s, m).softmax(-1)},
}
TYPED = {"narrow_head": [{1: 0.23, 2: 0.996, 4: 1.0}]}
