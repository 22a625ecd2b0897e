"""The view *own-text* in a browser: a text is learned, compared, and taken along."""

import base64
import codecs
import re

import numpy as np
import pytest
import torch
from playwright.sync_api import expect
from safetensors.torch import load

import visits
from bare import make_page, opening
from lmbook.play import stores
from lmcourse import own_text, views
from lmcourse.data import corpora_folder, load_corpus
from lmcourse.gpt.checkpoints import load_gpt
from lmcourse.gpt.model import GPT, GPTConfig
from lmcourse.weights import save_model
from serving import serve
from test_engine import near

pytestmark = [pytest.mark.browser, pytest.mark.slow]

VERSE = "so long as men can breathe or eyes can see\n"
TEXT = VERSE * 40
OWN = "your model"
LAST = """Array.from(document.querySelectorAll(".lmo-title"))
  .some((title) => title.innerText === "Take the model along")"""
# Whether a report came after more than so many steps.
REPORTED_AFTER = """(steps) => {
  const chart = document.querySelector("svg.lmr-chart");
  const reported = chart?.ariaLabel?.match(/after ([\\d,]+) step/);
  return reported && Number(reported[1].replaceAll(",", "")) > steps;
}"""


def make():
    """Smaller models than the site's, which learn in a moment."""
    view = views.own_text(load_corpus("sonnets")[:5000])
    for size in view.data["sizes"]:
        config = size["config"] | {"context": 16, "d_model": 16, "d_ff": 64}
        size.update(config=config, steps=60, batch=4, learning_rate=0.01)
    view.data["sizes"][1]["steps"] = 100_000  # for who wants to stop it
    return view, {"sonnets": TEXT.encode}


def use(page):
    page.get_by_label("Your text").fill(TEXT)
    page.get_by_role("button", name=re.compile("^Learn")).click()
    rested(page)
    page.get_by_role("button", name="A is by counting").click()


def rested(page):
    """Wait until a training rests, and its results are there."""
    page.wait_for_function(LAST, timeout=visits.LOAD)


def note(page):
    return page.locator(".play-note").first.inner_text()


def test_a_text_is_learned_and_both_are_told_of(opened):
    page = opened.page
    learn = page.get_by_role("button", name="Learn it")
    assert learn.is_disabled()
    page.get_by_label("Your text").fill(TEXT)
    assert note(page).startswith("1,720 characters, 16 different ones. That is little")
    learn.click()
    rested(page)
    parts = own_text.parts_of(TEXT)
    alphabet = sorted(set(TEXT))
    training, validation, test = (
        np.array([alphabet.index(c) for c in part]) for part in parts
    )
    best = own_text.best_ngrams(training, validation, len(alphabet))
    loss = -np.log(best.probabilities(test))[1:].mean()
    table = page.locator(".lmo-results table")
    assert f"counting: {best.order}-grams" in table.inner_text()
    assert f"{loss:.2f}" in table.inner_text()
    assert (
        f"Both read {len(test) - 1} characters" in page.locator(".lmo-results").inner_text()
    )
    picture = page.locator("svg.lmr-chart")
    assert "after 60 steps" in picture.get_attribute("aria-label")
    first, second = page.locator(".lmo-sample").all()
    assert len(first.inner_text()) > 300
    assert first.inner_text() != second.inner_text()
    page.get_by_role("button", name="B is by counting").click()
    verdict = page.get_by_text(re.compile("^(Right|No): [AB] is by counting")).inner_text()
    right = verdict.startswith("Right")
    assert ("B is by" in verdict) == right
    authors = page.locator(".lmo-whose").all_inner_texts()
    assert authors == (
        [": the GPT", ": counting"] if right else [": counting", ": the GPT"]
    )


