"""A first look at the site in Firefox and WebKit: scripts run, choices, search, models.

They run where the two are installed, as in the weekly job (``apt install firefox-esr
webkit2gtk-driver xvfb``); elsewhere each is skipped, with the reason. A browser that
``OTHER_BROWSERS`` names must be there.
"""

import json
import os

import pandas as pd
import pytest

from drivers import BROWSERS, MissingBrowser, serve_listening
from lmcourse import own_poems, preferences, sparse
from test_play_film import by_torch

pytestmark = [pytest.mark.browser, pytest.mark.slow]

WANTED = os.environ.get("OTHER_BROWSERS", "").split()
SEEN = (
    "Array.from(arguments[0].querySelectorAll('section')).filter(e => e.checkVisibility())"
)
STOPPED = """Array.from(arguments[0].querySelectorAll("button")).find(
  (button) => button.textContent.toLowerCase() === "stop").disabled"""


@pytest.fixture(scope="module", params=WANTED or list(BROWSERS))
def driver(request):
    """Another browser than the one of all other tests."""
    try:
        opened = BROWSERS[request.param]()
    except MissingBrowser as error:
        (pytest.fail if WANTED else pytest.skip)(str(error))
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def address(site):
    """The address of the site, whose pages keep what goes wrong in them."""
    with serve_listening(site) as origin:
        yield origin


@pytest.fixture
def read(driver, address):
    """Return a function that opens a page of the site; nothing may go wrong in it."""
    yield lambda name: driver.open(f"{address}/{name}.html")
    assert driver.run("return window.wrong") == []


def view(driver, module):
    """Scroll to a view; return it when it is drawn."""
    root = driver.until(f"document.querySelector('[data-module={module}]')")
    driver.draw("[arguments[0]]", root)
    assert driver.run("return arguments[0].dataset.state", root) == "drawn"
    return root


def draw_all(driver):
    """Unfold a page and draw its views; return the kind and the state of each."""
    unfold = "document.querySelectorAll('details:not(.lmc-table)')"
    driver.run(f"for (const details of {unfold}) details.open = true")
    views = "document.querySelectorAll('.lmc-view')"
    driver.draw(views)
    states = "(view) => [view.dataset.kind, view.dataset.state]"
    return driver.run(f"return Array.from({views}, {states})")


def test_a_letter_of_the_front_page_tells_what_was_expected(driver, read):
    read("index")
    view(driver, "surprise")
    slider = "input[type=range]"
    value_text = f"document.querySelector('{slider}').getAttribute('aria-valuetext')"
    driver.press("Home", slider)
    driver.until(f"{value_text}.startsWith('A, expected with ')")
    driver.press("ArrowRight", slider)
    driver.until(f"!{value_text}.startsWith('A, ')")


@pytest.mark.parametrize("name", ["attention", "play"])
def test_every_view_is_drawn(driver, read, name):
    read(name)
    states = draw_all(driver)
    assert states
    assert [kind for kind, state in states if state != "drawn"] == []


@pytest.mark.parametrize("name", ["attention", "play"])
def test_every_view_is_drawn_from_a_file(driver, site, name):
    driver.open((site / f"{name}.html").as_uri())
    assert [kind for kind, state in draw_all(driver) if state != "drawn"] == []


def test_a_text_of_the_readers_is_learned(driver, read):
    read("play")
    root = view(driver, "own-text")
    line = "so long as men can breathe or eyes can see\n"
    text = line * 30  # enough to learn from; each letter is a key that is pressed
    driver.fill(text, "[data-module=own-text] textarea")
    driver.click("button", "Learn it", root)
    now = "arguments[0].querySelector('.lmr-now').innerText"
    driver.until(f"/after [0-9]/.test({now})", root)
    driver.click("button", "Stop", root)
    driver.until("arguments[0].querySelectorAll('.lmo-sample').length === 2", root)
    driver.click("button", "A is by counting", root)
    driver.until("/is by counting. It sees/.test(arguments[0].innerText)", root)


def test_a_choice_shows_what_was_chosen(driver, read):
    read("scaling")
    choice = driver.find(".lm-choice")
    labels = driver.run("return arguments[0].querySelectorAll('label').length", choice)
    texts = set()
    for number in (1, labels):
        driver.click(f"label:nth-of-type({number})", root=choice)
        driver.until(f"{SEEN}.length === 1", choice)
        texts.add(driver.run(f"return {SEEN}[0].innerText", choice))
    assert len(texts) == 2


