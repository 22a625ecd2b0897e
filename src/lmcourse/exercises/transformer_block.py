"""Checks for the exercises of the chapter *transformer-block*."""

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from transformers import GPT2Config, GPT2LMHeadModel

from lmcourse.exercises import Wrong, compare, exercise, expect, judge, predict, run
from lmcourse.exercises.answers import Called, array, diagnose, normal, number, unpack
from lmcourse.transformer import Block

predict(
    "transformer-block.clusters",
    a="that would be so if the weights stayed as they were. But scores are products "
    "of two vectors: they become nine times as large.",
    b="an average never leaves the hull of what it averages.",
    c=None,
)


def _norm_mistakes(x, eps):
    """Return what is said of each likely mistake, and what it makes of x."""
    centred = x - x.mean(-1, keepdim=True)
    variance = x.var(-1, correction=0, keepdim=True)
    larger = x.var(-1, keepdim=True)

    def over(*axes):
        scale = (x.var(axes, correction=0, keepdim=True) + eps).sqrt()
        return (x - x.mean(axes, keepdim=True)) / scale

    inverted = (
        "an input ten times as large comes out ten times smaller, where its size should be "
        "gone: look at what you divide by."
    )
    return {
        f"{inverted} And that is not all.": centred / (larger + eps),
        f"one mistake is gone. But {inverted}": centred / (variance + eps),
        "the size is gone, but every number is a little too small: `var` and `std` divide "
        "by d_model - 1 unless told `correction=0`.": centred / (larger + eps).sqrt(),
        "eps belongs inside the square root, next to the variance; and `std` divides by "
        "d_model - 1 unless told `correction=0`.": centred / (larger.sqrt() + eps),
        "eps belongs inside the square root, next to the variance.": centred
        / (variance.sqrt() + eps),
        "eps is not used.": centred / variance.sqrt(),
        "the mean is not subtracted: this is RMSNorm with a bias.": x
        / ((x**2).mean(-1, keepdim=True) + eps).sqrt(),
        "mean and variance are taken over the tokens. Each token is to be normalised by "
        "itself, over the last axis.": over(1),
        "mean and variance are taken over the whole tensor; keep one for each token "
        "(`dim=-1, keepdim=True`).": over(0, 1, 2),
    }


@exercise("transformer-block.layer_norm", kind="spot the bug")
def layer_norm(answer):
    """Compare with PyTorch's layer norm, on ordinary and on constant vectors."""
    x, eps = 3 * normal(2, 5, 6).double() + 4, 0.3
    weight, bias = normal(6, seed=1).double(), normal(6, seed=2).double()
    plain = F.layer_norm(x, (6,), eps=eps)
    known = _norm_mistakes(x, eps).items()
    mistakes = {text: wrong * weight + bias for text, wrong in known} | {
        "weight and bias are not used.": plain,
        "weight is used, bias is not.": plain * weight,
        "weight and bias are swapped.": plain * bias + weight,
    }
    want = F.layer_norm(x, (6,), weight, bias, eps)
    with Called() as called:
        got = run(answer, x, weight, bias, eps)
    compare(got, want, mistakes)
    if "layer_norm" in called.names:
        raise Wrong("PyTorch's layer_norm is right, of course; write it with means.")
    constant = torch.full((3, 6), 7.0, dtype=torch.float64)
    expect(answer, [constant, weight, bias, eps], bias.expand(3, 6))


