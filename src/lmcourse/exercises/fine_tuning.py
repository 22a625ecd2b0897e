"""Checks for the tasks of the chapter *fine-tuning*."""

from types import SimpleNamespace

import torch
from torch import nn

from lmcourse.data import load_poems, load_sonnets
from lmcourse.exercises import Case, Faults, exercise, judge, predict, run
from lmcourse.exercises.answers import Unfit, normal, type_name
from lmcourse.exercises.mini_gpt import window_loss
from lmcourse.gpt import inside
from lmcourse.gpt.checkpoints import load_gpt
from lmcourse.gpt.model import GPT, GPTConfig
from lmcourse.training_loop import train_model

# The study measures it.
predict(
    "fine-tuning.same",
    a=None,
    b="it knows these poems, but each step still changes the weights, and the learning "
    "rate is high again.",
    c="at the end of its first training more of the same hardly helped; and now the steps "
    "are larger and noisier.",
)


def _adapted(answer):
    """Return the module that an answer makes, its layer, and what they are asked.

    Parameters
    ----------
    answer : callable
        The reader's class; called with a linear layer from 6 to 4 numbers and a rank, 2.

    Returns
    -------
    SimpleNamespace
        ``module``, the reader's; ``layer``, the nn.Linear; ``x``, a batch (rows, 6);
        ``want``, (rows, 4), what the layer alone makes of it; ``target``, (rows, 4), what
        the module should learn to make.

    Raises
    ------
    Unfit
        If no module is made.
    """
    layer = nn.Linear(6, 4)
    x = normal(9, 6)
    target = normal(9, 4, seed=1)
    layer.weight.data = normal(4, 6, seed=2)
    layer.bias.data = normal(4, seed=3)
    want = layer(x).detach()
    module = run(answer, layer, 2)
    if not isinstance(module, nn.Module):
        kind = type_name(module)
        raise Unfit(f"pass the class itself; it should make a module, not {kind}.")
    parts = {"layer": layer, "x": x, "want": want, "target": target}
    return SimpleNamespace(module=module, **parts)


@torch.enable_grad()
def _untrained(answer):
    """Look at a reader's module before it is trained.

    Parameters
    ----------
    answer : callable
        The reader's class; called with a linear layer from 6 to 4 numbers and a rank.

    Returns
    -------
    SimpleNamespace
        ``module``, the reader's; ``layer``, the linear one; ``x``, (rows, 6), a batch;
        ``want`` and ``target``, (rows, 4), what the layer alone makes of it and what the
        module should learn to make; ``before``, the layer's weight; ``first``, the module's
        output for the batch; ``moving``, the parameters that training may change; ``own``,
        those of them that are not the layer's, and ``count``, how many numbers these have.
    """
    seen = _adapted(answer)
    seen.before = seen.layer.weight.detach().clone()
    seen.first = _output(seen.module, seen.x, seen.want)
    seen.moving = [w for w in seen.module.parameters() if w.requires_grad]
    frozen = (seen.layer.weight, seen.layer.bias)
    seen.own = [w for w in seen.moving if not any(w is each for each in frozen)]
    seen.count = sum(w.numel() for w in seen.own)
    return seen


@torch.enable_grad()
def _trained(answer):
    """Train a reader's module for fifty steps, and look at what it has learned.

    Parameters
    ----------
    answer : callable
        The reader's class; called with a linear layer from 6 to 4 numbers and a rank, 2.

    Returns
    -------
    SimpleNamespace
        Of the untrained module: ``module``, ``layer``, the batch ``x``, ``want`` and
        ``target``, ``before``, ``first``, ``moving``, ``own`` and ``count`` (`_untrained`
        explains them). Of the training: ``stuck``, whether no gradient of the first step is
        other than zero; ``loss`` and ``loss_before``, mean squared distances of the output
        from the target, in the last step and of the layer alone; ``there`` and ``back``,
        Tensors (rows, 4), what the module adds to the layer for inputs and for the same
        with the sign changed; ``rank``, of what it adds, a map from 6 to 4 numbers.
    """
    seen = _untrained(answer)
    module = seen.module
    layer = seen.layer

    def loss_at(step):
        """Return the mean squared distance from the target; ``step`` is not used."""
        return (_output(module, seen.x, seen.want) - seen.target).square().mean()

    def report(step, loss):
        """Note after the first step whether all its gradients were zero.

        ``step`` : int, how many were taken; ``loss``, a float, is not used.
        """
        if step == 1:
            gradients = [w.grad for w in seen.own if w.grad is not None]
            seen.stuck = not any(gradient.abs().max() > 0 for gradient in gradients)

    optimizer = torch.optim.Adam(seen.own, 0.02)
    losses = train_model(module, loss_at, 50, [optimizer], report=report)
    seen.loss = losses[-1]
    seen.loss_before = (seen.want - seen.target).square().mean().item()
    with torch.no_grad():
        added = _output(module, torch.eye(6), seen.want[:6]) - layer(torch.eye(6))
        seen.there, seen.back = (
            _output(module, x, seen.want) - layer(x) for x in (seen.x, -seen.x)
        )
    seen.rank = torch.linalg.matrix_rank(added, rtol=1e-3)
    return seen


