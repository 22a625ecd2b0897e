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
    return [
        [n, (rng.standard_normal(config.hidden_size) / 20).tolist(), 0.01] for n in names
    ]


def make():
    around = [tokenizer().cls_token_id, tokenizer().sep_token_id]
    data = {"texts": TEXTS, "word": "dance", "levels": levels(), "around": around}
    data["told"] = [[name, 0.1, -0.1] for name, *_ in levels()]
    data["untrained"] = [[name, 0.2, -0.3] for name, *_ in levels()]
    loads = ["bert", "bert-pieces"]
    view = views.View("contest-view", data, "<p>stored</p>", alt="Leans.", stores=loads)
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
            row = model().get_input_embeddings().weight[batch["input_ids"][0, at - 1]]
            vectors = [row.detach(), *(state[0, at] for state in states)]
            units = [(v / v.norm()).numpy() for v in vectors]
            columns.append(
                [u @ d - m for u, (_, d, m) in zip(units, levels(), strict=True)]
            )
    return np.transpose(columns).ravel()


def test_leans_are_those_of_the_model(opened):
    page = opened.page

    def hold(texts, word):
        np.testing.assert_allclose(shown(page), wanted(texts, word), atol=0.006)

    use(page)
    hold(TEXTS, "dance")
    page.get_by_role("button", name="again", exact=True).click()
    hold(TEXTS, "again")
    page.get_by_label("Your line").fill("again and again")
    page.wait_for_function("document.querySelectorAll('.lmw-words button').length == 2")
    hold(["again and again"], "again")


def test_the_switch_shows_the_stored_lines_of_untrained_layers(opened):
    page = opened.page
    worlds = page.get_by_label("Had it learned nothing?")
    worlds.select_option(label="random weights")
    assert shown(page) == [0.2, -0.3] * len(levels())
    worlds.select_option(label="trained")
    assert shown(page) == [0.1, -0.1] * len(levels())
    use(page)
    worlds.select_option(label="random weights")
    assert shown(page) == [0.2, -0.3] * len(levels())
    page.get_by_role("button", name="again", exact=True).click()
    assert worlds.evaluate("each => each.value") == "0"
    np.testing.assert_allclose(shown(page), wanted(TEXTS, "again"), atol=0.006)
