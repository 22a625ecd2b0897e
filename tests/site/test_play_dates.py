"""The view *dates* in a browser: style, day, character and head chosen."""

import pytest

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
        "probs": [[["1", 90 - i], ["2", 6], ["<", 1]] for i in places],
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


def make():
    return views.View("dates-view", DATA, "<p>stored</p>", alt="Dates."), {}


def use(page):
    page.get_by_label("Style").select_option("1")


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
    summary = page.locator(".lmd-summary")
    both = "“1” it looks most at “1” (place 1, 50 %), “6” (place 10, 50 %)"
    assert both in summary.text_content()
    page.get_by_role("button", name="head 1").click()
    assert "“6” (place 10, 100 %)" in summary.text_content()
    assert page.locator(".lmd-read > span").last.text_content() == "6100\u2009%"
    page.get_by_role("button", name="end, place 11").focus()
    page.keyboard.press("Enter")
    assert "“end”" in summary.text_content()
    assert page.evaluate("document.activeElement.textContent") == "end"
    assert page.locator(".lmd-bars p").first.text_content() == "1 80 %"
