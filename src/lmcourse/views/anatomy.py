"""A model's parts as a map, from top to bottom: each box opens what it computes."""

import itertools
from collections.abc import Sequence
from functools import partial
from html import escape
from typing import NamedTuple

from lmcourse.views.choice import choice
from lmcourse.views.view import View

SHOWN = 32  # numbers of a vector
ARROW = (
    '<svg class="lm-down" viewBox="0 0 20 16" width="20" height="16" aria-hidden="true">'
    '<path d="M10 0V13M5 8l5 6 5-6"/></svg>'
)


class Box(NamedTuple):
    """One part of a model.

    Attributes
    ----------
    name : str
        On the map; a second line after a newline is smaller.
    title, formula, code : str
        What stands in its panel; the code is what computed the values.
    values : sequence of float
        Of one token: its first numbers are drawn.
    said : str
        What the numbers are.
    where : str
        The page's anchor with more of it.
    names : sequence of str
        What each number belongs to; then names and numbers are written out.
    """

    name: str
    title: str
    formula: str
    code: str
    values: Sequence[float]
    said: str
    where: str
    names: Sequence[str] = ()


def _map(rows, buttons: Sequence[str]) -> str:
    """Draw the boxes, row under row; rows of one part stand in one frame."""
    drawn, inside, remaining = [], "", iter(buttons)
    for part, row in rows:
        drawn.append("</div>" if inside and part != inside else "")
        drawn.append(ARROW if len(drawn) > 1 else "")
        if part and part != inside:
            drawn.append(f'<div class="lm-part"><span>{escape(part)}</span>')
        here = "".join(itertools.islice(remaining, len(row)))
        drawn.append(f'<div class="lm-row">{here}</div>')
        inside = part
    return "".join(drawn) + ("</div>" if inside else "")


def _label(box: Box) -> str:
    head, _, small = box.name.partition("\n")
    return escape(head) + (f"<small>{escape(small)}</small>" if small else "")


def _panel(box: Box) -> str:
    shown = _shares(box) if box.names else _strip(box.values)
    return (
        f"<strong>{escape(box.title)}</strong>"
        f'<p class="lm-formula">{escape(box.formula)}</p>{shown}'
        f"<p>{escape(box.said)}</p><pre>{escape(box.code)}</pre>"
        f'<p><a href="#{escape(box.where)}">Step by step</a></p>'
    )


def _shares(box: Box) -> str:
    pairs = zip(box.names, box.values, strict=True)
    numbers = ((escape(name), f"{value:.3f}".removesuffix(".000")) for name, value in pairs)
    spans = (f"<span>{name} <b>{value}</b></span>" for name, value in numbers)
    return f'<p class="lm-shares">{"".join(spans)}</p>'


def _strip(values: Sequence[float]) -> str:
    """Draw the first numbers: blue above 0, orange below, the larger the stronger."""
    values = [float(value) for value in values[:SHOWN]]
    largest = max(map(abs, values)) or 1
    cells = "".join(
        f'<rect x="{10 * (i % 16)}" y="{12 * (i // 16)}" width="10" height="12" '
        f'class="lm-{"up" if value > 0 else "low"}" '
        f'fill-opacity="{abs(value) / largest:.2f}"><title>{value:.3f}</title></rect>'
        for i, value in enumerate(values)
    )
    height = 12 * -(-len(values) // 16)
    words = ", ".join(f"{value:.2f}" for value in values[:4])
    return (
        f'<svg class="lm-strip" viewBox="0 0 160 {height}" role="img" '
        f'aria-label="It begins {words}">{cells}</svg><p>{words}, …</p>'
    )


def anatomy(question: str, rows: Sequence[tuple[str, Sequence[Box]]]) -> View:
    """Show a model's parts as a map of boxes; a chosen one opens its panel.

    Parameters
    ----------
    question : str
        What the reader is asked to do.
    rows : sequence of (str, sequence of Box)
        From top to bottom: the part that a row belongs to, "" for none, and its boxes.
    """
    boxes = [box for _, row in rows for box in row]
    plain = "\n\n".join(f"[{b.title}]\n{b.formula}\n{b.code}\n{b.said}" for b in boxes)
    labels, panels = map(_label, boxes), map(_panel, boxes)
    return choice("anatomy", question, plain, labels, panels, partial(_map, rows))
