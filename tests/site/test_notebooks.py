"""The published notebooks: every chapter, in Markdown that needs no extension."""

import re
import sys
import zipfile

import jupytext
import nbformat
import pytest

from lmbook import links, notebooks
from lmbook.execute import chapters
from lmbook.keys import ROOT
from lmbook.links import format_glue, repository, site_address, wheel_address
from lmbook.markdown import solutions

FOLDER = ROOT / "_build" / "html" / "notebooks"
NAMES = [path.stem for path in chapters()]
MYST = re.compile(
    r"\{[\w:-]+\}`|^:{3,}|^`{3,}\{|^\([\w-]+\)=|\{\{|\[\^|\]\{|</?div|!\[", re.MULTILINE
)
LISTING = re.compile(r"(`{3,}|~{3,}).*?\1|(`+)(?!`).+?(?<!`)\2", re.DOTALL)


MATH = re.compile(r"(\${1,2})(?!\$).+?\1", re.DOTALL)


def notebook(name):
    path = FOLDER / f"{name}.ipynb"
    assert path.is_file(), f"{path} is not built: run `make html`"
    return nbformat.read(path, as_version=4)


@pytest.mark.parametrize("name", NAMES)
def test_no_myst_is_left(name):
    for cell in notebook(name).cells:
        if cell.cell_type == "markdown":
            left = MYST.search(MATH.sub("", LISTING.sub("", cell.source)))
            assert left is None, f"{left[0]!r} in {cell.source[:300]}"


@pytest.mark.parametrize("name", NAMES)
def test_the_code_is_the_chapters_and_the_prose_is_there(name):
    stored = notebook(name)
    nbformat.validate(stored)
    code = [c.source for c in stored.cells if c.cell_type == "code"][1:]
    page = jupytext.read(ROOT / "chapters" / f"{name}.md", fmt="md:myst")
    title = "# @title Solution (unfold to read)\n"
    assert [source.removeprefix(title) for source in code] == [
        cell.source for cell in page.cells if cell.cell_type == "code"
    ]
    words = sum(len(c.source.split()) for c in stored.cells if c.cell_type == "markdown")
    source = sum(len(c.source.split()) for c in page.cells if c.cell_type == "markdown")
    assert words > 0.9 * source


@pytest.mark.parametrize("name", NAMES)
def test_solutions_are_folded(name):
    cells = notebook(name).cells
    folded = [c for c in cells if c.source.startswith("# @title Solution")]
    text = (ROOT / "chapters" / f"{name}.md").read_text(encoding="utf-8")
    assert len(folded) >= text.count("{solution-start}") > 0
    assert all(cell.metadata.jupyter.source_hidden for cell in folded)
    assert all(cell.metadata.cellView == "form" for cell in folded)


@pytest.mark.parametrize("name", NAMES)
def test_a_solution_in_words_is_folded_too(name):
    path = ROOT / "chapters" / f"{name}.md"
    inside, words = False, []
    for cell in jupytext.read(path, fmt="md:myst").cells:
        if cell.cell_type == "markdown":
            pieces = solutions(cell.source, inside)
            inside = pieces[-1][0]
            words += [" ".join(text.split()[:3]) for within, text in pieces if within]
    prose = [c.source for c in notebook(name).cells if c.cell_type == "markdown"]
    open_ = " ".join(
        re.sub(r"<details>.*?</details>", "", "\n".join(prose), flags=re.S).split()
    )
    folded = " ".join("\n".join(prose).split())
    for first in filter(None, words):
        if "{" not in first:  # rewritten
            assert first in folded
            assert first not in open_ or folded.count(first) > 1


@pytest.mark.parametrize("name", NAMES)
def test_the_first_cell_installs_only_in_colab_and_never_the_heavy_ones(name):
    first = next(c for c in notebook(name).cells if c.cell_type == "code").source
    assert '"google.colab" in sys.modules' in first
    assert "--no-deps" in first
    wanted = re.search(r"wanted = \{(.*?)\}", first, re.DOTALL)[1]
    assert not re.search(r'"(torch|numpy|pandas|transformers)\b', wanted)
    (wheel,) = FOLDER.glob("lmcourse-*.whl")
    assert wheel.name in wanted


