"""The view *training* in a browser: a model learns while the reader watches."""

import re

import pytest

import visits
from lmcourse.views import training

pytestmark = [pytest.mark.browser, pytest.mark.slow]

TEXT = "so long as men can breathe or eyes can see\n" * 60
RUN = [
    {"step": 1, "loss": 2.5, "sample": "qzv"},
    {"step": 150, "loss": 1.5, "sample": "<b>so long</b>"},
]


def make():
    """A smaller model than the site's, trained on fewer characters."""
    view = training(TEXT, alt="A model learns.", others={"<b>ours</b>": 1.0}, run=RUN)
    sizes = view.data["config"] | {"context": 16, "d_model": 16, "d_ff": 64}
    view.data.update(steps=150, batch=4, learning_rate=0.01, config=sizes)
    return view, {"sonnets": TEXT.encode}


def use(page):
    page.get_by_role("button", name=re.compile("Train it (here|anew)")).click()
    page.get_by_role("button", name="Train another").wait_for(timeout=visits.LOAD)


def test_a_model_learns_while_the_reader_watches(opened):
    page = opened.page
    slider, sample = page.get_by_role("slider", name="Look back"), page.locator("pre")
    assert sample.inner_text() == "<b>so long</b>"
    caption = page.get_by_text(re.compile("wrote this after"))
    assert caption.inner_text().startswith("A stored training wrote this after 150 steps")
    slider.focus()
    page.keyboard.press("ArrowLeft")
    assert sample.inner_text() == "qzv"
    assert caption.inner_text().startswith("A stored training wrote this after 1 step, at")
    assert slider.get_attribute("aria-valuetext") == "1 step"
    page.get_by_role("button", name="Train it here").click()
    focused = "button => button === document.activeElement"
    assert page.get_by_role("button", name="Stop").evaluate(focused)
    page.get_by_role("button", name="Train another").wait_for(timeout=visits.LOAD)
    picture = page.locator("svg.lmr-chart")
    assert "after 150 steps" in picture.get_attribute("aria-label")
    assert picture.locator(".lmr-curve").get_attribute("d").count("L") >= 1
    labels = " ".join(picture.locator("text").all_text_contents())
    assert "2-grams" in labels
    assert "best n-grams" in labels
    assert "<b>ours</b> 1.00" in labels
    assert page.get_by_role("status").inner_text().endswith("than: 2-grams.")
    assert len(sample.inner_text()) > 50
    slider.focus()
    page.keyboard.press("Home")
    assert caption.inner_text().startswith("It wrote this after 0 steps")
    visits.stop_once(page, "true")
    page.get_by_role("button", name="Train another").click()
    page.wait_for_function("stopped", timeout=visits.LOAD)
    page.get_by_role("button", name="Train another").wait_for()


def test_without_scripts_there_are_simple_models_and_a_stored_training():
    stored = make()[0].stored
    assert ">2-grams</th>" in stored
    assert "&lt;b&gt;ours&lt;/b&gt;</th><td>1.00</td>" in stored
    assert '<th scope="row">1</th><td>2.50</td><td>qzv</td>' in stored
    assert "After steps" not in training(TEXT, alt="A model learns.").stored
