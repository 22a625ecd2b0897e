"""What goes wrong in the exercises of *preferences*, diagnosis → answer."""

import torch
import torch.nn.functional as F

from lmcourse.data import stored


def given(page):
    """What the page has computed: the stored study."""
    return {"study": stored("preferences")["results"]}


def token_losses(logits, ids):
    """The loss of each token but the first, (batch, tokens - 1)."""
    return F.cross_entropy(logits[:, :-1].transpose(1, 2), ids[:, 1:], reduction="none")


def with_ignored(logits, ids, is_answer):
    """PyTorch's own way: targets that are -100 do not count."""
    targets = ids.masked_fill(~is_answer, -100)[:, 1:]
    return F.cross_entropy(logits[:, :-1].transpose(1, 2), targets)


def with_weights(logits, ids, is_answer):
    counts = is_answer[:, 1:].to(logits.dtype)
    return (token_losses(logits, ids) * counts).sum() / counts.sum()


def softplus(chosen, rejected, was_chosen, was_rejected, beta):
    return F.softplus(beta * (rejected - was_rejected - chosen + was_chosen)).mean()


def cross_entropy(chosen, rejected, was_chosen, was_rejected, beta):
    both = beta * torch.stack([chosen - was_chosen, rejected - was_rejected], 1)
    return F.cross_entropy(both, torch.zeros(len(both), dtype=torch.int64))


WRONG = {
    "answer_loss": {
        "the request's tokens are in the mean": (
            lambda logits, ids, mask: token_losses(logits, ids).mean()
        ),
        "one position late": (
            lambda logits, ids, mask: token_losses(logits, ids)[mask[:, :-1]].mean()
        ),
        "divided by the number of all tokens": (
            lambda logits, ids, mask: (token_losses(logits, ids) * mask[:, 1:]).mean()
        ),
        "upside down": (
            lambda logits, ids, mask: token_losses(logits, ids)[~mask[:, 1:]].mean()
        ),
        "this is the sum": (
            lambda logits, ids, mask: token_losses(logits, ids)[mask[:, 1:]].sum()
        ),
        "the sign is wrong": (lambda *inputs: -with_ignored(*inputs)),
    },
    "dpo_loss": {
        "the reference is missing": lambda c, r, wc, wr, b: (
            -F.logsigmoid(b * (c - r)).mean()
        ),
        "swapped": lambda c, r, wc, wr, b: softplus(r, c, wr, wc, b),
        "beta is missing": lambda c, r, wc, wr, b: softplus(c, r, wc, wr, 1),
        "beta divides": lambda c, r, wc, wr, b: softplus(c, r, wc, wr, 1 / b),
        "inside the sigmoid": lambda c, r, wc, wr, b: b * softplus(c, r, wc, wr, 1),
        "the sum over pairs": lambda c, r, wc, wr, b: 6 * softplus(c, r, wc, wr, b),
        "the sign is wrong": lambda *inputs: -softplus(*inputs),
    },
    "fool": {
        "a line of text": [7, ["A", "bee"]],
        "hand in one line": ["A bee can do\nevery fine good"],
        "characters; a line of the model": ["A bee " * 12],
        "write five at least": ["Beautiful, clouds; drifting!"],
        "one with an accent": ["é à ô ü ï ç", "à la carte, où ça"],
        "still begin with the same letter as another": [
            "The thou that this then with",
            "A bee can bring every dog",
        ],
        "but the reward is": ["a bee can do it", "beautiful clouds drift over us"],
    },
}
RIGHT = {
    "answer_loss": [with_ignored, with_weights],
    "dpo_loss": [softplus, cross_entropy],
    "fool": [
        "I am no bad dog or cat he let us eat for my pie, joy",
        "a be co do el fa go hi ja ku la mi no op pa ri",
    ],
}
TYPED = {"fool": ["9.5", "When to the sessions of sweet silent thought", "reward: 12.3"]}
