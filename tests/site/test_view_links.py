"""A link brings every view back as it was left, and no nonsense in it does any harm."""

import difflib
import importlib
import re

import pytest
from playwright.sync_api import expect

import visits
from bare import opening
from lmcourse.gpt.model import GPT, GPTConfig
from lmcourse.weights import save_model
from test_play_views import NAMES

pytestmark = [pytest.mark.browser, pytest.mark.slow]

TEXTS = {"dates": "May 9 1886", "contest": "They let her dance & sing."}
TEXT = "Rough winds do shake & + 100% “the” dárling\nbuds of May"
# Beside the controls that all browsers have: what a reader presses.
PRESSED = {
    "block": ["[data-part=attention]", "[data-part=norm_2]"],
    "choices": [*[".lmv-line >> nth=1", ".lmv-line >> nth=0"] * 5, "text=Undo"],
    "contest": [".lmw-words button >> nth=2"],
    "dates": [".lmd-read button >> nth=2", ".lmd-row button >> nth=-2"],
    "digits": [".lmd-patch >> nth=3"],
    "explorer": ["[role=radio] >> nth=1", ".lmx-rows tbody button >> nth=3"],
    "film": [".lmf-grid button >> nth=2", "text=draw again"],
    "generator": [".lmg-grid button >> nth=2", "text=draw again"],
    "graph": ["text=One step", "text=One step"],
    "neurons": ["text=B is the neuron"],
    "order": [".lmo-line button >> nth=0", ".lmo-line button >> nth=2"],
    "sentences": [".lmc-square >> nth=1", ".lmc-word >> nth=3"],
    "shannon": ["[data-letter=e]", "[data-letter=t]", "[data-letter=a]"],
    "sorting": [".play-controls button >> nth=1", ".play-controls button >> nth=0"],
    "talker": ["role=tab >> nth=1", ".lmk-tokens button >> nth=5"],
    "tokenizer": [],
    "toy": [],
    "whole": ["[data-key='head 1']"],
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
    const before = range.value;
    range.value = (Number(range.min) + 2 * Number(range.max || 100)) / 3;
    if (range.value === before) range.value = range.min;
    tell(range, "input", "change");
  }
  for (const box of all("[type=checkbox]")) box.click();
  for (const group of all("fieldset"))
    Array.from(group.querySelectorAll("input")).at(-1).click();
}"""
SHOWN = """() => {
  const canvas = document.querySelector(".lmc-canvas");
  const controls = Array.from(canvas.querySelectorAll("select, input, textarea"),
    (each) => ["radio", "checkbox"].includes(each.type) ? each.checked : each.value);
  const pressed = Array.from(canvas.querySelectorAll("[aria-pressed], [aria-checked]"),
    (each) => each.ariaPressed ?? each.ariaChecked);
  const notes = canvas.querySelectorAll(".play-note, .play-hidden, progress, progress ~ *");
  for (const note of notes) note.style.display = "none"; // they tell how it went
  const text = canvas.innerText;
  for (const note of notes) note.style.display = "";
  return [text, ...controls, ...pressed];
}"""
# Counts what a page waits for: answers of workers to requests with an id, scripts, and what
# a browser reads or keeps on the side.
COUNTED = """
window.awaited = new Set();
const { postMessage } = Worker.prototype;
Worker.prototype.postMessage = function (message, ...rest) {
  const name = `request ${message.id}`;
  const worker = (this.awaited ??= new Map());
  if (message.request === "cancel") {
    window.awaited.delete(worker.get(name));
  } else if (message.id !== undefined) {
    const request = { name };
    worker.set(name, request);
    window.awaited.add(request);
  }
  if (!this.counted) {
    this.counted = true;
    this.addEventListener("error", () => {
      for (const request of worker.values()) window.awaited.delete(request);
    });
    this.addEventListener("message", ({ data }) => {
      if (!data.pieces) window.awaited.delete(worker.get(`request ${data.id}`));
    });
  }
  return postMessage.call(this, message, ...rest);
};
const asked = [
  [Blob.prototype, "arrayBuffer"], [Response.prototype, "arrayBuffer"],
  [window, "fetch"], [window, "createImageBitmap"],
  ...(window.caches ? [[CacheStorage.prototype, "match"], [CacheStorage.prototype, "open"],
    [Cache.prototype, "keys"], [Cache.prototype, "put"]] : []),
];
for (const [owner, name] of asked) {
  const original = owner[name];
  owner[name] = function (...given) {
    const request = { name };
    window.awaited.add(request);
    const forget = () => window.awaited.delete(request);
    const answer = original.apply(this, given);
    answer.then(forget, forget);
    return answer;
  };
}
const { append } = Element.prototype;
Element.prototype.append = function (...parts) {
  for (const script of parts.filter((part) => part instanceof HTMLScriptElement)) {
    window.awaited.add(script);
    for (const kind of ["load", "error"])
      script.addEventListener(kind, () => window.awaited.delete(script));
  }
  return append.apply(this, parts);
};
"""
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
          const property = { value: clipboard, configurable: true };
          Object.defineProperty(navigator, "clipboard", property);
        }"""
    )
    page.get_by_role("button", name="Copy link").click()
    page.get_by_text("Copied.").wait_for()
    return page.evaluate("copied[0]")


