"""What pages check, and what came of it.

A proof that a chapter places (`lmbook.execute.placed`) leaves a record (`RECORD`) among its
cell's outputs. On pages of the older form a cell tagged ``proof`` begins with a comment,
the sentence that it proves; what an empirical claim was held against stands below it, in
fields. One tagged ``finding`` as well says something about the model at hand. A finding
may fail with another model than the default, and then an error is among its outputs.
"""

import ast
import re
from collections.abc import Iterator

from IPython.core.inputtransformer2 import TransformerManager
from nbformat import NotebookNode

from lmbook.execute.placed import TAG, is_placed
from lmbook.pages.glue import format_glue
from studies.findings import RECORD

COLOUR = re.compile(r"\x1b\[[\d;]*m")
FEWEST = 3  # words of a sentence
FIELDS = ("rival", "null", "n", "interval")
_VALUE = re.compile(r"\{([^{}:]*):?([^{}]*)\}")
_RAISED = re.compile(r"^-+> *\d+ (.*)$", re.MULTILINE)
_CHECK = re.compile(r"assert_\w+$|close$|nearly$")


def code_cells(notebook: NotebookNode) -> list[NotebookNode]:
    """Return the code cells of a notebook, in their order."""
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def is_finding(cell: NotebookNode) -> bool:
    """Say whether a cell proves something of the model at hand."""
    if is_placed(cell):
        return record(cell).get("kind") == "finding"
    return {"proof", "finding"} <= {*cell.metadata.get("tags", [])}


def record(cell: NotebookNode) -> dict:
    """Return what a placed proof tells of itself, as `studies.findings.run` left it.

    {} if it was not run, or the cell is another.
    """
    data = (output.get("data", {}) for output in cell.get("outputs", []))
    return next((dict(each[RECORD]) for each in data if RECORD in each), {})


def errors(cell: NotebookNode) -> list[NotebookNode]:
    """Return the outputs of a cell that are errors: a list of one or none."""
    return [out for out in cell.get("outputs", []) if out.output_type == "error"]


def brief(error: NotebookNode) -> list[str]:
    """Return the traceback of an error's output in two parts.

    The line of the cell that raised it, "" if it is not there; and its type and message.
    """
    raised = _RAISED.search(COLOUR.sub("", "\n".join(error.traceback)))
    return [raised[1].strip() if raised else "", f"{error.ename}: {error.evalue}"]


def judge(notebook: NotebookNode, whole: bool) -> dict:
    """Note in each code cell's metadata, as ``lmbook``, what came of it.

    What a placed proof tells of itself moves from its outputs to ``lmbook_record`` there.

    Parameters
    ----------
    notebook : NotebookNode
        With its outputs, as `lmbook.execute.run.fill` gives it.
    whole : bool
        Whether it was executed to its end; if not, the last error is not a finding's.

    Returns
    -------
    dict
        ``models``: variable → name of each that the page asked for; ``proofs``: how many
        cells prove and were run to their end; ``statements``: how many they and all other
        such cells check; ``proven``: how many of these are in proofs; ``findings``: how
        many cells are findings.
    """
    about = {"proofs": 0, "statements": 0, "proven": 0}
    about["models"] = dict(notebook.metadata.pop("lmbook_models", {}))
    cells = code_cells(notebook)
    about["findings"] = sum(map(is_finding, cells))
    raised = [cell for cell in cells if errors(cell)]
    for cell in cells:
        if cell.execution_count is None:
            verdict = "not run"
        elif cell in raised:
            verdict = "not so" if whole or cell is not raised[-1] else "failed"
        else:
            verdict = "checked"
            proof = bool({"proof", TAG} & {*cell.metadata.get("tags", [])})
            checks = count(record(cell).get("source", cell.source))
            about["statements"] += checks
            about["proofs"] += proof
            about["proven"] += checks * proof
        cell.metadata["lmbook"] = verdict
    for cell in filter(is_placed, cells):
        cell.metadata["lmbook_record"] = record(cell)
        cell.outputs = [out for out in cell.outputs if RECORD not in out.get("data", {})]
    return about


