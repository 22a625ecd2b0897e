"""Checks for the tasks of the chapter *mini-gpt*."""

import math

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

from lmcourse.data import load_corpus, load_texts, train_val_test_split
from lmcourse.exercises import Wrong, compare, exercise, judge, predict, run
from lmcourse.exercises.answers import adding, normal, number, unpack
from lmcourse.gpt.model import evaluating
from lmcourse.gpt.training import cut_windows, split
from lmcourse.ngrams import NgramModel
from lmcourse.tokenization import CharTokenizer


class CallCounter(TorchDispatchMode):
    """Counts the operations that PyTorch is asked for, inside a ``with``."""

    calls = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        self.calls += 1
        return function(*args, **(kwargs or {}))


@exercise("mini-gpt.windows", "build")
def windows(answer):
    """Compare with slices of the corpus."""
    ids = torch.arange(40) ** 2 % 41  # whoever is off by one gets other numbers
    starts, context = torch.tensor([3, 17, 3, 30]), 5

    def cut(shift, size=context, starts=starts):
        """Return windows of the text, each so many tokens after its start."""
        return torch.stack([ids[start + shift :][:size] for start in starts.tolist()])

    first, second, places = cut(0), cut(1), starts[:, None] + torch.arange(context)
    last = second[:, -1]
    wrong_inputs = {
        "the windows are one token too long: cut the inputs without their last "
        "token, the targets without their first.": cut(0, context + 1),
        "the windows are one token too short.": cut(0, context - 1),
        "these are the targets: inputs and targets are swapped.": second,
        "the shape is (context, batch); each window is to be a row.": first.T,
        "these are places in the corpus, not what stands there.": places,
        "every window begins at the first start.": cut(0, starts=starts[[0] * 4]),
    }
    wrong_targets = {
        "they are the inputs again, not shifted. A model would learn to copy.": first,
        "they are shifted the wrong way: this is what stood *before* each token.": cut(-1),
        "they are shifted by two.": cut(2),
        "the last one is the first token of the window: `roll` brings round what "
        "fell off. Cut one token more instead.": first.roll(-1, 1),
        "only the token after the window is there; every token has a target.": last,
        "the last one is missing: it is the token after the window.": second[:, :-1],
    }
    with CallCounter() as few:
        got = run(answer, ids, starts, context)
    got = got.unbind() if isinstance(got, torch.Tensor) and got.ndim == 3 else got
    inputs, targets = unpack(got, 2, "two tensors: inputs, targets")
    with adding("inputs:"):
        compare(inputs, first, wrong_inputs)
    with adding("targets:"):
        compare(targets, second, wrong_targets)
    with CallCounter() as many:
        run(answer, ids, starts.repeat(10), context)
    if many.calls > few.calls + 10:
        raise Wrong(
            f"right, but in a loop: {few.calls} calls of PyTorch cut 4 windows, and "
            f"{many.calls} cut 40. Index `ids` with a whole matrix of places, once."
        )


# The page computes it: rows of N(0, 1), read in and out by the same table.
predict(
    "mini-gpt.first_loss",
    a=None,
    b="it has seen nothing yet: what should make it so sure, and right?",
    c="so it should be. But a table of rows from N(0, 1) reads in and out: "
    "what is the product of a row with itself, and what with another?",
)


class _DropoutModel(nn.Module):
    """A model whose dropout shows: two calls in training mode differ."""

    def __init__(self):
        super().__init__()
        self.table, self.dropout = nn.Embedding(5, 5), nn.Dropout(0.5)
        self.table.weight.data = 3 * normal(5, 5)

    def forward(self, ids):
        """Map IDs to vectors."""
        return self.dropout(self.table(ids))


@exercise("mini-gpt.estimate", "spot the bug")
def estimate(answer):
    """Compare with the loss in evaluation mode, from both modes."""
    model = _DropoutModel()
    inputs = torch.tensor([[0, 3, 1, 4], [2, 2, 0, 1], [4, 0, 3, 3]])
    targets = inputs.roll(1, 1)
    with torch.no_grad():
        want = F.cross_entropy(model.eval()(inputs).flatten(0, 1), targets.flatten()).item()
        mistakes = {
            "this is the loss of the last place only; take the mean over all.": (
                F.cross_entropy(model(inputs)[:, -1], targets[:, -1])
            ),
            "the losses are added; take their mean.": want * targets.numel(),
            "this is the perplexity; return the loss.": math.exp(want),
        }
    for training in (True, False):
        model.train(training)
        got = run(answer, model, inputs, targets)
        if model.training != training:
            before, after = ("training", "evaluation")[:: 1 if training else -1]
            raise Wrong(
                f"the model came in {before} mode and is left in {after} mode: whoever "
                "goes on with it trains without dropout, or evaluates with it."
            )
        again = number(run(answer, model, inputs, targets))
        if training and abs(number(got) - again) > 1e-9:
            raise Wrong(
                "two calls on the same text give two losses: dropout is still on while it "
                "is evaluated."
            )
        compare(got, want, mistakes)


# --- models that a reader trained --------------------------------------------------------