def change(page, name, module):
    """Change what can be changed."""
    if name == "talker":  # the question that a link carries begins a dialogue
        module.load(page)
    elif name in LOADED:
        module.use(page)
    for area in page.locator(".lmc-canvas textarea:visible").all():
        area.fill(TEXTS.get(name, "Name a colour." if name == "talker" else TEXT))
    if name == "neighbours":
        module.write(page, "love")
    settle(page)
    page.evaluate(CHANGE)
    settle(page)
    if name == "talker":
        module.press(page, "Write on")
        module.idle(page)
    for pressed in PRESSED.get(name, []):
        page.locator(".lmc-canvas").locator(pressed).click()
    if name == "toy":
        page.locator("[role=slider][aria-label=query]").press("ArrowUp")


def settle(page):
    """Wait until the page waits for nothing, and shows the same as before; return that."""
    before = None
    while True:
        page.wait_for_function("awaited.size === 0", timeout=visits.LOAD)
        visits.settle(page)
        now = page.evaluate(SHOWN)
        if now == before and page.evaluate("awaited.size === 0"):
            return now
        before = now


# Whole texts of a reader's are in no link: those views have tests of their own.
@pytest.mark.parametrize("name", sorted({*NAMES} - {"own_poems", "own_text"}))
def test_a_link_opens_the_view_as_it_was_left(browser, address, name):
    module = importlib.import_module(f"test_play_{name}")
    with opening(browser, address(module, "http"), first=COUNTED) as visit:
        beginning = settle(visit.page)
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
            page.wait_for_function(SAME, arg=wanted, timeout=visits.LOAD)
        except Exception:
            pairs = [map(str, page.evaluate("now")), map(str, wanted)]
            lines = ["\n".join(each).splitlines() for each in pairs]
            raise AssertionError("\n".join(difflib.unified_diff(*lines, n=0))) from None
        assert link(page) == copied
        assert not any("&" in asked for asked in visit.inside)  # the fragment goes nowhere
        visit.clean()


def open_own_model(page, folder):
    """Open a small model of seven characters from a file, as a reader does."""
    alphabet = "\n adhlt"
    config = GPTConfig(len(alphabet), 9, 5, heads=6, d_model=12)
    path = folder / "mine.safetensors"
    save_model(path, GPT(config), {"alphabet": alphabet, "model": vars(config)})
    page.locator(".lmc-canvas input[type=file]").set_input_files(path)
    page.get_by_text("This is your model.").wait_for(timeout=visits.LOAD)


NO_MODEL = "Your own model is not in the link"


