"""A reference is worth something only if it is the chapter, executed."""

import json
import tomllib

import nbformat
import pytest

from lmbook.execute import references
from lmbook.execute.compare import FIGURE, difference
from lmbook.execute.keys import ROOT
from lmbook.execute.run import chapters, executed, page_notebook

FOLDER = ROOT / "tests" / "pages" / "notebooks"
PAGES = [path.stem for path in chapters()]


def code_cells(notebook) -> list:
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def complaints(page, stored) -> list[str]:
    """Return what is wrong with a reference of a page."""
    cells = code_cells(page)
    found = []
    if [cell.source for cell in cells] != [cell.source for cell in stored.cells]:
        found.append("its code is not the chapter's")
    tags = [list(cell.metadata.get("tags", [])) for cell in cells]
    if tags != [list(cell.metadata.get("tags", [])) for cell in stored.cells]:
        found.append("its tags are not the chapter's")
    for number, cell in enumerate(stored.cells):
        allowed = "raises-exception" in cell.metadata.get("tags", [])
        if cell.execution_count is None:
            found.append(f"cell {number} was never run")
        if any(o.output_type == "error" for o in cell.outputs) and not allowed:
            found.append(f"cell {number} holds an error")
    return found


@pytest.mark.parametrize("name", PAGES)
def test_the_reference_is_the_chapter_executed(name):
    path = FOLDER / f"{name}.ipynb"
    assert path.is_file(), f"{name} has no reference: run `make references`"
    page = page_notebook(ROOT / "chapters" / f"{name}.md")
    assert complaints(page, nbformat.read(path, as_version=4)) == []


def test_no_reference_is_left_over():
    assert sorted(path.stem for path in FOLDER.glob("*.ipynb")) == PAGES


def deviations(built: list, stored: list) -> list[str]:
    """Return where a build and a reference differ, a line a cell."""
    return [
        f"cell {number}: {found}"
        for number, (new, old) in enumerate(zip(built, stored, strict=True))
        if references.IGNORED not in old.metadata.get("tags", [])
        and (found := difference(old.outputs, new.outputs))
    ]


@pytest.mark.parametrize("name", PAGES)
def test_the_last_build_shows_what_the_reference_holds(name):
    stored = nbformat.read(FOLDER / f"{name}.ipynb", as_version=4).cells
    assert deviations(code_cells(executed(name)), stored) == []


# What a training in the page ends at differs between kinds of CPU; the cells that show it
# assert bounds instead. These pages are about little else.
COMPARED = {"encoder-decoder": 0.6, "transformer-block": 0.85, "mini-gpt": 0.85}
COMPARED |= {"sequences": 0.8, "pretraining": 0.75, "fine-tuning": 0.7, "inside-gpt": 0.8}


@pytest.mark.parametrize("name", PAGES)
def test_most_cells_that_show_something_are_compared(name):
    cells = nbformat.read(FOLDER / f"{name}.ipynb", as_version=4).cells
    shown = [
        stored
        for cell, stored in zip(code_cells(executed(name)), cells, strict=True)
        if any(output.get("name") != "stderr" for output in cell.outputs)
    ]
    compared = [cell for cell in shown if cell.outputs]
    assert len(compared) >= COMPARED.get(name, 0.9) * len(shown) > 0


@pytest.mark.parametrize("name", PAGES)
def test_no_figure_is_compared_by_its_size_alone(name):
    for cell in nbformat.read(FOLDER / f"{name}.ipynb", as_version=4).cells:
        for output in cell.outputs:
            data = output.get("data", {})
            if str(data.get("text/plain", "")).startswith("<Figure size"):
                assert data[FIGURE]["axes"], cell.source


@pytest.mark.parametrize("name", PAGES)
def test_each_cell_that_is_not_compared_is_listed_with_a_reason(name):
    reasons = tomllib.loads((FOLDER / "ignored.toml").read_text(encoding="utf-8"))
    cells = nbformat.read(FOLDER / f"{name}.ipynb", as_version=4).cells
    ignored = [c.source for c in cells if references.IGNORED in c.metadata.get("tags", [])]
    listed = reasons.get(name, {})
    assert all(reason.strip() for reason in listed.values())
    for fragment in listed:
        assert sum(fragment in source for source in ignored) == 1, fragment
    unlisted = [s for s in ignored if not any(fragment in s for fragment in listed)]
    assert unlisted == []
    assert set(reasons) <= set(PAGES)


def code(source, tags=(), **fields):
    cell = nbformat.v4.new_code_cell(source, **fields)
    cell.metadata = nbformat.from_dict({"tags": list(tags)} if tags else {})
    return cell


def shown(text):
    return nbformat.v4.new_output("stream", name="stdout", text=text)


def test_only_what_changed_is_rewritten():
    def made(*cells):
        return references.reference(nbformat.v4.new_notebook(cells=list(cells)))

    first, second = code("a", outputs=[shown("0.1234")]), code("b", outputs=[shown("x")])
    old = made(first, second)
    rounding = made(code("a", outputs=[shown("0.1235")]), second)
    references.keep_old(old, rounding)
    assert rounding == old
    more = made(code("new"), code("a", outputs=[shown("0.2")]), second)
    references.keep_old(old, more)
    assert more.cells[1].outputs[0].text == "0.2"
    assert more.cells[2] == old.cells[1]


def test_a_row_of_numbers_is_one_line():
    data = {"rows": [[1, -2.5], [None, 1e-07]], "words": ["[\n 1,\n 2\n]", "a"], "none": []}
    text = references.compact(json.dumps(data, indent=1))
    assert json.loads(text) == data
    assert "  [1, -2.5],\n  [null, 1e-07]\n" in text
    assert len(text.splitlines()) == 11


def test_an_address_is_refused():
    output = nbformat.v4.new_output(
        "stream", name="stdout", text="<X object at 0x7f00aabbccdd>"
    )
    notebook = nbformat.v4.new_notebook(cells=[code("a", outputs=[output])])
    with pytest.raises(ValueError, match="0x7f00aabbccdd"):
        references.reference(notebook)
