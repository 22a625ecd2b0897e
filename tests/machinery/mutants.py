"""Make small wrong changes to the mechanisms, one at a time: do the tests notice?

``make mutants``, or ``python tests/machinery/mutants.py [--only SUBSTRING] [--jobs N]``.
The changes are in ``mutants.toml``, each with the tests that should fail: those of
behaviour, against an oracle. Tests that compare the package's text with the page's would
notice nearly all of these, but only as text; they are left out.

The checkout is not touched. Each change is made in a copy of ``src`` and ``tests`` in a
temporary folder, with the rest of the repository linked beside them. The tests named must
pass there without a change; a change whose line is not found exactly once is an error.
"""

import argparse
import functools
import multiprocessing
import os
import re
import resource
import shutil
import sys
import tempfile
import tomllib
from concurrent.futures import ThreadPoolExecutor
from multiprocessing import forkserver
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
CATALOGUE = Path(__file__).with_name("mutants.toml")
KINDS = {"sign", "axis", "scale", "mask", "off by one", "transposition"}
NEEDED = 0.95  # share of the mutants that must be caught
LIMIT = 300  # seconds after which a mutant counts as one that never ends
MOST = 6 * 2**30  # bytes that it may fill
NOT_THE_COPY = 99  # no exit status of pytest's
SURVIVED = "SURVIVED"
PYTEST = (
    *("-x", "-q", "-p", "no:cacheprovider"),
    *("-o", "addopts=", "--strict-markers"),  # no nbval: importing it takes seconds
    *("-m", "not slow", "-k", "not same_code"),
)
# What the tests import, most of the time that they take: once, then each run is a fork.
PRELOAD = (
    *("pytest", "_pytest.assertion.rewrite", "hypothesis.strategies", "matplotlib.pyplot"),
    *("pandas", "plotly.graph_objects", "scipy.stats", "sklearn.neighbors", "tokenizers"),
    *("sklearn.decomposition", "torch", "torch.utils.flop_counter", "torch.testing"),
    *("transformers.models.bert.modeling_bert", "transformers.models.t5.modeling_t5"),
    *("transformers.models.llama.modeling_llama", "jupytext", "regex", "tqdm.auto"),
    "transformers.models.bloom.modeling_bloom",
)
_FAILED = re.compile(r"^(?:FAILED|ERROR) (?:tests/)?(.+?)(?: - .*)?$", re.MULTILINE)


class Mutant(NamedTuple):
    """One wrong change.

    Attributes
    ----------
    path : str
        The module, below ``src``.
    kind : str
        One of `KINDS`.
    old, new : str
        A fragment of the source that occurs exactly once, and what replaces it.
    tests : tuple of str
        Test files, below ``tests``, that should fail.
    """

    path: str
    kind: str
    old: str
    new: str
    tests: tuple[str, ...]

    def __str__(self):
        return f"{self.path}: {self.old} → {self.new}"

    def apply(self, root: Path) -> str:
        """Return the changed source of a repository; ValueError if it does not apply."""
        source = (root / "src" / self.path).read_text(encoding="utf-8")
        count = source.count(self.old)
        if count != 1:
            raise ValueError(f"{self}: found {count} times, must be there exactly once")
        return source.replace(self.old, self.new)


def catalogue(path: Path = CATALOGUE) -> list[Mutant]:
    """Read the mutants, in the order of the file."""
    return [
        Mutant(path, kind, old, new, tuple(module["tests"]))
        for path, module in tomllib.loads(path.read_text(encoding="utf-8")).items()
        for kind, old, new in module["mutants"]
    ]


# --- a private copy, and the tests in it ----------------------------------------------


def make_copy(folder: Path, root: Path = ROOT) -> Path:
    """Copy ``src`` and ``tests``, link everything else but hidden files and builds."""
    skipped = shutil.ignore_patterns("__pycache__", "*.egg-info")
    for entry in root.iterdir():
        if entry.name in ("src", "tests"):
            shutil.copytree(entry, folder / entry.name, ignore=skipped)
        elif not entry.name.startswith((".", "_build")) and entry.name != "build":
            (folder / entry.name).symlink_to(entry)
    return folder


