"""Noise of rounding: what another processor might have computed, computed on this one.

Processors, libraries and numbers of threads add in different orders and approximate exp
or tanh by different polynomials. Here the results of PyTorch's float32 operations that
sum or approximate are moved by two units in the last place (at most one part in 2**22).
Which way a number is moved follows from its own bits and the seed: one input always gives
one result, so what is said of repeated runs still holds; x and -x stay mirror images; and
whole numbers stay whole. A page that then fails, or prints other numbers, says something
about one processor.

A mode of torch's dispatcher does it, so NumPy's own float32 is not covered; nor are
operations that are exact or rounded once (+, *, /, sqrt), other dtypes, other libraries.
"""

from functools import cache
from random import Random

import torch
from torch.utils._python_dispatch import TorchDispatchMode

__all__ = ["APPROXIMATE", "Rounding", "nudge", "stem"]

# Names in ATen; a backward pass, and a function in place, are found by their stem.
APPROXIMATE = {
    "mm", "addmm", "bmm", "baddbmm", "mv", "addmv", "dot", "vdot", "linear",
    "convolution", "_scaled_dot_product_flash_attention_for_cpu", "embedding_dense",
    "sum", "mean", "var", "var_mean", "std", "prod", "cumsum", "logsumexp", "norm",
    "linalg_vector_norm", "_cdist_forward", "native_layer_norm", "_fused_rms_norm",
    "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "pow", "rsqrt",
    "sin", "cos", "tan", "tanh", "atan2", "erf", "erfinv", "sigmoid", "log_sigmoid",
    "silu", "gelu", "softplus", "logit", "_softmax", "_log_softmax",
}  # fmt: skip


def stem(name: str) -> str:
    """Return the name of an operation without ``_backward``, ``_data`` or a last ``_``."""
    return name.removesuffix("_").removesuffix("_data").removesuffix("_backward")


@cache
def approximate(operation: torch._ops.OpOverload) -> bool:
    """Return whether processors may differ in the results of an operation."""
    return stem(operation.overloadpacket.__name__) in APPROXIMATE


@cache
def multiplier(seed: int) -> int:
    """Return what to hash 32 bits with, by a product that wraps; it drops the sign bit."""
    return 2 * (Random(seed).getrandbits(30) | 1)


def nudge(result: object, seed: int) -> None:
    """Move the float32 numbers of a result, in place, two units of the last place.

    Whole numbers, subnormal ones, infinities, NaN, tensors of other dtypes and other
    objects stay. (Most steps are in place: a training takes many thousands of them.)
    """
    if not isinstance(result, torch.Tensor) or result.dtype != torch.float32:
        return
    bits = result.view(torch.int32)
    units = bits * multiplier(seed)
    units.bitwise_right_shift_(31).bitwise_and_(4).sub_(2)  # the first bit: -2 or 2
    units.mul_(result.frac().abs_() >= torch.finfo(torch.float32).tiny)
    bits.add_(units)


class Rounding(TorchDispatchMode):
    """While it is entered, every approximate operation's results are nudged.

    Parameters
    ----------
    seed : int
        Which processor to imitate.
    """

    def __init__(self, seed: int) -> None:
        super().__init__()
        self.seed = seed

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if torch.is_inference_mode_enabled():
            with self:  # there an operation made of others comes whole
                out = func.decompose(*args, **kwargs)
            if out is not NotImplemented:
                return out
        out = func(*args, **kwargs)
        if approximate(func):
            for result in out if isinstance(out, tuple | list) else [out]:
                nudge(result, self.seed)
        return out
