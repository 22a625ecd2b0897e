"""Noise of rounding: what another processor might have computed, computed on this one.

Processors, libraries and numbers of threads add in different orders and approximate exp
or tanh by different polynomials. Here the results of PyTorch's float32 operations that
sum or approximate are moved by up to three units in the last place (3 parts in 2**23).
How far and which way a number is moved follows from its own last bits and the seed: one
input always gives one result, so what is said of repeated runs still holds; x and -x stay
mirror images; and whole numbers below 2**18, halves and quarters stay, which every
processor adds without error. A page that then fails, or prints other numbers, says
something about one processor.

A mode of torch's dispatcher does it, so NumPy's own float32 is not covered; nor are
operations that are exact or rounded once (+, *, /, sqrt), other dtypes, other libraries.
"""

from functools import cache

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
    "silu", "gelu", "softplus", "logit", "_softmax", "_log_softmax", "mse_loss",
    "nll_loss_forward", "binary_cross_entropy_with_logits", "index_add",
    "native_batch_norm", "mkldnn_rnn_layer", "_linalg_svd", "_linalg_solve_ex", "linalg_qr",
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
    """Return what to hash a number's last 6 bits with: a product that wraps drops the rest.

    An odd number, another for each of 32 seeds in a row, in the first 6 of 32 bits.
    """
    odd = (26 * seed + 1) % 64
    return (odd - 64 * (odd >= 32)) << 26


def nudge(result: object, seed: int) -> None:
    """Move the float32 numbers of a result, in place, up to three units of the last place.

    Numbers whose last 6 bits are 0 stay: zeros, infinities, NaN, whole numbers below 2**18.
    So do tensors of other dtypes and other objects. (Three passes over the numbers and no
    more than one copy: a training takes many thousands of them.)
    """
    if not isinstance(result, torch.Tensor) or result.dtype != torch.float32:
        return
    bits = result.view(torch.int32)
    hashed = (bits * multiplier(seed)).bitwise_right_shift_(30)  # the first two bits
    bits.bitwise_xor_(hashed.bitwise_and_(3))  # 0 to 3, and 0 where the last bits are


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
