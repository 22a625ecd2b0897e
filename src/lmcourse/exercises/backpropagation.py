"""Checks for the exercises of the chapter *backpropagation*."""

import math

import matplotlib.pyplot as plt
import numpy as np
import torch
import torch.nn.functional as F

from lmcourse.exercises import Wrong, compare, exercise, run
from lmcourse.numpy_nn.core import Module

DRAWS = 4000  # of one word; a share's standard error is below 0.008
NEAR = 0.04  # how far a share may be off


def _made(kind, *arguments):
    """Construct a reader's module."""
    if not isinstance(kind, type) or not issubclass(kind, Module):
        raise Wrong("pass the class itself, a subclass of Module.")
    return run(kind, *arguments)


def _passes(kind, arguments, inputs, seed=3):
    """Run a reader's module forward on copies of the inputs, ready to go back.

    Returns
    -------
    module, output, delta, back
        ``back()`` runs the backward pass. It comes after the output was judged, since a
        forward pass that skips a part makes the way back stop there.
    """
    module = _made(kind, *arguments)
    rng = np.random.default_rng(seed)
    for parameter in module.parameters().values():
        if parameter.trainable:
            parameter.value += 0.2 * rng.normal(size=parameter.value.shape)
    output = run(module.forward, *[x.copy() for x in inputs])
    delta = rng.normal(size=np.shape(output))
    return module, output, delta, lambda: run(module.backward, delta.copy())


def _wanted(function, inputs, delta):
    """Return PyTorch's output and gradients of the inputs; None if delta does not fit."""
    tensors = [torch.tensor(x, requires_grad=True) for x in inputs]
    output = function(*tensors)
    if output.shape != np.shape(delta):
        return output.detach().numpy(), None
    output.backward(torch.tensor(delta))
    return output.detach().numpy(), [tensor.grad.numpy() for tensor in tensors]


def _several(gradients, number):
    """Check that a backward pass returned so many gradients."""
    if not isinstance(gradients, (tuple, list)) or len(gradients) != number:
        raise Wrong(f"gradient should return {number} arrays, one for each input.")
    return gradients


@exercise("backpropagation.transpose")
def transpose(answer):
    """Compare with swapped axes, for one text and for a batch."""
    rng = np.random.default_rng(0)
    for shape in ((3, 4), (2, 3, 4), (3, 4, 4)):
        x = rng.normal(size=shape)
        _, output, delta, back = _passes(answer, (), [x])
        compare(
            output,
            np.swapaxes(x, -1, -2),
            {
                "forward, all axes are reversed, the batch too: `.T` does that. Only the "
                "last two may change places.": x.T,
                "forward, the first two axes change places; in a batch the first is the "
                "batch.": np.swapaxes(x, 0, 1),
                "forward, the shape is right, the numbers are not: reshape keeps their "
                "order in memory and does not transpose.": x.reshape(
                    *shape[:-2], shape[-1], shape[-2]
                ),
                "forward, the input comes back as it was.": x,
            },
        )
        compare(
            back(),
            np.swapaxes(delta, -1, -2),
            {
                "backward, delta is handed on as it came; it has the shape of the output "
                "and must get that of the input.": delta,
                "backward, all axes of delta are reversed, the batch too.": delta.T,
                "backward, reshape gives delta the right shape but mixes up its "
                "entries.": delta.reshape(shape),
            },
        )


