"""The check of a norm around a sum, whose gradient is off."""

import numpy as np
import torch
import torch.nn.functional as F

from lmcourse.exercises import Wrong, exercise
from lmcourse.exercises.backpropagation.oracle import Passes
from lmcourse.numpy_nn.layers import Linear


@exercise("backpropagation.norm", kind="spot the bug")
def norm(answer):
    """Compare with PyTorch's norm of the sum; then the layer inside must learn too."""
    x = 1 + np.random.default_rng(10).normal(size=(2, 3, 4))
    passes = Passes(answer, (Linear(4, 4, np.random.default_rng(3)), 4), [x])
    inner = getattr(passes.module, "module", None)
    if not isinstance(inner, Linear):
        raise Wrong("keep the layer that is skipped in self.module.")
    weight = torch.tensor(inner.weight.value, requires_grad=True)
    bias = torch.tensor(inner.bias.value)
    x = passes.tensors[0]
    total = x + x @ weight + bias
    deviation = (total.var(-1, correction=0, keepdim=True) + 1e-5).sqrt()

    def with_row(row):
        """Return what the backward pass gives if `row` stands where y belongs."""
        scale = 1 / deviation
        d, y = torch.tensor(passes.delta), row * scale
        d = scale * (d - d.mean(-1, keepdim=True) - y * (d * y).mean(-1, keepdim=True))
        return (d + d @ weight.T).detach().numpy()

    passes.forward(lambda x: F.layer_norm(total, (4,)))
    right = with_row(total - total.mean(-1, keepdim=True))
    through = passes.gradients(of=[total])[0]
    mistakes = {
        "the input x stands where the normalised sum belongs: what was normalised is "
        "x + f(x), centred and divided.": with_row(x),
        "the input is centred now, but it is still the input: the norm saw x + f(x).": (
            with_row(x - x.mean(-1, keepdim=True))
        ),
        "the sum is right, but it is not centred: the norm took the mean away.": (
            with_row(total)
        ),
        "the sum is centred, but not divided: y is the row after both.": with_row(
            (total - total.mean(-1, keepdim=True)) * deviation
        ),
        "what goes past the module is missing: add the norm's own gradient.": (
            right - through
        ),
        "what goes through the module is missing: call its backward.": through,
    }
    passes.backward(mistakes)
