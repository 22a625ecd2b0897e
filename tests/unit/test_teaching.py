"""Lists for who teaches: plans of weeks, all tasks, every mistake."""

import re
from types import SimpleNamespace

import pytest
from docutils import nodes
from docutils.utils import new_document

from chapters import CHAPTERS
from lmbook.pages import teaching
from lmbook.pages.course import read_course
from lmbook.pages.teaching import plan_faults, read_tasks
from lmcourse.exercises import diagnoses
from test_pages import soup


def test_a_chapter_comes_after_what_it_builds_on():
    chapters = {
        name: SimpleNamespace(builds_on=below)
        for name, below in {"a": (), "b": ("a",), "c": ("a", "b")}.items()
    }
    assert plan_faults([["a"], ["b"], ["c"]], chapters) == []
    assert plan_faults([["a", "b"]], chapters) == []
    assert plan_faults([["b", "a"], ["c"]], chapters) == ["week 1: b lacks a"]
    assert plan_faults([["x"]], chapters) == ["week 1: there is no chapter x"]


@pytest.mark.parametrize("name", read_course())
def test_every_task_is_read_with_its_code(name):
    text = (CHAPTERS / f"{name}.md").read_text(encoding="utf-8")
    tasks = list(read_tasks(text))
    assert len(tasks) == len(re.findall(r"\{exercise-start\}", text)) >= 5
    for task in tasks:
        assert task.attributes
        if task.attributes[0] == "Spot the bug":
            assert "exercises.check(" in task.code
            assert task.solution


def test_words_for_wrong_answers_leave_out_the_right_one():
    assert diagnoses("sequences.sun") == [
        "a 5-gram model sees four characters, *the* and a space. Are the eyes among them?",
        "this sonnet was kept apart: it is not among those that were counted.",
    ]
    parts = {"sequences.last_state": "padding", "backpropagation.norm": "normalised"}
    for name, part in parts.items():  # the second page has a package of checks
        assert any(part in d for d in diagnoses(name))


def test_a_bug_that_its_check_does_not_refuse_stops_the_build(monkeypatch):
    task = teaching.Task("ex-a-b", "B", ["Spot the bug"], "f = 1", "")
    cell = SimpleNamespace(
        source="f = 1\n", outputs=[{"data": {"text/plain": "✓ a.b: right."}}]
    )
    monkeypatch.setattr(
        teaching, "load_executed_chapter", lambda *_: SimpleNamespace(cells=[cell])
    )
    app = SimpleNamespace(srcdir="book/chapters")
    with pytest.raises(LookupError, match="ex-a-b does not fail"):
        teaching._verdict_on_bug(app, "a", task)
    cell.outputs[0]["data"]["text/plain"] = "✗ a.b: it is one."
    assert teaching._verdict_on_bug(app, "a", task) == "it is one."


def test_a_builder_that_writes_no_html_gets_no_lists():
    """The one that follows links has no highlighter, and finds no links in raw HTML."""
    builder = SimpleNamespace(format="", get_relative_uri=lambda *_: "x.html")
    chapters = read_course()
    env = SimpleNamespace(doc2path=lambda name: CHAPTERS / f"{name}.md")
    config = SimpleNamespace(lmbook_chapters=chapters)
    app = SimpleNamespace(builder=builder, env=env, config=config, srcdir=str(CHAPTERS))
    page = new_document("mistakes")
    page += [teaching.teaching_list(kind="mistakes"), nodes.paragraph("", "What stays.")]
    teaching._fill_in_lists(app, page, "mistakes")
    assert [node.astext() for node in page] == ["What stays."]


@pytest.mark.parametrize("line", [":label: ex-a-b\n", ":class: build\n", ""])
def test_a_task_without_its_label_or_its_classes_is_left_out(line):
    """Its page says what it lacks; the lists are made of the others."""
    whole = (
        ":::{exercise-start} Two\n:label: ex-a-c\n:class: build minutes-5 level-1\n:::\n"
    )
    text = f":::{{exercise-start}} One\n{line}:::\n:::{{exercise-end}}\n:::\n{whole}"
    assert [task.label for task in read_tasks(text)] == ["ex-a-c"]


def test_the_pages_list_every_task_and_every_bug():
    tasks, bugs = 0, 0
    for name in read_course():
        on_page = list(read_tasks((CHAPTERS / f"{name}.md").read_text(encoding="utf-8")))
        tasks += len(on_page)
        bugs += sum(task.attributes[0] == "Spot the bug" for task in on_page)
    assert len(soup("instructors").select(".lm-tasks tbody tr")) == tasks
    assert len(soup("mistakes").select(".lm-mistakes .lm-verdict.lm-wrong")) == bugs
