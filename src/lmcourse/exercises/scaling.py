"""Checks for the tasks of the chapter *scaling*."""

from types import SimpleNamespace

import numpy as np
import torch
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from lmcourse.data import load_corpus, load_texts, train_val_test_split
from lmcourse.exercises import Case, Faults, exercise, judge, predict, run
from lmcourse.exercises.answers import Unfit, Wrong, type_name
from lmcourse.exercises.mini_gpt import window_loss
from lmcourse.gpt.model import GPT, GPTConfig, evaluating
from lmcourse.gpt.training import cross_entropy
from lmcourse.tokenization import CharTokenizer

# The proof `law_missed` measures it.
predict(
    "scaling.line",
    a="it misses by far more than a hundredth.",
    b=None,
    c="it would lie above if it were already close to its floor. But it went on falling.",
)


@exercise("scaling.optimum")
def optimum():
    """Check a reader's best size of a model for a budget.

    The answer is a function of five numbers and a budget in FLOPs: E, A, a, B, b of the
    fitted law, loss = E + A / parameters^a + B / tokens^b. It returns the parameters and
    tokens with the lowest loss; a training takes 6 FLOPs for each parameter and token.
    Oracle: `_searched`, a search along all models that the budget buys.

    Yields
    ------
    Case
        Arguments, the right result, and the results that known mistakes give.
    """
    for fitted, flops in [
        ((1.7, 400.0, 0.34, 410.0, 0.28), 1e12),
        ((0.5, 9000.0, 0.5, 90.0, 0.3), 1e14),
    ]:
        _, big, a, long, b = fitted
        budget = flops / 6
        size, tokens = _searched(fitted, budget)
        power = budget ** (b / (a + b))
        exchanged = budget ** (
            (a - b) / (a + b)
        )  # from exponent b / (a + b) to a / (a + b)
        without_factors = power * (big / long) ** (1 / (a + b))
        mistakes = {
            "the exponents come down as factors in the derivative: *a A* and *b B*.": (
                without_factors,
                budget / without_factors,
            ),
            "the exponents of the two are exchanged: parameters grow with b / (a + b).": (
                size * exchanged,
                tokens / exchanged,
            ),
            "parameters come first, then tokens; these are exchanged.": (tokens, size),
            "each token costs six operations a parameter: divide by six.": _searched(
                fitted, flops
            ),
            "as many parameters as tokens is best only where both terms of the law are "
            "alike: A and a are not B and b.": (budget**0.5, budget**0.5),
            "the exponents are right, but A and B are left out.": (power, budget / power),
        }
        yield Case([fitted, flops], (size, tokens), mistakes, tolerance=0.01)


def _searched(fitted, budget):
    """Search for the number of parameters and of tokens with the lowest loss in a budget.

    The law of the loss is E + A / parameters^a + B / tokens^b. Sizes are tried on a fine
    grid; for each, the tokens are what the budget leaves.

    Parameters
    ----------
    fitted : sequence of five floats
        E, A, a, B, b.
    budget : float
        Parameters times tokens: the FLOPs over six.

    Returns
    -------
    parameters, tokens : float
        How many of each; not rounded.
    """
    _, big, a, long, b = fitted
    size = np.geomspace(1e-9 * budget, 1e9 * budget, 400_001)
    best = size[np.argmin(big * size**-a + long * (budget / size) ** -b)]
    return float(best), float(budget / best)


judge(
    "scaling.schedule",
    a="at the moment of the comparison both have read the same amount of text.",
    b="three seeds each are enough to see whether two tenths are more than chance.",
    c="what was learned by heart would count there; the test text is the right one.",
    d=None,
)


@exercise("scaling.flops", kind="spot the bug")
def flops():
    """Check a reader's count of the operations of a training.

    The answer is a function of layers, d_model, context, vocab_size and tokens read, which
    returns FLOPs, a number. Oracle: what PyTorch counts while a small GPT computes.

    Yields
    ------
    Case
        Arguments, the right result, and the results that known mistakes give.
    """
    for layers, width, context, vocabulary in ((1, 8, 6, 5), (3, 4, 14, 30)):
        tokens = 2 * context
        block = 12 * width**2
        head = vocabulary * width
        mixing = 2 * context * width

        def spent(block=block, mixing=mixing, head=head, times=3, n=layers, t=tokens):
            """Return the FLOPs of a training, with one term counted in another way.

            The defaults are right, and make a multiplication and an addition two FLOPs.

            Parameters
            ----------
            block, mixing, head : float
                Multiplications for a token: of a block's matrices, of its attention's
                scores and weighted sum, of the output matrix.
            times : int
                How many forward passes a step is worth.
            n, t : int
                Layers, and tokens read.

            Returns
            -------
            float
                An int if all of these are.
            """
            return 2 * times * t * (n * (block + mixing) + head)

        counted = _counted(GPTConfig(vocabulary, context, layers, 2, width))
        mistakes = {
            "two things are still wrong. How many matrices has a feed-forward network? And "
            "how many products does the backward pass need for each one of the forward "
            "pass?": spent(block - 4 * width**2, times=2),
            "the block is right. But the backward pass needs two products for each one of "
            "the forward pass.": spent(times=2),
            "the backward pass is right. But the feed-forward network has two matrices, "
            "each four times as large as one of attention's.": spent(block - 4 * width**2),
            "the last matrix, which makes the logits, is missing.": spent(head=0),
            "the products with attention's scores and weights are missing.": spent(
                mixing=0
            ),
            "attention has two such products: the scores, and the weighted sum.": spent(
                mixing=mixing / 2
            ),
            "attention has four matrices; the output's is missing.": spent(
                block - width**2
            ),
            "the vocabulary is counted twice. A token's vector is only looked up.": spent(
                head=2 * head
            ),
            "this is the forward pass alone.": spent(times=1),
            "a multiplication and an addition are two operations.": spent() / 2,
        }
        given = [layers, width, context, vocabulary, tokens]
        yield Case(given, counted, mistakes)


