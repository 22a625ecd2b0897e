"""Proofs that a chapter places: ``:::{proof} NAME`` becomes a cell that runs it.

The function stands in ``studies/CHAPTER/proofs.py`` (`studies.findings`). In the chapter's
file there is only its name; when the page is read, a cell that calls it takes the
directive's place, tagged `TAG`. So it runs in the page's kernel, on the names defined so
far, and what its module depends on is recorded as all that a page reads.
"""

import re

import nbformat
from markdown_it import MarkdownIt
from mdit_py_plugins.colon_fence import colon_fence_plugin
from nbformat import NotebookNode

TAG = "placed-proof"
_BLOCKS = MarkdownIt("commonmark").use(colon_fence_plugin).disable("inline")
_DIRECTIVE = re.compile(r"\{proof\}[ \t]*(\S*)[ \t]*$")


def is_placed_proof(cell: NotebookNode) -> bool:
    """Return whether a cell runs a proof that the chapter places: it has the tag `TAG`."""
    return TAG in cell.metadata.get("tags", [])


def proof_name(cell: NotebookNode) -> str:
    """Return the name of the function of the proof that a cell runs.

    ``cell`` : one that runs a proof (`is_placed_proof`); its metadata has the name.
    """
    return cell.metadata["proof"]


def find_placed_proofs(text: str) -> list[tuple[str, tuple[int, int]]]:
    """Find the directives ``{proof}`` in MyST text that lie in no other block.

    ``text`` : such as a chapter's, or a cell's.

    Returns
    -------
    list of (str, (int, int))
        The name of each proof; and the first line of its directive with the line after its
        last, counted from 0.
    """
    proofs = []
    for token in _BLOCKS.parse(text):
        if token.type in ("fence", "colon_fence") and token.level == 0:
            directive = _DIRECTIVE.match(token.info.strip())
            if directive:
                proofs.append((directive[1], tuple(token.map)))
    return proofs


def place_proofs(notebook: NotebookNode, chapter: str) -> NotebookNode:
    """Replace each directive ``{proof}`` of a chapter by a cell that runs the proof.

    Parameters
    ----------
    notebook : NotebookNode
        As myst-nb reads it; changed in place. If its metadata has a ``source_map`` (the
        first line of each cell), that is updated.
    chapter : str
        The page's name, in whose ``studies/CHAPTER/proofs.py`` the proofs are.

    Returns
    -------
    NotebookNode
        The same notebook.
    """
    lines = notebook.metadata.get("source_map") or [0] * len(notebook.cells)
    cells, source_map = [], []
    for cell, first in zip(notebook.cells, lines, strict=True):
        for part, line in _split_at_proofs(cell, chapter):
            cells.append(part)
            source_map.append(first + line)
    notebook.cells = cells
    if "source_map" in notebook.metadata:
        notebook.metadata["source_map"] = source_map
    return notebook


def _split_at_proofs(cell: NotebookNode, chapter: str) -> list[tuple[NotebookNode, int]]:
    """Cut a cell of prose at its proofs, and put a cell that runs it in place of each.

    ``cell`` : of any kind; ``chapter`` : the page's name.

    Returns
    -------
    list of (NotebookNode, int)
        The cells, each with the line of ``cell`` that it begins at, counted from 0. A cell
        of code, or one without proofs, is returned as it is.
    """
    placed = find_placed_proofs(cell.source) if cell.cell_type == "markdown" else []
    if not placed:
        return [(cell, 0)]
    lines, parts, last = cell.source.split("\n"), [], 0
    for name, (begin, end) in placed:
        parts += _prose_cell(lines, last, begin, cell)
        parts.append((_proof_cell(chapter, name), begin))
        last = end
    return parts + _prose_cell(lines, last, len(lines), cell)


def _prose_cell(lines: list[str], begin: int, end: int, cell: NotebookNode) -> list[tuple]:
    """Return lines of a cell of prose as a cell of their own, with its first line.

    Parameters
    ----------
    lines : list of str
    begin, end : int
        Which ones: from the first up to the second.
    cell : NotebookNode
        The whole cell, whose metadata the new one gets.

    Returns
    -------
    list of (NotebookNode, int)
        One pair; empty if the lines are blank.
    """
    while begin < end and not lines[begin].strip():
        begin += 1
    source = "\n".join(lines[begin:end]).rstrip()
    if not source:
        return []
    return [(nbformat.v4.new_markdown_cell(source, metadata=cell.metadata), begin)]


def _proof_cell(chapter: str, name: str) -> NotebookNode:
    """Return a code cell that runs a proof of a chapter, each given by its name.

    It calls `studies.findings.run` with the page's namespace. Its tag is `TAG`, and its
    metadata have the proof's name as ``proof``.
    """
    call = f'studies.findings.run("{chapter}", "{name}", globals())'
    source = f"import studies.findings\n\n{call}"
    return nbformat.v4.new_code_cell(source, metadata={"tags": [TAG], "proof": name})
