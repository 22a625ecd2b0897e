"""Where to compute, and on how many threads.

``LMCOURSE_DEVICE`` names a device; empty is as good as unset.
"""

import os

import torch
from threadpoolctl import threadpool_limits


def pick_device(device: str | torch.device | None = None) -> torch.device:
    """Return ``device``, or ``LMCOURSE_DEVICE``, or the best of CUDA, MPS and CPU.

    Raises
    ------
    ValueError
        If the device is unknown, or not there.
    """
    wanted = device or os.environ.get("LMCOURSE_DEVICE")
    if not wanted:
        if torch.cuda.is_available():
            return torch.device("cuda")
        return torch.device("mps" if torch.backends.mps.is_available() else "cpu")
    try:
        chosen = torch.device(wanted)
        torch.empty(0, device=chosen)
    except (RuntimeError, AssertionError) as error:
        raise ValueError(
            f"device {str(wanted)!r} (argument, or LMCOURSE_DEVICE) cannot be used: "
            f"{error}. Use 'cpu', 'cuda' or 'mps'."
        ) from error
    return chosen


def one_thread() -> None:
    """Let NumPy and PyTorch compute on one thread, unless ``OMP_NUM_THREADS`` is set.

    Small tensors are not worth sharing out, and beside a busy process threads that wait
    for each other make a small training many times slower.
    """
    if "OMP_NUM_THREADS" not in os.environ:
        threadpool_limits(1)
