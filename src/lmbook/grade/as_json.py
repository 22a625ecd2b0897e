"""Values as JSON, both ways: what comes out of a sandbox is never unpickled.

Numbers, text, containers, arrays and tensors arrive by value. A function stays where it is
and arrives as a number; of anything else only the name of its type arrives.
"""

import base64
import json
from collections import deque
from collections.abc import Callable, Mapping, MappingView

import numpy as np
import torch
from safetensors.torch import load, save

CONTAINERS = {"tuple": tuple, "set": set, "deque": deque}
MOST_VALUES = 10**6  # values in one text: each takes far more memory than its text does


class Failed(Exception):
    """What is raised here for an error over there."""


# --- writing --------------------------------------------------------------------------


def dumps(value: object, keep: Callable[[Callable], int] | None = None) -> str:
    """Write a value as JSON.

    Parameters
    ----------
    value : object
    keep : callable, optional
        Is given each function in it, and returns the number that stands for that.
    """
    return json.dumps(_to_plain(value, keep))


def _to_plain(value: object, keep) -> object:
    """Return a value as JSON can hold it: what JSON lacks is a dictionary with a ``kind``.

    ``keep`` : callable, from a function to the number by which the other side knows it.
    """
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if value is ...:
        return {"kind": "ellipsis"}
    if isinstance(value, (list, range, MappingView)):
        return [_to_plain(each, keep) for each in value]
    if isinstance(value, (tuple, set, frozenset, deque)):
        kinds = (kind for kind, made in CONTAINERS.items() if isinstance(value, made))
        of = [_to_plain(each, keep) for each in value]
        return {"kind": next(kinds, "set"), "of": of}
    if isinstance(value, Mapping):
        pairs = [[_to_plain(x, keep) for x in pair] for pair in value.items()]
        return {"kind": "dict", "of": pairs}
    if isinstance(value, bytes):
        return {"kind": "bytes", "of": base64.b64encode(value).decode()}
    return _array_to_plain(value, keep) or _other_to_plain(value, keep)


def _array_to_plain(value: object, keep) -> dict | None:
    """Return an array, or what can be seen as one, as a dict with a ``kind``.

    Kinds are "tensor", "array", "scalar", "words" and "objects". None if it is no array.
    ``keep`` : callable, from a function to the number by which the other side knows it.
    """
    if isinstance(value, torch.Tensor):
        return _tensor_to_plain("tensor", value)
    if callable(value) or not hasattr(value, "__array__"):
        return None
    kind = "scalar" if isinstance(value, np.generic) else "array"
    value = np.array(value)
    if value.dtype.kind == "U":
        return {"kind": "words", "of": value.tolist()}
    if value.dtype.kind == "O":
        of = [_to_plain(each, keep) for each in value.ravel().tolist()]
        return {"kind": "objects", "shape": list(value.shape), "of": of}
    if value.dtype in (np.longdouble, np.clongdouble):  # PyTorch has none
        value = value.astype(complex if value.dtype.kind == "c" else float)
    if value.dtype.kind not in "biufc":
        return None
    return _tensor_to_plain(kind, torch.from_numpy(value))


def _tensor_to_plain(kind: str, value: torch.Tensor) -> dict:
    """Return a tensor as a safetensors file in base 64; ``kind`` says what it was."""
    value = value.detach()
    if value.layout != torch.strided:
        value = value.to_dense()
    data = save({"it": value.resolve_conj().cpu().contiguous()})
    return {"kind": kind, "of": base64.b64encode(data).decode()}


def _other_to_plain(value: object, keep) -> dict:
    """Return a function as its number, and anything else as the name of its type.

    Both are dicts with a ``kind``. ``keep`` : callable, from a function to the number by
    which the other side knows it; or None.
    """
    name = str(getattr(value, "__name__", type(value).__name__))
    if callable(value) and keep:
        return {"kind": "function", "of": keep(value), "name": name}
    return {"kind": "other", "name": type(value).__name__}


# --- reading --------------------------------------------------------------------------


def loads(text: str | bytes, held: Callable[[int, str], object] | None = None) -> object:
    """Read a value that `dumps` wrote.

    Parameters
    ----------
    text : str or bytes
    held : callable, optional
        Makes something callable of the number and the name of a function that stayed where
        it is.

    Raises
    ------
    Failed
        If it tells of an error, or has more values than anybody needs.
    ValueError, KeyError, TypeError, SafetensorError
        If it is not what `dumps` writes.
    """
    text = text.encode() if isinstance(text, str) else text
    if text.count(b",") + text.count(b"[") + text.count(b"{") > 4 * MOST_VALUES:
        raise Failed(f"it has more than {MOST_VALUES:,} values")
    return _from_plain(json.loads(text), held)


def _from_plain(plain: object, held) -> object:
    """Return the value that `_to_plain` made this of.

    ``held`` : callable, from the number and the name of a function over there to one here.
    """
    if isinstance(plain, list):
        return [_from_plain(each, held) for each in plain]
    if not isinstance(plain, dict):
        return plain
    kind = plain["kind"]
    if kind in CONTAINERS:
        return CONTAINERS[kind](_from_plain(each, held) for each in plain["of"])
    if kind == "function" and held:
        return held(int(plain["of"]), str(plain["name"]))
    if kind in _READERS:
        return _READERS[kind](plain, held)
    return type(str(plain["name"]), (), {})()


def _read_dict(plain: dict, held) -> dict:
    """Return the dict of a plain form, whose ``of`` has its pairs.

    ``held`` : callable, from the number and the name of a function over there to one here.
    """
    return {_from_plain(k, held): _from_plain(v, held) for k, v in plain["of"]}


def _read_objects(plain: dict, held) -> np.ndarray:
    """Return the array of objects of a plain form, which has ``shape`` and ``of``, a list.

    ``held`` : callable or None, from the number and the name of a function over there to
    one here.
    """
    array = np.empty(len(plain["of"]), dtype=object)
    for place, each in enumerate(plain["of"]):
        array[place] = _from_plain(each, held)
    return array.reshape(plain["shape"])


def _read_tensor(plain: dict, held) -> torch.Tensor:
    """Return the tensor of a plain form: ``of`` is a safetensors file in base 64.

    It holds one tensor, "it". ``held``, which other readers need, is not used.
    """
    return load(base64.b64decode(plain["of"]))["it"]


def _read_array(plain: dict, held) -> np.ndarray:
    """Return the array of a plain form.

    ``plain`` : ``of`` is a safetensors file in base 64; ``held`` is not used.
    """
    return _read_tensor(plain, held).numpy()


def _raise(plain: dict, held) -> None:
    """Raise `Failed`, with ``of`` of the plain form: over there this was an error.

    ``held`` is not used.
    """
    raise Failed(str(plain["of"]))


_READERS = {
    "ellipsis": lambda plain, held: ...,
    "dict": _read_dict,
    "objects": _read_objects,
    "words": lambda plain, held: np.array(plain["of"], dtype=str),
    "bytes": lambda plain, held: base64.b64decode(plain["of"]),
    "tensor": _read_tensor,
    "array": _read_array,
    "scalar": lambda plain, held: _read_array(plain, held)[()],
    "failed": _raise,
}
