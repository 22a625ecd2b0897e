"""The view *neighbours* in a browser: lists of any word, and words that have none."""

from functools import cache

import numpy as np
import pytest

import visits
from bare import both_ways
from lmcourse import views
from lmcourse.models import load_bert
from lmcourse.views.neighbours import neighbours_file

pytestmark = [pytest.mark.browser, pytest.mark.slow]

STORE = "neighbours"
SHORT = 3000  # rows of BERT's table whose neighbours are found here


@cache
def spaces():
    stored = views.spaces(*load_bert(device="cpu"))
    return [each._replace(asked=SHORT) if each.counts is None else each for each in stored]


def make():
    view = views.neighbours("day", spaces())
    return view, {"neighbours": lambda: neighbours_file(spaces())}


def ask(page):
    page.get_by_label("Your word").fill("love")


def use(page):
    write(page, "x" * 30 + "buterfly")


def write(page, word):
    """Type a word and wait until the view has answered."""
    box = page.get_by_label("Your word")
    box.fill(word)
    page.wait_for_function(
        "() => !document.querySelector('.lmn-note').textContent.startsWith('Loading')",
        timeout=visits.LOAD,
    )


def drawn(page):
    """The lists of what has learned; without scripts the untrained ones follow them."""
    columns = page.locator("ol").evaluate_all(
        "all => all.map(one => Array.from(one.children, row => row.textContent))"
    )
    return [[row.replace(" ", "") for row in one] for one in columns[:2]]


def lists(page):
    """Return what stands in each list: words with their cosines."""
    return page.locator(".lmn-lists > div").evaluate_all(
        "all => all.map(one => Array.from(one.querySelectorAll('li'), x => x.textContent))"
    )


def wanted(word, which=0, learned=True):
    """Return the same from all cosines, sorted; which: of all, or without the frequent."""
    columns = []
    for space in (each for each in spaces() if each.learned == learned):
        row = space.words.index(word) if word in space.words else None
        near = []
        if row is not None and row < space.asked:
            shown = space.shown[min(which, len(space.shown) - 1)]
            cosine = space.vectors[shown] @ space.vectors[row]
            order = [i for i in np.argsort(-cosine) if shown[i] != row][:6]
            near = [f"{space.words[shown[i]]}{cosine[i]:.2f}" for i in order]
        columns.append(near)
    return columns


@both_ways
def test_any_word_has_the_neighbours_that_python_finds(opened):
    assert lists(opened.page) == wanted("day")  # what is stored
    for word in ("love", "thee", "bee", "summer's", "##ing"):
        write(opened.page, word)
        assert lists(opened.page) == wanted(word), word
    opened.page.get_by_label("without the sixty most frequent").check()
    assert lists(opened.page) == wanted("##ing", 1)
    write(opened.page, "thee")
    assert lists(opened.page) == wanted("thee", 1) != wanted("thee")
    opened.page.get_by_label("without the sixty most frequent").uncheck()
    write(opened.page, "  Night ")
    assert lists(opened.page) == wanted("night")
    first = [row.rstrip("-.0123456789") for row in lists(opened.page)[0]]
    live = opened.page.locator("[aria-live=polite]")
    visits.heard(live, f"BERT's table: {', '.join(first)}")


def test_the_switch_shows_what_was_not_learned(opened):
    page = opened.page
    worlds = page.get_by_label("Had it learned nothing?")
    sentence = page.locator(".play-remains")
    for which, state in enumerate(("random weights", "shuffled text")):
        worlds.select_option(label=state)
        for word in ("day", "thee"):
            write(page, word)
            before, now = wanted(word)[which], wanted(word, learned=False)[which]
            mixed = [now if i == which else each for i, each in enumerate(wanted(word))]
            assert lists(page) == mixed
            names = [{row.rstrip("-.0123456789") for row in each} for each in (before, now)]
            left = len(names[0] & names[1])
            some = {0: "none is", 1: "one is"}.get(left, f"{left} are")
            if before:
                assert before != now
                assert f"of the 6 nearest words {some} left" in sentence.text_content()
    worlds.select_option(label="as it is")
    assert lists(page) == wanted("thee")


def test_a_neighbour_leads_on(opened):
    page = opened.page
    write(page, "love")
    button = page.locator(".lmn-lists > div").nth(1).get_by_role("button").first
    word = button.text_content()
    button.focus()
    page.keyboard.press("Enter")
    assert page.get_by_label("Your word").input_value() == word
    assert lists(page) == wanted(word)


def test_a_word_that_is_nowhere_gets_a_sentence(opened):
    page = opened.page
    write(page, "buterfly")
    note = page.locator(".lmn-note")
    assert "None of the lists has neighbours for “buterfly”" in note.text_content()
    live = page.locator("[aria-live=polite]")
    visits.heard(live, "Did you mean butterfly")
    assert "?." not in live.text_content()
    note.get_by_role("button", name="butterfly").click()
    assert page.get_by_label("Your word").input_value() == "butterfly"
    assert lists(page)[1]
    write(page, "dooryardless")
    cut = page.locator(".lmn-lists > div").first
    subwords = [b.text_content() for b in cut.get_by_role("button").all()]
    assert subwords == load_bert(device="cpu")[0].tokenize("dooryardless")
    write(page, "")
    assert note.text_content() == "Type a word."
    for word in ("</script><img src=x onerror=harm()>", "🦋שלום\u202e", "x" * 10_000):
        write(page, word)
        assert "None of the lists has neighbours" in note.text_content()