@exercise("fine-tuning.lora", kind="spot the bug")
def lora():
    """Check a reader's module with a thin path beside a frozen layer (LoRA).

    The answer is a class, made from a linear layer and a rank. Its module adds to the
    layer's output what two thin matrices make of the input. It is made, its output is
    looked at before any training (`_untrained`), and then it is trained a little
    (`_trained`).

    Yields
    ------
    Faults
        What is measured of the answer, and how known mistakes show in it.
    """
    untrained = {
        "the layer's own weights are trained, too: freeze them with "
        "`requires_grad_(False)`.": (lambda seen: len(seen.own) < len(seen.moving)),
        "nothing in your module is trained: its matrices must be `nn.Parameter`.": (
            lambda seen: not seen.own
        ),
        "{count} numbers are trained; with a rank of 2, there should be 2 × (6 + 4).": (
            lambda seen: seen.count != 20
        ),
        "the layer's own matrix has changed.": (
            lambda seen: not torch.equal(seen.layer.weight, seen.before)
        ),
        "before any training, your module must compute what the layer computes: what "
        "it adds must be zero.": (
            lambda seen: not torch.allclose(seen.first, seen.want, atol=1e-5)
        ),
        "no gradient reaches its matrices: is the path detached?": (
            lambda seen: not seen.first.requires_grad
        ),
    }
    yield Faults(_untrained, untrained)
    trained = {
        "the module never learns. The gradient of each matrix is a product with the "
        "other matrix: what are both gradients when both matrices are zero?": lambda seen: (
            seen.stuck
        ),
        "fifty steps of training hardly change what the module computes.": (
            lambda seen: seen.loss > 0.9 * seen.loss_before
        ),
        "for −x the module should add the opposite of what it adds for x: is there "
        "an activation on the path?": (
            lambda seen: not torch.allclose(seen.back, -seen.there, atol=1e-4)
        ),
        "what the module learned has rank 1, not 2: rows of `down` that start out "
        "equal always get the same gradients.": lambda seen: seen.rank < 2,
    }
    yield Faults(_trained, trained)


def _output(module, x, want):
    """Run a reader's module on a batch.

    Parameters
    ----------
    module : nn.Module
        The reader's, which adds something to a linear layer from 6 to 4 numbers.
    x : Tensor of shape (rows, 6)
    want : Tensor of shape (rows, 4)
        What the layer alone makes of the batch; only its shape is used.

    Returns
    -------
    Tensor of shape (rows, 4)

    Raises
    ------
    Unfit
        If it returns anything else.
    """
    output = run(module, x)
    if not isinstance(output, torch.Tensor) or output.shape != want.shape:
        message = f"called with a tensor ({len(x)}, 6) it should return one of shape"
        raise Unfit(f"{message} ({len(x)}, 4).")
    return output


judge(
    "fine-tuning.claim",
    a="the same learning rate is not a fair one: each method has its own best rate.",
    b=None,
    c="the same number of steps is not the same amount of work, and a shared "
    "learning rate is not a fair one.",
    d="more seeds would show how certain the difference is, not what causes it.",
)


