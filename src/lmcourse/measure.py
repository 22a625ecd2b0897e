"""Time and memory, measured in a process of their own."""

import multiprocessing
import re
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

__all__ = ["forget_peak", "isolated", "peak_mib"]


def forget_peak() -> None:
    """Make Linux start the peak anew, so that what came before does not count."""
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def peak_mib() -> float:
    """Return this process's peak memory in MiB.

    Where there is a ``/proc``, from there: ``getrusage`` in a new process begins at the
    memory of the process that started it.
    """
    with suppress(OSError):
        status = Path("/proc/self/status").read_text()
        found = re.search(r"^VmHWM:\s*(\d+) kB", status, re.MULTILINE)
        if found:
            return int(found[1]) / 2**10
    try:
        import resource
    except ImportError:  # Windows
        import psutil

        return psutil.Process().memory_info().peak_wset / 2**20
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (2**20 if sys.platform == "darwin" else 2**10)


def _child(connection, function: Callable, args: tuple) -> None:
    prepared = function(*args)  # loads data and model; returns the thunk to be measured
    forget_peak()
    before = peak_mib()
    start = time.perf_counter()
    result = prepared()
    seconds = time.perf_counter() - start
    connection.send((result, seconds, peak_mib(), before))


def isolated(function: Callable, *args) -> dict:
    """Measure ``function(*args)()`` in a fresh process.

    Parameters
    ----------
    function : callable
        Importable; prepares (unmeasured time) and returns the callable to be timed.

    Returns
    -------
    dict
        ``result``, ``seconds``, ``peak_mib`` (of the whole process) and ``start_mib``
        (its peak before the timed part).

    Raises
    ------
    RuntimeError
        If the process dies.
    """
    context = multiprocessing.get_context("spawn")
    receive, send = context.Pipe(duplex=False)
    process = context.Process(target=_child, args=(send, function, args))
    process.start()
    send.close()
    try:
        result, seconds, peak, before = receive.recv()
    except EOFError:
        process.join()
        raise RuntimeError(
            f"{function.__name__}{args} died with exit code {process.exitcode}"
        ) from None
    process.join()
    return {
        "result": result,
        "seconds": seconds,
        "peak_mib": peak,
        "start_mib": before,
    }
