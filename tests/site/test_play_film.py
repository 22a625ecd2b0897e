"""The view *film* in a browser: at each stop it answers as PyTorch with its weights."""

from functools import cache

import pytest
import torch

import visits
from bare import served
from lmcourse import data, views
from lmcourse.film import load_film
from lmcourse.gpt.inside import lens
from lmcourse.numbers import plural
from lmcourse.views.generator import sample_continuation
from test_engine import near
from test_play_generator import strongest

pytestmark = [pytest.mark.browser, pytest.mark.slow]

STORE = "film"
LINE = "And thou sweet shal"
COUNT = 120
SIGNS = {" ": "·", "\n": "⏎"}


@cache
def film():
    tokenizer, shots, _ = load_film()
    return tokenizer, shots


@cache
def model(stop):
    return film()[1].model(stop)


@cache
def results():
    return data.stored("film")["results"]


@cache
def shown():
    return views.film(LINE, *film(), results())


def make():
    return shown(), {}


def ask(page):
    page.get_by_label("Your line").fill("Love")


def use(page):
    to(page, 3)
    page.get_by_label("Your line").fill("Naïve 🦋 " + "x" * 200)
    page.locator(".lmf-grid button").nth(5).click()
    wrote(page)


def to(page, stop):
    """Move the slider to a stop, and wait until the model has written."""
    page.get_by_label("Steps of training").fill(str(stop))
    wrote(page)


def wrote(page):
    page.wait_for_function(
        f"() => document.querySelector('.lmf-text b').textContent.length === {COUNT}",
        timeout=visits.LOAD,
    )


def written(page):
    return page.locator(".lmf-text b").text_content()


def by_python(text, stop):
    tokenizer, _ = film()
    ids = sample_continuation(model(stop), tokenizer.encode(text), COUNT, 0.8)
    return tokenizer.decode(ids)


def layers(page):
    rows = page.locator(".lmf-lens tr")
    return [rows.nth(i).locator("td").all_text_contents() for i in range(rows.count())]


def by_torch(text, stop):
    """Return the three likeliest characters after each layer, as the table names them."""
    tokenizer, _ = film()
    logits = lens(model(stop), torch.tensor([tokenizer.encode(text)]))[1:, 0, -1]
    rows = []
    for shares in logits.softmax(-1):
        values, ids = shares.sort(descending=True, stable=True)
        names = [SIGNS.get(c, c) for c in tokenizer.decode(ids[:3].tolist())]
        rows.append(
            [f"{n} {100 * v:.0f}\u00a0%" for n, v in zip(names, values, strict=False)]
        )
    return rows


@served
def test_nothing_is_loaded_until_somebody_moves(opened):
    view, page = shown(), opened.page
    assert written(page) == view.data["written"]
    assert layers(page) == by_torch(LINE, view.data["stop"])
    assert "3.9 MB" in page.locator(".lmf-about").text_content()
    page.keyboard.press("Tab")
    assert not any("/play/film/" in asked for asked in opened.inside)
    page.get_by_label("Steps of training").focus()
    page.keyboard.press("ArrowLeft")
    wrote(page)
    assert any("/play/film/" in asked for asked in opened.inside)


def test_each_stop_answers_as_torch_and_writes_as_python(opened):
    page = opened.page
    last = len(film()[1].steps) - 1
    for stop in (0, 4, 9, last):
        to(page, stop)
        assert written(page) == by_python(LINE, stop)
        assert layers(page) == by_torch(LINE, stop)
    page.get_by_label("Your line").fill("O, how much more doth beau")
    wrote(page)
    assert layers(page) == by_torch("O, how much more doth beau", last)


def test_attention_is_torch_s_at_the_stop(opened):
    page, stop = opened.page, 6
    to(page, stop)
    page.get_by_role("button", name="head 3 of layer 2").click()
    spans = page.locator(".play-shades span")
    shares = spans.evaluate_all("all => all.map(s => +s.style.getPropertyValue('--share'))")
    ids = torch.tensor([film()[0].encode(LINE)])
    with torch.no_grad():
        weights = model(stop).attentions(ids)[2][0, 3, -1]
    near(torch.tensor(shares), weights, 1e-4)
    assert page.locator(".lmf-summary").text_content().endswith(strongest(weights))


