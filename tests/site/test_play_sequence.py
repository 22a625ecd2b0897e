"""The view *sequence* in a browser: counts and a unit of any lines, as Python has them."""

from functools import cache

import numpy as np
import pytest
import torch
import torch.nn.functional as F

import visits
from bare import both_ways
from lmcourse import views
from lmcourse.data import load_texts, train_val_test_split
from lmcourse.ngrams import NgramModel
from lmcourse.recurrent import load_char_lstm, watch
from lmcourse.shuffled import shuffled_weights
from lmcourse.views.sequence import unit_means

pytestmark = [pytest.mark.browser, pytest.mark.slow]

STORE = "lstm"
LINE = "Shall I compare"
UNIT = 58


@cache
def models():
    tokenizer, reader = load_char_lstm()
    training = tokenizer.encode(train_val_test_split(load_texts("sonnets")).training)
    ngrams = {n: NgramModel(training, n, tokenizer.vocab_size) for n in range(1, 7)}
    return tokenizer, ngrams, reader.double()


def make():
    return views.sequence(LINE, order=5, unit=UNIT), {}


def ask(page):
    page.get_by_label("Your line").fill("Love")


def use(page):
    write(page, "x" * 80)


def rows(page):
    """Return what stands in the table: character, counts, LSTM, LSTM with the unit held."""
    cells = page.locator(".lms-bars tr").evaluate_all(
        "all => all.slice(1).map(row => Array.from(row.cells, cell => cell.textContent))"
    )
    return [[name, *shares] for name, _, *shares in cells]


def read(line, random=False):
    """Return logits and forget gates of a line, with the unit free and frozen."""
    tokenizer, _, reader = models()
    reader = shuffled_weights(reader) if random else reader
    held = torch.full((2, 128), torch.nan, dtype=torch.float64)
    held[1, UNIT] = round(float(unit_means(random)[UNIT]), 4)
    return watch(reader, torch.tensor([tokenizer.encode("\n" + line)] * 2), held)


def wanted(line, order):
    """Return the same from Python's probabilities."""
    tokenizer, ngrams, _ = models()
    shares = [ngrams[order].next_probs(tokenizer.encode("\n" + line))]
    shares += [*read(line)[0][:, -1].softmax(-1).numpy()]
    signs = {" ": "␣", "\n": "⏎"}
    best = np.argsort(-np.maximum(*shares[:2]), kind="stable")[:6]
    names = [signs.get(tokenizer.alphabet[i], tokenizer.alphabet[i]) for i in best]
    percentages = [[f"{100 * share[i]:.1f}\u00a0%" for share in shares] for i in best]
    return [[name, *each] for name, each in zip(names, percentages, strict=True)]


def write(page, line, order=5):
    """Type a line, choose an order, and wait for the answer."""
    page.get_by_label("Your line").fill(line)
    page.get_by_label("Length of the n-grams").fill(str(order))
    page.wait_for_function(
        "line => document.querySelector('.play-shades').textContent === line",
        arg=line.replace("\n", "⏎\n"),
        timeout=visits.LOAD,
    )
    visits.settle(page)


@both_ways
def test_any_line_has_pythons_probabilities(opened):
    assert rows(opened.page) == wanted(LINE, 5)  # what is stored
    tries = [("My mistress' eyes are nothing like the ", 6), ("zzz", 4), ("q", 2)]
    for line, order in [*tries, ("", 3), ("Love", 1), ("Love\nis", 2)]:
        write(opened.page, line, order)
        assert rows(opened.page) == wanted(line, order), line


def test_all_probabilities_and_gates_are_pythons(opened):
    """To many digits, asked of the module itself."""
    tokenizer, ngrams, _ = models()
    line = "\nFull many a glorious"
    text = train_val_test_split(load_texts("sonnets")).training
    probs = opened.page.evaluate(
        """([text, alphabet, line]) => {
          const counts = lmcourse.play["sequence-view"].makeCounts(text, alphabet);
          return [1, 2, 3, 4, 5, 6].map((order) => counts(line, order));
        }""",
        [text, list(tokenizer.alphabet), line],
    )
    write(opened.page, line[1:])
    opened.page.get_by_label("how much it keeps").check()
    colours = opened.page.locator(".play-shades span").evaluate_all(
        "all => all.map((one) => Number(one.style.getPropertyValue('--share')))"
    )
    for order, got in enumerate(probs, 1):
        want = ngrams[order].next_probs(tokenizer.encode(line))
        np.testing.assert_allclose(got, want, rtol=1e-9)
    gates = read(line[1:])[2][0, 1:, UNIT]
    np.testing.assert_allclose(colours, gates, atol=1e-6)


