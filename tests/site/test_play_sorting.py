"""The view *sorting*: what a reader sorts is compared with editors and model."""

import pytest

from lmcourse import views

pytestmark = [pytest.mark.browser, pytest.mark.slow]

DATA = {"texts": ["One\nx", "Two"], "editors": [0, 1], "models": [[1, 1], [1, 0]]}
DATA |= {"names": ["Life", "Love"], "levels": ["static", "top"]}


def make():
    return views.View("sorting-view", DATA, "<p>stored</p>", alt="Poems to sort."), {}


def use(page):
    page.get_by_role("button", name="Love").click()


def test_what_is_sorted_is_compared(opened):
    page = opened.page
    assert "Poem 1 of 2" in page.locator(".lmc-canvas").text_content()
    use(page)
    page.get_by_role("button", name="Take back").click()
    use(page)
    page.get_by_role("button", name="Life").click()
    rows = [row.split("\t") for row in page.locator("tbody tr").all_inner_texts()]
    assert [row[:3] for row in rows] == [
        ["you", "0 of 2", ""],
        ["static", "1 of 2", "1 of 2"],
        ["top", "0 of 2", "2 of 2"],
    ]
    summary = page.locator(".lmc-canvas p").first.inner_text()
    assert "You chose the editors’ section for 0 of 2 poems" in summary
    assert "the model (top) chose it for 0 of 2" in summary
    assert not page.locator(".lmc-canvas .play-poem").is_visible()
    assert page.evaluate("document.activeElement.getAttribute('role')") == "status"
    answer = page.locator("[role=status]").text_content()
    assert answer.endswith("You and the last layer against the editors: One; Two.")