def test_a_link_copied_beside_the_readers_own_model_has_what_is_there_now(
    browser, address, tmp_path
):
    """It opens the book's model with the reader's line, and the button says so."""
    module = importlib.import_module("test_play_generator")
    with opening(browser, address(module, "http")) as visit:
        page = visit.page
        open_own_model(page, tmp_path)
        module.write(page, "that hat")
        page.get_by_label("temperature").fill("0.5")
        page.get_by_label("top-k").fill("3")
        module.head(page, 4, 5).click()  # the book's model has no such head
        module.idle(page)
        copied = link(page)
        word = page.locator(".lmc-link [role=status]")
        expect(word).to_contain_text(NO_MODEL)
        expect(word).not_to_contain_text("with the text in it")
        page.get_by_role("button", name="the book’s model again").click()
        page.get_by_label("temperature").fill("1.5")
        assert "temperature=1.5" in link(page)
        expect(word).to_contain_text("with the text in it")
        expect(word).not_to_contain_text(NO_MODEL)
    with opening(browser, copied) as visit:
        page = visit.page
        assert page.get_by_label("Your line").input_value() == "that hat"
        assert page.get_by_label("temperature").input_value() == "0.5"
        assert page.get_by_label("top-k").input_value() == "3"
        assert page.get_by_text("The link has ").count() == 0
        open_own_model(page, tmp_path)
        page.evaluate("location.hash = '#view-0&text=a+tall+lad&head=4'")
        expect(page.get_by_text("This is your model.")).to_have_count(0)
        assert page.get_by_label("Your line").input_value() == "a tall lad"
        assert page.get_by_text("The link has ").count() == 0
        visit.clean()


def test_a_link_copied_beside_the_readers_own_whole_model(browser, address, tmp_path):
    module = importlib.import_module("test_play_whole")
    with opening(browser, address(module, "http")) as visit:
        open_own_model(visit.page, tmp_path)
        visit.page.get_by_label("Your line").fill("that hat")
        visit.page.locator("[data-key='head 5']").first.press("Enter")
        copied = link(visit.page)
        expect(visit.page.locator(".lmc-link [role=status]")).to_contain_text(NO_MODEL)
    with opening(browser, copied) as visit:
        assert visit.page.get_by_label("Your line").input_value() == "that hat"
        assert visit.page.get_by_text("The link has ").count() == 0
        visit.clean()


def test_a_link_does_not_claim_the_readers_own_poems(browser, address):
    module = importlib.import_module("test_play_own_poems")
    with opening(browser, address(module, "http")) as visit:
        page = visit.page
        link(page)
        word = page.locator(".lmc-link [role=status]")
        expect(word).to_contain_text("as it stands now")
        module.use(page)
        page.get_by_label("Text", exact=True).select_option("6")
        page.get_by_role("slider", name="Level").fill("1")
        copied = link(page)
        expect(word).to_contain_text("yours are not in the link")
        expect(word).not_to_contain_text("with the text in it")
        assert copied.endswith("#view-0&level=1")
        page.evaluate("location.hash = '#view-0&text=7'")  # of the book's texts
        expect(page.locator(".lmy-poem").first).to_have_text(module.SUN[3])
        visit.clean()


def test_a_link_opens_the_books_texts_while_others_are_read(browser, address):
    module = importlib.import_module("test_play_own_poems")
    with opening(browser, address(module, "http")) as visit:
        page = visit.page
        module.use(page)
        many = "\n\n".join(f"{i} " + "sea " * 600 for i in range(40))
        module.give(page, many.encode(), "long.txt")
        page.locator(".lmc-own-poems-view button", has_text="read").first.click()
        page.get_by_text("of 40 texts read").wait_for(timeout=visits.LOAD)
        page.evaluate("location.hash = '#view-0&text=7'")
        expect(page.locator(".lmy-poem").first).to_have_text(module.SUN[3])
        page.get_by_role("button", name="Stop").wait_for(state="hidden")
        expect(page.locator(".lmy-poem").first).to_have_text(module.SUN[3])
        visit.clean()


@pytest.fixture
def order(browser, address):
    """A function that opens the view *order* at a fragment, as a file or from a server."""
    module = importlib.import_module("test_play_order")

    def open_at(fragment, way="file"):
        return opening(browser, f"{address(module, way)}#{fragment}")

    return open_at


def first_state(order):
    with order("") as visit:
        return visit.page.evaluate(SHOWN)


@pytest.mark.parametrize(
    "nonsense",
    [
        "order=0+1+7",
        "order=0",
        "order=%E2%98%83&before=1",
        "before=99",
        "before=-1",
        "before=three",
        "before=",
        "positions=5",
        "nothing=1",
        "__proto__=1",
        "%",
        "=&&=",
        "<img src=x onerror=harm()>=1",
    ],
)
def test_nonsense_gets_the_beginning_and_a_clear_word(order, nonsense):
    beginning = first_state(order)
    with order(f"view-0&before=2&{nonsense}") as visit:
        word = visit.page.get_by_text("The link has ")
        word.wait_for()
        assert "does not know. It stands as at first" in word.inner_text()
        assert visit.page.evaluate(SHOWN) == beginning
        visit.clean()


