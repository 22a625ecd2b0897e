"""What goes wrong in the exercises of *attention*, diagnosis → answer."""

import math

import torch


def attend(query, key, value, scale=math.sqrt, axis=-1, softmax=True):
    """Attention, or nearly."""
    scores = query @ key.mT / scale(key.shape[-1])
    weights = scores.softmax(axis) if softmax else scores
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
    "all_at_once": [attend],
    "narrow_head": [{1: 0.21, 2: 0.995, 4: 1.0, 8: 1.0}],
    "merge_heads": [lambda x: x.permute(0, 2, 1, 3).flatten(2)],
    "borrow_weights": [borrow()],
}
