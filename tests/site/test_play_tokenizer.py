"""The view *tokenizer* in a real browser, opened as a file."""

from functools import cache

import pytest

import visits
from lmcourse import views
from lmcourse.data import load_poems, load_sonnets
from lmcourse.models import load_bert, load_gpt2_vocabulary
from lmcourse.shuffled import shuffled_letters
from lmcourse.tokenization import BPETokenizer, CharTokenizer
from lmcourse.views.tokenizer import shown

pytestmark = [pytest.mark.browser, pytest.mark.slow]

OTHERS = {"English": "All human beings are born free.", "Hebrew": "כל בני אדם נולדו חורין."}
STORE = "gpt2-merges"
LINE = "Hope is the thing with feathers"


@cache
def tokenizers():
    text = "\n\n".join([*load_poems().text, *load_sonnets().text])
    return {
        "characters": CharTokenizer(text),
        "bpe": BPETokenizer.train(text, 256 + 1000),
        "gpt2": BPETokenizer(load_gpt2_vocabulary()[0]),
        "bert": load_bert(device="cpu")[0],
    }


@cache
def untrained():
    text = "\n\n".join(load_poems().text)
    return BPETokenizer.train(shuffled_letters(text), 256 + 500)


def make():
    view = views.tokenizer(LINE, **tokenizers(), others=OTHERS, untrained=untrained())
    return view, {}


def ask(page):
    page.get_by_label("Your line").fill("Hope")


def use(page):
    write(page, "Naïve 🦋 " + "x" * 200 + " שלום")
    page.get_by_label("show IDs").check()


def drawn(page):
    return tokens(page)


def tokens(page):
    """Return the texts of each row's pieces, and what is said of it."""
    rows = page.locator(".lmc-pieces")
    texts = [
        rows.nth(i).locator(".lmc-piece").all_text_contents() for i in range(rows.count())
    ]
    return texts, page.locator(".lmc-name").all_text_contents()


def write(page, text):
    """Type a line and wait until every row shows it."""
    page.locator("textarea").fill(text)
    arrived(page)


def arrived(page):
    page.wait_for_function(
        "() => !document.querySelector('.lmc-canvas').textContent.includes('loading')",
        timeout=visits.LOAD,
    )


def wanted(text):
    """Return what each row is to show."""
    bpe, gpt2, bert = (tokenizers()[name] for name in ("bpe", "gpt2", "bert"))
    return [
        [shown("characters", character) for character in text],
        [shown("ours", bpe.symbols[i]) for i in bpe.encode(text)],
        [shown("gpt2", gpt2.symbols[i]) for i in gpt2.encode(text)],
        [shown("bert", piece) for piece in bert.tokenize(text)],
    ]


def test_a_line_typed_is_cut_as_in_python_and_a_long_one_is_shortened(opened):
    page = opened.page
    for text in (
        "I'm nobody!  Who are you?\n",
        "naïve 🦋 “dooryardless” 1,830 </script><b>",
        "e\u0301\u200b [UNK] [MASK] שלום\tαΣ 日本",
        "",
    ):
        write(page, text)
        assert tokens(page)[0] == wanted(text)
    text = "🦋שלום</script><img src=x onerror=harm()>\u202e\x01" * 300
    write(page, text)
    note = page.locator(".play-note").text_content()
    assert note == "Only the first 500 characters are cut."
    assert tokens(page)[0] == wanted(text[:500])
    write(page, "Hope")
    live = page.locator("[aria-live=polite]")
    visits.heard(live, "GPT-2's BPE: 1 token, 4.0 characters each. ")


def test_a_line_is_turned_round_letters_with_their_marks(opened):
    write(opened.page, "bee\u0301 🦋")
    opened.page.get_by_text("turn it round").click()
    arrived(opened.page)
    assert tokens(opened.page)[0] == wanted("🦋 e\u0301eb")


def test_the_slider_replays_the_merges(opened):
    bpe = tokenizers()["bpe"]
    slider = opened.page.locator("input[type=range]")
    last = int(slider.get_attribute("max"))
    assert slider.input_value() == str(last)
    for _ in range(last - 1, 0, -1):
        slider.press("ArrowLeft")
        value_text = slider.get_attribute("aria-valuetext")
        learned = int(
            value_text.partition("number ")[2].partition(" of")[0].replace(",", "")
        )
        early = BPETokenizer(bpe.merges[:learned])
        cut = [shown("ours", early.symbols[i]) for i in early.encode(LINE)]
        assert tokens(opened.page)[0][1] == cut
    slider.press("ArrowLeft")
    assert tokens(opened.page)[0][1] == list(LINE.replace(" ", "·"))
    assert "no merge" in slider.get_attribute("aria-valuetext")


