"""The front page, made from front matter: ways to begin, and the map of the book.

The directives ``doors`` and ``paths`` have a sentence for each way, as options; a path has
one more, such as ``:poems-goal:``, for what a reader makes at its end. On the map
a chapter stands below all that it builds on, in a row of at most three; a line leads to it
from each that no other line leads through. Beside it stand the questions.
"""

import textwrap
from collections.abc import Callable, Iterable
from html import escape
from statistics import fmean

from docutils import nodes
from docutils.parsers.rst.directives import unchanged_required
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from lmbook.pages.course import PATHS, WAYS, Chapter, direct_prerequisites

DOOR_TITLES = {"read": "Read it", "work": "Work through it"}
PATH_TITLES = PATHS | {"whole": "The whole course"}
PATH_GOALS = {path: f"{path}-goal" for path in PATH_TITLES}
WIDTH, BOX, ROW = 380, (120, 54), 92  # units, at most one pixel and a half each
MOST_IN_A_ROW = 3  # chapters in a row
LINE = 16  # units from one line of a box to the next
BASELINE = 5  # units from a line's middle down to the foot of its letters
LINE_LETTERS = 14  # letters of a name that a box has room for in a line


def map_rows(chapters: dict[str, Chapter]) -> list[list[str]]:
    """Return the names of the chapters row by row, each below all that it builds on.

    A chapter stands as high as it can; if that row is full (`MOST_IN_A_ROW`), in the next.
    In a row chapters stand in the order, from left to right, of the mean place of what they
    build on directly, so that lines cross little.

    Parameters
    ----------
    chapters : dict of str to Chapter
        Name → chapter, in the order of the book; its ``builds_on`` has names.

    Returns
    -------
    list of list of str
        Row by row from the top, each from the left.
    """
    direct = direct_prerequisites(chapters)
    rows: list[list[str]] = []
    row_of: dict[str, int] = {}
    for name in chapters:
        row = max((row_of[other] + 1 for other in direct[name]), default=0)
        while row < len(rows) and len(rows[row]) == MOST_IN_A_ROW:
            row += 1
        while len(rows) <= row:
            rows.append([])
        rows[row].append(name)
        row_of[name] = row
    across: dict[str, float] = {}  # of each chapter, from 0 on the left to 1
    for row in rows:
        row.sort(key=lambda name: fmean([across[other] for other in direct[name]] or [0.5]))
        across |= {name: (i + 0.5) / len(row) for i, name in enumerate(row)}
    return rows


