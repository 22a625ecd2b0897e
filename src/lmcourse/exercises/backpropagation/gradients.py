"""Checks of modules that a reader writes, whose gradients PyTorch computes too."""

import math

import numpy as np
import torch
import torch.nn.functional as F

from lmcourse.exercises import exercise, predict, run
from lmcourse.exercises.answers import Unfit, adding, array, diagnose, rotated, unpack
from lmcourse.exercises.backpropagation.oracle import (
    Passes,
    attend,
    attend_head,
    compare_named,
    descend,
    layer_parameters,
    rotated_again_backward,
    rotated_forward_only,
    unchanged,
)
from lmcourse.numpy_nn.attention import MultiHeadAttention, ScaledDotProductAttention
from lmcourse.numpy_nn.core import Module
from lmcourse.numpy_nn.layers import Linear, SkipAddNorm

# A change of a number that is used twice goes both ways.
predict(
    "backpropagation.used_twice",
    a=None,
    b="x is used a second time, as the key: move x a little, and both factors move.",
    c="nothing is averaged: each of the two uses adds its effect in full.",
    d="the derivatives along one way back are multiplied; the effects of two ways add up.",
)


@exercise("backpropagation.attention", solution=ScaledDotProductAttention)
def attention(answer):
    """Check a reader's module of attention, forward and backward.

    Oracle: PyTorch's own function and its gradients, for one text and for a batch of two;
    then with fewer queries than keys, and with a causal mask.

    Parameters
    ----------
    answer : type
        The reader's subclass of our NumPy `Module`, made from d_head (and ``causal``, a
        bool). ``forward`` takes query, key and value, arrays (..., tokens, d_head or
        d_value), and keeps the weights (..., queries, keys) in ``weights``; ``backward``
        takes the gradient of the output and returns those of the three.

    Raises
    ------
    Wrong, Unfit
        What is wrong, in words for the reader.
    """
    rng = np.random.default_rng(4)
    for lead in ((), (2,)):
        sizes = (4, 6), (4, 6), (4, 3)  # tokens and width of query, key, value
        passes = Passes(answer, (6,), [rng.normal(size=(*lead, *size)) for size in sizes])
        q, k, v = passes.tensors
        scores = q @ k.mT / math.sqrt(6)
        forward = {
            "forward, the scale is missing: divide the scores by the square root of d_head "
            "before the softmax.": attend(q, k, v, 1.0),
            "forward, scores are divided by d_head, not its root.": attend(q, k, v, 1 / 6),
            "forward, the softmax is missing.": scores @ v,
            "forward, each column sums to 1: rows are queries, the softmax runs over the "
            "keys.": scores.softmax(-2) @ v,
            "forward, queries and keys are swapped.": attend(k, q, v),
        }
        passes.forward(F.scaled_dot_product_attention, forward)
        weights = getattr(passes.module, "weights", None)
        advice = "the output is right; keep the weights in self.weights as well."
        diagnose({advice: weights is None})
        compare_named("self.weights", weights, scores.softmax(-1))
        d_q, d_k, _ = passes.gradients()
        d_weights = torch.tensor(passes.delta) @ v.mT
        right_weights = scores.softmax(-1)

        def by_query(of_scores, k=k):
            """Return the gradient of the query that follows from one of the scores.

            Parameters
            ----------
            of_scores : Tensor of shape (..., queries, keys)
                The gradient of the scores, which were divided by the root of d_head, 6.
            k : Tensor of shape (..., keys, 6)
                The keys.

            Returns
            -------
            array of shape (..., queries, 6)
            """
            return (of_scores @ k / math.sqrt(6)).detach().numpy()

        of_query = {
            "backward, softmax: the row's average is still in; take it off the gradient of "
            "the weights before you multiply by them.": by_query(right_weights * d_weights),
            "backward, softmax: the average that is taken off runs along the columns; each "
            "row has its own, over the keys.": by_query(
                right_weights
                * (d_weights - (right_weights * d_weights).sum(-2, keepdim=True))
            ),
            "backward, softmax: a(1 - a) is only the diagonal; every weight of a row "
            "depends on all its scores.": by_query(
                right_weights * (1 - right_weights) * d_weights
            ),
            "backward, the softmax's own backward pass is missing between the weights and "
            "the scores.": by_query(d_weights),
            "backward, the gradient of the query lacks the scale: its module has a "
            "backward pass too.": d_q * math.sqrt(6),
            "backward, the gradients of query and key are swapped.": d_k,
        }
        of_key = {
            "backward, the gradient of the key lacks the scale.": d_k * math.sqrt(6),
            "backward, the gradient of the key lacks the transpose's backward pass; its "
            "shape tells.": d_k.mT,
        }
        of_value = {
            "backward, the gradient of the value lacks a transpose: each key collects from "
            "the queries that attended to it.": right_weights @ torch.tensor(passes.delta),
        }
        passes.backward(of_query, of_key, of_value)
    _of_other_numbers(answer, [rng.normal(size=size) for size in ((3, 6), (5, 6), (5, 2))])
    _is_causal(answer, [rng.normal(size=(2, 5, width)) for width in (6, 6, 3)])


