"""Weights and settings from files that anybody may have written, or a full disk cut.

``safetensors`` refuses a header that does not fit its file (lengths, offsets, overlaps,
depth). Here is what it cannot know: which tensors there should be, and that weights are
finite numbers. Nothing is allocated before a file's header has been checked.
"""

import json
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open

__all__ = ["parse_json", "read_header", "read_json", "read_weights"]

DTYPES = ("F32", "F16", "BF16")
LONGEST = 2**24  # bytes of JSON; a vocabulary of 200,000 pieces fits


def parse_json(text, path):
    """Return what a JSON object says, as a dict.

    Parameters
    ----------
    text : str or bytes
    path : path
        Where it stood, for the error.

    Raises
    ------
    ValueError
        If it is no JSON object, is nested too deeply, names a key twice, or holds NaN or
        Infinity, which are no JSON.
    """

    def once(pairs):
        found = dict(pairs)
        if len(found) < len(pairs):
            names = [name for name, _ in pairs]
            twice = next(name for name in names if names.count(name) > 1)
            raise ValueError(f"{twice!r} stands in it twice")
        return found

    def constant(name):
        raise ValueError(f"{name} is not JSON")

    try:
        found = json.loads(text, object_pairs_hook=once, parse_constant=constant)
    except (ValueError, RecursionError) as error:  # UnicodeDecodeError is a ValueError
        raise ValueError(f"{path} cannot be read as JSON: {error}") from error
    if not isinstance(found, dict):
        raise ValueError(f"{path} holds a {type(found).__name__}, not a JSON object")
    return found


def read_json(path):
    """Return the JSON object in a file; ValueError as `parse_json`, or if it is huge.

    Raises
    ------
    OSError, ValueError
    """
    path = Path(path)
    if path.stat().st_size > LONGEST:
        raise ValueError(f"{path} is longer than {LONGEST:,} bytes: not what was expected")
    return parse_json(path.read_bytes(), path)


def _opened(path):
    try:
        return safe_open(path, framework="pt")
    except (SafetensorError, OSError) as error:
        kind = ValueError if isinstance(error, SafetensorError) else type(error)
        raise kind(f"{path} cannot be read as safetensors: {error}") from error


def read_header(path):
    """Return what a safetensors file says it holds; its tensors are not loaded.

    Returns
    -------
    shapes : dict of str to tuple of int
    metadata : dict of str to str

    Raises
    ------
    OSError, ValueError
        If the file cannot be opened or is not whole.
    """
    with _opened(path) as file:
        names = file.keys()
        shapes = {name: tuple(file.get_slice(name).get_shape()) for name in names}
        return shapes, file.metadata() or {}


def read_weights(path, expected, *, others=False):
    """Load the tensors that are expected from a safetensors file.

    Parameters
    ----------
    path : path
    expected : dict of str to tuple of int
        The shape of each tensor, by name.
    others : bool
        Whether the file may hold other tensors too, which are not loaded.

    Returns
    -------
    dict of str to Tensor
        On the CPU, in the types of the file; the file itself is no longer needed.

    Raises
    ------
    OSError, ValueError
        As `read_header`, or naming the tensors that are missing, strange, of another
        shape, neither float32, float16 nor bfloat16, or not finite.
    """
    shapes, _ = read_header(path)
    strange = set() if others else shapes.keys() - expected.keys()
    for what, names in (
        ("lacks", expected.keys() - shapes.keys()),
        ("holds, besides what is expected,", strange),
    ):
        if names:
            some = ", ".join(sorted(names)[:3]) + ", …" * (len(names) > 3)
            raise ValueError(f"{path} {what} {len(names)} tensors: {some}")
    for name, shape in expected.items():
        if shapes[name] != tuple(shape):
            raise ValueError(
                f"{path}: {name} has the shape {shapes[name]}, not {tuple(shape)}"
            )
    with _opened(path) as file:
        for name in expected:
            dtype = file.get_slice(name).get_dtype()
            if dtype not in DTYPES:
                raise ValueError(f"{path}: {name} is {dtype}, not in {DTYPES}")
        tensors = {name: file.get_tensor(name).clone() for name in expected}
    for name, tensor in tensors.items():
        if not torch.isfinite(tensor).all():
            raise ValueError(f"{path}: {name} holds numbers that are not finite")
    return tensors
