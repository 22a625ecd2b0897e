"""The map of the chapters: what stands where, which lines are drawn, what links say."""

import xml.etree.ElementTree as ET

import pytest

from lmbook.execute.keys import ROOT
from lmbook.pages.course import Chapter, read_course, steps
from lmbook.pages.course_map import BOX, course_map, rows

SVG = "{http://www.w3.org/2000/svg}"


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


@pytest.mark.parametrize("found", [DIAMOND, WIDE, CROSSED, read_course(ROOT)])
def test_a_box_a_chapter_and_a_line_a_step(found):
    html = course_map(found, lambda name: f"{name}.html")
    svg = html[html.index("<svg") : html.index("</svg>") + 6]
    tree = ET.fromstring(svg.replace("<svg", f'<svg xmlns="{SVG[1:-1]}"', 1))
    links = tree.findall(f"{SVG}a")
    assert [a.get("href") for a in links] == [f"{name}.html" for name in found]
    assert len(tree.findall(f".//{SVG}path")) == sum(map(len, steps(found).values()))
    left, top, width, height = map(float, tree.get("viewBox").split())
    places = [link.find(f"{SVG}rect") for link in links]
    corners = [(float(r.get("x")), float(r.get("y"))) for r in places]
    for index, (x, y) in enumerate(corners):
        assert left <= x <= width - BOX[0]
        assert top <= y <= height - BOX[1]
        for u, v in corners[:index]:
            assert abs(x - u) >= BOX[0] or abs(y - v) >= BOX[1], "boxes overlap"


def test_what_the_lines_show_is_told_in_words():
    html = course_map(DIAMOND, lambda name: f"{name}.html")
    assert 'aria-label="Chapter 4, D. Builds on A, B, C."' in html
    assert 'aria-label="Chapter 1, A. Builds on nothing."' in html
    assert '<li value="4"><a href="d.html">What is d?</a></li>' in html