def _of_other_numbers(answer, inputs):
    """Check a module of attention with fewer queries than keys, forward and backward.

    Parameters
    ----------
    answer : type
        The reader's subclass of our NumPy `Module`, made from d_head.
    inputs : list of array
        Query (3, 6), key (5, 6) and value (5, d_value).

    Raises
    ------
    Wrong, Unfit
        What is wrong, after words that say that equal numbers were right.
    """
    prefix = "right with as many queries as keys; with 3 queries and 5 keys:"
    with adding(prefix):
        passes = Passes(answer, (6,), inputs)
        passes.forward(F.scaled_dot_product_attention)
        passes.backward()


def _is_causal(answer, inputs):
    """Check attention with a causal mask, forward and backward, and then with other inputs.

    The second time shows whether the way back uses what the last forward pass kept.

    Parameters
    ----------
    answer : type
        The reader's class, made with (6, True): ``d_head`` and ``causal``.
    inputs : list of array
        Queries (2, 5, 6), keys (2, 5, 6) and values (2, 5, 3).

    Raises
    ------
    Wrong, Unfit
        If an output or a gradient is not PyTorch's.
    """
    passes = Passes(answer, (6, True), inputs)
    past = torch.ones(5, 5, dtype=bool).tril()
    q, k, v = passes.tensors
    mistakes = {
        "right without a mask; with causal=True nothing is hidden. self.mask is there: use "
        "it before the softmax.": attend(q, k, v),
        "right without a mask; with causal=True the weights are hidden after the softmax, "
        "so rows no longer sum to 1.": (q @ k.mT / math.sqrt(6)).softmax(-1) * past @ v,
        "right without a mask; with causal=True the past is hidden, not the future.": (
            attend(q, k, v, mask=past.T)
        ),
    }
    passes.forward(lambda q, k, v: attend(q, k, v, mask=past), mistakes)
    passes.backward()
    passes.enter([2 * x for x in inputs])
    passes.forward(lambda q, k, v: attend(q, k, v, mask=past))
    with adding("right once; after another forward, gradient uses what was kept before:"):
        passes.backward()


def _one_head(answer):
    """Compare a reader's head with one in PyTorch, with and without rotary positions.

    Query, key and value have different inputs, (2, tokens, 5), of 4, 3 and 3 tokens. With
    rotary positions queries and keys are rotated after their layers, values are not.

    Parameters
    ----------
    answer : type
        The class of a head, a `Module` made with (d_model, d_head, rng, causal, rotary). It
        has the linear layers ``query``, ``key`` and ``value``.

    Raises
    ------
    Wrong, Unfit
        If its output, a gradient of an input or one that a layer collected is another.
    """
    rng = np.random.default_rng(5)
    inputs = [rng.normal(size=(2, tokens, 5)) for tokens in (4, 3, 3)]
    for rotary in (False, True):
        arguments = (5, 4, np.random.default_rng(1), False, rotary)
        passes = Passes(answer, arguments, inputs)
        layers = layer_parameters(passes.module)
        tensors = passes.tensors
        turns = [rotated if rotary else unchanged] * 2 + [unchanged]
        not_back = attend_head(layers, tensors, [rotated_forward_only] * 2 + [unchanged])
        if rotary:
            mistakes = {
                "with rotary=True nothing is turned.": attend_head(layers, tensors),
                "with rotary=True the values are turned too; only queries and keys are.": (
                    attend_head(layers, tensors, [rotated] * 3)
                ),
                "with rotary=True the keys are not turned.": attend_head(
                    layers, tensors, [rotated, unchanged, unchanged]
                ),
            }
        else:
            mistakes = {
                "the values are made from the key's input or by the key's layer.": (
                    attend_head([*layers[:2], layers[1]], tensors)
                ),
                "all three come from the query's input; in cross-attention keys and "
                "values come from another text.": attend_head(layers, tensors[:1] * 3),
            }
        passes.forward(
            lambda *x, turns=turns, layers=layers: attend_head(layers, x, turns), mistakes
        )
        twice = attend_head(layers, tensors, [rotated_again_backward] * 2 + [unchanged])
        is_unturned = "backward, the gradient of the {} is not turned back."
        is_turned_on = (
            "backward, the gradient of the {} is turned on, not back: call `backward` of "
            "the module that turned it."
        )
        wrong = passes.gradients(not_back), passes.gradients(twice)
        tables = [
            {is_unturned.format(name): unturned, is_turned_on.format(name): turned_on}
            for name, unturned, turned_on in zip(("query", "key"), *wrong, strict=False)
        ]
        passes.backward(*tables if rotary else ())
        for name, own in zip(("query", "key", "value"), layers, strict=True):
            passes.collected(name, getattr(passes.module, name), own)


