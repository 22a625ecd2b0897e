"""The view *training* in a browser: a model learns while the reader watches."""

import re

import pytest

import visits
from lmcourse.views import training

pytestmark = [pytest.mark.browser, pytest.mark.slow]

TEXT = "so long as men can breathe or eyes can see\n" * 60


def make():
    """A smaller model than the site's, trained on fewer characters."""
    view = training(TEXT, alt="A model learns.", others={"<b>ours</b>": 1.0})
    sizes = view.data["config"] | {"context": 16, "d_model": 16, "d_ff": 64}
    view.data.update(steps=150, batch=4, learning_rate=0.01, config=sizes)
    return view, {"sonnets": TEXT.encode}


def use(page):
    page.get_by_role("button", name=re.compile("Train it (here|anew)")).click()
    page.get_by_role("button", name="Train it anew").wait_for(timeout=visits.LOAD)


def test_a_model_learns_while_the_reader_watches(opened):
    page = opened.page
    page.get_by_role("button", name="Train it here").click()
    focused = "button => button === document.activeElement"
    assert page.get_by_role("button", name="Stop").evaluate(focused)
    page.get_by_role("button", name="Train it anew").wait_for(timeout=visits.LOAD)
    picture = page.locator("svg.lmr-chart")
    assert "after 150 steps" in picture.get_attribute("aria-label")
    assert len(picture.locator("polyline").get_attribute("points").split()) >= 2
    labels = " ".join(picture.locator("text").all_text_contents())
    assert "pairs of characters" in labels
    assert "<b>ours</b> 1.00" in labels
    assert page.get_by_role("status").inner_text().endswith("than: pairs of characters.")
    assert len(page.locator("pre").inner_text()) > 50
    page.get_by_role("button", name="Train it anew").click()
    page.get_by_role("button", name="Stop").click()
    page.get_by_role("button", name="Train it anew").wait_for()


def test_the_stored_state_is_a_table_of_what_simple_models_reach():
    stored = training(TEXT, alt="A model learns.", others={"<b>ours</b>": 1.0}).stored
    assert ">pairs of characters</th>" in stored
    assert "&lt;b&gt;ours&lt;/b&gt;</th><td>1.00</td>" in stored
