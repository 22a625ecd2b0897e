"""The view *sequence* in a browser: counts and gates of any line, as Python has them."""

import numpy as np
import pytest
import torch

import visits
from bare import PHONE, is_fit, make_page, opening
from lmcourse import views
from lmcourse.data import load_texts, train_val_test_split
from lmcourse.ngrams import NgramModel
from lmcourse.recurrent import load_char_lstm
from serving import serve

pytestmark = [pytest.mark.browser, pytest.mark.slow]

LINE = "Shall I compare"
UNIT = 59


@pytest.fixture(scope="module")
def models():
    tokenizer, reader = load_char_lstm()
    training = tokenizer.encode(train_val_test_split(load_texts("sonnets")).training)
    made = {n: NgramModel(training, n, tokenizer.vocab_size) for n in range(1, 7)}
    return tokenizer, made, reader.double()


@pytest.fixture(scope="module")
def page_folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sequence")
    view = views.sequence(LINE, order=5, unit=UNIT)
    make_page(folder / "page", [view], folder / "work")
    return folder / "page"


@pytest.fixture(scope="module", params=["http", "file"])
def address(request, page_folder):
    httpd, address = serve(page_folder)
    address = address if request.param == "http" else page_folder.as_uri()
    yield f"{address}/index.html"
    httpd.shutdown()


@pytest.fixture(scope="module")
def filed(page_folder):
    return f"{page_folder.as_uri()}/index.html"


def rows(page):
    """Return what stands in the table: character, counts, LSTM."""
    cells = page.locator(".lms-bars tr").evaluate_all(
        "all => all.slice(1).map(row => Array.from(row.cells, cell => cell.textContent))"
    )
    return [[name, counted, lstm] for name, _, counted, lstm in cells]


def wanted(models, line, order):
    """Return the same from Python's probabilities."""
    tokenizer, made, reader = models
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


def ask(page, line, order=5):
    """Type a line, choose an order, and wait for the answer."""
    page.get_by_label("Your line").fill(line)
    page.get_by_label("Count runs of").fill(str(order))
    page.wait_for_function(
        "line => document.querySelector('.lms-line').textContent === line",
        arg=line,
        timeout=visits.LOAD,
    )
    visits.settle(page)


def test_nothing_is_loaded_before_somebody_types(browser, filed, models):
    with opening(browser, filed) as visit:
        assert rows(visit.page) == wanted(models, LINE, 5)
        assert not any("/play/lstm/" in asked for asked in visit.inside)
        visit.clean()


def test_any_line_has_pythons_probabilities(browser, address, models):
    with opening(browser, address) as visit:
        for line, order in [
            ("My mistress' eyes are nothing like the ", 6),
            ("zzz", 4),
            ("q", 2),
            ("", 3),
            ("Love", 1),
        ]:
            ask(visit.page, line, order)
            assert rows(visit.page) == wanted(models, line, order), line
        visit.clean()


def test_all_probabilities_and_gates_are_pythons(browser, filed, models):
    """To many digits, asked of the module itself."""
    tokenizer, made, reader = models
    line = "\nFull many a glorious"
    text = train_val_test_split(load_texts("sonnets")).training
    with opening(browser, filed) as visit:
        found = visit.page.evaluate(
            """([text, alphabet, line]) => {
              const counts = lmcourse.need("sequence-view.js").makeCounts(text, alphabet);
              return [1, 2, 3, 4, 5, 6].map((order) => counts(line, order));
            }""",
            [text, list(tokenizer.alphabet), line],
        )
        ask(visit.page, line[1:])
        colours = visit.page.locator(".lms-line span").evaluate_all(
            "all => all.map((one) => Number(one.style.getPropertyValue('--share')))"
        )
    for order, got in enumerate(found, 1):
        want = made[order].next_probs(tokenizer.encode(line))
        np.testing.assert_allclose(got, want, rtol=1e-9)
    with torch.no_grad():
        gates = reader(torch.tensor([tokenizer.encode(line)]))[1][0, 1:, UNIT - 1]
    np.testing.assert_allclose(colours, gates, atol=1e-6)


def test_units_by_keyboard_and_what_is_said(browser, filed):
    with opening(browser, filed) as visit:
        dial = visit.page.get_by_label("Forget gate of")
        dial.focus()
        visit.page.keyboard.press("ArrowRight")
        assert f"unit {UNIT + 1}" in visit.page.locator(".lms-dial").last.inner_text()
        dial.fill("0")
        assert "all 128, their mean" in visit.page.locator(".lms-dial").last.inner_text()
        assert "It keeps most" in visit.page.locator(".lms-told").text_content()


def test_strange_characters_are_left_out_and_told(browser, filed, models):
    with opening(browser, filed) as visit:
        page = visit.page
        page.evaluate("() => { window.harm = () => { window.harmed = true; }; }")
        page.get_by_label("Your line").fill("<img src=x onerror=harm()> Ω7 love")
        page.wait_for_function("document.querySelector('.play-note').textContent")
        assert "Ω" in page.locator(".play-note").text_content()
        assert page.locator("main img").count() == 0
        assert page.evaluate("window.harmed") is None
        ask(page, "love", 3)
        assert page.locator(".play-note").text_content() == ""
        assert rows(page) == wanted(models, "love", 3)


def test_counts_that_do_not_come_are_told_and_asked_for_again(browser, filed, models):
    with opening(browser, filed) as visit:
        page = visit.page
        page.route("**/play/lstm/**", lambda route: route.abort())
        page.get_by_label("Your line").fill("Love")
        page.wait_for_function("document.querySelector('.play-note').textContent")
        assert "part 1 of" in page.locator(".play-note").text_content()
        page.unroute("**/play/lstm/**")
        ask(page, "Love is", 4)
        assert rows(page) == wanted(models, "Love is", 4)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_accessible_and_no_wider_than_a_phone(browser, filed, theme):
    with opening(browser, filed, theme=theme, width=PHONE) as visit:
        is_fit(visit)
        ask(visit.page, "x" * 80)
        is_fit(visit)


def test_the_script_is_short(scripts):
    assert len(scripts["sequence-view.js"].encode()) <= 3600
