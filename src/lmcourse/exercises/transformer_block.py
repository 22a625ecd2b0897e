"""Checks for the exercises of the chapter *transformer-block*."""

from functools import cache, partial
from types import SimpleNamespace

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from transformers import GPT2Config, GPT2LMHeadModel

from lmcourse.attention import causal_mask
from lmcourse.exercises import Case, Faults, exercise, judge, predict, run
from lmcourse.exercises.answers import Called, normal, number, unpack
from lmcourse.transformer import Block


def _block_mistakes(x, norm_1, attend, norm_2, network):
    """Return what known mistakes in a Transformer block make of states.

    Parameters
    ----------
    x : Tensor of shape (..., tokens, d_model)
    norm_1, attend, norm_2, network : callable
        The parts of a block, from states to states of the same shape. Right is: first = x +
        attend(norm_1(x)), then first + network(norm_2(first)).

    Returns
    -------
    dict of str to Tensor
        What the reader is told → what the mistake makes of x, of its shape.
    """
    update = attend(norm_1(x))
    unnormed = attend(x)
    first = x + update
    behind = x + norm_1(unnormed)
    after_norm = norm_1(x + unnormed)
    return {
        "x comes back as it was.": x,
        "the second step is missing.": first,
        "only the updates are returned: each is to be added to x.": network(norm_2(update)),
        "the first step replaces x; add what it found.": update + network(norm_2(update)),
        "both steps read the first x: the second is to read what the first left.": (
            first + network(norm_2(x))
        ),
        "the second step reads the first update alone; it is to read the sum.": (
            first + network(norm_2(update))
        ),
        "the norms come after the additions (post-norm); here each step reads a "
        "normalised copy, and nothing normalises the residual stream itself.": norm_2(
            after_norm + network(after_norm)
        ),
        "the norms come after the steps; each step is to read a normalised copy.": (
            behind + norm_2(network(behind))
        ),
        "there is a norm too many, after the second addition.": norm_2(
            first + network(norm_2(first))
        ),
        "no norm is used.": x + unnormed + network(x + unnormed),
        "x is added twice: what the first step left has x in it already.": (
            x + first + network(norm_2(first))
        ),
        "norm_1 is used twice.": first + network(norm_1(first)),
    }


@exercise("transformer-block.block")
def block():
    """Check a reader's Transformer block.

    The answer is a function of x (batch, tokens, d_model) and four functions: the first
    norm, attention, the second norm and the network, each from a Tensor to one of its
    shape. It returns x's shape, and leaves x as it is. Oracle: the block written out, with
    four functions that do not commute.

    Yields
    ------
    Case
        How the answer is called (``ask``), the right result, and those of known mistakes.
    Faults
        What is measured of the answer, and how known mistakes show in it.
    """
    x = normal(2, 5, 6).double()

    def norm_1(x):
        """Normalise x (..., 6); a weight of 1.5 and a bias of 0.2 follow."""
        return F.layer_norm(x, (6,)) * 1.5 + 0.2

    def norm_2(x):
        """Normalise x (..., 6); a weight of 0.7 and a bias of -0.1 follow."""
        return F.layer_norm(x, (6,)) * 0.7 - 0.1

    def attend(x):
        """Return the rows of x mixed by their products, then mapped by a matrix.

        ``x`` : float64 Tensor (batch, tokens, 6), as is what is returned.
        """
        weights = (x @ x.mT).softmax(-1)
        return weights @ x @ normal(6, 6, seed=1).double()

    def network(x):
        """Map each row of x (..., 6) by itself; negative numbers are set to zero."""
        return F.relu(x @ normal(6, 6, seed=2).double()) * 0.8

    parts = (norm_1, attend, norm_2, network)
    first = x + attend(norm_1(x))
    given = x.clone()
    right = first + network(norm_2(first))

    def ask(answer):
        """Return what a reader's block gives for a copy of x, which it may write into.

        The copy is ``given``; it is looked at afterwards.

        ``answer`` : the reader's callable, given x and four functions.
        """
        return run(answer, given, *parts, keep=True)

    alone = "return x alone, a tensor."
    yield Faults(lambda answer: run(answer, x, *parts), {alone: _has_none})
    yield Case([], right, _block_mistakes(x, *parts), ask=ask)
    written = (
        "the result is right, but the tensor that you were given has changed, too: "
        "`x += …` writes into it. Write `x = x + …`, which makes a new one."
    )
    yield Faults(lambda answer: given, {written: lambda given: not torch.equal(given, x)})