def _row(arrays):
    """Return all arrays end to end in one row, (numbers,).

    ``arrays`` : sequence of array-like.
    """
    return np.concatenate([array(each).ravel() for each in arrays])


def _descended(query, key, value, *given):
    """Return Q, K and V after gradient descent, and the losses, as one tuple.

    Parameters
    ----------
    query, key, value : array of shape (queries, d), (keys, d), (keys, d_value)
    *given
        The target, an array (queries, d_value), which attention's output is to come near;
        the learning rate, a float; the number of steps, an int.

    Returns
    -------
    tuple of four
        Q, K and V, arrays of the same shapes, and a list of float: the mean squared error
        before each step.
    """
    parts, losses = descend([query, key, value], *given)
    return (*parts, losses)


@exercise("backpropagation.learn", kind="experiment", solution=_descended)
def learn(answer):
    """Check a reader's gradient descent on query, key and value.

    Oracle: PyTorch's optimizer, on matrices and targets drawn here.

    Parameters
    ----------
    answer : callable
        From Q (queries, d), K (keys, d), V (keys, d_value), target (queries, d_value),
        learning rate and number of steps to Q, K and V after the steps and the list of
        losses, the mean squared error before each step. The arrays that it is given must
        stay as they are.

    Raises
    ------
    Wrong, Unfit
        What is wrong, in words for the reader.
    """
    for seed, (sources, steps) in enumerate([(5, 2), (3, 25)]):
        rng = np.random.default_rng(20 + seed)
        given = [rng.normal(size=size) for size in ((4, 4), (sources, 4), (sources, 3))]
        target = rng.normal(size=(4, 3))
        rate = 0.7
        copies = [part.copy() for part in given]
        got = run(answer, *copies, target.copy(), rate, steps, keep=True)
        *parts, losses = unpack(got, 4, "Q, K, V and the list of losses")
        wanted, wanted_losses = descend(given, target, rate, steps)
        # What is told of a mistake → the arguments of `descend` that make it.
        ways = {
            "the loss grows: a step goes against the gradient.": {"rate": -rate},
            "the gradients of earlier steps are still in; drop them.": {"momentum": 1.0},
            "queries and keys do not move; all three are trained.": {"turns": [[2]]},
            "the values do not move; all three are trained.": {"turns": [[0, 1]]},
            "only the queries move; all three are trained.": {"turns": [[0]]},
            "the three move in turn; first take all gradients.": {"turns": [[0], [1], [2]]},
            "the gradient of a square has the factor 2.": {"rate": rate / 2},
            "the loss is the mean over all entries, not the sum.": {"rate": 12 * rate},
            "the scale of the scores is missing.": {"scale": 1.0},
            "one step too few was made.": {"steps": steps - 1},
            "one step too many was made.": {"steps": steps + 1},
        }
        usual = {"rate": rate, "steps": steps}
        results = {
            mistake: descend(given, target, **usual | way)[0]
            for mistake, way in ways.items()
        }
        results["nothing has moved."] = given
        for name, part, want in zip("QKV", parts, wanted, strict=True):
            if array(part).shape != want.shape:
                compare_named(name, part, want)
        in_row = [_row(parts), _row(wanted), {t: _row(m) for t, m in results.items()}]
        compare_named("Q, K and V after the steps, in one row", *in_row)
        changed = "right, but the arrays that were handed in have changed."
        diagnose({changed: not all(map(np.array_equal, copies, given))})
        one_later = [*wanted_losses[1:], descend(given, target, rate, steps + 1)[1][-1]]
        are_late = "the losses are measured after the steps; each belongs before its step."
        are_sums = "the losses are sums; each is the mean over all entries."
        sums = [loss * target.size for loss in wanted_losses]
        table = {are_late: one_later, are_sums: sums}
        compare_named("the losses", losses, wanted_losses, table)