def test_the_passage_says_what_each_expected(opened):
    page = opened.page
    use(page)
    slider = page.get_by_role("slider", name="Go through the passage letter by letter")
    slider.focus()
    page.keyboard.press("Home")
    gpt = slider.get_attribute("aria-valuetext")
    page.get_by_label("counting", exact=True).check()
    slider.focus()
    page.keyboard.press("End")
    page.keyboard.press("Home")
    counted = slider.get_attribute("aria-valuetext")
    parts = own_text.parts_of(TEXT)
    assert gpt[0] == counted[0] == parts.test[1]
    assert gpt != counted


def test_the_file_is_a_model_of_the_course_and_of_the_page(opened, tmp_path):
    page = opened.page
    use(page)
    with page.expect_download() as download:
        page.get_by_role("button", name="save the model").click()
    path = tmp_path / "my-gpt.safetensors"
    download.value.save_as(path)
    tokenizer, model, record = load_gpt(path, device="cpu")
    assert tokenizer.alphabet == "".join(sorted(set(TEXT)))
    test = own_text.parts_of(TEXT).test
    ids = torch.tensor(tokenizer.encode(test))
    loss = own_text.losses(model, ids).mean()
    assert record["test_loss"] == pytest.approx(loss, rel=1e-4)
    assert f"{loss:.2f}" in page.locator(".lmo-results table").inner_text()
    assert VERSE[:12] not in path.read_bytes().decode("latin-1")  # the text is not in it
    again = as_store(page, path.read_bytes())
    assert again["config"]["alphabet"] == tokenizer.alphabet
    wanted = stores.gpt_file(model, tokenizer.alphabet, torch.float32)
    same_store(again["store"], wanted)


def as_store(page, content):
    """Return what the page makes of a checkpoint; an str if it refuses."""
    result = page.evaluate(
        """async (content) => {
          const bytes = Uint8Array.from(atob(content), (c) => c.charCodeAt(0));
          try {
            const { config, store } = lmcourse.play["own-model"].asStore(bytes);
            const reader = new FileReader();
            const read = new Promise((resolve) => (reader.onload = resolve));
            reader.readAsDataURL(new Blob([store]));
            await read;
            return { config, store: reader.result.split(",")[1] };
          } catch (error) { return error.message; }
        }""",
        base64.b64encode(content).decode(),
    )
    if isinstance(result, dict):
        result["store"] = base64.b64decode(result["store"])
    return result


def same_store(content, wanted):
    """Compare two files of a model by what they hold."""
    ours, theirs = load(content), load(wanted)
    assert ours.keys() == theirs.keys()
    for name, weight in theirs.items():
        near(ours[name], weight, 1e-6)


def test_a_checkpoint_of_the_course_is_read_or_refused_in_words(opened, tmp_path):
    page = opened.page
    page.wait_for_function("lmcourse.play?.['own-model']")
    tokenizer, model, _ = load_gpt("sonnets", device="cpu")
    content = (corpora_folder() / "checkpoints" / "sonnets.safetensors").read_bytes()
    result = as_store(page, content)
    same_store(result["store"], stores.gpt_file(model, tokenizer.alphabet, torch.float32))
    config = GPTConfig(3, 8, 1, heads=1, d_model=8, positions="rotary")
    path = tmp_path / "other.safetensors"
    save_model(path, GPT(config), {"alphabet": "abc", "model": vars(config)})
    assert "its positions is rotary" in as_store(page, path.read_bytes())
    config = GPTConfig(3, 8, 1, heads=1, d_model=8)
    broken = GPT(config)
    broken.norm.weight.data[0] = float("nan")
    save_model(path, broken, {"alphabet": "abc", "model": vars(config)})
    assert "has no numbers" in as_store(page, path.read_bytes())
    save_model(path, broken, {"alphabet": "ab", "model": vars(config)})
    assert "its alphabet is another's" in as_store(page, path.read_bytes())
    none = "this is no model of the course"
    for wrong in (b"", b"\xff" * 64, content[:5000], b"PK\x03\x04" * 100):
        assert none in as_store(page, wrong)
    assert "damaged" in as_store(page, content[:-100])


