"""The view *own poems* in a browser finds in a reader's texts what `encode_texts` finds."""

import csv
import importlib
import io
import re
from functools import cache

import pandas as pd
import pytest
from playwright.sync_api import expect

import strange
import visits
from bare import opening
from berts import loud_bert
from lmbook.play import stores
from lmcourse import own_poems, views
from lmcourse.models import load_bert
from lmcourse.random_order import reordered_words
from test_view_links import link

pytestmark = [pytest.mark.browser, pytest.mark.slow]

STORE = "bert"
SEA = ["waves on the sea", "a ship at sea", "the grey sea sang,", "salt and sea wind"]
SUN = ["sun on the hill", "a bee in the sun", "noon, and no cloud", "clover under the sun"]
EXAMPLE = pd.DataFrame({"text": SEA + SUN, "label": ["sea"] * 4 + ["sun"] * 4})
OWN = [f"{words}, {i} {words[::-1][:3]}" for i, words in enumerate(SUN[:3] + SEA)]
OWN = pd.DataFrame({"text": OWN, "label": ["day"] * 3 + ["night"] * 4})
SOME_READ = """/^[1-9].* to go/.test(
  document.querySelectorAll(".play-note")[1].textContent
)"""


@cache
def tokenizer():
    return load_bert(device="cpu")[0]


@cache
def model():
    """A small BERT in float32; nothing changes it."""
    sizes = {"hidden_size": 30, "num_attention_heads": 5, "intermediate_size": 22}
    return loud_bert(3, 10, hidden_act="relu", num_hidden_layers=3, **sizes)


def climbed(texts):
    return own_poems.encode_texts(texts, tokenizer(), model())


def make():
    view = views.own_poems(climbed(EXAMPLE), tokenizer(), text=2)
    return view, {"bert": lambda: stores.bert_file(model(), as_int8=False)}


def give(page, content, name="mine.csv"):
    page.locator("input[type=file]").set_input_files(
        {"name": name, "mimeType": "text/plain", "buffer": content}
    )


def ask(page):
    give(page, OWN.to_csv(index=False).encode())
    page.get_by_role("button", name="Load the model").click()


def use(page):
    ask(page)
    page.get_by_text("7 texts were read.").wait_for(timeout=visits.LOAD)


def watch_requests(page):
    """Note what workers are asked from now on."""
    page.evaluate(
        """() => {
          window.post ??= Worker.prototype.postMessage;
          window.asked = [];
          Worker.prototype.postMessage = function (message, ...rest) {
            asked.push(message.request);
            return post.call(this, message, ...rest);
          };
        }"""
    )


def forwards(page):
    """Return how many texts a model was asked to read since they are watched."""
    return page.evaluate("asked.filter(what => what === 'forward').length")


def rows(page):
    """Return the table of the nearest texts: titles by level."""
    table_rows = page.locator(".lmy-rows tr").all()
    return {
        row.locator("th").inner_text(): row.locator("td").all_inner_texts()
        for row in table_rows
    }


def test_neighbours_and_labels_are_those_of_python(opened):
    page = opened.page
    use(page)
    mine = climbed(OWN)
    texts = page.get_by_label("Text", exact=True)
    for text in (0, 5):
        texts.select_option(str(text))
        neighbours = rows(page)
        words = neighbours.pop("words counted")
        wanted = mine.nearest(text)
        assert [*neighbours] == [*wanted.index]
        assert [*neighbours.values()] == wanted.to_numpy().tolist()
        counted = own_poems.nearest(own_poems.word_vectors(OWN.text), 3)[text]
        assert words == OWN.text[counted.tolist()].tolist()
    table = mine.table
    shares = page.locator(".lmy-labels tr").all_inner_texts()
    assert len(shares) == len(table)
    for share in shares[:-1]:  # the last are shuffled with other seeds
        name, percentage = share.split("\t")
        assert int(percentage.split()[0]) == pytest.approx(
            100 * table.right[name], abs=0.51
        )


