"""What all tests have: an order, the same seeds, and noise of rounding if it is asked for.

With JITTER set to a number every test computes as another processor would:
`jitter/rounding.py`.
"""

import asyncio
import ctypes
import functools
import gc
import os
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

import pytest
import torch
from hypothesis import HealthCheck, settings
from xdist.scheduler import LoadScopeScheduling

from jitter.rounding import Rounding

SEED = os.environ.get("JITTER", "off")
THREADS = torch.get_num_threads()
# An example may take as long as it takes. On GitHub it is hypothesis's own profile for such
# machines that is extended: it draws the same examples every time.
settings.register_profile(
    "patient",
    settings.default,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("patient")
CACHING = ("lmcourse", "studies", "wrong_answers")  # packages that keep models


def pytest_collection_modifyitems(items):
    """Put notebooks first, which take the longest, and browsers last."""
    items.sort(key=lambda item: bool(item.get_closest_marker("browser")))
    items.sort(key=lambda item: item.path.suffix == ".py")


class ByFile(LoadScopeScheduling):
    """A file belongs to one worker; each page of the site to whoever has time."""

    def _split_scope(self, nodeid):
        return nodeid if "[chromium-site:" in nodeid else nodeid.partition("::")[0]


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    return ByFile(config, log)


@contextmanager
def no_other_loop(item) -> Iterator[None]:
    """Hide the loop that an earlier test left running, unless a test drives a browser.

    Playwright's goes on as long as its browser is there, and `asyncio.run` refuses to begin
    another one beside it.
    """
    loop = asyncio._get_running_loop()
    hidden = loop is not None and "playwright" not in getattr(item, "fixturenames", ())
    if hidden:
        asyncio._set_running_loop(None)
    try:
        yield
    finally:
        if hidden:
            asyncio._set_running_loop(loop)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item):
    with no_other_loop(item):
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    with no_other_loop(item):
        return (yield)


def empty_caches():
    """Empty the caches of functions of test files, the course and the studies."""
    kind = type(functools.cache(len))
    for cached in [each for each in gc.get_objects() if type(each) is kind]:
        package = (cached.__module__ or "").partition(".")[0]
        if package in CACHING or package.startswith("test_"):
            cached.cache_clear()


def return_free_memory():
    """Give free memory back to the system, where the C library can (glibc)."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


@pytest.fixture(autouse=True, scope="module")
def _forget_models():
    """Forget, when a file of tests has ended, the models that it loaded and kept.

    Functions that load a model keep it as long as their process lives. A worker of pytest's
    runs many files, and would hold the models of all of them: several GB, of which there
    are as many as workers. What was freed stays with the process, too, until the C library
    is asked for it. Caches of other modules stay, such as that of `jitter.rounding`, which
    registers what can be registered only once.
    """
    yield
    empty_caches()
    gc.collect()
    return_free_memory()


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