def test_a_training_stops_goes_on_and_ends_its_worker(opened):
    page = opened.page
    page.evaluate(
        """() => {
          window.alive = 0;
          const { terminate } = Worker.prototype;
          const { postMessage } = Worker.prototype;
          Worker.prototype.postMessage = function (message) {
            if (message.start) window.alive++;
            return postMessage.apply(this, arguments);
          };
          Worker.prototype.terminate = function () {
            window.alive--;
            return terminate.apply(this, arguments);
          };
        }"""
    )
    page.get_by_label("Your text").fill(TEXT)
    page.get_by_label("100,000 numbers").check()
    stop = page.get_by_role("button", name="Stop")
    has_focus = "document.activeElement === button"
    visits.stop_once(page, f"{has_focus} && ({REPORTED_AFTER})(0)")
    page.get_by_role("button", name="Learn it").click()
    first = stopped_at(page)
    expect(page.get_by_text("It stopped; nothing is lost.")).to_be_visible()
    visits.stop_once(page, f"({REPORTED_AFTER})({first})")
    page.get_by_role("button", name="Go on", exact=True).click()
    assert stopped_at(page) > first
    page.get_by_label("30,000 numbers").check()
    page.get_by_role("button", name="Learn anew").click()
    more = page.get_by_role("button", name="Go on: as many steps again")
    more.wait_for(timeout=visits.LOAD)
    assert steps_done(page) == 60
    more.click()
    expect(stop).to_be_hidden(timeout=visits.LOAD)
    assert steps_done(page) == 120
    assert page.evaluate("alive") == 0


def steps_done(page):
    """Return after how many steps the last report came."""
    label = page.locator("svg.lmr-chart").get_attribute("aria-label")
    return int(re.search(r"after ([\d,]+) step", label)[1].replace(",", ""))


def stopped_at(page):
    """Wait until a training was stopped; return after how many steps, its worker ended."""
    page.wait_for_function("stopped", timeout=visits.LOAD)
    expect(page.get_by_role("button", name="Stop")).to_be_hidden(timeout=visits.LOAD)
    assert page.evaluate("alive") == 0
    return steps_done(page)


FILES = {
    "right to left": (("בראשית ברא אלהים\n" * 100).encode(), "1,700 characters"),
    "Latin-1": (("Über die Brücke\n" * 100).encode("latin-1"), "read as Latin-1"),
    "binary": (bytes(range(256)) * 20, "not text"),
    "empty": (b"", "The file is empty"),
    "one line of a megabyte": (b"so long as men " * 70_000, "1,000,000 characters"),
    "more than is read": ("Ü".encode() * 100 + "日本語 ".encode() * 400_000, "1,000,000"),
    # What is read ends between the two halves of a character.
    "more than is read, in UTF-16": (
        codecs.BOM_UTF16_LE + "🐝🐦".encode("utf-16-le") * 550_000,
        "1,000,000",
    ),
}


@pytest.mark.parametrize("name", FILES)
def test_a_file_is_taken(opened, name):
    content, words = FILES[name]
    page = opened.page
    page.locator("input[type=file]").first.set_input_files(
        {"name": "mine.txt", "mimeType": "text/plain", "buffer": content}
    )
    page.get_by_text(words).first.wait_for()
    assert page.get_by_role("button", name="Learn it").is_enabled() == (
        name not in ("binary", "empty")
    )


