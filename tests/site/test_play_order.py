"""The view *order* in a browser: its numbers are attention's."""

import pytest
import torch

from lmcourse import views
from lmcourse.positions import rotate, sinusoidal

pytestmark = [pytest.mark.browser, pytest.mark.slow]

WORDS = ["dog", "bites", "<b>man"]
SPAN, MOST, PAIRS = len(WORDS), 4, 3
GENERATOR = torch.Generator().manual_seed(0)
QUERIES, KEYS = torch.randn(2, SPAN, 2 * PAIRS, generator=GENERATOR).double()
PLACES = sinusoidal(SPAN + MOST, 2 * PAIRS).double()


def added(order, start):
    """Return the scores when a wave is added to queries and keys."""
    at = torch.arange(SPAN) + start
    return (QUERIES[order] + PLACES[at]) @ (KEYS[order] + PLACES[at]).T


def turned(order, start):
    """Return the scores when queries and keys are turned by their places."""
    at = torch.arange(SPAN) + start
    return rotate(QUERIES[order], at) @ rotate(KEYS[order], at).T


def make():
    offsets = [
        QUERIES @ rotate(KEYS, torch.full((SPAN,), offset)).T
        for offset in range(1 - SPAN, SPAN)
    ]
    sums = {"ww": QUERIES @ KEYS.T, "wp": QUERIES @ PLACES.T}
    sums |= {"pw": PLACES @ KEYS.T, "pp": PLACES @ PLACES.T}
    schemes = [
        {"name": "turned", "told": "By offset.", "offsets": torch.stack(offsets, -1)},
        {"name": "added", "told": "Four terms.", **sums},
    ]
    schemes = [
        {name: x.tolist() if isinstance(x, torch.Tensor) else x for name, x in s.items()}
        for s in schemes
    ]
    data = {"words": WORDS, "most": MOST, "schemes": schemes}
    return views.View("order-view", data, "<p>stored</p>", alt="Scores of words."), {}


def use(page):
    page.get_by_role("radio", name="added").check()
    page.get_by_label("words before the line").fill("3")  # frames, colours


def shown(page):
    """Return the scores in the table, and which of them are framed."""
    cells = page.locator("tbody td")
    texts = [text.removesuffix(" changed") for text in cells.all_text_contents()]
    framed = ["lmo-changed" in cell.get_attribute("class") for cell in cells.all()]
    return [float(text.replace("−", "-")) for text in texts], framed


def check_order(page, order, start, scores):
    """Compare the table with attention, and the frames with the line as it was."""
    products, framed = shown(page)
    wanted = scores(order, start).flatten()
    assert max(abs(a - b) for a, b in zip(products, wanted.tolist(), strict=True)) < 0.051
    usual = scores([*range(SPAN)], 0)[order][:, order].flatten()
    assert framed == ((wanted - usual).abs() > 0.005).tolist()


def test_two_clicks_exchange_two_words(opened):
    page = opened.page
    line = page.locator(".lmo-line button")
    check_order(page, [0, 1, 2], 0, turned)
    line.nth(0).click()
    assert line.nth(0).get_attribute("aria-pressed") == "true"
    line.nth(2).click()
    assert line.all_text_contents() == ["<b>man", "bites", "dog"]
    assert page.locator("b").count() == 0
    check_order(page, [2, 1, 0], 0, turned)
    page.get_by_role("radio", name="added").check()
    check_order(page, [2, 1, 0], 0, added)
    page.get_by_role("button", name="Start again").click()
    check_order(page, [0, 1, 2], 0, added)


def test_words_before_the_line_matter_to_what_is_added_only(opened):
    page = opened.page
    page.get_by_label("words before the line").fill("3")
    check_order(page, [0, 1, 2], 3, turned)
    status = page.locator(".lmo-status")
    assert "none of the 9 pairs of words" in status.text_content()
    page.get_by_role("radio", name="added").check()
    check_order(page, [0, 1, 2], 3, added)
    assert "none" not in status.text_content()


def test_arrow_keys_carry_a_word(opened):
    page = opened.page
    page.locator(".lmo-line button").nth(0).focus()
    for _ in range(3):  # the last one has no effect
        page.keyboard.press("ArrowRight")
    assert page.locator(".lmo-line button").all_text_contents() == [*WORDS[1:], "dog"]
    check_order(page, [1, 2, 0], 0, turned)
    page.keyboard.press("ArrowLeft")
    check_order(page, [1, 0, 2], 0, turned)


def test_what_can_be_done_and_the_poem_s_line_are_always_told(opened):
    page = opened.page
    hint = page.get_by_text("Click two words to swap them")
    assert hint.is_visible()
    page.locator(".lmo-line button").nth(0).press("ArrowRight")
    assert hint.is_visible()
    assert (
        "the poem’s line, “dog bites <b>man”" in page.locator(".lmo-status").text_content()
    )


def test_escape_lets_go_of_a_word(opened):
    page = opened.page
    line = page.locator(".lmo-line button")
    line.nth(0).click()
    page.keyboard.press("Escape")
    assert line.nth(0).get_attribute("aria-pressed") == "false"
    line.nth(2).click()
    assert line.all_text_contents() == WORDS
