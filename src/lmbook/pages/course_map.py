"""The front page, made from front matter: ways to begin, and the map of the book.

The directives ``doors`` and ``paths`` have a sentence for each way, as options. On the map
a chapter stands below all that it builds on, in a row of at most three; a line leads to it
from each that no other line leads through. Beside it stand the questions.
"""

import textwrap
from collections.abc import Callable, Iterable
from html import escape
from statistics import fmean

from docutils import nodes
from docutils.parsers.rst.directives import unchanged_required
from sphinx.util.docutils import SphinxDirective

from lmbook.pages.course import PATHS, WAYS, Chapter, direct_prerequisites

DOOR_TITLES = {"read": "Read it", "work": "Work through it"}
PATH_TITLES = PATHS | {"whole": "The whole course"}
WIDTH, BOX, ROW = 380, (120, 54), 92  # units, at most one pixel and a half each
MOST_IN_A_ROW = 3  # chapters in a row


def map_rows(chapters: dict[str, Chapter]) -> list[list[str]]:
    """Return the chapters row by row, each below what it builds on and below its parents.

    A chapter stands as high as it can; if that row is full, in the next.
    """
    taken, found, place = direct_prerequisites(chapters), [], {}
    for name in chapters:
        row = max((place[other] + 1 for other in taken[name]), default=0)
        while row < len(found) and len(found[row]) == MOST_IN_A_ROW:
            row += 1
        found += [[] for _ in range(row + 1 - len(found))]
        found[row].append(name)
        place[name] = row
    across: dict[str, float] = {}
    for row in found:
        row.sort(key=lambda name: fmean([across[other] for other in taken[name]] or [0.5]))
        across |= {name: (i + 0.5) / len(row) for i, name in enumerate(row)}
    return found


def course_map(chapters: dict[str, Chapter], address: Callable[[str], str]) -> str:
    """Return the map as SVG, with the questions beside it, as HTML.

    Parameters
    ----------
    chapters : dict of str to Chapter
    address : callable
        A chapter's name → where its page is.
    """
    placed = map_rows(chapters)
    centres = {
        name: (WIDTH * (i + 0.5) / len(row), ROW * r + BOX[1] / 2 + 1)
        for r, row in enumerate(placed)
        for i, name in enumerate(row)
    }
    pairs = [
        (other, name)
        for name, below in direct_prerequisites(chapters).items()
        for other in below
    ]
    lines = "".join(_arrow(centres[other], centres[name]) for other, name in pairs)
    boxes, questions = [], ""
    for name, chapter in chapters.items():
        below = ", ".join(chapters[other].short for other in chapter.builds_on)
        boxes.append(_box(chapter, centres[name], below or "nothing", address(name)))
        link = f'<a href="{escape(address(name))}">{escape(chapter.title)}</a>'
        questions += f'<li value="{chapter.number}">{link} {reading_time([chapter])}</li>'
    height = ROW * (len(placed) - 1) + BOX[1] + 2
    return (
        f'<div class="course-map"><svg viewBox="0 0 {WIDTH} {height}" role="group" '
        'aria-label="Map of the chapters: each stands below what it builds on">\n'
        f'<g aria-hidden="true">{lines}</g>\n{chr(10).join(boxes)}</svg>\n'
        f"<ol>{questions}</ol></div>\n"
    )


def _arrow(start: tuple[float, float], end: tuple[float, float]) -> str:
    """Return an arrow from below one box to above another."""
    (x, y), (u, v) = start, end
    y, v = y + BOX[1] / 2, v - BOX[1] / 2 - 2
    bend = (v - y) / 2
    return (
        f'<path d="M{x:g} {y:g} C{x:g} {y + bend:g} {u:g} {v - bend:g} {u:g} {v:g}'
        f'M{u - 4:g} {v - 6:g} L{u:g} {v:g} L{u + 4:g} {v - 6:g}"/>'
    )


def _box(chapter: Chapter, centre: tuple[float, float], below: str, address: str) -> str:
    """Return a chapter as a link, whose name tells what the lines show."""
    x, y = centre
    label = f"Chapter {chapter.numeral}, {chapter.short}. Builds on {below}."
    name = textwrap.wrap(chapter.short, 14, break_long_words=False)
    top = y + 5 - 16 * len(name) / 2
    texts = "".join(
        f'<text x="{x:g}" y="{top + 16 * n:g}">{escape(line)}</text>'
        for n, line in enumerate([chapter.numeral, *name])
    )
    corner = f'x="{x - BOX[0] / 2:g}" y="{y - BOX[1] / 2:g}"'
    box = f'<rect {corner} width="{BOX[0]}" height="{BOX[1]}" rx="8"/>'
    return f'<a href="{escape(address)}" aria-label="{escape(label)}">{box}{texts}</a>'


# --- ways to begin ------------------------------------------------------------------------


def reading_time(chapters: Iterable[Chapter]) -> str:
    """Return how long chapters take together, in both ways."""
    both = [sum(chapter.minutes[way] for chapter in chapters) for way in WAYS]
    read, work = (f"{n // 60} h {n % 60} min" if n > 120 else f"{n} min" for n in both)
    return f"<small>{read} to read · {work} to work through</small>"


def doors(chapters: dict[str, Chapter], address: Callable[[str], str], **told: str) -> str:
    """Return a link to the first chapter for each way to read, and what is told of it."""
    html, first = "", escape(address(next(iter(chapters))))
    for way, title in DOOR_TITLES.items():
        link = f'<a class="lm-door" data-way="{way}" href="{first}">{title}</a>'
        html += f"<div>{link}<p>{escape(told[way])}</p></div>\n"
    return f'<div class="lm-doors">\n{html}</div>\n'


def paths(chapters: dict[str, Chapter], address: Callable[[str], str], **told: str) -> str:
    """Return the paths: how long each takes, what is told of it, and its chapters."""
    html = ""
    for path, title in PATH_TITLES.items():
        on = [c for c in chapters.values() if path in (*c.paths, "whole")]
        links = (f'<a href="{escape(address(c.name))}">{escape(c.short)}</a>' for c in on)
        items = "</li>\n<li>".join(links)
        html += f"<div><h3>{title} {reading_time(on)}</h3>\n<p>{escape(told[path])}</p>\n"
        html += f"<ol><li>{items}</li></ol></div>\n"
    return f'<div class="lm-paths">\n{html}</div>\n'


PARTS = {
    "course-map": (course_map, ()),
    "doors": (doors, DOOR_TITLES),
    "paths": (paths, PATH_TITLES),
}


class FrontPage(SphinxDirective):
    """``course-map``, ``doors`` or ``paths``, where it stands."""

    option_spec = dict.fromkeys([*DOOR_TITLES, *PATH_TITLES], unchanged_required)

    def run(self) -> list[nodes.Node]:
        (make, ways), chapters = PARTS[self.name], self.config.lmbook_chapters
        if {*self.options} != {*ways} or (ways and not chapters):
            wanted = ", ".join(f":{way}:" for way in ways) or "nothing"
            raise self.error(f"{self.name} takes {wanted}, a sentence each, and chapters")
        html = make(chapters, self._address, **self.options)
        return [nodes.raw("", html, format="html")]

    def _address(self, name: str) -> str:
        return self.env.app.builder.get_relative_uri(self.env.docname, name)


def setup(app) -> None:
    """Add the directives."""
    for name in PARTS:
        app.add_directive(name, FrontPage)
