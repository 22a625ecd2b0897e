"""The view *dates* in a browser: style, day, character and head chosen."""

import pytest
from axe_playwright_python.sync_playwright import Axe

import visits
from bare import make_page
from lmcourse import views

pytestmark = [pytest.mark.browser, pytest.mark.slow]


def state(source, wanted, written):
    """What a model of two heads does that looks at one place with each."""
    places = range(len(written) + 1)
    ends = len(source) - 1
    return {
        "source": source,
        "wanted": wanted,
        "written": written,
        "chances": [[["1", 90 - i], ["2", 6], ["<", 1]] for i in places],
        "looks": [
            [[100 * (j == head * ends) for j in range(ends + 1)] for head in (0, 1)]
            for i in places
        ],
    }


DATA = {
    "styles": ["1 May 1886", "1886 May 1"],
    "days": ["1 May 1886", "2 May 1886"],
    "seen": 1,
    "states": [
        [state(f"{day} May 1886", f"1886-05-0{day}", f"1886-05-0{day}") for day in (1, 2)],
        [state(f"1886 May {day}", f"1886-05-0{day}", f"1805-05-0{day}") for day in (1, 2)],
    ],
}


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    folder = tmp_path_factory.mktemp("dates")
    view = views.View("dates-view", DATA, "<p>stored</p>", alt="Dates.")
    return make_page(folder / "page", [view], folder / "work").as_uri()


@pytest.fixture
def opened(browser, address):
    with visits.visit(browser, address) as visit:
        visit.page.wait_for_selector("[data-state=drawn]", timeout=visits.LOAD)
        yield visit
        visit.clean()


def test_style_and_day_choose_what_is_read_and_written(opened):
    page = opened.page
    assert page.get_by_role("status").text_content() == "✓ That is the day."
    assert page.locator(".lmd-read > span").count() == len("1 May 1886")
    page.get_by_label("Day").select_option("1")
    page.get_by_label("Style").select_option("1")
    assert page.get_by_role("status").text_content() == "✗ The day is 1886-05-02."
    wrong = page.locator(".lmd-row button.lmd-wrong")
    assert wrong.all_text_contents() == ["0", "5"]  # 1805 for 1886
    assert page.locator("optgroup").nth(1).get_attribute("label") == "It never saw"


def test_a_character_and_a_head_choose_the_weights(opened):
    page = opened.page
    told = page.locator(".lmd-told")
    assert "“1” it looks most at “1” (place 1, 50 %), “6” (place 10, 50 %)" in (
        told.text_content()
    )
    page.get_by_role("button", name="head 1").click()
    assert "“6” (place 10, 100 %)" in told.text_content()
    assert page.locator(".lmd-read > span").last.text_content() == "6100\u2009%"
    page.get_by_role("button", name="end, place 11").focus()
    page.keyboard.press("Enter")
    assert "“end”" in told.text_content()
    assert page.evaluate("document.activeElement.textContent") == "end"
    assert page.locator(".lmd-bars p").first.text_content() == "1 80 %"


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_accessible_and_no_wider_than_a_phone(browser, address, theme):
    with visits.visit(browser, address, theme=theme, width=390) as visit:
        visit.page.evaluate(f"document.documentElement.dataset.theme = '{theme}'")
        visit.page.wait_for_selector("[data-state=drawn]", timeout=visits.LOAD)
        visit.page.get_by_label("Style").select_option("1")
        assert visit.page.evaluate("document.documentElement.scrollWidth") <= 390
        options = {"resultTypes": ["violations"], "preload": False}
        found = Axe().run(visit.page, options=options)
        assert [v["id"] for v in found.response["violations"]] == []
        visit.clean()