def test_a_line_with_more_merges_than_the_last_ends_with_its_last_merge(opened):
    page, bpe = opened.page, tokenizers()["bpe"]
    slider = page.locator("input[type=range]")
    for text in ("", LINE, f"{LINE} that perches in the soul"):
        write(page, text)
        last = slider.get_attribute("max")
        assert slider.input_value() == last
        assert tokens(page)[0][1] == [
            shown("ours", bpe.symbols[i]) for i in bpe.encode(text)
        ]
        assert slider.get_attribute("aria-valuetext").startswith(
            f"{last} of {last}: " if text else "no merge"
        )


def test_what_was_told_of_a_piece_goes_with_its_line(opened):
    detail = opened.page.locator(".lmc-detail")
    hint = detail.text_content()
    opened.page.locator(".lmc-piece").first.focus()
    assert detail.text_content() != hint
    write(opened.page, "Hope")
    assert detail.text_content() == hint


def test_a_vocabulary_that_does_not_come_is_told_without_its_address(opened):
    page, asked = opened.page, "**/play/*/*"
    page.route(asked, lambda route: route.abort())
    write(page, "Hope")
    for row, whose in ((2, "GPT-2's"), (3, "BERT's")):
        label = page.locator(".lmc-name").nth(row).text_content()
        assert f"{whose} vocabulary did not come. Is this device online?" in label
        assert "//" not in label
    page.unroute(asked)
    page.route(f"**/play/{STORE}/*", lambda route: route.abort())
    write(page, "Hope is")
    assert page.locator(".lmc-name").nth(2).text_content().count("GPT-2's vocabulary") == 1
    assert tokens(page)[0][3] == wanted("Hope is")[3]  # BERT's came by itself
    opened.errors.clear()
    page.unroute(f"**/play/{STORE}/*")
    write(page, LINE)
    assert tokens(page)[0] == wanted(LINE)


def test_the_same_sentence_costs_more_elsewhere(opened):
    opened.page.get_by_label("The same sentence in").select_option("Hebrew")
    arrived(opened.page)
    assert tokens(opened.page)[0] == wanted(OTHERS["Hebrew"])
    encode = tokenizers()["gpt2"].encode
    ratio = len(encode(OTHERS["Hebrew"])) / len(encode(OTHERS["English"]))
    label = tokens(opened.page)[1][2]
    assert label.endswith(f"; {ratio:.1f} times the English sentence")
    assert opened.page.locator(".lmc-pieces").first.get_attribute("dir") == "rtl"
    write(opened.page, "mine")
    assert "English" not in " ".join(tokens(opened.page)[1])


def test_merges_of_shuffled_letters_take_the_place_of_ours_and_go_again(opened):
    ours = wanted(LINE)
    switch = opened.page.get_by_label("Had it learned nothing?")
    switch.select_option("their letters, shuffled")
    rows = tokens(opened.page)[0]
    cut = [shown("ours", untrained().symbols[i]) for i in untrained().encode(LINE)]
    assert rows[1] == cut != ours[1]
    assert [rows[row] for row in (0, 2, 3)] == [ours[row] for row in (0, 2, 3)]
    sentence = opened.page.get_by_text("Learned from shuffled letters")
    assert f"cuts this text into {len(cut)} tokens" in sentence.text_content()
    assert sentence.text_content().endswith(f"sonnets, into {len(ours[1])} tokens.")
    slider = opened.page.locator("input[type=range]")
    slider.press("Home")
    assert tokens(opened.page)[0][1] == list(LINE.replace(" ", "·"))
    switch.select_option("poems and sonnets")
    assert tokens(opened.page)[0] == ours
    assert sentence.count() == 0


def test_pieces_are_reached_by_keyboard_and_have_colours(opened):
    row = opened.page.locator(".lmc-pieces").nth(2)
    visits.focus(row, "*")
    opened.page.keyboard.press("ArrowRight")
    detail = opened.page.locator(".lmc-detail")
    assert detail.text_content() == "GPT-2's BPE: “·is”, ID 318"
    assert row.locator("[tabindex='0']").text_content() == "·is"
    opened.page.get_by_label("show IDs").check()
    beside = row.locator(".lmc-piece").nth(1)
    assert beside.evaluate("e => getComputedStyle(e, '::after').content") == '"318"'
    fills = opened.page.locator(".lmc-piece").evaluate_all(
        "boxes => boxes.map(box => getComputedStyle(box).backgroundColor)"
    )
    assert len(set(fills)) == 5
