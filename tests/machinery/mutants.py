"""Make small wrong changes to the mechanisms, one at a time: do the tests notice?

``make mutants``, or ``python tests/machinery/mutants.py [--only SUBSTRING] [--each N]``.
The changes are found in a module's syntax tree: a plus becomes a minus, the first two
arguments of a call change places. Of those that a module allows, some are drawn, the same
ones as long as the module is the same. ``mutants.toml`` says which tests should fail: those
of behaviour, against an oracle. Tests that compare the package's text with the page's would
notice nearly all of these, but only as text; they are left out.

The checkout is not touched. Each change is made in a copy of ``src`` and ``tests`` in a
temporary folder, with the rest of the repository linked beside them. The tests named must
pass there without a change.

No mutation tool does this in an hour: mutmut makes every change that there is and cannot
draw a sample, which for the mechanisms takes about a day; cosmic-ray starts pytest afresh
for each change, with its import of torch, 12 seconds and more.

Some changes make no difference that anybody could see: another constant against division
by zero, a larger cache. So not all can be caught, and a survivor is a question to the tests
and no verdict.
"""

import argparse
import ast
import copy
import functools
import multiprocessing
import os
import random
import re
import resource
import shutil
import signal
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from multiprocessing import forkserver
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
CATALOGUE = Path(__file__).with_name("mutants.toml")
EACH = 6  # how many changes are drawn in a module
NEEDED = 0.8  # share of the mutants that must be caught
# A mutant that takes so many times the processor time of the tests without a change, and a
# minute more, counts as one that never ends.
ENDLESS = 10
LIMIT = 3000  # seconds of processor time for tests without a change: it ends a hang
PATIENCE = 10 * LIMIT  # seconds on the clock: a hang, which says nothing of the mutant
MOST = 6 * 2**30  # bytes that it may fill
SECONDS = ".pytest.seconds"  # file of a copy: the processor time that its tests took
NOT_THE_COPY = 99  # no exit status of pytest's
SURVIVED = "SURVIVED"
PYTEST = (
    "-x",
    "-q",
    "-p",
    "no:cacheprovider",
    "-o",
    "addopts=",  # no nbval: importing it takes seconds
    "--strict-markers",
    "-m",
    "not slow",
    "-k",
    "not same_code",
)
# What the tests import, most of the time that they take: once, then each run is a fork.
PRELOAD = (
    "pytest",
    "_pytest.assertion.rewrite",
    "hypothesis.strategies",
    "matplotlib.pyplot",
    "pandas",
    "plotly.graph_objects",
    "scipy.stats",
    "sklearn.neighbors",
    "tokenizers",
    "sklearn.decomposition",
    "torch",
    "torch.utils.flop_counter",
    "torch.testing",
    "transformers.models.bert.modeling_bert",
    "transformers.models.t5.modeling_t5",
    "transformers.models.llama.modeling_llama",
    "jupytext",
    "regex",
    "tqdm.auto",
    "transformers.models.bloom.modeling_bloom",
)
_FAILED = re.compile(r"^(?:FAILED|ERROR) (?:tests/)?(.+?)(?: - .*)?$", re.MULTILINE)


SWAPPED_OPERATORS = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.And: ast.Or,
    ast.Or: ast.And,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
}
SWAPPED_COMPARISONS = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
# What says something to people or to tools, and computes nothing.
NOT_COMPUTED = (ast.Raise, ast.Assert, ast.JoinedStr)


class Mutant(NamedTuple):
    """One wrong change.

    Attributes
    ----------
    path : str
        The module, below ``src``.
    line : int
        Where the change is.
    old, new : str
        The expression, and what replaces it.
    source : str
        The changed module.
    tests : tuple of str
        Test files, below ``tests``, that should fail.
    """

    path: str
    line: int
    old: str
    new: str
    source: str
    tests: tuple[str, ...]

    def __str__(self):
        return f"{self.path}:{self.line}: {self.old} → {self.new}"


# --- finding places -------------------------------------------------------------------


