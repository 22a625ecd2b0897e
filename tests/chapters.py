"""Reading a chapter as its readers do: its code cells, definitions and exercises.

Shared by the tests that hold the pages and the package together.
"""

import ast
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import jupytext

CHAPTERS = Path(__file__).parents[1] / "chapters"
_GATE = re.compile(
    r"^(?:`{3,}|:{3,})\{(exercise|solution)-(start|end)\}[ \t]*(\S*)(.*?)^(?:`{3,}|:{3,})",
    re.MULTILINE | re.DOTALL,
)
_LABEL = re.compile(r"^:label:[ \t]*(\S+)", re.MULTILINE)


@dataclass(frozen=True)
class Cell:
    """A code cell: its source, its tags and the exercise that it stands in, if any."""

    source: str
    tags: tuple[str, ...] = ()
    exercise: str = ""  # the label, "ex-chapter-name"
    part: str = ""  # "exercise" (the starter) or "solution"


@dataclass(frozen=True)
class Exercise:
    """The code of one exercise, starter and solution, cells joined."""

    starter: str
    solution: str


def parse_cells(text: str) -> list[Cell]:
    """Return the code cells of a MyST page, told which exercise each belongs to."""
    cells, label, part = [], "", ""
    for cell in jupytext.reads(text, fmt="md:myst").cells:
        if cell.cell_type == "code":
            tags = tuple(cell.metadata.get("tags", ()))
            cells.append(Cell(cell.source, tags, label, part))
            continue
        for kind, edge, argument, options in _GATE.findall(cell.source):
            if edge == "end":
                label, part = "", ""
            elif kind == "solution":
                label, part = argument, "solution"
            else:
                named = _LABEL.search(options)
                label, part = (named[1] if named else argument), "exercise"
    return cells


@cache
def page_cells(chapter: str) -> tuple[Cell, ...]:
    """Return the code cells of ``chapters/<chapter>.md``, in order."""
    return tuple(parse_cells((CHAPTERS / f"{chapter}.md").read_text(encoding="utf-8")))


def page_code(chapter: str) -> str:
    """Return the code of the page as one program, exercises and solutions left out."""
    return "\n\n".join(cell.source for cell in page_cells(chapter) if not cell.part)


def page_definitions(chapter: str) -> dict[str, ast.AST]:
    """Return the page's top-level functions and classes, name → syntax tree.

    Where the page defines a name several times, in steps, the last one counts.
    """
    return definitions(page_code(chapter))


def definitions(source: str) -> dict[str, ast.AST]:
    """Return the top-level functions and classes of a program, name → syntax tree."""
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    return {node.name: node for node in ast.parse(source).body if isinstance(node, kinds)}


def exercise_cells(chapter: str) -> dict[str, Exercise]:
    """Return the page's exercises by label (``ex-chapter-name``), in order."""
    labels = dict.fromkeys(cell.exercise for cell in page_cells(chapter) if cell.part)

    def code(label: str, part: str) -> str:
        chosen = [c for c in page_cells(chapter) if (c.exercise, c.part) == (label, part)]
        return "\n\n".join(cell.source for cell in chosen)

    return {
        label: Exercise(code(label, "exercise"), code(label, "solution"))
        for label in labels
    }


def page_namespace(chapter: str) -> dict:
    """Return the names that the page's imports and definitions bring, nothing else run."""
    keep = (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.ClassDef)
    tree = ast.parse(page_code(chapter))
    tree.body = [node for node in tree.body if isinstance(node, keep)]
    namespace: dict = {"__name__": f"page_{chapter.replace('-', '_')}"}
    exec(compile(tree, f"chapters/{chapter}.md", "exec"), namespace)
    return namespace


def last_value(code: str, namespace: dict) -> object:
    """Execute a cell in ``namespace``; return the value of its last expression.

    Typical use: ``last_value(exercise.starter, page_namespace(chapter))`` is the verdict.
    The solution's cell ends in an assertion on its verdict or in the verdict itself.
    """
    tree = ast.parse(code)
    last = tree.body[-1] if tree.body else None
    if not isinstance(last, ast.Expr):
        exec(compile(tree, "<cell>", "exec"), namespace)
        return None
    tree.body.pop()
    exec(compile(tree, "<cell>", "exec"), namespace)
    return eval(compile(ast.Expression(last.value), "<cell>", "eval"), namespace)