def test_random_weights_read_them_too_and_their_worker_ends(opened):
    page = opened.page
    page.evaluate(
        """() => {
          window.ended = 0;
          const { terminate } = Worker.prototype;
          Worker.prototype.terminate = function () { ended++; terminate.call(this); };
        }"""
    )
    use(page)
    before = rows(page)
    assert page.evaluate("ended") == 0
    page.get_by_label("Had it learned nothing?").select_option("random weights")
    page.get_by_text("Random weights have read them, too.").wait_for(timeout=visits.LOAD)
    assert page.evaluate("ended") == 1
    assert rows(page) != before
    assert "left of the three" in page.locator(".play-remains").inner_text()
    page.get_by_label("Had it learned nothing?").select_option("as it is")
    assert rows(page) == before
    page.get_by_role("button", name="the book’s texts again").click()
    assert "a ship at sea" in page.get_by_label("Text", exact=True).inner_text()


SWITCH = "Had it learned nothing?"


def shuffle(page):
    page.get_by_label(SWITCH).select_option("shuffled words")


def test_shuffled_words_are_those_that_python_stored(opened):
    """The example brought as a reader's own is read in the page as it was in Python."""
    page = opened.page
    poem, texts = page.locator(".lmy-poem").first, page.get_by_label("Text", exact=True)

    def seen():
        """Return what stands there of each text: its words, and its nearest by level."""
        contents = []
        for text in range(len(EXAMPLE)):
            texts.select_option(str(text))
            contents.append((poem.text_content(), rows(page)))
        return contents

    usual = seen()
    shuffle(page)
    stored = seen()
    labels = page.locator(".lmy-labels tr").all_inner_texts()
    for (before, _), (mixed, _) in zip(usual, stored, strict=True):
        assert mixed != before
        assert sorted(mixed.split()) == sorted(before.split())
    for name in ("static", "words counted"):  # in them words have no order
        assert [near[name] for _, near in stored] == [near[name] for _, near in usual]
    assert [near for _, near in stored] != [near for _, near in usual]
    give(page, EXAMPLE.to_csv(index=False).encode())
    page.get_by_role("button", name="Load the model").click()
    page.get_by_text("8 texts were read.").wait_for(timeout=visits.LOAD)
    assert page.get_by_label(SWITCH).locator("option:checked").inner_text() == "as it is"
    assert [near for _, near in seen()] == [near for _, near in usual]
    shuffle(page)
    page.get_by_text("with their words in another order, too.").wait_for(
        timeout=visits.LOAD
    )
    assert seen() == stored
    again = page.locator(".lmy-labels tr").all_inner_texts()
    shares = [
        [line.split("\t")[1].split(" (")[0] for line in each] for each in (labels, again)
    ]
    assert shares[0][:-1] == shares[1][:-1]  # the last are shuffled with other seeds


def test_what_is_left_is_counted_at_each_level(opened):
    page = opened.page
    page.get_by_label("Text", exact=True).select_option("5")
    usual, table = rows(page), climbed(EXAMPLE).table
    shuffle(page)
    mixed, sentence = rows(page), page.locator(".play-remains")
    for level, name in enumerate([*usual][-2::-1]):
        page.get_by_role("slider", name="Level").fill(str(level))
        same = len({*usual[name]} & {*mixed[name]})
        count = {0: "none is", 1: "one is"}.get(same, f"{same} are")
        expect(sentence).to_contain_text(f"in another order, {count} left of the three")
        match = re.search(
            r"correctly in (\d+)\s% .* as it is, in (\d+)\s%", sentence.inner_text()
        )
        wanted = table.loc[name, ["shuffled words", "right"]]
        for share, each in zip(match.groups(), wanted, strict=True):
            assert int(share) == pytest.approx(100 * each, abs=0.51)


LONG = "Ægypt — dove’s, unfathomable " * 200
OTHERS = ["床前明月光", LONG, "one", "a\u00a0bee in\x1cthe\tsun"]