def test_work_shows_the_code_that_read_leaves_out(driver, read):
    read("attention")
    code = "Array.from(document.querySelectorAll('.cell_input'))"
    shown = f"{code}.some((cell) => cell.checkVisibility())"
    driver.click(".lm-ways button", "Work")
    driver.until(shown)
    driver.click(".lm-ways button", "Read")
    driver.until(f"!{shown}")


def test_a_slip_is_found(driver, read):
    read("search")
    driver.fill("atention", ".bd-search-container input[name=q]")
    summary = "document.querySelector('.search-summary')?.innerText"
    driver.until(f"{summary}?.includes('Showing results for attention')")
    driver.find("ul.search li a")


def test_a_model_in_the_page_goes_on_with_a_line(driver, read):
    read("play")
    root, line = view(driver, "generator-view"), "Rough winds do shake the d"
    driver.fill(line, "textarea", "Your line", root)
    driver.until(f"arguments[0].querySelector('b')?.innerText.trim() && {STOPPED}", root)


def test_a_whole_model_opens_part_by_part_and_its_tour_is_left(driver, read):
    read("play")
    root = view(driver, "whole-view")
    driver.fill("But thou art thou, and thou shal", "textarea", "Your line", root)
    tokens = "arguments[0].querySelectorAll('[data-key^=\"token \"]').length"
    driver.until(f"{tokens} === 32", root)
    press = """arguments[0].querySelector("[data-key='head 2']")
      .dispatchEvent(new MouseEvent('click', { bubbles: true }))"""
    driver.run(press, root)
    driver.until("arguments[0].innerText.includes(', head 2')", root)
    driver.click("button", "Take the tour", root)
    driver.click("button", "Next", root)
    driver.until("arguments[0].innerText.includes('2 of 10')", root)
    driver.click("button", "Leave", root)
    driver.find("button", "Go on with the tour", root)


def test_a_letter_is_guessed_beside_the_models(driver, read):
    read("play")
    root = view(driver, "shannon-view")
    driver.fill("a", "input[type=text]", "", root)
    driver.until(
        "arguments[0].querySelector('.lmq-said').innerText.startsWith('Yes, a')", root
    )
    driver.until("!arguments[0].querySelector('.lmq-line').innerText.includes('…')", root)
    rows = "return arguments[0].querySelectorAll('.lmq-results tr').length"
    assert driver.run(rows, root) == 4


def cells(driver, root, rows):
    """Return what stands in the cells of a view's rows."""
    take = "Array.from(row.querySelectorAll('td'), (cell) => cell.textContent)"
    every = f"Array.from(arguments[0].querySelectorAll('{rows}'), (row) => {take})"
    return driver.run(f"return {every}", root)


def test_texts_of_the_readers_find_who_is_nearest(driver, read):
    texts = ["waves on the sea", "a bee in the sun", "a ship at sea", "sun on the hill"]
    read("play")
    root = view(driver, "own-poems-view")
    driver.fill("\n\n".join(texts), "textarea", "Your texts", root)
    driver.click("button", "Load the model", root)
    driver.until("arguments[0].innerText.includes('4 texts were read.')", root)
    nearest = own_poems.encode_texts(pd.DataFrame({"text": texts})).nearest(0)
    first, *_, last, _ = cells(driver, root, ".lmy-rows tr")  # by words counted at the end
    assert [first, last] == [nearest.iloc[0].tolist(), nearest.iloc[-1].tolist()]


def test_a_film_goes_back_to_random_weights(driver, read):
    read("play")
    root = view(driver, "film-view")
    driver.press("Home", "input[type=range]", "", root)
    driver.until("arguments[0].innerText.includes('its weights are random')", root)
    written = "arguments[0].querySelector('.lmf-text b').textContent.length"
    driver.until(f"{written} === 120", root)
    line = driver.run("return arguments[0].querySelector('textarea').value", root)
    assert cells(driver, root, ".lmf-lens tr") == by_torch(line, 0)


