"""Had it learned nothing? Every live view of a trained model answers, or says why not."""

import importlib
import re

import pytest

import visits
from bare import opening
from serving import ROOT
from test_play_views import NAMES

pytestmark = [pytest.mark.browser, pytest.mark.slow]

ALL_THREE = ["block", "contest", "dates", "digits", "explorer", "generator"]
ALL_THREE += ["own_poems", "poems", "sentences", "sequence", "shannon", "talker", "whole"]
AFTER_A_CLICK = {"contest", "explorer", "sentences", "talker"}  # the model is loaded
REASONS = {
    "neighbours": "a table reads no text and counts have no weights",
    "tokenizer": "it has no weights",
    "superposition": "what it learns from are random numbers",
    "choices": "what it learns from are the reader's choices",
    "film": "its first stop has random weights",
    "training": "the view is a training",
    "own_text": "the view is a training",
    "neurons": "the shuffled copy is one of the two lists",
    "dials": "there is no model",
    "graph": "there is no model",
    "toy": "there is no model",
    "order": "the reader puts the words in another order",
    "lengths": "it draws a study's curves",
    "sorting": "they tell what the model answered when the page was built",
    "word_removal": "they tell what the model answered when the page was built",
    "surprise": "it tells what the model answered when the page was built",
}
ASIDE = [
    "choices",
    "film",
    "superposition",
    "tokenizer",
]  # a switch of two states
IS_OTHER = """before => {
  const text = document.querySelector(".play-remains").textContent;
  return !text.startsWith("Reading") && text !== before && Boolean(text);
}"""


def test_every_view_has_the_three_states_or_a_reason_in_the_docs():
    assert {*ALL_THREE} | {*REASONS} == {*NAMES, "poems", "surprise"}
    assert not {*ALL_THREE} & {*REASONS}
    text = (ROOT / "docs/play.md").read_text("utf-8")
    for name, reason in REASONS.items():
        assert re.search(rf"^- .*`{name}`.*: {re.escape(reason)}", text, re.M), name


@pytest.mark.parametrize("name", ALL_THREE)
def test_the_states_are_there_and_a_sentence_changes_with_them(browser, address, name):
    module = importlib.import_module(f"test_play_{name}")
    with opening(browser, address(module, "http")) as visit:
        page = visit.page
        if name == "talker":
            module.load(page)
            module.say(page, "Name a colour of the sky.")
        elif name in AFTER_A_CLICK:
            module.use(page)
        switch = page.get_by_label("Had it learned nothing?")
        sentence = page.locator(".play-remains")
        assert switch.count() == 1
        names = switch.locator("option").all_text_contents()
        assert names[:2] == ["as it is", "random weights"]
        assert names[2].startswith("shuffled ")
        assert sentence.text_content() == ""
        text = ""
        for state in names[1:]:
            switch.select_option(label=state)
            page.wait_for_function(IS_OTHER, arg=text, timeout=visits.LOAD)
            text = sentence.text_content()
        switch.select_option(label="as it is")
        sentence.filter(has_not_text=re.compile(".")).wait_for(state="attached")
        visit.clean()


@pytest.mark.parametrize("name", ASIDE)
def test_a_part_of_the_switch_is_there(browser, address, name):
    module = importlib.import_module(f"test_play_{name}")
    with opening(browser, address(module)) as visit:
        page = visit.page
        switch = page.locator("label").filter(has_text="Had it learned nothing?")
        before = page.locator(".lmc-canvas").inner_text()
        switch.locator("select").select_option(index=1)
        page.wait_for_function(
            "before => document.querySelector('.lmc-canvas').innerText !== before",
            arg=before,
        )
        visit.clean()
