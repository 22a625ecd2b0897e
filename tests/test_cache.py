"""Cached pages are never stale, and a cell that raises fails the build, every time."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from lmbook.cache import ROOT, imported_modules, package_files, page_key

HEADER = """---
jupytext:
  text_representation:
    extension: .md
    format_name: myst
kernelspec:
  display_name: Python 3
  language: python
  name: python3
---
# A page

```{code-cell} python
CODE
```
"""


def test_imports_are_found():
    source = (
        "%matplotlib inline\nimport a.b as c\nfrom d import (e,\n  f)\nfrom g.h import i"
    )
    assert imported_modules(source) == {"a.b", "d", "d.e", "d.f", "g.h", "g.h.i"}


@pytest.fixture
def project(tmp_path):
    """A package of three modules, one importing another; a corpus; a page."""
    package = tmp_path / "src" / "pack"
    package.mkdir(parents=True)
    (tmp_path / "data").mkdir()
    (package / "__init__.py").write_text("")
    (package / "used.py").write_text("from pack import deeper")
    (package / "deeper.py").write_text("X = 1")
    (package / "unused.py").write_text("Y = 1")
    (tmp_path / "data" / "poems.txt").write_text("a bee")
    (tmp_path / "requirements.txt").write_text("torch==1")
    page = tmp_path / "page.md"
    page.write_text(HEADER.replace("CODE", "from pack.used import x"))
    return tmp_path, package, page


def test_files_behind_imports(project):
    _, package, _ = project
    names = {file.name for file in package_files({"pack.used", "os"}, package)}
    assert names == {"used.py", "deeper.py", "__init__.py"}


@pytest.mark.parametrize(
    ("changed", "stale"),
    [
        ("src/pack/used.py", True),
        ("src/pack/deeper.py", True),
        ("src/pack/unused.py", False),
        ("src/pack/__init__.py", True),
        ("data/poems.txt", True),
        ("requirements.txt", True),
    ],
)
def test_a_page_is_stale_when_what_it_runs_on_changes(project, changed, stale):
    root, package, page = project
    before = page_key(page, root, package)
    assert page_key(page, root, package) == before
    with (root / changed).open("a") as file:
        file.write("\n# changed")
    assert (page_key(page, root, package) != before) is stale


def test_model_and_device_count(project, monkeypatch):
    root, package, page = project
    before = page_key(page, root, package)
    monkeypatch.setenv("LMCOURSE_BERT", "another")
    assert page_key(page, root, package) != before


def build(book: Path, **environment) -> subprocess.CompletedProcess:
    command = [
        Path(sys.executable).parent / "jupyter-book",
        *("build", book / "chapters", "--path-output", book),
        *("--config", book / "_config.yml", "--toc", book / "_toc.yml"),
        *("--warningiserror", "--keep-going"),
    ]
    env = os.environ | environment
    return subprocess.run(command, capture_output=True, text=True, env=env, cwd=book)


def tiny_book(folder: Path, code: str) -> Path:
    chapters = folder / "chapters"
    chapters.mkdir()
    (chapters / "page.md").write_text(HEADER.replace("CODE", code))
    (chapters / "references.bib").write_text("")
    shutil.copytree(ROOT / "chapters" / "_logo", chapters / "_logo")
    shutil.copytree(ROOT / "chapters" / "_static", chapters / "_static")
    shutil.copy(ROOT / "_config.yml", folder)
    (folder / "_toc.yml").write_text("format: jb-book\nroot: page\n")
    return folder


@pytest.mark.slow
def test_no_stale_output_is_shown(tmp_path):
    book = tiny_book(
        tmp_path, "import os, time\nprint(os.environ['LMCOURSE_BERT'], time.time_ns())"
    )
    shown = []
    for model in ("model-one", "model-one", "model-two"):
        run = build(book, LMCOURSE_BERT=model)
        assert run.returncode == 0, run.stderr
        page = (book / "_build" / "html" / "page.html").read_text()
        shown.append(page.split("model-")[1].split("</pre>")[0].split())
    assert shown[0] == shown[1]  # from the cache: the same moment
    assert shown[2][0].startswith("two")


@pytest.mark.slow
def test_a_cell_that_raises_fails_the_build_every_time(tmp_path):
    book = tiny_book(tmp_path, "poem = 1\npoem / 0")
    for _ in range(2):
        run = build(book)
        assert run.returncode != 0
        said = run.stdout + run.stderr
        assert "page.md" in said
        assert "ZeroDivisionError" in said
        assert "poem / 0" in said
