"""Make small wrong changes to the mechanisms, one at a time: do the tests notice?

``make mutants``, or ``python tests/machinery/mutants.py [--only SUBSTRING] [--jobs N]``.
The changes are in ``mutants.toml``, each with the tests that should fail: those of
behaviour, against an oracle. Tests that compare the package's text with the page's would
notice nearly all of these, but only as text; they are left out.

The checkout is not touched. Each worker has a copy of ``src`` and ``tests`` in a temporary
folder, with the rest of the repository linked beside them. The tests named must pass there
before anything is changed; a change whose line is not found exactly once is an error.
"""

import argparse
import functools
import multiprocessing
import os
import re
import shutil
import sys
import tempfile
import time
import tomllib
from concurrent.futures import ThreadPoolExecutor, as_completed
from multiprocessing import forkserver
from pathlib import Path
from queue import SimpleQueue
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
CATALOGUE = Path(__file__).with_name("mutants.toml")
PACKAGE = Path("src")
KINDS = {"sign", "axis", "scale", "mask", "off by one", "transposition"}
NEEDED = 0.95  # share of the mutants that must be caught
SLOWER = 10  # a mutant may take that many times as long as the tests did without it
LEAST_LIMIT = 120  # seconds
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
    *("transformers.models.bert.modeling_bert", "transformers.models.gptj.modeling_gptj"),
    *("transformers.models.llama.modeling_llama", "transformers.models.t5.modeling_t5"),
    *("transformers.models.bloom.modeling_bloom", "jupytext", "regex", "tqdm.auto"),
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

    def apply(self, source: str) -> str:
        """Return the source with the change; ValueError if it does not apply."""
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
    folder.mkdir(parents=True)
    skipped = shutil.ignore_patterns("__pycache__", "*.egg-info")
    for entry in root.iterdir():
        if entry.name in ("src", "tests"):
            shutil.copytree(entry, folder / entry.name, ignore=skipped)
        elif not entry.name.startswith((".", "_build")) and entry.name != "build":
            (folder / entry.name).symlink_to(entry)
    return folder


def _inside(copy: Path, tests: tuple[str, ...], log: Path) -> None:
    """Run pytest in the copy: the whole of a forked process."""
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

    No bytecode is written: it is matched by a time in seconds and a size, and two mutants
    may share both. ``CI`` makes hypothesis draw the same examples every time.
    """
    before = dict(os.environ)
    os.environ |= {
        "PYTHONDONTWRITEBYTECODE": "1",
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


def run_tests(copy: Path, tests: tuple[str, ...], limit: float | None = None) -> str:
    """Run test files in the copy; return what noticed: the first test that failed, or "".

    Raises
    ------
    RuntimeError
        If pytest itself failed, found no tests, or would test another copy.
    """
    log = copy / ".pytest.log"
    process = _forks().Process(target=_inside, args=(copy, tests, log))
    process.start()
    process.join(limit)
    if process.is_alive():
        process.kill()
        process.join()
        return f"no end within {limit:.0f} s"
    if process.exitcode == 0:
        return ""
    if process.exitcode < 0:  # a wrong size in a fused kernel, say
        return f"died of signal {-process.exitcode}"
    output = log.read_text(encoding="utf-8")
    failed = _FAILED.search(output)
    if not failed or process.exitcode == NOT_THE_COPY:
        raise RuntimeError(f"pytest {tests}: {process.exitcode}\n{output}")
    return failed[1]


def run_mutant(copy: Path, mutant: Mutant, limit: float | None = None) -> str:
    """Apply a mutant in the copy and run its tests; the copy is as before afterwards."""
    path = copy / PACKAGE / mutant.path
    source = path.read_text(encoding="utf-8")
    path.write_text(mutant.apply(source), encoding="utf-8")
    try:
        return run_tests(copy, mutant.tests, limit)
    finally:
        path.write_text(source, encoding="utf-8")


# --- all of them ----------------------------------------------------------------------


def in_parallel(work, items: list, copies: list[Path]):
    """Yield (item, work(copy, item)) as they end, each on a copy of its own."""
    free: SimpleQueue[Path] = SimpleQueue()
    for copy in copies:
        free.put(copy)

    def one(item):
        copy = free.get()
        try:
            return item, work(copy, item)
        finally:
            free.put(copy)

    with ThreadPoolExecutor(len(copies)) as pool:
        for future in as_completed([pool.submit(one, item) for item in items]):
            yield future.result()


def time_unchanged(mutants: list[Mutant], copies: list[Path]) -> dict[tuple, float]:
    """Run each set of tests on the sources as they are; return how long each took.

    Raises
    ------
    RuntimeError
        If a test fails without any change: then its failure would say nothing.
    """

    def timed(copy, tests):
        start = time.monotonic()
        return run_tests(copy, tests), time.monotonic() - start

    seconds = {}
    groups = list(dict.fromkeys(mutant.tests for mutant in mutants))
    for tests, (failed, took) in in_parallel(timed, groups, copies):
        if failed:
            raise RuntimeError(f"{failed} fails without any change")
        seconds[tests] = took
    return seconds


def closing(results: dict[Mutant, str]) -> tuple[str, bool]:
    """Return the closing lines, and whether enough of the mutants were caught."""
    survivors = [str(mutant) for mutant, test in results.items() if not test]
    caught = len(results) - len(survivors)
    share = caught / len(results)
    lines = [f"{caught} of {len(results)} mutants caught ({share:.1%})."]
    if survivors:
        lines += ["Survivors:", *(f"  {name}" for name in survivors)]
    return "\n".join(lines), share >= NEEDED


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", default="", help="mutants whose line holds this")
    parser.add_argument("--jobs", type=int, default=2, help="processes at a time")
    options = parser.parse_args(arguments)
    mutants = [mutant for mutant in catalogue() if options.only in str(mutant)]
    if not mutants:
        parser.error(f"no mutant holds {options.only!r}")
    for mutant in mutants:  # before anything is run
        mutant.apply((ROOT / PACKAGE / mutant.path).read_text(encoding="utf-8"))
    with tempfile.TemporaryDirectory() as scratch:
        copies = [make_copy(Path(scratch) / str(job)) for job in range(options.jobs)]
        seconds = time_unchanged(mutants, copies)
        print(f"{len(seconds)} sets of tests pass without any change.", flush=True)

        def work(copy, mutant):
            limit = max(LEAST_LIMIT, SLOWER * seconds[mutant.tests])
            return run_mutant(copy, mutant, limit)

        results = {}
        for mutant, test in in_parallel(work, mutants, copies):
            results[mutant] = test
            print(f"{mutant} ({mutant.kind})\n    {test or SURVIVED}", flush=True)
    text, enough = closing({mutant: results[mutant] for mutant in mutants})
    print(text)
    return 0 if enough else 1


if __name__ == "__main__":
    sys.exit(main())
