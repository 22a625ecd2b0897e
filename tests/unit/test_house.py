"""The house: which way imports point, and that no module is left that nobody uses."""

import ast
from functools import cache
from pathlib import Path

import pytest
import yaml

from chapters import page_cells

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src"
COMMANDS = {"lmcourse.train"}  # run, not imported


@cache
def parsed(source: str) -> list[ast.AST]:
    """Return all nodes of a program."""
    return list(ast.walk(ast.parse(source)))


@cache
def rooms() -> dict[str, dict[Path, str]]:
    """Return the modules of each room, with their text."""
    course = {*(SOURCE / "lmcourse").rglob("*.py")}
    exercises = {*(SOURCE / "lmcourse" / "exercises").rglob("*.py")}
    files = {
        "lmcourse": course - exercises,
        "exercises": exercises,
        "studies": (SOURCE / "studies").rglob("*.py"),
        "lmbook": (SOURCE / "lmbook").rglob("*.py"),
    }
    return {
        room: {path: path.read_text(encoding="utf-8") for path in sorted(paths)}
        for room, paths in files.items()
    }


def imported(source: str) -> set[str]:
    """Return the dotted names that a program imports, anywhere in it."""
    names = set()
    for node in parsed(source):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {f"{node.module}.{alias.name}" for alias in node.names} | {node.module}
    return names


def within(names: set[str], *packages: str) -> set[str]:
    """Return the names that lie in one of the packages."""
    return {n for n in names if any(f"{n}.".startswith(f"{p}.") for p in packages)}


@cache
def pages() -> dict[str, str]:
    """Return the code of every chapter, exercises included, in the book's order."""
    toc = yaml.safe_load((ROOT / "_toc.yml").read_text(encoding="utf-8"))
    listed = [page["file"] for part in toc["parts"] for page in part["chapters"]]
    code = {name: "\n".join(cell.source for cell in page_cells(name)) for name in listed}
    return {name: source for name, source in code.items() if source}


FORBIDDEN = {
    "lmcourse": ("lmbook", "studies"),
    "exercises": ("lmbook", "studies"),
    "studies": ("lmbook",),
}


@pytest.mark.parametrize("room", FORBIDDEN)
def test_imports_point_one_way(room):
    for path, text in rooms()[room].items():
        assert not within(imported(text), *FORBIDDEN[room]), path
        if room == "lmcourse" and not {"views", "figures"} & {*path.parts}:
            assert not within(imported(text), "lmcourse.views", "lmcourse.exercises"), path


def module_names(room: str) -> dict[str, str]:
    """Return the modules of a room by dotted name, and their text."""
    return {
        ".".join(path.relative_to(SOURCE).with_suffix("").parts): text
        for path, text in rooms()[room].items()
    }


def test_every_module_is_imported():
    programs = [*pages().values(), *rooms()["exercises"].values()]
    programs += [*rooms()["studies"].values(), *rooms()["lmbook"].values()]
    used = set().union(*map(imported, programs), COMMANDS)
    ours = module_names("lmcourse")
    for name, text in ours.items():
        used |= {other for other in imported(text) if other != name}
    left = {name for name in ours if not name.endswith("__init__")} - used
    assert not left, "no chapter, study or module imports these"
