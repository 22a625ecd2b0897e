"""Checks for the exercises of the chapter *transformer-block*."""

import math

import torch
import torch.nn.functional as F
from torch import nn
from transformers import GPT2Config, GPT2LMHeadModel

from lmcourse.exercises import Wrong, exercise, expect, run
from lmcourse.exercises.answers import array, blame, kind, normal


def _random(*shape, seed=0):
    return normal(*shape, seed=seed).double()


@exercise("transformer-block.layer_norm")
def layer_norm(answer):
    """Compare with PyTorch's layer norm, on ordinary and on constant vectors."""
    x, eps = 3 * _random(2, 5, 6) + 4, 0.3
    weight, bias = _random(6, seed=1), _random(6, seed=2)
    centred = x - x.mean(-1, keepdim=True)
    variance = x.var(-1, correction=0, keepdim=True)

    def over(*axes):
        scale = (x.var(axes, correction=0, keepdim=True) + eps).sqrt()
        return (x - x.mean(axes, keepdim=True)) / scale

    normed = {
        "you divide by the variance; take its square root.": centred / (variance + eps),
        "your variance divides by d_model - 1, as `var` and `std` do unless told "
        "`correction=0`.": centred / (x.var(-1, keepdim=True) + eps).sqrt(),
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
    mistakes = {text: wrong * weight + bias for text, wrong in normed.items()} | {
        "weight and bias are not used.": over(-1),
        "weight is used, bias is not.": over(-1) * weight,
        "weight and bias are swapped.": over(-1) * bias + weight,
    }
    want = F.layer_norm(x, (6,), weight, bias, eps)
    expect(answer, [x, weight, bias, eps], want, mistakes)
    constant = torch.full((3, 6), 7.0, dtype=torch.float64)
    expect(answer, [constant, weight, bias, eps], bias.expand(3, 6))


@exercise("transformer-block.swiglu")
def swiglu(answer):
    """Compare with PyTorch's linear layers and SiLU."""
    x = _random(2, 5, 4)
    gate, up, down = _random(7, 4, seed=1), _random(7, 4, seed=2), _random(4, 7, seed=3)
    opened, proposed = F.linear(x, gate), F.linear(x, up)
    hidden = {
        "SiLU is on the wrong branch: it goes on the gate, not on up.": (
            opened * F.silu(proposed)
        ),
        "the gate goes through a sigmoid only; SiLU is x times its sigmoid.": (
            opened.sigmoid() * proposed
        ),
        "the branches are added; the gate must multiply.": F.silu(opened) + proposed,
        "SiLU is missing: a product of two linear layers is left.": opened * proposed,
        "SiLU is applied to the product; it goes on the gate alone.": F.silu(
            opened * proposed
        ),
        "up is not used.": F.silu(opened),
        "this gate is GELU (GEGLU); SwiGLU has SiLU.": F.gelu(opened) * proposed,
    }
    right = F.silu(opened) * proposed
    mistakes = {text: F.linear(wrong, down) for text, wrong in hidden.items()}
    mistakes["down is not applied."] = right
    expect(answer, [x, gate, up, down], F.linear(right, down), mistakes)


@exercise("transformer-block.around")
@torch.no_grad()
def around(answer):
    """Compare both orders with PyTorch's norm and two layers."""
    x = _random(2, 5, 4) + 1
    norm, net = (
        nn.LayerNorm(4).double(),
        nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 4)),
    )
    for i, parameter in enumerate([*norm.parameters(), *net.double().parameters()]):
        parameter.copy_(_random(*parameter.shape, seed=i))

    def step(x):
        return net(x)

    update = step(norm(x))
    orders = {True: x + update, False: norm(x + step(x))}
    for norm_first, name in [(True, "pre"), (False, "post")]:
        mistakes = {
            f"this is the other order: you gave the wrong one for {name}-norm.": (
                orders[not norm_first]
            ),
            "the stream itself is normalised: the step reads norm(x), but its update is to "
            "be added to x.": norm(x) + update,
            "x is not added: there is no residual path.": (
                update if norm_first else norm(step(x))
            ),
            "the norm is on the update; it should be on what the step reads (pre) or on "
            "the sum (post).": x + norm(step(x)),
            "the norm is not used.": x + step(x),
            "x is added after the norm; post-norm normalises the sum.": (
                x + norm(x + step(x))
            ),
        }
        mistakes = {f"{norm_first=}, {text}": wrong for text, wrong in mistakes.items()}
        expect(answer, [x, step, norm, norm_first], orders[norm_first], mistakes)


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
        attention = layers * 4 * (d * d + d)
        more = {
            "the output layer is counted; it is the token table used again.": vocab_size
            * d,
            "the output layer is counted, with a bias; it is the token table used again.": (
                vocab_size * d + vocab_size
            ),
            "the positions are missing: a vector for each of `context` places.": -context
            * d,
            "the token table is missing.": -vocab_size * d,
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
        }
        want = _gpt2(*sizes)
        expect(answer, sizes, want, {text: want + gap for text, gap in more.items()})


