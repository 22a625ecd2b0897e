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


def views_with_reasons():
    """Return the views to which a list in docs/play.md gives a reason, by their names."""
    text = (ROOT / "docs/play.md").read_text("utf-8")
    items = re.findall(r"^- (`\w+`(?:(?:, | and )`\w+`)*): \w", text, re.M)
    return {name for item in items for name in re.findall(r"\w+(?=`)", item)}


def test_every_view_has_the_three_states_or_a_reason_in_the_docs():
    assert {*ALL_THREE} | views_with_reasons() == {*NAMES, "poems", "surprise"}
    assert not {*ALL_THREE} & views_with_reasons()


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
