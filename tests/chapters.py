"""Reading a chapter as its readers do: its code cells, definitions and exercises.

Shared by the tests that hold the pages and the package together.
"""

import ast
from dataclasses import dataclass

from studies.chapter import CHAPTERS, page_cells, page_namespace, parse_cells

__all__ = ["CHAPTERS", "page_cells", "page_namespace", "parse_cells"]


@dataclass(frozen=True)
class Exercise:
    """The code of one exercise, starter and solution, cells joined."""

    starter: str
    solution: str


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
