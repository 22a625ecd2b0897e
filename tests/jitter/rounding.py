"""Noise of rounding: what another processor might have computed, computed on this one.

Processors, libraries and numbers of threads add in different orders and approximate exp
or tanh by different polynomials. Here the results of PyTorch's float32 operations that
sum or approximate are moved by at most two units in the last place (one part in 2**22).
How far a number is moved follows from its own bits and the seed: one input always gives
one result, so what is said of repeated runs still holds; x and -x stay mirror images; and
whole numbers stay whole. A page that then fails, or prints other numbers, says something
about one processor.

A mode of torch's dispatcher does it, so NumPy's own float32 is not covered; nor are
operations that are exact or rounded once (+, *, /, sqrt), other dtypes, other libraries.
"""

import torch
from torch.utils._python_dispatch import TorchDispatchMode

__all__ = ["APPROXIMATE", "Rounding", "nudge"]

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


def nudge(result: object, seed: int) -> None:
    """Move the float32 numbers of a result, in place, by up to two units of the last place.

    Whole numbers, infinities, NaN, tensors of other dtypes and other objects stay.
    """
    if not isinstance(result, torch.Tensor) or result.dtype != torch.float32:
        return
    bits = result.view(torch.int32)
    magnitude = bits & 0x7FFFFFFF
    # A multiplicative hash in 32 bits, which wrap: its upper half is well mixed.
    mixed = (magnitude ^ (seed * 0x9E3779B1 & 0x7FFFFFFF)) * 0x2C1B3C6D
    units = (mixed >> 16 & 0xFFFF) % 5 - 2
    movable = result.isfinite() & (result != result.round())
    bits.add_(torch.where(movable, units, 0).int())


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
        with self:  # in inference mode what is made of other operations comes whole
            out = func.decompose(*args, **(kwargs or {}))
        if out is not NotImplemented:
            return out
        out = func(*args, **(kwargs or {}))
        if stem(func.overloadpacket.__name__) in APPROXIMATE:
            for result in out if isinstance(out, tuple | list) else [out]:
                nudge(result, self.seed)
        return out
