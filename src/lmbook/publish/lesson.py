"""What of a chapter's code its notebooks hold: the lesson, and what it needs.

A cell that the page hides (it is tagged ``remove-cell``) may define what a lesson or a task
below it uses, or a proof, which no notebook has. Of such cells what the lesson uses stays,
statement by statement.
"""

import ast
import symtable
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

HIDDEN = "remove-cell"  # the tag of cells that no reader runs for their own sake
_BLOCKS = ast.If | ast.For | ast.While | ast.Try | ast.With
# Methods that change the thing they belong to.
_CHANGES = {
    *("add", "append", "clear", "extend", "insert", "pop", "remove", "reverse"),
    *("setdefault", "shuffle", "sort", "update"),
}


def defined_and_used(source: str) -> tuple[set[str], set[str]]:
    """Return the names that some code defines, and those that it uses.

    Parameters
    ----------
    source : str
        Python.

    Returns
    -------
    defined, used : set of str
        Global names; used are also those that functions in it use.
    """
    top = symtable.symtable(source, "cell", "exec")
    own = top.get_symbols()
    defined = {name.get_name() for name in own if name.is_assigned() or name.is_imported()}
    used = {name.get_name() for name in own if name.is_referenced()}
    return defined, used | used_by_functions(source)


def used_by_functions(source: str) -> set[str]:
    """Return the globals that functions and classes of some code use."""
    top = symtable.symtable(source, "cell", "exec")
    inner = list(top.get_children())
    for each in inner:
        inner += each.get_children()
    return {
        name.get_name() for each in inner for name in each.get_symbols() if name.is_global()
    }


@dataclass
class _Statement:
    """A statement of a cell: its text, and the names that it defines, uses and changes."""

    node: ast.stmt
    text: str
    defined: set[str] = field(init=False)
    used: set[str] = field(init=False)
    changed: set[str] = field(init=False)

    def __post_init__(self):
        """Find out which names the statement defines, needs and changes."""
        self.defined, _ = defined_and_used(self.text)
        self.used = _names_needed(self.node)
        self.changed = set(_names_changed(self.node))


def _names_needed(node: ast.stmt) -> set[str]:
    """Return the names that have to be there before a statement runs.

    Of a block, such as an ``if``, its head and all of its bodies count.
    """
    if isinstance(node, ast.AugAssign):
        return set.union(*defined_and_used(ast.unparse(node)))
    if not isinstance(node, _BLOCKS):
        return defined_and_used(ast.unparse(node))[1]
    bodies = (getattr(node, part, []) for part in ("body", "orelse", "finalbody"))
    inside = set().union(*map(_names_needed_by_all, bodies))
    for handler in getattr(node, "handlers", []):
        inside |= _names_needed_by_all(handler.body)
    heads = [getattr(node, part, None) for part in ("iter", "test")]
    heads += [item.context_expr for item in getattr(node, "items", [])]
    outside = (defined_and_used(ast.unparse(head))[1] for head in heads if head)
    return set().union(*outside) | (inside - _names_of_head(node))


def _names_needed_by_all(statements: list[ast.stmt]) -> set[str]:
    """Return the names that have to be there before some statements run in their order."""
    needed = set()
    for each in reversed(statements):
        needed = (needed - _surely_defined(each)) | _names_needed(each)
    return needed


def _names_of_head(node: ast.stmt) -> set[str]:
    """Return the names that the head of a block defines before its body runs."""
    targets = [getattr(node, "target", None)]
    targets += [item.optional_vars for item in getattr(node, "items", [])]
    inside = (each for target in targets if target for each in ast.walk(target))
    return {each.id for each in inside if isinstance(each, ast.Name)}


def _surely_defined(node: ast.stmt) -> set[str]:
    """Return the names that a statement defines in any case.

    The blocks of ``if``, ``for``, ``while`` and ``try`` may not run.
    """
    if isinstance(node, ast.With):
        return _names_of_head(node).union(*map(_surely_defined, node.body))
    return set() if isinstance(node, _BLOCKS) else defined_and_used(ast.unparse(node))[0]


def _names_changed(statement: ast.stmt) -> Iterator[str]:
    """Yield the names of the things that a statement changes in place."""
    for node in ast.walk(statement):
        changes = isinstance(node, ast.Subscript | ast.Attribute)
        changes = changes and isinstance(node.ctx, ast.Store | ast.Del)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            changes = node.func.attr in _CHANGES
            node = node.func
        while changes and isinstance(node, ast.Subscript | ast.Attribute):
            node = node.value
        if changes and isinstance(node, ast.Name):
            yield node.id


def _statements(source: str) -> list[_Statement]:
    """Return the statements of a cell."""
    return [_Statement(node, _text(source, node)) for node in ast.parse(source).body]


def _text(source: str, node: ast.stmt) -> str:
    """Return a statement's text, its decorators included.

    ``source`` : str, the cell; ``node`` : ast.stmt, the statement in it.
    """
    text = ast.get_source_segment(source, node)
    above = [ast.get_source_segment(source, e) for e in getattr(node, "decorator_list", [])]
    return "\n".join([*(f"@{each}" for each in above), text])


def lesson_code(cells: Sequence[tuple[str, bool]]) -> list[str]:
    """Return what a notebook holds of each of a chapter's code cells.

    Parameters
    ----------
    cells : sequence of (str, bool)
        Each cell's source, and whether it is for a reader; if not, only what others need
        of it is kept.

    Returns
    -------
    list of str
        "" for a cell of which nothing is left.
    """
    parsed = [_statements(source) for source, _ in cells]
    taught = [each for (_, teaches), each in zip(cells, parsed, strict=True) if teaches]
    # What functions use has to be there when they are called, not where they are written.
    defined = set().union(*(s.defined for each in taught for s in each))
    later = (used_by_functions(s.text) for each in taught for s in each)
    needed = set().union(*later) - defined
    kept = []
    for (source, teaches), statements in reversed(list(zip(cells, parsed, strict=True))):
        chosen, needed = _choose_statements(statements, teaches, needed)
        kept.append(source if teaches else _join_statements(chosen))
    return kept[::-1]


def _choose_statements(
    statements: list[_Statement], teaches: bool, needed: set[str]
) -> tuple[list[_Statement], set[str]]:
    """Choose the statements of a cell that stay.

    Parameters
    ----------
    statements : list of _Statement
        Each knows the names that it defines, uses and changes.
    teaches : bool
        Whether the cell is for a reader: then all stay.
    needed : set of str
        Names that later cells need.

    Returns
    -------
    chosen : list of _Statement
    needed : set of str
        Names that this cell and later ones need of earlier ones.
    """
    chosen = []
    for each in reversed(statements):
        if teaches or (each.defined | each.changed) & needed:
            chosen.append(each)
            needed = (needed - _surely_defined(each.node)) | each.used
    return chosen[::-1], needed


def _join_statements(chosen: list[_Statement]) -> str:
    """Return statements of a cell as one text, one below the other."""
    text = ""
    for each in chosen:
        block = isinstance(each.node, ast.FunctionDef | ast.ClassDef)
        text += f"\n\n{each.text}\n\n" if block else f"{each.text}\n"
    return text.strip("\n")