def test_elsewhere_the_first_cell_does_nothing(monkeypatch):
    def refuse(*args, **kwargs):
        raise AssertionError("it installs outside Colab")

    monkeypatch.setattr("subprocess.run", refuse)
    exec(notebooks._install_cell("x.whl").source, {})


def test_in_colab_it_asks_for_what_is_missing(monkeypatch):
    asked = []
    monkeypatch.setitem(sys.modules, "google.colab", object())
    monkeypatch.setattr("subprocess.run", lambda command, check: asked.extend(command))
    monkeypatch.setattr(
        "importlib.util.find_spec", lambda name: None if name == "bertviz" else object()
    )
    exec(notebooks._install_cell("x.whl").source, {})
    assert asked[-2] == "--no-deps"
    assert asked[-1].startswith("bertviz==")


def test_in_colab_a_wheel_that_was_not_uploaded_is_asked_for(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "google.colab", object())
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    monkeypatch.setattr("subprocess.run", lambda command, check: None)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(FileNotFoundError, match=r"upload x\.whl, too"):
        exec(notebooks._install_cell("x.whl").source, {})
    (tmp_path / "x.whl").touch()
    exec(notebooks._install_cell("x.whl").source, {})
    exec(notebooks._install_cell("https://example.org/y.whl").source, {})


def test_the_wheel_beside_them_is_the_package_and_the_data():
    (wheel,) = FOLDER.glob("lmcourse-*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    modules = {name for name in names if name.endswith(".py")}
    assert modules == {
        file.relative_to(ROOT / "src").as_posix() for file in (ROOT / "src").rglob("*.py")
    }
    data = {name for name in names if name.startswith("lmcourse/_data/")}
    assert data == {
        f"lmcourse/_data/{file.relative_to(ROOT / 'data').as_posix()}"
        for file in (ROOT / "data").rglob("*")
        if file.is_file()
    }


@pytest.mark.parametrize("name", NAMES)
def test_the_page_offers_its_notebook_and_source(name):
    page = (ROOT / "_build" / "html" / f"{name}.html").read_text(encoding="utf-8")
    assert f'href="notebooks/{name}.ipynb"' in page
    assert f'href="_sources/{name}.md"' in page
    assert (ROOT / "_build" / "html" / "_sources" / f"{name}.md").is_file()
    assert ("colab.research.google.com" in page) == bool(repository())


@pytest.mark.parametrize("name", ["index", "glossary", "bibliography"])
def test_a_page_without_code_offers_its_source(name):
    page = (ROOT / "_build" / "html" / f"{name}.html").read_text(encoding="utf-8")
    assert f'href="_sources/{name}.md"' in page
    assert (ROOT / "_build" / "html" / "_sources" / f"{name}.md").is_file()
    assert ".ipynb" not in page


@pytest.mark.parametrize(
    ("named", "found", "address"),
    [
        ("Owner/book", "Owner/book", "https://owner.github.io/book/"),
        ("owner/owner.github.io", "owner/owner.github.io", "https://owner.github.io/"),
        (
            "https://github.com/owner/book.git",
            "owner/book",
            "https://owner.github.io/book/",
        ),
        ("git@github.com:owner/book.git", "owner/book", "https://owner.github.io/book/"),
    ],
)
def test_repository(monkeypatch, named, found, address):
    monkeypatch.setenv("GITHUB_REPOSITORY", named)
    assert repository() == found
    assert site_address() == address
    assert wheel_address("x.whl") == (
        f"https://raw.githubusercontent.com/{found}/gh-pages/notebooks/x.whl"
    )


def test_without_a_repository_the_wheel_is_beside_the_notebook(monkeypatch):
    monkeypatch.setattr(links, "repository", lambda: "")
    assert wheel_address("x.whl") == "x.whl"


def test_glued_values():
    values = {"x": "0.12345", "n": "3", "word": "'bee'", "np": "array([1])"}
    assert format_glue(values, "x", ".2f") == "0.12"
    assert format_glue(values, "n", "") == "3"
    assert format_glue(values, "word", "") == "bee"
    assert format_glue(values, "np", "") == "array([1])"
    with pytest.raises(ValueError, match="nothing was glued under the name 'y'"):
        format_glue(values, "y", "")
    with pytest.raises(
        ValueError, match=r"'np' is array\(\[1\]\), which has no format '.1f'"
    ):
        format_glue(values, "np", ".1f")