@exercise("backpropagation.scalar_product")
def scalar_product(answer):
    """Compare with the product and its three derivatives."""
    x = np.random.default_rng(1).normal(size=(2, 3, 4))
    module, output, delta, back = _passes(answer, (0.7, True), [x])
    scale = module.scale.value
    compare(output, scale * x, {"forward, the input is divided by the number.": x / scale})
    compare(
        back(),
        scale * delta,
        {
            "backward, delta must be multiplied by the number too.": delta,
            "backward, delta is multiplied by the input; that belongs to the gradient of "
            "the number.": delta * x,
            "backward, delta is divided by the number.": delta / scale,
        },
    )
    total = (delta * x).sum()
    compare(
        module.scale.grad,
        total,
        {
            "self.scale.grad is still 0: the number is a parameter and has a gradient "
            "too.": 0.0,
            "the gradient of the number is averaged over the entries; it takes part in "
            "each of them, so the parts are summed.": total / x.size,
            "the gradient of the number adds up delta alone; each entry's part is delta "
            "times the input.": delta.sum(),
            "the gradient of the number has the output in it where the input "
            "belongs.": scale * total,
        },
    )
    run(module.backward, delta.copy())
    compare(
        module.scale.grad,
        2 * total,
        {
            "a second backward pass overwrites the gradient of the number: add to it "
            "with +=.": total
        },
    )


@exercise("backpropagation.dot_product")
def dot_product(answer):
    """Compare with autograd; square matrices let a wrong transpose pass the shapes."""
    rng = np.random.default_rng(2)
    sizes = [((3, 3), (3, 3)), ((2, 3, 3), (2, 3, 3)), ((4, 2, 5), (4, 5, 3))]
    for shapes in sizes:
        a, b = (rng.normal(size=shape) for shape in shapes)
        _, output, delta, back = _passes(answer, (), [a, b])
        want, wanted = _wanted(torch.matmul, [a, b], delta)
        mistakes = {}
        if a.shape == b.shape:
            mistakes = {
                "forward, the two are multiplied entry by entry; the product of matrices "
                "is written @.": a * b,
                "forward, the order is wrong: a comes first.": b @ a,
                "forward, b is transposed; leave that to its own module.": a @ b.mT,
            }
        compare(output, want, mistakes)
        d_a, d_b = wanted
        g_a, g_b = _several(back(), 2)
        first, second = {}, {}
        if a.shape == b.shape:
            first = {
                "the gradient of a lacks a transpose: b must be transposed.": delta @ b,
                "the gradients are swapped: that of a comes first.": d_b,
                "in the gradient of a, delta belongs on the left.": b.mT @ delta,
            }
            second = {
                "the gradient of b lacks a transpose: a must be transposed.": a @ delta,
                "in the gradient of b, delta stands on the wrong side.": delta @ a.mT,
                "the gradient of b is transposed.": d_b.mT,
            }
        compare(g_a, d_a, first)
        compare(g_b, d_b, second)


def _attend(query, key, value, scale=None, mask=None):
    scale = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
    scores = query @ key.mT * scale
    if mask is not None:
        scores = scores.masked_fill(~mask, -torch.inf)
    return scores.softmax(-1) @ value


