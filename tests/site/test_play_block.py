"""The view *block* in a browser: parts switched off by mouse and by key."""

import bs4
import pandas as pd
import pytest

from lmcourse import views
from lmcourse.ablation import PARTS

pytestmark = [pytest.mark.browser, pytest.mark.slow]


def table(heads=2):
    rows = [
        (layer, part, 2.0 + change, change, change - 0.01, change + 0.02)
        for layer in (0, 1)
        for i, part in enumerate([*PARTS, *range(heads)])
        for change in [0.25 * i * (layer + 1) - 0.1]
    ]
    return pd.DataFrame(rows, columns=["layer", "part", "loss", "change", "low", "high"])


def make():
    return views.block(table()), {}


def use(page):
    page.get_by_role("button", name="head 0").click()


def test_the_stored_state_is_every_number():
    page = bs4.BeautifulSoup(views.block(table()).stored, "html.parser")
    assert {part["data-part"] for part in page.select("[data-part]")} == {*PARTS, "0", "1"}
    rows = [[cell.text for cell in row] for row in page.find_all("tr")[1:]]
    assert rows[0] == ["norm 1", *["-0.100 (-0.110 to -0.080)"] * 2]
    assert rows[7] == ["head 1", "+1.650 (+1.640 to +1.670)", "+3.400 (+3.390 to +3.420)"]
    assert "whole model is 2.00" in page.find("p").text


def test_a_click_and_a_key_switch_a_part_off_and_on(opened):
    page = opened.page
    status = page.get_by_role("status")
    assert "With all its parts the loss of the model is 2.00." in status.text_content()
    part = page.get_by_role("button", name="attention", exact=True)
    part.click()
    assert part.get_attribute("aria-pressed") == "true"
    told = "The loss goes from 2.00 to 2.15: +0.150 (+0.140 to +0.170)."
    assert status.text_content().endswith(told)
    assert page.locator(".lmb-off th").text_content() == "attention"
    page.get_by_label("Parts of").select_option("1")
    assert "in layer 1" in status.text_content()
    assert "+0.400" in page.locator(".lmb-off").text_content()
    head = page.get_by_role("button", name="head 1")
    head.click()  # one at a time: only that was measured
    assert part.get_attribute("aria-pressed") == "false"
    head.click()
    assert "With all its parts" in status.text_content()
    part = page.get_by_role("button", name="path past feed-forward")
    part.press("Enter")
    assert part.get_attribute("aria-pressed") == "true"
    assert "only what feed-forward returns" in status.text_content()
    part.press(" ")
    assert part.get_attribute("aria-pressed") == "false"


def test_bars_are_as_long_as_the_changes(opened):
    bars = opened.page.locator(".lmb-bar rect")
    widths = bars.evaluate_all("bars => bars.map((bar) => +bar.getAttribute('width'))")
    changes = table()[table().layer == 0].change.abs()
    ratios = [w / c for w, c in zip(widths, changes, strict=True)]
    assert max(ratios) == pytest.approx(min(ratios), rel=1e-6)