def computing_nodes(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes of a tree that compute: no annotations, decorators, messages."""
    yield tree
    for field, value in ast.iter_fields(tree):
        if field in ("annotation", "returns", "decorator_list"):
            continue
        for node in value if isinstance(value, list) else [value]:
            if isinstance(node, ast.AST) and not isinstance(node, NOT_COMPUTED):
                yield from computing_nodes(node)


def changed(node: ast.AST) -> ast.expr | None:
    """Return a wrong expression to stand for this one; None if there is none to offer."""
    match node:
        case ast.BinOp(op=op) | ast.BoolOp(op=op) if type(op) in SWAPPED_OPERATORS:
            return _with(node, op=SWAPPED_OPERATORS[type(op)]())
        case ast.Compare(ops=[op]) if type(op) in SWAPPED_COMPARISONS:
            return _with(node, ops=[SWAPPED_COMPARISONS[type(op)]()])
        case ast.UnaryOp(op=ast.Not() | ast.Invert() | ast.USub(), operand=operand):
            return operand
        case ast.Constant(value=bool(value)):
            return _with(node, value=not value)
        case ast.Constant(value=int(value)):
            return _with(node, value=value + 1)
        case ast.Constant(value=float(value)):
            return _with(node, value=2 * value)
        case ast.Call(args=[first, second, *rest]):
            if _can_change_places(first, second):
                return _with(node, args=[second, first, *rest])
    return None


def _with(node: ast.AST, **fields) -> ast.AST:
    """Return a copy of a node with other fields."""
    node = copy.copy(node)
    for name, value in fields.items():
        setattr(node, name, value)
    return node


def _can_change_places(first: ast.expr, second: ast.expr) -> bool:
    """Whether two arguments differ, and neither stands for several."""
    starred = isinstance(first, ast.Starred) or isinstance(second, ast.Starred)
    return not starred and ast.unparse(first) != ast.unparse(second)


def replaced(source: str, node: ast.AST, new: str) -> str:
    """Return a source in which another expression stands for that of a node.

    Positions in a syntax tree count bytes, so bytes are replaced.
    """
    lines = source.encode().splitlines(keepends=True)
    before = b"".join(lines[: node.lineno - 1]) + lines[node.lineno - 1][: node.col_offset]
    last = node.end_lineno - 1
    after = lines[last][node.end_col_offset :] + b"".join(lines[last + 1 :])
    return (before + f"({new})".encode() + after).decode()


def find_mutants(path: str, source: str, tests: tuple[str, ...]) -> list[Mutant]:
    """Find all changes that a module allows, in the order of its source."""
    mutants = []
    for node in computing_nodes(ast.parse(source)):
        if new := changed(node):
            old, new = ast.unparse(node), ast.unparse(new)
            mutants.append(
                Mutant(path, node.lineno, old, new, replaced(source, node, new), tests)
            )
    return mutants


def draw_mutants(each: int = EACH, root: Path = ROOT, path: Path = CATALOGUE):
    """Draw some changes of every module of the catalogue, always the same ones.

    Returns
    -------
    list of Mutant
    """
    drawn = []
    for module, tests in tomllib.loads(path.read_text(encoding="utf-8")).items():
        source = (root / "src" / module).read_text(encoding="utf-8")
        mutants = find_mutants(module, source, tuple(tests))
        drawn += random.Random(module).sample(mutants, min(each, len(mutants)))
    return drawn


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


def _inside(copied: Path, tests: tuple[str, ...], log: Path, limit: int) -> None:
    """Run pytest in the copy: the whole of a forked process."""
    resource.setrlimit(resource.RLIMIT_DATA, (MOST, MOST))
    resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 5))
    os.chdir(copied)
    os.environ["PYTHONPATH"] = str(copied / "src")  # for processes that tests start
    sys.path[:0] = [str(copied / "src"), str(copied / "tests")]
    with log.open("w", encoding="utf-8") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    import pytest

    import lmcourse

    if not Path(lmcourse.__file__).resolve().is_relative_to(copied.resolve()):
        print(f"the tests would import {lmcourse.__file__}, not the copy in {copied}")
        sys.exit(NOT_THE_COPY)
    status = pytest.main([*PYTEST, *(f"tests/{name}" for name in tests)])
    (copied / SECONDS).write_text(str(time.process_time()))
    sys.exit(status)


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


def run_tests(copied: Path, tests: tuple[str, ...], limit: int) -> str:
    """Run test files in the copy; return what noticed: the first test that failed, or "".

    ``limit`` : int, seconds of processor time; tests that take longer never end.

    Raises
    ------
    RuntimeError
        If pytest itself failed, found no tests, would test another copy, hung or was
        killed.
    """
    log = copied / ".pytest.log"
    process = _forks().Process(target=_inside, args=(copied, tests, log, limit))
    process.start()
    process.join(PATIENCE)
    if process.is_alive():
        process.kill()
        process.join()
        raise RuntimeError(f"pytest {tests}: it hung for {PATIENCE} s")
    if process.exitcode == 0:
        return ""
    if process.exitcode == -signal.SIGXCPU:
        return f"no end within {limit} s"
    if process.exitcode == -signal.SIGKILL:  # of the system's, for want of memory
        raise RuntimeError(f"pytest {tests}: it was killed from outside")
    if process.exitcode < 0:  # a wrong size in a fused kernel, say
        return f"died of signal {-process.exitcode}"
    output = log.read_text(encoding="utf-8")
    failed = _FAILED.search(output)
    if not failed or process.exitcode == NOT_THE_COPY:
        raise RuntimeError(f"pytest {tests}: {process.exitcode}\n{output}")
    return failed[1]


def limit_unchanged(tests: tuple[str, ...], root: Path = ROOT) -> int:
    """Run tests on the sources as they are; return what limits them with a change.

    That is in seconds of processor time. RuntimeError if a test fails without a change.
    """
    with tempfile.TemporaryDirectory() as scratch:
        copied = make_copy(Path(scratch), root)
        if failed := run_tests(copied, tests, LIMIT):
            raise RuntimeError(f"{failed} fails without any change")
        return 60 + round(ENDLESS * float((copied / SECONDS).read_text()))


def run_mutant(mutant: Mutant, limit: int, root: Path = ROOT) -> str:
    """Run a mutant's tests on a copy with its change; return what noticed, or "".

    ``limit`` : int, seconds of processor time; tests that take longer never end.
    """
    with tempfile.TemporaryDirectory() as scratch:
        copied = make_copy(Path(scratch), root)
        (copied / "src" / mutant.path).write_text(mutant.source, encoding="utf-8")
        return run_tests(copied, mutant.tests, limit)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", default="", help="mutants whose line holds this")
    parser.add_argument("--each", type=int, default=EACH, help="changes a module")
    parser.add_argument("--jobs", type=int, default=2, help="processes at a time")
    options = parser.parse_args()
    mutants = [m for m in draw_mutants(options.each) if options.only in str(m)]
    if not mutants:
        parser.error(f"no mutant holds {options.only!r}")
    survivors = []
    with ThreadPoolExecutor(options.jobs) as pool:
        groups = list({mutant.tests for mutant in mutants})
        limits = dict(zip(groups, pool.map(limit_unchanged, groups), strict=True))
        print(f"{len(groups)} sets of tests pass without any change.", flush=True)
        caught_by = pool.map(run_mutant, mutants, [limits[each.tests] for each in mutants])
        for mutant, test in zip(mutants, caught_by, strict=True):
            print(f"{mutant}\n    {test or SURVIVED}", flush=True)
            if not test:
                survivors.append(mutant)
    caught = 1 - len(survivors) / len(mutants)
    print("Survivors:", *survivors, sep="\n")
    # The last line: `make steady` shows it.
    print(f"{caught:.1%} of {len(mutants)} mutants caught.")
    return int(caught < NEEDED)


if __name__ == "__main__":
    sys.exit(main())
