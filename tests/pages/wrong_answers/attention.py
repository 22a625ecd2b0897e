"""What goes wrong in the exercises of *attention*, diagnosis → answer."""

import math

import numpy as np
import torch
from torch.nn import functional as F

from lmcourse.models import load_bert
from lmcourse.pooling import pool_layers
from lmcourse.pronouns import crossings

TOKENIZER, BERT = load_bert()
PAIRS = crossings("tired"), crossings("wide")


def vectors(texts):
    return F.normalize(pool_layers(texts, TOKENIZER, BERT).layers[-1], dim=-1)


ANIMALS = vectors([f"The {each.nouns[0]} was tired." for each in PAIRS[0]])
PLACES = vectors([f"The {each.nouns[1]} was tired." for each in PAIRS[0]])


def given(page):
    names = {"tokenizer": TOKENIZER, "bert": BERT, "animals": ANIMALS, "places": PLACES}
    return names | {"tired_24": PAIRS[0], "wide_24": PAIRS[1]}


def falls(hidden, plain=ANIMALS - PLACES):
    """The fall of each pair, with "thing" for some of the nouns."""
    leans = []
    for each in PAIRS:
        texts = []
        for sentence in each:
            words = sentence.text.split(" ")
            nouns = [sentence.nouns[n] for n in hidden]
            texts.append(" ".join("thing" if word in nouns else word for word in words))
        leans.append((vectors(texts) * plain).sum(1))
    return leans[0] - leans[1]


FALL = falls((0, 1)).mean().item()


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
        "by 2, which is right": lambda q, k, v: attend(q, k * k.shape[-1] ** 0.5 / 2, v),
        "the page's `d_head`": lambda q, k, v: attend(q, k * (k.shape[-1] / 32) ** 0.5, v),
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
        "tokens and d_head": lambda x: x.transpose(2, 3).reshape(len(x), x.shape[2], -1),
        "heads and d_head": lambda x: x.transpose(1, 3).reshape(len(x), x.shape[2], -1),
    },
    "fooled": {
        "these are 24 falls": falls((0, 1)),
        "nothing has been replaced": falls(()).mean(),
        "the places are not": falls((0,)).mean(),
        "the animals are not": falls((1,)).mean(),
        "the sign is turned": -FALL,
        "the sum over": falls((0, 1)).sum(),
        "nothing is left to lean to": falls((0, 1), 0 * ANIMALS).mean(),
        "True or False": [True, np.False_],
        "the lean rises": [-0.5, -1e30, -FALL / 3],
        "this is too large": [1e30, 24.0],
        "another number": [0.5, FALL / 3],
    },
}

RIGHT = {
    "all_at_once": [attend, by_einsum],
    "masked_softmax": [by_where, by_logarithm],
    "merge_heads": [
        lambda x: x.permute(0, 2, 1, 3).flatten(2),
        lambda x: torch.cat([x[:, head] for head in range(x.shape[1])], dim=-1).numpy(),
    ],
    "fooled": [FALL, falls((0, 1)).mean().numpy()],
}

TYPED = {"fooled": [0.5, 0.01, 0.1]}

FORBIDDEN = {
    "all_at_once": {"loop": query_by_query},
    "masked_softmax": {"softmax": library},
}
