"""What every view that runs in the page must do, whatever it shows."""

import importlib
from contextlib import closing

import pytest

import visits
from bare import PHONE, bundled, is_fit, opening

pytestmark = [pytest.mark.browser, pytest.mark.slow]

NAMES = [
    "block",
    "choices",
    "contest",
    "dates",
    "dials",
    "digits",
    "explorer",
    "film",
    "generator",
    "graph",
]
NAMES += [
    "lengths",
    "neighbours",
    "neurons",
    "order",
    "own_poems",
    "own_text",
    "sentences",
    "sequence",
]
NAMES += [
    "shannon",
    "sorting",
    "talker",
    "tokenizer",
    "superposition",
    "toy",
    "training",
    "whole",
    "word_removal",
]
LOADING = ["contest", "digits", "explorer", "film", "generator", "neighbours"]
LOADING += ["own_poems", "sentences", "sequence", "shannon", "tokenizer", "whole"]


@pytest.fixture
def module(name):
    """The tests of one view: what makes it, and what a reader does with it."""
    return importlib.import_module(f"test_play_{name}")


every_view = pytest.mark.parametrize("name", NAMES)


def test_every_view_is_here(browser):
    with closing(visits.new_page(browser)) as page:
        page.add_script_tag(path=bundled() / "play.js")
        mounts = page.evaluate(
            "Object.keys(lmcourse.play).filter((name) => lmcourse.play[name].mount)"
        )
    names = {name.removesuffix("-view").replace("-", "_") for name in mounts}
    assert names == {*NAMES, "surprise"}  # that has tests with the front page


@every_view
def test_accessible_and_no_wider_than_a_phone(browser, address, module):
    with opening(browser, address(module, "http"), width=PHONE) as visit:
        module.use(visit.page)
        is_fit(visit)
        visit.page.evaluate("document.documentElement.dataset.theme = 'dark'")
        visits.settle(visit.page)
        is_fit(visit, "colours")


@every_view
def test_its_state_is_there_without_scripts_and_keys_go_through_it(
    browser, address, module
):
    view, _ = module.make()
    drawn = getattr(module, "drawn", lambda page: None)  # what is stored the same way
    with visits.visit(browser, address(module), javascript=False) as visit:
        root = visit.page.locator(".lmc-view")
        assert root.get_attribute("aria-label").endswith(f": {view.alt}")
        assert root.locator(".lmc-canvas").inner_text().strip()
        stored = drawn(visit.page)
    with opening(browser, address(module)) as visit:
        assert drawn(visit.page) == stored
        press_tab_through(visit.page)


FOCUS_IS_SEEN = """() => {
  const e = document.activeElement;
  return e.closest(".lmc-view")
    && (e.matches("g") || parseFloat(getComputedStyle(e).outlineWidth) > 0);
}"""


def press_tab_through(page):
    """The tab key goes into the view and out of it, and the focus is always seen."""
    rings = []
    while None not in rings:
        page.keyboard.press("Tab")
        rings.append(page.evaluate(FOCUS_IS_SEEN))
    assert set(rings) == {True, None}


@pytest.mark.parametrize("name", LOADING)
def test_what_does_not_come_is_told_and_asked_for_again(browser, address, module):
    with opening(browser, address(module)) as visit:
        page, store = visit.page, f"/play/{module.STORE}/"
        assert not any(store in asked for asked in visit.inside)  # before somebody asks
        page.route(f"**{store}**", lambda route: route.abort())
        module.ask(page)
        page.get_by_text("did not come").first.wait_for()
        page.unroute(f"**{store}**")
        module.use(page)
        page.wait_for_function("() => !document.body.innerText.includes('did not come')")
