"""Checks of attention, of one head with its layers, and of several."""

import math

import numpy as np
import torch
import torch.nn.functional as F

from lmcourse.exercises import Wrong, compare, exercise, run
from lmcourse.exercises.backpropagation.oracle import Passes, attend
from lmcourse.numpy_nn.core import Module


@exercise("backpropagation.attention")
def attention(answer):
    """Compare with PyTorch's own function and its gradients."""
    rng = np.random.default_rng(4)
    for lead in ((), (2,)):
        sizes = (4, 6), (4, 6), (4, 3)  # tokens and width of query, key, value
        passes = Passes(answer, (6,), [rng.normal(size=(*lead, *size)) for size in sizes])
        q, k, v = passes.tensors
        scores = q @ k.mT / math.sqrt(6)
        forward = {
            "forward, the scale is missing: divide the scores by the square root of d_head "
            "before the softmax.": attend(q, k, v, 1.0),
            "forward, the scores are divided by d_head, not by its root.": attend(
                q, k, v, 1 / 6
            ),
            "forward, the softmax is missing.": scores @ v,
            "forward, each column sums to 1: rows are queries, the softmax runs over the "
            "keys.": scores.softmax(-2) @ v,
            "forward, queries and keys are swapped.": attend(k, q, v),
        }
        passes.forward(F.scaled_dot_product_attention, forward)
        weights = getattr(passes.module, "weights", None)
        if weights is None:
            raise Wrong("the output is right; keep the weights in self.weights as well.")
        compare(weights, scores.softmax(-1))
        d_q, d_k, _ = passes.gradients()
        of_query = {
            "backward, the gradient of the query lacks the scale: its module has a "
            "backward pass too.": d_q * math.sqrt(6),
            "backward, the gradients of query and key are swapped.": d_k,
        }
        of_key = {
            "backward, the gradient of the key lacks the scale.": d_k * math.sqrt(6),
            "backward, the gradient of the key lacks the transpose's backward pass; its "
            "shape tells.": d_k.mT,
        }
        passes.backward(of_query, of_key)
    _is_causal(answer, [rng.normal(size=(2, 5, width)) for width in (6, 6, 3)])


def _is_causal(answer, inputs):
    """Check the masked form with another number of tokens."""
    passes, past = Passes(answer, (6, True), inputs), torch.ones(5, 5, dtype=bool).tril()
    q, k, v = passes.tensors
    mistakes = {
        "right without a mask; with causal=True nothing is hidden. self.mask is there: use "
        "it before the softmax.": attend(q, k, v),
        "right without a mask; with causal=True the weights are hidden after the softmax, "
        "so rows no longer sum to 1.": (q @ k.mT / math.sqrt(6)).softmax(-1) * past @ v,
    }
    passes.forward(lambda q, k, v: attend(q, k, v, mask=past), mistakes)
    passes.backward()


def _layers(head):
    """Return copies of weight and bias of a head's query, key and value layers."""
    layers = head.query, head.key, head.value
    parameters = [(layer.weight.value, layer.bias.value) for layer in layers]
    return [[torch.tensor(x, requires_grad=True) for x in pair] for pair in parameters]


def _kept(x):
    return x


def _turned(x):
    """Turn interleaved pairs by their positions, taken as complex numbers."""
    tokens, d_head = x.shape[-2:]
    speed = 10000.0 ** (-torch.arange(0, d_head, 2, dtype=x.dtype) / d_head)
    angle = torch.arange(tokens, dtype=x.dtype)[:, None] * speed
    plane = torch.view_as_complex(x.unflatten(-1, (-1, 2)).contiguous())
    return torch.view_as_real(plane * torch.polar(torch.ones_like(angle), angle)).flatten(
        -2
    )


def _turned_forward_only(x):
    return x + (_turned(x) - x).detach()


def _head(layers, inputs, turn=(_kept, _kept, _kept)):
    """Compute one head in PyTorch, what its three layers give turned or not."""
    parts = zip(inputs, layers, turn, strict=True)
    return attend(*(turned(x @ weight + bias) for x, (weight, bias), turned in parts))