def test_a_long_text_is_not_put_into_the_box(opened):
    page = opened.page
    page.get_by_label("Your text").focus()
    page.evaluate(
        """text => {
          const data = new DataTransfer();
          data.setData("text", text);
          const how = { clipboardData: data, bubbles: true, cancelable: true };
          const paste = new ClipboardEvent("paste", how);
          document.querySelector("textarea").dispatchEvent(paste);
        }""",
        VERSE * 1000,
    )
    assert note(page).startswith("43,000 characters")
    assert not page.locator("textarea").is_visible()
    page.get_by_role("button", name="another text").click()
    assert page.get_by_label("Your text").input_value() == ""
    assert note(page) == ""
    page.get_by_role("button", name="take the Sonnets").click()
    page.get_by_text("Shakespeare’s Sonnets. 1,720 characters").wait_for()


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    """The address of a page with this view and a generator."""
    folder = tmp_path_factory.mktemp("both")
    model = GPT(GPTConfig(3, 8, 2, heads=1, d_model=8))
    tokenizer = own_text.CharTokenizer("abc")
    book = views.generator("abc", tokenizer, model, count=5)
    view, own = make()
    own["gpt"] = lambda: stores.gpt_file(model, "abc")
    make_page(folder, [view, book], own)
    with serve(folder) as address:
        yield f"{address}/index.html"


def test_the_readers_model_writes_in_a_view_of_the_book_until_it_is_forgotten(
    browser, both
):
    with opening(browser, both) as visit:
        page = visit.page
        page.locator("[data-module=generator-view]").scroll_into_view_if_needed()
        page.locator("[data-module=generator-view][data-state=drawn]").wait_for()
        mine = page.get_by_role("button", name=OWN, exact=True)
        assert not mine.is_visible()
        use(page)
        page.get_by_role("button", name="use it in the book").click()
        page.get_by_text("Your browser keeps the model until").wait_for()
        page.get_by_label("Your line").fill("so long")
        mine.click()
        generator = page.locator("[data-module=generator-view]")
        generator.get_by_text("This is your model.").wait_for()
        page.wait_for_function(
            "document.querySelector('.lmg-text b').innerText.length > 3",
            timeout=visits.LOAD,
        )
        assert generator.locator(".lmg-text").inner_text().startswith("so long")
        assert set(generator.locator(".lmg-text b").text_content()) <= set(TEXT)
        generator.get_by_role("combobox").select_option("random weights")
        visit.page.wait_for_timeout(500)
        generator.get_by_role("button", name="the book’s model again").click()
        assert generator.get_by_text("This is your model.").count() == 0
        page.reload()  # another page of the book
        page.locator("[data-module=generator-view]").scroll_into_view_if_needed()
        mine.click()
        generator.get_by_text("This is your model.").wait_for()
        page.evaluate(
            """async () => {
              await caches.delete("lmcourse-weights");
              dispatchEvent(new Event("lmcourse:weights-forgotten"));
            }"""
        )
        expect(generator.get_by_text("This is your model.")).to_have_count(0)
        expect(mine).to_be_hidden()
        visit.clean()


def test_a_file_opens_in_a_view_of_the_book_or_says_why_not(browser, both, tmp_path):
    with opening(browser, both) as visit:
        page = visit.page
        generator = page.locator("[data-module=generator-view]")
        generator.scroll_into_view_if_needed()
        page.locator("[data-module=generator-view][data-state=drawn]").wait_for()
        chosen = generator.locator("input[type=file]")
        chosen.set_input_files(
            {"name": "a.txt", "mimeType": "text/plain", "buffer": b"no model" * 20}
        )
        generator.get_by_text("It does not open: this is no model of the course").wait_for()
        config = GPTConfig(4, 8, 1, heads=2, d_model=8)
        path = tmp_path / "mine.safetensors"
        save_model(path, GPT(config), {"alphabet": "day\n", "model": vars(config)})
        chosen.set_input_files(path)
        generator.get_by_text("This is your model.").wait_for()
        assert generator.get_by_role("button", name="switch off head").count() == 2
        visit.clean()


def test_nothing_of_the_text_is_kept(opened):
    page = opened.page
    use(page)
    storage = page.evaluate("JSON.stringify({ ...localStorage, ...sessionStorage })")
    assert "breathe" not in storage