@exercise("backpropagation.heads", solution=MultiHeadAttention)
def heads(answer):
    """Check a reader's multi-head attention: the head that it is made of, then several.

    Parameters
    ----------
    answer : type
        A subclass of our NumPy `Module`, made from d_model, heads and a generator (and
        ``causal`` and ``rotary``, bool). The class of a head is that of the first of
        ``heads.branches`` in it; ``output`` is its last linear layer.

    Raises
    ------
    Wrong, Unfit
        What is wrong, in words for the reader.
    """
    if not isinstance(answer, type) or not issubclass(answer, Module):
        raise Unfit("pass the class itself, MultiHeadAttention, a subclass of Module.")
    branches = getattr(
        getattr(run(answer, 6, 3, np.random.default_rng(2)), "heads", None), "branches", ()
    )
    three = "with heads=3 the Fork in self.heads should have three branches."
    diagnose({three: len(branches) != 3})
    with adding("one head:"):
        _one_head(type(branches[0]))
    _several_heads(answer)
    _turned_and_masked(answer)
    _a_single_one(answer)


def _beside(passes):
    """Return copies of the parameters of several heads, and what runs them in PyTorch.

    Parameters
    ----------
    passes : Passes
        ``passes.module`` is the reader's multi-head attention: its last linear layer is
        ``output``, its heads are ``heads.branches``, each with the linear layers ``query``,
        ``key`` and ``value``.

    Returns
    -------
    layers : list
        Of each head three pairs of Tensors: weight and bias of its query, key and value
        layer.
    weight, bias : Tensor of shape (d_model, d_model), (d_model,)
        Of the last linear layer.
    joined : callable
        From the inputs of query, key and value, Tensors (..., tokens, d_model), to all
        heads' outputs side by side, (..., tokens of the query's input, d_model).
    """
    output = passes.module.output
    heads = passes.module.heads.branches
    layers = [layer_parameters(head) for head in heads]
    last = [torch.tensor(x.value, requires_grad=True) for x in (output.weight, output.bias)]

    def joined(*inputs, order=1, **how):
        """Return the outputs of all heads side by side, computed by PyTorch.

        Parameters
        ----------
        *inputs : Tensors of shape (..., tokens, d_model)
            Of query, key and value; the first may have another number of tokens.
        order : int
            1, or -1 for the heads in reverse.
        **how
            ``turn``, what is done to query, key and value after their layers, three
            callables; ``mask``, bool (queries, keys), True where a key may be seen.

        Returns
        -------
        Tensor of shape (..., tokens of the first input, d_model)
        """
        return torch.cat([attend_head(one, inputs, **how) for one in layers[::order]], -1)

    return layers, *last, joined


def _several_heads(answer):
    """Compare three heads, forward and backward, with the same heads in PyTorch.

    Parameters
    ----------
    answer : type
        The reader's class. It is made with (6, 3, rng): ``d_model``, ``heads`` and the
        generator of its first weights. Its ``forward`` is given the inputs of queries, keys
        and values: arrays (2, tokens, 6) of 4, 3 and 3 tokens.

    Raises
    ------
    Wrong
        If an output or a gradient is another; it says which mistake would give it.
    """
    rng = np.random.default_rng(6)
    inputs = [rng.normal(size=(2, tokens, 6)) for tokens in (4, 3, 3)]
    passes = Passes(answer, (6, 3, np.random.default_rng(2)), inputs)
    layers, weight, bias, joined = _beside(passes)
    mistakes = {
        "the last linear layer is missing.": joined(*passes.tensors),
        "the heads stand in the opposite order.": (
            joined(*passes.tensors, order=-1) @ weight + bias
        ),
    }
    passes.forward(lambda *x: joined(*x) @ weight + bias, mistakes)
    last = attend_head(layers[-1], passes.tensors)
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
    _collected(passes, layers, (weight, bias))


