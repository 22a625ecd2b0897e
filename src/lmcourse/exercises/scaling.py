"""Checks for the tasks of the chapter *scaling*."""

from types import SimpleNamespace

import numpy as np
import torch
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from lmcourse.data import load_corpus, load_texts, train_val_test_split
from lmcourse.exercises import Case, Faults, exercise, judge, predict
from lmcourse.exercises.answers import Unfit, type_name
from lmcourse.exercises.mini_gpt import window_loss
from lmcourse.gpt.model import GPT, GPTConfig
from lmcourse.gpt.training import cross_entropy
from lmcourse.tokenization import CharTokenizer

# The study measures it.
predict(
    "scaling.line",
    a="the points lie on no line: at the most text they had begun to fall faster.",
    b=None,
    c="so it would be if the floor were near; but the points had begun to fall faster.",
)


@exercise("scaling.optimum")
def optimum():
    """Compare with a search along all models that the budget buys."""
    for fitted, flops in [
        ((1.7, 400.0, 0.34, 410.0, 0.28), 1e12),
        ((0.5, 9000.0, 0.5, 90.0, 0.3), 1e14),
    ]:
        _, big, a, long, b = fitted
        budget = flops / 6
        size, tokens = _searched(fitted, budget)
        share, turn = budget ** (b / (a + b)), budget ** ((a - b) / (a + b))
        bare = share * (big / long) ** (1 / (a + b))
        mistakes = {
            "a and b come down as factors in the derivative.": (bare, budget / bare),
            "b / (a + b) is the exponent of parameters.": (size * turn, tokens / turn),
            "parameters come first, and A and a are theirs.": (tokens, size),
            "each token costs six FLOPs a parameter.": _searched(fitted, flops),
            "equal shares of the budget are the best only of equal parts: weigh A "
            "and a against B and b.": (budget**0.5, budget**0.5),
            "the exponents are right, but A and B are left out.": (share, budget / share),
        }
        yield Case([fitted, flops], (size, tokens), mistakes, tolerance=0.01)


def _searched(fitted, budget):
    """Return the parameters and tokens, two floats, of the lowest loss in a budget.

    ``fitted`` : the law's E, A, a, B, b; ``budget`` : the product of the two.
    """
    _, big, a, long, b = fitted
    size = np.geomspace(1e-9 * budget, 1e9 * budget, 400_001)
    best = size[np.argmin(big * size**-a + long * (budget / size) ** -b)]
    return float(best), float(budget / best)


judge(
    "scaling.schedule",
    a="at the moment of the comparison both have read as much.",
    b="with three seeds each it is easily seen whether two tenths are more than chance.",
    c="what was learned by heart would count there; the test text is the right one.",
    d=None,
)


@exercise("scaling.flops", kind="spot the bug")
def flops():
    """Compare with what PyTorch counts while a small GPT computes."""
    for layers, width, context, vocabulary in ((1, 8, 6, 5), (3, 4, 14, 30)):
        tokens = 2 * context
        block, head = 12 * width**2, vocabulary * width
        looking = 2 * context * width

        def spent(block=block, looking=looking, head=head, times=3, n=layers, t=tokens):
            """Return the FLOPs of a training, with one term counted in another way."""
            return 2 * times * t * (n * (block + looking) + head)

        counted = _counted(GPTConfig(vocabulary, context, layers, 2, width))
        mistakes = {
            "two things are still wrong. How many matrices has a feed-forward network? And "
            "how many products does a gradient need for each one forwards?": (
                spent(block - 4 * width**2, times=2)
            ),
            "the block is right. But backwards each product of the way forward has two.": (
                spent(times=2)
            ),
            "backwards is right. But the feed-forward network has two matrices, each four "
            "times as large as one of attention's.": spent(block - 4 * width**2),
            "the last matrix, which makes the logits, is left out.": spent(head=0),
            "what attention does with scores and weights is left out.": spent(looking=0),
            "scores are one product, what they weigh another.": spent(looking=looking / 2),
            "attention has a fourth matrix, for what it found.": spent(block - width**2),
            "a token's vector is looked up: that multiplies nothing.": spent(head=2 * head),
            "this is the way forward alone.": spent(times=1),
            "a multiplication and an addition are two.": spent() / 2,
        }
        given = [layers, width, context, vocabulary, tokens]
        yield Case(given, counted, mistakes)


def _counted(config):
    """Return the FLOPs of a step on two windows."""
    ids = torch.zeros(2, config.context, dtype=torch.long)
    model = GPT(config)
    counter = FlopCounterMode(display=False)
    with sdpa_kernel(SDPBackend.MATH), counter, torch.enable_grad():
        cross_entropy(model(ids), ids).backward()
    return counter.get_total_flops()


MOST, BAR, TOO_LOW = 20_000, 2.1, 1.5


def _measured(answer):
    """Return the loss of a model on the test sonnets, and the count of its numbers."""
    if not isinstance(answer, nn.Module):
        made = type_name(answer)
        raise Unfit(f"hand in the trained model itself, not {made}.")
    tokenizer = CharTokenizer(load_corpus("sonnets"))
    ids = train_val_test_split(load_texts("sonnets")).test
    loss = window_loss(answer, torch.tensor(tokenizer.encode(ids)), 120)
    numbers = sum(weight.numel() for weight in answer.parameters())
    return SimpleNamespace(loss=loss, numbers=numbers, most=MOST)


@exercise("scaling.small", kind="experiment")
def small():
    """Read the test sonnets to the model that is handed in, and count its numbers."""
    told = "It has {numbers:,} numbers and loses {loss:.3f}."
    faults = {
        f"{told} Tables are numbers, too: at most {{most:,}} in all.": (
            lambda seen: seen.numbers > MOST
        ),
        f"{told} So little no run of ours has reached: was it trained on the test "
        "sonnets?": lambda seen: seen.loss < TOO_LOW,
        f"{told} That is not enough: which rate, for how long, which shape?": (
            lambda seen: seen.loss > BAR
        ),
    }
    yield Faults(_measured, faults)


predict(
    "scaling.shuffled",
    a="guessing needs no examples. But the model does not know that these are mixed up, "
    "and goes by them.",
    b="the tasks are new: nothing that it learned in training tells their answers.",
    c=None,
)

# The study measures it.
predict(
    "scaling.missed",
    a=None,
    b="it and its rates bring most alone; left out of the whole they are missed less.",
    c="alone, in so few steps, it costs; among the others it is missed little.",
    d="alone they help; together with the others they are missed less.",
)
