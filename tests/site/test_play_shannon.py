"""Shannon's game in a browser: the reader's guesses, the models', and bits a letter."""

import math
from functools import cache

import numpy as np
import pytest
import torch

import visits
from bare import both_ways, served
from lmcourse import guessing, views
from lmcourse.gpt.checkpoints import load_gpt
from lmcourse.llama import load_talker
from lmcourse.views.shannon import _counting

pytestmark = [pytest.mark.browser, pytest.mark.slow]

STORE = "sonnets-training"


@cache
def gpt():
    return load_gpt(device="cpu")[:2]


def make():
    return views.shannon(*gpt()), {}


def lines():
    return guessing.held_out_lines()[1:]


def letters(line):
    return [x for x in map(guessing.letter_of, line.text) if x is not None]


@cache
def reference(number):
    """Return what n-grams and the GPT do with a line of the game, in Python."""
    line = lines()[number]
    alphabet, counted = _counting()
    tokenizer, model = gpt()
    model = model.half().float().eval()
    next_probs = guessing.gpt_probs(model)
    return (
        guessing.guess_line(counted.next_probs, alphabet, line.before, line.text),
        guessing.guess_line(next_probs, tokenizer.alphabet, line.before, line.text),
    )


def ask(page):
    page.get_by_label("Your guess").focus()


def settle(page):
    """Wait until the models have read what is shown."""
    page.wait_for_function(
        "() => !document.querySelector('.lmq-line').textContent.includes('…')",
        timeout=visits.LOAD,
    )


def use(page):
    page.get_by_label("Your guess").press_sequentially("a WzÜ?")
    page.locator("[data-letter=o]").click()
    settle(page)


def message(page):
    return page.locator(".lmq-said").text_content()


def columns(page):
    """Return what stands below each letter that is known: [letter, you, count, GPT]."""
    return page.locator(".lmq-letter:not(.lmq-names, .lmq-asked)").evaluate_all(
        "all => all.map((one) => Array.from(one.children, (part) => part.textContent))"
    )


def results(page):
    rows = page.locator(".lmq-results tbody tr").evaluate_all(
        "all => all.map((row) => Array.from(row.cells, (cell) => cell.textContent))"
    )
    return {name: cells for name, *cells in rows}


def play(page, wanted, wrong=()):
    """Guess letters right; before those at some places first some that are wrong."""
    for at, letter in enumerate(wanted):
        others = [x for x in guessing.LETTERS if x != letter][: dict(wrong).get(at, 0)]
        page.get_by_label("Your guess").press_sequentially("".join([*others, letter]))


def row(guesses, bits=None):
    known = guessing.bits_of(guesses)
    return [
        str(len(guesses)),
        str(list(guesses).count(1)),
        "too few letters"
        if known.lower > known.upper
        else f"{known.lower:.1f} to {known.upper:.1f}",
        "",
        f"{known.low:.1f} to {known.high:.1f}",
        "" if bits is None else f"{np.mean(bits):.1f}",
    ]


@both_ways
def test_a_line_is_guessed_beside_counting_and_the_gpt(opened):
    page, line = opened.page, letters(lines()[0])
    play(page, line, {0: 3, 5: 1, 9: 26})
    settle(page)
    own = [1] * len(line)
    own[0], own[5], own[9] = 4, 2, 27
    counted, read = reference(0)
    marks = [x for x in columns(page) if x[1] == "\u00a0"]  # given, and guessed by nobody
    assert "".join(x[0] for x in marks) == "',"
    guessed = [x for x in columns(page) if x not in marks]
    assert [x[0].lower().replace("␣", " ") for x in guessed] == line
    assert [int(x[1]) for x in guessed] == own
    assert [int(x[2]) for x in guessed] == counted.guesses
    assert [int(x[3]) for x in guessed] == read.guesses
    assert results(page) == {
        "you": row(own),
        "counting (5-grams)": row(*counted),
        "the GPT": row(*read),
    }
    assert "That was the last letter." in message(page)
    assert page.get_by_label("Your guess").is_disabled()


