"""Time and memory, measured in a process of their own."""

import multiprocessing
import re
import sys
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from pathlib import Path

import cloudpickle


def peak_mib() -> float:
    """Return this process's peak memory in MiB.

    Where there is a ``/proc``, from there: ``getrusage`` in a new process begins at the
    memory of the process that started it.
    """
    with suppress(OSError):
        status = Path("/proc/self/status").read_text()
        match = re.search(r"^VmHWM:\s*(\d+) kB", status, re.MULTILINE)
        if match:
            return int(match[1]) / 2**10
    try:
        import resource
    except ImportError:  # Windows
        import psutil

        return psutil.Process().memory_info().peak_wset / 2**20
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (2**20 if sys.platform == "darwin" else 2**10)


def _measured(packed: bytes) -> dict:
    """Run a function in a process of its own; return its result, seconds and memory.

    ``packed`` : by cloudpickle, a function and a tuple of its arguments; it returns a
    function without arguments, which is what is measured. The dict has ``result``, what
    that returned; ``seconds`` that it took; and ``peak_mib``, the process's peak memory in
    MiB.
    """
    function, args = cloudpickle.loads(packed)
    prepared = function(*args)  # loads data and model; returns the thunk to be measured
    with suppress(OSError):  # Linux starts the peak anew: what came before does not count
        Path("/proc/self/clear_refs").write_text("5")
    start = time.perf_counter()
    result = prepared()
    seconds = time.perf_counter() - start
    return {"result": result, "seconds": seconds, "peak_mib": peak_mib()}


def isolated(function: Callable, *args) -> dict:
    """Measure ``function(*args)()`` in a fresh process.

    Parameters
    ----------
    function : callable
        Prepares (unmeasured time) and returns the callable to be timed, which is called
        without arguments. It may be defined in a notebook: the new process gets a copy of
        its code.
    *args
        What ``function`` is called with.

    Returns
    -------
    dict
        ``result``, what the timed callable returned; ``seconds`` that it took; and
        ``peak_mib``, the peak memory of the whole process in MiB: on Linux that since the
        timing began, elsewhere that since the process began.

    Raises
    ------
    concurrent.futures.process.BrokenProcessPool
        If the process dies, for want of memory for example. What the function itself
        raises is raised here.
    """
    packed = cloudpickle.dumps((function, args))
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as process:
        return process.submit(_measured, packed).result()