@exercise("transformer-block.perplexity")
def perplexity(answer):
    """Compare with the exponential of PyTorch's cross-entropy."""
    logits, pad = 2 * _random(2, 5, 6), 3
    targets = torch.tensor([[1, 0, 5, 3, 3], [2, 4, 4, 1, 3]])
    kept = targets != pad
    losses = F.cross_entropy(logits.mT, targets, reduction="none")  # (batch, tokens)
    mean = losses[kept].mean()
    texts = [row[keep].mean() for row, keep in zip(losses, kept, strict=True)]
    twice = F.cross_entropy(logits.softmax(-1).mT, targets, ignore_index=pad)
    mistakes = {
        "the sign: this is exp of the negative cross-entropy. Perplexity is never "
        "below 1.": (-mean).exp(),
        "this is the cross-entropy; perplexity is its exponential.": mean,
        "padding is counted.": losses.mean().exp(),
        "padding is counted in the number of tokens, though not in the sum.": (
            (losses * kept).mean().exp()
        ),
        "the softmax is applied before a loss that applies it itself.": twice.exp(),
        "you average the perplexities of single tokens; average first, then take the "
        "exponential.": losses[kept].exp().mean(),
        "this is the mean probability's inverse; average the logarithms.": (
            1 / (-losses[kept]).exp().mean()
        ),
        "cross-entropy is in nats: its exponential is taken to base e, not 2.": 2**mean,
        "the losses are summed; take their mean.": losses[kept].sum().exp(),
        "each text is averaged by itself; every token counts the same.": (
            torch.stack(texts).mean().exp()
        ),
    }
    expect(answer, [logits, targets, pad], mean.exp(), mistakes)
    large = torch.tensor([[[1e4, 0.0, 0.0], [0.0, 1e4, 1e4]]], dtype=torch.float64)
    overflown = {
        "logits of ten thousand overflow: `exp` of them is infinite. Use `log_softmax` or "
        "`F.cross_entropy`.": math.nan,
    }
    expect(answer, [large, torch.tensor([[0, 1]]), 2], math.sqrt(2), overflown)


class Toy:
    """A model of nine ids that writes 4, 6, 5, then the stop mark 2, then 7 for ever."""

    after = {1: 4, 4: 6, 6: 5, 5: 2, 2: 7, 7: 7}  # noqa: RUF012

    def __init__(self):
        self.calls, self.whole = 0, True

    def __call__(self, so_far):
        self.calls += 1
        if self.calls > 50:
            raise RuntimeError("next_logits was asked 50 times: the loop does not end")
        self.whole &= len(so_far) == self.calls and so_far[0] == 1
        logits = torch.zeros(9)
        logits[3], logits[self.after.get(int(so_far[-1]), 8)] = 1.9, 2.0
        logits[0] = -1.0
        return logits


def _ids(got):
    if not isinstance(got, list):
        raise Wrong(f"a list of whole numbers is expected, not of type {kind(got)}.")
    found = array(got)
    if found.ndim != 1 or (found % 1 != 0).any():
        raise Wrong("the list should hold whole numbers.")
    return found.astype(int).tolist()


@exercise("transformer-block.write_greedily")
def write_greedily(answer):
    """Compare with what a toy model is known to write, with and without a limit."""
    toy = Toy()
    got = _ids(run(answer, toy, 1, 2, 20))
    faults = {
        "next_logits did not get all ids so far, `start` first, one more each time: a "
        "model needs the whole text at every step.": not toy.whole,
        "leave `start` out of what you return.": got == [1, 4, 6, 5],
        "leave `start` and `stop` out of what you return.": got == [1, 4, 6, 5, 2],
        "leave `stop` out of what you return.": got == [4, 6, 5, 2],
        "you go on after `stop`.": got[:5] == [4, 6, 5, 2, 7],
        "the first id is 0, the least likely: use argmax, not argmin.": got[:1] == [0],
        f"for a toy model that writes three ids and stops you wrote {got[:50]}.": (
            got != [4, 6, 5]
        ),
    }
    blame(faults)
    for limit in [2, 3]:
        got = _ids(run(answer, Toy(), 1, 2, limit))
        faults = {
            "one too few: `start` does not count towards the limit.": len(got) == limit - 1,
            f"with a limit of {limit} you wrote {len(got)} ids.": len(got) > limit,
            f"with a limit of {limit} you wrote {got}.": got != [4, 6, 5][:limit],
        }
        blame(faults)
