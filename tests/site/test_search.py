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
    summary = visit.page.locator(".search-summary").inner_text()
    results = visit.page.locator("ul.search li")
    return summary, [results.nth(n) for n in range(results.count())]


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
        summary, results = look(search, typed)
        assert summary.startswith(f"No page has {typed}. Showing results for {meant}. ")
        links = [row.locator("a").get_attribute("href") for row in results]
        assert any(link.startswith(f"{page}.html#") for link in links)
        assert look(search, meant)[0] == summary.partition(f"for {meant}. ")[2]
    summary, _ = look(search, "positonal encodng")
    assert summary.startswith(
        "No page has positonal or encodng. Showing results for positional encoding. "
    )
    for query in ("attention", "attent", "heads", "softmax mask", "AutoTokenizer"):
        summary, results = look(search, query)
        assert re.match(r"\d+ sections? on \d+ pages?\.$", summary), summary
        assert results


def test_the_title_comes_first_and_the_glossary_is_known(search):
    _, results = look(search, "anisotropy")
    assert results[0].locator("a").get_attribute("href") == "glossary.html#term-anisotropy"
    _, results = look(search, "A lookup that always answers")
    first = results[0].locator("a")
    assert first.inner_text() == "A lookup that always answers"
    assert f"{COURSE['attention'].number}. Attention" in results[0].inner_text()
    first.click()
    search.page.wait_for_url("**/attention.html#*")
    anchor = search.page.url.partition("#")[2]
    assert search.page.locator(f"[id='{anchor}']").count() == 1


def test_nothing_is_found_kindly_and_nothing_typed_is_markup(search):
    summary, results = look(search, "qqqqqqqqqqqq")
    assert (summary, results) == ("No page has this. A part of a word is enough.", [])
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
