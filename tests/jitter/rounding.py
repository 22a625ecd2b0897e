"""Noise of rounding: what another processor might have computed, computed on this one.

Processors, libraries and numbers of threads add in different orders and approximate exp
or tanh by different polynomials. Here the results of PyTorch's float32 operations that
sum or approximate are moved by up to three units in the last place (3 parts in 2**23).
How far and which way a number is moved follows from its own last bits and the seed: one
input always gives one result, so what is said of repeated runs still holds; x and -x stay
mirror images; and whole numbers below 2**18, halves and quarters stay, which every
processor adds without error. A page that then fails, or prints other numbers, says
something about one processor.

Torch's dispatcher does it, by a key that is there for other devices: switched on, it leads
these operations, and no others, to kernels of ours (a mode in Python would see them all,
and a training takes millions). So NumPy's own float32 is not covered; nor are operations
that are exact or rounded once (+, *, /, sqrt), other dtypes, other libraries.
"""

from collections.abc import Callable
from functools import cache
from typing import ClassVar

import torch

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


def number(value: int) -> torch.Tensor:
    """Return a number as a tensor, with which a small one is combined twice as fast."""
    return torch.tensor(value, dtype=torch.int32)


@cache
def multiplier(seed: int) -> torch.Tensor:
    """Return what to hash a number's last 6 bits with: a product that wraps drops the rest.

    An odd number, another for each of 32 seeds in a row, in the first 6 of 32 bits.
    """
    odd = (26 * seed + 1) % 64
    signed = odd - 64 if odd >= 32 else odd
    return number(signed << 26)


CACHED = 2**15  # numbers that stay in the cache from pass to pass
FIRST, MASK = number(30), number(3)  # the shift to the first two bits, and those
KEY = "AutocastPrivateUse1"
KEYS = torch._C.DispatchKeySet(getattr(torch._C.DispatchKey, KEY))


def nudge(result: object, seed: int) -> None:
    """Move the float32 numbers of a result, in place, up to three units of the last place.

    Numbers whose last 6 bits are 0 stay: zeros, infinities, NaN, whole numbers below 2**18.
    So do tensors of other dtypes and other objects. (Three passes over the numbers, part by
    part where a processor's cache holds no more: a training takes many thousands of them.)
    """
    if not isinstance(result, torch.Tensor) or result.dtype != torch.float32:
        return
    bits = result.data.view(torch.int32)  # unseen by who counts changes
    large = bits.numel() > CACHED and bits.is_contiguous()
    for part in bits.view(-1).split(CACHED) if large else [bits]:
        hashed = (part * multiplier(seed)).bitwise_right_shift_(FIRST)
        part.bitwise_xor_(hashed.bitwise_and_(MASK))  # 0 to 3; 0 where the last bits are


def noisy(operation: torch._ops.OpOverload) -> Callable:
    """Return an operation whose results are nudged."""

    def kernel(*args, **kwargs):
        with torch._C._ExcludeDispatchKeyGuard(KEYS):
            out = operation(*args, **kwargs)
        with torch._C._DisableTorchDispatch():  # who counts operations counts none of ours
            for result in out if isinstance(out, tuple | list) else [out]:
                nudge(result, Rounding.entered[-1].seed)
        return out

    return kernel


@cache
def install() -> list[torch.library.Library]:
    """Let the key lead every approximate operation to its noisy kernel, others nowhere."""
    others, ours = (torch.library.Library(name, "IMPL") for name in ("_", "aten"))
    others.fallback(torch.library.fallthrough_kernel, KEY)
    for name in torch._C._dispatch_get_all_op_names():
        space, _, name = name.partition("::")
        base, _, overload = name.partition(".")
        if space == "aten" and stem(base) in APPROXIMATE:
            packet = getattr(torch.ops.aten, base)
            ours.impl(name, noisy(getattr(packet, overload or "default")), KEY)
    return [others, ours]  # they end with what holds them


class Rounding:
    """While it is entered, every approximate operation's results are nudged.

    Parameters
    ----------
    seed : int
        Which processor to imitate.
    """

    entered: ClassVar[list["Rounding"]] = []  # kept: torch's guard ends with its object

    def __init__(self, seed: int) -> None:
        self.seed = seed

    def __enter__(self) -> "Rounding":
        install()
        self.entered.append(self)
        on = torch._C._dispatch_tls_local_include_set() | KEYS
        off = torch._C._dispatch_tls_local_exclude_set() - KEYS
        self.guard = torch._C._ForceDispatchKeyGuard(on, off)
        self.guard.__enter__()
        return self

    def __exit__(self, *error) -> None:
        self.guard.__exit__(*error)
        self.entered.pop()
