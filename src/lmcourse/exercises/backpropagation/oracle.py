"""Running a reader's module forward and back, and the same in PyTorch."""

import math

import numpy as np
import torch

from lmcourse.exercises import Wrong, run
from lmcourse.numpy_nn.core import Module


def made(kind, *arguments):
    """Construct a reader's module."""
    if not isinstance(kind, type) or not issubclass(kind, Module):
        raise Wrong("pass the class itself, a subclass of Module.")
    return run(kind, *arguments)


def passes(kind, arguments, inputs, seed=3):
    """Run a reader's module forward on copies of the inputs, ready to go back.

    Returns
    -------
    module, output, delta, back
        ``back()`` runs the backward pass. It comes after the output was judged, since a
        forward pass that skips a part makes the way back stop there.
    """
    module = made(kind, *arguments)
    rng = np.random.default_rng(seed)
    for parameter in module.parameters().values():
        if parameter.trainable:
            parameter.value += 0.2 * rng.normal(size=parameter.value.shape)
    output = run(module.forward, *[x.copy() for x in inputs])
    delta = rng.normal(size=np.shape(output))
    return module, output, delta, lambda: run(module.backward, delta.copy())


def wanted_by(function, inputs, delta):
    """Return PyTorch's output and gradients of the inputs; None if delta does not fit."""
    tensors = [torch.tensor(x, requires_grad=True) for x in inputs]
    output = function(*tensors)
    if output.shape != np.shape(delta):
        return output.detach().numpy(), None
    output.backward(torch.tensor(delta))
    return output.detach().numpy(), [tensor.grad.numpy() for tensor in tensors]


def several(gradients, number):
    """Check that a backward pass returned so many gradients."""
    if not isinstance(gradients, (tuple, list)) or len(gradients) != number:
        raise Wrong(f"gradient should return {number} arrays, one for each input.")
    return gradients


def attend(query, key, value, scale=None, mask=None):
    """Attend in PyTorch, with another scale or a mask of what may be seen."""
    scale = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
    scores = query @ key.mT * scale
    if mask is not None:
        scores = scores.masked_fill(~mask, -torch.inf)
    return scores.softmax(-1) @ value
