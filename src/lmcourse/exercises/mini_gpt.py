"""Checks for the tasks of the chapter *mini-gpt*."""

import math
from functools import partial
from types import SimpleNamespace

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

from lmcourse.data import load_corpus, load_texts, train_val_test_split
from lmcourse.exercises import Case, Faults, exercise, judge, predict, run
from lmcourse.exercises.answers import Called, Unfit, normal, number, unpack
from lmcourse.gpt.model import evaluating
from lmcourse.gpt.training import cut_windows, split
from lmcourse.gpt.training import estimate as estimate_loss
from lmcourse.ngrams import NgramModel
from lmcourse.tokenization import CharTokenizer


class CallCounter(TorchDispatchMode):
    """Counts the operations that PyTorch is asked for, inside a ``with``, in ``calls``."""

    calls = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        """Count one more call of PyTorch in ``calls``, and do what it asks for.

        PyTorch calls this in place of ``function(*args, **kwargs)``; ``types`` is not used.
        """
        self.calls += 1
        return function(*args, **(kwargs or {}))


# Methods of a Tensor that make Python numbers of it: who calls them works in a loop.
TAKEN_APART = {"tolist", "__iter__", "item", "__index__", "__int__"}


@exercise("mini-gpt.windows", "build")
def windows():
    """Check a reader's function that cuts windows from a text.

    The answer is a function of ids (tokens,), starts (windows,) and the length of a window.
    It returns inputs and targets (windows, context), the targets one token further on.
    Oracle: slices of the text. Last it is looked at how often PyTorch is called: a loop
    makes more calls for more windows, or takes tensors apart by the methods named in
    `TAKEN_APART`.

    Yields
    ------
    Case
        How the answer is called (``ask``), the right result, and those of known mistakes.
    Faults
        What is measured of the answer, and how known mistakes show in it.
    """
    ids = torch.arange(40) ** 2 % 41  # whoever is off by one gets other numbers
    starts = torch.tensor([3, 17, 3, 30])
    context = 5

    def cut(shift, size=context, starts=starts):
        """Return windows of the text: a Tensor (windows, size).

        ``shift`` : int, how many tokens after its start each window begins, 0 for the right
        inputs and 1 for the right targets; ``size`` : int, its length, and ``starts`` :
        Tensor (windows,), the positions of the starts, both by default the right ones.
        """
        return torch.stack([ids[start + shift :][:size] for start in starts.tolist()])

    first = cut(0)
    second = cut(1)
    positions = starts[:, None] + torch.arange(context)
    last = second[:, -1]
    wrong_inputs = {
        "the windows are one token too long: cut the inputs without their last "
        "token, the targets without their first.": cut(0, context + 1),
        "the windows are one token too short.": cut(0, context - 1),
        "these are the targets: inputs and targets are swapped.": second,
        "the shape is (context, batch); each window should be a row.": first.T,
        "these are positions in the corpus, not the tokens at these positions.": positions,
        "every window begins at the first start.": cut(0, starts=starts[[0] * 4]),
    }
    wrong_targets = {
        "they are the inputs again, not shifted. A model would learn to copy.": first,
        "they are shifted the wrong way: these are the tokens *before* each token.": cut(
            -1
        ),
        "they are shifted by two.": cut(2),
        "the last one is the first token of the window again, as `roll` makes it. "
        "Cut one more token instead.": first.roll(-1, 1),
        "only the token after the window is there; every token has a target.": last,
        "the last one is missing: it is the token after the window.": second[:, :-1],
    }

    def ask(place, answer):
        """Return the inputs (``place`` 0) or the targets (1) that the answer cuts.

        ``answer`` : the reader's callable, from ids, starts and the length of a window to
        inputs and targets.
        """
        return _two_parts(run(answer, ids, starts, context))[place]

    yield Case([], first, wrong_inputs, ask=partial(ask, 0), prefix="inputs:")
    yield Case([], second, wrong_targets, ask=partial(ask, 1), prefix="targets:")

    def calls(answer):
        """Count how often the answer calls PyTorch for four windows and for forty.

        ``answer`` : the reader's callable, from ids, starts and the length of a window.

        Returns
        -------
        SimpleNamespace
            ``few`` and ``many``, int; ``apart``, a set of str: the methods, of those in
            `TAKEN_APART`, by which it takes tensors apart into Python's numbers.
        """
        with CallCounter() as few:
            run(answer, ids, starts, context)
        with CallCounter() as many, Called() as watch:
            run(answer, ids, starts.repeat(10), context)
        apart = TAKEN_APART & {*watch.names}
        return SimpleNamespace(few=few.calls, many=many.calls, apart=apart)

    loop = (
        "right, but in a loop: {few} calls of PyTorch for 4 windows, and {many} for "
        "40. Index `ids` once, with a whole matrix of positions."
    )
    lists = (
        "right, but in a loop over Python's numbers. Keep `ids` and `starts` as "
        "tensors, and index `ids` once, with a whole matrix of positions."
    )
    table = {
        lists: lambda seen: bool(seen.apart),
        loop: lambda seen: seen.many > seen.few + 10,
    }
    yield Faults(calls, table)