@exercise("fine-tuning.many")
def many():
    """Check a reader's batch in which each text has thin matrices of its own.

    The answer is a function of x (texts, tokens, d_in), the frozen weight (d_out, d_in),
    `downs` (readers, rank, d_in), `ups` (readers, d_out, rank), and `who`, an int Tensor
    (texts,), the row of these two for each text. It returns (texts, tokens, d_out). Oracle:
    x mapped by the frozen weight plus ``up @ down`` of each text.

    Yields
    ------
    Case
        Arguments, the right result, and the results that known mistakes give.
    """
    shapes = [(4, 2, 7), (5, 7), (3, 2, 7), (3, 5, 2)]
    x, weight, downs, ups = (normal(*s, seed=i).double() for i, s in enumerate(shapes))
    who = torch.tensor([2, 0, 2, 1])

    def apart(who, others=None, base=1.0):
        """Return x mapped by the frozen matrix and by some of the thin ones.

        Parameters
        ----------
        who : sequence of int
            For each text, which of the ``downs`` is used.
        others : sequence of int, optional
            For each text, which of the ``ups``; by default the same.
        base : float
            Multiplies the frozen matrix.

        Returns
        -------
        float64 Tensor of shape (texts, tokens, d_out)
        """
        paths = ups[who if others is None else others] @ downs[who]
        return x @ (base * weight + paths).mT

    paths = sum(ups[i] @ downs[i] for i in range(3))
    order = [0, 1, 2, 0]
    mistakes = {
        "the shared matrix is missing.": apart(who, base=0.0),
        "the readers' own matrices are missing.": x @ weight.T,
        "every text gets the first reader's matrices.": apart([0] * 4),
        "the matrices of all readers are added up; each text belongs to one reader.": x
        @ (weight + paths).T,
        "you assume that the texts come in the order of the readers; look at `who`.": apart(
            order
        ),
        "do not sort `who`; it is in the order of the texts.": apart(who.sort()[0]),
        "`ups` are picked by `who`, and `downs` are not.": apart(order, who),
        "`downs` are picked by `who`, and `ups` are not.": apart(who, order),
    }
    yield Case([x, weight, downs, ups, who], apart(who), mistakes, tolerance=1e-9)


# Nats a character: below which Dickinson is learned, below which Shakespeare is kept, and
# below which a model must have been trained on the test poems.
LEARNED_BELOW, KEPT_BELOW, TOO_LOW = 1.92, 1.63, 1.4


def _losses(answer):
    """Return a reader's model's losses on held-out poems of both poets.

    Parameters
    ----------
    answer : nn.Module
        A GPT, from ids (batch, tokens) to logits; anything that is no module is `Unfit`.

    Returns
    -------
    SimpleNamespace
        Mean losses, floats, in nats a character, each over 120 windows of 64 characters.
        ``new``: on Dickinson's test poems, which are rows 9, 19, 29, … of `load_poems`.
        ``old``: on the test sonnets, the same rows of `load_sonnets`. ``validation``: on
        Dickinson's validation poems, rows 4, 14, 24, ….
    """
    if not isinstance(answer, nn.Module):
        kind = type_name(answer)
        raise Unfit(f"hand in the model itself, as `taught` returns it, not {kind}.")
    return SimpleNamespace(
        new=_held_out_loss(answer, load_poems()),
        old=_held_out_loss(answer, load_sonnets()),
        validation=_held_out_loss(answer, load_poems(), 4),
    )


@exercise("fine-tuning.own", kind="experiment")
def own():
    """Check a GPT that a reader fine-tuned on Dickinson.

    The answer is the model. Oracle: its losses on both poets' test poems and on Dickinson's
    validation poems (`_losses`), compared with those of our runs. Dickinson counts as
    learned below 1.92 nats a character (`LEARNED_BELOW`), the Sonnets as kept below 1.63
    (`KEPT_BELOW`); below 1.4 (`TOO_LOW`) the model is taken for one that was trained on
    test poems.

    Yields
    ------
    Faults
        What is measured of the answer, and how known mistakes show in it.
    """
    summary = "The loss is {new:.3f} on Dickinson and {old:.3f} on Shakespeare."
    faults = {
        f"{summary} On her validation poems it is {{validation:.3f}}, higher than on her "
        "test poems; in every run of ours it was lower. Did the model read the test poems "
        "in training?": (lambda seen: seen.new < min(seen.validation - 0.005, 2.0)),
        f"{summary} No run of ours came so low: was the model trained on test poems?": (
            lambda seen: min(seen.new, seen.old) < TOO_LOW
        ),
        f"{summary} Shakespeare is kept, but Dickinson is not learned. Train longer, at a "
        "higher learning rate, or train more of the weights.": (
            lambda seen: seen.new >= LEARNED_BELOW and seen.old < KEPT_BELOW
        ),
        f"{summary} Dickinson is learned, but too much of Shakespeare is forgotten. What "
        "if the model goes on reading him?": (
            lambda seen: seen.new < LEARNED_BELOW and seen.old >= KEPT_BELOW
        ),
        f"{summary} The new poet is not learned, and the old one is forgotten: is the "
        "learning rate too high?": lambda seen: (
            not (seen.new < LEARNED_BELOW and seen.old < KEPT_BELOW)
        ),
    }
    yield Faults(_losses, faults, right=summary)


