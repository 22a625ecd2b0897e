"""Answers that no exercise asks for: whatever they are or do, a check has words for it."""

import decimal
import random
import sys

import numpy as np
import pandas as pd
import torch

from lmcourse.numpy_nn.core import Module


class Hostile:
    """Raise whenever it is looked at, as far as Python lets it."""

    def _refuse(self, *_):
        raise RuntimeError("do not touch")

    __eq__ = __len__ = __array__ = __iter__ = __bool__ = __repr__ = __str__ = _refuse
    __float__ = __int__ = __index__ = __getitem__ = __getattr__ = _refuse
    __hash__ = None


class Unprintable(Exception):
    def __str__(self):
        raise RuntimeError("no text")


class Leaving(Exception):
    """An error that leaves Python when it is printed."""

    def __str__(self):
        raise SystemExit(2)


class Grim(str):
    """Raise such an error whenever it is looked at."""

    def _refuse(self, *_):
        raise Leaving

    strip = lower = __float__ = __eq__ = __len__ = __getattribute__ = _refuse
    __hash__ = None


class Failing:
    """A class whose methods raise."""

    def __init__(self, *args):
        pass

    def forward(self, *args):
        raise RuntimeError("forward")

    compute = gradient = backward = __call__ = forward


class Bare(Module):
    """A module that does nothing with what it is given."""

    def __init__(self, *args):
        pass

    def compute(self, *inputs):
        return inputs[0]


class Exiting(Bare):
    def compute(self, *inputs):
        sys.exit(3)


class Scalar(Bare):
    def compute(self, *inputs):
        return 0.5

    def gradient(self, delta):
        return 0.5


class HostileModule(Bare):
    def compute(self, *inputs):
        return Hostile()

    parameters = None


def gives(value):
    """Return a function that takes anything and gives ``value``."""

    def answer(*inputs):
        return value

    return answer


def raises(error):
    def answer(*inputs):
        raise error

    return answer


def for_ever(*inputs):
    return for_ever(*inputs)


def counting(*inputs):
    number = 0
    while True:
        yield number
        number += 1


def spoiling(*inputs):
    """Change all that can be changed in the inputs, then return nothing of use."""
    for given in inputs:
        if isinstance(given, torch.Tensor | np.ndarray):
            given[...] = 0
        elif isinstance(given, list | dict | set):
            given.clear()
    return "done"


def restless(*inputs):
    """Change what belongs to the whole notebook."""
    random.seed(0)
    np.random.seed(0)  # noqa: NPY002
    torch.manual_seed(0)
    torch.set_default_dtype(torch.float64)
    torch.set_grad_enabled(False)
    torch.set_printoptions(precision=1)
    np.set_printoptions(precision=1)
    np.seterr(all="raise")
    return "done"


nested = []
nested.append(nested)

EXOTIC = {
    "nothing": None,
    "dots": ...,
    "text": "text",
    "a number": 5,
    "a type": int,
    "a hostile object": Hostile(),
    "returns nothing": gives(None),
    "returns a scalar": gives(0.123456),
    "returns text": gives("words"),
    "returns texts": gives(["a", "b"]),
    "returns tuples of texts": gives(("a", "b")),
    "returns complex": gives(np.full((2, 3), 1j)),
    "returns an object array": gives(np.array([{}, None], dtype=object)),
    "returns a dict": gives({"a": 1}),
    "returns a set": gives({1, 2}),
    "returns ragged lists": gives([[1.0], [2.0, 3.0]]),
    "returns two of different kinds": gives((["a"], Hostile())),
    "returns hostile objects": gives([Hostile()] * 2),
    "returns a hostile object": gives(Hostile()),
    "returns a generator": counting,
    "returns two generators": lambda *inputs: (counting(), counting()),
    "returns a huge range": gives(range(10**12)),
    "returns a huge number": gives(10**5000),
    "returns a huge view": gives(np.broadcast_to(0.0, (10**7, 10**7))),
    "returns a list in itself": gives(nested),
    "returns frames": gives(pd.DataFrame({"a": ["x", "y"]})),
    "returns a decimal": gives(decimal.Decimal("0.1")),
    "returns NaN": gives(float("nan")),
    "returns infinity": gives(torch.tensor(torch.inf)),
    "returns a tensor with a gradient": gives(torch.ones(2, 3, requires_grad=True) * 2),
    "returns two tensors with a gradient": gives(
        (torch.ones(4, 2, requires_grad=True),) * 2
    ),
    "returns a sparse tensor": gives(torch.eye(3).to_sparse()),
    "returns a tensor without numbers": gives(torch.ones(2, 3, device="meta")),
    "returns bfloat16": gives(torch.full((2, 3), 0.3, dtype=torch.bfloat16)),
    "returns itself": lambda *inputs: for_ever,
    "exits": lambda *inputs: sys.exit(0),
    "raises": raises(ValueError("no")),
    "raises a bare exception": raises(BaseException("no")),
    "raises what cannot be printed": raises(Unprintable()),
    "raises what leaves Python when printed": raises(Leaving()),
    "a text that raises it": Grim("b"),
    "returns such a text": gives(Grim("b")),
    "raises a long text": raises(ValueError("x" * 10**6)),
    "calls itself for ever": for_ever,
    "needs another argument": lambda *, never: 1,
    "spoils its inputs": spoiling,
    "is restless": restless,
    "a class whose methods raise": Failing,
    "a module that does nothing": Bare,
    "a module that exits": Exiting,
    "a module of scalars": Scalar,
    "a module of hostile outputs": HostileModule,
    "an instance": Bare(),
}
