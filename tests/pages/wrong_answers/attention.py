"""What goes wrong in the exercises of *attention*, diagnosis → answer."""

import math

import torch
from torch import nn


def attend(query, key, value, scale=math.sqrt, axis=-1, softmax=True):
    """Attention, or nearly."""
    scores = query @ key.mT / scale(key.shape[-1])
    weights = scores.softmax(axis) if softmax else scores
    return weights @ value, weights


def by_keys(query, key, value):
    return attend(query, key, value, scale=lambda width: math.sqrt(key.shape[-2]))


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


def borrow(order=(0, 1, 2), whole=False, transposed=False, biases=True, mix=True):
    @torch.no_grad()
    def fill(ours, fused, output):
        shape = (3, ours.heads, -1) if whole else (ours.heads, 3, -1)
        axis = 0 if whole else 1
        weight = fused.weight.unflatten(0, (*shape[:2], 12 // ours.heads)).unbind(axis)
        bias = fused.bias.unflatten(0, shape).unbind(axis)
        for layer, part in zip((ours.query, ours.key, ours.value), order, strict=True):
            found = weight[part].flatten(0, 1)
            layer.weight.copy_(found.T if transposed else found)
            if biases:
                layer.bias.copy_(bias[part].flatten())
        if mix:
            ours.output.load_state_dict(output.state_dict())
        return ours

    return fill


WRONG = {
    "sharper": {
        "not in the old proportions": "a",
        "even weights need even scores": "c",
        "choose one letter": ["d", "", 2, "b and c"],
    },
    "all_at_once": {
        "the softmax is missing": lambda q, k, v: attend(q, k, v, softmax=False),
        "not divided by the square root": lambda q, k, v: attend(q, k, v, lambda d: 1),
        "by d_head itself": lambda q, k, v: attend(q, k, v, lambda d: d),
        "the root of the number of keys": by_keys,
        "runs over the queries": lambda q, k, v: attend(q, k, v, axis=-2),
        "the other way round": lambda q, k, v: attend(q, k, v)[::-1],
        "output and weights, in this order; this": lambda q, k, v: attend(q, k, v)[1],
        "the plain mean": lambda q, k, v: (
            v.mean(-2, keepdim=True).expand(*q.shape[:-1], 6),
            attend(q, k, v)[1],
        ),
        "averages the keys": lambda q, k, v: (
            attend(q, k, v)[1] @ k,
            attend(q, k, v)[1],
        ),
        "a batch of heads is not": one_matrix,
        "numbers differ": lambda q, k, v: attend(q, -k, v),
    },
    "narrow_head": {
        "hand over a dict": [lambda: 1, {1: 0.2, 2: 0.99}, [0.2, 0.9, 1.0]],
        "between 0 and 1": {1: 0.2, 2: 1.2, 4: 1.0},
        "width 1 cannot": {1: 0.99, 2: 0.99, 4: 0.99},
        "train longer": {1: 0.2, 2: 0.4, 4: 0.5},
        "it takes more steps": {1: 0.2, 2: 0.4, 4: 0.999},
    },
    "masked_softmax": {
        "after the softmax": lambda s, m: s.softmax(-1) * m,
        "over the queries": lambda s, m: s.masked_fill(~m, -math.inf).softmax(-2),
        "wrong way round": lambda s, m: s.masked_fill(m, -math.inf).softmax(-1),
        "became 0": lambda s, m: (s * m).softmax(-1),
        "changes nothing": lambda s, m: s.softmax(-1),
        "overflows": naive_softmax,
        "0/0": all_hidden_too,
    },
    "merge_heads": {
        "memory order": lambda x: x.reshape(2, 5, 12),
        "scattered": lambda x: x.permute(0, 2, 3, 1).flatten(2),
        "side by side": lambda x: x.sum(1),
        "the shape is (2, 5, 3, 4)": lambda x: x.transpose(1, 2),
        "numbers differ": lambda x: x.transpose(1, 2).flatten(2).flip(-1),
    },
    "borrow_weights": {
        "cut the layer in three": borrow(whole=True),
        "query's and the key's": borrow(order=(1, 0, 2)),
        "key's and the value's": borrow(order=(0, 2, 1)),
        "transposed": borrow(transposed=True),
        "biases of query, key and value": borrow(biases=False),
        "output projection is not copied": borrow(mix=False),
        "both are left out": borrow(mix=False, biases=False),
        "numbers differ": lambda ours, fused, output: ours,
        "return the module": lambda ours, fused, output: fused.weight,
        "stopped with": lambda ours, fused, output: nn.Linear(3, 3),
    },
    "death": {
        "look again": "a",
        "the whole model": "b",
        "choose one letter": ["d", 3],
    },
}

RIGHT = {
    "sharper": ["B", " b "],
    "all_at_once": [attend],
    "narrow_head": [{1: 0.21, 2: 0.995, 4: 1.0, 8: 1.0}],
    "merge_heads": [lambda x: x.permute(0, 2, 1, 3).flatten(2)],
    "borrow_weights": [borrow()],
    "death": ["c"],
}
