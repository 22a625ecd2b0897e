"""A built site is of its sources: nothing older, and what failed says so."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from bs4 import BeautifulSoup

from lmbook import build, fingerprint
from lmbook.execute.keys import ROOT
from test_execute import page


def make_book(tmp_path):
    """Write a book of two chapters and a page without code."""
    (tmp_path / "data").mkdir()
    chapters = tmp_path / "chapters"
    for name in ("_logo", "_static"):
        shutil.copytree(ROOT / "chapters" / name, chapters / name)
    (chapters / "references.bib").touch()
    (chapters / "index.md").write_text("# Prose\n\nNo code.\n")
    shutil.copy(ROOT / "_config.yml", tmp_path)
    page(tmp_path, "first", "21 * 2", "'second of first'")
    page(tmp_path, "other", "from myst_nb import glue\nglue('n', 0.25, display=False)")
    path = chapters / "other.md"
    path.write_text(path.read_text() + "\nIt is {glue:text}`n:.3f`.\n")
    contents(tmp_path, "first", "other")
    return tmp_path


@pytest.fixture
def book(tmp_path):
    return make_book(tmp_path)


def contents(book: Path, *names: str) -> None:
    files = "".join(f"\n- file: {name}" for name in names)
    (book / "_toc.yml").write_text(f"format: jb-book\nroot: index\nchapters:{files}\n")


def run(book: Path, *options: str) -> tuple[int, str]:
    command = [sys.executable, "-m", "lmbook.build", str(book), *options]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    done = subprocess.run(command, text=True, **pipes)
    return done.returncode, done.stdout


def shown(book: Path, name: str) -> str:
    page = (book / "_build" / "html" / f"{name}.html").read_text()
    return BeautifulSoup(page, "html.parser").select_one("article.bd-article").get_text()


@pytest.mark.slow
def test_a_site_is_of_its_sources(book):
    html = book / "_build" / "html"
    status, output = run(book)
    assert status == 0, output
    assert "42" in shown(book, "first")
    assert "It is 0.250." in shown(book, "other")
    left = files(book)

    status, output = run(book)  # without changes
    assert (status, files(book)) == (0, left)
    assert output.startswith("Nothing changed: ")

    # A word more: nothing is executed, published or installed that did not change.
    (book / "chapters" / "index.md").write_text("# Prose\n\nStill no code.\n")
    status, output = run(book)
    assert status == 0, output
    assert output.count("from cache") == 2
    written = {path.name for path, when in files(book).items() if left.get(path) != when}
    assert "index.html" in written
    assert not [name for name in written if name.endswith((".whl", ".ipynb"))]
    assert not written & {"first.html", "other.html"}

    # A chapter fails, another has a new name.
    page(book, "first", "21 * 2", "1 / 0", "'third of first'")
    (book / "chapters" / "other.md").rename(book / "chapters" / "renamed.md")
    contents(book, "first", "renamed")
    status, output = run(book)
    assert status == 1
    assert output.rstrip().endswith("FAILED: first")
    assert "--- first: cell 2 failed (ZeroDivisionError)\n1 / 0\n\n" in output
    text = shown(book, "first")
    top, _, rest = text.partition("21")
    assert "This page is not whole: cell 2 failed (ZeroDivisionError)" in top
    assert "division by zero" in top
    assert "42" in rest
    assert "second of first" not in rest
    assert "It is 0.250." in shown(book, "renamed")
    for path in ("other.html", "notebooks/other.ipynb", "_sources/other.md"):
        assert not (html / path).exists()
    assert [p.name for p in (html / "notebooks").glob("*.ipynb")] == ["renamed.ipynb"]


def files(book: Path) -> dict[Path, int]:
    """Return the site's files → when each was written."""
    paths = (book / "_build" / "html").rglob("*.*")
    return {path: path.stat().st_mtime_ns for path in paths if path.is_file()}


