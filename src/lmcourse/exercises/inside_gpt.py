"""Checks for the tasks of the chapter *inside-gpt*."""

import math

import torch
import torch.nn.functional as F
from transformers import MinPLogitsWarper, TemperatureLogitsWarper, TopPLogitsWarper

from lmcourse.exercises import Wrong, exercise, expect, judge, predict
from lmcourse.exercises.answers import normal, number, unpack

GUESSING = math.log(32)  # nats: what whoever knows nothing of 32 tokens pays


# The page counts them.
predict(
    "inside-gpt.numbers",
    a="50,257 rows of 768 are 39 million. Twelve layers have more.",
    b=None,
    c="four matrices of 768 × 768 in a layer. And what else is in it?",
)


def _nucleus(logits, temperature, p, first=True, share=True):
    """Return top-p after the temperature, or in a way that is often met."""
    heat = TemperatureLogitsWarper(float(temperature))
    warm = heat(None, logits) if first else logits
    kept = TopPLogitsWarper(p)(None, warm).isfinite()
    warm = heat(None, logits)
    if share:
        return warm.masked_fill(~kept, -torch.inf).softmax(-1)
    whole = warm.softmax(-1) if first else logits.softmax(-1) ** (1 / temperature)
    return whole.masked_fill(~kept, 0)


@exercise("inside-gpt.nucleus", "spot the bug")
def nucleus(answer):
    """Compare with the samplers of `transformers`, in their order."""
    logits, p = 2 * normal(3, 12, seed=3).double(), 0.7
    for temperature in (0.5, 1.8):
        given = logits, temperature, p
        warm = TemperatureLogitsWarper(temperature)(None, logits)
        total = (_nucleus(*given) ** (1 / temperature)).sum(-1, keepdim=True)
        mistakes = {
            "two things are still wrong: the temperature comes after the nucleus is cut, "
            "and the rows do not sum to 1.": _nucleus(*given, first=False, share=False),
            "the rows sum to 1. But the nucleus is cut from the chances at temperature 1: "
            "the temperature belongs before it.": _nucleus(*given, first=False),
            "the order is right. But what is left of the chances does not sum to 1 "
            "again.": _nucleus(*given, share=False),
            "nothing is left out: p is not used.": warm.softmax(-1),
            "the temperature is not used.": _nucleus(logits, 1.0, p),
            "the temperature is used twice: in the logits, and again as a power of the "
            "chances.": _nucleus(*given) ** (1 / temperature) / total,
            "the temperature is used twice, and the rows do not sum to 1.": (
                (warm.softmax(-1) * (_nucleus(*given) > 0)) ** (1 / temperature)
            ),
            "the temperature multiplies; it should divide.": _nucleus(
                logits, 1 / temperature, p
            ),
            "the chances stand in falling order: scatter them back to their tokens.": (
                _nucleus(*given).sort(descending=True).values
            ),
            "these are logits, or their logarithms; chances are asked for.": (
                _nucleus(*given).log()
            ),
        }
        expect(answer, given, _nucleus(*given), mistakes)


@exercise("inside-gpt.min_p", "build")
def min_p(answer):
    """Compare with the sampler of `transformers`."""
    rows = [0.5, 0.21, 0.11, 0.08, 0.1], [0.04, 0.9, 0.01, 0.03, 0.02]
    chances, p = torch.tensor([*rows, [0.19, 0.3, 0.26, 0.05, 0.2]]).double(), 0.2
    chances = chances / chances.sum(-1, keepdim=True)
    logits = chances.log()
    want = MinPLogitsWarper(p)(None, logits).softmax(-1)

    def kept(mask):
        found = chances.masked_fill(~mask, 0)
        return found / found.sum(-1, keepdim=True)

    most = chances.max(-1, keepdim=True).values
    mistakes = {
        "the rest must sum to 1 again.": chances.masked_fill(want == 0, 0),
        "p is taken as a chance; it is a share of the largest chance.": kept(chances >= p),
        "two things are wrong: p is a share of the row's largest chance, not a chance; and "
        "the rest must sum to 1.": chances.where(chances >= p, 0),
        "the largest of all texts is used; each row has its own.": kept(
            chances >= p * chances.max()
        ),
        "these are the ones that should be left out.": kept(chances < p * most),
        "this is top-p: the fewest that hold a share p.": (
            TopPLogitsWarper(p)(None, logits).softmax(-1)
        ),
        "a softmax of chances is no longer these chances: divide by their sum.": (
            chances.masked_fill(want == 0, -torch.inf).softmax(-1)
        ),
        "nothing is left out.": chances,
    }
    expect(answer, [chances, p], want, mistakes)


@exercise("inside-gpt.places", "spot the bug")
def places(answer):
    """Compare with the vectors of the whole text, of which the last are wanted."""
    tokens, positions = normal(9, 4).double(), normal(8, 4, seed=1).double()
    ids = torch.tensor([[3, 1, 4, 1, 5], [2, 7, 1, 8, 2]])
    whole = F.embedding(ids, tokens) + positions[:5]  # (batch, tokens, d_model)
    for kept in (2, 4, 0):
        new = ids[:, kept:]
        mistakes = {
            "positions start at zero again: the first new token is told that it is the "
            "first of the text. Before it stand those that the cache holds.": (
                tokens[new] + positions[: new.shape[1]]
            ),
            "one place too late.": tokens[new] + positions[kept + 1 : 6],
            "all vectors are there; those of the first `kept` tokens are in the cache "
            "already.": whole,
            "positions are missing.": tokens[new],
            "every new token gets the same position.": tokens[new] + positions[kept],
            "these are the first tokens; the new ones are wanted.": whole[:, : 5 - kept],
        }
        if kept > 1:
            mistakes["one place too early."] = tokens[new] + positions[kept - 1 : 4]
        expect(answer, [tokens, positions, ids, kept], whole[:, kept:], mistakes)


judge(
    "inside-gpt.story",
    a="a picture of attention says where a head looks. Heads in the same model "
    "look there and turn nothing.",
    b=None,
    c="the mean over whole sonnets says nothing of a rare case: without these "
    "heads *thou shal* goes on otherwise.",
    d="what can be read from a vector need not be read by the model.",
)


@exercise("inside-gpt.one_layer", "experiment")
def one_layer(answer):
    """Look at the losses of two models that the reader trained."""
    one, two = map(number, unpack(answer, 2, "two losses: one layer, two layers"))
    if min(one, two) < 0 or max(one, two) > 2 * GUESSING:
        raise Wrong(
            "a loss is out of range: take the mean over the last steps of the history, in "
            f"nats per token. Guessing has {GUESSING:.2f}."
        )
    return {
        "the two are swapped: one layer first.": one < 1 < 2 < two,
        "two layers, but it has not jumped yet: train for longer.": two > 1,
        "one layer that repeats a row so well? Was it `layers=1`, and is it the loss "
        "on the repeated part of rows whose lengths differ?": one < 2,
    }
