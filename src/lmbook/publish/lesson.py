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
        Global names: what is assigned or imported, or defined by ``def`` and ``class``, at
        the top level; and what is read there or in functions and classes.
    """
    top = symtable.symtable(source, "cell", "exec")
    own = top.get_symbols()
    defined = {name.get_name() for name in own if name.is_assigned() or name.is_imported()}
    used = {name.get_name() for name in own if name.is_referenced()}
    return defined, used | used_by_functions(source)


def used_by_functions(source: str) -> set[str]:
    """Return the global names that functions and classes of some code use.

    ``source`` : Python.
    """
    top = symtable.symtable(source, "cell", "exec")
    inner = list(top.get_children())
    for each in inner:
        inner += each.get_children()
    return {
        name.get_name() for each in inner for name in each.get_symbols() if name.is_global()
    }


@dataclass
class _Statement:
    """A statement of a cell: its text, and the names that it defines, uses and changes.

    Attributes
    ----------
    node : ast.stmt
    text : str
        As it is written.
    defined, used, changed : set of str
        Global names: those that it defines, those that have to be there before it runs, and
        those of things that it changes in place.
    """

    node: ast.stmt
    text: str
    defined: set[str] = field(init=False)
    used: set[str] = field(init=False)
    changed: set[str] = field(init=False)

    def __post_init__(self):
        """Find out which global names the statement defines, needs and changes.

        ``used`` are those that have to be there before it runs, ``changed`` those of things
        that it changes in place, as by ``names.append(…)``.
        """
        self.defined, _ = defined_and_used(self.text)
        self.used = _names_needed(self.node)
        self.changed = set(_names_changed(self.node))


def _names_needed(node: ast.stmt) -> set[str]:
    """Return the global names that have to be there before a statement runs.

    Of a block (``if``, ``for``, ``while``, ``try``, ``with``) its head and all of its
    bodies count, without what the block has surely defined before it uses it.
    """
    if isinstance(node, ast.AugAssign):
        return set.union(*defined_and_used(ast.unparse(node)))
    if not isinstance(node, _BLOCKS):
        return defined_and_used(ast.unparse(node))[1]
    bodies = (getattr(node, part, []) for part in ("body", "orelse", "finalbody"))
    inside = set().union(*map(_names_needed_by_all, bodies))
    heads = [getattr(node, part, None) for part in ("iter", "test")]
    heads += [item.context_expr for item in getattr(node, "items", [])]
    for handler in getattr(node, "handlers", []):
        inside |= _names_needed_by_all(handler.body)
        heads.append(handler.type)
    outside = (defined_and_used(ast.unparse(head))[1] for head in heads if head)
    return set().union(*outside) | (inside - _names_of_head(node))


def _names_needed_by_all(statements: list[ast.stmt]) -> set[str]:
    """Return the global names that have to be there before some statements run in order.

    What one of them surely defines need not be there for those after it.
    """
    needed = set()
    for each in reversed(statements):
        needed = (needed - _surely_defined(each)) | _names_needed(each)
    return needed


def _names_of_head(node: ast.stmt) -> set[str]:
    """Return the names that the head of a block defines before its body runs.

    In ``for i in …`` and in ``with … as i`` that is ``i``.
    """
    targets = [getattr(node, "target", None)]
    targets += [item.optional_vars for item in getattr(node, "items", [])]
    inside = (each for target in targets if target for each in ast.walk(target))
    return {each.id for each in inside if isinstance(each, ast.Name)}


def _surely_defined(node: ast.stmt) -> set[str]:
    """Return the global names that a statement defines whatever happens.

    Those of the blocks of ``if``, ``for``, ``while`` and ``try``, which may not run, are
    left out.
    """
    if isinstance(node, ast.With):
        return _names_of_head(node).union(*map(_surely_defined, node.body))
    return set() if isinstance(node, _BLOCKS) else defined_and_used(ast.unparse(node))[0]


def _names_changed(statement: ast.stmt) -> Iterator[str]:
    """Yield the names of the things that a statement changes in place.

    It changes ``a`` if it sets or deletes ``a[…]`` or ``a.b``, or calls a method of ``a``
    that may change it by its name, such as ``append`` (`_CHANGES`).
    """
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
    """Return the statements at the top level of a cell.

    ``source`` : str, Python. Each `_Statement` has its ``node``, its ``text``, and the
    names that it defines, uses and changes.
    """
    return [_Statement(node, _text(source, node)) for node in ast.parse(source).body]


def _text(source: str, node: ast.stmt) -> str:
    """Return a statement's text as it is written, its decorators included.

    ``source`` : str, the cell; ``node`` : ast.stmt, the statement in it.
    """
    text = ast.get_source_segment(source, node)
    above = [ast.get_source_segment(source, e) for e in getattr(node, "decorator_list", [])]
    return "\n".join([*(f"@{each}" for each in above), text])


def lesson_code(cells: Sequence[tuple[str, bool]]) -> list[str]:
    """Return what a notebook holds of each of a chapter's code cells.

    All of a cell that is for a reader; of another one the statements that define or change
    names that the cells after it need.

    Parameters
    ----------
    cells : sequence of (str, bool)
        Each cell's source, and whether it is for a reader; if not, only what others need
        of it is kept.

    Returns
    -------
    list of str
        The source of each cell, "" for a cell of which nothing is left.
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
        Whether the cell is for a reader: then all stay. Else those stay that define or
        change a name which a statement after them needs.
    needed : set of str
        Names that later cells need.

    Returns
    -------
    chosen : list of _Statement
        Those that stay, in their order.
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
    """Return statements of a cell as one text, one below the other.

    Of each ``text`` is taken; around a function or a class stands an empty line.
    """
    text = ""
    for each in chosen:
        block = isinstance(each.node, ast.FunctionDef | ast.ClassDef)
        text += f"\n\n{each.text}\n\n" if block else f"{each.text}\n"
    return text.strip("\n")
