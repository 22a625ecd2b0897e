"""The view *dates* in a browser: it writes what PyTorch writes; characters are hidden.

With random weights it reads nothing.
"""

import base64

import numpy as np
import pytest
import torch

from lmcourse import data, dates, views
from lmcourse.int8 import from_int8

pytestmark = [pytest.mark.browser, pytest.mark.slow]

DAYS = [["15 May 1886", "1886-05-15"], ["May 15, 1886", "1886-05-15"]]
DAYS += [["1886 May 15", "1886-05-15"], ["15 Mai 1886", None]]


WEIGHTS = data.stored("encoder-decoder")["results"]["runs"][0]["weights"]


def make():
    view_data = {"weights": WEIGHTS, "examples": DAYS, "seen": 2, "place": 6, "heads": 4}
    view_data |= {"vocabulary": dates.CHARACTERS}
    return views.View("dates-view", view_data, "<p>stored</p>", alt="Dates."), {}


def use(page):
    page.locator("select").first.select_option("2")
    page.locator(".lmd-read button").nth(2).click()


def reader():
    """Return PyTorch's model with the weights that the view has."""
    weights = {}
    for name, stored in WEIGHTS.items():
        if isinstance(stored, dict):
            values = np.frombuffer(base64.b64decode(stored["int8"]), np.int8).copy()
            scale = torch.tensor(stored["scale"])
            stored = from_int8(torch.from_numpy(values).view(len(scale), -1), scale)
        weights[name] = torch.as_tensor(stored)
    model = dates.new_model(0)
    model.load_state_dict(weights)
    return model


def written(page):
    return "".join(page.locator(".lmd-row").nth(1).locator("button").all_text_contents())


def test_it_writes_and_looks_as_the_chapters_model(opened):
    page, model = opened.page, reader()
    for i, (source, _) in enumerate(DAYS):
        page.locator("select").first.select_option(str(i))
        (answer,) = dates.write(model, [source])
        assert written(page) == answer + "end"
    page.locator("select").first.select_option("0")
    source, target = dates.tensors(DAYS[:1])
    page.get_by_role("button", name="head 3").click()
    _, weights = model.decode(target[:, :-1], *model.encode(source))
    texts = page.locator(".lmd-read small").all_text_contents()
    shares = [float(text.removesuffix("\u00a0%") or 0) for text in texts]
    assert np.allclose(shares, 100 * weights[-1][0, 3, 6].detach(), atol=0.6)


def test_what_is_hidden_is_not_looked_at_and_the_answer_changes(opened):
    page, model = opened.page, reader()
    characters = page.locator(".lmd-read button")
    for i in (3, 4, 5):
        characters.nth(i).focus()
        page.keyboard.press("Enter")
        assert characters.nth(i).get_attribute("aria-pressed") == "true"
        assert page.evaluate("document.activeElement.textContent").endswith("hidden")
    (blind,) = dates.write(dates.without_part(model, 1), ["15 May 1886"])
    assert written(page) == blind + "end" != "1886-05-15end"
    assert page.get_by_role("status").last.text_content() == "✗ The day is 1886-05-15."
    for i in (0, 1, 2, 6, 7, 8, 9, 10):
        characters.nth(i).click()
    assert page.locator('.lmd-read [aria-pressed="true"]').count() == 10  # one must stay
    page.get_by_role("button", name="Hide nothing").click()
    assert written(page) == "1886-05-15end"


def test_a_date_is_typed(opened):
    page, model = opened.page, reader()
    page.get_by_label("A date of your own").fill("10 Dec’ember 1830")
    (answer,) = dates.write(model, ["10 December 1830"])
    assert written(page) == answer + "end"
    assert page.locator(".play-note").text_content().startswith("It knows letters")
    page.get_by_label("A date of your own").fill("")
    assert page.locator(".play-note").text_content() == "Below is the date before."
    assert written(page) == answer + "end"


def test_what_is_hidden_is_not_hidden_elsewhere_when_the_characters_change_places(opened):
    page = opened.page
    page.locator("select").first.select_option("0")
    hidden = page.locator(".lmd-read [aria-pressed=true]")
    page.locator(".lmd-read button").nth(3).click()
    assert hidden.count() == 1
    page.get_by_label("Had it learned nothing?").select_option("random weights")
    assert hidden.count() == 1
    page.get_by_label("Had it learned nothing?").select_option("shuffled characters")
    assert hidden.count() == 0


def test_with_random_weights_no_date_is_read_and_the_switch_goes_back(opened):
    page = opened.page
    worlds = page.get_by_label("Had it learned nothing?")
    for i, (_, day) in enumerate(DAYS[:3]):
        page.locator("select").first.select_option(str(i))
        worlds.select_option("random weights")
        assert written(page) != day + "end"
        texts = page.locator(".lmd-read small").all_text_contents()
        assert sum(float(text.removesuffix("\u00a0%") or 0) for text in texts) > 90
        once = written(page)
        worlds.select_option("as it is")
        worlds.select_option("random weights")
        assert written(page) == once
        worlds.select_option("as it is")
    page.locator("select").first.select_option("0")
    assert written(page) == DAYS[0][1] + "end"


def test_shuffled_characters_are_another_date_and_the_sentence_counts(opened):
    page = opened.page
    page.locator("select").first.select_option("0")
    source, day = DAYS[0]
    page.get_by_label("Had it learned nothing?").select_option("shuffled characters")
    labels = page.locator(".lmd-read button").evaluate_all(
        "all => all.map((each) => each.firstChild.textContent.replace('␣', ' '))"
    )
    assert "".join(labels) != source
    assert sorted(labels) == sorted(source)
    now = written(page).removesuffix("end")
    same = sum(a == b for a, b in zip(now, day, strict=False))
    sentence = page.locator(".play-remains").text_content()
    assert f"of the {len(day)} characters" in sentence
    assert f"date {same or 'none'} stand" in sentence
    page.get_by_label("Had it learned nothing?").select_option("as it is")
    assert written(page) == day + "end"
