"""The view *block* in a browser: parts switched off by mouse and by key."""

import bs4
import pandas as pd
import pytest

from bare import PHONE
from lmcourse import views
from lmcourse.ablation import PARTS

pytestmark = [pytest.mark.browser, pytest.mark.slow]


def table(heads=2):
    rows = [
        (layer, part, 2.0 + change, change, change - 0.01, change + 0.02, f"<b>{part}")
        for layer in (0, 1)
        for i, part in enumerate([*PARTS, *range(heads)])
        for change in [0.25 * i * (layer + 1) - 0.1]
    ]
    columns = ["layer", "part", "loss", "change", "low", "high", "line"]
    return pd.DataFrame(rows, columns=columns)


def make():
    other = table().assign(change=0.01, loss=4.01, line="qqq")
    mixed = table().assign(change=0.5, low=0.1, high=0.9, loss=3.5, line="ttt")
    mixed.loc[mixed.part == "attention", "low"] = -0.1
    mixed.loc[mixed.part == 1, "change"] = 1.8  # more than half of 3.4
    untrained, reordered = (other.assign(low=-0.1), "zzz"), (mixed, "xxx")
    return views.block(table(), 1, "all of it", untrained, reordered), {}


def use(page):
    page.get_by_role("button", name="head 0").click()


def test_the_stored_state_is_every_number():
    page = bs4.BeautifulSoup(views.block(table()).stored, "html.parser")
    rows = [[cell.text for cell in row] for row in page.find_all("tr")[1:]]
    assert rows[0] == ["norm 1", *["−0.100 (−0.110 to −0.080)"] * 2]
    assert rows[7] == ["head 1", "+1.650 (+1.640 to +1.670)", "+3.400 (+3.390 to +3.420)"]
    assert "whole model is 2.00" in page.find("p").text


def test_a_click_and_a_key_tell_of_a_part_and_nothing_of_the_others(opened):
    page = opened.page
    status, body = page.locator(".lmb-status"), page.locator("tbody")
    assert "With all its parts the loss of the model is 2.00." in status.text_content()
    assert "It writes: all of it" in page.locator(".lmb-line").text_content()
    assert "+" not in body.text_content()  # before a guess
    part = page.get_by_role("button", name="attention", exact=True)
    part.click()
    assert part.get_attribute("aria-pressed") == "true"
    assert "The loss goes from 2.00 to 2.40: +0.40." in status.text_content()
    assert "It writes: <b>attention" in page.locator(".lmb-line").text_content()
    assert page.locator(".lmb-off th").text_content() == "attention"
    shown = page.locator(".lmb-off td").all_text_contents()
    assert [cell.strip() for cell in shown] == ["+0.40", "+0.39 to +0.42"]
    head = page.get_by_role("button", name="head 1")
    head.press("Enter")  # one at a time: only that was measured
    assert part.get_attribute("aria-pressed") == "false"
    assert "it is missed most" in status.text_content()
    head.press(" ")
    assert "With all its parts" in status.text_content()
    page.get_by_label("Parts of").select_option("0")
    assert "+" not in body.text_content()
    page.get_by_role("button", name="Show all").click()
    bars = page.locator(".lmb-bar rect")
    widths = bars.evaluate_all("bars => bars.map((bar) => +bar.getAttribute('width'))")
    changes = table()[table().layer == 0].change.abs()
    ratios = [w / c for w, c in zip(widths, changes, strict=True)]
    assert max(ratios) == pytest.approx(min(ratios), rel=1e-6)


def test_on_a_phone_all_changes_and_their_intervals_have_room(opened):
    page = opened.page
    page.set_viewport_size({"width": PHONE, "height": 844})
    page.get_by_role("button", name="Show all").click()
    for cell in page.locator(".lmb-losses td").all():
        box = cell.bounding_box()
        assert box["x"] + box["width"] <= PHONE


def test_random_weights_are_another_model_with_the_same_clicks(opened):
    page = opened.page
    status = page.locator(".lmb-status")
    page.get_by_role("button", name="attention", exact=True).click()
    assert "from 2.00 to 2.40" in status.text_content()
    page.get_by_label("Had it learned nothing?").select_option("random weights")
    assert "from 4.00 to 4.01" in status.text_content()
    assert "It writes: qqq" in page.locator(".lmb-line").text_content()
    page.get_by_role("button", name="attention", exact=True).click()
    assert "It writes: zzz" in page.locator(".lmb-line").text_content()
    page.get_by_label("Had it learned nothing?").select_option("as it is")
    assert "loss of the model is 2.00" in status.text_content()


def test_a_sentence_says_what_became_of_the_loss_and_of_the_parts_that_were_clicked(opened):
    page, sentence = opened.page, opened.page.locator(".play-remains")
    worlds = page.get_by_label("Had it learned nothing?")
    worlds.select_option("random weights")
    assert (
        sentence.text_content() == "With random weights, the loss goes from 2.00 to 4.00."
    )
    for part in ("attention", "head 1", "norm 1"):  # norm 1 is not missed as it is
        page.get_by_role("button", name=part, exact=True).click()
    assert (
        "Of the 2 parts shown below that it misses as it is, none is missed at least half"
        in (sentence.text_content())
    )
    worlds.select_option("shuffled letters")
    assert sentence.text_content() == (
        "With the letters in another order, the loss goes from 2.00 to 3.00. Of the 2 "
        "parts shown below that it misses as it is, one is missed at least half as much "
        "now."
    )
    assert "It writes: ttt" in page.locator(".lmb-line").text_content()
    worlds.select_option("as it is")
    assert sentence.text_content() == ""