@pytest.fixture
def sphinx(book, monkeypatch):
    """Sphinx as a function of ours: which pages it sees when called, what it returns."""
    pages_seen, result = [], [0]

    def stand_in(source, target, **_):
        pages_seen.append(sorted(path.name for path in Path(target).glob("*.html")))
        target.mkdir(parents=True, exist_ok=True)
        (target / "page.html").touch()
        return result[0]

    monkeypatch.setattr("jupyter_book.sphinx.build_sphinx", stand_in)
    monkeypatch.setattr("lmbook.execute.run.execute_chapters", lambda root, only: {})
    (book / "_build").mkdir()
    return pages_seen, result


def test_folders_of_a_build_may_begin_at_home(book, sphinx, monkeypatch):
    monkeypatch.setenv("HOME", str(book.parent))
    monkeypatch.setenv("LMBOOK_BUILD", f"~/{book.name}/elsewhere")
    assert build.main([f"~/{book.name}"]) == 0
    assert (book / "elsewhere" / "html" / "page.html").is_file()


CHANGES = {
    "chapter": lambda book: add(book / "chapters" / "first.md"),
    "drawing": lambda book: add(book / "chapters" / "_figures" / "bee.svg"),
    "data": lambda book: add(book / "data" / "poems.txt"),
    "settings": lambda book: add(book / "_config.yml"),
    "contents": lambda book: add(book / "_toc.yml"),
    "new chapter": lambda book: add(book / "chapters" / "new.md"),
    "new chapter below": lambda book: add(book / "chapters" / "below" / "new.md"),
    "edited page": lambda book: add(book / "_build" / "html" / "page.html"),
    "deleted page": lambda book: (book / "_build" / "html" / "page.html").unlink(),
    "store": lambda book: add(book / "_build" / "executed" / "first.ipynb"),
    "variable": lambda book: os.environ.update(LMCOURSE_DEVICE="cpu"),
    "model": lambda book: add(book / "mine.safetensors"),
    "remote": lambda book: os.environ.update(GITHUB_REPOSITORY="a/fork"),
}


def add(path: Path) -> None:
    path.parent.mkdir(exist_ok=True)
    with path.open("a") as file:
        file.write("\n")


@pytest.mark.parametrize("change", CHANGES)
def test_whatever_changed_is_noticed(book, sphinx, monkeypatch, capsys, change):
    add(book / "mine.safetensors")
    for name in ("LMCOURSE_DEVICE", "GITHUB_REPOSITORY"):
        monkeypatch.setenv(name, "")  # and so taken back
    monkeypatch.setenv("LMCOURSE_GPT", str(book / "mine.safetensors"))
    assert build.build(book) == build.build(book) == 0
    assert "Nothing changed" in capsys.readouterr().out
    assert len(sphinx[0]) == 1
    CHANGES[change](book)
    assert build.build(book) == 0
    (_, pages_seen) = sphinx[0]
    pages = ("settings", "contents", "new chapter", "new chapter below")
    pages += ("edited page", "deleted page")
    assert pages_seen == ([] if change in pages else ["page.html"])  # or all are made anew


def test_packages_and_files_of_this_checkout_are_inputs(book, monkeypatch):
    before, seen = fingerprint.inputs(book), []
    monkeypatch.setattr(fingerprint, "installed_packages", lambda: ["torch==99"])
    assert fingerprint.inputs(book) != before
    monkeypatch.setattr(
        fingerprint, "hash_files", lambda path, base: seen.append(path.name)
    )
    fingerprint.inputs(book)
    assert {"lmcourse", "lmbook", "studies", "data", "requirements.txt"} <= {*seen}
    seen.clear()
    fingerprint.pages(book)  # without these Sphinx may go on from its last build
    assert seen == ["_config.yml", "_toc.yml", "lmbook", "views"]


@pytest.mark.parametrize("result", [RuntimeError("a bug"), KeyboardInterrupt()])
def test_a_site_that_was_whole_stays_until_another_one_is_done(book, sphinx, result):
    _, results = sphinx
    page = book / "_build" / "html" / "page.html"
    assert build.build(book) == 0
    page.write_text("whole")
    results[0] = result
    assert build.build(book) != 0
    assert page.read_text() == "whole"
    assert not (book / "_build" / "stage").exists()
    results[0] = 1  # with warnings: each page says what is wrong with it
    assert build.build(book) == 1
    assert page.read_text() == ""