@torch.no_grad()
def window_loss(model, ids, windows=40, context=64):
    """Return the mean loss of a reader's model on a text, in nats a token.

    It is measured in evaluation mode, on windows at equal distances.

    Parameters
    ----------
    model : nn.Module
        From ids (batch, context) to logits (batch, context, vocab_size).
    ids : int64 Tensor of shape (tokens,)
    windows, context : int
        How many windows, and their length.

    Raises
    ------
    Wrong
        If the model gives something else.
    """
    starts = torch.linspace(3, len(ids) - context - 2, windows).long()
    weight = next(model.parameters(), torch.zeros(1))
    inputs, targets = (x.to(weight.device) for x in cut_windows(ids, starts, context))
    with evaluating(model):
        logits = run(model, inputs)
    size = int(ids.max()) + 1
    if not isinstance(logits, torch.Tensor) or logits.ndim != 3 or logits.shape[-1] < size:
        raise Wrong("the model must give a logit for each character, at each place.")
    return F.cross_entropy(logits.flatten(0, 1).float(), targets.flatten()).item()


def _trained(model, training, apart, bar, name="the model"):
    """Return a model's loss on the text kept apart; refuse a model that learned nothing.

    Parameters
    ----------
    model : object
        The answer.
    training, apart : int64 Tensor of shape (tokens,)
        The text that it was trained on, and the one kept apart.
    bar : float
        The loss, in nats a token, below which it has to be.
    name : str
        What messages call it.

    Raises
    ------
    Wrong
        If it is no module, is not below ``bar``, was trained on the text kept apart, or
        sees the last token alone.
    """
    if not isinstance(model, nn.Module):
        raise Wrong(f"{name} is to be the trained model itself, to be measured again.")
    own, loss = window_loss(model, training), window_loss(model, apart)
    if not loss < bar:
        raise Wrong(
            f"{name} has a loss of {loss:.2f} on the text kept apart; counting single "
            f"characters has {bar:.2f} there. Train longer."
        )
    if loss < own - 0.2:
        raise Wrong(
            f"{name} does better on the text kept apart ({loss:.2f}) than on the training "
            f"text ({own:.2f}): it was trained on what should judge it."
        )
    _ask_what_it_sees(model, training[:64], name)
    return loss


@torch.no_grad()
def _ask_what_it_sees(model, ids, name):
    """Raise `Wrong` if a model's answer depends on the last token of ``ids`` alone.

    ``ids`` : (tokens,); ``name`` : str, what the message calls the model.
    """
    other = torch.cat([ids[:-1].flip(0), ids[-1:]])
    weight = next(model.parameters(), torch.zeros(1))
    with evaluating(model):
        ends = run(model, torch.stack([ids, other]).to(weight.device))[:, -1]
    if torch.equal(*ends):
        raise Wrong(f"{name} sees the last character alone: a table of pairs, no GPT.")


def _single(training, apart):
    """Return the loss on the text kept apart of counting single characters, in nats.

    ``training``, ``apart`` : ids (characters,).
    """
    size = int(max(training.max(), apart.max())) + 1
    return NgramModel(training.numpy(), 1, size).loss(apart.numpy())


@exercise("mini-gpt.own", "experiment")
def own(answer):
    """Measure a model on the end of the text that it was trained on the rest of."""
    text, model = unpack(answer, 2, "a pair: your text, and the model trained on it")
    if not isinstance(text, str):
        raise Wrong("the first of the pair is to be your text, a string.")
    if len(text) < 5000:
        raise Wrong(
            f"{len(text):,} characters are few; 5,000 is the least, more is better."
        )
    if text in load_corpus("sonnets"):
        raise Wrong("that is Shakespeare's text; take one of your own.")
    ids = torch.tensor(CharTokenizer(text).encode(text))
    _trained(model, *split(ids), _single(*split(ids)))


# The page computes it: the place where sixty-four characters gain most over five.
predict(
    "mini-gpt.reach",
    a="a sonnet keeps to its subject, true; does a model of this size?",
    b=None,
    c="five characters hold most of a word already: how much is left to be known?",
    d="some guesses need the last letters only. Which one depends on how many came before?",
)


@exercise("mini-gpt.sweep", "experiment")
def sweep(answer):
    """Read sonnets with the models that were handed in."""
    if not isinstance(answer, list | tuple) or not all(
        isinstance(row, list | tuple) and len(row) == 2 for row in answer
    ):
        raise Wrong("hand in a list of pairs: a trained model, and its validation loss.")
    if len(answer) < 4:
        raise Wrong(f"{len(answer)} models are no sweep; train four or more.")
    parts, tokenizer = train_val_test_split(load_texts("sonnets")), load_corpus("sonnets")
    tokenizer = CharTokenizer(tokenizer)
    training, apart = (torch.tensor(tokenizer.encode(part)) for part in parts[:2])
    bar, losses = _single(training, apart), []
    for i, (model, told) in enumerate(answer):
        losses.append(_trained(model, training, apart, bar, f"model {i}"))
        if abs(number(told) - losses[-1]) > 0.15:
            raise Wrong(
                f"of model {i} you say {number(told):.2f}; on other windows of the "
                f"validation text it is {losses[-1]:.2f}. Which text was yours?"
            )
    if len(set(losses)) < len(losses):
        raise Wrong("two models are equal to the last digit: is it the same one twice?")


# The page names who wrote what.
judge(
    "mini-gpt.writer",
    a="read to the end of a's lines: this writer knows how long a line is.",
    b="read to the end of b's lines: this writer knows how long a line is.",
    c=None,
)
