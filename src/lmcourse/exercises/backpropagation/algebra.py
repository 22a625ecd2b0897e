"""Checks of the parts: transpose, a number, the product of two matrices."""

import numpy as np
import torch

from lmcourse.exercises import compare, exercise, run
from lmcourse.exercises.backpropagation.oracle import passes, several, wanted_by


@exercise("backpropagation.transpose")
def transpose(answer):
    """Compare with swapped axes, for one text and for a batch."""
    rng = np.random.default_rng(0)
    for shape in ((3, 4), (2, 3, 4), (3, 4, 4)):
        x = rng.normal(size=shape)
        _, output, delta, back = passes(answer, (), [x])
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
    module, output, delta, back = passes(answer, (0.7, True), [x])
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
        _, output, delta, back = passes(answer, (), [a, b])
        want, wanted = wanted_by(torch.matmul, [a, b], delta)
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
        g_a, g_b = several(back(), 2)
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
