"""Running a reader's module forward and back, and the same in PyTorch."""

import itertools
import math

import numpy as np
import torch
import torch.nn.functional as F

from lmcourse.exercises import Wrong, compare, run
from lmcourse.exercises.answers import Unfit, array, rotated, unpack
from lmcourse.exercises.cases import filled
from lmcourse.numpy_nn.core import Module


def compare_named(name, got, want, mistakes=None):
    """Compare an array, and say which it is where no known mistake fits.

    Parameters
    ----------
    name : str
        What messages call the array.
    got, want : array
        The reader's and the right one.
    mistakes : dict of str to array, optional
        Diagnosis → the array that this mistake gives.

    Raises
    ------
    Wrong
        If they differ; the message begins with the name, unless a known mistake fits.
    """
    try:
        compare(got, want, mistakes)
    except Wrong as wrong:
        if str(wrong) in (mistakes or {}):
            raise
        raise wrong.reworded(f"{name}: {wrong}") from None


class Passes:
    """A reader's module that has run forward; its backward pass can follow.

    Parameters
    ----------
    kind : object
        The answer, which should be a subclass of Module.
    arguments : sequence
        What it is constructed with. Its parameters are then moved at random.
    inputs : list of ndarray
        What ``forward`` is given copies of.

    Attributes
    ----------
    tensors : list of Tensor
        The inputs, for PyTorch.
    delta : ndarray
        A random gradient of the output.
    """

    def __init__(self, kind, arguments, inputs):
        """Make a reader's module, move its parameters at random, and run it forward.

        ``kind`` : the class, of which anything but a `Module` is `Unfit`; ``arguments`` :
        what it is made with; ``inputs`` : list of arrays, what ``forward`` is given.
        """
        if not isinstance(kind, type) or not issubclass(kind, Module):
            raise Unfit("pass the class itself, a subclass of Module.")
        self.module = run(kind, *arguments)
        rng = np.random.default_rng(3)
        for parameter in run(self.module.parameters).values():
            if parameter.trainable:
                parameter.value += 0.2 * rng.normal(size=parameter.value.shape)
        self.enter(inputs)
        self.delta = rng.normal(size=self.output.shape)

    def enter(self, inputs):
        """Run the same module forward, once more with other inputs.

        Parameters
        ----------
        inputs : list of array
            One for each argument of ``forward``.
        """
        self.tensors = [torch.tensor(x, requires_grad=True) for x in inputs]
        self.output = array(run(self.module.forward, *inputs))

    def forward(self, theirs, mistakes=None):
        """Compare the output with that of a function; raise `Wrong` if it is another.

        ``theirs`` : from the inputs, Tensors, to the right output. ``mistakes`` : dict,
        diagnosis → the output that this mistake gives.
        """
        self.wanted = theirs(*self.tensors)
        compare_named("forward, the output", self.output, self.wanted, mistakes)

    def gradients(self, output=None, of=None):
        """Return PyTorch's gradients of the inputs, or of the tensors ``of``: arrays.

        ``output`` : Tensor, by default the right output of `forward`; its gradient is
        `delta`.
        """
        output = self.wanted if output is None else output
        delta = torch.tensor(self.delta)
        found = torch.autograd.grad(output, of or self.tensors, delta, retain_graph=True)
        return [gradient.numpy() for gradient in found]

    def backward(self, *mistakes):
        """Compare the gradients of the inputs; raise `Wrong` if one is another.

        ``mistakes`` : for each input a dict, diagnosis → the gradient that it gives.
        """
        count = len(self.tensors)
        try:
            got = run(self.module.backward, self.delta)
        except Wrong as wrong:
            if count == 1 or "broadcast" not in str(wrong):
                raise
            raise Unfit(
                f"return one gradient for each input, not a sum ({wrong})"
            ) from wrong
        what = f"{count} arrays from gradient, one for each input"
        got = unpack(got, count, what) if count > 1 else [got]
        names = ("query", "key", "value") if count > 1 else ("input",)
        for name, *one in itertools.zip_longest(names, got, self.gradients(), mistakes):
            compare_named(f"backward, the gradient of the {name}", *one)

    def collected(self, name, layer, tensors):
        """Compare the gradients that a `Linear` has collected with PyTorch's.

        Parameters
        ----------
        name : str
            What messages call the layer.
        layer : Linear
        tensors : pair of Tensor
            Its weight and bias in PyTorch.

        Raises
        ------
        Wrong, Unfit
            If they differ.
        """
        got = np.vstack([layer.weight.grad, layer.bias.grad])
        want = np.vstack(self.gradients(of=tensors))
        mistakes = {
            "the gradients of the weight of {name} are still 0.": 0 * want,
            "{name} collected everything twice: call its backward once.": 2 * want,
        }
        try:
            compare(got, want, mistakes)
        except Unfit as other:
            each = f"backward, what the weight and the bias of {name} collected"
            raise other.reworded(f"{each}: {other}") from None
        except Wrong as wrong:
            raise filled(wrong.diagnosis, {"name": name}) from None


