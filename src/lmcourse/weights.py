"""Files of weights: written whole or not at all, and checked before anything is used.

``safetensors`` refuses a header that does not fit its file (lengths, offsets, overlaps,
depth). Here is what it cannot know: which tensors there should be, and that weights are
finite numbers. Nothing is allocated before a file's header has been checked.
"""

import json
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save as to_bytes

from lmcourse.files import write_whole
from lmcourse.numbers import plural

DTYPES = ("F32", "F16", "BF16")


# --- JSON -----------------------------------------------------------------------------


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
        If it is no JSON object, or is nested too deeply.
    """
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:  # UnicodeDecodeError is a ValueError
        raise ValueError(f"{path} cannot be read as JSON: {error}") from error
    if not isinstance(value, dict):
        raise ValueError(f"{path} holds a {type(value).__name__}, not a JSON object")
    return value


def read_json(path):
    """Return the JSON object in the file at ``path``, a dict.

    An OSError if the file cannot be read, a ValueError if it holds no JSON object.
    """
    return parse_json(Path(path).read_bytes(), path)


# --- reading --------------------------------------------------------------------------


def _open(path):
    """Return a safetensors file, opened.

    ``path`` : path. An OSError or a ValueError names it if it cannot be read.
    """
    try:
        return safe_open(Path(path).expanduser(), framework="pt")
    except (SafetensorError, OSError) as error:
        kind = ValueError if isinstance(error, SafetensorError) else type(error)
        raise kind(f"{path} cannot be read as safetensors: {error}") from error


def read_header(path):
    """Return what a safetensors file says it holds; its tensors are not loaded.

    Parameters
    ----------
    path : path

    Returns
    -------
    shapes : dict of str to tuple of int
        Name of each tensor → its shape.
    metadata : dict of str to str
        What else the file says, name → text; often empty.

    Raises
    ------
    OSError, ValueError
        If the file cannot be opened or is not whole.
    """
    with _open(path) as file:
        names = file.keys()
        shapes = {name: tuple(file.get_slice(name).get_shape()) for name in names}
        return shapes, file.metadata() or {}


def read_record(path):
    """Return the record in a file of `save_model` or of `save_adapters`, a dict.

    It says how the tensors at ``path`` were made, and stands as JSON in the metadata of the
    safetensors file; ValueError if there is none.
    """
    _, metadata = read_header(path)
    if "record" not in metadata:
        raise ValueError(
            f"{path} does not say how its model was made; `save_model` writes files that do"
        )
    return parse_json(metadata["record"], f"the record in {path}")


def _never(*_):
    """Return False, whatever is given: no tensor is transposed, spare or to be skipped."""
    return False


def read_weights(path, expected, spare=_never):
    """Load the tensors that are expected from a safetensors file.

    Parameters
    ----------
    path : path
    expected : dict of str to tuple of int
        The shape of each tensor, by name.
    spare : callable
        From a name to whether the file may hold such a tensor, too; it is not loaded.

    Returns
    -------
    dict of str to Tensor
        Float32, on the CPU; the file itself is no longer needed.

    Raises
    ------
    OSError, ValueError
        If the file cannot be opened or is not whole; or naming the tensors that are
        missing, strange, of another shape, neither float32, float16 nor bfloat16, or not
        finite.
    """
    shapes, _ = read_header(path)
    strange = {name for name in shapes.keys() - expected.keys() if not spare(name)}
    absent = expected.keys() - shapes.keys()
    for what, names in (("lacks", absent), ("holds, besides what is expected,", strange)):
        if names:
            raise ValueError(f"{path} {what} {name_some(names)}")
    for name, shape in expected.items():
        if shapes[name] != tuple(shape):
            raise ValueError(
                f"{path}: {name} has the shape {shapes[name]}, not {tuple(shape)}"
            )
    tensors = {}
    with _open(path) as file:
        for name in expected:
            tensors[name] = _read_tensor(file, name, path)
    return tensors


def read_all_weights(path, skip=_never):
    """Load all tensors of a safetensors file.

    Parameters
    ----------
    path : path
    skip : callable
        From a name to whether this tensor is left where it is.

    Returns
    -------
    dict of str to Tensor
        Float32, on the CPU.

    Raises
    ------
    OSError, ValueError
        If the file cannot be opened or is not whole; or naming a tensor of another type
        than float32, float16 and bfloat16, or with numbers that are not finite.
    """
    with _open(path) as file:
        names = [name for name in file.keys() if not skip(name)]  # noqa: SIM118 no dict
        return {name: _read_tensor(file, name, path) for name in names}


def _read_tensor(file, name, path):
    """Return one tensor of an open safetensors file, in float32.

    Parameters
    ----------
    file : safe_open
    name : str
        The tensor's.
    path : path
        The file's, for messages.

    Raises
    ------
    ValueError
        If its type is not in `DTYPES`, or a number is not finite.
    """
    dtype = file.get_slice(name).get_dtype()
    if dtype not in DTYPES:
        raise ValueError(f"{path}: {name} is {dtype}, not in {DTYPES}")
    tensor = file.get_tensor(name).to(torch.float32, copy=True)
    if not tensor.isfinite().all():
        raise ValueError(f"{path}: {name} holds numbers that are not finite")
    return tensor


def name_some(names):
    """Return how many tensors there are and three names: "9 tensors: a, b, c, …".

    ``names`` : collection of str.
    """
    shown = sorted(names)[:3]
    if len(names) > len(shown):
        shown.append("…")
    return f"{len(names)} {plural(len(names), 'tensor')}: {', '.join(shown)}"


def read_state(
    path, build, layers, rename="model.{}".format, is_transposed=_never, spare=_never
):
    """Return a model without memory, and the weights for it that a file holds.

    Parameters
    ----------
    path : path
    build : callable
        Returns the model; it is called where tensors have shapes only. Whatever it raises,
        the file is the reason.
    layers : int
        How many the model has. A file with fewer tensors is refused before it is built.
    rename : callable
        From the name of a weight in the model to that in the file.
    is_transposed : callable
        From a weight's name in the file, and the weight of the model without memory, to
        whether the file holds its transpose.
    spare : callable
        From a name to whether the file may hold such a tensor, too; it is not loaded.

    Returns
    -------
    model : nn.Module
        On the device "meta".
    state : dict of str to Tensor
        Float32, on the CPU, under the names of the model.

    Raises
    ------
    OSError, ValueError
        If the file cannot be opened or is not whole, or naming the tensors that are
        missing, strange, of another shape or kind, or not finite.
    """
    if len(read_header(path)[0]) < layers:
        raise ValueError(f"{path} holds fewer tensors than {layers} layers have")
    try:
        with torch.device("meta"):
            model = build()
    except Exception as error:  # of many kinds, for one wrong size or word each
        raise ValueError(f"no model can be made for {path}: {error!r}") from error
    weights = model.state_dict()
    theirs = {name: rename(name) for name in weights}
    stored_transposed = {
        name for name in weights if is_transposed(theirs[name], weights[name])
    }
    shapes = {
        theirs[name]: (weight.mT if name in stored_transposed else weight).shape
        for name, weight in weights.items()
    }
    tensors = read_weights(path, shapes, spare)
    state = {name: tensors.pop(there) for name, there in theirs.items()}
    for name in stored_transposed:
        state[name] = state[name].mT.contiguous()
    return model, state


def load_model(path, build, layers, **how):
    """Return a model filled with the weights of a file, in evaluation mode.

    Parameters
    ----------
    path : path
    build : callable
        Returns the model; its own weights are not used.
    layers : int
        That the model has. A file with fewer tensors is refused.
    **how
        How names in the model and in the file belong together: ``rename``,
        ``is_transposed`` and ``spare``, as `read_state` explains them.

    Returns
    -------
    nn.Module
        No weight is left as ``build`` made it; float32, on the CPU.

    Raises
    ------
    OSError, ValueError
        If the file cannot be opened or is not whole, or naming the tensors that are
        missing, strange, of another shape or kind, or not finite.
    """
    model, state = read_state(path, build, layers, **how)
    model.load_state_dict(state, assign=True)
    return model.eval()


# --- writing --------------------------------------------------------------------------


def save_tensors(path, tensors, record):
    """Write tensors and a record to a safetensors file, whole or not at all.

    This is the course's one checkpoint format: the record is JSON in the file's metadata,
    under "record". `read_record` reads it again, and `read_weights` the tensors. The
    decoder in NumPy writes and reads the same format without PyTorch
    (`lmcourse.numpy_nn.decoder.save`).

    Parameters
    ----------
    path : path
        What is there is replaced when all is written.
    tensors : dict of str to Tensor
    record : dict
        How they came about; written as JSON.

    Raises
    ------
    OSError
        If it cannot be written; a file that was there before is still whole.
    """
    tensors = {name: x.detach().cpu().contiguous() for name, x in tensors.items()}
    write_whole(path, to_bytes(tensors, {"record": json.dumps(record)}))


def save_model(path, model, record, more=()):
    """Write a model: its weights and a record of how it came about.

    Parameters
    ----------
    path : str or Path
        Of the safetensors file that is written.
    model : nn.Module
        Its weights are in the file under ``model.``
    record : dict
        How the model came about; what JSON can hold.
    more : dict of str to Tensor, optional
        Other tensors, such as what an optimizer keeps.

    Raises
    ------
    OSError
        If it cannot be written; a file that was there before is still whole.
    """
    weights = {f"model.{name}": x for name, x in model.state_dict().items()}
    save_tensors(path, weights | dict(more), record)
