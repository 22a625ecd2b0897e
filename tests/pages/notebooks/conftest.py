"""nbval, made to compare numbers with a tolerance, in kernels with noise of rounding.

The build has executed the chapters without noise (test_references.py compares that), so
here every kernel imitates another processor: seed 1 of `jitter/rounding.py`, or the one
that the environment variable ``JITTER`` names; ``JITTER=off`` is none.
"""

import os
import shutil
import tempfile
from pathlib import Path
from unittest import mock

from nbval.plugin import IPyNbCell, IPyNbFile

from compare import difference

PROFILE = Path(__file__).parents[2] / "jitter"
SEED = os.environ.get("JITTER", "1")
start_kernel, stop_kernel = IPyNbFile.setup, IPyNbFile.teardown


def compare_outputs(self, test, ref, skip_compare=None):
    found = difference(ref, test)
    self.comparison_traceback = [found]
    return not found


def setup(self):
    # A copy, since IPython writes its history into its folder.
    self.ipython = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
    shutil.copytree(PROFILE, self.ipython.name, dirs_exist_ok=True)
    noise = {"JITTER": SEED, "IPYTHONDIR": self.ipython.name}
    with mock.patch.dict(os.environ, {} if SEED == "off" else noise):
        start_kernel(self)


def teardown(self):
    stop_kernel(self)
    self.ipython.cleanup()


if SEED != "off":
    int(SEED)  # a seed that is none stops here, not in each kernel
IPyNbCell.compare_outputs = compare_outputs
IPyNbFile.setup, IPyNbFile.teardown = setup, teardown
