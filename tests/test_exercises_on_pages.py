"""Every chapter's exercises: each has its check, solutions pass, starters do not."""

import re

import matplotlib.pyplot as plt
import numpy as np
import pytest

from lmcourse import exercises, numpy_nn
from pages import CHAPTERS, exercise_cells, last_value, page_namespace

EXERCISES = {
    (path.stem, label): cells
    for path in sorted(CHAPTERS.glob("*.md"))
    for label, cells in exercise_cells(path.stem).items()
}
PAGES = sorted({chapter for chapter, _ in EXERCISES})
each = pytest.mark.parametrize(("chapter", "label"), EXERCISES)


@pytest.fixture(autouse=True)
def closed_figures():
    yield
    plt.close("all")


def asked(chapter, label):
    """Return the name of the check that the untouched cell calls."""
    return re.search(r'check\("([^"]+)"', EXERCISES[chapter, label].starter)[1]


def namespace(chapter):
    """Return what an exercise finds: the page's imports and definitions.

    *Backpropagation* builds on its earlier exercises and on two arrays of the page.
    """
    found = page_namespace(chapter)
    if chapter == "backpropagation":
        found |= {name: getattr(numpy_nn, name) for name in numpy_nn.__all__} | found
        found["rng"] = np.random.default_rng(0)
        found["x"] = found["rng"].normal(size=(2, 5, 4))
    return found


@pytest.mark.parametrize("chapter", PAGES)
def test_every_exercise_has_its_check_in_the_pages_order(chapter):
    on_page = [asked(page, label) for page, label in EXERCISES if page == chapter]
    assert on_page == exercises.names(chapter)
    assert len(on_page) >= 4


@each
def test_the_solution_passes(chapter, label):
    verdict = last_value(EXERCISES[chapter, label].solution, namespace(chapter))
    assert verdict, verdict
    assert (verdict.name, verdict.message) == (asked(chapter, label), "right.")


@each
def test_the_untouched_starter_is_told_so(chapter, label):
    verdict = last_value(EXERCISES[chapter, label].starter, namespace(chapter))
    assert not verdict
    assert verdict.message.startswith("nothing to check yet")
    assert verdict.name == asked(chapter, label)