def test_only_what_the_reader_guessed_is_compared_and_shown(opened):
    page, line = opened.page, letters(lines()[0])
    play(page, line[:7])
    settle(page)
    counted, read = reference(0)
    assert results(page)["the GPT"] == row(read.guesses[:7], read.bits[:7])
    text = opened.page.locator("body").inner_text()
    assert lines()[0].text not in text
    assert "".join(x[0] for x in columns(page)) == "A␣woman'"
    page.get_by_role("button", name="Show the rest").click()
    settle(page)
    assert "".join(x[0] for x in columns(page)).replace("␣", " ") == lines()[0].text
    assert results(page)["you"] == row([1] * 7)
    assert results(page)["counting (5-grams)"] == row(counted.guesses[:7], counted.bits[:7])
    page.get_by_role("button", name="Begin this line anew").click()
    assert columns(page) == []
    assert results(page) == {}


def test_bounds_that_have_not_found_their_order_are_not_shown(opened):
    page, line = opened.page, letters(lines()[0])
    play(page, line[:1], {0: 2})
    settle(page)
    known = guessing.bits_of([3])
    assert known.lower > known.upper
    assert results(page)["you"][2] == "too few letters"
    assert not page.locator(".lmq-results tbody tr").first.locator(".lmq-range").count()


def test_lines_add_up(opened):
    page = opened.page
    play(page, letters(lines()[0])[:5])
    page.get_by_role("button", name="Another line").click()
    assert columns(page) == []
    play(page, letters(lines()[1])[:6], {2: 2})
    settle(page)
    page.wait_for_function(
        "document.querySelectorAll('.lmq-results tbody tr').length === 3"
    )
    assert results(page)["you"] == row([1] * 5 + [1, 1, 3, 1, 1, 1])
    guesses = [*reference(0)[1].guesses[:5], *reference(1)[1].guesses[:6]]
    bits = [*reference(0)[1].bits[:5], *reference(1)[1].bits[:6]]
    assert results(page)["the GPT"] == row(guesses, bits)


def test_wrong_again_and_strange_guesses_get_a_word(opened):
    page = opened.page
    right = letters(lines()[0])[0]
    wrong = "b" if right != "b" else "c"
    field = page.get_by_label("Your guess")
    field.press_sequentially(wrong)
    assert message(page) == f"Not {wrong}."
    key = page.locator(f"[data-letter={wrong}]")
    assert key.get_attribute("aria-disabled") == "true"
    field.press_sequentially(wrong.upper())
    assert message(page) == f"You have tried {wrong} already."
    field.press_sequentially("é")
    assert "none of the 27" in message(page)
    field.press_sequentially(" ")
    assert message(page) == "Not the space."
    field.press_sequentially(right)
    assert message(page).startswith(f"Yes, {right}: 3 guesses.")


def test_keys_and_buttons_guess_too_and_a_space_presses_nothing(opened):
    page, (one, two, *_) = opened.page, letters(lines()[0])
    assert (one, two) == ("a", " ")
    page.locator("[data-letter=b]").click()
    page.locator("[data-letter=c]").click()
    page.keyboard.press("a")
    assert message(page).startswith("Yes, a: 3 guesses.")
    page.locator("[data-letter=d]").focus()
    page.keyboard.press(" ")
    assert message(page).startswith("Yes, the space: at once.")
    assert [x[1] for x in columns(page)] == ["3", "1"]


def test_bounds_are_pythons_to_many_digits(opened):
    rng = np.random.default_rng(0)
    tries = [rng.geometric(0.4, size).clip(1, 27).tolist() for size in (1, 2, 5, 40, 900)]
    tries += [[1] * 12, [27, 1], list(range(1, 28))]
    for guesses in tries:
        got = opened.page.evaluate("all => lmcourse.play.guessing.bitsOf(all)", guesses)
        want = vars(guessing.bits_of(guesses))
        assert got == pytest.approx(want, abs=1e-9), guesses