def test_what_a_broken_build_left_is_not_built_upon(book, sphinx):
    pages_seen, results = sphinx
    results[0] = RuntimeError("a bug")
    assert build.build(book) == 1
    assert not (book / "_build" / "html").exists()
    build.build(book)
    assert pages_seen == [[], []]


BROKEN = {
    "a tab": ("_toc.yml", "root: index\n\tchapters: []\n", r"_toc\.yml, line 2: .*tabs"),
    "nothing": ("_toc.yml", "", r"_toc\.yml: toc is not a mapping"),
    "a string": (
        "_toc.yml",
        "format: jb-book\nroot: index\nchapters: first\n",
        r"_toc\.yml: entry not a mapping",
    ),
    "settings": ("_config.yml", "title: x\n\ty: 1\n", r"_config\.yml, line 2: .*tabs"),
    "Latin-1": (
        "chapters/first.md",
        b"# W\xf6rter\n",
        r"chapters/first\.md, line 1: .*0xf6",
    ),
    "a list": ("chapters/first.md", "---\n- a\n---\n# A\n", "front matter is a list"),
    "no title": (
        "chapters/first.md",
        "Words.\n\n```{code-cell} python\n# a comment\n```\n",
        "it has no title",
    ),
}


@pytest.mark.parametrize("what", BROKEN)
def test_what_cannot_be_read_is_named_before_anything_is_done(book, sphinx, capsys, what):
    parts = "parts:\n- numbered: 1\n  chapters:\n  - file: first\n"
    (book / "_toc.yml").write_text(f"format: jb-book\nroot: index\n{parts}")
    name, content, message = BROKEN[what]
    content = content if isinstance(content, bytes) else content.encode()
    (book / name).write_bytes(content)
    assert build.build(book) == 2
    assert sphinx[0] == []
    assert re.search(f"error: {message}|error: .*\n?.*{message}", capsys.readouterr().out)


COURSE = "course:\n  short: {}\n  minutes: {{read: 5, work: 10}}\n  builds_on: []\n"
CELL = "{code-cell} python\nprint(6 * 7)\n"
PAGES = {
    "note": f"# A note\n\n```{CELL}```\n\n:::{{note}}\nA bee.\n:::\n\n{{doc}}`index`\n",
    "tilde": f"# Tildes\n\n~~~{CELL}~~~\n",
    "four": f"# Four\n\n````{CELL}````\n",
    "below/deep": f"# Below\n\n```{CELL}```\n\n![A bee](bee.svg)\n",
    "größe 1.5+": f"# Any name\n\n```{CELL}```\n",
    "unknown": f"# Unknown\n\n```{CELL}```\n\n:::{{clover}} Four\nLeaves.\n:::\n",
    "cites": f"# Cites\n\n```{CELL}```\n\nAs said {{cite}}`nobody1900`.\n",
}