def _has_none(got):
    """Return whether what a reader's block returned is a tuple with None in it.

    ``got`` : object; a block should return one Tensor.
    """
    return isinstance(got, tuple) and any(each is None for each in got)


def _norm_mistakes(x, eps):
    """Return what known mistakes in a layer norm make of x, without weight and bias.

    Parameters
    ----------
    x : Tensor of shape (batch, tokens, d_model)
    eps : float
        A small number that a norm adds to the variance.

    Returns
    -------
    dict of str to Tensor
        What the reader is told → what the mistake makes of x, of its shape.
    """
    centred = x - x.mean(-1, keepdim=True)
    variance = x.var(-1, correction=0, keepdim=True)
    unbiased = x.var(-1, keepdim=True)  # divided by d_model - 1

    def over(*axes):
        """Return x normalised over some axes: its mean is taken away, and it is divided.

        ``axes`` : int, along which mean and variance are taken. Returns a Tensor of the
        shape of x; it is divided by the root of the variance plus eps.
        """
        scale = (x.var(axes, correction=0, keepdim=True) + eps).sqrt()
        return (x - x.mean(axes, keepdim=True)) / scale

    inverted = (
        "an input ten times as large comes out ten times smaller, where its size should be "
        "gone: look at what you divide by."
    )
    return {
        f"{inverted} And that is not all.": centred / (unbiased + eps),
        f"one mistake is gone. But {inverted}": centred / (variance + eps),
        "the size is gone, but every number is a little too small: `var` and `std` divide "
        "by d_model - 1 unless told `correction=0`.": centred / (unbiased + eps).sqrt(),
        "`std` is a square root already, and eps belongs inside that root, next to the "
        "variance; it also divides by d_model - 1 unless told `correction=0`.": centred
        / (unbiased.sqrt() + eps),
        "`std` is a square root already: you take the root of it once more.": centred
        / (unbiased.sqrt() + eps).sqrt(),
        "eps belongs inside the square root, next to the variance.": centred
        / (variance.sqrt() + eps),
        "eps is not used, and `std` divides by d_model - 1 unless told `correction=0`.": (
            centred / unbiased.sqrt()
        ),
        "eps is not used.": centred / variance.sqrt(),
        "the mean is not subtracted: this is RMSNorm with a bias.": x
        / ((x**2).mean(-1, keepdim=True) + eps).sqrt(),
        "mean and variance are taken over the whole tensor; keep one for each token "
        "(`dim=-1, keepdim=True`).": over(0, 1, 2),
    }


@exercise("transformer-block.layer_norm", kind="spot the bug")
def layer_norm():
    """Check a reader's layer norm.

    The answer is a function of x (..., d_model), weight (d_model,), bias (d_model,) and
    eps, a float. It returns x's shape, and does without PyTorch's norms. Oracle: PyTorch's
    layer norm, on ordinary and on constant vectors.

    Yields
    ------
    Case
        Arguments, the right result, and the results that known mistakes give.
    Faults
        What is measured of the answer, and how known mistakes show in it.
    """
    x = 3 * normal(2, 5, 6).double() + 4
    eps = 0.3
    weight, bias = normal(6, seed=1).double(), normal(6, seed=2).double()
    known = _norm_mistakes(x, eps).items()
    mistakes = {text: wrong * weight + bias for text, wrong in known}
    mistakes["weight and bias are not used."] = F.layer_norm(x, (6,), eps=eps)
    want = F.layer_norm(x, (6,), weight, bias, eps)
    given = [x, weight, bias, eps]
    yield Case(given, want, mistakes)
    ready_made = "PyTorch has norms, of course; write it without them."
    yield Faults(partial(_calls_norm, given), {ready_made: lambda calls: calls})
    constant = torch.full((3, 6), 7.0, dtype=torch.float64)
    yield Case([constant, weight, bias, eps], bias.expand(3, 6))


