"""A stand-in for Apple's GPU on the CPU, with what is particular about it.

It has no float64, tensors on it do not mix with those of the CPU, and NumPy cannot read
them.
"""

import torch
from torch.overrides import TorchFunctionMode

DEVICE = torch.device("mps")
READS_A_NAME = (torch.device, torch._C._nn._parse_to)  # of a device; nothing is put there
MIXES = (torch.Tensor.__getitem__, torch.Tensor.copy_, torch.Tensor.__setitem__)


class OnGpu(torch.Tensor):
    """A tensor that counts as one on the GPU, while its numbers stay where they are."""

    __torch_function__ = torch._C._disabled_torch_function_impl


class AppleGpu(TorchFunctionMode):
    """Let "mps" be a device, inside a ``with``.

    As with PyTorch, a float64 there is a TypeError, and so is NumPy that reads a tensor
    there. A CPU's tensor among those on the GPU is a RuntimeError, unless it has no axes,
    is an index, or is copied there.
    """

    def __torch_function__(self, function, types, args=(), kwargs=None):
        kwargs = dict(kwargs or {})
        if function in READS_A_NAME:
            return function(*args, **kwargs)
        tensors = [x for x in _flat([args, kwargs]) if isinstance(x, torch.Tensor)]
        on_gpu = any(isinstance(x, OnGpu) for x in tensors)
        if function == torch.Tensor.device.__get__:
            return DEVICE if on_gpu else function(*args)
        if function == torch._has_compatible_shallow_copy_type:
            return not on_gpu  # a model that is moved gets new parameters
        if on_gpu and function == torch.Tensor.numpy:
            raise TypeError("can't convert mps:0 device type tensor to numpy")
        if on_gpu and function == torch.Tensor.cpu:
            return args[0].clone().as_subclass(torch.Tensor)
        moved, args, kwargs = _without_device(args, kwargs)
        if function == torch.Tensor.to:  # or to where another tensor is
            moved |= any(isinstance(each, OnGpu) for each in args[1:])
        mixed = on_gpu and any(x.ndim and not isinstance(x, OnGpu) for x in tensors)
        if mixed and not moved and function not in MIXES:
            raise RuntimeError(f"{function.__name__}: tensors on mps:0 and on the CPU")
        result = function(*args, **kwargs)
        return _placed(result) if on_gpu or moved else result


def _flat(value):
    """Yield what is in nested lists, tuples and dicts."""
    if isinstance(value, dict):
        value = [*value.values()]
    if isinstance(value, list | tuple):
        for each in value:
            yield from _flat(each)
    else:
        yield value


def _without_device(args, kwargs):
    """Return whether the arguments name the GPU, and both kinds without it."""
    names_gpu = [_is_gpu(each) for each in (*args, kwargs.get("device"))]
    args = tuple("cpu" if _is_gpu(each) else each for each in args)
    if _is_gpu(kwargs.get("device")):
        kwargs["device"] = "cpu"
    return any(names_gpu), args, kwargs


def _is_gpu(value):
    """Return whether a value names the GPU: a device, or a str."""
    return isinstance(value, str | torch.device) and str(value).startswith("mps")


def _placed(result):
    """Return a result, or each of several, as on the GPU; no float64 can be."""
    if isinstance(result, list | tuple) and not isinstance(result, torch.Size):
        placed = map(_placed, result)
        return type(result)(*placed) if hasattr(result, "_fields") else type(result)(placed)
    if not isinstance(result, torch.Tensor) or isinstance(result, OnGpu):
        return result
    if result.dtype == torch.float64:
        raise TypeError(
            "Cannot convert a MPS Tensor to float64 dtype as the MPS framework doesn't "
            "support float64. Please use float32 instead."
        )
    return result.as_subclass(OnGpu)
