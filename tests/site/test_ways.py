"""The switch between reading and working: what each way shows, and how one comes there."""

import re

import pytest
from playwright.sync_api import expect

import visits

pytestmark = [pytest.mark.browser, pytest.mark.slow]
BOTH = [
    *(f"{n} paragraph that both ways show" for n in ("First", "Second", "Third", "Fourth")),
    "printed, for both",
    "a table for both",
    "A task for both",
    "A last section",
]
WORK = [
    "printed, for Work",
    "quokka",
    "sum_of_two",
    "All of it is code",
    "One and one",
    "folded",
    "A task that needs code",
    "A section of code alone",
    "statement",
]
# The last block, of those that both ways show, that begins above a third of the window.
UNDER_THE_EYE = """() => Array.from(document.querySelectorAll(
  "article :is(p, li, h1, h2, h3, dt, tr, figure, pre, .lmc-view)"))
  .filter(e => !e.closest(".lm-work, .cell_input, .above-input")
    && e.getClientRects().length
    && e.getBoundingClientRect().top <= innerHeight / 3).at(-1)"""
# Views are drawn when they come nearer to the window than 500 pixels.
NEAR_VIEWS_ARE_DRAWN = """() => Array.from(document.querySelectorAll(".lmc-view"))
  .filter(view => view.getClientRects().length)
  .filter(view => {
    const { top, bottom } = view.getBoundingClientRect();
    return bottom > -500 && top < innerHeight + 500;
  })
  .every(view => view.dataset.state === "drawn")"""
LEFT = "Left out here: cells of code (8), tasks in code (1), proofs (1). "


def shown(page):
    """Return what a reader sees of a page's article, folds open."""
    page.evaluate(
        "document.querySelectorAll('article details').forEach(d => d.open = true)"
    )
    return page.locator("article").inner_text()


def switch(page):
    """Return the two buttons of the switch."""
    return [page.get_by_role("button", name=name, exact=True) for name in ("Read", "Work")]


def way(page):
    """Return the way that the switch shows, which is the page's own."""
    pressed = [button.get_attribute("aria-pressed") for button in switch(page)]
    assert sorted(pressed) == ["false", "true"]
    current = ["read", "work"][pressed.index("true")]
    assert page.evaluate("document.documentElement.dataset.way") == current
    return current


@pytest.fixture(params=["served", "file"])
def fresh(request, browser, demo, demo_server):
    """The demonstration as it opens for who was never there."""
    base = demo_server if request.param == "served" else demo.as_uri()
    with visits.visit(browser, f"{base}/ways.html", way=None) as visit:
        yield visit.page
        visit.clean()


def test_reading_shows_no_code_and_working_shows_all(fresh):
    assert way(fresh) == "read"
    text = shown(fresh)
    assert [each for each in BOTH if each not in text] == []
    assert [each for each in WORK if each in text] == []
    assert LEFT in text
    for selector in (".cell_input", "details.above-input", ".lm-proof", ".lm-workshop"):
        assert fresh.locator(selector).first.is_visible() is False
    fresh.get_by_role("button", name="Show them").click()
    assert way(fresh) == "work"
    text = shown(fresh)
    assert [each for each in BOTH + WORK if each not in text] == []
    assert "Left out" not in text


def test_it_is_kept_and_goes_by_key_and_into_other_windows(fresh):
    _, work = switch(fresh)
    other = fresh.context.new_page()
    other.goto(fresh.url)
    work.focus()
    fresh.keyboard.press("Enter")
    assert way(fresh) == "work"
    if fresh.url.startswith("http"):  # files do not tell one another
        expect(switch(other)[1]).to_have_attribute("aria-pressed", "true")
    other.close()
    fresh.goto(fresh.url.replace("ways.html", "plain.html"))
    assert way(fresh) == "work"
    switch(fresh)[0].focus()
    fresh.keyboard.press("Space")
    fresh.reload()
    assert way(fresh) == "read"


@pytest.mark.parametrize("how", ["click", "address", "same hash"])
def test_a_link_into_what_is_left_out_shows_it_and_goes_there(browser, demo_server, how):
    address = f"{demo_server}/ways.html"
    if how == "address":
        address += "#demo-workshop"
    with visits.visit(browser, address, way=None) as visit:
        page = visit.page
        if how != "address":
            assert way(page) == "read"
            page.locator("article a", has_text="place in the workshop").click()
        if how == "same hash":
            switch(page)[0].click()
            page.locator("article a", has_text="place in the workshop").click()
        place = page.locator(".lm-workshop p").first
        expect(place).to_be_visible()
        assert way(page) == "work"
        assert 0 <= place.bounding_box()["y"] < 900
        visit.clean()


def test_without_scripts_everything_shows(browser, demo_server):
    address = f"{demo_server}/ways.html"
    with visits.visit(browser, address, javascript=False) as visit:
        text = visit.page.locator("article").inner_text()
        wanted = [*BOTH, "quokka", "sum_of_two", "A section of code alone"]
        assert [each for each in wanted if each not in text] == []
        assert "Left out" not in text


@pytest.mark.parametrize("width", [1280, 390])
def test_the_paragraph_under_the_eye_stays(browser, server, width):
    address = f"{server}/attention.html"
    with visits.visit(browser, address, width=width, way=None) as visit:
        page = visit.page
        for place in (0.25, 0.5, 0.75):
            page.evaluate(f"scrollTo(0, {place} * document.body.scrollHeight)")
            page.wait_for_function(NEAR_VIEWS_ARE_DRAWN, timeout=visits.LOAD)
            for button in reversed(switch(page)):
                block = page.evaluate_handle(UNDER_THE_EYE)
                before = block.evaluate("e => e.getBoundingClientRect().top")
                button.evaluate("b => b.click()")
                visits.settle(page)
                after = block.evaluate("e => e.getBoundingClientRect().top")
                assert abs(after - before) <= 1
        visit.clean()


def test_search_finds_both_and_says_which(browser, demo_server):
    with visits.visit(browser, f"{demo_server}/search.html", way=None) as visit:
        page, results = visit.page, visit.page.locator("ul.search li")
        field = page.locator(".bd-search-container input[name=q]")
        for query, in_work in (("quokka", True), ("paragraph", False)):
            field.fill(query)
            expect(results.first).to_contain_text(query)
            assert ("in Work" in results.first.inner_text()) is in_work
        field.fill("quokka")
        results.first.locator("a").click()
        expect(page.locator(".lm-workshop")).to_be_visible()
        visit.clean()


def test_the_doors_of_the_front_page_choose(browser, server):
    for place, chosen in enumerate(("read", "work")):
        with visits.visit(browser, f"{server}/index.html", way=None) as visit:
            visit.page.wait_for_load_state("networkidle")
            text = visit.page.locator(".lm-doors > div").nth(place).locator("p")
            text.click(force=True)  # all of a door is the link
            visit.page.wait_for_url(re.compile("sequences"))
            assert way(visit.page) == chosen
            visit.clean()
