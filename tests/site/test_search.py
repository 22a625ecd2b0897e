"""Search in the browser: over every section, with slips, offline and from files."""

import re

import pytest

import visits
from lmbook.execute.keys import ROOT
from lmbook.pages.course import read_course
from serving import SITE
from test_browser import PHONE, does_not_scroll_sideways

pytestmark = [pytest.mark.browser, pytest.mark.slow]
COURSE = read_course(ROOT)


def look(visit, query):
    """Type a query into the page of results; return what it says and what it found."""
    visit.page.locator(".bd-search-container input[name=q]").fill(query)
    said = visit.page.locator(".search-summary").inner_text()
    found = visit.page.locator("ul.search li")
    return said, [found.nth(n) for n in range(found.count())]


@pytest.fixture(params=["served", "file"])
def search(request, browser, server):
    base = server if request.param == "served" else SITE.as_uri()
    with visits.visit(browser, f"{base}/search.html") as visit:
        visit.base = base
        yield visit
        visit.clean()


SLIPS = [
    ("atention", "attention", "attention"),
    ("tokeniser", "tokenizer", "tokenization"),
    ("positonal", "positional", "positional-encoding"),
    ("Dickenson", "dickinson", "dickinson-layers"),
    ("atetntion", "attention", "attention"),
    ("softmx", "softmax", "attention"),
]


def test_a_slip_is_understood_and_told_and_nothing_else_is_corrected(search):
    for typed, meant, page in SLIPS:
        said, found = look(search, typed)
        assert said.startswith(f"No page has {typed}. Showing results for {meant}. ")
        links = [row.locator("a").get_attribute("href") for row in found]
        assert any(link.startswith(f"{page}.html#") for link in links)
        assert look(search, meant)[0] == said.partition(f"for {meant}. ")[2]
    said, _ = look(search, "positonal encodng")
    assert said.startswith(
        "No page has positonal or encodng. Showing results for positional encoding. "
    )
    for query in ("attention", "attent", "heads", "softmax mask", "AutoTokenizer"):
        said, found = look(search, query)
        assert re.match(r"\d+ sections? on \d+ pages?\.$", said), said
        assert found


def test_the_title_comes_first_and_the_glossary_is_known(search):
    _, found = look(search, "anisotropy")
    assert found[0].locator("a").get_attribute("href") == "glossary.html#term-anisotropy"
    _, found = look(search, "A lookup that always answers")
    first = found[0].locator("a")
    assert first.inner_text() == "A lookup that always answers"
    assert f"{COURSE['attention'].number}. Attention" in found[0].inner_text()
    first.click()
    search.page.wait_for_url("**/attention.html#*")
    anchor = search.page.url.partition("#")[2]
    assert search.page.locator(f"[id='{anchor}']").count() == 1


def test_nothing_is_found_kindly_and_nothing_typed_is_markup(search):
    said, found = look(search, "qqqqqqqqqqqq")
    assert (said, found) == ("No page has this. A part of a word is enough.", [])
    look(search, '<img src=x onerror="document.title=1"> attention')
    assert search.page.locator("#search-results img").count() == 0
    assert look(search, "  ")[0] == ""


def test_the_themes_dialog_leads_to_the_results(browser, server):
    with visits.visit(browser, f"{server}/embeddings.html") as visit:
        visit.page.wait_for_load_state("networkidle")
        visit.page.keyboard.press("Control+k")
        visit.page.keyboard.type("atention")
        visit.page.keyboard.press("Enter")
        visit.page.wait_for_url("**/search.html?q=atention*")
        visit.page.get_by_text("Showing results for attention").wait_for()
        visit.clean()


def test_what_it_fetches_is_less_than_the_chapters():
    parts = ("search-data.js", "search.js", "minisearch/index.js")
    sizes = {part: (SITE / "_static" / "lib" / part).stat().st_size for part in parts}
    chapters = [(SITE / f"{name}.html").stat().st_size for name in COURSE]
    assert sum(sizes.values()) < sum(chapters), sizes
    assert not (SITE / "searchindex.js").exists()


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_results_are_accessible_and_narrow(browser, server, theme):
    address = f"{server}/search.html?q=positonal"
    with visits.visit(browser, address, theme=theme, width=PHONE) as visit:
        visit.page.locator("ul.search li").first.wait_for()
        assert visits.audit(visit.page) == []
        does_not_scroll_sideways(visit)
        visit.clean()
