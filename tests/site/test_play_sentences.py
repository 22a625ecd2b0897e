"""The view *sentences* in a browser: a reader's pair is read as transformers reads it."""

import re

import pytest
import torch

import visits
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


def weights(text):
    with torch.no_grad():
        out = model()(**tokenizer()(text, return_tensors="pt"), output_attentions=True)
    return out.attentions[LAYER][0]


def make():
    tokens = tokenizer()(BOOK).tokens()
    read = (tokens, weights(BOOK), 2, [(2, 3), (8, 9)])
    even = torch.full_like(weights(BOOK), 1 / len(tokens))
    around = (tokenizer().cls_token_id, tokenizer().sep_token_id)
    told = {"notes": ["a note"], "alt": "A line."}
    live = {"layer": LAYER, "around": around}
    view = views.sentences([read], head=HEAD, untrained=[even], **told, **live)
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
        assert f"{shares[tokens.index(nouns[-1])]} %" in rows[-1]
        page.get_by_role("button", name="next sentence").click()
    assert shown(page)[0] == tokenizer()(BOOK).tokens()  # round again
    assert page.get_by_label("Sentence", exact=True).locator("option").count() == 1 + len(
        PAIR
    )
    write(page, "The last word\n\n Only two lines\nare read")
    assert "first two lines" in page.locator(".play-note").text_content()


def test_with_random_weights_only_the_stored_sentences_are_shown(opened):
    page = opened.page
    worlds = page.get_by_label("Had it learned nothing?")
    worlds.select_option(label="random weights")
    even = round(100 / len(tokenizer()(BOOK).tokens()))
    assert set(shown(page)[1]) == {even}
    use(page)
    write(page, PAIR[0])
    assert (
        worlds.input_value() == "0"
    )  # the reader's own pair was read by the trained model
    assert shown(page)[0] == tokenizer()(PAIR[0]).tokens()
    worlds.select_option(label="random weights")
    assert shown(page)[0] == tokenizer()(BOOK).tokens()
    assert set(shown(page)[1]) == {even}