def test_texts_of_other_kinds_are_mixed_as_in_python(opened):
    page = opened.page
    give(page, pd.DataFrame({"text": OTHERS}).to_csv(index=False).encode())
    page.get_by_role("button", name="Load the model").click()
    page.get_by_text("4 texts were read.").wait_for(timeout=visits.LOAD)
    shuffle(page)
    page.get_by_text("with their words in another order, too.").wait_for(
        timeout=visits.LOAD
    )
    room = model().config.max_position_embeddings - 2
    for text, given in enumerate(OTHERS):
        page.get_by_label("Text", exact=True).select_option(str(text))
        wanted = reordered_words(given, tokenizer(), room)
        assert page.locator(".lmy-poem").first.text_content() == wanted
        assert (wanted == given) == (given == "one")


def test_texts_of_one_word_have_one_order(opened):
    page = opened.page
    page.get_by_label("Your texts").fill("one\n\ntwo\n\nthree\n\nfour")
    page.get_by_role("button", name="Load the model").click()
    page.get_by_text("4 texts were read.").wait_for(timeout=visits.LOAD)
    shuffle(page)
    expect(page.locator(".play-remains")).to_have_text("A single word has one order only.")


def test_who_stops_at_the_switch_goes_on_where_it_was(opened):
    page = opened.page
    status = page.locator(".play-note").nth(1)
    long = [f"{i} " + "sea and sun " * 200 for i in range(12)]
    give(page, "\n\n".join(long).encode(), "long.txt")
    page.get_by_role("button", name="Load the model").click()
    status.get_by_text("12 texts were read.").wait_for(timeout=visits.LOAD)
    before = rows(page)
    watch_requests(page)
    visits.stop_once(page, SOME_READ)
    shuffle(page)
    page.wait_for_function("stopped", timeout=visits.LOAD)
    status.get_by_text("Choose the same at the switch").wait_for(timeout=visits.LOAD)
    assert page.get_by_label(SWITCH).locator("option:checked").inner_text() == "as it is"
    assert rows(page) == before
    first = forwards(page)
    assert 0 < first <= 12
    watch_requests(page)
    shuffle(page)
    status.get_by_text("in another order, too.").wait_for(timeout=visits.LOAD)
    assert 0 < forwards(page) < 12
    page.get_by_label(SWITCH).select_option("as it is")
    assert rows(page) == before
    watch_requests(page)
    shuffle(page)  # it is known
    expect(page.locator(".play-remains")).to_contain_text("in another order")
    assert forwards(page) == 0


def test_the_example_is_shown_and_a_level_and_a_text_are_chosen_by_keys(opened):
    page = opened.page
    mine = climbed(EXAMPLE)
    assert [*rows(page).values()][:-1] == mine.nearest(2).to_numpy().tolist()
    sentence = page.locator(".lmc-canvas p").filter(has_text="among the three").first
    nearest = "nearest to “\u2068the grey sea sang\u2069” at the level"
    assert f"{nearest} “{mine.names[-1]}”, " in sentence.inner_text()
    slider = page.get_by_role("slider", name="Level")
    assert slider.get_attribute("aria-valuetext") == "after layer 2"
    slider.focus()
    page.keyboard.press("Home")
    here = page.locator(".lmy-rows [aria-current] th")
    assert here.inner_text() == "static"
    first = mine.nearest(2).loc["static", 1]
    assert page.locator(".lmy-near summary").first.inner_text().startswith(first)
    page.locator(".lmy-rows [aria-current] button").first.press("Enter")
    assert page.locator(".lmy-poem").first.inner_text() == first