def _calls_norm(given, answer):
    """Return whether an answer calls one of PyTorch's norms, such as `layer_norm`; a bool.

    ``given`` : what it is called with: x, weight, bias and eps; ``answer`` : the reader's
    function of these. Lengths, `torch.linalg`'s norms, do not count.
    """
    with Called() as called:
        run(answer, *given)
    return any(name.endswith("_norm") and "linalg" not in name for name in called.names)


def _stack(alpha, seed, layers=24, d_model=32):
    """Return how gradients and states grow in an untrained stack without norms.

    Each block adds attention, then the feed-forward network, to the residual stream, each
    update multiplied by ``alpha``. Blocks and input are drawn by ``seed``.

    Parameters
    ----------
    alpha : float
    seed : int
    layers, d_model : int

    Returns
    -------
    ratio : float
        The length of the gradient at the input over that at the output.
    growth : float
        The spread of the states at the output over that at the input.
    """
    torch.manual_seed(seed)
    blocks = [Block(d_model, 4, 4 * d_model) for _ in range(layers)]
    for layer in nn.ModuleList(blocks).modules():
        if isinstance(layer, nn.Linear):
            nn.init.xavier_uniform_(layer.weight)
            nn.init.zeros_(layer.bias)
    last = nn.Linear(d_model, 50)
    x = first = torch.randn(4, 16, d_model, requires_grad=True)
    answers = torch.randint(50, (4, 16))
    for block in blocks:
        x = x + alpha * block.attention(x, mask=causal_mask(16))[0]
        x = x + alpha * block.feed_forward(x)
    x.retain_grad()
    F.cross_entropy(last(F.layer_norm(x, (d_model,))).mT, answers).backward()
    growth = x.detach().std() / first.detach().std()
    return float(first.grad.norm() / x.grad.norm()), float(growth)


def _numbers(answer):
    """Return the three numbers of an answer: ``alpha``, ``ratio`` and ``growth``.

    ``answer`` : sequence of three numbers: the factor of each update in a stack of blocks
    without norms, the gradient's length at the input over that at the output, and the
    growth of the states; anything else is `Unfit`. Returns a SimpleNamespace of floats.
    """
    wanted = "three numbers: alpha, ratio, growth"
    alpha, ratio, growth = map(number, unpack(answer, 3, wanted))
    return SimpleNamespace(alpha=alpha, ratio=ratio, growth=growth)


@torch.enable_grad()
def _beside_ours(answer):
    """Compare a reader's ratio and growth with ours for the same alpha, in five stacks.

    Ours are medians over five untrained stacks of blocks without norms.

    Parameters
    ----------
    answer : sequence of three numbers
        What the reader hands in: alpha, the factor of each update; the ratio of the
        gradient at the input to that at the output; the growth of the states. Anything else
        is `Unfit`.

    Returns
    -------
    SimpleNamespace
        ``others``, a list of str: which of "ratio" and "growth" differ by 2 % or more;
        ``name``, the first of them, or "".
    """
    seen = _numbers(answer)
    ours = np.median([_stack(seen.alpha, seed) for seed in range(5)], axis=0)
    pairs = zip(("ratio", "growth"), ours, (seen.ratio, seen.growth), strict=True)
    others = [name for name, our, own in pairs if not abs(np.log(our / own)) < 0.02]
    return SimpleNamespace(others=others, name=others[0] if others else "")


