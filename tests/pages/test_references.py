"""A reference is worth something only if it is the chapter, executed."""

import json

import nbformat
import pytest

import references
from compare import FIGURE, difference
from lmbook.execute.keys import ROOT
from lmbook.execute.run import chapter_paths, load_executed_chapter, page_notebook

FOLDER = ROOT / "tests" / "pages" / "notebooks"
PAGES = [path.stem for path in chapter_paths()]


def code_cells(notebook) -> list:
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def reference_cells(name) -> list:
    """Return the cells of a page's reference; they hold code."""
    return nbformat.read(FOLDER / f"{name}.ipynb", as_version=4).cells


def tags(cell) -> list[str]:
    return list(cell.metadata.get("tags", []))


@pytest.mark.parametrize("name", PAGES)
def test_the_reference_is_the_chapter_executed(name):
    page = code_cells(page_notebook(ROOT / "chapters" / f"{name}.md"))
    stored = reference_cells(name)
    assert [(c.source, tags(c)) for c in stored] == [(c.source, tags(c)) for c in page]
    for cell in stored:
        assert cell.execution_count is not None
        if "raises-exception" not in tags(cell):
            assert all(output.output_type != "error" for output in cell.outputs)


def test_each_page_has_a_reference_and_none_is_left_over():
    assert sorted(path.stem for path in FOLDER.glob("*.ipynb")) == PAGES


@pytest.mark.parametrize("name", PAGES)
def test_the_last_build_shows_what_the_reference_holds(name):
    for new, old in zip(
        code_cells(load_executed_chapter(name)), reference_cells(name), strict=True
    ):
        if references.IGNORED not in tags(old):
            assert not difference(old.outputs, new.outputs), old.source


# What a training in the page ends at differs between kinds of CPU; the cells that show it
# assert bounds instead. These pages are about little else. Without such a share a page that
# is wholly marked as not to be compared would pass all the same.
COMPARED = {"encoder-decoder": 0.6, "transformer-block": 0.85, "mini-gpt": 0.85}
COMPARED |= {
    "backpropagation": 0.85,
    "sequences": 0.8,
    "pretraining": 0.75,
    "fine-tuning": 0.7,
    "inside-gpt": 0.8,
}


@pytest.mark.parametrize("name", PAGES)
def test_most_cells_that_show_something_are_compared(name):
    pairs = zip(code_cells(load_executed_chapter(name)), reference_cells(name), strict=True)
    shown = [
        stored
        for cell, stored in pairs
        if any(output.get("name") != "stderr" for output in cell.outputs)
    ]
    compared = [cell for cell in shown if cell.outputs]
    assert len(compared) >= COMPARED.get(name, 0.9) * len(shown) > 0


def test_no_figure_is_compared_by_its_size_alone():
    cells = [cell for name in PAGES for cell in reference_cells(name)]
    shown = [output.get("data", {}) for cell in cells for output in cell.outputs]
    figures = [d for d in shown if str(d.get("text/plain", "")).startswith("<Figure size")]
    assert figures
    for data in figures:
        assert data[FIGURE]["axes"]


@pytest.mark.parametrize("name", PAGES)
def test_a_cell_says_why_its_output_is_not_compared(name):
    """Where it is not, beside the tag, in the chapter: its code still runs, and asserts."""
    for cell in code_cells(page_notebook(ROOT / "chapters" / f"{name}.md")):
        reason = cell.metadata.get("why-not-compared", "").strip()
        assert bool(reason) == (references.IGNORED in tags(cell)), cell.source


def cell(source, text):
    """Return a cell that has printed a text."""
    output = nbformat.v4.new_output("stream", name="stdout", text=text)
    return nbformat.v4.new_code_cell(source, outputs=[output])


def reference_of(*cells):
    return references.reference(nbformat.v4.new_notebook(cells=list(cells)))


def test_only_what_changed_is_rewritten():
    old = reference_of(cell("a", "0.1234"), cell("b", "x"))
    rounding = reference_of(cell("a", "0.1235"), cell("b", "x"))
    references.keep_old(old, rounding)
    assert rounding == old
    more = reference_of(cell("new", ""), cell("a", "0.2"), cell("b", "x"))
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
    with pytest.raises(ValueError, match="0x7f00aabbccdd"):
        reference_of(cell("a", "<X object at 0x7f00aabbccdd>"))
