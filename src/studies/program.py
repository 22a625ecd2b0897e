"""A program as text that stays the same when what it does stays the same.

Comments, layout, docstrings and the names of local variables do not change what a program
computes, nor does the version of Python that reads it, although each has syntax trees with
other fields. `program_text` leaves all of them out.

A local variable is written as its number, in the order in which a program names them. It
keeps its name if something else has this name, too: a parameter, which a call may name, or
what ``import``, ``def``, ``except``, ``case``, ``global``, ``nonlocal`` or ``:=`` names in
the same function. A function in which there is a class, or a call that sees names, such as
``locals()``, keeps all of them.
"""

import ast
from collections.abc import Iterable, Iterator
from itertools import count

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
SCOPES = FUNCTIONS + COMPREHENSIONS  # what has local variables
SEE_NAMES = ("locals", "vars", "dir", "eval", "exec")


def program_text(tree: ast.Module) -> str:
    """Return a program's syntax tree as text.

    Parameters
    ----------
    tree : ast.Module
        It is changed: docstrings are taken out, and local variables are named by numbers.

    Returns
    -------
    str
        The same for programs that differ only in what the docstring of this module lists.
    """
    _drop_docstrings(tree)
    _number_locals(tree, [], set(), count())
    return _text(tree)


def _drop_docstrings(tree: ast.Module) -> None:
    """Take the docstrings out of a module, its functions and its classes, in place.

    ``tree`` : the module, which is changed.
    """
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list) and body and _is_docstring(body[0]):
            del body[0]


def _is_docstring(node: ast.AST) -> bool:
    """Return whether a statement is a constant alone, as a docstring is."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _text(node: object) -> str:
    """Return a node, a list of nodes or a field's value as text, without what is empty.

    A new version of Python adds fields; they are empty in a program that does not use them.
    Python 3.12 ends some f-strings with an empty text.
    """
    if isinstance(node, list):
        return f"[{', '.join(map(_text, node))}]"
    if not isinstance(node, ast.AST):
        return repr(node)
    if isinstance(node, ast.JoinedStr):
        node.values = [part for part in node.values if not _is_empty_text(part)]
    fields = (
        f"{name}={_text(value)}"
        for name, value in ast.iter_fields(node)
        if value is not None and value != []
    )
    return f"{type(node).__name__}({', '.join(fields)})"


def _is_empty_text(node: object) -> bool:
    """Return whether a node is the constant '', which adds nothing to an f-string."""
    return isinstance(node, ast.Constant) and node.value == ""


# --- local variables ------------------------------------------------------------------


def _number_locals(
    node: ast.AST, around: list[dict[str, str]], keep: set[str], numbers: Iterator[int]
) -> None:
    """Name the local variables in a part of a program by numbers.

    Parameters
    ----------
    node : ast.AST
        The part; it is changed.
    around : list of dict of str to str
        For each function or comprehension around the part, the outermost first: the name
        of a local variable → its number.
    keep : set of str
        Names that stay as they are. An outermost function or comprehension has its own.
    numbers : iterator of int
        Numbers that no variable has yet.
    """
    if isinstance(node, ast.Name):
        matches = (scope[node.id] for scope in reversed(around) if node.id in scope)
        node.id = next(matches, node.id)
    elif not isinstance(node, SCOPES):
        for child in ast.iter_child_nodes(node):
            _number_locals(child, around, keep, numbers)
    elif around or not _sees_names(node):
        keep = keep if around else _named_otherwise(node)
        outside, inside = _parts(node)
        names = dict.fromkeys(name for name in _assigned(inside) if name not in keep)
        scope = {name: str(next(numbers)) for name in names}
        for part in outside:
            _number_locals(part, around, keep, numbers)
        for part in inside:
            _number_locals(part, [*around, scope], keep, numbers)


def _sees_names(node: ast.AST) -> bool:
    """Return whether names inside a function may matter: to a class, or to ``locals()``.

    ``node`` : a function or a comprehension; `SEE_NAMES` lists the calls.
    """
    return any(
        isinstance(part, ast.ClassDef)
        or (isinstance(part, ast.Name) and part.id in SEE_NAMES)
        for part in ast.walk(node)
    )


def _named_otherwise(node: ast.AST) -> set[str]:
    """Return the names in a function that are more than names of local variables.

    ``node`` : a function or a comprehension, with all that is inside it.
    """
    names = set()
    for part in ast.walk(node):
        match part:
            case ast.arg(arg=name) | ast.NamedExpr(target=ast.Name(id=name)):
                names.add(name)
            case ast.Global(names=several) | ast.Nonlocal(names=several):
                names.update(several)
            case ast.alias(name=name, asname=other):
                names.add(other or name.partition(".")[0])
            case (
                ast.FunctionDef(name=name)
                | ast.AsyncFunctionDef(name=name)
                | ast.ExceptHandler(name=name)
                | ast.MatchAs(name=name)
                | ast.MatchStar(name=name)
                | ast.MatchMapping(rest=name)
            ):
                names.add(name)
    return names


def _parts(node: ast.AST) -> tuple[list[ast.AST], list[ast.AST]]:
    """Return two lists: the parts of a function or comprehension whose names are those of
    what is around it, and the parts whose names are its own.

    The first list has a function's decorators, defaults and annotations, or what a
    comprehension first runs over. ``node`` : the function or comprehension.
    """
    if isinstance(node, COMPREHENSIONS):
        first = node.generators[0].iter
        own = [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]
        loops = [part for loop in node.generators for part in ast.iter_child_nodes(loop)]
        return [first], [*(part for part in loops if part is not first), *own]
    if isinstance(node, ast.Lambda):
        return [node.args], [node.body]
    returns = [node.returns] if node.returns else []
    return [*node.decorator_list, node.args, *returns], node.body


def _assigned(parts: Iterable[ast.AST]) -> Iterator[str]:
    """Yield the names that parts of a program assign to, but for functions inside them."""
    for part in parts:
        if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store):
            yield part.id
        elif not isinstance(part, SCOPES):
            yield from _assigned(ast.iter_child_nodes(part))
