"""The view *BERT explorer* in a browser: what it shows is what transformers computes."""

import re
from functools import cache

import pytest
import torch
from playwright.sync_api import Locator

import strange
import visits
from bare import both_ways, make_page, opening, served
from berts import another_order, loud_bert, of_a_head, shuffled_in_the_page
from lmbook.play import stores
from lmcourse import int8, views
from lmcourse.models import load_bert
from test_engine import near

pytestmark = [pytest.mark.browser, pytest.mark.slow]

STORE = "bert"
LINE = "Hope is the thing with feathers"
STORED = 5e-3  # three digits after the point, of numbers above 0.1
OWN = "I'm Nobody! Who are you?"
DONE = """() => !document.querySelector(".lmx-rows").textContent.includes("…")
  && document.querySelectorAll(".lmx-near li").length === 12"""


@cache
def tokenizer():
    return load_bert(device="cpu")[0]


@cache
def model(layers=3):
    """A small BERT in float32; nothing changes it."""
    sizes = {"hidden_size": 30, "num_attention_heads": 5, "intermediate_size": 22}
    return loud_bert(3, 10, hidden_act="relu", **sizes | {"num_hidden_layers": layers})


@cache
def untrained():
    """Another one of the same shape."""
    sizes = {"hidden_size": 30, "num_attention_heads": 5, "intermediate_size": 22}
    return loud_bert(4, 10, hidden_act="relu", num_hidden_layers=3, **sizes)


def make():
    view = views.bert_explorer(LINE, tokenizer(), model(), untrained())
    view.data.update(layer=1, head=2)
    return view, {"bert": lambda: stores.bert_file(model(), as_int8=False)}


def ask(page):
    page.get_by_role("button", name="Load the model").click()


def use(page):
    load(page)
    write(page, "Naïve 🦋 " + "x" * 90 + " שלום " + "word " * 60)


def load(page):
    button = page.get_by_role("button", name="Load the model")
    button.click()
    button.wait_for(state="hidden", timeout=visits.LOAD)


def note(page):
    return page.locator(".play-note").text_content()


def offer(page):
    return page.locator(".lmx-offer").text_content()


def write(page, text, put=Locator.fill):
    """Type a line and wait for all that is shown of it."""
    page.locator(".lmx-rows tbody").evaluate("body => body.firstChild.seen = true")
    put(page.get_by_label("Your line"), text)
    page.wait_for_function(
        "() => !document.querySelector('.lmx-rows tbody').firstChild.seen",
        timeout=visits.LOAD,
    )
    page.wait_for_function(DONE, timeout=visits.LOAD)


def choose(page, layer, head, token):
    page.get_by_role("radio", name=f"layer {layer}, head {head}", exact=True).click()
    page.locator(".lmx-rows tbody button").nth(token).click()
    page.wait_for_function(DONE, timeout=visits.LOAD)


def columns(page):
    """Return the tokens, and of each column the bars and the numbers, (3, tokens)."""
    rows = page.locator(".lmx-rows tbody tr").evaluate_all(
        """rows => rows.map(row => Array.from(row.cells, (cell, i) => i
          ? [+cell.style.getPropertyValue("--share"), +cell.textContent]
          : cell.textContent))"""
    )
    numbers = torch.tensor([row[1:] for row in rows]).permute(2, 1, 0)
    return [row[0] for row in rows], *numbers


def wanted(model, text, layer, head, token):
    """Return transformers' weights, weights × lengths, and moves: (3, tokens)."""
    batch = tokenizer()(text, return_tensors="pt", truncation=True, max_length=48)
    weights, lengths, moved, states = of_a_head(model, batch, layer, head)
    three = torch.stack([weights[token], weights[token] * lengths, moved])
    return three, states[layer : layer + 2, token]