def _held_out_loss(model, table, first=9):
    """Return a GPT's mean loss on every tenth poem of a table, in nats a character.

    Parameters
    ----------
    model : nn.Module
        It reads ids of the characters of the GPT of the Sonnets. Characters that this
        lacks, double quotation marks and Q, are replaced.
    table : DataFrame
        With the column ``text``, a poem in each row.
    first : int
        The row of the first of these poems, from 0.

    Returns
    -------
    float
        The mean over 120 windows of 64 characters, at equal distances in these poems.
    """
    tokenizer, _, _ = load_gpt("sonnets", "cpu")
    text = "\n\n".join(table.text[first::10]).translate(str.maketrans({'"': "'", "Q": "q"}))
    return window_loss(model, torch.tensor(tokenizer.encode(text)), 120)


judge(
    "fine-tuning.suspect",
    a="the result is a mean over a hundred random draws of labels, so luck is not "
    "the problem.",
    b="a curved boundary would fit the eight labels better, and perhaps nothing "
    "else; it would not show what the states know.",
    c=None,
    d="the penalty is chosen on the labelled poems; another one would change the "
    "number a little.",
)


@exercise("fine-tuning.states")
def states():
    """Check a reader's function that returns the mean state of each line, in a small GPT.

    The answer is a function of a GPT, ids (lines, tokens) and lengths (lines,), how many
    tokens of each line are its own, with padding behind them. It returns (layers + 1,
    lines, d_model): the mean over the line's own tokens of the residual stream before the
    first block and after each. Oracle: `lmcourse.gpt.inside.line_states`.

    Yields
    ------
    Case
        Arguments, the right result, and the results that known mistakes give.
    """
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = GPT(GPTConfig(vocab_size=9, context=8, layers=2, heads=2, d_model=6))
    for weight in model.parameters():
        weight.data = normal(*weight.shape, seed=weight.numel()) / 2
    lengths = torch.tensor([5, 3, 1])
    ids = torch.arange(15).view(3, 5) % 9
    ids = ids.where(torch.arange(5) < lengths[:, None], 0)
    every = inside.states(model.eval(), ids)  # (3, lines, tokens, d_model)
    want = inside.line_states(model, ids, lengths)
    read = model.norm(want).detach()
    # Weights of a mean over each line's own tokens: (lines, tokens, 1).
    shares = (torch.arange(5) < lengths[:, None])[..., None] / lengths[:, None, None]
    padded = want * lengths[:, None] / 5
    embedded = model.embed(ids)
    unchained = [embedded] + [block(embedded)[0] for block in model.blocks]
    unchained = (torch.stack(unchained).detach() * shares).sum(2)
    one_more = torch.arange(5) <= lengths[:, None]
    nonzero = (ids > 0)[..., None]
    mistakes = {
        "one token too many: a line's own tokens are at positions below its length, "
        "`<`, not `<=`.": ((every * one_more[..., None]).sum(2) / lengths[:, None]),
        "divide by the line's own tokens, not by the padded length.": padded,
        "a line's own tokens may have the id 0, too: `lengths` says which they are.": (
            (every * nonzero).sum(2) / nonzero.sum(1)
        ),
        "each block reads what the block before it returned, not the embedding.": unchained,
        "the axes are swapped: layers first, then lines.": want.transpose(0, 1),
        "the last entry has been through the model's last norm; the states of the "
        "residual stream are taken before it.": torch.cat([want[:2], read[2:]]),
        "the padding is counted, too.": every.mean(2),
        "this is only the state at a line's last token; take the mean over all of "
        "its own tokens.": (inside.line_states(model, ids, lengths, last=True)),
        "this is the sum; divide by the number of the line's own tokens.": (
            want * lengths[:, None]
        ),
        "the vectors before layer 0 are missing.": want[1:],
        "the layers are in the wrong order.": want.flip(0),
        "every entry has been through the model's last norm, which is not part of "
        "the residual stream.": read,
        "these are only the states after the last layer; return those of all layers.": want[
            -1
        ],
    }
    yield Case([model, ids, lengths], want, mistakes, tolerance=1e-4)
