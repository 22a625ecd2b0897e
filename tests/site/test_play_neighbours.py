"""The view *neighbours* in a browser: lists of any word, and words that have none."""

import numpy as np
import pytest

import visits
from bare import PHONE, is_fit, make_page, opening
from lmbook.play import stores as play
from lmcourse import views
from lmcourse.models import load_bert
from lmcourse.views.neighbours import neighbours_file
from serving import serve

pytestmark = [pytest.mark.browser, pytest.mark.slow]

SHORT = 3000  # rows of BERT's table whose neighbours are found here


@pytest.fixture(scope="module")
def found():
    model, *poets = views.spaces(*load_bert(device="cpu"))
    return [model._replace(asked=SHORT), *poets]


@pytest.fixture(scope="module")
def page_folder(found, tmp_path_factory):
    folder = tmp_path_factory.mktemp("neighbours")
    view = views.neighbours("day", found)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(play.STORES, "neighbours", lambda: neighbours_file(found))
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


@pytest.fixture
def opened(browser, filed):
    with opening(browser, filed) as visit:
        yield visit.page
        visit.clean()


def ask(page, word):
    """Type a word and wait until the view has answered."""
    box = page.get_by_label("Your word")
    box.fill(word)
    page.wait_for_function(
        "() => !document.querySelector('.lmn-said').textContent.startsWith('Loading')",
        timeout=visits.LOAD,
    )


def lists(page):
    """Return what stands in each list: words with their cosines."""
    return page.locator(".lmn-lists > div").evaluate_all(
        "all => all.map(one => Array.from(one.querySelectorAll('li'), x => x.textContent))"
    )


def wanted(found, word):
    """Return the same from all cosines, sorted."""
    made = []
    for space in found:
        row = space.words.index(word) if word in space.words else None
        near = []
        if row is not None and row < space.asked:
            cosine = space.vectors[space.shown] @ space.vectors[row]
            order = [i for i in np.argsort(-cosine) if space.shown[i] != row][:6]
            near = [f"{space.words[space.shown[i]]}{cosine[i]:.2f}" for i in order]
        made.append(near)
    return made


def test_what_is_stored_is_what_the_script_draws(browser, filed, found):
    with visits.visit(browser, filed, javascript=False) as plain:
        stored = plain.page.locator("ol").evaluate_all(
            "all => all.map(one => Array.from(one.children, row => row.textContent))"
        )
    with opening(browser, filed) as visit:
        drawn = lists(visit.page)
        assert [[r.replace(" ", "") for r in one] for one in stored] == drawn
        assert drawn == wanted(found, "day")
        assert not any("play/neighbours/" in asked for asked in visit.inside)
        visit.clean()


def test_any_word_has_the_neighbours_that_python_finds(browser, address, found):
    with opening(browser, address) as visit:
        for word in ("love", "thee", "bee", "summer's", "##ing"):
            ask(visit.page, word)
            assert lists(visit.page) == wanted(found, word), word
        ask(visit.page, "  Night ")
        assert lists(visit.page) == wanted(found, "night")
        visit.clean()


def test_a_neighbour_leads_on(opened, found):
    ask(opened, "love")
    button = opened.locator(".lmn-lists > div").nth(3).get_by_role("button").first
    word = button.text_content()
    button.focus()
    opened.keyboard.press("Enter")
    assert opened.get_by_label("Your word").input_value() == word
    assert lists(opened) == wanted(found, word)


def test_a_word_that_is_nowhere_gets_a_sentence(opened):
    ask(opened, "buterfly")
    said = opened.locator(".lmn-said")
    assert "None of them can say who is near “buterfly”" in said.text_content()
    said.get_by_role("button", name="butterfly").click()
    assert opened.get_by_label("Your word").input_value() == "butterfly"
    assert lists(opened)[2]
    ask(opened, "dooryardless")
    cut = opened.locator(".lmn-lists > div").first
    pieces = [b.text_content() for b in cut.get_by_role("button").all()]
    assert pieces == load_bert(device="cpu")[0].tokenize("dooryardless")
    ask(opened, "")
    assert said.text_content() == "Type a word."


def test_hostile_and_long_words_are_text(opened):
    opened.evaluate("() => { window.harm = () => { window.harmed = true; }; }")
    for word in (
        "</script><img src=x onerror=harm()>",
        "🦋שלום\u202e",
        "x" * 10_000,
        "\ud7ff",
    ):
        ask(opened, word)
        assert "None of them can say" in opened.locator(".lmn-said").text_content()
    assert opened.evaluate("window.harmed") is None
    assert opened.locator("main img").count() == 0


def test_the_lists_are_told_to_who_cannot_see(opened):
    ask(opened, "love")
    live = opened.locator("[aria-live=polite]")
    first = [row.rstrip("-.0123456789") for row in lists(opened)[0]]
    visits.heard(live, f"BERT's table: {', '.join(first)}")


def test_lists_that_do_not_come_are_told_and_asked_for_again(browser, filed, found):
    with opening(browser, filed) as visit:
        page = visit.page
        page.route("**/play/neighbours/**", lambda route: route.abort())
        ask(page, "love")
        said = page.locator(".lmn-said")
        assert "neighbours of other words are not here: part 1 of" in said.text_content()
        page.unroute("**/play/neighbours/**")
        ask(page, "night")
        page.wait_for_function("() => !document.querySelector('.lmn-said').textContent")
        assert lists(page) == wanted(found, "night")


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_accessible_and_no_wider_than_a_phone(browser, filed, theme):
    with opening(browser, filed, theme=theme, width=PHONE) as visit:
        is_fit(visit)
        ask(visit.page, "x" * 30 + "buterfly")
        is_fit(visit)


def test_the_script_is_short(scripts):
    assert len(scripts["neighbours-view.js"].encode()) <= 5000