def same(page, text, *place, bert=None, limit=1e-3):
    """Compare what is shown with transformers: bars, numbers, tokens, neighbours."""
    bert = bert or model()
    tokens, bars, numbers = columns(page)
    three, states = wanted(bert, text, *place)
    assert tokens == tokenizer()(text, truncation=True, max_length=48).tokens()
    near(bars, three / three.amax(1, keepdim=True), limit)
    near(numbers, three, limit + 0.0051 / three.max().item())
    table = bert.embeddings.word_embeddings.weight
    lists = page.locator(".lmx-near ol")
    for state, items in zip(states, (lists.nth(0), lists.nth(1)), strict=True):
        neighbours = [
            text.rsplit(" ", 1) for text in items.locator("li").all_text_contents()
        ]
        cosines = torch.cosine_similarity(state, table, dim=-1)
        shown = torch.tensor([float(number) for _, number in neighbours])
        ids = tokenizer().convert_tokens_to_ids([piece for piece, _ in neighbours])
        slack = limit + 0.0051
        assert (shown - cosines.topk(6).values).abs().max() <= slack
        assert (shown - cosines[ids]).abs().max() <= slack


@served
def test_what_is_stored_is_what_the_script_draws(browser, opened):
    page = opened.page
    with visits.visit(browser, page.url, javascript=False) as plain:
        cells = plain.page.locator("tbody tr > *").all_text_contents()
        place = re.search(
            r"In layer (\d+), head (\d+),", plain.page.locator("body").inner_text()
        )
    same(page, LINE, 1, 2, 1, limit=STORED)
    choose(page, *place.groups(), 1)
    tokens, _, numbers = columns(page)
    rows = [cells[4 * i : 4 * i + 4] for i in range(len(tokens))]
    assert [row[0] for row in rows] == tokens
    stored = torch.tensor([[float(cell) for cell in row[1:]] for row in rows])
    torch.testing.assert_close(numbers.T, stored, atol=0.0101, rtol=0)
    for place in ((0, 0, 0), (2, 4, 7), (1, 3, 3)):  # all of it, without weights
        choose(page, *place)
        same(page, LINE, *place, limit=STORED)
    assert not any("play/bert/" in asked for asked in opened.inside)


@both_ways
def test_a_line_typed_is_read_as_transformers_reads_it(opened):
    page = opened.page
    page.get_by_label("Your line").fill("Too soon")
    assert "has to be loaded first" in note(page)
    assert not any("play/bert/" in asked for asked in opened.inside)
    load(page)
    write(page, OWN)
    same(page, OWN, 1, 2, 1)
    for place in ((2, 0, 6), (0, 4, 0)):
        choose(page, *place)
        same(page, OWN, *place)
    for line in (
        "",
        LINE,
        "</script><img src=x onerror=harm()> שלום 🦋\u202e \ud7ff love [SEP] [MASK]",
        "x" * 10_000,
        "love " * 2_000,
        " " * 6_000 + "late",
    ):
        write(page, line)
        same(page, line[:5000], 0, 4, 0)
        cut = len(tokenizer()(line[:5000])["input_ids"]) > 48
        assert note(page).startswith("Only the first ") is cut
        assert page.get_by_text("There is room for").is_visible() is (len(line) >= 5000)


UNKNOWN = "[UNK] stands for what its vocabulary does not have."
STRANGE = {
    "emoji": UNKNOWN,
    "one line of a megabyte": "Only the first 46 tokens are read.",
    "empty": "There is nothing to read here: two special tokens are left.",
}


def test_texts_of_all_kinds_are_read_or_told_of(opened):
    page = opened.page
    load(page)
    box = page.get_by_label("Your line")
    for name, text in strange.TEXTS.items():
        write(page, text, strange.paste)
        read = tokenizer()(box.input_value(), truncation=True, max_length=48).tokens()
        assert columns(page)[0] == read
        unknown = UNKNOWN if "[UNK]" in read else ""
        assert note(page) == STRANGE.get(name, unknown)
        full = page.get_by_text("There is room for 5,000 characters here")
        assert full.is_visible() == (len(text) > 5000)