def _two_parts(got):
    """Return the inputs and targets that an answer gave, perhaps stacked in one Tensor.

    ``got`` : a sequence of two Tensors (windows, context), or a Tensor (2, windows,
    context). Anything but two parts is `Unfit`.
    """
    got = got.unbind() if isinstance(got, torch.Tensor) and got.ndim == 3 else got
    return unpack(got, 2, "two tensors: inputs, targets")


# The page computes it: rows of N(0, 1), read in and out by the same table.
predict(
    "mini-gpt.first_loss",
    a=None,
    b="it has learned nothing yet. How could it be sure, and right?",
    c="that would be so if it gave every character about the same probability. But "
    "one table with large random numbers turns characters into vectors, and "
    "vectors into predictions. What is the product of a row with itself, and what "
    "is it with another row?",
)


class _DropoutModel(nn.Module):
    """A model whose dropout shows: two calls in training mode differ."""

    def __init__(self):
        """Make a table of vectors (5, 5) with large weights, and a dropout of 0.5."""
        super().__init__()
        self.table = nn.Embedding(5, 5)
        self.dropout = nn.Dropout(0.5)
        self.table.weight.data = 3 * normal(5, 5)

    def forward(self, ids):
        """Return logits (batch, tokens, 5) for ids (batch, tokens), with dropout."""
        return self.dropout(self.table(ids))


@exercise("mini-gpt.estimate", "spot the bug")
def estimate():
    """Check a reader's estimate of a model's loss.

    The answer is a function of a model, inputs and targets (batch, tokens), which returns
    the mean loss in nats and leaves the model in the mode (training or evaluation) that it
    was in. Oracle: the loss in evaluation mode, asked for from either mode. `MODES` says
    what may be wrong with the modes.

    Yields
    ------
    Case
        How the answer is called (``ask``), the right result, and those of known mistakes.
    Faults
        What is measured of the answer, and how known mistakes show in it.
    """
    model = _DropoutModel()
    inputs = torch.tensor([[0, 3, 1, 4], [2, 2, 0, 1], [4, 0, 3, 3]])
    targets = inputs.roll(1, 1)
    with torch.no_grad():
        want = F.cross_entropy(model.eval()(inputs).flatten(0, 1), targets.flatten()).item()
        mistakes = {
            "this is the loss at the last position only; take the mean over all.": (
                F.cross_entropy(model(inputs)[:, -1], targets[:, -1])
            ),
            "the losses are added; take their mean.": want * targets.numel(),
            "this is the perplexity; return the loss.": math.exp(want),
        }
    for training in (True, False):
        asked = partial(_estimated, model, training, inputs, targets)
        yield Faults(asked, MODES)
        yield Case([], want, mistakes, ask=lambda answer, asked=asked: asked(answer).got)


# What may be wrong with the mode that a model is used or left in: what the reader is told →
# whether it is so of what `_estimated` returns.
MODES = {
    "you were given the model in {before} mode, and you leave it in {after} mode. "
    "Left in the wrong mode, a model goes on training without dropout, or is used "
    "with it.": lambda seen: seen.before != seen.after,
    "two calls on the same text give different losses: dropout is still on.": lambda seen: (
        abs(seen.got - seen.again) > 1e-9
    ),
}


