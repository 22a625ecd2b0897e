"""Executed references of the chapters, which nbval compares new executions with.

``make references``, or ``make references PAGE=attention`` for one, takes the outputs of the
last execution (nothing is executed twice) and rewrites the cells whose code or outputs
really changed: code cells and comparable outputs only, so that a diff can be read.
"""

import hashlib
import re
import sys
from pathlib import Path

import nbformat

from compare import difference, strip_outputs
from lmbook.execute.keys import ROOT, other_models
from lmbook.execute.run import chapter_paths, load_executed_chapter

IGNORED = "nbval-ignore-output"


def reference(executed: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """Return the code cells of an executed notebook with their comparable outputs.

    Raises
    ------
    ValueError
        If an output holds a memory address, which no two executions share.
    """
    cells, seen = [], {}
    for source in (cell for cell in executed.cells if cell.cell_type == "code"):
        tags = list(source.metadata.get("tags", []))
        outputs = [] if IGNORED in tags else strip_outputs(source.outputs)
        address = re.search(r"\bat 0x[0-9a-f]{6,}", str(outputs))
        if address:
            raise ValueError(f"an output holds {address[0]!r}:\n{source.source}")
        # One number for all: a cell put in does not change those after it.
        cell = nbformat.v4.new_code_cell(source.source, execution_count=1)
        cell.outputs = [nbformat.from_dict(output) for output in outputs]
        cell.metadata = nbformat.from_dict({"tags": tags} if tags else {})
        # An id made from the text keeps a diff to the cells that changed.
        stem = hashlib.sha256(source.source.encode()).hexdigest()[:8]
        seen[stem] = seen.get(stem, 0) + 1
        cell.id = f"{stem}-{seen[stem]}"
        cells.append(cell)
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    return nbformat.v4.new_notebook(cells=cells, metadata={"kernelspec": kernel})


def keep_old(old: nbformat.NotebookNode, new: nbformat.NotebookNode) -> None:
    """Take a cell's old outputs over where the new ones differ in nothing that counts."""
    before = {cell.id: cell for cell in old.cells}
    for cell in new.cells:
        same = before.get(cell.id)
        if same and not difference(same.outputs, cell.outputs):
            cell.outputs = same.outputs


def compact(text: str) -> str:
    """Put each row of numbers in JSON on one line. (No string of JSON holds a new line.)"""
    number = r"(?:-?\d[\d.eE+-]*|null)"
    rows = re.compile(rf"\[\n\s*({number}(?:,\n\s*{number})*)\n\s*\]")
    text = rows.sub(lambda row: "[" + re.sub(r",\s+", ", ", row[1]) + "]", text)
    return text + "\n"


def write_references(root: Path = ROOT, only: str | None = None) -> None:
    """Bring ``tests/pages/notebooks`` up to date.

    Parameters
    ----------
    root : Path
        The book's folder.
    only : str, optional
        The name of the one chapter whose reference is written. Default: all.

    Raises
    ------
    LookupError
        If a chapter was not executed, or failed, or changed since, or if another model
        than the default is chosen, or if there is no chapter ``only``. Then none is
        written.
    """
    if other_models():
        raise LookupError(
            f"references are made with the default model: unset {', '.join(other_models())}"
        )
    names = [path.stem for path in chapter_paths(root)]
    if only is not None and only not in names:
        raise LookupError(f"there is no chapters/{only}.md with code in it")
    wanted = names if only is None else [only]
    pages = {name: load_executed_chapter(name, root) for name in wanted}
    for name, notebook in pages.items():
        target = root / "tests" / "pages" / "notebooks" / f"{name}.ipynb"
        new = reference(notebook)
        if target.is_file():
            keep_old(nbformat.read(target, as_version=4), new)
        target.write_text(compact(nbformat.writes(new)), encoding="utf-8")


if __name__ == "__main__":
    page = sys.argv[1].removesuffix(".md") if sys.argv[1:] else None
    try:
        write_references(only=page)
    except LookupError as error:
        sys.exit(f"error: {error}")
    print("The references are those of the last build: see `git diff tests/pages`")
