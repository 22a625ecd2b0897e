"""The built site: every chapter is there, whole, with its figures and no error."""

import hashlib
import re
import zlib
from functools import cache
from pathlib import Path
from urllib.parse import unquote, urlsplit

import jupytext
import pytest
import yaml
from bs4 import BeautifulSoup

from lmbook.execute.keys import ROOT
from lmbook.pages.course import read_course
from serving import SITE


def listed() -> list[str]:
    """Return the pages of the table of contents, the root first."""
    toc = yaml.safe_load((ROOT / "_toc.yml").read_text())
    return [toc["root"]] + [
        page["file"] for part in toc["parts"] for page in part["chapters"]
    ]


PAGES = listed()


@cache
def soup(name: str) -> BeautifulSoup:
    path = SITE / f"{name}.html"
    assert path.is_file(), f"{path} is not built: run `make html`"
    return BeautifulSoup(path.read_text(encoding="utf-8"), "html.parser")


@cache
def anchors(name: str) -> set[str]:
    return {tag["id"] for tag in soup(name).find_all(id=True)}


@cache
def source_cells(name: str) -> list:
    cells = jupytext.read(ROOT / "chapters" / f"{name}.md", fmt="md:myst").cells
    return [cell for cell in cells if cell.cell_type == "code"]


def test_the_right_option_is_not_to_be_read_in_the_page(demo):
    html = (demo / "tasks.html").read_text("utf-8")
    choose = re.search(r'<div class="lm-choose".*?</div>\n</div>', html, re.DOTALL)[0]
    assert not re.search(r"right|correct|true|=\"b\"", choose)


def loaded_files(html):
    """Yield path and query of each script and style sheet of ours that a page loads."""
    for tag in BeautifulSoup(html, "html.parser").select("script[src], link[href]"):
        address = urlsplit(tag.get("src") or tag["href"])
        if address.path.startswith("_static/lib/") and not address.netloc:
            yield address.path, address.query


def checksums(path):
    """Return what may stand in a file's address so that it changes when the file does."""
    content = path.read_bytes()
    return {
        f"v={zlib.crc32(content.replace(bytes([13]), b'')):08x}",
        f"v={hashlib.sha256(content).hexdigest()[:8]}",
    }


@pytest.mark.parametrize("book", ["demo", "site"])
def test_a_script_that_changes_has_another_address(request, book):
    """A browser may keep an address for long; with an old script a new page would fail."""
    folder = request.getfixturevalue(book)
    seen = set()
    for page in folder.glob("*.html"):
        for name, query in loaded_files(page.read_text("utf-8")):
            assert query in checksums(folder / name), (page.name, name, query)
            seen.add(Path(name).name)
    assert {"findings.js", "search.js", "search-data.js", "tasks.js", "views.js"} <= seen
    assert {"tasks.css", "views.css"} <= seen


def read_solutions(name):
    """Return the solutions that open in Read."""
    return soup(name).select(".solution:not(.lm-work)")


def figures_of(name):
    """Return what a chapter's cells say of their figures."""
    cells = (cell.metadata.get("mystnb", {}).get("figure") for cell in source_cells(name))
    return list(filter(None, cells))


def test_there_are_solutions_and_figures_to_look_at():
    assert any(map(read_solutions, PAGES))
    assert any(map(figures_of, PAGES))


@pytest.mark.parametrize("name", PAGES)
def test_a_solution_that_opens_in_read_says_something(name):
    for solution in read_solutions(name):
        content = solution.select_one("#solution-content")
        assert "lm-work" not in content.get("class", ()), solution["id"]
        assert content.find(lambda tag: "lm-work" not in tag.get("class", ())), solution


@pytest.mark.parametrize("name", PAGES)
def test_nothing_is_wrong_with_the_page(name):
    page = soup(name)
    article = page.find("article")
    assert not page.select(".output.traceback, .cell_output .traceback, .output.stderr")
    for image in article.find_all("img"):
        assert image.get("alt", "").strip() not in ("", image["src"]), image
    for picture in article.select(".lm-plot"):
        assert picture["aria-label"].strip(), picture
        assert len(str(picture)) < 600_000, f"{name}: a picture of many marks"
    for image in article.select(".cell_output :is(img, .lm-plot, .lmc-view)"):
        assert image.find_parent("figure").find("figcaption"), image
    assert all(value.get_text().strip() for value in article.select(".pasted-text"))
    code = article.find_all(["pre", "code", "script"])
    of_code = {id(text) for tag in code for text in tag.find_all(string=True)}
    prose = "".join(text for text in article.strings if id(text) not in of_code)
    markup = re.search(
        r"\{[a-z:-]+\}`|:::|```|\?\?\?|<IPython|Object at 0x|(?<![\w*])\*[A-Za-z][^*\n]*\*",
        prose,
    )
    assert not markup, markup


@pytest.mark.parametrize("name", PAGES)
def test_the_chapters_figures_are_there(name):
    page = soup(name)
    for figure in figures_of(name):
        assert figure.get("caption"), f"{name}: a figure without caption"
        target = page.find(id=figure["name"])
        tag = target if target.name == "figure" else target.find("figure")
        tag = tag or target.find_parent("figure")
        assert tag.select("img, svg, table, .lmc-view, .lm-samples"), figure["name"]


@pytest.mark.parametrize("name", PAGES)
def test_nothing_stands_between_the_first_text_and_the_first_picture(name):
    picture = soup(name).select_one("article figure")
    before = picture.find_all_previous(["details", "summary", "pre"]) if picture else []
    bars = [bar for bar in before if bar.find_parent("article")]
    assert not bars, f"{name}: {bars[0].get_text()[:80]!r} stands before the first picture"


@pytest.mark.parametrize("name", PAGES)
def test_every_cell_ran(name):
    cells = source_cells(name)
    hidden = [c for c in cells if {"remove-cell"} & set(c.metadata.get("tags", []))]
    shown = [c for c in cells if "remove-input" not in c.metadata.get("tags", [])]
    built = soup(name).select("div.cell div.cell_input")
    assert len(built) == len(shown) - len(hidden)


@pytest.mark.parametrize("name", PAGES)
def test_links_within_the_book_lead_somewhere(name):
    for link in soup(name).find_all("a", href=True):
        parts = urlsplit(link["href"])
        if parts.scheme or link["href"] == "#":
            continue
        path = (SITE / name).parent / unquote(parts.path or f"{name}.html")
        assert path.is_file(), f"{name}: {link['href']} leads nowhere"
        if parts.fragment and path.suffix == ".html":
            anchor = unquote(parts.fragment)
            assert anchor in anchors(path.stem), f"{name}: no {anchor} in {path.name}"


def test_every_chapter_is_listed_and_on_the_landing_page():
    assert {path.stem for path in (ROOT / "chapters").glob("*.md")} == set(PAGES)
    cards = {
        Path(urlsplit(link["href"]).path).stem
        for link in soup(PAGES[0]).select(".course-map svg a[href]")
    }
    assert cards >= set(read_course())
