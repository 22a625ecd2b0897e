"""The exercises of *attention*: each known mistake is recognised and named."""

import math

import pytest
import torch
from torch import nn

from lmcourse.exercises import check

CHAPTER = "attention"


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
    "window_mask": [
        (lambda t, w: window(t, w).T, "hides the past"),
        (lambda t, w: ~window(t, w), "swapped"),
        (lambda t, w: window(t, w, ahead=w), "looks ahead"),
        (lambda t, w: ones(t).tril(), "window is ignored"),
        (lambda t, w: window(t, w, behind=-1), "too wide"),
        (lambda t, w: window(t, w, behind=1), "too narrow"),
        (lambda t, w: window(t, w, ahead=0), "itself too"),
        (lambda t, w: window(t, w).float(), "True and False"),
        (lambda t, w: window(t, 3), "numbers differ"),
        (lambda t, w: ones(t + 1), "shape"),
    ],
    "masked_softmax": [
        (lambda s, m: s.softmax(-1) * m, "after the softmax"),
        (lambda s, m: s.masked_fill(~m, -math.inf).softmax(-2), "over the queries"),
        (lambda s, m: s.masked_fill(m, -math.inf).softmax(-1), "wrong way round"),
        (lambda s, m: (s * m).softmax(-1), "became 0"),
        (lambda s, m: s.softmax(-1), "changes nothing"),
        (naive_softmax, "overflows"),
    ],
    "merge_heads": [
        (lambda x: x.reshape(2, 5, 12), "memory order"),
        (lambda x: x.permute(0, 2, 3, 1).flatten(2), "scattered"),
        (lambda x: x.sum(1), "side by side"),
        (lambda x: x.transpose(1, 2), "the shape is (2, 5, 3, 4)"),
        (lambda x: x.transpose(1, 2).flatten(2).flip(-1), "numbers differ"),
    ],
    "leave_one_out": [
        (lambda x, y, h: error(gaussian(x, h), y), "no point is left out"),
        (lambda x, y, h: error(gaussian(x, h) * others(x), y), "after the softmax"),
        (lambda x, y, h: error(gaussian(x, h, others(x), square=False), y), "squared"),
        (lambda x, y, h: error(gaussian(x, h, others(x), half=False), y), "one half"),
        (lambda x, y, h: error(gaussian(x, h, others(x)), y) * len(x), "the sum of"),
        (lambda x, y, h: error(gaussian(x, h, others(x)), y).sqrt(), "leave the root"),
        (lambda x, y, h: y.mean(), "numbers differ"),
    ],
    "previous_token_head": [
        (next_head, "swap the two"),
        (self_head, "the token itself"),
        (lambda t: (torch.zeros(t, 3), torch.zeros(t, 3)), "all of them alike"),
        (hand_made(length=2.0), "the right place, but only"),
        (hand_made(key_shift=2), "looks most at token"),
        (lambda t: torch.eye(t), "return two matrices"),
        (lambda t: (torch.eye(t), torch.eye(t)[1:]), "need the shape"),
        (lambda t: (math.inf * torch.eye(t), torch.eye(t)), "not finite"),
    ],
    "borrow_weights": [
        (borrow(order=(1, 0, 2)), "query's and the key's"),
        (borrow(order=(0, 2, 1)), "key's and the value's"),
        (borrow(transposed=True), "transposed"),
        (borrow(biases=False), "biases of query, key and value"),
        (borrow(output=False), "output projection is not copied"),
        (borrow(output=False, biases=False), "both are left out"),
        (lambda ours, theirs: ours, "numbers differ"),
        (lambda ours, theirs: theirs.in_proj_weight, "return the module"),
        (lambda ours, theirs: nn.Linear(3, 3), "stopped with"),
    ],
}
CASES = [(name, *case) for name, cases in WRONG.items() for case in cases]


@pytest.mark.parametrize(
    ("name", "answer", "diagnosis"), CASES, ids=[f"{c[0]}-{c[2]}" for c in CASES]
)
def test_each_mistake_gets_its_own_diagnosis(name, answer, diagnosis):
    verdict = check(f"{CHAPTER}.{name}", answer)
    assert not verdict.ok
    assert diagnosis in verdict.message


@pytest.mark.parametrize("name", WRONG)
def test_diagnoses_are_different(name):
    messages = [check(f"{CHAPTER}.{name}", answer).message for answer, _ in WRONG[name]]
    assert len(set(messages)) == len(messages)


def test_other_right_answers_pass():
    """A check judges the result, not the way to it."""

    def learned_width(tokens):
        w_query, w_key = hand_made(length=30.0)(tokens)
        turned, _ = torch.linalg.qr(torch.randn(tokens, tokens))
        return w_query @ turned, w_key @ turned

    torch.manual_seed(0)
    assert check("attention.previous_token_head", learned_width)
    assert check("attention.window_mask", lambda t, w: window(t, w))
    assert check("attention.merge_heads", lambda x: x.permute(0, 2, 1, 3).flatten(2))