def test_choices_have_a_reward_and_a_model_learns_them(driver, read):
    read("preferences")
    root = view(driver, "choices-view")
    driver.click("button", "more echoes", root)
    data = driver.run("return arguments[0].querySelector('.lmc-data').textContent", root)
    pairs = json.loads(data)["pairs"]
    echoes = [[preferences.properties(line)["echoes"] for line in pair] for pair in pairs]
    apart = preferences.differences(*zip(*pairs, strict=True))
    weights = preferences.fit_reward(apart, [a > b for a, b in echoes])
    shown = [
        row[0].replace("−", "-") for row in cells(driver, root, ".lmv-fitted tbody tr")
    ]
    assert [float(text) for text in shown] == pytest.approx(weights.tolist(), abs=0.006)
    driver.click("button", "Let the model learn it", root)
    driver.until("/Step [1-9]/.test(arguments[0].innerText)", root)
    driver.click("button", "Stop", root)
    driver.until("arguments[0].innerText.includes('It learned for ')", root)
    assert len(cells(driver, root, ".lmv-result tbody tr")) == len(preferences.PROPERTIES)


def test_arrows_are_learned_anew_where_features_are_always_there(driver, read):
    read("features")
    root = view(driver, "superposition-view")
    driver.press("Home", "input[type=range]", "", root)
    weights, _, loss = sparse.train_toy(0.0)
    lengths = weights.norm(dim=0)
    sentence = f"Arrows longer than 0.8: {(lengths > 0.8).sum()} of 5. Loss {loss:.4f}."
    heard = "arguments[0].querySelector('[aria-live=polite]').textContent"  # at the end
    driver.until(f"{heard}.includes(arguments[1])", root, sentence)
    shown = [float(row[0]) for row in cells(driver, root, ".lmc-canvas tbody tr")]
    assert shown == pytest.approx(lengths.tolist(), abs=0.006)


def test_the_model_that_talks_answers_stops_and_is_forgotten(driver, read):
    read("play")
    root = view(driver, "talker-view")
    driver.click("button", "Load the model", root)
    driver.until("arguments[0].innerText.includes('The model is here')", root)
    driver.click("button", "Begin anew", root)
    driver.fill("What is the capital of France?", "textarea", "Your line", root)
    driver.click("button", "Ask", root)
    log = "arguments[0].querySelector('.lmk-log').innerText"
    driver.until(f"{log}.includes('Paris') && {STOPPED}", root)
    driver.fill("Tell me a long story.", "textarea", "Your line", root)
    driver.click("button", "Ask", root)
    driver.until(f"!{STOPPED}", root)
    driver.click("button", "Stop", root)
    driver.until(STOPPED, root)
    driver.click("button", "Forget the model", root)
    driver.find("button", "Load the model", root)


NARROW = """const frame = document.createElement("iframe");
frame.id = "narrow";
frame.style = "position: fixed; inset: 0; width: 390px; height: 850px; z-index: 9999";
document.body.append(frame);
frame.onload = () => { frame.dataset.loaded = "yes"; };
frame.src = location.href;"""
INSIDE = "document.querySelector('#narrow').contentDocument"
SEEN_VIEWS = f"""Array.from({INSIDE}.querySelectorAll(".lmc-view")).filter(
  (view) => view.checkVisibility())"""


@pytest.mark.parametrize("name", ["index", "attention", "play"])
def test_on_a_phone_a_page_is_no_wider_than_the_screen(driver, read, name):
    read(name)
    driver.run(NARROW)
    driver.until("document.querySelector('#narrow').dataset.loaded")
    driver.draw(SEEN_VIEWS)
    assert driver.run(f"return {INSIDE}.documentElement.scrollWidth") <= 390


# A page as every other, but for its view: what stands above it goes when it is come to.
MOVING = """<!doctype html><meta charset="utf-8"><title>A view that moves</title>
<p id="above" style="height: 9000px">above</p>
<p class="lmc-view" data-module="moving" data-state="waiting">view</p>
<p style="height: 9000px">below</p>
<script>
const view = document.querySelector(".lmc-view");
// A page hears that it was scrolled before its observers look.
addEventListener("scroll", () => document.querySelector("#above").remove(), { once: true });
new IntersectionObserver(([{ isIntersecting }]) => {
  if (isIntersecting) view.dataset.state = "drawn";
}).observe(view);
</script>"""


def test_a_view_that_moves_when_it_is_come_to_is_drawn(driver, tmp_path):
    page = tmp_path / "moving.html"
    page.write_text(MOVING, encoding="utf-8")
    driver.open(page.as_uri())
    view(driver, "moving")