def _collected(passes, layers, last):
    """Compare the gradients that a reader's module collected with PyTorch's.

    Parameters
    ----------
    passes : Passes
        The reader's module after a forward and a backward pass, and PyTorch's tensors. The
        module has the last linear layer ``output`` and, as ``heads.branches``, its heads,
        each with the linear layers ``query``, ``key`` and ``value``.
    layers : list of tuple
        For each head three pairs of Tensors: weight and bias of query, key and value.
    last : pair of Tensor
        Weight and bias of the last linear layer.

    Raises
    ------
    Wrong
        At the first layer whose gradients differ.
    """
    output = passes.module.output
    passed_by = "the last linear layer got no gradient: go through its backward."
    diagnose({passed_by: not np.abs(output.weight.grad).any()})
    passes.collected("the last linear layer", output, last)
    for i, (head, three) in enumerate(
        zip(passes.module.heads.branches, layers, strict=True)
    ):
        for name, tensors in zip(("query", "key", "value"), three, strict=True):
            passes.collected(f"head {i}'s {name}", getattr(head, name), tensors)


def _turned_and_masked(answer):
    """Check that ``causal`` and ``rotary`` reach every head, forward and backward.

    Parameters
    ----------
    answer : type
        The reader's class, made with (12, 3, rng, True, True): d_model, heads, the
        generator of its first weights, ``causal`` (no query sees later keys) and ``rotary``
        (queries and keys are rotated by their positions).

    Raises
    ------
    Wrong, Unfit
        What is wrong, in words for the reader.
    """
    inputs = [np.random.default_rng(8).normal(size=(2, 4, 12)) for _ in "qkv"]
    passes = Passes(answer, (12, 3, np.random.default_rng(2), True, True), inputs)
    layers, weight, bias, joined = _beside(passes)
    turns = [rotated, rotated, unchanged]
    mask = torch.ones(4, 4, dtype=bool).tril()

    def several(*x, **how):
        """Return the heads joined and mapped by the last layer, as PyTorch computes it.

        Parameters
        ----------
        *x : Tensors of shape (..., tokens, d_model)
            The inputs of query, key and value.
        **how
            ``turn``, what is done to query, key and value after their layers, three
            callables; ``mask``, bool (queries, keys), True where a key may be seen.

        Returns
        -------
        Tensor of shape (..., tokens, d_model)
        """
        return joined(*x, **how) @ weight + bias

    mistakes = {
        "right without; with several heads causal=True hides nothing.": several(
            *passes.tensors, turn=turns
        ),
        "right without; with several heads rotary=True turns nothing.": several(
            *passes.tensors, mask=mask
        ),
        "right without; several heads neither hide nor turn: hand both on.": several(
            *passes.tensors
        ),
    }
    passes.forward(lambda *x: several(*x, turn=turns, mask=mask), mistakes)
    passes.backward()
    _collected(passes, layers, (weight, bias))


def _a_single_one(answer):
    """Check a reader's class with one head, forward and backward.

    Its heads then have one output, an array, where with several they have a tuple.

    Parameters
    ----------
    answer : type
        The reader's class, made with (6, 1, rng): d_model, heads and the generator of its
        first weights.

    Raises
    ------
    Wrong, Unfit
        What is wrong, in words for the reader.
    """
    x = np.random.default_rng(7).normal(size=(2, 3, 6))
    passes = Passes(answer, (6, 1, np.random.default_rng(2)), [x] * 3)
    output = passes.module.output
    heads = passes.module.heads.branches
    weight = torch.tensor(output.weight.value)
    bias = torch.tensor(output.bias.value)
    passes.forward(lambda *x: attend_head(layer_parameters(heads[0]), x) @ weight + bias)
    with adding(
        "right with several; with heads=1, self.concat.backward returns an array and "
        "self.heads.backward wants a tuple, which as_tuple makes:"
    ):
        passes.backward()