@exercise("transformer-block.without_norms", kind="experiment")
def without_norms():
    """Check the factor with which a reader's blocks do without norms.

    The answer is (alpha, ratio, growth): the factor of each update, the gradient at the
    input over that at the end, and how much the residual stream grows, floats. Oracle: the
    same stacks, measured here (`_beside_ours`).

    Yields
    ------
    Faults
        What is measured of the answer, and how known mistakes show in it.
    """
    faults = {
        "with alpha = 0 no block does anything.": lambda seen: seen.alpha == 0,
        "with a negative alpha each update is subtracted; make alpha positive.": (
            lambda seen: seen.alpha < 0
        ),
        "ratio and growth are quotients of sizes: greater than zero.": (
            lambda seen: seen.ratio <= 0 or seen.growth <= 0
        ),
        "the gradient at the input is {ratio:.3g} times that at the end; let each update "
        "count less.": lambda seen: seen.ratio > 3,
        "the ratio is the gradient at the input by that at the end.": (
            lambda seen: seen.ratio < 0.5
        ),
        "the stream grows {growth:.3g}-fold: the blocks hardly do anything.": (
            lambda seen: seen.growth < 1.3
        ),
        "with so large an alpha a stack explodes: these cannot be its numbers.": (
            lambda seen: seen.alpha > 1
        ),
    }
    yield Faults(_numbers, faults)
    another = (
        "with this alpha the stacks of seeds 0 to 4 have another {name}. Take the "
        "median, of level 0 and of the last."
    )
    yield Faults(_beside_ours, {another: lambda seen: seen.others})


predict(
    "transformer-block.straight",
    a="see the table: even a linear map from 128 numbers to 128 can do a good deal.",
    b="see the table: in this layer the straight line does nearly all of the work.",
    c=None,
)

predict(
    "transformer-block.without",
    a=None,
    b="that is where models without residual paths end.",
    c="numbers do grow without norms, but with four blocks and such small first weights "
    "training goes on.",
)

judge(
    "transformer-block.importance",
    a="the loss rises more, that is true. But compare the models that never had norms with "
    "those that never had attention.",
    b=None,
    c="it does tell you something: the parts that come after it rely on it.",
    d="the three starts differ by far less than that: compare the models without norms "
    "with those without attention, after 1,000 steps.",
)


@cache
def _gpt2(vocab_size, context, layers, d_model):
    """Return how many parameters transformers' GPT-2 of these sizes has, an int.

    It is built without numbers, so that it takes no memory.

    Parameters
    ----------
    vocab_size, context, layers, d_model : int

    Returns
    -------
    int
        The output layer, which is the table of tokens, counts once.
    """
    sizes = {"vocab_size": vocab_size, "n_positions": context, "n_layer": layers}
    config = GPT2Config(**sizes, n_embd=d_model, n_head=1, bos_token_id=0, eos_token_id=0)
    with torch.device("meta"):
        model = GPT2LMHeadModel(config)
    model.tie_weights()
    return sum(parameter.numel() for parameter in model.parameters())


@exercise("transformer-block.gpt_size")
def gpt_size():
    """Check a reader's count of the parameters of a GPT-2.

    The answer is a function of vocab_size, context, layers and d_model, which returns a
    whole number. Oracle: transformers' GPT-2 of three sizes.

    Yields
    ------
    Case
        Arguments, the right result, and the results that known mistakes give.
    """
    for sizes in [(13, 11, 3, 6), (50, 11, 2, 10), (50257, 1024, 12, 768)]:
        vocab_size, context, layers, d = sizes
        attention = layers * 4 * (d * d + d)
        table = vocab_size * d
        positions = context * d
        counted = "the output layer is counted"
        more = {
            f"{counted}; it is the token table used again.": table,
            f"{counted}, with a bias; it is the token table used again.": table
            + vocab_size,
            "the positions are missing: a vector for each of `context` positions.": (
                -positions
            ),
            "the norm after the last block is missing.": -2 * d,
            "no norm is counted.": -layers * 4 * d - 2 * d,
            "the biases of the linear layers are missing.": -layers * 9 * d,
            "each norm has a weight and a bias: 2d.": -layers * 2 * d - d,
            "the output projection of attention is missing.": -attention // 4,
            "these are decoder blocks with cross-attention; GPT has none.": (
                attention + layers * 2 * d
            ),
            "only one block is counted.": -(layers - 1) * (12 * d * d + 13 * d),
            "d_ff is four times d_model, not equal to it.": -layers * (6 * d * d + 3 * d),
        }
        want = _gpt2(*sizes)
        yield Case(sizes, want, {text: want + gap for text, gap in more.items()})