def attend(query, key, value, scale=None, mask=None):
    """Attend in PyTorch, with another scale or a mask of what may be seen.

    ``query`` (..., queries, d_head), ``key`` (..., keys, d_head) and ``value`` (..., keys,
    d_value) are Tensors; ``scale`` is a number, by default 1 / √d_head; ``mask`` is bool
    (queries, keys), True where a key may be seen. Returns (..., queries, d_value).
    """
    scale = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
    scores = query @ key.mT * scale
    if mask is not None:
        scores = scores.masked_fill(~mask, -torch.inf)
    return scores.softmax(-1) @ value


def layer_parameters(head):
    """Return copies of weight and bias of a head's query, key and value layers.

    Parameters
    ----------
    head : Module
        With the linear layers ``query``, ``key`` and ``value``.

    Returns
    -------
    list of three pairs of Tensor
        They want a gradient.
    """
    layers = head.query, head.key, head.value
    parameters = [(layer.weight.value, layer.bias.value) for layer in layers]
    return [[torch.tensor(x, requires_grad=True) for x in pair] for pair in parameters]


def unchanged(x):
    """Return x: positions are not rotated.

    Parameters
    ----------
    x : Tensor of shape (..., tokens, d_head)

    Returns
    -------
    Tensor
        ``x`` itself.
    """
    return x


def rotated_forward_only(x):
    """Rotate on the way forward, and let the gradient pass as if nothing had been.

    Parameters
    ----------
    x : Tensor of shape (..., tokens, d_head)

    Returns
    -------
    Tensor
        Of the shape of ``x``.
    """
    return x + (rotated(x) - x).detach()


def rotated_again_backward(x):
    """Rotate on the way forward, and once more, not back, on the way back.

    Parameters
    ----------
    x : Tensor of shape (..., tokens, d_head)

    Returns
    -------
    Tensor
        Of the shape of ``x``.
    """
    back = rotated(x, [-position for position in range(x.shape[-2])])
    return back + (rotated(x) - back).detach()


def attend_head(layers, inputs, turn=(unchanged, unchanged, unchanged), mask=None):
    """Compute one head in PyTorch, what its three layers give turned or not.

    Parameters
    ----------
    layers : list of (Tensor, Tensor)
        Weight and bias of the query, the key and the value layer.
    inputs : sequence of Tensor of shape (..., tokens, d_model)
        Of query, key and value.
    turn : sequence of callable
        What is done to query, key and value after their layers.
    mask : bool Tensor of shape (queries, keys), optional
        True where a key may be seen.

    Returns
    -------
    Tensor of shape (..., queries, d_head)
    """
    parts = zip(inputs, layers, turn, strict=True)
    each = (turned(x @ weight + bias) for x, (weight, bias), turned in parts)
    return attend(*each, mask=mask)


def descend(given, target, rate, steps, momentum=0.0, turns=((0, 1, 2),), scale=0.5):
    """Move Q, K and V by gradient descent, so that attention comes near a target.

    Parameters
    ----------
    given : sequence of array
        Q, K and V.
    target : array of shape (queries, d_value)
    rate : float
        The learning rate; below 0 the loss is raised.
    steps : int
    momentum : float
    turns : tuple of tuple of int
        Which of the three (0, 1, 2) move at once; one turn after the other is a step.
    scale : float
        Of the scores.

    Returns
    -------
    parts : list of array
        Q, K and V after the steps.
    losses : list of float
        The mean squared error before each step.
    """
    parts = [torch.tensor(part, requires_grad=True) for part in given]
    losses = []
    how = {"lr": abs(rate), "momentum": momentum, "maximize": rate < 0}
    each = [torch.optim.SGD([parts[i] for i in turn], **how) for turn in turns]
    for steps_of in each * steps:
        steps_of.zero_grad()
        loss = F.mse_loss(attend(*parts, scale=scale), torch.tensor(target))
        loss.backward()
        steps_of.step()
        losses.append(loss.item())
    return [part.detach().numpy() for part in parts], losses[:: len(turns)]