def test_in_int8_it_is_as_near_to_itself_as_it_says(browser, tmp_path):
    page_file = make_page(
        tmp_path, [make()[0]], {"bert": lambda: stores.bert_file(model())}
    )
    with opening(browser, page_file.as_uri()) as visit:
        page = visit.page
        batch = tokenizer()(LINE, return_tensors="pt")
        drift = int8.drift(model(), **batch).max().item()
        assert f"at most {100 * drift:.1f}\u00a0%" in offer(page)
        load(page)
        assert "not kept for the next visit" in offer(page)
        assert note(page) == "The model is here: write a line."
        write(page, OWN)
        same(page, OWN, 1, 2, 1, bert=int8.rounded(model()))
        visit.clean()


@served
def test_what_the_browser_kept_is_opened_by_typing(opened):
    page = opened.page
    load(page)
    assert "not kept" not in offer(page)
    asked = len(opened.inside)
    page.reload()
    button = page.get_by_role("button", name="Open the model: your browser kept its ")
    button.wait_for(timeout=visits.LOAD)
    write(page, OWN)
    same(page, OWN, 1, 2, 1)
    assert not any("play/bert/" in address for address in opened.inside[asked:])


def world(page, name):
    """Choose a state of the switch and wait for all that is shown of it."""
    page.get_by_label("Had it learned nothing?").select_option(name)
    page.wait_for_function("() => !document.body.innerText.includes('Reading …')")
    page.wait_for_function(DONE, timeout=visits.LOAD)


def sentence(page):
    return page.locator(".play-remains").text_content()


def written(bert, text, layer, head, order=None):
    """Return a head's weights, (tokens, tokens), both axes as the line is written.

    ``order`` is that in which the model reads the tokens.
    """
    batch = tokenizer()(text, return_tensors="pt")
    order = torch.arange(batch["input_ids"].shape[1]) if order is None else order
    batch = {name: each[:, order] for name, each in batch.items()}
    back = order.argsort()
    return of_a_head(bert, batch, layer, head)[0][back][:, back]


def left(page, how, before, now):
    """The sentence says which share of the attention is where it was."""
    share = 100 * torch.minimum(before, now).sum().item() / len(before)
    match = re.fullmatch(
        rf"{how}, (\d+)\s% of the attention in this head goes .*", sentence(page)
    )
    assert abs(int(match[1]) - share) <= 0.6


def test_the_switch_shows_the_untrained_model_and_goes_back(opened):
    page = opened.page
    world(page, "random weights")
    same(page, LINE, 1, 2, 1, bert=untrained(), limit=STORED)
    choose(page, 0, 3, 2)
    same(page, LINE, 0, 3, 2, bert=untrained(), limit=STORED)
    pair = (written(each, LINE, 0, 3) for each in (model(), untrained()))
    left(page, "With random weights", *pair)
    world(page, "as it is")
    same(page, LINE, 0, 3, 2, limit=STORED)
    assert sentence(page) == ""
    world(page, "shuffled words")  # which nothing has read yet
    assert "has to be loaded first" in note(page)
    same(page, LINE, 0, 3, 2, limit=STORED)
    assert sentence(page) == ""


def test_a_line_of_the_readers_own_is_read_with_shuffled_weights(browser, tmp_path):
    """In int8, as the book's BERT is; the copy is that of transformers."""
    file = {"bert": lambda: stores.bert_file(model())}
    with opening(browser, make_page(tmp_path, [make()[0]], file).as_uri()) as visit:
        page, random = visit.page, shuffled_in_the_page(model(), 1)
        load(page)
        write(page, OWN)
        world(page, "random weights")
        same(page, OWN, 1, 2, 1, bert=random)
        choose(page, 0, 4, 3)
        same(page, OWN, 0, 4, 3, bert=random)
        pair = (written(each, OWN, 0, 4) for each in (int8.rounded(model()), random))
        left(page, "With random weights", *pair)
        write(page, LINE)
        same(page, LINE, 0, 4, 3, bert=random)
        world(page, "as it is")
        same(page, LINE, 0, 4, 3, bert=int8.rounded(model()))
        visit.clean()


