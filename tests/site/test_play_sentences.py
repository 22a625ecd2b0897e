"""The view *sentences* in a browser: a reader's pair is read as transformers reads it."""

import re
from itertools import chain

import pytest
import torch
from playwright.sync_api import expect

import strange
import visits
from berts import another_order, shuffled_in_the_page
from lmbook.play import stores
from lmcourse import views
from test_play_explorer import ask, model, tokenizer

pytestmark = [pytest.mark.browser, pytest.mark.slow]

STORE, LAYER, HEAD = "bert", 1, 2
BOOK = "The animal didn't cross the street"
PAIR = [
    "My brother gave the dog a bone because she was kind",
    "A naïve saxophonist hid it there",
]


def weights(text, bert=None):
    batch = tokenizer()(text, return_tensors="pt")
    with torch.no_grad():
        out = (bert or model())(**batch, output_attentions=True)
    return out.attentions[LAYER][0]


def make():
    tokens = tokenizer()(BOOK).tokens()
    read = (tokens, weights(BOOK), 2, [(2, 3), (8, 9)])
    even = torch.full_like(weights(BOOK), 1 / len(tokens))
    around = (tokenizer().cls_token_id, tokenizer().sep_token_id)
    words = {"notes": ["a note"], "alt": "A line."}
    live = {"layer": LAYER, "around": around}
    view = views.sentences([read], head=HEAD, untrained=[even], **words, **live)
    return view, {"bert": lambda: stores.bert_file(model(), as_int8=False)}


def use(page):
    ask(page)
    page.locator("option:has-text('Yours')").nth(1).wait_for(
        state="attached", timeout=visits.LOAD
    )


def write(page, text):
    """Type, and wait for what is read of it."""
    page.get_by_label("Your own pair").fill(text)
    last = [line for line in text.splitlines() if line.strip()][:2][-1].split()[-1]
    page.locator(f"option:has-text('{last}')").wait_for(state="attached")


def shown(page):
    """Return the tokens, their shares, and the nouns with theirs."""
    words = page.locator(".lmc-word").all_text_contents()
    split = [re.fullmatch(r"(.*?)(?:(\d+)\u2009%)?", word).groups() for word in words]
    rows = page.locator(".lmc-nouns tr").all_text_contents()
    return [token for token, _ in split], [int(n or 0) for _, n in split], rows


def test_the_reader_s_pair_is_what_transformers_computes(opened):
    page = opened.page
    use(page)
    write(page, "\n".join(PAIR))
    for text, query, nouns in zip(
        PAIR, ("she", "it"), (["brother", "dog", "bone"], ["naive"]), strict=True
    ):
        tokens, shares, rows = shown(page)
        assert tokens == tokenizer()(text).tokens()
        wanted = 100 * weights(text)[HEAD, tokens.index(query)]
        assert (torch.tensor(shares) - wanted).abs().max() <= 0.51
        assert [re.match("[a-z]+", row)[0] for row in rows] == nouns
        assert "(named first)" in rows[0]
        assert f"{shares[tokens.index(nouns[-1])]}\u00a0%" in rows[-1]
        page.get_by_role("button", name="next sentence").click()
    assert shown(page)[0] == tokenizer()(BOOK).tokens()  # round again
    assert page.get_by_label("Sentence", exact=True).locator("option").count() == 1 + len(
        PAIR
    )
    write(page, "The last word\n\n Only two lines\nare read")
    assert "first two lines" in page.locator(".play-note").text_content()


def test_nothing_is_loaded_for_an_empty_box(opened):
    page = opened.page
    page.get_by_label("Your own pair").fill(" \n")
    page.get_by_role("button", name="Load the model").click()
    page.get_by_text("There is nothing to read yet: type a line.").wait_for()
    assert page.get_by_role("button", name="Load the model").is_enabled()
    assert not any("play/bert/" in asked for asked in opened.inside)


STRANGE = {
    "emoji": "[UNK] stands for what its vocabulary does not have.",
    "one line of a megabyte": "Of a line the first 46 tokens are read.",
    "empty": "There is nothing to read yet: type a line.",
}