@exercise("backpropagation.attention")
def attention(answer):
    """Compare with PyTorch's own function and its gradients."""
    rng = np.random.default_rng(4)
    for lead in ((), (2,)):
        inputs = [rng.normal(size=(*lead, *size)) for size in ((4, 6), (4, 6), (4, 3))]
        module, output, delta, back = _passes(answer, (6,), inputs)
        want, wanted = _wanted(F.scaled_dot_product_attention, inputs, delta)
        q, k, v = map(torch.tensor, inputs)
        wrong_axis = (q @ k.mT / math.sqrt(6)).softmax(-2) @ v
        compare(
            output,
            want,
            {
                "forward, the scale is missing: divide the scores by the square root of "
                "d_head before the softmax.": _attend(q, k, v, 1.0),
                "forward, the scores are divided by d_head, not by its root.": (
                    _attend(q, k, v, 1 / 6)
                ),
                "forward, the softmax is missing.": (q @ k.mT / math.sqrt(6)) @ v,
                "forward, each column sums to 1: rows are queries, the softmax runs over "
                "the keys.": wrong_axis,
                "forward, queries and keys are swapped.": _attend(k, q, v),
            },
        )
        compare(_weights(module), (q @ k.mT / math.sqrt(6)).softmax(-1))
        _attention_gradients(_several(back(), 3), wanted)
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
    module = _made(answer, 6, True)
    output = run(module.forward, *inputs)
    delta = rng.normal(size=np.shape(output))
    past = torch.ones(5, 5, dtype=torch.bool).tril()
    want, wanted = _wanted(lambda q, k, v: _attend(q, k, v, mask=past), inputs, delta)
    tensors = [torch.tensor(x) for x in inputs]
    after = (tensors[0] @ tensors[1].mT / math.sqrt(6)).softmax(-1) * past @ tensors[2]
    compare(
        output,
        want,
        {
            "right without a mask; with causal=True nothing is hidden. self.mask is "
            "there: use it before the softmax.": _attend(*tensors),
            "right without a mask; with causal=True the weights are hidden after the "
            "softmax, so rows no longer sum to 1.": after,
        },
    )
    gradients = _several(run(module.backward, delta.copy()), 3)
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
    return _attend(q, k, v)


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
        module, output, delta, back = _passes(answer, arguments, inputs)

        def theirs(q, k, v, module=module, turn="right" if rotary else "none"):
            return _head(module, q, k, v, turn)

        want, wanted = _wanted(theirs, inputs, delta)
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
        got = _several(back(), 3)
        if rotary:
            straight = _wanted(_not_turned_back(module), inputs, delta)[1]
            first = {"backward, the gradient of the query is not turned back.": straight[0]}
        else:
            first = {}
        for gradient, right in zip(got, wanted, strict=True):
            compare(gradient, right, first)
        _linear_gradients(module, theirs, inputs, delta)


def _swapped(module, q, k, v):
    """Compute values by the key's layer."""
    (w_q, b_q), (w_k, b_k) = _linear(module.query), _linear(module.key)
    return _attend(q @ w_q + b_q, k @ w_k + b_k, v @ w_k + b_k)


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
        return _attend(_TurnedForwardOnly.apply(q), _TurnedForwardOnly.apply(k), v)

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
    module, output, delta, back = _passes(answer, arguments, inputs)
    weight, bias = _linear(module.output)

    def joined(q, k, v, order=1, branches=module.heads.branches):
        parts = [_head(head, q, k, v, "none") for head in branches[::order]]
        return torch.cat(parts, -1)

    def theirs(q, k, v):
        return joined(q, k, v) @ weight + bias

    want, wanted = _wanted(theirs, inputs, delta)
    tensors = [torch.tensor(x) for x in inputs]
    compare(
        output,
        want,
        {
            "the last linear layer is missing.": joined(*tensors),
            "the heads stand in the opposite order.": joined(*tensors, -1) @ weight + bias,
        },
    )
    got = _several(back(), 3)
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
    return _wanted(lambda q, k, v: _head(head, q, k, v, "none"), inputs, part)[1]


@exercise("backpropagation.weights_picture")
def weights_picture(answer):
    """Look at what the figure's images hold."""
    rng = np.random.default_rng(7)
    tokens = ["so", "long", "lives", "this"]
    weights = rng.uniform(0.1, 1, size=(3, 4, 4))
    weights /= weights.sum(axis=-1, keepdims=True)
    figure = run(answer, weights.copy(), list(tokens))
    if not hasattr(figure, "axes"):
        raise Wrong(f"return the figure; this is a {type(figure).__name__}.")
    drawn = [axis for axis in figure.axes if axis.images or axis.collections]
    drawn = [axis for axis in drawn if axis.get_label() != "<colorbar>"]
    if len(drawn) != len(weights):
        hint = " Do not average the heads." if len(drawn) == 1 else ""
        raise Wrong(f"{len(drawn)} heat maps for {len(weights)} heads.{hint}")
    shown = [(axis.images or axis.collections)[0] for axis in drawn]
    arrays = np.array([np.reshape(np.asarray(s.get_array()), (4, 4)) for s in shown])
    compare(
        arrays,
        weights,
        {
            "rows and columns are swapped: queries are rows, and a query sees only what "
            "stands left of it.": weights.swapaxes(-1, -2),
            "every head's picture is the first head's.": np.repeat(weights[:1], 3, 0),
            "every head's picture is the last head's.": np.repeat(weights[-1:], 3, 0),
            "the first row should be drawn on top; leave the order of the rows to "
            "imshow.": weights[:, ::-1],
        },
    )
    _labels_and_scale(drawn, shown, tokens)
    plt.close(figure)


