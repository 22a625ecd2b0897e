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
SIGNS_A_VALUE = 4  # as {"kind": "tuple", "of": [ has, with the comma behind the value


class Failed(Exception):
    """What is raised here for an error over there."""


# --- writing --------------------------------------------------------------------------


def dumps(value: object, keep: Callable[[Callable], int] | None = None) -> str:
    """Write a value as JSON.

    Parameters
    ----------
    value : object
    keep : callable, optional
        Is given each function in it, and returns the int that stands for that. Without it
        only the name of a function's type is written.

    Returns
    -------
    str
        JSON, which `loads` reads.
    """
    return json.dumps(_to_plain(value, keep))


def _to_plain(value: object, keep) -> object:
    """Return a value as JSON can hold it: what JSON lacks is a dictionary with a ``kind``.

    None, bool, int, float and str stay as they are; lists, ranges and views of dicts become
    lists. Kinds are "ellipsis"; "tuple", "set" and "deque", with a list of values as
    ``of``; "dict", with a list of pairs [key, value]; "bytes", with base 64; and those of
    `_array_to_plain` and `_other_to_plain`. Values inside are turned likewise.

    ``keep`` : callable, from a function to the number by which the other side knows it; or
    None.
    """
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if value is ...:
        return {"kind": "ellipsis"}
    if isinstance(value, (list, range, MappingView)):
        return [_to_plain(each, keep) for each in value]
    if isinstance(value, (tuple, set, frozenset, deque)):
        kinds = (
            kind for kind, container in CONTAINERS.items() if isinstance(value, container)
        )
        of = [_to_plain(each, keep) for each in value]
        return {"kind": next(kinds, "set"), "of": of}
    if isinstance(value, Mapping):
        pairs = [[_to_plain(x, keep) for x in pair] for pair in value.items()]
        return {"kind": "dict", "of": pairs}
    if isinstance(value, bytes):
        return {"kind": "bytes", "of": base64.b64encode(value).decode()}
    return _array_to_plain(value, keep) or _other_to_plain(value, keep)


def _array_to_plain(value: object, keep) -> dict | None:
    """Return an array, or what can be seen as one, as a dict with ``kind`` and ``of``.

    Kinds are "tensor" (PyTorch's), "array" and "scalar" (NumPy's), each with a safetensors
    file in base 64 as ``of``; "words", an array of text, with nested lists of str; and
    "objects", with a flat list of values, and with ``shape``. None if the value is no
    array, or of another dtype, such as dates.

    ``keep`` : callable, from a function to the number by which the other side knows it; or
    None.
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
    """Return a tensor as a dict: ``kind``, and ``of``, a safetensors file in base 64.

    The file holds one tensor, "it", dense and on the CPU. ``kind`` says what the value was:
    "tensor", "array" or "scalar".
    """
    value = value.detach()
    if value.layout != torch.strided:
        value = value.to_dense()
    data = save({"it": value.resolve_conj().cpu().contiguous()})
    return {"kind": kind, "of": base64.b64encode(data).decode()}


def _other_to_plain(value: object, keep) -> dict:
    """Return a function as its number, and anything else as the name of its type.

    Both are dicts: ``kind`` "function", the number as ``of``, and the function's ``name``;
    or ``kind`` "other", and the type's ``name``. A function is whatever can be called, also
    a class, or an object with ``__call__``, which often has no name: then its type's name
    is taken.

    ``keep`` : callable, from a function to the number by which the other side knows it; or
    None, and then a function is as anything else.
    """
    # An answer may have called anything its __name__: str makes JSON of it.
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
        Called with the number (int) and the name (str) of a function that stayed where it
        is; returns what stands for it here.

    Returns
    -------
    object
        The value. What `dumps` wrote by the name of its type alone, and without ``held`` a
        function, is an object without attributes, of a new type of that name.

    Raises
    ------
    Failed
        If it tells of an error in the sandbox, or may have more than `MOST_VALUES` values.
        They are estimated before the text is read, by its commas and opening brackets:
        `SIGNS_A_VALUE` of these are taken for a value. Those inside of strings count, too;
        of plain numbers, which have a comma each, four times as many may come.
    ValueError, KeyError, TypeError, SafetensorError
        If it is not what `dumps` writes.
    """
    text = text.encode() if isinstance(text, str) else text
    signs = text.count(b",") + text.count(b"[") + text.count(b"{")
    if signs > SIGNS_A_VALUE * MOST_VALUES:
        raise Failed(f"it has more than {MOST_VALUES:,} values")
    return _from_plain(json.loads(text), held)


def _from_plain(plain: object, held) -> object:
    """Return the value that `_to_plain` made this of.

    Parameters
    ----------
    plain : object
        As JSON gives it. A dict has a ``kind``, which decides how it is read: the name of a
        container, "function", or a key of `_READERS`. Any other kind becomes an object
        without attributes, whose new type is called ``name``.
    held : callable or None
        From the number and the name of a function in the sandbox to one here.
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
    """Return the dict of a plain form, whose ``of`` is a list of pairs [key, value].

    Keys and values are in plain form, too (`_to_plain`). ``held`` : callable or None, from
    the number and the name of a function in the sandbox to one here.
    """
    return {_from_plain(k, held): _from_plain(v, held) for k, v in plain["of"]}


def _read_objects(plain: dict, held) -> np.ndarray:
    """Return the array of objects of a plain form.

    ``plain`` : ``shape``, list of int, and ``of``, the flat list of its values in plain
    form; ``held`` : callable or None, from the number and the name of a function in the
    sandbox to one here.
    """
    array = np.empty(len(plain["of"]), dtype=object)
    for place, each in enumerate(plain["of"]):
        array[place] = _from_plain(each, held)
    return array.reshape(plain["shape"])


def _read_tensor(plain: dict, held) -> torch.Tensor:
    """Return the tensor of a plain form.

    ``plain`` : its ``of`` is a safetensors file in base 64, which holds one tensor, "it";
    ``held``, which other readers need, is not used.
    """
    return load(base64.b64decode(plain["of"]))["it"]


def _read_array(plain: dict, held) -> np.ndarray:
    """Return the array of a plain form.

    ``plain`` : its ``of`` is a safetensors file in base 64, which holds one tensor, "it";
    ``held``, which other readers need, is not used.
    """
    return _read_tensor(plain, held).numpy()


def _raise(plain: dict, held) -> None:
    """Raise `Failed`: the sandbox reports an error.

    ``plain`` : its ``of`` is the message; ``held``, which other readers need, is not used.
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