def test_texts_of_all_kinds_are_read_or_told_of(opened):
    page = opened.page
    use(page)
    box = page.get_by_label("Your own pair")
    for name, text in strange.TEXTS.items():
        strange.paste(box, text)
        lines = [line for line in box.input_value().splitlines() if line.strip()]
        read = [
            tokenizer()(line, truncation=True, max_length=48).tokens() for line in lines
        ]
        options = page.get_by_label("Sentence", exact=True).locator("option")
        expect(options).to_have_count(1 + len(read))
        expect(page.locator(".lmc-word")).to_have_count(
            len(read[0] if read else tokenizer()(BOOK).tokens())
        )
        unknown = STRANGE["emoji"] if "[UNK]" in [*chain(*read)] else ""
        expect(page.locator(".play-note")).to_have_text(STRANGE.get(name, unknown))
        full = page.get_by_text("There is room for 600 characters here")
        assert full.is_visible() == (len(text) > 600)


def world(page, name):
    page.get_by_label("Had it learned nothing?").select_option(label=name)
    page.wait_for_function("() => !document.body.innerText.includes('Reading …')")


def sentence(page):
    return page.locator(".play-remains").text_content()


def test_random_weights_are_stored_or_those_of_the_page(opened):
    page, random = opened.page, shuffled_in_the_page(model(), 1, as_int8=False)
    world(page, "random weights")
    even = round(100 / len(tokenizer()(BOOK).tokens()))
    assert set(shown(page)[1]) == {even}
    assert "none of the 5 heads" in sentence(page)  # an even share is nobody's most
    use(page)
    write(page, PAIR[0])
    assert shown(page)[0] == tokenizer()(PAIR[0]).tokens()
    page.wait_for_function("() => !document.body.innerText.includes('Reading …')")
    query = tokenizer()(PAIR[0]).tokens().index("she")
    now, before = (100 * weights(PAIR[0], each)[:, query] for each in (random, model()))
    assert (torch.tensor(shown(page)[1]) - now[HEAD]).abs().max() <= 0.51
    left(page, "With random weights", "she", before, now)
    world(page, "as it is")
    assert (torch.tensor(shown(page)[1]) - before[HEAD]).abs().max() <= 0.51
    assert sentence(page) == ""


def test_states_that_are_chosen_one_after_the_other_at_once_do_no_harm(opened):
    page, wrong = opened.page, []
    use(page)
    write(page, PAIR[0])
    before = shown(page)
    page.on("pageerror", lambda error: wrong.append(str(error)))
    for name in ("random weights", "shuffled words"):  # the second overtakes the first
        page.get_by_label("Had it learned nothing?").select_option(label=name)
    world(page, "as it is")
    world(page, "random weights")
    random = shuffled_in_the_page(model(), 1, as_int8=False)
    query = before[0].index("she")
    wanted = 100 * weights(PAIR[0], random)[HEAD, query]
    assert (torch.tensor(shown(page)[1]) - wanted).abs().max() <= 0.51
    world(page, "as it is")
    assert shown(page) == before
    assert not wrong


def left(page, how, word, before, now):
    """The sentence counts heads; what rounding hides is no greatest share."""

    def most(shares):
        top = shares.round().topk(2).values
        return shares.argmax(-1).where(top[:, 0] > top[:, 1], -1)

    same = int(((most(before) == most(now)) & (most(before) >= 0)).sum())
    some = {0: "none", 1: "one"}.get(same, same)
    assert sentence(page) == (
        f"{how}, “{word}” attends most to the same token as before in {some} of the "
        f"{len(before)} heads."
    )


def test_words_in_another_order_are_read_once_the_model_is_here(opened):
    page = opened.page
    before = shown(page)
    world(page, "shuffled words")
    assert "has to be loaded first" in sentence(page)
    assert shown(page) == before
    ask(page)
    page.locator("option:has-text('Yours')").first.wait_for(
        state="attached", timeout=visits.LOAD
    )
    page.get_by_label("Sentence", exact=True).select_option("0")
    page.get_by_text("in another order").wait_for()
    now, shares, nouns = shown(page)
    assert now != before[0]
    order = another_order(before[0])
    assert now == [before[0][place] for place in order]
    batch = tokenizer()(BOOK, return_tensors="pt")
    batch = {name: each[:, order] for name, each in batch.items()}
    with torch.no_grad():
        read = model()(**batch, output_attentions=True).attentions[LAYER][0]
    chosen = before[0][2]
    wanted = 100 * read[:, now.index(chosen)]
    assert (torch.tensor(shares) - wanted[HEAD]).abs().max() <= 0.51
    assert f"{shares[now.index('street')]}\u00a0%" in nouns[1]
    written = torch.empty_like(wanted)
    written[:, order] = wanted
    left(
        page, "With the words in another order", chosen, 100 * weights(BOOK)[:, 2], written
    )
    page.locator(".lmc-word").nth(3).press("ArrowRight")
    assert page.evaluate("document.activeElement.firstChild.data") == now[4]