def test_a_link_to_another_view_says_so(order):
    with order("fig-elsewhere&before=2") as visit:
        visit.page.get_by_text("asks for a view that is not on this page").wait_for()
        visit.clean()


def test_a_link_works_in_a_page_that_is_open_and_scrolls_to_its_view(order):
    with order("view-0&before=2") as visit:
        page = visit.page
        before = page.get_by_label("words before the line")
        assert before.input_value() == "2"
        page.evaluate("document.querySelector('h1').style.height = '3000px'")
        page.evaluate("scrollTo(0, 0)")
        page.evaluate("location.hash = '#view-0&before=3'")
        page.wait_for_function("document.querySelector('[type=range]').value === '3'")
        page.wait_for_function("scrollY > 2000")
        page.evaluate("location.hash = '#view-0&before=5'")  # the most is 4
        page.get_by_text("The link has “5” for “before”").wait_for()
        assert before.input_value() == "0"


def test_where_the_clipboard_is_closed_the_link_is_shown(order):
    with order("") as visit:
        page = visit.page
        page.evaluate("Object.defineProperty(navigator, 'clipboard', { value: undefined })")
        page.get_by_label("words before the line").fill("3")
        page.get_by_role("button", name="Copy link").click()
        shown = page.get_by_label("The link")
        shown.wait_for()
        assert shown.input_value() == f"{page.url.partition('#')[0]}#view-0&before=3"


def test_a_text_that_is_too_long_is_told(browser, address):
    module = importlib.import_module("test_play_generator")
    with opening(browser, address(module)) as visit:
        visit.page.get_by_label("Your line").fill("love " * 2000)
        visit.page.get_by_role("button", name="Copy link").click()
        visit.page.get_by_text("too long for a link").wait_for()


def test_a_page_that_a_long_link_opened_allows_no_longer_one(browser, address):
    module = importlib.import_module("test_play_generator")
    opened = f"{address(module)}#view-0&text={'love+' * 1500}"
    with opening(browser, opened) as visit:
        visit.page.get_by_label("Your line").fill("love " * 2000)
        visit.page.get_by_role("button", name="Copy link").click()
        word = visit.page.locator(".lmc-link [role=status]")
        expect(word).not_to_be_empty()
        assert "too long for a link" in word.inner_text()


def test_a_line_that_came_with_a_link_is_not_kept_and_forget_takes_it_out(browser, address):
    module = importlib.import_module("test_play_generator")
    address = f"{address(module)}#view-0&text=Rough+winds"
    with opening(browser, address) as visit:
        page = visit.page
        assert page.get_by_label("Your line").input_value() == "Rough winds"
        assert page.evaluate("localStorage.getItem('lmcourse:line')") is None
        page.evaluate("dispatchEvent(new Event('lmcourse:line'))")  # as *Forget* does
        assert "#" not in page.url


LIBRARIES = {
    "attention#fig-attention-grid": {"head": "3"},
    "attention#fig-attention-bandwidth": {"slider0": "2"},
    "bert-internals#fig-bert-internals-model-view": {"open": "5"},
    "dickinson-layers#fig-dickinson-layers-poems": {
        "poem": "7",
        "level": "2",
        "world": "1",
    },
    "index#view-0": {"letter": "9"},
}


def test_views_that_libraries_draw_take_a_link_too(browser, server):
    for place, state in LIBRARIES.items():
        name, figure = place.split("#")
        fragment = f"{figure}&" + "&".join(f"{key}={state[key]}" for key in state)
        with visits.visit(browser, f"{server}/{name}.html#{fragment}") as visit:
            root = visit.page.locator(f"#{figure}")
            visit.page.wait_for_function(
                "name => document.querySelector(`#${name} .lmc-link`)", arg=figure
            )
            assert root.locator(".lmc-link [role=status]").count() == 0, place
            visit.clean()
