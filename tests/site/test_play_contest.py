"""The view *contest* in a browser: its leans are those of transformers' own states."""

from itertools import product

import numpy as np
import pytest
import torch

import visits
from berts import another_order, shuffled_in_the_page
from lmbook.play import stores
from lmcourse import views
from test_play_explorer import model, tokenizer

pytestmark = [pytest.mark.browser, pytest.mark.slow]

STORE = "bert"
WORDS = ["hope", "love"]
LESSONS = [("Let her _ here.", "Like her _ here."), ("I will _ it.", "My own _ fell.")]
BEFORE = [("We _ each spring.", "The _ was lost."), ("I _ it.", "That is a _.")]
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
    data["untrained"][0][2] = 0.3
    data["lessons"] = {"words": WORDS, "pairs": LESSONS, "before": BEFORE}
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


def vectors(bert, batch, at):
    """Return unit vectors, (levels, d_model): of the row before a token, its states."""
    with torch.no_grad():
        states = bert(**batch, output_hidden_states=True).hidden_states
    row = bert.get_input_embeddings().weight[batch["input_ids"][0, at - 1]]
    stacked = torch.stack([row.detach(), *(state[0, at] for state in states)])
    return (stacked / stacked.norm(dim=-1, keepdim=True)).numpy()


def leans(text, word, bert, directions, order=None):
    """Return the leans of a word that a line has once, level by level."""
    batch = tokenizer()(text, return_tensors="pt")
    at = batch.tokens().index(word)
    if order is not None:
        batch = {name: each[:, order] for name, each in batch.items()}
        at = order.tolist().index(at)
    units = vectors(bert, batch, at)
    return [u @ d - m for u, (d, m) in zip(units, directions, strict=True)]


def learned(bert):
    """Return the direction and the middle of each level, from the lessons."""

    def mean(lessons, words, side):
        samples = []
        for word, pair in product(words, lessons):
            batch = tokenizer()(pair[side].replace("_", word), return_tensors="pt")
            samples.append(vectors(bert, batch, batch.tokens().index(word)))
        return np.mean(samples, axis=0)

    verbs, nouns = (mean(LESSONS, WORDS, side) for side in (0, 1))
    verbs[0], nouns[0] = (mean(BEFORE, WORDS[:1], side)[0] for side in (0, 1))
    units = [d / max(np.linalg.norm(d), 1e-9) for d in verbs - nouns]
    return [(u, (v + n) @ u / 2) for u, v, n in zip(units, verbs, nouns, strict=True)]


def sentence(page):
    return page.locator(".play-remains").text_content()


def left(page, how, before, now):
    """The sentence says how many bars point to the same side; a hair is no side."""

    def sides(values):
        return np.where(np.abs(values) < 0.005, 0, np.sign(values))

    same = int(((sides(before) == sides(now)) & (sides(before) != 0)).sum())
    bars = f"of the {len(before)} bars {'point' if same > 1 else 'points'}"
    some = {0: "none", 1: "one"}.get(same, same)
    assert sentence(page) == f"{how}, {some} {bars} to the same side as before."


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


def world(page, name):
    page.get_by_label("Had it learned nothing?").select_option(label=name)
    page.wait_for_function("() => !document.body.innerText.includes('Reading …')")


def test_the_switch_shows_the_stored_lines_of_untrained_layers(opened):
    page = opened.page
    world(page, "random weights")
    rows = [0.2, -0.3] * len(levels())
    rows[1] = 0.3
    assert shown(page) == rows
    left(page, "With random weights", [0.1, -0.1] * len(levels()), rows)
    world(page, "shuffled words")
    assert "has to be loaded first" in sentence(page)
    assert shown(page) == [0.1, -0.1] * len(levels())
    world(page, "as it is")
    assert shown(page) == [0.1, -0.1] * len(levels())
    assert sentence(page) == ""


def test_a_line_of_the_reader_s_own_is_read_with_random_weights(opened):
    """Along directions that the page learns with these weights."""
    page, random = opened.page, shuffled_in_the_page(model(), 1, as_int8=False)
    use(page)
    page.get_by_label("Your line").fill("The mockingbird sang again")
    page.get_by_role("button", name="sang", exact=True).click()
    world(page, "random weights")
    now = leans("The mockingbird sang again", "sang", random, learned(random))
    np.testing.assert_allclose(shown(page), now, atol=0.006)
    before = wanted(["The mockingbird sang again"], "sang")
    left(page, "With random weights", before, shown(page))
    world(page, "as it is")
    np.testing.assert_allclose(shown(page), before, atol=0.006)


def test_words_in_another_order_lean_as_transformers_says(opened):
    page, line = opened.page, "The bobolinks sang again"
    use(page)
    page.get_by_label("Your line").fill(line)
    page.get_by_role("button", name="again", exact=True).click()
    world(page, "shuffled words")
    order = another_order(tokenizer()(line).tokens())
    trained = [(np.array(d), m) for _, d, m in levels()]
    now = leans(line, "again", model(), trained, order)
    np.testing.assert_allclose(shown(page), now, atol=0.006)
    left(page, "With the words in another order", wanted([line], "again"), now)
    page.get_by_label("Your line").fill("again")
    page.get_by_text("one order only").wait_for()
