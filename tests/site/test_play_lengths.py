"""The view *lengths* in a browser: the chosen case is drawn, its far end told."""

import pytest

from lmcourse import views

pytestmark = [pytest.mark.browser, pytest.mark.slow]


def make():
    controls = [{"name": n, "values": v} for n, v in (("A", ["x", "y"]), ("B", ["s", "t"]))]
    cases = [
        {"loss": [i, 2, 9], "far": i + 0.25, "told": f"Case {i}.", "strips": strips}
        for i, strips in enumerate([[{"name": "pair", "met": "110110"}]] * 3 + [[]])
    ]
    data = {"short": 2, "tokens": 6, "guess": 3.0, "most": 8}
    data |= {"cases": cases, "controls": controls}
    return views.View("lengths-view", data, "<p>stored</p>", alt="Curves."), {}


def use(page):
    page.get_by_label("y", exact=True).check()


def test_the_chosen_case_is_drawn(opened):
    page, top = opened.page, 14 + 25
    assert [page.locator(f".lml-{each}").count() for each in ("met", "new")] == [2, 2]
    use(page)
    status = page.get_by_role("status").text_content()
    assert status == "Case 2. At the far end the loss is 2.25 nats; a guess has 3.00."
    heights = [float(dot.get_attribute("cy")) for dot in page.locator(".lml-dot").all()]
    assert heights == pytest.approx(
        [top + 170 * (1 - loss / 8) for loss in (2, 2, 8)], abs=0.1
    )
