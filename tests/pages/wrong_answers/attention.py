"""What goes wrong in the exercises of *attention*, diagnosis → answer."""

import math

import torch
from torch.nn import functional as F


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


def whole_matrix(query, key, value):
    exps = (query @ key.mT / math.sqrt(key.shape[-1])).exp()
    return exps / exps.sum() @ value, exps / exps.sum()


def zero_times_infinity(scores, mask):
    exps = (scores + ~mask * -math.inf).exp()
    return exps / exps.sum(-1, keepdim=True)


def query_by_query(query, key, value):
    """Attend in a loop, which the page forbids."""
    rows = [attend(query[..., [i], :], key, value) for i in range(query.shape[-2])]
    return tuple(torch.cat(part, -2) for part in zip(*rows, strict=True))


def finite(penalty):
    """Return a softmax that hides by a penalty, subtracted or put in a score's place."""

    def hidden(scores, mask):
        scores = torch.where(mask, scores, scores - penalty)
        exps = (scores - scores.amax(-1, keepdim=True)).exp()
        return exps / exps.sum(-1, keepdim=True)

    return hidden


def by_logarithm(scores, mask):
    scores = scores.masked_fill(~mask, -math.inf)
    return (scores - scores.logsumexp(-1, keepdim=True)).exp()


def by_einsum(query, key, value):
    scores = torch.einsum("...qd,...kd->...qk", query, key) * key.shape[-1] ** -0.5
    weights = scores.exp() / scores.exp().sum(-1, keepdim=True)
    return [torch.einsum("...qk,...kd->...qd", weights, value), weights]


def library(scores, mask):
    return scores.masked_fill(~mask, -math.inf).softmax(-1)


def by_where(scores, mask):
    """Shift by the greatest allowed score, and leave hidden exponentials out."""
    top = torch.where(mask, scores, -math.inf).max(-1, keepdim=True).values
    exps = torch.where(mask, (scores - top).clamp(max=0).exp(), 0.0)
    return exps / exps.sum(-1, keepdim=True)


WRONG = {
    "all_at_once": {
        "the other way round": lambda q, k, v: attend(q, k, v)[::-1],
        "output and weights, in this order; this": lambda q, k, v: attend(q, k, v)[1],
        "a batch of heads is not": one_matrix,
        "by a loop": query_by_query,
        "all weights together": whole_matrix,
        "the root of d_model": lambda q, k, v: attend(q, k * (k.shape[-1] / 384) ** 0.5, v),
        "width of a value": lambda q, k, v: attend(
            q, k * (k.shape[-1] / v.shape[-1]) ** 0.5, v
        ),
    },
    "masked_softmax": {
        "overflows": naive_softmax,
        "0/0": all_hidden_too,
        "0 × ∞": zero_times_infinity,
        "the penalty is finite": [finite(100), finite(1000)],
        "without PyTorch's softmax": [
            library,
            lambda s, m: torch.softmax(s.masked_fill(~m, -math.inf), -1),
            lambda s, m: F.log_softmax(s.masked_fill(~m, -math.inf), -1).exp(),
        ],
    },
    "merge_heads": {
        "have changed places": lambda x: x.transpose(2, 3).reshape(len(x), x.shape[2], -1)
    },
}

RIGHT = {
    "all_at_once": [attend, by_einsum],
    "masked_softmax": [by_where, by_logarithm],
    "merge_heads": [
        lambda x: x.permute(0, 2, 1, 3).flatten(2),
        lambda x: torch.cat([x[:, head] for head in range(x.shape[1])], dim=-1).numpy(),
    ],
}

FORBIDDEN = {
    "all_at_once": {"loop": query_by_query},
    "masked_softmax": {"softmax": library},
}
