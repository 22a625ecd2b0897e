"""What a page checks, as its cells say it: sentences of proofs, statements of code."""

import ast
import re
from collections.abc import Iterator

from IPython.core.inputtransformer2 import TransformerManager

__all__ = ["count", "last", "sentence"]

FEWEST = 3  # words of a sentence
_CHECK = re.compile(r"assert_\w+$|close$|nearly$")


def sentence(source: str) -> str:
    """Return what a proof cell says that it checks: the comment that it begins with.

    Raises
    ------
    ValueError
        If it begins with none, or with one of fewer than three words.
    """
    comment = re.match(r"(?:#[^\n]*(?:\n|$))+", source.strip())
    lines = comment[0].split("\n") if comment else []
    text = " ".join(line.lstrip("#").strip() for line in lines).strip().rstrip(".")
    if len(text.split()) < FEWEST:
        raise ValueError(
            "a proof cell begins with a comment, a sentence that says what is checked; "
            f"this one begins with {source.strip().partition(chr(10))[0]!r}"
        )
    return text


def count(source: str) -> int:
    """Return how many statements a cell checks.

    Counted are ``assert`` and calls of ``assert_…`` (of whatever module), ``close`` and
    ``nearly``, as they are written: one in a loop is one. What a function of such a name
    is made of is not counted.
    """
    return sum(_statements(_parse(source)))


def last(source: str) -> None:
    """See that in a cell nothing comes after what it checks.

    Raises
    ------
    ValueError
        If something does: where a statement before it does not hold, it is never run.
    """
    parts = _parse(source).body
    first = next((n for n, part in enumerate(parts) if any(_statements(part))), len(parts))
    for part in parts[first:]:
        if not any(_statements(part)):
            said = ast.unparse(part).partition("\n")[0]
            raise ValueError(
                "in a finding, what is checked comes last: with another model nothing "
                f"after it may run, and here {said!r} comes after it"
            )


def _parse(source: str) -> ast.Module:
    return ast.parse(TransformerManager().transform_cell(source))


def _statements(node: ast.AST) -> Iterator[int]:
    if isinstance(node, ast.Assert) or (isinstance(node, ast.Call) and _named(node.func)):
        yield 1
    elif not (isinstance(node, ast.FunctionDef) and _CHECK.match(node.name)):
        for child in ast.iter_child_nodes(node):
            yield from _statements(child)


def _named(function: ast.expr) -> bool:
    if isinstance(function, ast.Name):
        return bool(_CHECK.match(function.id))
    return isinstance(function, ast.Attribute) and function.attr.startswith("assert_")