def test_a_unit_held_is_pythons(opened):
    line = "Full many a\nglorious"
    write(opened.page, line)
    tokenizer, _, _ = models()
    follows = torch.tensor([tokenizer.encode(line)] * 2)
    losses = F.cross_entropy(read(line)[0][:, :-1].mT, follows, reduction="none")
    one, two = (f"{loss:.2f}" for loss in losses.mean(1))
    three, four = (f"{loss:.2f}" for loss in losses[:, line.index("\n")])
    summary = opened.page.locator(".lms-summary")
    assert summary.text_content() == (
        f"With unit {UNIT} frozen at its mean the loss is {two} nats a character instead "
        f"of {one}; at line ends {four} instead of {three}."
    )
    unit = opened.page.get_by_role("slider", name="Unit")
    unit.focus()
    opened.page.keyboard.press("ArrowRight")
    opened.page.wait_for_function(
        "n => document.querySelector('.lms-summary').textContent.startsWith(n)",
        arg=f"With unit {UNIT + 1} ",
    )
    opened.page.get_by_label("loss added by freezing it").check()


def test_random_weights_are_pythons(opened):
    """The switch puts the shuffled LSTM in the place of the trained one, and back."""
    line = "Full many a\nglorious"
    write(opened.page, line)
    trained = rows(opened.page)
    switch = opened.page.get_by_label("Had it learned nothing?")
    switch.select_option("random weights")
    summary = opened.page.locator(".lms-summary")
    tokenizer, _, _ = models()
    follows = torch.tensor([tokenizer.encode(line)] * 2)
    logits = read(line, random=True)[0]
    losses = F.cross_entropy(logits[:, :-1].mT, follows, reduction="none")
    one, two = (f"{loss:.2f}" for loss in losses.mean(1))
    opened.page.wait_for_function(
        "words => document.querySelector('.lms-summary').textContent.includes(words)",
        arg=f"{two} nats a character instead of {one}",
        timeout=visits.LOAD,
    )
    assert f"unit {UNIT} frozen" in summary.text_content()
    switch.select_option("as it is")
    opened.page.wait_for_function(
        "share => document.querySelector('.lms-bars').textContent.includes(share)",
        arg=trained[0][2],
    )
    assert rows(opened.page) == trained


def test_strange_characters_are_left_out_and_told(opened):
    page = opened.page
    page.get_by_label("Your line").fill("<img src=x onerror=harm()> Ω7 love")
    page.wait_for_function("document.querySelector('.play-note').textContent")
    assert "Ω" in page.locator(".play-note").text_content()
    write(page, "love", 3)
    assert page.locator(".play-note").text_content() == ""
    assert rows(page) == wanted("love", 3)


def test_shuffled_characters_are_read_in_the_order_shown(opened):
    """And the sentence counts what is left, of the LSTM and of the n-gram model."""
    page, line = opened.page, "Full many a glorious morning"
    write(page, line)
    page.get_by_label("Had it learned nothing?").select_option("shuffled characters")
    sentence = page.locator(".play-remains")
    sentence.get_by_text("in another order").wait_for(timeout=visits.LOAD)
    mixed = page.locator(".play-shades").text_content()
    assert mixed != line
    assert mixed[-1] == line[-1]
    assert sorted(mixed) == sorted(line)
    assert rows(page) == wanted(mixed, 5)
    tokenizer, ngrams, _ = models()

    def tops(text):
        lstm = read(text)[0][0, -1].topk(5).indices.tolist()
        counted = ngrams[5].next_probs(tokenizer.encode("\n" + text))
        return set(lstm), set(np.argsort(-counted, kind="stable")[:5].tolist())

    left = [len(a & b) for a, b in zip(tops(line), tops(mixed), strict=True)]
    lstm, counted = ({0: "none is", 1: "one is"}.get(n, f"{n} are") for n in left)
    assert f"{lstm} left; of the n-gram model’s {counted}." in sentence.text_content()
    page.get_by_label("Had it learned nothing?").select_option("as it is")
    page.wait_for_function(
        "line => document.querySelector('.play-shades').textContent === line", arg=line
    )
    assert sentence.text_content() == ""
