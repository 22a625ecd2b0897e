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
    got, want : array or Tensor
        The reader's and the right one.
    mistakes : dict of str to array or Tensor, optional
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
        The answer, which should be a subclass of our NumPy `Module`.
    arguments : sequence
        What it is constructed with. Its parameters are then moved at random.
    inputs : list of ndarray
        What ``forward`` is given copies of.

    Attributes
    ----------
    module : Module
        The reader's module.
    tensors : list of Tensor
        The inputs, for PyTorch.
    output : ndarray
        What the module returned for them.
    delta : ndarray
        A random gradient of the output, from which the backward pass starts.
    wanted : Tensor
        The right output; `forward` sets it.
    """

    def __init__(self, kind, arguments, inputs):
        """Make a reader's module, move its parameters at random, and run it forward.

        The module is kept in ``module``, its output in ``output``, and a random gradient of
        that output, from which the backward pass starts, in ``delta``.

        Parameters
        ----------
        kind : type
            The reader's class; anything but a subclass of our NumPy `Module` is `Unfit`.
        arguments : sequence
            What it is made with.
        inputs : list of array
            What ``forward`` is given copies of.
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

        ``tensors`` become the inputs as Tensors for PyTorch, ``output`` what the module
        returns.

        Parameters
        ----------
        inputs : list of array
            One for each argument of ``forward``.
        """
        self.tensors = [torch.tensor(x, requires_grad=True) for x in inputs]
        self.output = array(run(self.module.forward, *inputs))

    def forward(self, theirs, mistakes=None):
        """Compare the module's output with that of a function in PyTorch.

        The function's output is kept in ``wanted``, for its gradients.

        Parameters
        ----------
        theirs : callable
            From the inputs, Tensors, to the right output.
        mistakes : dict of str to Tensor, optional
            Diagnosis → the output that this mistake gives.

        Raises
        ------
        Wrong
            If the module's output is another.
        """
        self.wanted = theirs(*self.tensors)
        compare_named("forward, the output", self.output, self.wanted, mistakes)

    def gradients(self, output=None, of=None):
        """Return PyTorch's gradients, by default those of the right output by the inputs.

        Parameters
        ----------
        output : Tensor, optional
            By default the right output, which `forward` kept. Its own gradient is
            ``delta``.
        of : list of Tensor, optional
            By what it is differentiated; by default the inputs.

        Returns
        -------
        list of array
            One of the shape of each.
        """
        output = self.wanted if output is None else output
        delta = torch.tensor(self.delta)
        gradients = torch.autograd.grad(
            output, of or self.tensors, delta, retain_graph=True
        )
        return [gradient.numpy() for gradient in gradients]

    def backward(self, *mistakes):
        """Compare the module's gradients with PyTorch's, given ``delta``.

        ``delta`` is the random gradient of the output that the module's ``backward`` is
        called with. There is one gradient for each input; three inputs are query, key and
        value.

        Parameters
        ----------
        *mistakes : dict of str to array or Tensor
            For each input, in their order: diagnosis → the gradient of this input that the
            mistake gives. Those of the last inputs may be left out.

        Raises
        ------
        Wrong
            If a gradient is another, or missing; inputs are compared in their order.
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
            Its ``weight`` (d_in, d_out) and ``bias`` each have their gradient in ``grad``.
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
    """Return what attention gives in PyTorch, with another scale or a mask.

    Parameters
    ----------
    query : Tensor of shape (..., queries, d_head)
    key : Tensor of shape (..., keys, d_head)
    value : Tensor of shape (..., keys, d_value)
    scale : float, optional
        By which the scores are multiplied, by default 1 / √d_head.
    mask : bool Tensor of shape (queries, keys), optional
        True where a query may attend.

    Returns
    -------
    Tensor of shape (..., queries, d_value)
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
        With the linear layers ``query``, ``key`` and ``value``, each with ``weight`` and
        ``bias``, whose ``value`` is an array.

    Returns
    -------
    list of three pairs of Tensor
        (weight, bias), of shape (d_model, d_head) and the bias's. PyTorch keeps gradients
        for them.
    """
    layers = head.query, head.key, head.value
    parameters = [(layer.weight.value, layer.bias.value) for layer in layers]
    return [[torch.tensor(x, requires_grad=True) for x in pair] for pair in parameters]


def unchanged(x):
    """Return x itself: what `attend_head` does to a vector that is not rotated.

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
    """Rotate by positions on the way forward, but let the gradient pass unrotated.

    It is a known mistake of backward passes of rotary positions.

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
    """Rotate by positions on the way forward, and the gradient once more, not back.

    It is a known mistake of backward passes of rotary positions.

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
    """Compute one head of attention in PyTorch; query, key and value may be rotated.

    Parameters
    ----------
    layers : list of (Tensor, Tensor)
        Weight (d_model, d_head) and bias of the query, the key and the value layer.
    inputs : sequence of Tensor of shape (..., tokens, d_model)
        Of query, key and value.
    turn : sequence of callable
        What is done to query, key and value after their layers, such as `rotated`; each
        takes and returns a Tensor (..., tokens, d_head). By default nothing.
    mask : bool Tensor of shape (queries, keys), optional
        True where a query may attend.

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
        Q (queries, d), K (keys, d) and V (keys, d_value).
    target : array of shape (queries, d_value)
    rate : float
        The learning rate; below 0 the loss is raised.
    steps : int
    momentum : float
        Of PyTorch's SGD: which part of the last step's change is made again.
    turns : sequence of sequence of int
        Which of the three (0 is Q, 1 is K, 2 is V) move at once; all turns, one after the
        other, are a step.
    scale : float
        By which the scores are multiplied.

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
    optimizers = [torch.optim.SGD([parts[i] for i in turn], **how) for turn in turns]
    for optimizer in optimizers * steps:
        optimizer.zero_grad()
        loss = F.mse_loss(attend(*parts, scale=scale), torch.tensor(target))
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return [part.detach().numpy() for part in parts], losses[:: len(turns)]