@exercise("transformer-block.by_hand")
def by_hand(answer):
    """Put the weights into a network, and compare with NumPy's interpolation."""
    knots = torch.tensor([-2.0, -1.0, 0.5, 1.0, 3.0], dtype=torch.float64)
    values = torch.tensor([1.0, 4.0, -2.0, 0.0, 0.5], dtype=torch.float64)
    what = "two tensors, bias and down: return bias, down"
    found = unpack(run(answer, knots, values), 2, what)
    bias, down = (torch.as_tensor(array(part)).double() for part in found)
    for name, part in (("bias", bias), ("down", down)):
        if part.shape != (4,):
            raise Wrong(f"{name} has the shape {tuple(part.shape)}; it should be (4,).")
    x = torch.linspace(-2, 3, 51, dtype=torch.float64)
    got = values[0] + F.relu(x[:, None] + bias) @ down
    slopes = values.diff() / knots.diff()

    def drawn(down, bias=-knots[:-1]):
        return values[0] + F.relu(x[:, None] + bias) @ down

    changes = slopes.diff(prepend=slopes.new_zeros(1))
    mistakes = {
        "bias has the wrong sign: a ReLU is to begin at its knot, where x + bias is 0.": (
            drawn(changes, knots[:-1])
        ),
        "each ReLU begins one knot too late.": drawn(changes, -knots[1:]),
        "down holds the slopes themselves. Behind a knot all ReLUs so far add up, so each "
        "is only to change the slope.": drawn(slopes),
        "the steps from value to value are not divided by the distance of the knots.": (
            drawn(values.diff().diff(prepend=slopes.new_zeros(1)))
        ),
        "these are the steps from value to value, not changes of the slope.": drawn(
            values.diff()
        ),
        "the first slope is missing: the first ReLU changes it from 0.": drawn(
            torch.cat([slopes.new_zeros(1), slopes.diff()])
        ),
    }
    compare(got, np.interp(x, knots, values), mistakes)


judge(
    "transformer-block.importance",
    a="the loss rises more, that is true. But compare with the models that never "
    "had norms, and with those that never had attention.",
    b="it says something: that what comes after relies on it.",
    c=None,
    d="the intervals in the view are narrow, and do not overlap.",
)


def _dropout_faults(got, p):
    """Return what is said of each likely mistake, and whether it was made of threes."""
    zero = got == 0
    kept, share = got[~zero], zero.mean()
    rows = zero.reshape(40, -1)
    scaled = kept.mean() / 3 if kept.size else 0
    return {
        "nothing is dropped in training.": share == 0,
        "everything is dropped.": share == 1,
        "p is the share that is dropped, not the share that is kept.": (
            abs(share - (1 - p)) < 0.02
        ),
        "every text of the batch loses the same numbers; let each number have its own "
        "luck.": (rows == rows[0]).all(),
        "every token loses the same numbers; let each number have its own luck.": (
            zero == zero[:, :1]
        ).all(),
        "whole tokens are dropped; let each number have its own luck.": (
            zero == zero[..., :1]
        ).all(),
        "what is kept is not scaled up: the mean falls by the share that is dropped.": (
            abs(scaled - 1) < 1e-4
        ),
        "what is kept is scaled down; it has to make up for what is gone.": scaled < 1,
        "what is kept is multiplied by 1/p; only the share 1 - p is left, so by "
        "1/(1 - p).": abs(scaled - 1 / p) < 1e-3,
        f"with p = {p} the share {share:.2f} is dropped.": abs(share - p) > 0.02,
        "what is kept is not scaled as it should be, so that the mean stays.": (
            not np.allclose(kept, 3 / (1 - p), rtol=1e-4)
        ),
    }


@exercise("transformer-block.dropout")
def dropout(answer):
    """Count and add up, in training and out of it."""
    x, p = torch.full((40, 50, 20), 3.0), 0.3
    with Called() as called:
        got = array(run(answer, x, p, True))
    if any("dropout" in name for name in called.names):
        raise Wrong("the page forbids PyTorch's dropout: draw, compare and scale yourself.")
    if got.shape != x.shape:
        raise Wrong(f"the shape is {got.shape}; it should be {tuple(x.shape)}.")
    diagnose(_dropout_faults(got, p))
    if (array(run(answer, x, p, True)) == got).all():
        raise Wrong("a second call drops the same numbers; draw anew in each.")
    out = array(run(answer, x, p, False))
    return {
        "numbers are dropped though training is False.": (out == 0).any(),
        "outside of training nothing changes, scale included.": not np.allclose(out, 3),
    }


