"""The view *word removal* in a browser: a word struck out changes the answer."""

import pytest

from lmcourse import views

pytestmark = [pytest.mark.browser, pytest.mark.slow]

NAMES = ["Life", "Love"]
POEM = {"text": "Hope is\nhope", "own": 0, "words": ["Hope", "is", "hope"]}
POEM |= {"printed": [[90, 100], [150, 100]]}
POEM |= {"said": [[[90, 95]] * 3, [[80, 100], [150, 100], [190, 90]]]}


WORDS = ".play-poem [role=button]"


def make():
    data = {"poems": [POEM], "first": 0}
    shared = {"names": NAMES, "levels": ["static", "top"]}
    return views.View(
        "word-removal-view", data | shared, "<p>stored</p>", alt="A poem."
    ), {}


def use(page):
    page.get_by_role("button", name="Hope", exact=True).click()


def test_a_word_struck_out_is_reported_and_coloured(opened):
    page = opened.page
    words = page.locator(WORDS)
    assert words.evaluate_all("e => e.map(b => b.className)") == [
        "lmf-holds",
        "lmf-holds",
        "lmf-hinders",
    ]
    key = page.locator(".lmf-key span").evaluate_all(
        "e => e.map(b => [b.className, b.innerText])"
    )
    assert key == [["lmf-holds", "speaks for it"], ["lmf-hinders", "speaks against it"]]
    assert page.locator(".play-poem").text_content() == POEM["text"]
    assert "as printed: Life" in page.get_by_role("status").text_content()
    use(page)
    assert "Without “Hope”: Love." in page.get_by_role("status").text_content()
    page.get_by_label("Level").fill("0")
    assert "Without “Hope”: Love. Life 0.90" in page.get_by_role("status").text_content()


def test_the_words_are_one_tab_stop_and_arrow_keys_go_through_them(opened):
    page = opened.page
    words = page.locator(WORDS)
    tabindex = "all => all.map(word => word.tabIndex)"
    assert words.evaluate_all(tabindex) == [0, -1, -1]
    words.first.focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    assert "Without “hope”" in page.get_by_role("status").text_content()
    assert page.evaluate("document.activeElement.textContent") == "hope"
    assert words.evaluate_all(tabindex) == [-1, -1, 0]
