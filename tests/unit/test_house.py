"""The house: which way imports point, and how much there is to read."""

import ast
import io
import re
import tokenize
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src"
CHAPTERS = Path(__file__).parents[2] / "chapters"
# Lines of Python, exercises apart. 3,000 and 2,200 held nine chapters and their build; the
# rest is for what came after: the form of a page, the views, the models in the page, a
# mini-BERT, stored runs. What keeps it readable is that no module is long.
LIMITS = {"lmcourse": 5600, "studies": 1200, "lmbook": 4750}
MODULE = 210


def code_lines(source: str) -> int:
    """Return how many lines hold code: not docstrings, comments or blanks."""
    kept: set[int] = set()
    nothing = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT)
    nothing += (tokenize.DEDENT, tokenize.ENCODING, tokenize.ENDMARKER)
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in nothing:
            kept |= set(range(token.start[0], token.end[0] + 1))
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, kinds) and ast.get_docstring(node, clean=False) is not None:
            kept -= set(range(node.body[0].lineno, node.body[0].end_lineno + 1))
    return len(kept)


def modules(package: str) -> list[Path]:
    """Return a package's modules, exercises apart."""
    files = sorted((SOURCE / package).rglob("*.py"))
    return [file for file in files if "exercises" not in file.relative_to(SOURCE).parts]


def imported(source: str) -> set[str]:
    """Return the names of the packages that a module imports, anywhere in it."""
    nodes = list(ast.walk(ast.parse(source)))
    found = {n.module for n in nodes if isinstance(n, ast.ImportFrom) and n.module}
    found |= {a.name for n in nodes if isinstance(n, ast.Import) for a in n.names}
    return {name.partition(".")[0] for name in found}


@pytest.mark.parametrize("package", LIMITS)
def test_it_stays_small(package):
    lines = {str(f): code_lines(f.read_text(encoding="utf-8")) for f in modules(package)}
    assert 0 < sum(lines.values()) <= LIMITS[package], lines
    assert max(lines.values()) <= MODULE, lines


@pytest.mark.parametrize(
    ("source", "lines"),
    [
        ('"""Two\nlines."""\nx = 1\n', 1),
        ('def f():\n    """Doc."""\n    return """a\nb"""\n', 3),
        ("# comment\n\nx = 1  # why\n", 1),
        ("y = (\n    1,  # one\n)\n", 3),
    ],
)
def test_lines_of_code_are_counted(source, lines):
    assert code_lines(source) == lines


@pytest.mark.parametrize(
    ("room", "closed"), [("lmcourse", {"lmbook", "studies"}), ("studies", {"lmbook"})]
)
def test_imports_point_one_way(room, closed):
    for file in (SOURCE / room).rglob("*.py"):
        assert not closed & imported(file.read_text(encoding="utf-8")), file


def test_no_chapter_imports_what_builds_it():
    for page in CHAPTERS.glob("*.md"):
        text = page.read_text(encoding="utf-8")
        assert not re.search(r"^ *(import|from) (lmbook|studies)\b", text, re.M), page
