"""The view *sequence* in a browser: counts and gates of any line, as Python has them."""

from functools import cache

import numpy as np
import pytest
import torch

import visits
from bare import both_ways
from lmcourse import views
from lmcourse.data import load_texts, train_val_test_split
from lmcourse.ngrams import NgramModel
from lmcourse.recurrent import load_char_lstm

pytestmark = [pytest.mark.browser, pytest.mark.slow]

STORE = "lstm"
LINE = "Shall I compare"
UNIT = 59


@cache
def models():
    tokenizer, reader = load_char_lstm()
    training = tokenizer.encode(train_val_test_split(load_texts("sonnets")).training)
    made = {n: NgramModel(training, n, tokenizer.vocab_size) for n in range(1, 7)}
    return tokenizer, made, reader.double()


def make():
    return views.sequence(LINE, order=5, unit=UNIT), {}


def ask(page):
    page.get_by_label("Your line").fill("Love")


def use(page):
    write(page, "x" * 80)


def rows(page):
    """Return what stands in the table: character, counts, LSTM."""
    cells = page.locator(".lms-bars tr").evaluate_all(
        "all => all.slice(1).map(row => Array.from(row.cells, cell => cell.textContent))"
    )
    return [[name, counted, lstm] for name, _, counted, lstm in cells]


def wanted(line, order):
    """Return the same from Python's probabilities."""
    tokenizer, made, reader = models()
    ids = tokenizer.encode("\n" + line)
    counted = made[order].next_probs(ids)
    with torch.no_grad():
        lstm = reader(torch.tensor([ids]))[0][0, -1].softmax(-1)
    signs = {" ": "␣", "\n": "⏎"}
    best = np.argsort(-counted, kind="stable")[:8]
    names = [signs.get(tokenizer.alphabet[i], tokenizer.alphabet[i]) for i in best]
    shares = [f"{100 * counted[i]:.1f} %" for i in best]
    theirs = [f"{100 * float(lstm[i]):.1f} %" for i in best]
    return [list(row) for row in zip(names, shares, theirs, strict=True)]


def write(page, line, order=5):
    """Type a line, choose an order, and wait for the answer."""
    page.get_by_label("Your line").fill(line)
    page.get_by_label("Count runs of").fill(str(order))
    page.wait_for_function(
        "line => document.querySelector('.play-shades').textContent === line",
        arg=line,
        timeout=visits.LOAD,
    )
    visits.settle(page)


@both_ways
def test_any_line_has_pythons_probabilities(opened):
    assert rows(opened.page) == wanted(LINE, 5)  # what is stored
    tries = [("My mistress' eyes are nothing like the ", 6), ("zzz", 4), ("q", 2)]
    for line, order in [*tries, ("", 3), ("Love", 1)]:
        write(opened.page, line, order)
        assert rows(opened.page) == wanted(line, order), line


def test_all_probabilities_and_gates_are_pythons(opened):
    """To many digits, asked of the module itself."""
    tokenizer, made, reader = models()
    line = "\nFull many a glorious"
    text = train_val_test_split(load_texts("sonnets")).training
    found = opened.page.evaluate(
        """([text, alphabet, line]) => {
          const counts = lmcourse.need("sequence-view.js").makeCounts(text, alphabet);
          return [1, 2, 3, 4, 5, 6].map((order) => counts(line, order));
        }""",
        [text, list(tokenizer.alphabet), line],
    )
    write(opened.page, line[1:])
    colours = opened.page.locator(".play-shades span").evaluate_all(
        "all => all.map((one) => Number(one.style.getPropertyValue('--share')))"
    )
    for order, got in enumerate(found, 1):
        want = made[order].next_probs(tokenizer.encode(line))
        np.testing.assert_allclose(got, want, rtol=1e-9)
    with torch.no_grad():
        gates = reader(torch.tensor([tokenizer.encode(line)]))[1][0, 1:, UNIT - 1]
    np.testing.assert_allclose(colours, gates, atol=1e-6)


def test_units_by_keyboard_and_what_is_said(opened):
    unit = opened.page.get_by_label("Forget gate of")
    unit.focus()
    opened.page.keyboard.press("ArrowRight")
    label = opened.page.locator(".play-slider").last
    assert f"unit {UNIT + 1}" in label.inner_text()
    unit.fill("0")
    assert "all 128, their mean" in label.inner_text()
    assert "It keeps most" in opened.page.locator(".lms-summary").text_content()


def test_strange_characters_are_left_out_and_told(opened):
    page = opened.page
    page.get_by_label("Your line").fill("<img src=x onerror=harm()> Ω7 love")
    page.wait_for_function("document.querySelector('.play-note').textContent")
    assert "Ω" in page.locator(".play-note").text_content()
    write(page, "love", 3)
    assert page.locator(".play-note").text_content() == ""
    assert rows(page) == wanted("love", 3)
