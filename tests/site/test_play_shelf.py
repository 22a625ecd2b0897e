"""The view *shelf* in a browser: a word struck out is told; what is filed is compared."""

import pytest

from lmcourse import views

pytestmark = [pytest.mark.browser, pytest.mark.slow]

NAMES = ["Life", "Love"]
POEM = {"text": "Hope is\nhope", "own": 0, "words": ["Hope", "is", "hope"]}
POEM |= {"printed": [[90, 100], [150, 100]]}
POEM |= {"said": [[[90, 95]] * 3, [[80, 100], [150, 100], [190, 90]]]}
FILED = {"texts": ["One\nx", "Two"], "editors": [0, 1], "models": [[1, 1], [0, 0]]}


def make():
    data = {"words": True, "poems": [POEM], "first": 0}
    shared = {"names": NAMES, "levels": ["static", "top"]}
    return views.View("shelf-view", data | shared, "<p>stored</p>", alt="A poem."), {}


def use(page):
    page.get_by_role("button", name="Hope", exact=True).click()


def test_a_word_struck_out_is_told_and_coloured(opened):
    page = opened.page
    words = page.locator(".lmf-poem [role=button]")
    assert words.evaluate_all("e => e.map(b => b.className)") == [
        "lmf-holds",
        "lmf-holds",
        "lmf-hinders",
    ]
    assert page.locator(".lmf-poem").text_content() == POEM["text"]
    assert "as printed: Life" in page.get_by_role("status").text_content()
    use(page)
    assert "Without “Hope”: Love." in page.get_by_role("status").text_content()
    page.get_by_label("Level").fill("0")
    assert "Without “Hope”: Love. Life 0.90" in page.get_by_role("status").text_content()
