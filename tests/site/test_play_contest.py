"""The view *contest* in a browser: its leans are those of transformers' own states."""

import numpy as np
import pytest
import torch

import visits
from lmbook.play import stores
from lmcourse import views
from test_play_explorer import model, tokenizer

pytestmark = [pytest.mark.browser, pytest.mark.slow]

STORE = "bert"
TEXTS = ["They let her dance again", "I <b>dance the dance"]


def levels():
    config, rng = model().config, np.random.default_rng(0)
    names = ["the word before", "before layer 0"]
    names += [f"after layer {i}" for i in range(config.num_hidden_layers)]
    return [[n, (rng.standard_normal(config.hidden_size) / 20).tolist()] for n in names]


def make():
    around = [tokenizer().cls_token_id, tokenizer().sep_token_id]
    told = [[name, 0.1, -0.1] for name, _ in levels()]
    data = {"texts": TEXTS, "word": "dance", "told": told, "levels": levels()}
    view = views.View(
        "contest-view",
        data | {"around": around},
        "<p>stored</p>",
        alt="A contest.",
        stores=["bert", "bert-pieces"],
    )
    return view, {"bert": lambda: stores.bert_file(model(), as_int8=False)}


def ask(page):
    page.get_by_role("button", name="Load the model").click()


def use(page):
    ask(page)
    page.locator(".lmw-words button").first.wait_for(timeout=visits.LOAD)


def shown(page):
    cells = page.locator("tbody td").all_text_contents()
    return [float(cell.split()[0].replace("−", "-")) for cell in cells]


def wanted(texts, word):
    """Return the leans of all its occurrences, level by level."""
    columns = []
    for text in texts:
        batch = tokenizer()(text, return_tensors="pt")
        with torch.no_grad():
            states = model()(**batch, output_hidden_states=True).hidden_states
        for at in (i for i, token in enumerate(batch.tokens()) if token == word):
            vectors = [states[0][0, at - 1], *(state[0, at] for state in states)]
            units = [(v / v.norm()).numpy() for v in vectors]
            columns.append([u @ d for u, (_, d) in zip(units, levels(), strict=True)])
    return np.transpose(columns).ravel()


def test_leans_are_those_of_the_model(opened):
    page = opened.page
    use(page)
    np.testing.assert_allclose(shown(page), wanted(TEXTS, "dance"), atol=0.006)
    page.get_by_role("button", name="again", exact=True).click()
    np.testing.assert_allclose(shown(page), wanted(TEXTS, "again"), atol=0.006)
    page.get_by_label("Your line").fill("again and again")
    page.wait_for_function("document.querySelectorAll('.lmw-words button').length == 2")
    np.testing.assert_allclose(
        shown(page), wanted(["again and again"], "again"), atol=0.006
    )
    page.get_by_label("Your line").fill("")
    page.get_by_text("Type a line.").wait_for()
