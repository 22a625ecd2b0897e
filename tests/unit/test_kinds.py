"""Tasks as the build sees them: kinds, labels, choices, and what is wrong with them."""

import pytest
from docutils import nodes
from sphinx_exercise.nodes import exercise_enumerable_node

from lmbook.pages import choices
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

```{code-cell} python
import matplotlib.pyplot as plt
plt.plot([1, 2]);
```

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
WRONG = {  # label and class → what is told
    "ex-attention-all-at-once hard": "its :class: is 'hard'; it should be a kind (predict,",
    "ex-attention-narrow-head dropdown": "its :class: is 'dropdown'; it should be a k",
    "ex-attention-merge-heads judge minutes-5 level-1": "it is of the kind Judge, its",
    "ex-embeddings-analogy build minutes-9 level-2": "no check belongs to its label; there",
    "ex-attention-death judge": "its :class: is 'judge'; it should be a kind (predict,",
    "ex-attention-a predict minutes-3": "its :class: is 'predict minutes-3'; it should be",
    "ex-attention-b spot level-1 minutes-3": "its :class: is 'spot level-1 minutes-3'; it",
    "ex-attention-c spot minutes-0 level-4": "its :class: is 'spot minutes-0 level-4'; it",
}


@pytest.mark.slow
def test_what_is_wrong_is_told(book):  # noqa: F811
    asked = [TASK.format(*task.split(" ", 1), "Words.") for task in WRONG]
    (book / "chapters" / "attention.md").write_text(PAGE + "".join(asked))
    contents(book, "attention")
    for name in ("first", "other"):
        (book / "chapters" / f"{name}.md").unlink()
    status, said = run(book)
    assert status == 1
    said = " ".join(said.split())
    for task, words in WRONG.items():
        assert f"the task {task.split()[0]}: {words}" in said
    for words in (
        "the choices near stand in no predict, spot or judge task",
        "the choices far: 'd' was glued, not a letter from a to b",
        "the choices missing: nothing was glued under the name 'missing'",
        "the choices far hold one list",
        "_figures/bee.svg: there is no drawing",
        "the drawing bee needs :name: fig-… and a caption",
    ):
        assert words in said, words


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
        items = [nodes.paragraph("", text) for text in ("six", "four", "two or so —\na ")]
        items[2] += nodes.emphasis("", "fly.")
        listed = nodes.enumerated_list("", *(nodes.list_item("", item) for item in items))
        choose = choices.choose("", listed, key="wings", right=right)
        document = nodes.document(None, None)
        document += exercise_enumerable_node("", choose, label="ex-bees-wings")
        document[0]["classes"] = ["predict"]
        about = {"docname": "bees", "temp_data": {"lmbook": {"models": models}}}
        app = type("App", (), {"env": type("Env", (), about)})
        choices.add_feedback(app, document)
        notes = document[0].findall(nodes.paragraph)
        said.extend(n.astext() for n in notes if "lm-found-note" in n["classes"])
        return [[node.astext() for node in item] for item in listed], said

    return settle


def test_what_a_click_tells_is_the_checks_or_the_pages(letters):
    options, said = letters("b")
    assert options == [["six", "six is legs."], ["four"], ["two or so", "a fly."]]
    assert said == []


def test_with_another_model_page_and_check_may_differ_and_the_page_says_so(letters):
    found = "Found with the built-in all-MiniLM-L6-v2; not so for small."
    options, said = letters("a", LMCOURSE_BERT="small")
    assert said == [found]
    assert options[0] == ["six"]  # right here: no words of a mistake
    said.clear()
    assert letters("b", LMCOURSE_BERT="small")[1] == []  # they may agree as well


def test_page_and_check_agree_on_the_letter(letters):
    _, said = letters("a")
    assert len(said) == 2
    assert said[0].startswith("the choices wings: the page glued 'a', but ✗ bees.wings")
    assert said[1] == "the choices wings: the page glued 'a', but ✓ bees.wings: right."
