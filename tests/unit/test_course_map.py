"""The map of the chapters: what stands where, which lines are drawn, what links say."""

import pytest

from lmbook.pages.course import Chapter
from lmbook.pages.course_map import course_map, rows


def chapters(**below):
    """Return chapters by what each builds on, in the order given."""
    return {
        name: Chapter(name, number, f"What is {name}?", name.title(), 5, tuple(others))
        for number, (name, others) in enumerate(below.items(), 1)
    }


DIAMOND = chapters(a=[], b=["a"], c=["a"], d=["a", "b", "c"])
WIDE = chapters(a=[], b=["a"], c=["a"], d=["a"], e=["a"], f=["e"])
CROSSED = chapters(a=[], b=[], c=["b"], d=["a"])


@pytest.mark.parametrize(
    ("found", "wanted"),
    [
        (DIAMOND, [["a"], ["b", "c"], ["d"]]),
        (WIDE, [["a"], ["b", "c", "d"], ["e"], ["f"]]),
        (CROSSED, [["a", "b"], ["d", "c"]]),  # each near what it builds on
        ({}, []),
    ],
)
def test_a_chapter_stands_below_what_it_builds_on(found, wanted):
    assert rows(found) == wanted


def test_what_the_lines_show_is_told_in_words():
    html = course_map(DIAMOND, lambda name: f"{name}.html")
    assert html.count("<path") == 4  # that from a to d leads through b and c
    assert 'aria-label="Chapter 4, D. Builds on A, B, C."' in html
    assert 'aria-label="Chapter 1, A. Builds on nothing."' in html
    assert '<li value="4"><a href="d.html">What is d?</a></li>' in html
