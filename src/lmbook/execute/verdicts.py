"""What the proofs of a page check, and whether they hold.

A proof that a chapter places (`lmbook.execute.placed`) leaves a record (`RECORD`) among its
cell's outputs. A finding says something about the model at hand. It may fail with another
model than the default, and then an error is among its outputs.
"""

import ast
import re
from collections.abc import Iterator

from IPython.core.inputtransformer2 import TransformerManager
from nbformat import NotebookNode

from lmbook.execute.placed import is_placed_proof
from lmbook.pages.glue import format_glue
from studies.findings import RECORD

COLOUR = re.compile(r"\x1b\[[\d;]*m")
FIELDS = ("rival", "null", "n", "interval")
_VALUE = re.compile(r"\{([^{}:]*):?([^{}]*)\}")
_CHECK = re.compile(r"assert_\w+$|close$|nearly$")


def code_cells(notebook: NotebookNode) -> list[NotebookNode]:
    """Return the code cells of a notebook, in their order."""
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def is_finding(cell: NotebookNode) -> bool:
    """Return whether an executed cell ran a finding.

    That is a proof that checks a claim about the model which the page loaded. The record
    among the cell's outputs says so.
    """
    return proof_record(cell).get("kind") == "finding"


def proof_record(cell: NotebookNode) -> dict:
    """Return the record that a placed proof left among a cell's outputs.

    Parameters
    ----------
    cell : NotebookNode
        An executed code cell.

    Returns
    -------
    dict
        ``name`` of the proof; ``kind``, "proof" or "finding"; ``sentence``; ``about``, its
        docstring; ``source``, its code; ``failed``, the assertion that failed, "" if it
        holds; ``fields``, such as "rival", and ``values``, what it returned, pairs of name
        and text. Empty if the cell runs no placed proof, or was not executed.
    """
    for output in cell.get("outputs", []):
        data = output.get("data", {})
        if RECORD in data:
            return dict(data[RECORD])
    return {}


def error_outputs(cell: NotebookNode) -> list[NotebookNode]:
    """Return the outputs of a cell that are errors, a list of one or none."""
    return [out for out in cell.get("outputs", []) if out.output_type == "error"]


def note_verdicts(notebook: NotebookNode, whole: bool) -> dict:
    """Write into each code cell's metadata, as ``lmbook``, how its execution ended.

    The verdict is "checked" (it ran to its end), "not so" (a finding that failed, after
    which the page went on), "failed" (the cell that ended the page) or "not run". The
    record of a placed proof, a dict (`proof_record`), moves from the cell's outputs to
    ``lmbook_record`` in its metadata; ``lmbook_models`` is taken out of the notebook's.

    Parameters
    ----------
    notebook : NotebookNode
        With its outputs (`lmbook.execute.run.restore_outputs`); changed in place.
    whole : bool
        Whether the notebook was executed to its end. If not, the last error is what ended
        it, and not a finding's.

    Returns
    -------
    dict
        - ``models``: environment variable of each model that the page asked for → the
          model's name,
        - ``findings``: how many cells ran a finding, whether it holds or not,
        - ``proofs``: how many cells are proofs, findings among them, and ran to their end,
        - ``statements``: how many statements (`count_checks`) all cells check that ran to
          their end,
        - ``proven``: how many of these statements are in proofs.
    """
    counts = {"proofs": 0, "statements": 0, "proven": 0}
    models = dict(notebook.metadata.pop("lmbook_models", {}))
    cells = code_cells(notebook)
    counts["findings"] = sum(map(is_finding, cells))
    raised = [cell for cell in cells if error_outputs(cell)]
    for cell in cells:
        if cell.execution_count is None:
            verdict = "not run"
        elif cell in raised:
            verdict = "not so" if whole or cell is not raised[-1] else "failed"
        else:
            verdict = "checked"
            proof = is_placed_proof(cell)
            checks = count_checks(proof_record(cell).get("source", cell.source))
            counts["statements"] += checks
            counts["proofs"] += proof
            counts["proven"] += checks * proof
        cell.metadata["lmbook"] = verdict
    for cell in filter(is_placed_proof, cells):
        cell.metadata["lmbook_record"] = proof_record(cell)
        cell.outputs = [out for out in cell.outputs if RECORD not in out.get("data", {})]
    return counts | {"models": models}


# --- in fields and in code ---------------------------------------------------------------


def insert_values(text: str, values: dict[str, str], prefix: str = "") -> str:
    """Replace each ``{key:format}`` in a text by the value ``prefix + key``, formatted.

    Parameters
    ----------
    text : str
        The text of a field.
    values : dict of str to str
        Name → repr of a value, as `lmbook.pages.glue.glued_values` returns them.
    prefix : str
        What the names of all values begin with: "NAME." for the values of the proof NAME.

    Raises
    ------
    ValueError
        If a value is missing, or has no such format.
    """
    return _VALUE.sub(lambda m: format_glue(values, prefix + m[1], m[2]), text)


def count_checks(source: str) -> int:
    """Return how many statements the code of a cell, or of a proof, checks.

    ``source`` : Python, with IPython's own commands. Counted are ``assert`` and calls of
    ``assert_…`` (of whatever module), ``close`` and ``nearly``, as they are written: one in
    a loop is one. What a function of such a name is made of is not counted.
    """
    return sum(_find_checks(_parse(source)))


def _parse(source: str) -> ast.Module:
    """Return the syntax tree of a cell's source, IPython's own commands made Python."""
    return ast.parse(TransformerManager().transform_cell(source))


def _find_checks(node: ast.AST) -> Iterator[int]:
    """Yield 1 for each ``assert`` and each call below a node that checks something.

    Inside such a statement, and in the definition of a function that checks by its name
    (`_CHECK`), nothing more is counted.
    """
    if isinstance(node, ast.Assert) or (
        isinstance(node, ast.Call) and _is_check(node.func)
    ):
        yield 1
    elif not (isinstance(node, ast.FunctionDef) and _CHECK.match(node.name)):
        for child in ast.iter_child_nodes(node):
            yield from _find_checks(child)


def _is_check(function: ast.expr) -> bool:
    """Return whether a called function checks something, by its name.

    A function does that is called ``assert_…``, ``close`` or ``nearly``, a method only if
    it is called ``assert_…``. ``function`` : what is called, in the syntax tree.
    """
    if isinstance(function, ast.Name):
        return bool(_CHECK.match(function.id))
    return isinstance(function, ast.Attribute) and function.attr.startswith("assert_")