def test_a_bad_file_is_told_of_and_what_stood_there_stays(opened):
    page = opened.page
    note = page.locator(".play-note").first
    give(page, OWN.to_csv(index=False).encode())
    expect(note).to_have_text("mine.csv: 7 texts, 2 labels.")
    before = rows(page)
    bad = {
        "mine.docx": (b"PK\x03\x04", "mine.docx is a packed file"),
        "open.csv": (b"text,label\na,b,c\n", "open.csv, line 2: 3 cells"),
        "three.txt": (b"a\n\nb\n\nc", "three.txt: 3 texts, where 4 are the least"),
    }
    for name, (content, message) in bad.items():
        give(page, content, name)
        expect(note).to_contain_text(message)
        assert rows(page) == before
    page.get_by_role("button", name="Load the model").click()  # the good file's texts
    page.get_by_text("7 texts were read.").wait_for(timeout=visits.LOAD)


def test_pasted_texts_are_read_without_labels_and_markup_is_text(opened):
    page = opened.page
    page.get_by_label("Your texts").fill("<b>one</b> sea\n\ntwo\n\nthree 🦋\n\nארבע")
    expect(page.locator(".play-note").first).to_have_text(
        "Your texts: 4 texts, no labels. A new text begins after each empty line."
    )
    page.get_by_role("button", name="Load the model").click()
    page.get_by_text("4 texts were read.").wait_for(timeout=visits.LOAD)
    assert page.locator(".lmy-poem").first.inner_text() == "<b>one</b> sea"
    assert page.locator(".lmy-labels table").count() == 0
    storage = page.evaluate("JSON.stringify({ ...localStorage, ...sessionStorage })")
    assert "one</b>" not in storage
    assert not any("sea" in asked for asked in opened.inside)


TWO = "Two empty lines in a row were found, so a new text begins only where two or more"


def test_the_box_says_how_texts_are_cut_and_where_a_table_is_read(opened):
    page, note = opened.page, opened.page.locator(".play-note").first
    box = page.get_by_label("Your texts")
    box.fill("a\n\nb\n\n\nc\n\nd")
    expect(note).to_contain_text("2 texts, where 4 are the least")
    expect(note).to_contain_text(TWO)
    box.fill("text,label\na sea,x\na sun,y\n")
    expect(note).to_contain_text("A table is read from a file only")
    give(page, b"a\n\nA\n\n\nb\n\n\nc\n\n\nd", "mine.txt")
    expect(note).to_contain_text("mine.txt: 4 texts, no labels. Two empty lines")
    give(page, OWN.to_csv(index=False).encode())
    expect(note).to_have_text("mine.csv: 7 texts, 2 labels.")


def test_texts_that_come_while_others_are_read_are_said_to_wait(opened):
    page, note = opened.page, opened.page.locator(".play-note").first
    give(page, "\n\n".join(f"{i} " + "sea " * 600 for i in range(40)).encode(), "long.txt")
    page.get_by_role("button", name="Load the model").click()
    page.get_by_text("of 40 texts read").wait_for(timeout=visits.LOAD)
    assert "Other texts are being read" not in note.inner_text()
    page.get_by_label("Your texts").fill("one\n\ntwo\n\nthree\n\nfour\n\nfive")
    expect(note).to_contain_text("5 texts, no labels.")
    expect(note).to_contain_text("Other texts are being read now")
    page.get_by_role("button", name="Stop").click()
    expect(note).not_to_contain_text("Other texts are being read")


STRANGE = {
    "emoji": ["🦋", "🙂 🦋", "👩‍👩‍👧 🦋 🙂", "🙂🦋"],
    "one letter": ["a", "b", "c", "d"],
    "Chinese": ["床前明月光", "疑是地上霜", "举头望明月", "低头思故乡"],
    "one line of a megabyte": [strange.ONE_LINE, "so long", "as men", "can breathe"],
}


