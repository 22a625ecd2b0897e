"""What all tests have."""

import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]  # in which the conftest.py of all tests lies

IN_ANY_ORDER = """
import asyncio
import pytest

@pytest.fixture
def page_number():
    return asyncio.run(asyncio.sleep(0, 1))

def test_a_browser_is_driven(playwright):
    assert playwright.chromium.name == "chromium"

def test_others_have_a_loop_of_their_own(page_number):
    assert asyncio.run(asyncio.sleep(0, page_number)) == 1

def test_another_browser_is_driven(playwright):
    request = playwright.request.new_context()
    request.dispose()
"""


def test_what_drives_a_browser_may_come_before_what_does_not(tmp_path):
    path = tmp_path / "test_order.py"
    path.write_text(IN_ANY_ORDER)
    plugins = ["-p", "conftest", "-p", "no:cacheprovider", "-o", "addopts="]
    run = [sys.executable, "-m", "pytest", *plugins, "--rootdir", tmp_path, path]
    done = subprocess.run(run, cwd=TESTS, capture_output=True)
    assert b"3 passed" in done.stdout, done.stdout.decode()


KEEPS = """
from functools import cache

@cache
def model():
    return bytearray(2**20)

def test_it_is_loaded_once():
    assert model() is model()
"""

FORGOTTEN = """
import test_a
from jitter import rounding

def test_what_an_earlier_file_loaded_is_forgotten():
    assert test_a.model.cache_info().currsize == 0
    rounding.multiplier(1)

def test_what_this_file_loads_is_kept():
    test_a.model()

def test_and_still_there():
    assert test_a.model.cache_info().currsize == 1
"""

KEPT = """
from jitter import rounding

def test_what_others_keep_is_kept():
    assert rounding.multiplier.cache_info().currsize > 0
"""


def test_models_are_kept_as_long_as_a_file_of_tests(tmp_path):
    for name, code in {"a": KEEPS, "b": FORGOTTEN, "c": KEPT}.items():
        (tmp_path / f"test_{name}.py").write_text(code)
    plugins = ["-p", "conftest", "-p", "no:cacheprovider", "-o", "addopts="]
    run = [sys.executable, "-m", "pytest", *plugins, "--rootdir", tmp_path, tmp_path]
    done = subprocess.run(run, cwd=TESTS, capture_output=True)
    assert b"5 passed" in done.stdout, done.stdout.decode()


FREED = """
from pathlib import Path

def megabytes():
    return int(Path("/proc/self/statm").read_text().split()[1]) * PAGE / 2**20

def test_much_is_freed():
    blocks = [bytearray(1000) for _ in range(200_000)]
    global last, full
    last = blocks[-1]  # behind all others, so that they stay with the process
    full = megabytes()
"""

RETURNED = """
import test_a

def test_what_was_freed_is_the_systems_again():
    assert test_a.megabytes() < test_a.full - 150
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="needs glibc's malloc_trim")
def test_freed_memory_does_not_stay_with_the_worker(tmp_path):
    freed = FREED.replace("PAGE", str(os.sysconf("SC_PAGE_SIZE")))
    (tmp_path / "test_a.py").write_text(freed)
    (tmp_path / "test_b.py").write_text(RETURNED)
    plugins = ["-p", "conftest", "-p", "no:cacheprovider", "-o", "addopts="]
    run = [sys.executable, "-m", "pytest", *plugins, "--rootdir", tmp_path, tmp_path]
    done = subprocess.run(run, cwd=TESTS, capture_output=True)
    assert b"2 passed" in done.stdout, done.stdout.decode()


SLOW_EXAMPLES = """
import time
from hypothesis import given, settings, strategies

@settings(max_examples=2)
@given(strategies.booleans())
def test_an_example_takes_long(value):
    time.sleep(0.3)
"""


def test_an_example_may_take_as_long_as_it_takes(tmp_path):
    path = tmp_path / "test_slow.py"
    path.write_text(SLOW_EXAMPLES)
    plugins = ["-p", "conftest", "-p", "no:cacheprovider", "-o", "addopts="]
    run = [sys.executable, "-m", "pytest", *plugins, "--rootdir", tmp_path, path]
    # Where these are set hypothesis has no deadline anyway.
    own = {k: v for k, v in os.environ.items() if k not in ("CI", "GITHUB_ACTIONS")}
    done = subprocess.run(run, cwd=TESTS, env=own, capture_output=True)
    assert b"1 passed" in done.stdout, done.stdout.decode()
