"""Checks of attention, of one head with its layers, and of several."""

import math

import numpy as np
import torch
import torch.nn.functional as F

from lmcourse.exercises import Wrong, compare, exercise, run
from lmcourse.exercises.backpropagation.oracle import (
    attend,
    made,
    passes,
    several,
    wanted_by,
)


@exercise("backpropagation.attention")
def attention(answer):
    """Compare with PyTorch's own function and its gradients."""
    rng = np.random.default_rng(4)
    for lead in ((), (2,)):
        inputs = [rng.normal(size=(*lead, *size)) for size in ((4, 6), (4, 6), (4, 3))]
        module, output, delta, back = passes(answer, (6,), inputs)
        want, wanted = wanted_by(F.scaled_dot_product_attention, inputs, delta)
        q, k, v = map(torch.tensor, inputs)
        wrong_axis = (q @ k.mT / math.sqrt(6)).softmax(-2) @ v
        compare(
            output,
            want,
            {
                "forward, the scale is missing: divide the scores by the square root of "
                "d_head before the softmax.": attend(q, k, v, 1.0),
                "forward, the scores are divided by d_head, not by its root.": (
                    attend(q, k, v, 1 / 6)
                ),
                "forward, the softmax is missing.": (q @ k.mT / math.sqrt(6)) @ v,
                "forward, each column sums to 1: rows are queries, the softmax runs over "
                "the keys.": wrong_axis,
                "forward, queries and keys are swapped.": attend(k, q, v),
            },
        )
        compare(_weights(module), (q @ k.mT / math.sqrt(6)).softmax(-1))
        _attention_gradients(several(back(), 3), wanted)
    _is_causal(answer, rng)


def _weights(module):
    weights = getattr(module, "weights", None)
    if weights is None:
        raise Wrong("the output is right; keep the weights in self.weights as well.")
    return weights


def _attention_gradients(gradients, wanted):
    root = math.sqrt(6)
    d_q, d_k, d_v = wanted
    g_q, g_k, g_v = gradients
    compare(g_v, d_v)
    compare(
        g_q,
        d_q,
        {
            "backward, the gradient of the query lacks the scale: its module has a "
            "backward pass too.": d_q * root,
            "backward, the gradients of query and key are swapped.": d_k,
        },
    )
    compare(
        g_k,
        d_k,
        {
            "backward, the gradient of the key lacks the scale.": d_k * root,
            "backward, the gradient of the key lacks the transpose's backward pass; its "
            "shape tells.": d_k.swapaxes(-1, -2),
        },
    )


def _is_causal(answer, rng):
    """Check the masked form with another number of tokens."""
    inputs = [rng.normal(size=(2, 5, width)) for width in (6, 6, 3)]
    module = made(answer, 6, True)
    output = run(module.forward, *inputs)
    delta = rng.normal(size=np.shape(output))
    past = torch.ones(5, 5, dtype=torch.bool).tril()
    want, wanted = wanted_by(lambda q, k, v: attend(q, k, v, mask=past), inputs, delta)
    tensors = [torch.tensor(x) for x in inputs]
    after = (tensors[0] @ tensors[1].mT / math.sqrt(6)).softmax(-1) * past @ tensors[2]
    compare(
        output,
        want,
        {
            "right without a mask; with causal=True nothing is hidden. self.mask is "
            "there: use it before the softmax.": attend(*tensors),
            "right without a mask; with causal=True the weights are hidden after the "
            "softmax, so rows no longer sum to 1.": after,
        },
    )
    gradients = several(run(module.backward, delta.copy()), 3)
    for got, right in zip(gradients, wanted, strict=True):
        compare(got, right)


def _linear(layer):
    return torch.tensor(layer.weight.value), torch.tensor(layer.bias.value)


def _head(head, query, key, value, turn):
    """Compute one head in PyTorch with a reader's parameters, rotary by complex numbers."""
    q, k, v = (
        x @ _linear(layer)[0] + _linear(layer)[1]
        for x, layer in (
            (query, head.query),
            (key, head.key),
            (value, head.value),
        )
    )
    turned = {"none": (), "all": (0, 1, 2), "q": (0,), "right": (0, 1)}[turn]
    q, k, v = (_turned(x) if i in turned else x for i, x in enumerate((q, k, v)))
    return attend(q, k, v)


def _turned(x):
    tokens, d_head = x.shape[-2:]
    speed = 10000.0 ** (-torch.arange(0, d_head, 2, dtype=x.dtype) / d_head)
    angle = torch.arange(tokens, dtype=x.dtype)[:, None] * speed
    plane = torch.view_as_complex(x.unflatten(-1, (-1, 2)).contiguous())
    plane = plane * torch.polar(torch.ones_like(angle), angle)
    return torch.view_as_real(plane).flatten(-2)


