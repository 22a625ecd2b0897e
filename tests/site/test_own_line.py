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
