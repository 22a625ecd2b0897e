"""Values as JSON, both ways: what comes out of a sandbox is never unpickled.

Numbers, text, containers, arrays and tensors arrive by value. A function stays where it is
and arrives as a number; of anything else only the name of its type arrives.
"""

import base64
import json
from collections.abc import Callable, Mapping

import numpy as np
import torch
from safetensors.torch import load, save

CONTAINERS = {"tuple": tuple, "set": set, "list": list}


class Failed(Exception):
    """What is raised here for an error over there."""


def dumps(value: object, keep: Callable[[Callable], int] | None = None) -> str:
    """Write a value; ``keep`` is given each function, and returns its number."""
    return json.dumps(_plain(value, keep))


def _plain(value: object, keep) -> object:
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if value is ...:
        return {"kind": "ellipsis"}
    if isinstance(value, (list, tuple, set, frozenset)):
        kind = next((k for k, c in CONTAINERS.items() if isinstance(value, c)), "set")
        of = [_plain(each, keep) for each in value]
        return of if kind == "list" else {"kind": kind, "of": of}
    if isinstance(value, Mapping):
        pairs = [[_plain(x, keep) for x in pair] for pair in value.items()]
        return {"kind": "dict", "of": pairs}
    if isinstance(value, bytes):
        return {"kind": "bytes", "of": base64.b64encode(value).decode()}
    return _array(value) or _other(value, keep)


def _array(value: object) -> dict | None:
    """Return a tensor, an array or what can be seen as one; None if it cannot."""
    kind = "tensor"
    if not isinstance(value, torch.Tensor):
        if callable(value) or not hasattr(value, "__array__"):
            return None
        kind = "scalar" if isinstance(value, np.generic) else "array"
        value = np.array(value)
        if value.dtype.kind == "U":
            return {"kind": "words", "of": value.tolist()}
        if value.dtype.kind not in "biufc":
            return None
        value = torch.from_numpy(value)
    data = save({"it": value.detach().cpu().contiguous()})
    return {"kind": kind, "of": base64.b64encode(data).decode()}


def _other(value: object, keep) -> dict:
    name = str(getattr(value, "__name__", type(value).__name__))
    if callable(value) and keep:
        return {"kind": "function", "of": keep(value), "name": name}
    return {"kind": "other", "name": type(value).__name__}


def loads(text: str | bytes, held: Callable[[int, str], object] | None = None) -> object:
    """Read a value; ``held`` makes something callable of a function's number and name.

    Raises
    ------
    Failed
        If it tells of an error.
    ValueError, KeyError, TypeError, SafetensorError
        If it is not what `dumps` writes.
    """
    return _value(json.loads(text), held)


def _value(plain: object, held) -> object:  # noqa: C901
    if isinstance(plain, list):
        return [_value(each, held) for each in plain]
    if not isinstance(plain, dict):
        return plain
    match plain["kind"]:
        case "ellipsis":
            return ...
        case "tuple" | "set" as kind:
            return CONTAINERS[kind](_value(each, held) for each in plain["of"])
        case "dict":
            return {_value(k, held): _value(v, held) for k, v in plain["of"]}
        case "words":
            return np.array(plain["of"], dtype=str)
        case "bytes":
            return base64.b64decode(plain["of"])
        case "tensor" | "array" | "scalar" as kind:
            found = load(base64.b64decode(plain["of"]))["it"]
            found = found if kind == "tensor" else found.numpy()
            return found[()] if kind == "scalar" else found
        case "failed":
            raise Failed(str(plain["of"]))
        case "function" if held:
            return held(int(plain["of"]), str(plain["name"]))
    return type(str(plain["name"]), (), {})()
