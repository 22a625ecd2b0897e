"""Tasks as the build sees them: kinds, labels, choices, and what is wrong with them."""

import pytest
from docutils import nodes
from sphinx_exercise.nodes import exercise_enumerable_node

from lmbook.pages import choices, tasks
from lmcourse import exercises
from test_build import book, contents, run  # noqa: F401 (a fixture)

PAGE = """\
---
jupytext: {text_representation: {extension: .md, format_name: myst}}
kernelspec: {display_name: Python 3, language: python, name: python3}
---

# Wrong

:::{choices} near
- one
:::

```{code-cell} python
from myst_nb import glue
glue("far", "d", display=False)
glue("near", "a", display=False)
```

:::{choices} far
- one
- two
:::

:::{choices} missing
- one
:::

:::{choices} far
Prose.
:::

:::{drawing} bee
:name: fig-bee
A bee.
:::

:::{drawing} bee
A bee.
:::

"""
TASK = """\
:::{{exercise-start}} A title
:label: {}
:class: {}
:::
{}
:::{{exercise-end}}
:::

"""
WRONG = {
    ("ex-attention-window-mask", "quiz"): "its kind is 'quiz'; there are predict, spot",
    ("ex-attention-masked-softmax", "build judge"): "its kind is 'build judge'; there",
    ("ex-attention-bee", "build"): "no check belongs to its label; there are",
    ("ex-embeddings-analogy", "build"): "no check belongs to its label; there are",
    ("ex-attention-leave-one-out", "dropdown"): "it has no kind; :class: is one of",
}


def test_right_letters_are_hashed_as_everywhere():
    """FNV-1a, 32 bits; ``foobar`` is of its authors' test vectors."""

    def reference(data):
        found = 0x811C9DC5
        for byte in data:
            found = ((found ^ byte) * 0x01000193) & 0xFFFFFFFF
        return found

    assert reference(b"foobar") == 0xBF9CF968
    assert choices.hash_answer("foo", "b") == f"{reference(b'foo:b'):08x}"
    assert len({choices.hash_answer("x", letter) for letter in choices.LETTERS}) == 8


def test_a_chapters_checks_have_labels():
    table = tasks.registered("bert-internals")
    assert table["ex-bert-internals-last-four"] == "bert-internals.last_four"
    assert tasks.registered("glossary") == {}


@pytest.mark.slow
def test_what_is_wrong_is_told(book):  # noqa: F811
    asked = [TASK.format(*task, "Words.") for task in WRONG]
    (book / "chapters" / "attention.md").write_text(PAGE + "".join(asked))
    contents(book, "attention")
    for name in ("first", "other"):
        (book / "chapters" / f"{name}.md").unlink()
    status, said = run(book)
    assert status == 1
    said = " ".join(said.split())
    for (label, _), words in WRONG.items():
        assert f"the task {label}: {words}" in said
    for words in (
        "the choices near stand in no predict, spot or judge task",
        "the choices far: 'd' was glued, not a letter from a to b",
        "the choices missing: nothing was glued under the name 'missing'",
        "the choices far hold one list",
        "_figures/bee.svg: there is no drawing",
        "the drawing bee needs :name: fig-… and a caption",
    ):
        assert words in said, words


def test_a_task_is_of_its_checks_kind(monkeypatch):
    monkeypatch.setattr(exercises, "_EXERCISES", {})
    monkeypatch.setattr(exercises, "_load", lambda chapter: None)
    exercises.exercise("bees.wings", kind="spot the bug")(lambda answer: None)
    tasks.check("bees", "ex-bees-wings", ["spot"], True)
    with pytest.raises(ValueError, match=r"of the kind 'build', its check bees.wings is"):
        tasks.check("bees", "ex-bees-wings", ["build"], True)


@pytest.fixture
def letters(monkeypatch):
    """A chapter *bees* with a check of a letter, and a way to settle choices in it."""
    monkeypatch.setattr(exercises, "_EXERCISES", {})
    monkeypatch.setattr(exercises, "_load", lambda chapter: None)
    words = {"a": "`six` is legs.", "b": None, "c": "a bee is no fly."}
    exercises.predict("bees.wings", **words)
    said = []
    monkeypatch.setattr(
        choices.logger, "warning", lambda text, *a, **_: said.append(text % a)
    )

    def settle(right, **models):
        items = [
            nodes.paragraph("", "", nodes.Text(text)) for text in ("six", "four", "two")
        ]
        items[2] += nodes.Text(" or so —\nthat would be ")
        items[2] += nodes.emphasis("", "", nodes.Text("flies."))
        listed = nodes.enumerated_list("", *(nodes.list_item("", item) for item in items))
        choose = choices.choose("", listed, key="wings", right=right)
        document = nodes.document(None, None)
        document += exercise_enumerable_node("", choose, label="ex-bees-wings")
        document[0]["classes"] = ["predict"]
        about = {"docname": "bees", "temp_data": {"lmbook": {"models": models}}}
        app = type("App", (), {"env": type("Env", (), about)})
        choices.add_feedback(app, document)
        said.extend(
            note.astext()
            for note in document[0].findall(nodes.paragraph)
            if "lm-found-note" in note["classes"]
        )
        return [[node.astext() for node in item] for item in listed], said

    return settle


def test_what_a_click_tells_is_the_checks_or_the_pages(letters):
    options, said = letters("b")
    assert options == [
        ["six", "six is legs."],
        ["four"],
        ["two or so", "that would be flies."],
    ]
    assert said == []


def test_with_another_model_page_and_check_may_differ_and_the_page_says_so(letters):
    found = "Found with the built-in all-MiniLM-L6-v2; not so for small."
    options, said = letters("a", LMCOURSE_BERT="small")
    assert said == [found]
    assert options[0] == ["six"]  # right here: no words of a mistake


def test_with_another_model_they_may_agree(letters):
    assert letters("b", LMCOURSE_BERT="small")[1] == []


def test_page_and_check_agree_on_the_letter(letters):
    _, said = letters("a")
    assert len(said) == 2
    assert said[0].startswith("the choices wings: the page glued 'a', but ✗ bees.wings")
    assert said[1] == "the choices wings: the page glued 'a', but ✓ bees.wings: right."
