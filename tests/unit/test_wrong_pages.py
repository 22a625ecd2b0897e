"""What is wrong in pages fails the build, and is told: tasks, choices, proofs, folds."""

import shutil

import pytest

from lmbook.execute.keys import ROOT
from test_build import contents, make_book, run
from test_execute import HEADER

PAGE = """
:::{choices} near
- one
:::

```{code-cell} python
from myst_nb import glue
glue("far", "d", display=False)
glue("near", "a", display=False)
glue("none", "?", display=False)
```

:::{choices} far
- one
- two
:::

:::{choices} none
- one
- two
:::

:::{choices} none
- more
- than
- there
- are
- letters
- for
- six
- seven
- eight
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

:::{drawing} publish-path
:name: fig-path
A path.

1. One.

Between.

1. Two.
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
TASKS = {  # label and class → what is told
    "ex-attention-all-at-once hard": "its :class: is 'hard'; it should be a kind (predict,",
    "ex-attention-masked-softmax dropdown": "its :class: is 'dropdown'; it should be a k",
    "ex-attention-merge-heads judge minutes-5 level-1": "it is of the kind Judge, its",
    "ex-embeddings-analogy build minutes-9 level-2": "no check belongs to its label; there",
    "ex-attention-death judge": "its :class: is 'judge'; it should be a kind (predict,",
    "ex-attention-a predict minutes-3": "its :class: is 'predict minutes-3'; it should be",
    "ex-attention-b spot level-1 minutes-3": "its :class: is 'spot level-1 minutes-3'; it",
    "ex-attention-c spot minutes-0 level-4": "its :class: is 'spot minutes-0 level-4'; it",
}

WRONG = """
:::{deeper-start} Never ended
:::
Text.

## A heading

:::{deeper-end}
:::

:::{deeper-start} One
:::
:::{deeper-start} Two
:::
:::{deeper-end}
:::

:::{deeper-start}
:::
:::{deeper-end}
:::

:::{workshop-start}
:::
:::{workshop-start}
:::
:::{workshop-end}
:::
:::{workshop-end}
:::

```{code-cell} python
1 + 1
```

:::{proof} one_is_one
:::

It is {glue:text}`one_is_one.two`,

and {glue:text}`two_is_two.two:.0%`, and {glue:text}`one_is_one.one:Q`.

- In a list

  :::{proof} one_is_one
  :::
"""
PROOFS = """
from studies.findings import finding

SAID = {"rival": "two", "n": "{twos} numbers", "no_null": "it is exact"}


@finding("One is surely one", **SAID)
def one_is_one(page):
    assert 1 == 1
    return {"one": 1}
"""
# Lines as myst-nb counts them: a directive's second.
SAID = [
    (14, "this deeper-start is not closed before the next, a heading or the page's end"),
    (20, "this deeper-end has no deeper-start"),
    (23, "this deeper-start is not closed before the next, a heading or the page's end"),
    (30, "this deeper-start has no title"),
    (35, "this workshop-start is not closed before the next, a heading or the page's end"),
    (41, "this workshop-end has no workshop-start"),
]
PLACED = [
    "first.md:47: WARNING: in a field of a proof: one_is_one returns no 'twos'; it",
    "first.md:50: WARNING: one_is_one returns no 'two'; it returns one",
    "first.md:52: WARNING: no proof on this page returns 'two_is_two.two'",
    "first.md:52: WARNING: 'one_is_one.one' is 1, which cannot be written in the "
    "format 'Q'",
    "first.md:56: ERROR: a proof stands at the top level of a page, in no other directive",
    "first.md: WARNING: first has no notebook: ",
]


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """What the build of a book of wrong pages said."""
    book = make_book(tmp_path_factory.mktemp("wrong"))
    tasks = [TASK.format(*task.split(" ", 1), "Words.") for task in TASKS]
    for name, parts in {"attention": [PAGE, *tasks], "first": [WRONG]}.items():
        (book / "chapters" / f"{name}.md").write_text("".join([HEADER, *parts]))
    (book / "chapters" / "other.md").unlink()
    studies = book / "src" / "studies" / "first"
    studies.mkdir(parents=True)
    (studies / "proofs.py").write_text(PROOFS)
    (studies / "__init__.py").touch()
    drawing = ROOT / "chapters" / "_figures" / "publish-path.svg"
    (book / "chapters" / "_figures").mkdir(exist_ok=True)
    shutil.copy(drawing, book / "chapters" / "_figures")
    contents(book, "attention", "first")
    status, output = run(book)
    assert status == 1
    return output


@pytest.mark.slow
def test_what_is_wrong_with_tasks_and_drawings_is_told(built):
    output = " ".join(built.split())
    for task, words in TASKS.items():
        assert f"the task {task.split()[0]}: {words}" in output
    for words in (
        "the choices near stand in no predict, spot or judge task",
        "the choices far: 'd' was glued as the right one; it must be a letter from a to b",
        "the choices none: '?' was glued as the right one; it must be a letter from a to b",
        "the choices none are 9; letters end at h",
        "the choices missing: nothing was glued under the name 'missing'",
        "the choices far must hold one list",
        "_figures/bee.svg: there is no drawing",
        "the drawing bee needs :name: fig-… and a caption",
        "below the drawing publish-path stand several lists of steps",
    ):
        assert words in output, words


@pytest.mark.slow
def test_what_is_wrong_with_proofs_and_folds_is_told_by_line(built):
    for line, text in SAID:
        assert f"first.md:{line}: WARNING: {text}" in built
    for text in PLACED:
        assert text in built
    assert built.count("first.md:") == len(SAID) + len(PLACED)
