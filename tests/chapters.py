"""Reading a chapter as its readers do: its code cells, definitions and exercises.

Shared by the tests that hold the pages and the package together.
"""

import ast
import builtins
from dataclasses import dataclass
from functools import cache
from types import SimpleNamespace

from lmbook.execute.keys import ROOT
from lmbook.pages.cells import Cell, parse_cells

CHAPTERS = ROOT / "chapters"
_DEFINITIONS = (ast.FunctionDef, ast.ClassDef)
_IMPORTS = (ast.Import, ast.ImportFrom)


@cache
def page_cells(chapter: str) -> tuple[Cell, ...]:
    """Return the code cells of ``chapters/<chapter>.md``, in order."""
    return tuple(parse_cells((CHAPTERS / f"{chapter}.md").read_text(encoding="utf-8")))


def definitions_code(chapter: str) -> str:
    """Return what a chapter defines, as one program; exercises are left out.

    That is what it imports, its functions and classes, its constants (in capitals) that
    need nothing else, and all of the cells tagged ``trial``.
    """
    statements, known = [], set(dir(builtins))
    for cell in page_cells(chapter):
        for node in [] if cell.part else ast.parse(cell.source).body:
            definition = isinstance(node, _IMPORTS + _DEFINITIONS)
            if definition or "trial" in cell.tags or _is_constant(node, known):
                statements.append(node)
                known |= _defined(node)
    return ast.unparse(ast.Module(statements, []))


def page_namespace(chapter: str) -> dict:
    """Return the names that a chapter defines, nothing else of it run."""
    namespace: dict = {"__name__": f"page_{chapter.replace('-', '_')}"}
    exec(compile(definitions_code(chapter), f"chapters/{chapter}.md", "exec"), namespace)
    return namespace


@cache
def page(chapter: str) -> SimpleNamespace:
    """Return the same, as attributes."""
    return SimpleNamespace(**page_namespace(chapter))


def _names(node: ast.AST, context: type) -> set[str]:
    names = (each for each in ast.walk(node) if isinstance(each, ast.Name))
    return {name.id for name in names if isinstance(name.ctx, context)}


def _defined(node: ast.stmt) -> set[str]:
    """Return the names that a statement defines."""
    if isinstance(node, _IMPORTS):
        return {(name.asname or name.name).partition(".")[0] for name in node.names}
    return {node.name} if isinstance(node, _DEFINITIONS) else _names(node, ast.Store)


def _is_constant(node: ast.stmt, known: set[str]) -> bool:
    """Whether a statement gives names in capitals to what can be made of known ones."""
    if not isinstance(node, ast.Assign):
        return False
    targets = set().union(*(_names(target, ast.Store) for target in node.targets))
    own = {arg.arg for arg in ast.walk(node.value) if isinstance(arg, ast.arg)}
    needed = _names(node.value, ast.Load) - _names(node.value, ast.Store) - own
    capitals = all(name.isupper() and len(name) > 1 for name in targets)
    return bool(targets) and capitals and needed <= known


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