def test_texts_of_all_kinds_are_read_or_told_of(opened):
    page = opened.page
    box, status = page.get_by_label("Your texts"), page.locator(".play-note").nth(1)
    status.evaluate(
        """note => {
          window.messages = [];
          const heard = new MutationObserver(() => messages.push(note.textContent));
          heard.observe(note, { childList: true });
        }"""
    )
    for name, texts in STRANGE.items():
        box.fill("\n\n".join(texts))
        page.get_by_role("button", name="Load the model").click()
        expect(status).to_contain_text("4 texts were read.")
        unknown = "Of 4 texts the model’s vocabulary has no word"
        assert (unknown in status.inner_text()) == (name == "emoji")
        cut = "Of 1 text only the beginning was."
        assert (cut in status.inner_text()) == (name == "one line of a megabyte")
    last = "4 of 4 texts read; 0 s to go …"
    assert page.evaluate("messages").count(last) == len(STRANGE)
    box.fill("one\0\n\ntwo\n\nthree\n\nfour")
    expect(page.locator(".play-note").first).to_contain_text("line 1: a zero byte")
    box.fill("a")
    expect(page.locator(".play-note").first).to_contain_text(
        "1 text, where 4 are the least"
    )


def test_who_stops_and_goes_on_loses_nothing(opened):
    """What was read is not read again: of the model only the other texts are asked."""
    page = opened.page
    status, model = (
        page.locator(".play-note").nth(1),
        page.get_by_role("button", name="Load"),
    )
    long = [f"{i} " + "sea " * 600 for i in range(12)]
    give(page, "\n\n".join(long).encode(), "long.txt")
    visits.stop_once(page, SOME_READ)
    model.click()
    page.wait_for_function("stopped", timeout=visits.LOAD)
    status.get_by_text("Press the same button").wait_for(timeout=visits.LOAD)
    watch_requests(page)
    model.click()
    status.get_by_text("12 texts were read.").wait_for(timeout=visits.LOAD)
    assert 0 < forwards(page) < 12


def test_what_is_more_than_is_read_is_named(opened):
    page = opened.page
    long = [f"{i} " + "sea " * 600 for i in range(20)]
    give(page, "\n\n".join(long).encode(), "long.txt")
    visits.stop_once(page, "true")
    page.get_by_role("button", name="Load the model").click()
    page.wait_for_function("stopped", timeout=visits.LOAD)
    page.get_by_text("what stood here before is still below").wait_for(timeout=visits.LOAD)
    short = [f"text {i}" for i in range(203)]
    give(page, "\n\n".join(short).encode(), "many.txt")
    expect(page.locator(".play-note").first).to_contain_text(
        "many.txt: 203 texts, no labels. The first 200 are read. Left out: "
        "“\u2068text 200\u2069”, “\u2068text 201\u2069”, “\u2068text 202\u2069”."
    )


def test_the_neighbours_are_saved_as_a_table(opened):
    page = opened.page
    with page.expect_download() as download:
        page.get_by_role("button", name="save the neighbours").click()
    content = download.value.path().read_text("utf-8-sig")
    table = [*csv.DictReader(io.StringIO(content))]
    mine = climbed(EXAMPLE)
    assert len(table) == 8 * 6
    row = next(r for r in table if (r["text"], r["level"]) == ("3", "after layer 1"))
    wanted = mine.nearest(2).loc["after layer 1"].tolist()
    assert [row["nearest"], row["second"], row["third"]] == wanted


def test_a_link_has_the_level_and_the_text_and_none_of_the_readers(browser, address):
    module = importlib.import_module("test_play_own_poems")
    with opening(browser, address(module, "http")) as visit:
        page = visit.page
        page.get_by_label("Your texts").fill("secret\n\nb\n\nc\n\nd")
        page.get_by_label("Text", exact=True).select_option("5")
        page.get_by_role("slider", name="Level").fill("1")
        usual = rows(page)
        shuffle(page)
        wanted, words = rows(page), page.locator(".lmy-poem").first.text_content()
        assert wanted != usual
        copied = link(page)
    assert "secret" not in copied
    with opening(browser, copied) as visit:
        expect(visit.page.locator(".lmy-rows [aria-current] th")).to_have_text(
            "before layer 0"
        )
        assert rows(visit.page) == wanted
        assert visit.page.locator(".lmy-poem").first.text_content() == words
