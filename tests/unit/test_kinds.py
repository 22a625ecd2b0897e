"""Choices of tasks: what a click tells, and that page and check agree."""

import pytest
from docutils import nodes
from sphinx_exercise.nodes import exercise_enumerable_node

from lmbook.pages import choices
from lmcourse import exercises


@pytest.fixture
def letters(monkeypatch):
    """A chapter *bees* with a check of a letter, and a way to settle choices in it."""
    monkeypatch.setattr(exercises, "_EXERCISES", {})
    monkeypatch.setattr(exercises, "_load", lambda chapter: None)
    words = {"a": "`six` is legs.", "b": None, "c": "a bee is no fly."}
    exercises.predict("bees.wings", **words)
    messages = []
    monkeypatch.setattr(
        choices.logger, "warning", lambda text, *a, **_: messages.append(text % a)
    )

    def settle(right, **models):
        items = [nodes.paragraph("", text) for text in ("six", "four", "two or so —\na ")]
        items[2] += nodes.emphasis("", "fly.")
        listed = nodes.enumerated_list("", *(nodes.list_item("", item) for item in items))
        choose = choices.choice_list("", listed, key="wings", right=right)
        document = nodes.document(None, None)
        document += exercise_enumerable_node("", choose, label="ex-bees-wings")
        document[0]["classes"] = ["predict"]
        attributes = {"docname": "bees", "temp_data": {"lmbook": {"models": models}}}
        app = type("App", (), {"env": type("Env", (), attributes)})
        choices.add_feedback(app, document)
        notes = document[0].findall(nodes.paragraph)
        messages.extend(n.astext() for n in notes if "lm-found-note" in n["classes"])
        return [[node.astext() for node in item] for item in listed], messages

    return settle


def test_what_a_click_tells_is_the_checks_or_the_pages(letters):
    options, messages = letters("b")
    assert options == [["six", "six is legs."], ["four"], ["two or so", "a fly."]]
    assert messages == []


def test_with_another_model_page_and_check_may_differ_and_the_page_says_so(letters):
    note = "Found with the built-in all-MiniLM-L6-v2; not so for small."
    options, messages = letters("a", LMCOURSE_BERT="small")
    assert messages == [note]
    assert options[0] == ["six"]  # right here: no words of a mistake
    messages.clear()
    assert letters("b", LMCOURSE_BERT="small")[1] == []  # they may agree as well


def test_with_another_model_none_may_be_right_and_the_page_says_so(letters):
    options, messages = letters("?", LMCOURSE_BERT="small")
    assert messages == ["Found with the built-in all-MiniLM-L6-v2; not so for small."]
    assert options[0] == ["six", "six is legs."]


def test_page_and_check_agree_on_the_letter(letters):
    _, messages = letters("a")
    assert len(messages) == 2
    assert messages[0].startswith("the choices wings: the page glued 'a', but ✗ bees.wings")
    right = "the choices wings: the page glued 'a', but ✓ bees.wings: right."
    assert messages[1].startswith(right)