@exercise("backpropagation.projected_attention")
def projected_attention(answer):
    """Compare with one head in PyTorch, different inputs, turned or not."""
    rng = np.random.default_rng(5)
    inputs = [rng.normal(size=(2, n, 5)) for n in (4, 3, 3)]
    for rotary in (False, True):
        arguments = (5, 4, np.random.default_rng(1), False, rotary)
        module, output, delta, back = passes(answer, arguments, inputs)

        def theirs(q, k, v, module=module, turn="right" if rotary else "none"):
            return _head(module, q, k, v, turn)

        want, wanted = wanted_by(theirs, inputs, delta)
        tensors = [torch.tensor(x) for x in inputs]
        if rotary:
            mistakes = {
                "with rotary=True nothing is turned.": _head(module, *tensors, "none"),
                "with rotary=True the values are turned too; only queries and keys "
                "are.": _head(module, *tensors, "all"),
                "with rotary=True the keys are not turned.": _head(module, *tensors, "q"),
            }
        else:
            q, k, v = tensors
            mistakes = {
                "the values are made from the key's input or by the key's layer.": _swapped(
                    module, q, k, v
                ),
                "all three come from the query's input; in cross-attention keys and "
                "values come from another text.": _head(module, q, q, q, "none"),
            }
        compare(output, want, mistakes)
        got = several(back(), 3)
        if rotary:
            straight = wanted_by(_not_turned_back(module), inputs, delta)[1]
            first = {"backward, the gradient of the query is not turned back.": straight[0]}
        else:
            first = {}
        for gradient, right in zip(got, wanted, strict=True):
            compare(gradient, right, first)
        _linear_gradients(module, theirs, inputs, delta)


def _swapped(module, q, k, v):
    """Compute values by the key's layer."""
    (w_q, b_q), (w_k, b_k) = _linear(module.query), _linear(module.key)
    return attend(q @ w_q + b_q, k @ w_k + b_k, v @ w_k + b_k)


class _TurnedForwardOnly(torch.autograd.Function):
    """Turn on the way there, hand delta on untouched on the way back."""

    @staticmethod
    def forward(ctx, x):
        return _turned(x)

    @staticmethod
    def backward(ctx, delta):
        return delta


def _not_turned_back(module):
    def function(q, k, v):
        parts = zip((q, k, v), (module.query, module.key, module.value), strict=True)
        q, k, v = (x @ _linear(layer)[0] + _linear(layer)[1] for x, layer in parts)
        return attend(_TurnedForwardOnly.apply(q), _TurnedForwardOnly.apply(k), v)

    return function


def _linear_gradients(module, theirs, inputs, delta):
    """Check that the parameters got their gradients, by finite differences of one entry."""
    step, place = 1e-5, (0, 0)
    tensors = [torch.tensor(x) for x in inputs]
    for name in ("query", "key", "value"):
        weight = getattr(module, name).weight
        kept = weight.value[place]
        losses = []
        for value in (kept + step, kept - step):
            weight.value[place] = value
            losses.append(float((theirs(*tensors).numpy() * delta).sum()))
        weight.value[place] = kept
        want = (losses[0] - losses[1]) / (2 * step)
        compare(
            weight.grad[place],
            want,
            {f"the gradients of the weight of {name} are still 0.": 0.0},
            tolerance=1e-4,
        )


@exercise("backpropagation.multi_head_attention")
def multi_head_attention(answer):
    """Compare with the heads laid side by side in PyTorch."""
    rng = np.random.default_rng(6)
    inputs = [rng.normal(size=(2, n, 6)) for n in (4, 3, 3)]
    arguments = (6, 3, np.random.default_rng(2))
    module, output, delta, back = passes(answer, arguments, inputs)
    weight, bias = _linear(module.output)

    def joined(q, k, v, order=1, branches=module.heads.branches):
        parts = [_head(head, q, k, v, "none") for head in branches[::order]]
        return torch.cat(parts, -1)

    def theirs(q, k, v):
        return joined(q, k, v) @ weight + bias

    want, wanted = wanted_by(theirs, inputs, delta)
    tensors = [torch.tensor(x) for x in inputs]
    compare(
        output,
        want,
        {
            "the last linear layer is missing.": joined(*tensors),
            "the heads stand in the opposite order.": joined(*tensors, -1) @ weight + bias,
        },
    )
    got = several(back(), 3)
    one = _last_head_only(module, inputs, delta @ module.output.weight.value.T)
    for gradient, right, last in zip(got, wanted, one, strict=True):
        compare(
            gradient,
            right,
            {
                "backward, the gradient is not summed over the heads: only the last "
                "head's is there.": last,
                "backward, the gradients of the heads are averaged; each head used the "
                "input, so they are summed.": right / 3,
            },
        )
    if not np.abs(module.output.weight.grad).any():
        raise Wrong("the last linear layer got no gradient: go through its backward.")


def _last_head_only(module, inputs, delta):
    head = module.heads.branches[-1]
    part = delta[..., -np.shape(head.value.bias.value)[0] :]
    return wanted_by(lambda q, k, v: _head(head, q, k, v, "none"), inputs, part)[1]