def _stack(alpha, seed, layers=24, d_model=32):
    """Return how much larger gradient and size are, as `without_norms` asks."""
    torch.manual_seed(seed)
    x = torch.randn(4, 16, d_model, requires_grad=True)
    first = x
    for _ in range(layers):
        block = Block(d_model, 4, 4 * d_model)
        for name, weight in block.named_parameters():
            if weight.dim() > 1:
                nn.init.xavier_uniform_(weight)
            elif name.endswith("bias"):
                nn.init.zeros_(weight)
        x = x + alpha * block.attention(x)[0]
        x = x + alpha * block.feed_forward(x)
    x.retain_grad()
    last = nn.Linear(d_model, 50)
    answers = torch.randint(50, (4, 16))
    F.cross_entropy(last(F.layer_norm(x, (d_model,))).mT, answers).backward()
    growth = x.detach().std() / first.detach().std()
    return float(first.grad.norm() / x.grad.norm()), float(growth)


@exercise("transformer-block.without_norms", kind="experiment")
def without_norms(answer):
    """Look at the numbers, and whether stacks of our own tell about the same."""
    wanted = "three numbers: alpha, ratio, growth"
    alpha, ratio, growth = map(number, unpack(answer, 3, wanted))
    faults = {
        "with alpha = 0 no block does anything.": alpha == 0,
        "ratio and growth are quotients of sizes: greater than zero.": (
            ratio <= 0 or growth <= 0
        ),
        f"the gradient at the input is {ratio:.3g} times that at the end; let each update "
        "count less.": ratio > 3,
        "the ratio is the gradient at the input by that at the end.": ratio < 0.5,
        f"the stream grows {growth:.3g}-fold: the blocks hardly do anything.": growth < 1.3,
    }
    diagnose(faults)
    with torch.enable_grad():
        ours = np.median([_stack(alpha, seed) for seed in range(100, 105)], axis=0)
    for name, mine, theirs in zip(("ratio", "growth"), ours, (ratio, growth), strict=True):
        if not mine / 1.5 < theirs < 1.5 * mine:
            raise Wrong(
                f"with this alpha five other stacks have another {name}. Take the median "
                "over five seeds, of level 0 and of the last."
            )


def _gpt2(vocab_size, context, layers, d_model):
    """Count the parameters of transformers' GPT-2, built without numbers."""
    sizes = {"vocab_size": vocab_size, "n_positions": context, "n_layer": layers}
    config = GPT2Config(**sizes, n_embd=d_model, n_head=1, bos_token_id=0, eos_token_id=0)
    with torch.device("meta"):
        model = GPT2LMHeadModel(config)
    model.tie_weights()
    return sum(parameter.numel() for parameter in model.parameters())


@exercise("transformer-block.gpt_size")
def gpt_size(answer):
    """Compare with transformers' GPT-2 of three sizes."""
    for sizes in [(13, 7, 2, 6), (50, 11, 3, 10), (50257, 1024, 12, 768)]:
        vocab_size, context, layers, d = sizes
        attention, table = layers * 4 * (d * d + d), vocab_size * d
        places, counted = context * d, "the output layer is counted"
        more = {
            f"{counted}; it is the token table used again.": table,
            f"{counted}, with a bias; it is the token table used again.": table
            + vocab_size,
            "the positions are missing: a vector for each of `context` places.": -places,
            "the token table is missing.": -table,
            "the norm after the last block is missing.": -2 * d,
            "the blocks' norms are missing.": -layers * 4 * d,
            "no norm is counted.": -layers * 4 * d - 2 * d,
            "the biases of the linear layers are missing.": -layers * 9 * d,
            "the output projection of attention is missing.": -attention // 4,
            "these are decoder blocks with cross-attention; GPT has none.": (
                attention + layers * 2 * d
            ),
            "only one block is counted.": -(layers - 1) * (12 * d * d + 13 * d),
            "d_ff is four times d_model, not equal to it.": -layers * (6 * d * d + 3 * d),
            "these are the blocks' matrices alone: tables, biases and norms count, too.": (
                layers * 12 * d * d - _gpt2(*sizes)
            ),
        }
        want = _gpt2(*sizes)
        expect(answer, sizes, want, {text: want + gap for text, gap in more.items()})
