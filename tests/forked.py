"""Kernels that begin with the chapters' imports done: forks of a process that did them."""

import multiprocessing
import os
import sys
import time
from pathlib import Path
from threading import Thread
from unittest import mock

from jitter.rounding import Rounding

# No pandas, which asks whether it is in a notebook when it is imported.
IMPORTS = ["ipykernel.kernelapp", "matplotlib.pyplot", "matplotlib_inline.backend_inline"]
IMPORTS += ["transformers.models.bert.modeling_bert", "torch.utils.flop_counter"]
# What was forked may not use Apple's GPU: there a kernel starts from nothing.
FORKS = multiprocessing.get_context("forkserver" if sys.platform == "linux" else "spawn")
FORKS.set_forkserver_preload(IMPORTS)
# What a kernel sets for itself, and Matplotlib reads when it is imported.
BACKEND = {"MPLBACKEND": "module://matplotlib_inline.backend_inline"}


class Kernel(FORKS.Process):
    """A process, with what Jupyter asks of a `subprocess.Popen`."""

    stdin = stdout = stderr = None
    wait = FORKS.Process.join

    def poll(self) -> int | None:
        return self.exitcode

    def send_signal(self, number: int) -> None:
        os.kill(self.pid, number)


def launch(seed: str, command: list[str], *, cwd: str, **_) -> Kernel:
    """Start a kernel instead of Jupyter, with noise of rounding; its errors go nowhere."""
    arguments = command[command.index("ipykernel_launcher") + 1 :]
    with mock.patch.dict(os.environ, BACKEND):
        kernel = Kernel(target=run, args=(arguments, cwd, dict(os.environ), seed))
        kernel.daemon = True
        kernel.start()
    while os.getpgid(kernel.pid) != kernel.pid:  # Jupyter will end all of its group
        time.sleep(0.01)
    return kernel


def run(arguments: list[str], cwd: str, environment: dict[str, str], seed: str) -> None:
    """Be a kernel, until Jupyter or whoever started it ends."""
    os.setsid()
    parent = multiprocessing.parent_process()
    Thread(target=lambda: (parent.join(), os._exit(1)), daemon=True).start()
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(cwd)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    tests = str(Path(__file__).parent)
    sys.path[:] = [each for each in sys.path if each and not each.startswith(tests)]
    from ipykernel import kernelapp

    if seed != "off":
        Rounding(int(seed)).__enter__()
    kernelapp.launch_new_instance(argv=arguments)
