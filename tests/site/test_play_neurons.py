"""The view *neurons* in a browser: which list is the neuron's is told after a guess."""

import pytest

from lmcourse import views

pytestmark = [pytest.mark.browser, pytest.mark.slow]
FOUND = {f"neuron {i}": (["a\nb", "<b>b", " b"], ["of c", "d ", "xb"]) for i in range(3)}


def make():
    return views.neurons(FOUND), {}


def use(page):
    page.get_by_role("button", name="A is the neuron").click()


def test_a_guess_is_told_once_and_counted(opened):
    page, neuron = opened.page, make()[0].data["pairs"][0]["neuron"]
    assert page.locator(".lmn-neuron").count() == 0
    texts = page.locator(".lmn-side").nth(neuron).locator("li").all_text_contents()
    assert texts == ["a⏎b", "<b>b", "\u00a0b"]
    page.get_by_role("button", name=f"{'AB'[neuron]} is the neuron").click()
    status = page.get_by_role("status").text_content()
    assert status.endswith("Right so far: 1 of 1.")
    assert "Of its 3 texts, 3 end in the same letter. In the other list it is 1." in status
    page.get_by_role("button", name="Next").click()
    wrong = "AB"[1 - make()[0].data["pairs"][1]["neuron"]]
    page.get_by_role("button", name=f"{wrong} is the neuron").click()
    assert page.get_by_role("status").text_content().endswith("1 of 2.")


def test_after_a_guess_the_keyboard_stands_at_the_next_pair(opened):
    page = opened.page
    page.get_by_role("button", name="A is the neuron").press("Enter")
    page.keyboard.press("Enter")
    assert page.get_by_label("Open").locator("option:checked").text_content() == "neuron 1"
