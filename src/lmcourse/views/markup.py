"""HTML that views are made of; whatever comes from data is escaped."""

import json
from collections.abc import Iterable, Sequence
from html import escape
from importlib import resources


def library(name: str) -> str:
    """Return a file of ``static``: d3 5.16.0, jQuery 3.7.1 (slim), our own scripts."""
    return (resources.files("lmcourse.views") / "static" / name).read_text("utf-8")


def script_json(value) -> str:
    """Return a value as JSON that no HTML parser takes for anything else."""
    dumped = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return dumped.translate({ord(c): rf"\u{ord(c):04x}" for c in "<>&\u2028\u2029"})


def table(head: Sequence, rows: Iterable[Sequence]) -> str:
    """Return a table as HTML; the first column names the rows.

    ``head`` : what the columns are called, or empty for no head; ``rows`` : of cells, which
    may be of any type and are escaped.
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
