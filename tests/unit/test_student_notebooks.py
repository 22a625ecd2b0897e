"""A chapter as a notebook: what is left of it where solutions are left out."""

from types import SimpleNamespace

import pytest

from lmbook.execute.verdicts import code_cells
from lmbook.publish.notebooks import chapter_notebook

PAGE = """# A page

:::{{exercise-start}} Add
:label: ex-add
:::
{starter}
:::{{exercise-end}}
:::
:::{{solution-start}} ex-add
:::
{solution}
:::{{solution-end}}
:::
{after}
"""


def cells(*sources):
    return "\n".join(f"```{{code-cell}} python\n{source}\n```\n" for source in sources)


def published(source, student):
    """Return the code cells of a page's notebook, without the one that installs."""
    links = SimpleNamespace(
        name="page",
        base="",
        source=source,
        page=lambda target, text: text,
        exercise=lambda label: "Exercise 1",
        reference=lambda label, text: "Exercise 1",
    )
    notebook = chapter_notebook(links, "lmcourse-1-py3-none-any.whl", student=student)
    return code_cells(notebook)[1:]


def handed_out(starter, solution, *after):
    """Return the code of a page's notebook for students, without the cell that installs."""
    source = PAGE.format(
        starter=cells(starter), solution=cells(solution), after=cells(*after)
    )
    return [cell.source for cell in published(source, student=True)]


def test_what_needs_a_solution_is_left_out_and_what_needs_that_and_so_on():
    starter = "def add(a, b): ..."
    solution = "def solved(a, b):\n    return a + b"
    needs = ["total = solved(1, 2)", "half = total / 2", "def show():\n    print(half)"]
    others = ["count = 3", "print(count, add)"]
    after = [needs[0], others[0], needs[1], others[1], needs[2], "show()"]
    assert handed_out(starter, solution, *after) == [starter, *others]


def test_what_another_cell_defines_as_well_stays():
    solution = "total = 3"
    assert handed_out("total = ...", solution, "print(total)") == [
        "total = ...",
        "print(total)",
    ]


@pytest.mark.parametrize("student", [False, True])
@pytest.mark.parametrize("more", ["", "hide-input, "])
def test_why_an_output_is_not_compared_is_for_authors_alone(more, student):
    options = f":tags: [{more}nbval-ignore-output]\n:why-not-compared: it is the time\n"
    (cell,) = published(cells(f"{options}\nprint(1)"), student)
    assert cell.source == "print(1)"
    assert "why-not-compared" not in cell.metadata
