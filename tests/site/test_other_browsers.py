"""A first look at the site in Firefox and WebKit: scripts run, choices, search, a model.

They run where Playwright's builds of the two are (``python -m playwright install firefox
webkit``), as the weekly job has them; elsewhere each is skipped, with the reason. A browser
that ``OTHER_BROWSERS`` names must be there: ``OTHER_BROWSERS=chromium`` tries these tests.
"""

import os
from pathlib import Path

import pytest
from playwright.sync_api import expect

import visits
from lmbook.browser import find_chromium

pytestmark = [pytest.mark.browser, pytest.mark.slow]

WANTED = os.environ.get("OTHER_BROWSERS", "").split()
NAMES = WANTED or ["firefox", "webkit"]
# Looked for before Playwright runs, which it asks as well.
CHROMIUM = find_chromium() if "chromium" in NAMES else None
KNOWS_HAS = "CSS.supports('selector(:has(*))')"


def executable(kind):
    """Return the path of a browser, or skip the test where it is not installed."""
    if kind.name == "chromium":
        return CHROMIUM
    path = kind.executable_path
    if not Path(path).is_file():
        reason = f"no {kind.name} here: python -m playwright install {kind.name}"
        (pytest.fail if WANTED else pytest.skip)(reason)
    return path


@pytest.fixture(scope="module", params=NAMES)
def other_browser(request, playwright):
    """Another browser than the one of all other tests."""
    kind = getattr(playwright, request.param)
    sandbox = ["--no-sandbox"] if kind.name == "chromium" else []
    browser = kind.launch(executable_path=executable(kind), args=sandbox)
    yield browser
    browser.close()


@pytest.fixture
def read(other_browser, server):
    """Return a function that opens a page of the site; nothing may go wrong in it."""
    opened = []

    def open_page(name):
        visit = visits.visit(other_browser, f"{server}/{name}.html", way="read")
        opened.append((visit, visit.__enter__()))
        return opened[-1][1].page

    yield open_page
    for visit, inside in opened:
        try:
            inside.clean()
        finally:
            visit.__exit__(None, None, None)


def test_a_letter_of_the_front_page_tells_what_was_expected(read):
    page = read("index")
    slider = page.get_by_role("slider", name="letter by letter")
    slider.press("Home")
    assert slider.get_attribute("aria-valuetext").startswith("A, expected with ")
    slider.press("ArrowRight")
    assert not slider.get_attribute("aria-valuetext").startswith("A, ")


def test_a_choice_shows_what_was_chosen_or_all(read):
    page = read("scaling")
    choice = page.locator(".lm-choice").first
    panels = choice.locator("section")
    shown = panels.locator("visible=true")
    if not page.evaluate(KNOWS_HAS):
        expect(shown).to_have_count(panels.count())
        return
    first, last = choice.locator("label").first, choice.locator("label").last
    texts = []
    for label in (first, last):
        label.click()
        expect(shown).to_have_count(1)
        texts.append(shown.inner_text())
    assert texts[0] != texts[1]


def test_a_slip_is_found(read):
    page = read("search")
    page.locator(".bd-search-container input[name=q]").fill("atention")
    said = page.locator(".search-summary")
    expect(said).to_contain_text("Showing results for attention")
    expect(page.locator("ul.search li a").first).to_be_visible()


def test_a_model_in_the_page_goes_on_with_a_line(read):
    page, line = read("play"), "Rough winds do shake the d"
    page.get_by_label("Your line").first.fill(line)
    text = page.get_by_role("region", name="What it writes").first
    expect(text).to_contain_text(line)
    # While it writes, it can be stopped.
    expect(page.get_by_role("button", name="stop", exact=True).first).to_be_disabled()
    assert text.locator("b").inner_text().strip()
