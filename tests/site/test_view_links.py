"""A link brings every view back as it was left, and no nonsense in it does any harm."""

import difflib
import importlib
import re

import pytest

import visits
from bare import opening
from test_play_views import NAMES

pytestmark = [pytest.mark.browser, pytest.mark.slow]

TEXTS = {"dates": "May 9 1886", "contest": "They let her dance & sing."}
TEXT = "Rough winds do shake & + 100% “the” dárling\nbuds of May"
# Beside the controls that all browsers have: what a reader presses.
PRESSED = {
    "block": ["[data-part=attention]", "[data-part=norm_2]"],
    "contest": [".lmw-words button >> nth=2"],
    "dates": [".lmd-read button >> nth=2", ".lmd-row button >> nth=-2"],
    "digits": [".lmd-patch >> nth=3"],
    "explorer": ["[role=radio] >> nth=1", ".lmx-rows tbody button >> nth=3"],
    "generator": [".lmg-grid button >> nth=2", "text=other dice"],
    "graph": ["text=One step", "text=One step"],
    "neurons": ["text=B is the neuron"],
    "order": [".lmo-line button >> nth=0", ".lmo-line button >> nth=2"],
    "sentences": [".lmc-square >> nth=1", ".lmc-word >> nth=3"],
    "sorting": [".play-controls button >> nth=1", ".play-controls button >> nth=0"],
    "talker": ["role=tab >> nth=1", ".lmk-tokens button >> nth=5"],
    "tokenizer": [],
    "toy": [],
    "word_removal": [".play-poem [role=button] >> nth=2"],
}
LOADED = {"contest", "explorer", "sentences", "talker"}  # after a click
CHANGE = """() => {
  const tell = (control, ...kinds) => kinds.forEach((kind) =>
    control.dispatchEvent(new Event(kind, { bubbles: true })));
  const all = (controls) => document.querySelectorAll(`.lmc-canvas ${controls}`);
  for (const select of all("select")) {
    select.selectedIndex = select.options.length - 1;
    tell(select, "input", "change");
  }
  for (const range of all("[type=range]")) {
    range.value = (Number(range.min) + 2 * Number(range.max || 100)) / 3;
    tell(range, "input", "change");
  }
  for (const box of all("[type=checkbox]")) box.click();
  for (const group of all("fieldset"))
    Array.from(group.querySelectorAll("input")).at(-1).click();
}"""
SHOWN = """() => {
  const canvas = document.querySelector(".lmc-canvas");
  const controls = Array.from(canvas.querySelectorAll("select, input, textarea"),
    (each) => each.type === "radio" || each.type === "checkbox" ? each.checked : each.value);
  const pressed = Array.from(canvas.querySelectorAll("[aria-pressed], [aria-checked]"),
    (each) => each.ariaPressed ?? each.ariaChecked);
  const notes = canvas.querySelectorAll(".play-note, progress, progress ~ *");
  for (const note of notes) note.style.display = "none"; // of how it went, not of what is shown
  const text = canvas.innerText;
  for (const note of notes) note.style.display = "";
  return [text, ...controls, ...pressed];
}"""
SAME = f"""wanted => {{
  window.now = ({SHOWN})();
  return JSON.stringify(window.now) === JSON.stringify(wanted);
}}"""


def link(page):
    """Press *Copy link*; return what was copied."""
    page.evaluate(
        """() => {
          window.copied = [];
          const clipboard = { writeText: async (text) => { copied.push(text); } };
          Object.defineProperty(navigator, "clipboard", { value: clipboard, writable: true });
        }"""
    )
    page.get_by_role("button", name="Copy link").click()
    page.get_by_text("Copied.").wait_for()
    return page.evaluate("copied[0]")


def change(page, name, module):
    """Change what can be changed."""
    if name in LOADED:
        module.use(page)
    if name == "talker":
        module.say(page, "Name a colour.")
    for area in page.locator(".lmc-canvas textarea:visible").all():
        area.fill(TEXTS.get(name, "Name a colour." if name == "talker" else TEXT))
    if name == "neighbours":
        module.write(page, "love")
    page.wait_for_timeout(400)
    page.evaluate(CHANGE)
    page.wait_for_timeout(400)
    for pressed in PRESSED.get(name, []):
        page.locator(".lmc-canvas").locator(pressed).click()
    if name == "toy":
        page.locator("[role=slider][aria-label=query]").press("ArrowUp")


def settle(page):
    """Wait until nothing changes any more."""
    before = None
    while before != (before := page.evaluate(SHOWN)):
        page.wait_for_timeout(700)
    return before


@pytest.mark.parametrize("name", [name for name in NAMES if name != "training"])
def test_a_link_opens_the_view_as_it_was_left(browser, address, name):
    module = importlib.import_module(f"test_play_{name}")
    with opening(browser, address(module, "http")) as visit:
        beginning = visit.page.evaluate(SHOWN)
        assert link(visit.page).endswith("#view-0")
        change(visit.page, name, module)
        wanted = settle(visit.page)
        assert wanted != beginning
        copied = link(visit.page)
    assert "#view-0&" in copied
    with opening(browser, copied) as visit:
        page = visit.page
        if name in LOADED:
            page.get_by_role("button", name=re.compile("^Load the model")).click()
        try:
            page.wait_for_function(SAME, arg=wanted, timeout=15000)
        except Exception:
            pairs = [map(str, page.evaluate("now")), map(str, wanted)]
            lines = ["\n".join(each).splitlines() for each in pairs]
            raise AssertionError("\n".join(difflib.unified_diff(*lines, n=0))) from None
        assert link(page) == copied
        assert not any("&" in asked for asked in visit.inside)  # the fragment goes nowhere
        visit.clean()
