"""nbval, made to compare numbers with a tolerance, in kernels with noise of rounding.

The build has executed the chapters without noise (test_references.py compares that), so
here every kernel imitates another processor: seed 1 of `jitter/rounding.py`, or the one
that the environment variable ``JITTER`` names; ``JITTER=off`` is none.
"""

import os
from functools import partial
from unittest import mock

from jupyter_client.provisioning import local_provisioner
from nbval.plugin import IPyNbCell, IPyNbFile

import forked
from compare import difference

SEED = os.environ.get("JITTER", "1")
start_kernel, launch = IPyNbFile.setup, partial(forked.launch, SEED)


def compare_outputs(self, test, ref, skip_compare=None):
    message = difference(ref, test)
    self.comparison_traceback = [message]
    return not message


def setup(self):
    with mock.patch.object(local_provisioner, "launch_kernel", launch):
        start_kernel(self)


if SEED != "off":
    int(SEED)  # a seed that is none stops here, not in each kernel
IPyNbCell.compare_outputs, IPyNbFile.setup = compare_outputs, setup
