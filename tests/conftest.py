"""What all tests have: an order, the same seeds, and noise of rounding if it is asked for.

With JITTER set to a number every test computes as another processor would:
`jitter/rounding.py`.
"""

import os
from contextlib import nullcontext

import pytest
import torch
from xdist.scheduler import LoadScopeScheduling

from jitter.rounding import Rounding

SEED = os.environ.get("JITTER", "off")
THREADS = torch.get_num_threads()


def pytest_collection_modifyitems(items):
    """Put notebooks first, which take the longest, and browsers last.

    What drives a browser leaves a loop running in its worker, which others cannot have.
    """
    items.sort(key=lambda item: bool(item.get_closest_marker("browser")))
    items.sort(key=lambda item: item.path.suffix == ".py")


class ByFile(LoadScopeScheduling):
    """A file belongs to one worker; each page of the site to whoever has time."""

    def _split_scope(self, nodeid):
        return nodeid if "[chromium-site:" in nodeid else nodeid.partition("::")[0]


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    return ByFile(config, log)


@pytest.fixture(autouse=True)
def _seed():
    """Let every test draw the same numbers, on the same threads, alone or among others."""
    torch.manual_seed(0)
    torch.set_num_threads(THREADS)  # two in each of two workers wait for one another


@pytest.fixture(autouse=True)
def rounding_noise():
    """Compute as another processor would, the one that the number stands for."""
    with nullcontext() if SEED == "off" else Rounding(int(SEED)):
        yield