@pytest.mark.slow
def test_pages_as_others_write_them(book):
    """All are executed and built, and have their notebooks; what is wrong is named."""
    chapters = book / "chapters"
    (chapters / "below").mkdir()
    (chapters / "below" / "bee.svg").write_text("<svg xmlns='http://www.w3.org/2000/svg'/>")
    front = (chapters / "first.md").read_text().partition("\n---\n")[0]
    for name, text in PAGES.items():
        head = f"{front}\n{COURSE.format(name[:3])}--- \n\n"
        (chapters / f"{name}.md").write_text(f"\ufeff{head}{text}", encoding="utf-8")
    files = "".join(f'\n  - file: "{name}"' for name in PAGES)
    sections = "\n    sections:\n    - file: other\n"
    for name in ("other", "last"):
        page(book, name, f"'{name} page'")
        text = (chapters / f"{name}.md").read_text()
        (chapters / f"{name}.md").write_text(
            text.replace("\n---\n", f"\n{COURSE.format(name.title())}---\n", 1)
        )
    (book / "_toc.yml").write_text(
        "format: jb-book\nroot: index\nparts:\n- numbered: true\n"
        f"  chapters:{files}{sections}- chapters:\n  - file: last\n"
    )
    status, output = run(book)
    assert status == 1, output  # two pages have something unknown
    assert re.search(r"unknown\.md:\d+: WARNING: no plain Markdown .*\{clover\}", output)
    assert re.search(r"cites\.md.*nobody1900", output)
    html = book / "_build" / "html"
    for name in PAGES:
        assert "42" in shown(book, name), name
        notebook = nbformat.read(html / "notebooks" / f"{name}.ipynb", as_version=4)
        nbformat.validate(notebook)
        text = "\n".join(cell.source for cell in notebook.cells)
        assert "print(6 * 7)" in text
        assert "{" not in text.replace("{wanted}", "").split("print(6 * 7)")[1]
    deep = (html / "notebooks" / "below" / "deep.ipynb").read_text()
    assert 'src=\\"data:image/svg+xml;base64,' in deep
    note = (html / "notebooks" / "note.ipynb").read_text()
    assert "> **Note**" in note
    assert "Leaves." in (html / "notebooks" / "unknown.ipynb").read_text()
    assert "7.1" in (html / "other.html").read_text()
    for name in (*PAGES, "other", "last"):
        assert "5 minutes to read · 10 to work through" in shown(book, name), name
    last = BeautifulSoup((html / "last.html").read_text(), "html.parser")
    assert last.title.get_text().startswith("A page")

    before = files_of(html)
    (chapters / "references.bib").write_text("@article{broken, title = {\n")
    status, output = run(book)
    assert status == 1
    assert "The site could not be built" in output
    assert files_of(html) == before


def files_of(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*.html")}


@pytest.mark.slow
def test_one_page_alone(book):
    status, output = run(book, "--page", "first")
    assert status == 0, output
    assert "42" in shown(book, "first")
    assert not re.search(r"^other .* executed", output, re.MULTILINE)
    assert "nothing was glued" not in output  # of the other page, which was not executed
    assert re.search(r"^\d+ warnings that name other pages were left out", output, re.M)
    with (book / "chapters" / "first.md").open("a") as file:
        file.write("\nIt is {glue:text}`m:.3f`.\n")
    status, output = run(book, "--page", "first")
    assert re.search(r"first\.md.* nothing was glued under the name 'm'", output)
    edit = (book / "chapters" / "first.md").read_text().replace("{glue:text}`m:.3f`", "so")
    (book / "chapters" / "first.md").write_text(edit)
    status, output = run(book)
    assert status == 0, output
    assert "It is 0.250." in shown(book, "other")


@pytest.mark.parametrize("name", ["frist", "index"])  # the second has no code
def test_a_page_that_is_none_is_told_and_the_site_stays_whole(book, sphinx, capsys, name):
    assert build.build(book) == 0
    whole = fingerprint.stored(book)
    assert build.build(book, page=name) == 2
    output = capsys.readouterr().out
    message = f"there is no chapters/{name}.md with code in it; there are first, other"
    assert output.endswith(f"error: {message}\n")
    assert fingerprint.stored(book) == whole


def test_front_matter_is_checked_before_anything_is_executed(book, sphinx, capsys):
    parts = "parts:\n- numbered: 1\n  chapters:\n  - file: first\n"
    (book / "_toc.yml").write_text(f"format: jb-book\nroot: index\n{parts}")
    assert build.build(book) == 2
    assert sphinx[0] == []
    output = capsys.readouterr().out
    assert output.startswith("error: chapters/first.md: its front matter needs `course:`")


def test_a_site_without_its_repository_says_so(book, sphinx, monkeypatch, capsys):
    monkeypatch.setattr(build, "repository", lambda: "")
    assert build.build(book) == 0
    assert "Open in Colab" in capsys.readouterr().out


def test_a_folder_that_is_none_is_told_before_anything_is_done(
    tmp_path, monkeypatch, capsys
):
    monkeypatch.setenv("LMCOURSE_BERT", "./nowhere")
    assert build.build(tmp_path) == 2
    assert "./nowhere" in capsys.readouterr().out
    assert list(tmp_path.iterdir()) == []