def test_what_is_recorded_of_a_stop_stands_there(opened):
    page = opened.page
    for stop in (0, 1, 8):
        to(page, stop)
        recorded = results()["stops"][stop]
        rows = page.locator(".lmf-bars tr")
        assert [rows.nth(i).locator("td").last.text_content() for i in range(6)] == [
            f"{100 * share:.0f}\u00a0%" for share in recorded["agrees"]
        ]
        closest = page.locator(".lmf-closest th").text_content()
        assert closest == f"{recorded['closest']}-grams"
        text = page.locator(".lmf-told").text_content()
        assert f"{recorded['held_out']:.2f} nats" in text
        assert ("learned nothing" in text) == (stop == 0)
        label = page.locator(".lmf-curve").get_attribute("aria-label")
        steps = f"{recorded['step']:,} {plural(recorded['step'], 'step')}"
        assert f"After {steps} the loss" in text
        slider = page.get_by_label("Steps of training")
        assert slider.get_attribute("aria-valuetext") == steps
        assert f"after {steps} it is {recorded['held_out']:.2f}" in label


def test_a_named_stop_is_reached_by_its_button(opened):
    page = opened.page
    for named in shown().data["named"]:
        button = page.get_by_role("button", name=named["name"], exact=True)
        button.click()
        wrote(page)
        assert button.get_attribute("aria-pressed") == "true"
        assert named["told"] in page.locator(".lmf-told").text_content()
        value = page.get_by_label("Steps of training").input_value()
        assert value == str(named["stop"])


def test_another_order_says_what_became_of_the_likeliest(opened):
    page = opened.page
    page.get_by_label("Had it learned nothing?").select_option("shuffled characters")
    sentence = page.locator(".play-remains").filter(has_text="likeliest next character is")
    sentence.wait_for(timeout=visits.LOAD)
    read = page.locator(".play-shades").text_content().replace("·", " ")
    assert sorted(read) == sorted(LINE)
    assert read != LINE
    assert read[-1] == LINE[-1]
    stop = shown().data["stop"]
    (here, *_), (usual, *_) = by_torch(read, stop)[-1], by_torch(LINE, stop)[-1]
    assert f"“{here[0]}”" in sentence.text_content()
    assert ("instead of" in sentence.text_content()) == (here[0] != usual[0])


def test_it_plays_to_the_end_and_stops_when_told(opened):
    page = opened.page
    page.emulate_media(reduced_motion="no-preference")
    page.reload()
    page.wait_for_selector("[data-state=drawn]", timeout=visits.LOAD)
    last, slider = len(film()[1].steps) - 1, page.get_by_label("Steps of training")
    to(page, last - 2)
    page.get_by_role("button", name="Play", exact=True).click()
    page.wait_for_function(
        f"() => document.querySelector('.lmf-steps input').value === '{last}'",
        timeout=visits.LOAD,
    )
    visits.stop_once(page, "document.querySelector('.lmf-steps input').value === '0'")
    page.get_by_role("button", name="Play", exact=True).click()
    page.wait_for_function("stopped", timeout=visits.LOAD)
    wrote(page)
    assert slider.input_value() == "0"


def test_who_wants_no_motion_goes_on_by_hand(opened):
    page, stop = opened.page, shown().data["stop"]
    assert page.get_by_role("button", name="Play", exact=True).count() == 0
    page.get_by_role("button", name="Next stop").click()
    wrote(page)
    slider = page.get_by_label("Steps of training")
    assert slider.input_value() == str((stop + 1) % len(film()[1].steps))


def test_other_dice_write_another_text(opened):
    page = opened.page
    to(page, 10)
    before = written(page)
    page.get_by_role("button", name="draw again").click()
    page.wait_for_function(
        "before => { const now = document.querySelector('.lmf-text b').textContent;"
        f" return now.length === {COUNT} && now !== before; }}",
        arg=before,
        timeout=visits.LOAD,
    )