def _labels_and_scale(drawn, shown, tokens):
    for axis, image in zip(drawn, shown, strict=True):
        across = [label.get_text() for label in axis.get_xticklabels()]
        down = [label.get_text() for label in axis.get_yticklabels()]
        if not axis.yaxis_inverted():
            raise Wrong("the first query stands at the bottom; rows go from the top.")
        if across != tokens:
            raise Wrong("the words should stand under the columns, the keys, in order.")
        if down != tokens:
            raise Wrong("the words should stand beside the rows, the queries, in order.")
        if image.get_clim() != (0, 1):
            raise Wrong(
                "each square has a scale of its own, so they cannot be compared: set "
                "vmin=0 and vmax=1."
            )


class _Pretender:
    """A model that notes what it is shown; its logits depend on the last word."""

    table = np.array([[0.0, 1.2, -0.4, 0.5], [1.5, 0.0, 0.3, -0.5], [0.2, 0.9, 0.0, 1.4]])
    table = np.vstack([table, [-0.3, 0.8, 1.1, 0.0]])

    def __init__(self):
        self.shown = []

    def forward(self, numbers):
        self.shown.append([int(number) for number in np.ravel(numbers)])
        return self.table[np.ravel(numbers)]

    __call__ = forward


@exercise("backpropagation.sampling")
def sampling(answer):
    """Watch what the model is shown, and count what is drawn."""
    start = [3, 1]
    model, rng = _Pretender(), np.random.default_rng(8)
    drawn = [int(n) for n in np.ravel(run(answer, model, list(start), 6, rng, 4))]
    if drawn[:2] != start:
        raise Wrong("the start should stand at the beginning of the result.")
    if len(drawn) != 8:
        raise Wrong(f"{len(drawn) - 2} words were added; {6} were asked for.")
    lengths = [len(shown) for shown in model.shown]
    if max(lengths) > 4:
        raise Wrong("the model is shown more than the last `context` words.")
    if lengths and max(lengths) == 1:
        raise Wrong("the model is shown one word; show it the last `context` of them.")
    if model.shown[-1] != drawn[-5:-1]:
        raise Wrong("the model should be shown the *last* words, the newest included.")
    for temperature in (1.0, 0.5):
        _frequencies(answer, temperature)


def _frequencies(answer, temperature):
    """Draw one word many times and compare the shares with a softmax."""
    rng = np.random.default_rng(9)
    model = _Pretender()
    args = (model, [0, 2, 1], 1, rng, 7, temperature)
    drawn = [int(np.ravel(run(answer, *args))[-1]) for _ in range(DRAWS)]
    got = np.bincount(drawn, minlength=4) / DRAWS

    def shares(row, factor=1.0):
        return F.softmax(torch.tensor(model.table[row]) * factor, -1).numpy()

    if np.abs(got - shares(1, 1 / temperature)).max() < NEAR:
        return
    mistakes = {
        "always the likeliest word is taken; draw by the shares.": np.eye(4)[0],
        "all words are drawn alike; rng.choice needs p.": np.full(4, 0.25),
        "the logits of the first word are used; those of the last say what comes "
        "next.": shares(0, 1 / temperature),
        "the temperature has no effect.": shares(1),
        "the logits are multiplied by the temperature; they are divided by it.": shares(
            1, temperature
        ),
    }
    for diagnosis, wrong in mistakes.items():
        if np.abs(got - wrong).max() < NEAR:
            raise Wrong(diagnosis)
    raise Wrong(
        f"at temperature {temperature} the words are not drawn by the softmax of the "
        "logits."
    )
