"""What is not in every browser has a fallback; what did not come is asked for again."""

from contextlib import closing

import pytest

import test_play_tokenizer
import visits
from bare import make_page
from lmcourse import views
from serving import serve

pytestmark = [pytest.mark.browser, pytest.mark.slow]

# As in Safari 16 and Firefox 115.
OLDER = """
delete String.prototype.toWellFormed;
delete Intl.Segmenter;
delete Uint8Array.fromBase64;
for (const name of Object.keys(Object.getOwnPropertyDescriptors(Element.prototype)))
  if (/^aria[A-Z]|^role$/.test(name)) delete Element.prototype[name];
"""
VISIBLE = "all => all.map((element) => element.checkVisibility())"
DRAWN = "[data-state=drawn]"


@pytest.fixture
def page(browser):
    """A page that fails the test if a script of it throws."""
    errors = []
    with closing(visits.new_page(browser)) as page:
        page.on("pageerror", lambda error: errors.append(str(error)))
        yield page
    assert errors == []


def test_a_line_is_cut_and_turned_in_an_older_browser(page, tmp_path):
    view, own = test_play_tokenizer.make()
    page.add_init_script(OLDER)
    page.goto(make_page(tmp_path, [view], own).as_uri())
    page.wait_for_selector(DRAWN)
    line = page.get_by_label("Your line")
    line.fill("abc")
    page.get_by_role("button", name="turn it round").click()
    assert line.input_value() == "cba"
    page.get_by_text("loading its vocabulary").first.wait_for(state="detached")


def test_without_has_all_panels_of_a_choice_show(page, tmp_path):
    view = views.samples("Who?", {"A": ("one", "text a"), "B": ("two", "text b")})
    file = make_page(tmp_path, [view])
    panels = page.locator(".lm-choice section")
    page.goto(file.as_uri())
    assert panels.evaluate_all(VISIBLE) == [True, False]
    file.write_text(file.read_text("utf-8").replace(":has(", ":-unknown("), "utf-8")
    page.goto(file.as_uri())
    assert panels.evaluate_all(VISIBLE) == [True, True]


def test_a_script_that_did_not_come_is_asked_for_again(page, tmp_path):
    toy = views.attention_toy(["a", "b"], [[1, 1], [0, 1]], [1, 1])
    make_page(tmp_path, [toy])
    page.route("**/play.js*", lambda route: route.abort(), times=1)
    with serve(tmp_path) as origin:
        page.goto(f"{origin}/index.html")
        page.wait_for_selector("[data-state=failed]")
        page.get_by_role("button", name="Try again").click()
        page.wait_for_selector(DRAWN)
    assert page.get_by_role("button", name="Try again").count() == 0
