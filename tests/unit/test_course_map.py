"""The map of the chapters: what stands where, which lines are drawn, what links say."""

from dataclasses import replace
from types import SimpleNamespace

import pytest
from bs4 import BeautifulSoup
from docutils.parsers.rst import DirectiveError
from docutils.statemachine import StringList

from lmbook.pages.course import Chapter
from lmbook.pages.course_map import FrontPage, course_map, doors, map_rows, paths

TIME = {"read": 50, "work": 135}


def chapters(**below):
    """Return chapters by what each builds on, in the order given."""
    return {
        name: Chapter(
            name, number, str(number), f"What is {name}?", name.title(), TIME, tuple(others)
        )
        for number, (name, others) in enumerate(below.items(), 1)
    }


DIAMOND = chapters(a=[], b=["a"], c=["a"], d=["a", "b", "c"])
WIDE = chapters(a=[], b=["a"], c=["a"], d=["a"], e=["a"], f=["e"])
CROSSED = chapters(a=[], b=[], c=["b"], d=["a"])


@pytest.mark.parametrize(
    ("book", "wanted"),
    [
        (DIAMOND, [["a"], ["b", "c"], ["d"]]),
        (WIDE, [["a"], ["b", "c", "d"], ["e"], ["f"]]),
        (CROSSED, [["a", "b"], ["d", "c"]]),  # each near what it builds on
        ({}, []),
    ],
)
def test_a_chapter_stands_below_what_it_builds_on(book, wanted):
    assert map_rows(book) == wanted


def test_what_the_lines_show_is_told_in_words():
    html = course_map(DIAMOND, lambda name: f"{name}.html")
    assert html.count("<path") == 4  # that from a to d leads through b and c
    assert 'aria-label="Chapter 4, D. Builds on A, B, C."' in html
    assert 'aria-label="Chapter 1, A. Builds on nothing."' in html
    took = "<small>50 min to read · 2 h 15 min to work through</small>"
    assert f'<li value="4"><a href="d.html">What is d?</a> {took}</li>' in html


@pytest.mark.parametrize("numeral", ["1", ""])
def test_the_text_of_a_box_stands_in_its_middle(numeral):
    book = {"a": replace(DIAMOND["a"], numeral=numeral, short="Words in a row")}
    box = BeautifulSoup(course_map(book, str), "html.parser").select_one("svg a")
    middle = float(box.rect["y"]) + float(box.rect["height"]) / 2
    feet = [float(line["y"]) for line in box.select("text")]
    assert len(feet) == len(numeral) + 1
    assert sum(feet) / len(feet) == middle + 5  # the letters of a line stand above its foot


def parts(html):
    return BeautifulSoup(html, "html.parser").select("div > div")


def test_two_doors_lead_to_the_first_chapter():
    descriptions = {"read": "No code.", "work": "Code & <b>all</b>."}
    cards = parts(doors(DIAMOND, lambda name: f"{name}.html", **descriptions))
    links = [card.select_one("a.lm-door") for card in cards]
    assert [link.get_text() for link in links] == ["Read it", "Work through it"]
    assert [a["data-way"] for a in links] == ["read", "work"]
    assert {a["href"] for a in links} == {"a.html"}
    assert [card.p.get_text() for card in cards] == [*descriptions.values()]


def test_a_path_has_its_chapters_in_order_and_their_minutes():
    on = {"a": ("poems",), "b": (), "c": ("weekend", "poems"), "d": ("weekend",)}
    book = {name: replace(DIAMOND[name], paths=way) for name, way in on.items()}
    descriptions = {"poems": "For <an> hour.", "weekend": "Two days.", "whole": "All."}
    goals = {f"{path}-goal": f"play#{path} Your <own> {path}" for path in descriptions}
    cards = parts(paths(book, lambda name: f"{name}.html", **descriptions, **goals))
    assert [card.p.get_text() for card in cards] == [*descriptions.values()]
    links = [" ".join(a["href"] for a in card.select("li a")) for card in cards]
    assert links == [
        "a.html c.html play.html#poems",
        "c.html d.html play.html#weekend",
        "a.html b.html c.html d.html play.html#whole",
    ]
    assert cards[0].strong.get_text() == "Your <own> poems"
    assert cards[1].small.get_text() == "100 min to read · 4 h 30 min to work through"
    assert cards[2].small.get_text() == "3 h 20 min to read · 9 h 0 min to work through"


@pytest.mark.parametrize(
    ("name", "options", "book", "message"),
    [
        ("course-map", {}, {}, "course-map needs a numbered part with chapters"),
        ("doors", {"read": "a", "work": "b"}, {}, "doors needs a numbered part"),
        ("doors", {"read": "a"}, DIAMOND, "doors needs the options :read:, :work:, each"),
        ("course-map", {"read": "a"}, DIAMOND, "course-map takes no options"),
    ],
)
def test_what_the_front_page_lacks_is_an_error(name, options, book, message):
    env = SimpleNamespace(config=SimpleNamespace(lmbook_chapters=book))
    state = SimpleNamespace(document=SimpleNamespace(settings=SimpleNamespace(env=env)))
    machine = SimpleNamespace(reporter=None)
    directive = FrontPage(name, [], options, StringList(), 1, 0, "", state, machine)
    with pytest.raises(DirectiveError) as caught:
        directive.run()
    assert message in caught.value.msg
