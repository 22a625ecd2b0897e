"""nbval, made to compare numbers with a tolerance, in kernels with noise of rounding.

The build has executed the chapters without noise (test_references.py compares that), so
here every kernel imitates another processor: seed 1 of `jitter/rounding.py`, or the one
that the environment variable ``JITTER`` names; ``JITTER=off`` is none.

Nor does the clock decide: what limits a cell while the book is built limits here a cell,
the start of its kernel, and each of its outputs.
"""

import os
from functools import partial
from unittest import mock

from jupyter_client.provisioning import local_provisioner
from nbval.kernel import RunningKernel
from nbval.plugin import IPyNbCell, IPyNbFile

import forked
from compare import difference
from lmbook.execute.run import TIMEOUT

SEED = os.environ.get("JITTER", "1")
start_kernel, launch = IPyNbFile.setup, partial(forked.launch, SEED)
run_cell = IPyNbCell.runtest
# By when it asks a kernel once more whether it is there, Jupyter has waited until it was.
patient = mock.patch.object(RunningKernel, "_ensure_iopub_up")


def compare_outputs(self, test, ref, skip_compare=None):
    message = difference(ref, test)
    self.comparison_traceback = [message]
    return not message


def setup(self):
    option = self.config.option
    option.nbval_cell_timeout = option.nbval_kernel_startup_timeout = TIMEOUT
    with mock.patch.object(local_provisioner, "launch_kernel", launch), patient:
        start_kernel(self)


def runtest(self):
    self.output_timeout = TIMEOUT
    run_cell(self)


if SEED != "off":
    int(SEED)  # a seed that is none stops here, not in each kernel
IPyNbCell.compare_outputs, IPyNbFile.setup = compare_outputs, setup
IPyNbCell.runtest = runtest
