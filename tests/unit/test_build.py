"""A built site is of its sources: nothing older, and what failed says so."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from bs4 import BeautifulSoup

from lmbook import build
from lmbook.bench import build as bench
from lmbook.execute.keys import ROOT
from test_execute import page

PICTURE = """\
import matplotlib.pyplot as plt
plt.plot([1, 2]);"""


@pytest.fixture
def book(tmp_path):
    """A book of two chapters and a page without code."""
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


def contents(book: Path, *names: str) -> None:
    files = "".join(f"\n- file: {name}" for name in names)
    (book / "_toc.yml").write_text(f"format: jb-book\nroot: index\nchapters:{files}\n")


def run(book: Path) -> tuple[int, str]:
    command = [sys.executable, "-m", "lmbook.build", str(book)]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    done = subprocess.run(command, text=True, **pipes)
    return done.returncode, done.stdout


def shown(book: Path, name: str) -> str:
    page = (book / "_build" / "html" / f"{name}.html").read_text()
    return BeautifulSoup(page, "html.parser").select_one("article.bd-article").get_text()


@pytest.mark.slow
def test_a_site_is_of_its_sources(book):
    html = book / "_build" / "html"
    status, said = run(book)
    assert status == 0, said
    assert "42" in shown(book, "first")
    assert "It is 0.250." in shown(book, "other")
    first = {p: p.stat().st_mtime_ns for p in html.glob("*.html")}

    status, said = run(book)  # without changes
    assert status == 0, said
    assert said.count("from cache") == 2
    assert {
        p: p.stat().st_mtime_ns for p in html.glob("[fio]*.html")
    }.items() <= first.items()

    # A chapter fails, another has a new name.
    page(book, "first", "21 * 2", "poem = 1\npoem / 0", "'third of first'")
    (book / "chapters" / "other.md").rename(book / "chapters" / "renamed.md")
    contents(book, "first", "renamed")
    status, said = run(book)
    assert status == 1
    assert said.rstrip().endswith("FAILED: first")
    assert "--- first: cell 2 failed (ZeroDivisionError)\npoem = 1\npoem / 0\n\n" in said
    text = shown(book, "first")
    top, _, rest = text.partition("21")
    assert "This page is not whole: cell 2 failed (ZeroDivisionError)" in top
    assert "division by zero" in top
    assert "42" in rest
    assert "second of first" not in rest
    assert "It is 0.250." in shown(book, "renamed")
    for kind in ("html", "notebooks/{}.ipynb", "_sources/{}.md"):
        path = kind.format("other") if "{}" in kind else f"other.{kind}"
        assert not (html / path).exists()
    assert [p.name for p in (html / "notebooks").glob("*.ipynb")] == ["renamed.ipynb"]


@pytest.mark.slow
def test_a_warning_fails_every_build_until_it_is_mended(book):
    page(book, "first", PICTURE)
    for _ in range(2):
        status, said = run(book)
        assert status == 1
        assert "a picture has no alternative text" in said


@pytest.fixture
def sphinx(book, monkeypatch):
    """Sphinx as a function of ours: what it returns, what it found when called."""
    found, result = [], [0]

    def stand_in(source, target, **_):
        found.append(sorted(path.name for path in Path(target).glob("*.html")))
        target.mkdir(parents=True, exist_ok=True)
        (target / "page.html").touch()
        return result[0]

    monkeypatch.setattr(build, "build_sphinx", stand_in)
    monkeypatch.setattr(build, "execute_chapters", lambda root: {})
    (book / "_build").mkdir()
    return found, result


def test_what_a_whole_build_left_is_used_again(book, sphinx):
    assert build.build(book) == build.build(book) == 0
    assert sphinx[0] == [[], ["page.html"]]


@pytest.mark.parametrize("result", [1, RuntimeError("a bug"), KeyboardInterrupt()])
def test_what_another_build_left_is_not(book, sphinx, result):
    found, results = sphinx
    results[0] = result
    assert build.build(book) != 0
    left = (book / "_build" / "html" / "page.html").exists()
    assert left is (result == 1)  # with warnings it is of these sources
    build.build(book)
    assert found == [[], []]


@pytest.mark.parametrize(
    ("path", "old", "new"),
    [
        ("_toc.yml", "other", "another"),
        ("_config.yml", "title: ", "title: More "),
        ("chapters/new.md", "", "# New"),
    ],
)
def test_another_house_is_built_from_cold(book, sphinx, path, old, new):
    build.build(book)
    file = book / path
    file.write_text(file.read_text().replace(old, new) if file.exists() else new)
    build.build(book)
    assert sphinx[0] == [[], []]


@pytest.mark.parametrize(
    ("file", "cold"),
    [
        ("renderer.py", True),
        ("tables.py", True),
        ("static/views.js", True),
        ("static/site.js", False),
    ],
)
def test_what_makes_pages_counts(book, sphinx, monkeypatch, file, cold):
    build.build(book)
    original = build.hashes
    monkeypatch.setattr(build, "hashes", lambda *a: original(*a) | {file: "another"})
    build.build(book)
    assert sphinx[0] == [[], [] if cold else ["page.html"]]


def test_a_failed_chapter_fails_the_build(book, sphinx, monkeypatch, capsys):
    failure = {"first": {"what": "cell 2 failed", "error": "why"}}
    monkeypatch.setattr(build, "execute_chapters", lambda root: failure)
    assert build.build(book) == 1
    assert len(sphinx[0]) == 1  # the site is built all the same
    assert capsys.readouterr().out.endswith("cell 2 failed\nwhy\n\nFAILED: first\n")


def test_front_matter_is_checked_before_anything_is_executed(book, sphinx, capsys):
    parts = "parts:\n- numbered: 1\n  chapters:\n  - file: first\n"
    (book / "_toc.yml").write_text(f"format: jb-book\nroot: index\n{parts}")
    assert build.build(book) == 2
    assert sphinx[0] == []
    said = capsys.readouterr().out
    assert said.startswith("error: chapters/first.md: its front matter lacks `course:`")


def test_where_the_time_went(book, sphinx, monkeypatch, capsys):
    monkeypatch.setattr(bench, "ROOT", book)
    assert bench.main([]) == 1
    assert "make html" in capsys.readouterr().out
    build.build(book)
    assert bench.main([]) == 0
    assert "executing" in capsys.readouterr().out


def test_a_folder_that_is_none_is_told_before_anything_is_done(
    tmp_path, monkeypatch, capsys
):
    monkeypatch.setenv("LMCOURSE_BERT", "./nowhere")
    assert build.build(tmp_path) == 2
    assert "./nowhere" in capsys.readouterr().out
    assert list(tmp_path.iterdir()) == []
