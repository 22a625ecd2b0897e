"""Values as JSON, both ways: what comes out of a sandbox is never unpickled.

Numbers, text, containers, arrays and tensors arrive by value. A function stays where it is
and arrives as a number; of anything else only the name of its type arrives.
"""

import base64
import json
from collections.abc import Callable, Mapping

import numpy as np
import torch

CONTAINERS = {"tuple": tuple, "set": set, "list": list}
DTYPES = {str(d): d for d in vars(torch).values() if isinstance(d, torch.dtype)}


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
    kind = "scalar" if isinstance(value, np.generic) else "array"
    if isinstance(value, torch.Tensor):
        value = value.detach().cpu().contiguous()
        kind, dtype = "tensor", str(value.dtype)
        data = (
            value.reshape(-1).view(torch.uint8).numpy().tobytes() if value.numel() else b""
        )
    elif not callable(value) and hasattr(value, "__array__"):
        value = np.asarray(value)
        data, dtype = value.tobytes(), value.dtype.str
        if value.dtype.kind == "U":
            return {"kind": "words", "of": value.tolist()}
        if value.dtype.kind not in "biufc":
            return None
    else:
        return None
    of = base64.b64encode(data).decode()
    return {"kind": kind, "dtype": dtype, "shape": list(value.shape), "of": of}


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
    ValueError, KeyError, TypeError
        If it is not what `dumps` writes.
    """
    return _value(json.loads(text), held)


def _value(plain: object, held) -> object:
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
        case "tensor":
            data, dtype = bytearray(base64.b64decode(plain["of"])), DTYPES[plain["dtype"]]
            flat = (
                torch.frombuffer(data, dtype=dtype) if data else torch.empty(0, dtype=dtype)
            )
            return flat.reshape(plain["shape"])
        case "array" | "scalar" as kind:
            data, dtype = bytearray(base64.b64decode(plain["of"])), np.dtype(plain["dtype"])
            found = np.frombuffer(data, dtype).reshape(plain["shape"])
            return found[()] if kind == "scalar" else found
        case "failed":
            raise Failed(str(plain["of"]))
        case "function" if held:
            return held(int(plain["of"]), str(plain["name"]))
    return type(str(plain["name"]), (), {})()