def _estimated(model, training, inputs, targets, answer):
    """Call an answer twice with a model in one mode; return both losses, and the modes.

    Parameters
    ----------
    model : nn.Module
    training : bool
        Whether the model is in training mode before each call.
    inputs, targets : int64 Tensor of shape (batch, tokens)
    answer : callable
        The reader's, from a model and these two to a loss.

    Returns
    -------
    SimpleNamespace
        ``before`` and ``after`` the first call, each "training" or "evaluation"; ``got``
        and ``again``, the losses, floats.
    """
    mode = {True: "training", False: "evaluation"}
    model.train(training)
    got = run(answer, model, inputs, targets)
    after = mode[model.training]
    model.train(training)
    got = number(got)
    again = number(run(answer, model, inputs, targets))
    return SimpleNamespace(before=mode[training], after=after, got=got, again=again)


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

    Returns
    -------
    float

    Raises
    ------
    Unfit
        If the model raises an error, or does not give a logit for each id of the text at
        each position.
    """
    starts = torch.linspace(3, len(ids) - context - 2, windows).long()
    weight = next(model.parameters(), torch.zeros(1))
    inputs, targets = (x.to(weight.device) for x in cut_windows(ids, starts, context))
    with evaluating(model):
        logits = run(model, inputs)
    size = int(ids.max()) + 1
    if not isinstance(logits, torch.Tensor) or logits.ndim != 3 or logits.shape[-1] < size:
        raise Unfit("the model must give a logit for each character, at each position.")
    return F.cross_entropy(logits.flatten(0, 1).float(), targets.flatten()).item()


def _trained(model, training, apart, name="the model"):
    """Return the losses of a reader's model on both parts of a text, and what to compare.

    Parameters
    ----------
    model : object
        The answer: should be an nn.Module, from ids (batch, 64) to logits (batch, 64,
        vocab_size).
    training, apart : int64 Tensor of shape (tokens,)
        The text that it was trained on, and the one kept apart.
    name : str
        What messages call it.

    Returns
    -------
    SimpleNamespace
        ``loss`` on the text kept apart and ``own`` on the training text, floats in nats a
        token; ``bar``, which ``loss`` must stay below: the loss, on the text kept apart, of
        a model that knows how often each character occurs, and nothing else; ``sees_one``,
        a function without arguments that returns whether it sees the last token alone,
        bool; ``name``, as given.

    Raises
    ------
    Unfit
        If it is no module, or gives something else than logits.
    """
    if not isinstance(model, nn.Module):
        raise Unfit(
            f"{name} should be the trained model itself, so that it can be measured."
        )
    return SimpleNamespace(
        name=name,
        own=window_loss(model, training),
        loss=window_loss(model, apart),
        bar=_single(training, apart),
        sees_one=partial(_sees_one, model, training[:64]),
    )


# What a model has that learned nothing, or what it should not have: what the reader is told
# → whether it is so of what `_trained` returns.
UNTRAINED = {
    "{name} has a loss of {loss:.2f} on the held-out text; counting single "
    "characters gives {bar:.2f} there. Train longer.": lambda seen: (
        not seen.loss < seen.bar
    ),
    "{name} is better on the held-out text ({loss:.2f}) than on the training text "
    "({own:.2f}): it was trained on the text that should test it.": (
        lambda seen: seen.loss < seen.own - 0.2
    ),
    "{name} sees only the last character: it is a table of pairs, not a GPT.": (
        lambda seen: seen.sees_one()
    ),
}


@torch.no_grad()
def _sees_one(model, ids):
    """Return whether a model predicts the same when the tokens before the last change.

    The last token of ``ids`` stays, the first stands in the place of all before it. If the
    logits at the last position are then equal, bit for bit, the model is taken for one that
    sees the last token alone. A model that fails on ids is `Wrong`.

    ``model`` : nn.Module, from ids (batch, tokens) to logits (batch, tokens, vocab_size);
    ``ids`` : int64 Tensor (tokens,).
    """
    other = torch.cat([ids[:1].expand(len(ids) - 1), ids[-1:]])
    weight = next(model.parameters(), torch.zeros(1))
    with evaluating(model):
        ends = run(model, torch.stack([ids, other]).to(weight.device))[:, -1]
    return torch.equal(*ends)


def _single(training, apart):
    """Return the loss, in nats, of a model that counts single characters (unigrams).

    ``training``, ``apart`` : int64 Tensors (characters,), ids of the text that is counted
    and of the text that is predicted.
    """
    size = int(max(training.max(), apart.max())) + 1
    return NgramModel(training.numpy(), 1, size).loss(apart.numpy())


def _own_text(answer):
    """Return the text of an answer, and the model trained on it.

    ``answer`` : the reader's (text, model). Returns a SimpleNamespace: ``text``, a str,
    ``model``, which is not looked at, and ``length``, how many characters the text has.
    What is no pair with a str first is `Unfit`.
    """
    text, model = unpack(answer, 2, "a pair: your text, and the model trained on it")
    if not isinstance(text, str):
        raise Unfit("the first of the pair should be your text, a string.")
    return SimpleNamespace(text=text, model=model, length=len(text))


@torch.no_grad()
def _alphabets(answer):
    """Return how many different characters an answer's text has, and its model knows.

    Parameters
    ----------
    answer : tuple
        The reader's: a text, a str, and a model. What is no pair with a str first is
        `Unfit`.

    Returns
    -------
    SimpleNamespace
        ``size``, how many different characters; ``known``, how many logits the model gives
        for each position. Where the model is no module, or gives other things than logits
        (batch, tokens, characters), both are the same: `_own_model` says what is wrong
        then.
    """
    seen = _own_text(answer)
    size = len(set(seen.text))
    if not isinstance(seen.model, nn.Module):
        return SimpleNamespace(size=size, known=size)
    weight = next(seen.model.parameters(), torch.zeros(1))
    logits = run(seen.model, torch.zeros(1, 8, dtype=torch.long, device=weight.device))
    known = logits.shape[-1] if getattr(logits, "ndim", 0) == 3 else size
    return SimpleNamespace(size=size, known=known)


def _own_model(answer):
    """Measure the model of an answer on both parts of its text, training and held-out.

    Parameters
    ----------
    answer : tuple
        The reader's: a text, a str, and a model, an nn.Module; anything else is `Unfit`.
        The last tenth of the text is the part that is held out.

    Returns
    -------
    SimpleNamespace
        ``loss`` on the held-out part and ``own`` on the training part, in nats a character;
        ``bar``, the loss of counting single characters; ``sees_one``, a function without
        arguments: whether the model sees the last character alone; ``name``, "the model".
    """
    seen = _own_text(answer)
    ids = torch.tensor(CharTokenizer(seen.text).encode(seen.text))
    return _trained(seen.model, *split(ids))


@exercise("mini-gpt.own", "experiment")
def own():
    """Check a model that a reader trained on a text of their own.

    The answer is a pair: the text, a str, and the model, an nn.Module. Oracle: its losses
    on the part of the text that it was trained on, and on the last part. What may be wrong
    with a model is in `UNTRAINED`.

    Yields
    ------
    Faults
        What is measured of the answer, and how known mistakes show in it.
    """
    texts = {
        "{length:,} characters are too few; take at least 5,000, and more if you can.": (
            lambda seen: seen.length < 5000
        ),
        "that is Shakespeare's text; take one of your own.": (
            lambda seen: seen.text in load_corpus("sonnets")
        ),
    }
    other = (
        "your text has {size} different characters, and the model knows {known}: it was "
        "trained on a text with another alphabet."
    )
    yield Faults(_own_text, texts)
    yield Faults(_alphabets, {other: lambda seen: seen.size != seen.known})
    yield Faults(_own_model, UNTRAINED)


# The page computes it: where sixty-four characters gain most over five.
predict(
    "mini-gpt.reach",
    a="a sonnet keeps to its subject, true. But does a model of this size?",
    b=None,
    c="five characters are most of a word already. How much is left to be guessed?",
    d="many guesses need only the last few letters. Which guess depends on how many "
    "characters came before?",
)


def _rows(answer):
    """Return the pairs of an answer, a model and a loss each.

    ``answer`` : list of (model, validation loss). Returns a SimpleNamespace: ``rows``, the
    answer, and ``count``, how many pairs. Anything else is `Unfit`.
    """
    if not isinstance(answer, list | tuple) or not all(
        isinstance(row, list | tuple) and len(row) == 2 for row in answer
    ):
        raise Unfit("hand in a list of pairs: a trained model and its validation loss.")
    return SimpleNamespace(rows=answer, count=len(answer))


def _first_faulty(answer):
    """Return what is seen in the first model of an answer with a fault, or in the last.

    The models are measured on the course's Sonnets. Faults are those of `UNSWEPT`: what the
    reader is told → a function of what is seen that says whether it is so.

    Parameters
    ----------
    answer : list of (nn.Module, float)
        Trained models, each with its validation loss in nats.

    Returns
    -------
    SimpleNamespace
        ``name``, such as "model 0"; ``loss`` and ``own``, the model's measured losses on
        validation and training Sonnets; ``reported``, the answer's loss, and
        ``is_training_loss``, whether that is on the training text; ``earlier``, a list of
        the models before it with nearly the same weights; ``bar``, the loss of counting
        single characters; ``sees_one``, a function without arguments that says whether it
        sees the last token alone.
    """
    parts = train_val_test_split(load_texts("sonnets"))
    tokenizer = CharTokenizer(load_corpus("sonnets"))
    models = []
    training, apart = (torch.tensor(tokenizer.encode(part)) for part in parts[:2])
    for i, (model, reported) in enumerate(_rows(answer).rows):
        seen = _trained(model, training, apart, f"model {i}")
        seen.reported = number(reported)
        seen.is_training_loss = is_training_loss(model, training, apart, seen.reported)
        seen.earlier = [twin for twin in models if nearly_equal(model, twin)]
        models.append(model)
        if any(holds(seen) for holds in UNSWEPT.values()):
            break
    return seen


def is_training_loss(model, training, apart, reported):
    """Return whether a loss is that on the training text, as the page estimates it.

    It must be within 0.002 of the loss on 60 windows of that text, and not of the loss on
    60 of the validation text.

    Parameters
    ----------
    model : nn.Module
        From ids (batch, context) to logits.
    training, apart : int64 Tensor of shape (tokens,)
        The training and the validation text.
    reported : float
        The loss that the reader reports, in nats.

    Returns
    -------
    bool
    """
    with evaluating(model):
        own, held_out = (estimate_loss(model, ids, 64, 60) for ids in (training, apart))
    return abs(reported - own) < 0.002 < abs(reported - held_out)


def nearly_equal(model, other):
    """Return whether two models have the same shapes and nearly the same weights.

    The cosine of all their weights is above 0.999. Trainings of two sizes, or from two
    seeds, lead to weights that have little in common.

    Parameters
    ----------
    model, other : nn.Module

    Returns
    -------
    bool
    """
    shapes = [[weight.shape for weight in each.parameters()] for each in (model, other)]
    if shapes[0] != shapes[1]:
        return False
    ours, theirs = (
        nn.utils.parameters_to_vector(each.parameters()).detach() for each in (model, other)
    )
    return F.cosine_similarity(ours, theirs, dim=0).item() > 0.999


# Besides these, what may be wrong with a model of a sweep, of what `_first_faulty` sees.
UNSWEPT = UNTRAINED | {
    "you say that {name} has a loss of {reported:.2f}; that is its loss on the training "
    "text. Hand in its loss on the validation text.": lambda seen: seen.is_training_loss,
    "you say that {name} has a loss of {reported:.2f}; on other windows of the "
    "validation text we measure {loss:.2f}. On which text did you measure?": lambda seen: (
        abs(seen.reported - seen.loss) > 0.15
    ),
    "{name} has nearly the same weights as an earlier one: the models should differ "
    "in their width, heads or layers.": lambda seen: bool(seen.earlier),
}


@exercise("mini-gpt.sweep", "experiment")
def sweep():
    """Check a sweep: models that a reader trained with one setting changed.

    The answer is a list of pairs, a trained model (nn.Module) and its validation loss in
    nats, as the page's `sweep_of` returns it; four at least. Oracle: each model is measured
    on Sonnets again. What may be wrong with one is in `UNSWEPT`.

    Yields
    ------
    Faults
        What is measured of the answer, and how known mistakes show in it.
    """
    few = "{count} models are too few for a sweep; train four or more."
    yield Faults(_rows, {few: lambda seen: seen.count < 4})
    yield Faults(_first_faulty, UNSWEPT)


# The page names who wrote what.
judge(
    "mini-gpt.writer",
    a="read the lines of a to their ends: this writer knows how long a line should be.",
    b="read the lines of b to their ends. How long are they?",
    c=None,
)
