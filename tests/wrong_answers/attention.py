"""What goes wrong in the exercises of *attention*, diagnosis → answer."""

import math

import torch
from torch import nn


def ones(tokens):
    return torch.ones(tokens, tokens, dtype=torch.bool)


def window(tokens, width, behind=0, ahead=1):
    """Keys from `width - behind` steps back up to, not including, `ahead`."""
    gap = torch.arange(tokens)[:, None] - torch.arange(tokens)
    return (gap < width - behind) & (gap > -ahead)


def gaussian(x, h, mask=None, square=True, half=True):
    scores = -((x[:, None] - x) ** 2) / (h**2 if square else h) / (2 if half else 1)
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf)
    return scores.softmax(-1)


def others(x):
    return ~torch.eye(len(x), dtype=torch.bool)


def error(weights, y):
    return (weights @ y - y).square().mean()


def naive_softmax(scores, mask):
    exps = scores.exp() * mask
    return exps / exps.sum(-1, keepdim=True)


def hand_made(key_shift=0, length=20.0):
    def head(tokens):
        w_query = length * math.sqrt(tokens) * torch.eye(tokens).roll(-1, 1)
        w_query[0] = 0
        return w_query, torch.eye(tokens).roll(key_shift, 1)

    return head


def next_head(tokens):
    w_query, w_key = hand_made()(tokens)
    return w_key * 20 * math.sqrt(tokens), w_query / 20 / math.sqrt(tokens)


def self_head(tokens):
    return 60 * torch.eye(tokens), torch.eye(tokens)


def borrow(order=(0, 1, 2), transposed=False, biases=True, output=True):
    @torch.no_grad()
    def fill(ours, theirs):
        weight, bias = theirs.in_proj_weight.chunk(3), theirs.in_proj_bias.chunk(3)
        for layer, part in zip((ours.query, ours.key, ours.value), order, strict=True):
            layer.weight.copy_(weight[part].T if transposed else weight[part])
            if biases:
                layer.bias.copy_(bias[part])
        if output:
            ours.output.load_state_dict(theirs.out_proj.state_dict())
        return ours

    return fill


WRONG = {
    "window_mask": {
        "hides the past": lambda t, w: window(t, w).T,
        "swapped": lambda t, w: ~window(t, w),
        "looks ahead": lambda t, w: window(t, w, ahead=w),
        "window is ignored": lambda t, w: ones(t).tril(),
        "too wide": lambda t, w: window(t, w, behind=-1),
        "too narrow": lambda t, w: window(t, w, behind=1),
        "itself too": lambda t, w: window(t, w, ahead=0),
        "a tensor of True and False": lambda t, w: window(t, w).float(),
        "numbers differ": lambda t, w: window(t, 3),
        "shape": lambda t, w: ones(t + 1),
    },
    "masked_softmax": {
        "after the softmax": lambda s, m: s.softmax(-1) * m,
        "over the queries": lambda s, m: s.masked_fill(~m, -math.inf).softmax(-2),
        "wrong way round": lambda s, m: s.masked_fill(m, -math.inf).softmax(-1),
        "became 0": lambda s, m: (s * m).softmax(-1),
        "changes nothing": lambda s, m: s.softmax(-1),
        "overflows": naive_softmax,
    },
    "merge_heads": {
        "memory order": lambda x: x.reshape(2, 5, 12),
        "scattered": lambda x: x.permute(0, 2, 3, 1).flatten(2),
        "side by side": lambda x: x.sum(1),
        "the shape is (2, 5, 3, 4)": lambda x: x.transpose(1, 2),
        "numbers differ": lambda x: x.transpose(1, 2).flatten(2).flip(-1),
    },
    "leave_one_out": {
        "no point is left out": lambda x, y, h: error(gaussian(x, h), y),
        "after the softmax": lambda x, y, h: error(gaussian(x, h) * others(x), y),
        "bandwidth must be squared": lambda x, y, h: error(
            gaussian(x, h, others(x), square=False), y
        ),
        "one half": lambda x, y, h: error(gaussian(x, h, others(x), half=False), y),
        "the sum of": lambda x, y, h: error(gaussian(x, h, others(x)), y) * len(x),
        "leave the root": lambda x, y, h: error(gaussian(x, h, others(x)), y).sqrt(),
        "numbers differ": lambda x, y, h: y.mean(),
    },
    "previous_token_head": {
        "swap the two": next_head,
        "the token itself": self_head,
        "all of them alike": lambda t: (torch.zeros(t, 3), torch.zeros(t, 3)),
        "the right place, but only": hand_made(length=2.0),
        "looks most at token": hand_made(key_shift=2),
        "return two matrices": lambda t: torch.eye(t),
        "need the shape": lambda t: (torch.eye(t), torch.eye(t)[1:]),
        "not finite": lambda t: (math.inf * torch.eye(t), torch.eye(t)),
    },
    "borrow_weights": {
        "query's and the key's": borrow(order=(1, 0, 2)),
        "key's and the value's": borrow(order=(0, 2, 1)),
        "transposed": borrow(transposed=True),
        "biases of query, key and value": borrow(biases=False),
        "output projection is not copied": borrow(output=False),
        "both are left out": borrow(output=False, biases=False),
        "numbers differ": lambda ours, theirs: ours,
        "return the module": lambda ours, theirs: theirs.in_proj_weight,
        "stopped with": lambda ours, theirs: nn.Linear(3, 3),
    },
}


def turned(tokens):
    w_query, w_key = hand_made(length=30.0)(tokens)
    turn, _ = torch.linalg.qr(torch.randn(tokens, tokens, generator=torch.manual_seed(0)))
    return w_query @ turn, w_key @ turn


RIGHT = {
    "previous_token_head": [turned],
    "window_mask": [window],
    "merge_heads": [lambda x: x.permute(0, 2, 1, 3).flatten(2)],
}
