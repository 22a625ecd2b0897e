"""Nonsense of the type and shape of a right answer, and the same in another container."""

import copy

import numpy as np
import pandas as pd
import torch
from torch import nn

WAYS = ("nothing", "noise", "moved")  # only zeros; any numbers; the right ones elsewhere
LETTERS = "qzxvkj" * 20


def nonsense(answer, way):
    """Return what looks like a right answer and is none.

    Parameters
    ----------
    answer : object
        A right one. Of a function or a class another is made, whose results are nonsense.
    way : str
        One of `WAYS`.
    """
    match answer:
        case type():
            return _class(answer, lambda returned: nonsense(returned, way))
        case nn.Module():
            return _module(answer, way)
        case pd.DataFrame() | pd.Series():
            numbers = _numbers(answer.to_numpy(), way)
            axes = dict(zip(("index", "columns"), answer.axes, strict=False))
            return type(answer)(numbers, **axes)
        case torch.Tensor():
            return torch.as_tensor(_numbers(answer.detach().numpy(), way))
        case np.ndarray() | np.generic() | bool() | int() | float():
            numbers = _numbers(np.asarray(answer), way)
            return numbers if isinstance(answer, np.ndarray) else type(answer)(numbers)
        case str():
            texts = {"nothing": "", "noise": LETTERS[: len(answer)], "moved": answer[::-1]}
            return texts[way] if texts[way] != answer else answer + "q"
        case dict():
            return {key: nonsense(value, way) for key, value in answer.items()}
        case list() | tuple():
            plain = answer and all(type(x) in (int, float) for x in answer)
            numbers = _numbers(np.asarray(answer), way).tolist() if plain else answer
            return type(answer)(numbers if plain else [nonsense(x, way) for x in answer])
    if callable(answer):
        return lambda *inputs, **named: nonsense(answer(*inputs, **named), way)
    return answer


def _numbers(right, way):
    """Return an array of the same type and shape with other numbers in it."""
    rng = np.random.default_rng(7)
    if right.dtype == bool:
        noise = rng.random(right.shape) < 0.5
        other = {"nothing": np.zeros_like(right), "noise": noise, "moved": ~right}[way]
        return other if (other != right).any() else ~right
    largest = np.max(np.abs(right), where=np.isfinite(right), initial=0)
    if way == "nothing":
        other = np.zeros_like(right)
    elif way == "noise" and right.dtype.kind in "iu":
        other = rng.integers(0, int(largest) + 2, right.shape)
    elif way == "noise":
        other = rng.normal(size=right.shape) * (1 + largest)
    else:
        other = np.roll(right, 1) if right.size > 1 else right + 1
    other = np.asarray(other).astype(right.dtype)
    return other + 1 if np.array_equal(other, right) else other


def _class(kind, change):
    """Return a class whose results are changed on the way out."""
    names = ["forward"] if issubclass(kind, nn.Module) else ["compute", "gradient"]

    def changed(name):
        return lambda self, *inputs: change(getattr(kind, name)(self, *inputs))

    return type("Answer", (kind,), {name: changed(name) for name in names})


def _module(module, way):
    other = copy.deepcopy(module)
    for weight in other.parameters():
        weight.data = nonsense(weight.data, way)
    return other


def contained(answer):
    """Return the same answer in other containers: arrays for tensors, lists for tuples."""
    match answer:
        case type() | nn.Module() | str() | bool():
            return answer
        case dict():
            return {key: contained(value) for key, value in answer.items()}
        case torch.Tensor():
            return answer.detach().numpy()
        case np.ndarray() | np.generic():
            return answer.tolist() if answer.ndim == 0 else torch.as_tensor(answer.copy())
        case int() | float():
            return np.asarray(answer)[()]
        case list():
            return tuple(map(contained, answer))
        case tuple():
            return list(map(contained, answer))
    if callable(answer):
        return lambda *inputs, **named: contained(answer(*inputs, **named))
    return answer
