"""Chapters on the built site: their names, numbers, tops and ends."""

from pathlib import Path
from urllib.parse import urlsplit

import pytest

from lmbook.execute.keys import ROOT
from lmbook.pages.course import next_chapters, read_course
from test_pages import PAGES, soup

COURSE = read_course(ROOT)
chapters = pytest.mark.parametrize("chapter", COURSE.values(), ids=lambda c: c.name)


def words(tag):
    """Return a tag's text in one line."""
    return " ".join(tag.get_text(" ").split())


def led_to(tag):
    """Return which pages a tag's links lead to."""
    return [urlsplit(a["href"]).path.removesuffix(".html") for a in tag.select("a[href]")]


@pytest.mark.parametrize("name", PAGES)
def test_the_sidebar_has_numbers_and_short_names(name):
    entries = [words(a) for a in soup(name).select(".bd-docs-nav li.toctree-l1 > a")]
    wanted = [f"{c.number}. {c.short}" for c in COURSE.values()]
    assert entries[: len(COURSE)] == wanted


@chapters
def test_the_title_is_the_question(chapter):
    title = soup(chapter.name).select_one("article h1")
    assert words(title).startswith(f"{chapter.number}. {chapter.title}")
    assert not soup(chapter.name).select("article h2 .section-number")


@chapters
def test_how_long_and_what_it_builds_on_stand_under_the_title(chapter):
    line = soup(chapter.name).select_one("article h1 + p.course-line")
    read, work = chapter.minutes["read"], chapter.minutes["work"]
    assert words(line).startswith(f"{read} minutes to read · {work} to work through")
    assert led_to(line) == list(chapter.builds_on)


@chapters
def test_the_end_says_what_to_read_next(chapter):
    (end,) = soup(chapter.name).select("article .course-end")
    assert end.find_next_sibling() is None
    after = [other.name for other in next_chapters(chapter.name, COURSE)]
    rows = end.select(".course-row")
    assert [page for row in rows for page in led_to(row)] == [*chapter.builds_on, *after]
    classes = [p["class"][0] for p in end.find_all("p")[:2]]
    assert classes == ["lm-left-out", "lm-checked"]  # before them
    for other in after:
        assert COURSE[other].title in words(end)


@chapters
def test_neighbours_are_called_by_their_short_names(chapter):
    links = soup(chapter.name).select(".prev-next-area a")
    neighbours = {Path(urlsplit(a["href"]).path).stem: a for a in links}
    neighbours = {name: words(a) for name, a in neighbours.items() if name in COURSE}
    assert neighbours
    for name, text in neighbours.items():
        assert text.endswith(f"{COURSE[name].number}. {COURSE[name].short}")


@chapters
def test_figures_and_exercises_are_numbered_by_chapter(chapter):
    page, number = soup(chapter.name), chapter.number
    figures = [words(tag) for tag in page.select("figcaption .caption-number")]
    assert figures == [f"Figure {number}.{n}" for n in range(1, len(figures) + 1)]
    exercises = [words(tag) for tag in page.select("div.exercise .caption-number")]
    numbers = [word for text in exercises for word in text.split() if word[0].isdigit()]
    assert numbers == [f"{number}.{n}" for n in range(1, len(exercises) + 1)]


@chapters
def test_references_call_a_chapter_by_its_short_name(chapter):
    titles = {c.title for c in COURSE.values()}
    for link in soup(chapter.name).select("article p a.reference.internal .std-ref"):
        assert words(link) not in titles
