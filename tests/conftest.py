"""What all tests have: an order, the same dice, and noise of rounding if it is asked for.

With JITTER set to a number every test computes as another processor would:
`jitter/rounding.py`.
"""

import os
from contextlib import nullcontext

import pytest
import torch

from jitter.rounding import Rounding

SEED = os.environ.get("JITTER", "off")


def pytest_collection_modifyitems(items):
    """Put notebooks first, so that no worker waits at the end for another's."""
    items.sort(key=lambda item: item.path.suffix == ".py")


@pytest.fixture(autouse=True)
def _seed():
    """Let every test draw the same numbers, alone or among others."""
    torch.manual_seed(0)


@pytest.fixture(autouse=True)
def rounding_noise():
    """Compute as another processor would, the one that the number stands for."""
    with nullcontext() if SEED == "off" else Rounding(int(SEED)):
        yield