def _one_head(answer):
    """Compare with one head in PyTorch, different inputs, turned or not."""
    rng = np.random.default_rng(5)
    inputs = [rng.normal(size=(2, tokens, 5)) for tokens in (4, 3, 3)]
    for rotary in (False, True):
        arguments = (5, 4, np.random.default_rng(1), False, rotary)
        passes = Passes(answer, arguments, inputs)
        layers, tensors = _layers(passes.module), passes.tensors
        turn = [_turned if rotary else _kept] * 2 + [_kept]
        straight = _head(layers, tensors, [_turned_forward_only] * 2 + [_kept])
        if rotary:
            mistakes = {
                "with rotary=True nothing is turned.": _head(layers, tensors),
                "with rotary=True the values are turned too; only queries and keys are.": (
                    _head(layers, tensors, [_turned] * 3)
                ),
                "with rotary=True the keys are not turned.": _head(
                    layers, tensors, [_turned, _kept, _kept]
                ),
            }
        else:
            mistakes = {
                "the values are made from the key's input or by the key's layer.": (
                    _head([*layers[:2], layers[1]], tensors)
                ),
                "all three come from the query's input; in cross-attention keys and "
                "values come from another text.": _head(layers, tensors[:1] * 3),
            }
        passes.forward(
            lambda *x, turn=turn, layers=layers: _head(layers, x, turn), mistakes
        )
        unturned = "backward, the gradient of the query is not turned back."
        passes.backward({unturned: passes.gradients(straight)[0]} if rotary else {})
        wanted = passes.gradients(of=[weight for weight, _ in layers])
        for name, want in zip(("query", "key", "value"), wanted, strict=True):
            still = f"the gradients of the weight of {name} are still 0."
            compare(getattr(passes.module, name).weight.grad, want, {still: 0 * want})


@exercise("backpropagation.heads")
def heads(answer):
    """Check the head that several are made of, then the several."""
    if not isinstance(answer, type) or not issubclass(answer, Module):
        raise Wrong("pass the class itself, MultiHeadAttention, a subclass of Module.")
    branches = getattr(
        getattr(run(answer, 6, 3, np.random.default_rng(2)), "heads", None), "branches", ()
    )
    if len(branches) != 3:
        raise Wrong("with heads=3 the Fork in self.heads should have three branches.")
    try:
        _one_head(type(branches[0]))
    except Wrong as wrong:
        open_yet = str(wrong).startswith("nothing to check yet")
        raise Wrong(f"{'' if open_yet else 'one head: '}{wrong}") from wrong
    _several_heads(answer)
    _a_single_one(answer)


def _several_heads(answer):
    """Compare with the heads laid side by side in PyTorch."""
    rng = np.random.default_rng(6)
    inputs = [rng.normal(size=(2, tokens, 6)) for tokens in (4, 3, 3)]
    passes = Passes(answer, (6, 3, np.random.default_rng(2)), inputs)
    output, heads = passes.module.output, passes.module.heads.branches
    weight, bias = torch.tensor(output.weight.value), torch.tensor(output.bias.value)

    def joined(*inputs, order=1):
        parts = [_head(_layers(head), inputs) for head in heads[::order]]
        return torch.cat(parts, -1)

    mistakes = {
        "the last linear layer is missing.": joined(*passes.tensors),
        "the heads stand in the opposite order.": (
            joined(*passes.tensors, order=-1) @ weight + bias
        ),
    }
    passes.forward(lambda *x: joined(*x) @ weight + bias, mistakes)
    last = _head(_layers(heads[-1]), passes.tensors)
    ones = passes.gradients(last @ weight[-last.shape[-1] :])
    tables = [
        {
            "backward, the gradient is not summed over the heads: only the last head's is "
            "there.": one,
            "backward, the gradients of the heads are averaged; each head used the input, "
            "so they are summed.": want / 3,
        }
        for one, want in zip(ones, passes.gradients(), strict=True)
    ]
    passes.backward(*tables)
    if not np.abs(output.weight.grad).any():
        raise Wrong("the last linear layer got no gradient: go through its backward.")


def _a_single_one(answer):
    """Go back through one head, which makes no tuple."""
    x = np.random.default_rng(7).normal(size=(2, 3, 6))
    passes = Passes(answer, (6, 1, np.random.default_rng(2)), [x] * 3)
    output, heads = passes.module.output, passes.module.heads.branches
    weight, bias = torch.tensor(output.weight.value), torch.tensor(output.bias.value)
    passes.forward(lambda *x: _head(_layers(heads[0]), x) @ weight + bias)
    try:
        passes.backward()
    except Wrong as wrong:
        raise Wrong(
            "right with several; with heads=1, self.concat.backward returns an array and "
            f"self.heads.backward wants a tuple, which as_tuple makes. ({wrong})"
        ) from wrong