def _inside(copy: Path, tests: tuple[str, ...], log: Path) -> None:
    """Run pytest in the copy: the whole of a forked process."""
    resource.setrlimit(resource.RLIMIT_DATA, (MOST, MOST))
    os.chdir(copy)
    os.environ["PYTHONPATH"] = str(copy / "src")  # for processes that tests start
    sys.path[:0] = [str(copy / "src"), str(copy / "tests")]
    with log.open("w", encoding="utf-8") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    import pytest

    import lmcourse

    if not Path(lmcourse.__file__).resolve().is_relative_to(copy.resolve()):
        print(f"the tests would import {lmcourse.__file__}, not the copy in {copy}")
        sys.exit(NOT_THE_COPY)
    sys.exit(pytest.main([*PYTEST, *(f"tests/{name}" for name in tests)]))


@functools.cache
def _forks():
    """Return the maker of processes, in which `PRELOAD` is imported already.

    ``CI`` makes hypothesis draw the same examples every time.
    """
    before = dict(os.environ)
    os.environ |= {
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        "OMP_NUM_THREADS": "1",
        "TOKENIZERS_PARALLELISM": "false",
        "MPLBACKEND": "agg",
        "CI": "1",
    }
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([*PRELOAD])
    forkserver.ensure_running()
    os.environ.clear()  # those are for the forks only
    os.environ.update(before)
    return context


def run_tests(copy: Path, tests: tuple[str, ...]) -> str:
    """Run test files in the copy; return what noticed: the first test that failed, or "".

    Raises
    ------
    RuntimeError
        If pytest itself failed, found no tests, or would test another copy.
    """
    log = copy / ".pytest.log"
    process = _forks().Process(target=_inside, args=(copy, tests, log))
    process.start()
    process.join(LIMIT)
    if process.is_alive():
        process.kill()
        process.join()
        return f"no end within {LIMIT} s"
    if process.exitcode == 0:
        return ""
    if process.exitcode < 0:  # a wrong size in a fused kernel, say
        return f"died of signal {-process.exitcode}"
    output = log.read_text(encoding="utf-8")
    failed = _FAILED.search(output)
    if not failed or process.exitcode == NOT_THE_COPY:
        raise RuntimeError(f"pytest {tests}: {process.exitcode}\n{output}")
    return failed[1]


def check_unchanged(tests: tuple[str, ...], root: Path = ROOT) -> None:
    """Run tests on the sources as they are; RuntimeError if one fails without a change."""
    with tempfile.TemporaryDirectory() as scratch:
        if failed := run_tests(make_copy(Path(scratch), root), tests):
            raise RuntimeError(f"{failed} fails without any change")


def run_mutant(mutant: Mutant, root: Path = ROOT) -> str:
    """Run a mutant's tests on a copy with its change; return what noticed, or ""."""
    with tempfile.TemporaryDirectory() as scratch:
        copy = make_copy(Path(scratch), root)
        (copy / "src" / mutant.path).write_text(mutant.apply(root), encoding="utf-8")
        return run_tests(copy, mutant.tests)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", default="", help="mutants whose line holds this")
    parser.add_argument("--jobs", type=int, default=2, help="processes at a time")
    options = parser.parse_args()
    mutants = [mutant for mutant in catalogue() if options.only in str(mutant)]
    if not mutants:
        parser.error(f"no mutant holds {options.only!r}")
    for mutant in mutants:  # before anything is run
        mutant.apply(ROOT)
    survivors = []
    with ThreadPoolExecutor(options.jobs) as pool:
        groups = {mutant.tests for mutant in mutants}
        list(pool.map(check_unchanged, groups))
        print(f"{len(groups)} sets of tests pass without any change.", flush=True)
        for mutant, test in zip(mutants, pool.map(run_mutant, mutants), strict=True):
            print(f"{mutant} ({mutant.kind})\n    {test or SURVIVED}", flush=True)
            survivors += [] if test else [mutant]
    caught = 1 - len(survivors) / len(mutants)
    print(
        f"{caught:.1%} of {len(mutants)} mutants caught. Survivors:", *survivors, sep="\n"
    )
    return int(caught < NEEDED)


if __name__ == "__main__":
    sys.exit(main())