class _NormedSum(SkipAddNorm):
    """A module's output added to its input, then normalised, without weight and bias."""

    def __init__(self, module, d_model):
        """Make norm(x + f(x)) from f, the ``module``, and ``d_model``, the width of x.

        Weight and bias of the norm stay as they are.
        """
        super().__init__(module, d_model)
        for parameter in self.norm.parameters().values():
            parameter.trainable = False


@exercise("backpropagation.norm", kind="spot the bug", solution=_NormedSum)
def norm(answer):
    """Check a reader's module that adds what a layer returns to its input and normalises.

    Oracle: PyTorch's norm of the sum. The layer inside must get its gradients as well.

    Parameters
    ----------
    answer : type
        The reader's subclass of our NumPy `Module`, made from a `Linear` and d_model. It
        keeps the layer in ``module``; its norm has neither weight nor bias.

    Raises
    ------
    Wrong, Unfit
        What is wrong, in words for the reader.
    """
    x = 1 + np.random.default_rng(10).normal(size=(2, 3, 4))
    passes = Passes(answer, (Linear(4, 4, np.random.default_rng(3)), 4), [x])
    inner = getattr(passes.module, "module", None)
    advice = "keep the layer that is skipped in self.module."
    diagnose({advice: not isinstance(inner, Linear)})
    weight = torch.tensor(inner.weight.value, requires_grad=True)
    bias = torch.tensor(inner.bias.value, requires_grad=True)
    x = passes.tensors[0]
    total = x + x @ weight + bias
    deviation = (total.var(-1, correction=0, keepdim=True) + 1e-5).sqrt()

    def with_row(row, centred=True, scale=1 / deviation):
        """Return the gradient of the input, from a norm's formula with another row in it.

        With the right row, the centred sum of input and layer's output, it is the right
        gradient.

        Parameters
        ----------
        row : Tensor of shape (2, 3, 4)
            What is divided by the deviation, in the right row's place.
        centred : bool
            Whether the mean of the gradient is taken away.
        scale : Tensor of shape (2, 3, 1) or float
            One over the standard deviation.

        Returns
        -------
        array of shape (2, 3, 4)
        """
        d = torch.tensor(passes.delta)
        y = row * scale
        by_deviation = y * (d * y).mean(-1, True)
        if centred:
            d = d - d.mean(-1, keepdim=True)
        d = scale * (d - by_deviation)
        return (d + d @ weight.T).detach().numpy()

    passes.forward(lambda x: F.layer_norm(total, (4,)))
    row = total - total.mean(-1, keepdim=True)
    d_total = passes.gradients(of=[total])[0]  # what the norm hands back
    through_layer = with_row(row) - d_total
    # What is told of a mistake → the arguments of `with_row` that make it.
    wrong_rows = {
        "the input x stands where the normalised sum belongs: what was normalised is "
        "x + f(x), centred and divided.": (x,),
        "the input is centred now, but it is still the input: the norm saw x + f(x).": (
            x - x.mean(-1, keepdim=True),
        ),
        "the sum is right, but it is not centred: the norm took the mean away.": (total,),
        "the sum is centred, but not divided: y is the row after both.": (row * deviation,),
        "the mean of the gradient is still in: the norm took the row's mean away, so a "
        "gradient that is the same everywhere moves nothing.": (row, False),
        "the second term is missing: entries move the deviation, too.": (0 * row,),
        "the gradient does not go through the norm.": (0 * row, False, 1.0),
    }
    d = torch.tensor(passes.delta)
    y = row / deviation
    summed = (d - d.sum(-1, keepdim=True) - y * (d * y).sum(-1, True)) / deviation
    sums = (summed + summed @ weight.T).detach().numpy()
    around_norm = d_total + passes.delta @ weight.detach().numpy().T
    mistakes = {mistake: with_row(*used) for mistake, used in wrong_rows.items()} | {
        "the two terms are sums over the row; both are means.": sums,
        "the module inside gets delta itself; what reaches it went through the norm.": (
            around_norm
        ),
        "what goes past the module comes from the norm, too; it is not delta.": (
            passes.delta + through_layer
        ),
        "what goes past the module is missing: add the norm's own gradient.": through_layer,
        "what goes through the module is missing: call its backward.": d_total,
    }
    passes.backward(mistakes)
    passes.collected("the layer inside", inner, (weight, bias))