# --- in the code of a cell --------------------------------------------------------------


def _opening(source: str) -> list[str]:
    """Return the comment that a cell begins with: sentence, name and text of each field.

    A field is a line after the first, such as ``# rival: the noun that stands first``; the
    lines after it, up to the next field, are part of it.
    """
    comment = re.match(r"(?:#[^\n]*(?:\n|$))*", source.strip())[0]
    parts = re.split(r"\n#+ *([\w-]+) ?:(?!\S)", comment)
    return [" ".join(re.sub(r"^#+", "", part, flags=re.M).split()) for part in parts]


def sentence(source: str) -> str:
    """Return what a proof cell says that it checks: its first comment, up to its fields.

    Raises
    ------
    ValueError
        If it begins with none, or with one of fewer than three words.
    """
    text = _opening(source)[0]
    if len(text.split()) < FEWEST:
        raise ValueError(
            "a proof cell begins with a comment, a sentence that says what is checked; "
            f"this one begins with {source.strip().partition(chr(10))[0]!r}"
        )
    return text.rstrip(".")


def fields(source: str, glued: dict[str, str]) -> dict[str, str]:
    """Return what a proof cell says of rival, null, n and interval, as far as it does.

    Parameters
    ----------
    source : str
    glued : dict of str to str
        What the page glued, for ``{key:format}`` in a field.

    Raises
    ------
    ValueError
        If a field has another name, stands twice or is empty, or a value is missing.
    """
    found, parts = {}, _opening(source)[1:]
    for name, text in zip(parts[::2], parts[1::2], strict=True):
        if name not in FIELDS or name in found or not text:
            known = f"{', '.join(FIELDS)}, each once and with words after the colon"
            raise ValueError(f"a proof has no field {name!r} here: it may have {known}")
        try:
            found[name] = filled(text, glued)
        except ValueError as error:
            raise ValueError(f"the field {name}: {error}; glue it on this page") from None
    return found


def filled(text: str, values: dict[str, str], of: str = "") -> str:
    """Return a field, each ``{key:format}`` in it replaced by a value.

    Parameters
    ----------
    text : str
    values : dict of str to str
        As `lmbook.pages.glue.glued_values` returns them, name → repr.
    of : str, optional
        What stands before a key in its name: "NAME." for the values of a proof.

    Raises
    ------
    ValueError
        If a value is missing, or has no such format.
    """
    return _VALUE.sub(lambda m: format_glue(values, of + m[1], m[2]), text)


def count(source: str) -> int:
    """Return how many statements a cell checks.

    Counted are ``assert`` and calls of ``assert_…`` (of whatever module), ``close`` and
    ``nearly``, as they are written: one in a loop is one. What a function of such a name
    is made of is not counted.
    """
    return sum(_checks(_parse(source)))


def check_order(source: str) -> None:
    """See that in a finding nothing comes after what it checks.

    Raises
    ------
    ValueError
        If something does: where a statement before it does not hold, it is never run.
    """
    checked = False
    for part in _parse(source).body:
        if any(_checks(part)):
            checked = True
        elif checked:
            line = ast.unparse(part).partition("\n")[0]
            raise ValueError(
                "in a finding, what is checked comes last: with another model nothing "
                f"after it may run, and here {line!r} comes after it"
            )


def _parse(source: str) -> ast.Module:
    """Return the syntax tree of a cell; IPython's own commands are turned into Python."""
    return ast.parse(TransformerManager().transform_cell(source))


def _checks(node: ast.AST) -> Iterator[int]:
    """Yield 1 for each statement or call below a node that checks something."""
    if isinstance(node, ast.Assert) or (isinstance(node, ast.Call) and _named(node.func)):
        yield 1
    elif not (isinstance(node, ast.FunctionDef) and _CHECK.match(node.name)):
        for child in ast.iter_child_nodes(node):
            yield from _checks(child)


def _named(function: ast.expr) -> bool:
    """Return whether the name of a called function says that it checks."""
    if isinstance(function, ast.Name):
        return bool(_CHECK.match(function.id))
    return isinstance(function, ast.Attribute) and function.attr.startswith("assert_")