def test_random_weights_and_shuffled_letters_say_what_is_left(opened):
    page = opened.page
    ask(page)
    switch = page.get_by_label("Had it learned nothing?")
    sentence = page.locator(".play-remains")
    total = len(letters(lines()[0]))
    switch.select_option("random weights")
    sentence.get_by_text("the GPT guesses").wait_for(timeout=visits.LOAD)
    usual = reference(0)[1].guesses.count(1)
    spaces = letters(lines()[0]).count(" ")
    assert f"of this line’s {total} letters, at once the GPT" in sentence.text_content()
    assert f"always guesses the space is right {spaces} times" in sentence.text_content()
    now, before = sentence.text_content().split("the GPT guesses ")[1].split(" instead of ")
    assert int(before.split(".")[0]) == usual > int(now)
    switch.select_option("shuffled letters")
    sentence.get_by_text(", the GPT guesses").wait_for(timeout=visits.LOAD)
    page.get_by_role("button", name="Show the rest").click()
    settle(page)
    mixed = "".join(x[0] for x in columns(page)).replace("␣", " ")
    above = page.locator(".lmq-before").text_content() + "\n"
    assert mixed != lines()[0].text
    assert sorted(mixed) == sorted(lines()[0].text)
    alphabet, counted = _counting()
    want = guessing.guess_line(counted.next_probs, alphabet, above, mixed)
    assert results(page)["counting (5-grams)"] == row(*want)
    switch.select_option("as it is")
    assert columns(page) == []  # the game in order was not touched
    assert sentence.text_content() == ""


def test_nothing_is_kept(opened):
    before = opened.page.evaluate("JSON.stringify(localStorage)")
    play(opened.page, letters(lines()[0])[:3])
    settle(opened.page)
    assert opened.page.evaluate("JSON.stringify(localStorage)") == before
    opened.page.reload()
    opened.page.wait_for_selector("[data-state=drawn]", timeout=visits.LOAD)
    assert columns(opened.page) == []


@served
def test_a_link_with_nonsense_leaves_the_game_as_it_is(opened):
    page = opened.page
    for nonsense in (
        "99:11-",
        "0:zz-",
        "0:11111111",
        "1:1" + "1" * 200 + "-",
        "<b>",
        "0:0-a",
    ):
        page.evaluate("text => { location.hash = text }", f"view-0&guesses={nonsense}")
        page.wait_for_timeout(100)
        page.evaluate("location.reload()")
        page.wait_for_selector("[data-state=drawn]", timeout=visits.LOAD)
        assert columns(page) == []


@cache
def exact(text):
    """Return the talker's probabilities of the 27 letters after a text, by every way to cut
    the open word into tokens."""
    tokenizer, model = load_talker(device="cpu")
    start = max(text.rfind(" "), text.rfind("\n") + 1)
    rest = text[start:]
    ways = [(tokenizer.encode(text[:start]), "", 1.0)]
    texts = [tokenizer.decode([i]) for i in range(model.tokens.weight.shape[0])]
    probs = np.zeros(27)
    while ways:
        ids, so_far, path = ways.pop()
        with torch.no_grad():
            following = model(torch.tensor([ids]))[0, -1].double().softmax(-1)
        left = rest[len(so_far) :]
        for i, token in enumerate(texts):
            if not token:
                continue
            if len(token) > len(left) and token.startswith(left):
                letter = guessing.letter_of(token[len(left)])
                if letter is not None:
                    at = guessing.LETTERS.index(letter)
                    probs[at] += path * following[i].item()
            elif left.startswith(token) and path * following[i] > 1e-5:
                ways.append(([*ids, i], so_far + token, path * following[i].item()))
    return probs / probs.sum()


@served
def test_the_model_that_talks_joins_after_a_click(opened):
    page, line = opened.page, lines()[0]
    assert not any("play/talker/" in asked for asked in opened.inside)
    wanted = letters(line)
    play(page, wanted[:10])
    page.get_by_role("button", name="Let the model that talks guess").click()
    page.get_by_text("The model is here").wait_for(timeout=visits.LOAD)
    settle(page)
    cells = results(page)["the model that talks"]
    probs = [exact(line.before + line.text[:at]) for at in (0, 1, 2, 4)]
    shown = [x for x in columns(page) if x[1] != "\u00a0"]
    for at, each in zip((0, 1, 2, 4), probs, strict=True):
        letter = guessing.letter_of(line.text[at])
        mine = guessing.guesses_for(each, letter)
        number = sum(guessing.letter_of(c) is not None for c in line.text[:at])
        assert abs(int(shown[number][4]) - mine) <= (mine > 3), (at, mine)
    assert cells[0] == "10"
    assert 0 < float(cells[-1]) < math.log2(27)
