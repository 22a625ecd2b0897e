"""The line that a reader typed once is offered by every live view of the book."""

import re

import pytest
from playwright.sync_api import expect

import visits

pytestmark = [pytest.mark.browser, pytest.mark.slow]
LINE = "<i>A slumber</i> did my spirit seal; I had no human fears at all"
SHORT = "Take yours: “" + LINE[:39] + "…”"
PAGES = ["tokenization", "play"]  # of all kinds there are some on the last


def boxes(page):
    """Return the boxes for a line of the views on a page, all of them drawn."""
    for place in page.locator(".lmc-view").all():
        place.evaluate("e => e.scrollIntoView({block: 'center'})")
        expect(place).to_have_attribute("data-state", "drawn", timeout=visits.LOAD)
    return page.get_by_label("Your line").all()


def test_a_line_typed_in_one_view_is_offered_by_all(browser, server):
    with visits.visit(browser, f"{server}/play.html") as visit:
        page = visit.page
        first, *others = boxes(page)
        assert len(others) >= 3
        offers = page.get_by_role("button", name=re.compile("Take yours"))
        assert offers.count() == 0  # hidden: nothing was typed
        first.fill(LINE)
        first.press("Tab")
        expect(offers).to_have_count(len(others))  # where it stands already, no offer
        for name in PAGES:
            page.goto(f"{server}/{name}.html")
            for box in boxes(page):
                most = int(box.get_attribute("maxlength") or 1000)
                view = box.locator("xpath=ancestor::*[contains(@class, 'lmc-view')]")
                offer = view.get_by_role("button", name=re.compile("Take yours"))
                assert offer.inner_text() == SHORT
                offer.click()
                assert box.input_value() == LINE[:most]
                assert not offer.is_visible()
            assert boxes(page)
        visit.clean()


def test_a_click_that_leaves_a_line_is_not_lost(browser, server):
    """The offers above it come between press and release: nothing may move then."""
    with visits.visit(browser, f"{server}/play.html") as visit:
        visit.draw()
        page = visit.page
        # WebKit does not hold what is read in its place; this browser would.
        page.add_style_tag(content="* { overflow-anchor: none !important; }")
        view = page.locator("[data-module=talker-view]")
        view.get_by_label("Your line").fill("hope is the thing")
        anew = view.get_by_role("button", name="Begin anew")
        anew.scroll_into_view_if_needed()
        before = anew.bounding_box()
        anew.hover()
        page.mouse.down()
        expect(
            page.get_by_role("button", name=re.compile("Take yours")).first
        ).to_be_visible()
        assert anew.bounding_box() == before
        page.mouse.up()
