"""Reading a chapter as a program: its code cells, and the names that they define."""

import ast
import builtins
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import jupytext

CHAPTERS = Path(__file__).parents[2] / "chapters"
_GATE = re.compile(
    r"^(?:`{3,}|:{3,})\{(exercise|solution)-(start|end)\}[ \t]*(\S*)(.*?)^(?:`{3,}|:{3,})",
    re.MULTILINE | re.DOTALL,
)
_LABEL = re.compile(r"^:label:[ \t]*(\S+)", re.MULTILINE)
_DEFINITIONS = (ast.FunctionDef, ast.ClassDef)
_IMPORTS = (ast.Import, ast.ImportFrom)


@dataclass(frozen=True)
class Cell:
    """A code cell: its source, its tags and the exercise that it stands in, if any."""

    source: str
    tags: tuple[str, ...] = ()
    exercise: str = ""  # the label, "ex-chapter-name"
    part: str = ""  # "exercise" (the starter) or "solution"


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


def definitions_code(chapter: str) -> str:
    """Return what a chapter defines, as one program; exercises are left out.

    That is what it imports, its functions and classes, its constants (in capitals) that
    need nothing else, and all of the cells tagged ``trial``.
    """
    kept, known = [], set(dir(builtins))
    for cell in page_cells(chapter):
        for node in [] if cell.part else ast.parse(cell.source).body:
            definition = isinstance(node, _IMPORTS + _DEFINITIONS)
            if definition or "trial" in cell.tags or _is_constant(node, known):
                kept.append(node)
                known |= _defined(node)
    return ast.unparse(ast.Module(kept, []))


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
