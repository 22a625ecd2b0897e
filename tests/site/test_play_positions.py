"""The views *order* and *dials* in a browser: their numbers are attention's."""

import math

import pytest
import torch
from axe_playwright_python.sync_playwright import Axe

import visits
from bare import make_page
from lmcourse import views
from lmcourse.positions import frequencies, rotate, sinusoidal

pytestmark = [pytest.mark.browser, pytest.mark.slow]

WORDS = ["dog", "bites", "<b>man"]
SPAN, MOST, PAIRS = len(WORDS), 4, 3
torch.manual_seed(0)
QUERIES, KEYS = torch.randn(2, SPAN, 2 * PAIRS).double()
PLACES = sinusoidal(SPAN + MOST, 2 * PAIRS).double()
START = torch.tensor([0.3, 1.2, 2.0]).double()


def added(order, start):
    """Return the scores when a wave is added to queries and keys."""
    at = torch.arange(SPAN) + start
    return (QUERIES[order] + PLACES[at]) @ (KEYS[order] + PLACES[at]).T


def turned(order, start):
    """Return the scores when queries and keys are turned by their places."""
    at = torch.arange(SPAN) + start
    return rotate(QUERIES[order], at) @ rotate(KEYS[order], at).T


def order_view():
    offsets = [
        QUERIES @ rotate(KEYS, torch.full((SPAN,), offset)).T
        for offset in range(1 - SPAN, SPAN)
    ]
    sums = {"ww": QUERIES @ KEYS.T, "wp": QUERIES @ PLACES.T}
    sums |= {"pw": PLACES @ KEYS.T, "pp": PLACES @ PLACES.T}
    schemes = [
        {"name": "turned", "told": "By offset.", "offsets": torch.stack(offsets, -1)},
        {"name": "added", "told": "Four terms.", **sums},
    ]
    schemes = [
        {name: x.tolist() if isinstance(x, torch.Tensor) else x for name, x in s.items()}
        for s in schemes
    ]
    data = {"words": WORDS, "most": MOST, "schemes": schemes}
    return views.View("order-view", data, "<p>stored</p>", alt="Scores of three words.")


def hands(angles):
    return torch.stack((angles.cos(), angles.sin()), -1)


def dials_view():
    speeds = frequencies(2 * PAIRS)
    data = {"query": hands(START).tolist(), "key": hands(START + 2 * speeds).tolist()}
    data |= {"speeds": speeds.tolist(), "counts": [1, 3], "far": 20}
    data |= {"place": 5, "behind": 1}
    return views.View("dials-view", data, "<p>stored</p>", alt="Three dials.")


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    folder = tmp_path_factory.mktemp("positions")
    made = make_page(folder / "page", [order_view(), dials_view()], folder / "work")
    return made.as_uri()


@pytest.fixture
def opened(browser, address):
    with visits.visit(browser, address) as visit:
        for module in ("order-view", "dials-view"):
            drawn = f"[data-module={module}][data-state=drawn]"
            visit.page.wait_for_selector(drawn, timeout=visits.LOAD)
        yield visit
        visit.clean()


def shown(page):
    """Return the scores in the table, and which of them are framed."""
    cells = page.locator("[data-module=order-view] tbody td")
    texts = [text.removesuffix(" changed") for text in cells.all_text_contents()]
    framed = ["lmo-other" in cell.get_attribute("class") for cell in cells.all()]
    return [float(text.replace("−", "-")) for text in texts], framed


def check_order(page, order, start, scores):
    """Compare the table with attention, and the frames with the line as it was."""
    found, framed = shown(page)
    wanted = scores(order, start).flatten()
    assert max(abs(a - b) for a, b in zip(found, wanted.tolist(), strict=True)) < 0.051
    usual = scores([*range(SPAN)], 0)[order][:, order].flatten()
    assert framed == ((wanted - usual).abs() > 0.005).tolist()


def test_two_clicks_exchange_two_words(opened):
    page = opened.page
    line = page.locator(".lmo-line button")
    check_order(page, [0, 1, 2], 0, turned)
    line.nth(0).click()
    assert line.nth(0).get_attribute("aria-pressed") == "true"
    line.nth(2).click()
    assert line.all_text_contents() == ["<b>man", "bites", "dog"]
    assert page.locator("[data-module=order-view] b").count() == 0
    check_order(page, [2, 1, 0], 0, turned)
    page.get_by_role("radio", name="added").check()
    check_order(page, [2, 1, 0], 0, added)
    page.get_by_role("button", name="Start again").click()
    check_order(page, [0, 1, 2], 0, added)


def test_words_before_the_line_matter_to_what_is_added_only(opened):
    page = opened.page
    page.get_by_label("words before the line").fill("3")
    check_order(page, [0, 1, 2], 3, turned)
    told = page.locator(".lmo-told")
    assert "none of the 9 scores" in told.text_content()
    page.get_by_role("radio", name="added").check()
    check_order(page, [0, 1, 2], 3, added)
    assert "none" not in told.text_content()


def test_arrow_keys_carry_a_word(opened):
    page = opened.page
    page.locator(".lmo-line button").nth(0).focus()
    for key in ("ArrowRight", "ArrowRight", "ArrowRight"):  # the last one has no effect
        page.keyboard.press(key)
    assert page.locator(".lmo-line button").all_text_contents() == [*WORDS[1:], "dog"]
    check_order(page, [1, 2, 0], 0, turned)
    page.keyboard.press("ArrowLeft")
    check_order(page, [1, 0, 2], 0, turned)


def test_the_dials_show_the_products_of_turned_pairs(opened):
    page = opened.page
    view = page.locator("[data-module=dials-view]")
    speeds = frequencies(2 * PAIRS)
    for query, behind in ((5, 1), (5, 9), (17, 9)):
        view.get_by_label("position of the query").fill(str(query))
        view.get_by_label("the key is before it by").fill(str(behind))
        q = rotate(hands(START).flatten()[None], [query]).view(-1, 2)
        ahead = hands(START + 2 * speeds).flatten()
        k = rotate(ahead[None], [query - behind]).view(-1, 2)
        products = (q * k).sum(-1)
        texts = view.locator(".lmd-dials text").all_text_contents()
        found = [float(text.replace("−", "-")) for text in texts]
        assert found == pytest.approx(products.tolist(), abs=0.0051)
        told = view.get_by_role("status").text_content().replace("−", "-")
        assert told.endswith(f": {products.sum():.2f} of at most 3.")
    view.get_by_role("radio", name="1 pair").check()
    texts = view.locator(".lmd-dials text").all_text_contents()
    assert texts[1:] == ["not counted"] * 2
    one = math.cos((9 - 2) * speeds[0])
    assert f"{one:.2f} of at most 1" in view.get_by_role("status").text_content()


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_accessible_and_no_wider_than_a_phone(browser, address, theme):
    with visits.visit(browser, address, theme=theme, width=390) as visit:
        visit.page.evaluate(f"document.documentElement.dataset.theme = '{theme}'")
        drawn = "[data-module=dials-view][data-state=drawn]"
        visit.page.wait_for_selector(drawn, timeout=visits.LOAD)
        visit.page.get_by_role("radio", name="added").check()
        visit.page.get_by_label("words before the line").fill("3")  # frames, colours
        assert visit.page.evaluate("document.documentElement.scrollWidth") <= 390
        options = {"resultTypes": ["violations"], "preload": False}
        found = Axe().run(visit.page, options=options)
        assert [v["id"] for v in found.response["violations"]] == []
        visit.clean()
