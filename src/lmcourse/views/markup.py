"""HTML that views are made of; whatever comes from data is escaped."""

import json
from collections.abc import Iterable, Sequence
from html import escape
from importlib import resources


def library(name: str) -> str:
    """Return the text of a file of ``lmcourse/views/static``.

    ``name`` : of the file, such as "d3.min.js" (version 5.16.0), "jquery.slim.min.js"
    (3.7.1), or one of our own scripts, styles and drawings, such as "choice.css".
    """
    return (resources.files("lmcourse.views") / "static" / name).read_text("utf-8")


def script_json(value) -> str:
    """Return a value as JSON that no HTML parser takes for anything else.

    ``value`` : whatever `json.dumps` takes. ``<``, ``>`` and ``&`` are escaped, and the two
    line separators that end a line of JavaScript.
    """
    dumped = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return dumped.translate({ord(c): rf"\u{ord(c):04x}" for c in "<>&\u2028\u2029"})


def table(head: Sequence, rows: Iterable[Sequence]) -> str:
    """Return a table as HTML; the first column names the rows.

    ``head`` : what the columns are called, the first one too, or empty for no head;
    ``rows`` : the cells of each row, its name first; they may be of any type, are shown as
    ``str`` shows them, and escaped.
    """
    columns = "".join(f'<th scope="col">{escape(str(name))}</th>' for name in head)
    lines = [
        f'<tr><th scope="row">{escape(str(name))}</th>'
        + "".join(f"<td>{escape(str(cell))}</td>" for cell in cells)
        + "</tr>"
        for name, *cells in rows
    ]
    columns = f"<thead><tr>{columns}</tr></thead>" if head else ""
    return f"<table>{columns}<tbody>{''.join(lines)}</tbody></table>"
