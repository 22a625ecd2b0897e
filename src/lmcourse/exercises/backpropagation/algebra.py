"""Checks of the parts: a number used twice, the product of two matrices."""

import numpy as np
import torch

from lmcourse.exercises import exercise, letter
from lmcourse.exercises.backpropagation.oracle import Passes


@exercise("backpropagation.used_twice", kind="predict")
def used_twice(answer):
    """A change of a number that is used twice goes both ways."""
    told = {
        "a": "the second way is there as well: move x a little, and both factors move.",
        "b": None,
        "c": "nothing is averaged: each way adds its effect in full.",
        "d": "factors are multiplied along one way; the effects of two ways add up.",
    }
    letter(answer, told)


@exercise("backpropagation.dot_product")
def dot_product(answer):
    """Compare with autograd; equal sizes let a wrong transpose pass the shapes."""
    rng = np.random.default_rng(2)
    for shape in [(3, 3), (3, 3, 3)]:
        a, b = rng.normal(size=(2, *shape))
        passes = Passes(answer, (), [a, b])
        forward = {
            "forward, the two are multiplied entry by entry; the product of matrices is "
            "written @.": a * b,
            "forward, the order is wrong: a comes first.": b @ a,
            "forward, b is transposed; leave that to its own module.": a @ b.mT,
        }
        passes.forward(torch.matmul, forward)
        delta, d_b = passes.delta, passes.gradients()[1]
        batch = (
            "`.T` reverses all axes, the batch's too: right for one matrix, wrong for a "
        )
        batch += "batch. Swap the last two only, with `.mT`."
        first = {
            **({f"in the gradient of a, {batch}": delta @ b.T} if a.ndim > 2 else {}),
            "the gradient of a lacks a transpose: b must be transposed.": delta @ b,
            "the gradients are swapped: that of a comes first.": d_b,
            "in the gradient of a, delta belongs on the left.": b.mT @ delta,
        }
        second = {
            **({f"in the gradient of b, {batch}": a.T @ delta} if a.ndim > 2 else {}),
            "the gradient of b lacks a transpose: a must be transposed.": a @ delta,
            "in the gradient of b, delta stands on the wrong side.": delta @ a.mT,
            "the gradient of b is transposed.": d_b.mT,
        }
        passes.backward(first, second)
    passes = Passes(answer, (), [rng.normal(size=(4, 2, 5)), rng.normal(size=(4, 5, 3))])
    passes.forward(torch.matmul)
    passes.backward()