def _counted(config):
    """Return the FLOPs of a training step on two windows, an int, as PyTorch counts them.

    ``config`` : GPTConfig, the sizes of the GPT that is made; a window has as many tokens
    as its ``context``. Forward and backward pass are counted.
    """
    ids = torch.zeros(2, config.context, dtype=torch.long)
    model = GPT(config)
    counter = FlopCounterMode(display=False)
    with sdpa_kernel(SDPBackend.MATH), counter, torch.enable_grad():
        cross_entropy(model(ids), ids).backward()
    return counter.get_total_flops()


# The proof `examples_are_followed` measures it.
predict(
    "scaling.shuffled",
    a="that would be so if the model took no notice of its examples.",
    b="the tasks are new: nothing that it learned in training holds their answers.",
    c=None,
)

# The proof `letters_before_are_missed` measures it.
predict(
    "scaling.missed",
    a=None,
    b="it helps most of all when it comes alone; left out of the whole it is missed less.",
    c="in so short a run it does harm when it comes alone, and is hardly missed here.",
    d="they help when they come alone; the other ideas make up for most of that.",
)


MOST = 20_000  # numbers that a reader's small model may have
BAR = 2.1  # nats a character on the test sonnets, which it must stay below
TOO_LOW = 1.5  # nats that no model reaches which was not trained on them
CHANGED = 40  # from this position on a window is changed, to see who looks ahead


def _looks_ahead(model, ids):
    """Return whether a logit depends on a later token; False if the model fails.

    From position 40 (`CHANGED`) on the tokens are put in reverse order. A logit before that
    depends on them if it changes by more than 0.001.

    Parameters
    ----------
    model : nn.Module
        The reader's, from ids (batch, context) to logits (batch, context, vocab_size).
    ids : int64 Tensor of shape (context,)

    Returns
    -------
    bool
    """
    weight = next(model.parameters(), torch.zeros(1))
    other = ids.clone()
    other[CHANGED:] = ids[CHANGED:].flip(0)
    try:
        with evaluating(model):
            first, second = (run(model, x[None].to(weight.device)) for x in (ids, other))
    except Wrong:
        return False
    gap = (first[:, :CHANGED] - second[:, :CHANGED]).abs().max()
    return bool(gap > 1e-3)


def _measured(answer):
    """Measure a reader's trained model.

    Parameters
    ----------
    answer : nn.Module
        From ids (batch, 64) to logits (batch, 64, vocab_size); with anything that is no
        module, `Unfit` is raised.

    Returns
    -------
    SimpleNamespace
        ``loss``, the mean on 120 windows of 64 characters of the test sonnets, in nats a
        character; ``numbers``, how many its parameters and buffers have (a table may be
        kept in either), and ``most``, how many are allowed, 20,000; ``ahead``, whether a
        logit before position 40 (`CHANGED`) of a window changes if the characters from
        there on are reversed, False if the model fails.

    Raises
    ------
    Unfit
        If it is no module, or gives no logit for each character.
    """
    if not isinstance(answer, nn.Module):
        kind = type_name(answer)
        raise Unfit(f"hand in the trained model itself, not {kind}.")
    tokenizer = CharTokenizer(load_corpus("sonnets"))
    text = train_val_test_split(load_texts("sonnets")).test
    ids = torch.tensor(tokenizer.encode(text))
    try:
        loss = window_loss(answer, ids, 120)
    except Wrong as error:
        wanted = "the model must make of ids (batch, tokens) a logit for each character"
        raise Unfit(f"{wanted}: {error}") from error
    numbers = sum(x.numel() for x in (*answer.parameters(), *answer.buffers()))
    ahead = _looks_ahead(answer, ids[:64])
    return SimpleNamespace(loss=loss, numbers=numbers, most=MOST, ahead=ahead)


@exercise("scaling.small", kind="experiment")
def small():
    """Check a small model that a reader trained on the sonnets.

    The answer is the model, an nn.Module. It may have 20,000 numbers (`MOST`); no logit may
    depend on a later character; and its loss on the test sonnets must be below `BAR`, 2.1
    nats a character. Below `TOO_LOW`, 1.5, it is taken for one that was trained on them.
    Oracle: the test sonnets are read to it, and its numbers are counted (`_measured`).

    Yields
    ------
    Faults
        What is measured of the answer, and how known mistakes show in it.
    """
    summary = "It has {numbers:,} numbers and a loss of {loss:.3f}."
    faults = {
        f"{summary} At most {{most:,}} are allowed, tables and buffers included.": (
            lambda seen: seen.numbers > MOST
        ),
        f"{summary} But it looks ahead: its logits change when later characters do.": (
            lambda seen: seen.ahead
        ),
        f"{summary} No run of ours has come so low: was it trained on the test sonnets?": (
            lambda seen: seen.loss < TOO_LOW
        ),
        f"{summary} That is not enough. Try another learning rate, more steps, or another "
        "shape.": lambda seen: not seen.loss < BAR,
    }
    yield Faults(_measured, faults)
