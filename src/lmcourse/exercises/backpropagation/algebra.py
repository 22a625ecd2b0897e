"""Checks of the parts: transpose, a number, the product of two matrices."""

import numpy as np
import torch

from lmcourse.exercises import compare, exercise, run
from lmcourse.exercises.backpropagation.oracle import Passes


@exercise("backpropagation.transpose")
def transpose(answer):
    """Compare with swapped axes, for one text and for a batch."""
    for shape in ((3, 4), (2, 3, 4), (3, 4, 4)):
        x = np.random.default_rng(0).normal(size=shape)
        passes = Passes(answer, (), [x])
        forward = {
            "forward, all axes are reversed, the batch too: `.T` does that. Only the last "
            "two may change places.": x.T,
            "forward, the first two axes change places; in a batch the first is the "
            "batch.": np.swapaxes(x, 0, 1),
            "forward, the shape is right, the numbers are not: reshape keeps their order "
            "in memory and does not transpose.": x.reshape(x.mT.shape),
            "forward, the input comes back as it was.": x,
        }
        passes.forward(lambda x: x.mT, forward)
        delta = passes.delta
        backward = {
            "backward, delta is handed on as it came; it has the shape of the output and "
            "must get that of the input.": delta,
            "backward, all axes of delta are reversed, the batch too.": delta.T,
            "backward, reshape gives delta the right shape but mixes up its entries.": (
                delta.reshape(shape)
            ),
        }
        passes.backward(backward)


@exercise("backpropagation.scalar_product")
def scalar_product(answer):
    """Compare with the product and its three derivatives."""
    x = np.random.default_rng(1).normal(size=(2, 3, 4))
    passes = Passes(answer, (0.7, True), [x])
    number, delta = passes.module.scale, passes.delta
    scale, total = number.value, (delta * x).sum()
    passes.forward(
        lambda x: float(scale) * x,
        {"forward, the input is divided by the number.": x / scale},
    )
    backward = {
        "backward, delta must be multiplied by the number too.": delta,
        "backward, delta is multiplied by the input; that belongs to the gradient of the "
        "number.": delta * x,
        "backward, delta is divided by the number.": delta / scale,
    }
    passes.backward(backward)
    mistakes = {
        "self.scale.grad is still 0: the number is a parameter and has a gradient "
        "too.": 0.0,
        "the gradient of the number is averaged over the entries; it takes part in each of "
        "them, so the parts are summed.": total / x.size,
        "the gradient of the number adds up delta alone; each entry's part is delta times "
        "the input.": delta.sum(),
        "the gradient of the number has the output in it where the input belongs.": (
            scale * total
        ),
    }
    compare(number.grad, total, mistakes)
    run(passes.module.backward, delta)
    again = (
        "a second backward pass overwrites the gradient of the number: add to it with +=."
    )
    compare(number.grad, 2 * total, {again: total})


@exercise("backpropagation.dot_product")
def dot_product(answer):
    """Compare with autograd; square matrices let a wrong transpose pass the shapes."""
    rng = np.random.default_rng(2)
    for shapes in [((3, 3), (3, 3)), ((2, 3, 3), (2, 3, 3))]:
        a, b = (rng.normal(size=shape) for shape in shapes)
        passes = Passes(answer, (), [a, b])
        forward = {
            "forward, the two are multiplied entry by entry; the product of matrices is "
            "written @.": a * b,
            "forward, the order is wrong: a comes first.": b @ a,
            "forward, b is transposed; leave that to its own module.": a @ b.mT,
        }
        passes.forward(torch.matmul, forward)
        delta, d_b = passes.delta, passes.gradients()[1]
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
        passes.backward(first, second)
    passes = Passes(answer, (), [rng.normal(size=(4, 2, 5)), rng.normal(size=(4, 5, 3))])
    passes.forward(torch.matmul)
    passes.backward()