def test_words_in_another_order_keep_their_pieces_and_the_sentence_counts(opened):
    page, line = opened.page, "The bobolinks hid it there"
    load(page)
    write(page, line)
    choose(page, 1, 2, 3)
    before = tokenizer()(line).tokens()
    world(page, "shuffled words")
    now, _, numbers = columns(page)
    assert now != before
    assert (now[0], now[-1]) == ("[CLS]", "[SEP]")
    assert " ".join(before[2:5]) in " ".join(now)
    order = another_order(before)
    assert now == [before[place] for place in order]
    token = now.index(before[3])
    assert page.locator(".lmx-rows [aria-pressed=true]").text_content() == before[3]
    batch = tokenizer()(line, return_tensors="pt")
    batch = {name: each[:, order] for name, each in batch.items()}
    near(numbers[0], of_a_head(model(), batch, 1, 2)[0][token], 0.0051 / numbers[0].max())
    for place in ((1, 2), (0, 3)):
        choose(page, *place, token)
        pair = written(model(), line, *place), written(model(), line, *place, order)
        left(page, "With the words in another order", *pair)
    write(page, "Hope")  # there is one order only
    same(page, "Hope", 0, 3, 2)
    assert sentence(page) == "A single word has one order only."


def test_keys_go_from_head_to_head_and_from_token_to_token(opened):
    page = opened.page
    chosen = page.get_by_role("radio", checked=True)
    chosen.focus()
    names = []
    for key in ("ArrowUp", "ArrowUp", "ArrowRight", "ArrowDown", "ArrowLeft"):
        page.keyboard.press(key)
        names.append(page.evaluate("document.activeElement.ariaLabel"))
        assert chosen.get_attribute("aria-label") == names[-1]
    heads = [(0, 2), (0, 2), (0, 3), (1, 3), (1, 2)]  # the first row is the last
    assert names == [f"layer {layer}, head {head}" for layer, head in heads]
    assert page.locator(".lmx-grid [tabindex='0']").count() == 1
    token = page.locator(".lmx-rows [aria-pressed=true]")
    token.focus()
    page.keyboard.press("ArrowDown")
    assert token.text_content() == "is"
    assert page.evaluate("document.activeElement.textContent") == "is"
    assert page.locator(".lmx-rows [tabindex='0']").count() == 1
    summary = page.locator(".lmx-summary").text_content()
    assert summary.startswith("“\u2068is\u2069” attends most to ")
    visits.heard(page.locator("[aria-live=polite]").last, summary)


def test_weights_of_another_model_are_refused(browser, tmp_path):
    view = views.bert_explorer(LINE, tokenizer(), model(2))
    page = make_page(tmp_path, [view], {"bert": lambda: stores.bert_file(model())})
    with opening(browser, page.as_uri()) as visit:
        ask(visit.page)
        visit.page.get_by_text("does not load: the site carries another").wait_for()


def test_squares_are_as_dark_as_weights_in_both_themes(opened):
    root = wanted(model(), LINE, 1, 2, 1)[0][0].sqrt()
    for theme in ("light", "dark"):
        opened.page.evaluate(f"document.documentElement.dataset.theme = '{theme}'")
        visits.settle(opened.page)
        square = opened.page.locator(".lmx-grid canvas").nth(7)
        read = "c => [...c.getContext('2d').getImageData(0, 1, c.width, 1).data]"
        pixels = square.evaluate(read)
        alpha = torch.tensor(pixels).view(-1, 4)[:, 3] / 255
        assert (alpha - root).abs().max() < 0.02