def course_map(chapters: dict[str, Chapter], address: Callable[[str], str]) -> str:
    """Return the map as SVG, with the questions beside it, as HTML.

    Parameters
    ----------
    chapters : dict of str to Chapter
        Name → chapter, in the order of the book.
    address : callable
        Called with a chapter's name; returns where its page is, a str.

    Returns
    -------
    str
        HTML: the SVG with a box for each chapter, which is a link, and an arrow to it from
        each that it builds on directly; and a list of the chapters' titles, which are
        questions, with the time that each takes.
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
    boxes = []
    questions = ""
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
    """Return an arrow, as SVG, from the lower edge of a box to the upper one of another.

    ``start``, ``end`` : (x, y), the centres of the boxes, in units of the drawing.
    """
    (from_x, from_y), (to_x, to_y) = start, end
    from_y = from_y + BOX[1] / 2
    to_y = to_y - BOX[1] / 2 - 2
    bend = (to_y - from_y) / 2
    curve = (
        f"M{from_x:g} {from_y:g} C{from_x:g} {from_y + bend:g} "
        f"{to_x:g} {to_y - bend:g} {to_x:g} {to_y:g}"
    )
    head = f"M{to_x - 4:g} {to_y - 6:g} L{to_x:g} {to_y:g} L{to_x + 4:g} {to_y - 6:g}"
    return f'<path d="{curve}{head}"/>'


def _box(
    chapter: Chapter, centre: tuple[float, float], builds_on: str, address: str
) -> str:
    """Return a chapter as a box with its number and short name, in SVG; it is a link.

    The lines of text stand in the middle of the box: the number, if there is one, and the
    name, in as many lines as it needs. Its name for a screen reader says what the arrows
    show: "Chapter 3, Attention. Builds on Tokens, Embeddings.".

    ``chapter`` : with ``numeral``, such as "3" or "", and ``short``; ``centre`` : (x, y),
    of the box, in units of the drawing; ``builds_on`` : short names of chapters, or
    "nothing"; ``address`` : where the link leads.
    """
    x, y = centre
    what = f"Chapter {chapter.numeral}, " if chapter.numeral else ""
    label = f"{what}{chapter.short}. Builds on {builds_on}."
    name = textwrap.wrap(chapter.short, LINE_LETTERS, break_long_words=False)
    numeral = [("lm-numeral", chapter.numeral)] if chapter.numeral else []
    lines = numeral + [("lm-name", line) for line in name]  # CSS class, text
    top = y + BASELINE - LINE * (len(lines) - 1) / 2
    texts = "".join(
        f'<text class="{kind}" x="{x:g}" y="{top + LINE * n:g}">{escape(line)}</text>'
        for n, (kind, line) in enumerate(lines)
    )
    corner = f'x="{x - BOX[0] / 2:g}" y="{y - BOX[1] / 2:g}"'
    box = f'<rect {corner} width="{BOX[0]}" height="{BOX[1]}" rx="8"/>'
    return f'<a href="{escape(address)}" aria-label="{escape(label)}">{box}{texts}</a>'


# --- ways to begin ------------------------------------------------------------------------


def reading_time(chapters: Iterable[Chapter]) -> str:
    """Return how long chapters take together, to read and to work through, as HTML.

    Such as "<small>25 min to read · 2 h 30 min to work through</small>". ``chapters`` :
    each with ``minutes``, a dict with ``read`` and ``work``.
    """
    chapters = list(chapters)
    read, work = (
        _duration(sum(chapter.minutes[way] for chapter in chapters)) for way in WAYS
    )
    return f"<small>{read} to read · {work} to work through</small>"


def _duration(minutes: int) -> str:
    """Return a number of minutes as text: "90 min", or above two hours "2 h 30 min"."""
    if minutes > 120:
        return f"{minutes // 60} h {minutes % 60} min"
    return f"{minutes} min"


def doors(
    chapters: dict[str, Chapter], address: Callable[[str], str], **sentences: str
) -> str:
    """Return the two ways to use the book as links.

    Parameters
    ----------
    chapters : dict of str to Chapter
        Name → chapter, in the order of the book: the doors lead to the first.
    address : callable
        Called with a chapter's name; returns where its page is, a str.
    **sentences : str
        ``read`` and ``work``: a sentence about each way.

    Returns
    -------
    str
        HTML.
    """
    html = ""
    first = escape(address(next(iter(chapters))))
    for way, title in DOOR_TITLES.items():
        link = f'<a class="lm-door" data-way="{way}" href="{first}">{title}</a>'
        html += f"<div>{link}<p>{escape(sentences[way])}</p></div>\n"
    return f'<div class="lm-doors">\n{html}</div>\n'


def paths(chapters: dict[str, Chapter], address: Callable[[str], str], **words: str) -> str:
    """Return the paths through the book as HTML: how long each takes, where it leads.

    Parameters
    ----------
    chapters : dict of str to Chapter
        Name → chapter, in the order of the book; its ``paths`` says which paths it is on.
    address : callable
        Called with a page's name; returns where it is, a str.
    **words : str
        For each path ("poems", "weekend", "whole") a sentence about it, by its name; and by
        its name with "-goal" what a reader makes at its end: page, label and words, such as
        "mini-gpt#own A GPT of your own text".

    Returns
    -------
    str
        HTML: of each path its title, how long it takes, its sentence, and a list of links
        to its chapters, the goal at the end.
    """
    html = ""
    for path, title in PATH_TITLES.items():
        along = [c for c in chapters.values() if path in (*c.paths, "whole")]
        items = [_link(address(c.name), c.short) for c in along]
        place, _, goal = words[PATH_GOALS[path]].partition(" ")
        page, _, label = place.partition("#")
        items.append(f"<strong>{_link(f'{address(page)}#{label}', goal)}</strong>")
        html += f"<div><h3>{title} {reading_time(along)}</h3>\n"
        html += f"<p>{escape(words[path])}</p>\n"
        html += "<ol>" + "\n".join(f"<li>{item}</li>" for item in items) + "</ol></div>\n"
    return f'<div class="lm-paths">\n{html}</div>\n'


def _link(address: str, text: str) -> str:
    """Return a link as HTML; address and text are escaped."""
    return f'<a href="{escape(address)}">{escape(text)}</a>'


PARTS = {
    "course-map": (course_map, ()),
    "doors": (doors, (*DOOR_TITLES,)),
    "paths": (paths, (*PATH_TITLES, *PATH_GOALS.values())),
}


class FrontPage(SphinxDirective):
    """``course-map``, ``doors`` or ``paths``, where it stands."""

    option_spec = dict.fromkeys(
        [option for _, options in PARTS.values() for option in options], unchanged_required
    )

    def run(self) -> list[nodes.Node]:
        """Return the part of the front page that the directive's name says, as HTML.

        It is an error if an option is missing (a sentence each), if there is one that the
        directive does not take, or if there are no chapters.
        """
        make, options = PARTS[self.name]
        chapters = self.config.lmbook_chapters
        if {*self.options} != {*options}:
            wanted = ", ".join(f":{option}:" for option in options)
            wanted = f"needs the options {wanted}, each with a sentence"
            raise self.error(f"{self.name} {wanted if options else 'takes no options'}")
        if not chapters:
            raise self.error(f"{self.name} needs a numbered part with chapters in _toc.yml")
        html = make(chapters, self._address, **self.options)
        return [nodes.raw("", html, format="html")]

    def _address(self, name: str) -> str:
        """Return the address of a page, seen from the page that is being built."""
        return self.env.app.builder.get_relative_uri(self.env.docname, name)


def setup(app: Sphinx) -> None:
    """Add the directives ``course-map``, ``doors`` and ``paths``."""
    for name in PARTS:
        app.add_directive(name, FrontPage)
