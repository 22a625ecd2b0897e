"""A chapter that was just begun builds, proves and checks what it says."""

import re
import shutil
import sys

import pytest

from lmbook import new_chapter
from lmbook.execute.keys import ROOT
from lmbook.execute.run import page_notebook
from lmbook.pages.course import read_course


@pytest.fixture
def book(tmp_path):
    shutil.copy(ROOT / "_toc.yml", tmp_path)
    shutil.copytree(ROOT / "chapters", tmp_path / "chapters")
    return tmp_path


def test_it_is_a_chapter_of_the_book(book):
    assert new_chapter.new_chapter("bees-and-clover", book) == 0
    chapters = read_course(book)
    last = [*chapters.values()][-1]
    assert (last.name, last.title) == ("bees-and-clover", "What is bees and clover?")
    assert new_chapter.new_chapter("bees-and-clover", book) == 2  # nothing is replaced


def test_the_contents_are_replaced_as_a_whole_and_not_written_over(book):
    """A process that is killed then leaves the contents that were there."""
    before = (book / "_toc.yml").read_text()
    (book / "old.yml").hardlink_to(book / "_toc.yml")
    assert new_chapter.new_chapter("bees-and-clover", book) == 0
    assert (book / "old.yml").read_text() == before
    assert (book / "_toc.yml").read_text() != before


@pytest.mark.parametrize("name", ["Bees", "a b", "../a", "bees_", "", "-a"])
def test_what_is_no_name_is_refused(book, capsys, name):
    before = (book / "_toc.yml").read_text()
    assert new_chapter.new_chapter(name, book) == 2
    assert "is no name" in capsys.readouterr().out
    assert (book / "_toc.yml").read_text() == before


def test_a_name_that_a_module_has_is_refused(book, capsys):
    """Its folder would stand before the module where Python looks."""
    module = book / "src" / "studies" / "running.py"
    module.parent.mkdir(parents=True)
    module.touch()
    assert new_chapter.new_chapter("running", book) == 2
    assert f"running exists: {module}" in capsys.readouterr().out
    assert not module.with_suffix("").exists()


@pytest.mark.parametrize("how", [("- file: (.+)", r'- file: "\1"'), ("numbered: .*", "")])
def test_contents_that_cannot_be_added_to_are_told_before_anything_is_written(
    book, capsys, how
):
    contents = book / "_toc.yml"
    contents.write_text(re.sub(*how, contents.read_text()))
    assert new_chapter.new_chapter("bees-and-clover", book) == 2
    assert "by hand" in capsys.readouterr().out
    assert not (book / "chapters" / "bees-and-clover.md").exists()


@pytest.mark.slow
def test_its_cells_run_and_its_task_is_right(book, monkeypatch):
    """In this process, from the files that were written."""
    new_chapter.new_chapter("bees-and-clover", book)
    import lmcourse.exercises
    import lmcourse.figures

    for package in ("lmcourse/exercises", "lmcourse/figures", "studies"):
        module = sys.modules[package.replace("/", ".")]
        paths = [*module.__path__, str(book / "src" / package)]
        monkeypatch.setattr(module, "__path__", paths)
    monkeypatch.setattr("matplotlib.pyplot.show", lambda: None)
    notebook = page_notebook(book / "chapters" / "bees-and-clover.md")
    names: dict = {}
    for cell in notebook.cells:
        if cell.cell_type == "code":
            exec(compile(cell.source, "cell", "exec"), names)
    check = lmcourse.exercises.check
    assert check("bees-and-clover.count_lines", names["count_lines_solved"])
    assert not check("bees-and-clover.count_lines", names["count_lines"]).tried
    wrong = check("bees-and-clover.count_lines", lambda text: len(text.split("\n")))
    assert "empty lines are counted" in wrong.message
    assert names["lengths"]
