"""The house: how much there is to read, which way imports point, what belongs together."""

import ast
import re
import textwrap
import tomllib
from functools import cache
from pathlib import Path

import pytest
import yaml

from chapters import CHAPTERS, page_cells
from test_same_code import SAME

ROOT = Path(__file__).parents[2]
SOURCE, TESTS = ROOT / "src", ROOT / "tests"
# Lines of code, room by room: the numbers reached. They only fall, or rise by what a new
# page needs.
LIMITS = {
    "lmcourse": 4881,  # exercises apart
    "exercises": 3518,
    "studies": 2461,
    "lmbook": 3686,
    "tests": 13_978,  # right and wrong answers apart
    "scripts": 6697,  # with styles, every line
}
MODULE, FUNCTION = 300, 31  # lines of code
COMMANDS = {"lmcourse.train"}  # run, not imported


@cache
def parsed(source: str) -> list[ast.AST]:
    """Return all nodes of a program."""
    return list(ast.walk(ast.parse(source)))


def code_lines(source: str) -> int:
    """Return how many lines hold code: not docstrings, comments or blanks."""
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    strings: set[int] = set()
    for node in parsed(source):
        if isinstance(node, kinds) and ast.get_docstring(node, clean=False) is not None:
            strings |= set(range(node.body[0].lineno, node.body[0].end_lineno + 1))
    lines = enumerate(source.split("\n"), 1)
    kept = [n for n, line in lines if line.strip() and not line.strip().startswith("#")]
    return len(set(kept) - strings)


@cache
def rooms() -> dict[str, dict[Path, str]]:
    """Return the files of each room, with their text."""
    course = {*(SOURCE / "lmcourse").rglob("*.py")}
    exercises = {*(SOURCE / "lmcourse" / "exercises").rglob("*.py")}
    tables = {*(TESTS / "pages" / "wrong_answers").rglob("*.py")}
    both = [p for place in (SOURCE, CHAPTERS) for p in place.rglob("*.[jc]s*")]
    files = {
        "lmcourse": course - exercises,
        "exercises": exercises,
        "studies": (SOURCE / "studies").rglob("*.py"),
        "lmbook": (SOURCE / "lmbook").rglob("*.py"),
        "tests": {*TESTS.rglob("*.py")} - tables,
        "scripts": [p for p in both if p.suffix != ".json" and ".min." not in p.name],
    }
    return {
        room: {path: path.read_text(encoding="utf-8") for path in sorted(paths)}
        for room, paths in files.items()
    }


@pytest.mark.parametrize("room", LIMITS)
def test_a_room_stays_small(room):
    count = code_lines if room != "scripts" else lambda text: text.count("\n")
    lines = {str(path): count(text) for path, text in rooms()[room].items()}
    assert 0 < sum(lines.values()) <= LIMITS[room], lines
    if room not in ("tests", "scripts"):
        assert max(lines.values()) <= MODULE, lines


def functions(source: str) -> dict[str, int]:
    """Return the functions of a module, and how many lines of code each has."""
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    lines, found = source.split("\n"), [n for n in parsed(source) if isinstance(n, kinds)]
    return {
        n.name: code_lines(textwrap.dedent("\n".join(lines[n.lineno - 1 : n.end_lineno])))
        for n in found
    }


@pytest.mark.parametrize("room", ["lmcourse", "studies", "lmbook"])
def test_no_function_is_long(room):
    texts = rooms()[room].items()
    long = {
        (p.name, f): n for p, t in texts for f, n in functions(t).items() if n > FUNCTION
    }
    assert not long


# --- imports --------------------------------------------------------------------------


def imported(source: str) -> set[str]:
    """Return the dotted names that a program imports, anywhere in it."""
    found = set()
    for node in parsed(source):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {f"{node.module}.{alias.name}" for alias in node.names} | {node.module}
    return found


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
        if room == "lmcourse" and "views" not in path.parts:
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


# --- the table in the README ----------------------------------------------------------

HEAD = "| chapter | modules of `lmcourse` | studies | tests in `tests/unit/` |"
EVERYWHERE = {"data", "measure", "models", "views", "exercises"}


def row(name: str, source: str) -> str:
    """Return a chapter's row; modules that hold the code that it arrives at are bold."""
    built = {m.split(".")[1] for page, m, _ in SAME if page == name and "lmcourse." in m}
    names = within(imported(source), "lmcourse") - {"lmcourse"}
    used = {name.split(".")[1] for name in names}
    known = {path.stem for path in (SOURCE / "lmcourse").iterdir()}
    modules = sorted((built | used) & known - EVERYWHERE)
    names = [f"{m}*" if (SOURCE / "lmcourse" / m).is_dir() else m for m in modules]
    tests = [f"test_{m}" for m in names if [*(TESTS / "unit").glob(f"test_{m}.py")]]
    studies = sorted(set(re.findall(r'\bstored\(\s*"([\w-]+)"', source)))
    named = [f"**{module}**" if module in built else module for module in modules]
    cells = [", ".join(words) or "–" for words in (named, studies, tests)]
    return f"| [{name}](chapters/{name}.md) | {' | '.join(cells)} |"


def test_the_readme_has_the_table_of_chapters():
    rows = [HEAD, "|---|---|---|---|", *(row(*page) for page in pages().items())]
    table = "\n".join(rows)
    assert table in (ROOT / "README.md").read_text("utf-8"), f"should have\n{table}"


def test_every_mutant_has_one_line_to_change():
    text = (TESTS / "machinery" / "mutants.toml").read_text(encoding="utf-8")
    for path, entry in tomllib.loads(text).items():
        for _, old, _ in entry["mutants"]:
            assert (SOURCE / path).read_text("utf-8").count(old) == 1, (path, old)
