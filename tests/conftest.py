"""Noise of rounding in every test, when JITTER is set to a number: `jitter/rounding.py`."""

import os
from contextlib import nullcontext

import pytest

from jitter.rounding import Rounding

SEED = os.environ.get("JITTER", "off")


@pytest.fixture(autouse=True)
def rounding_noise():
    """Compute as another processor would, the one that the number stands for."""
    with nullcontext() if SEED == "off" else Rounding(int(SEED)):
        yield
