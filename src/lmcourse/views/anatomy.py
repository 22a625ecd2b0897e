"""A model's parts as a map, from top to bottom: each box opens what it computes.

Radio buttons and style rules do the work, as in `lmcourse.views.samples`: no script.
"""

import hashlib
from collections.abc import Sequence
from html import escape
from typing import NamedTuple

from lmcourse.views.notebook import library

__all__ = ["Anatomy", "Box", "anatomy"]

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


class Anatomy:
    """The map; on paper and in plain text every box stands open."""

    def __init__(self, question: str, rows: Sequence[tuple[str, Sequence[Box]]]):
        self.question, self.rows = question, rows
        self.boxes = [box for _, row in rows for box in row]

    def __repr__(self) -> str:
        return "\n\n".join(
            f"[{box.title}]\n{box.formula}\n{box.code}\n{box.said}" for box in self.boxes
        )

    def _repr_html_(self) -> str:
        key = "lm" + hashlib.sha256(repr(self).encode()).hexdigest()[:10]
        rules = "".join(
            f'.{key}:has([value="{i}"]:checked) [data-box="{i}"] {{display:block}}'
            for i in range(len(self.boxes))
        )
        panels = "".join(_panel(i, box) for i, box in enumerate(self.boxes))
        style = library("anatomy.css") + rules
        return (
            f'<style>{style}</style><div class="lm-anatomy {key}"><fieldset>'
            f"<legend>{escape(self.question)}</legend>{_map(self.rows, key)}</fieldset>"
            f'<div aria-live="polite">{panels}</div></div>'
        )


def _map(rows, key: str) -> str:
    """Draw the boxes, row under row; rows of one part stand in one frame."""
    drawn, number, inside = [], 0, ""
    for part, row in rows:
        labels = []
        for box in row:
            head, _, small = box.name.partition("\n")
            small = f"<small>{escape(small)}</small>" if small else ""
            state = " checked" if number == 0 else ""
            labels.append(
                f'<label><input type="radio" name="{key}" value="{number}"{state}>'
                f"{escape(head)}{small}</label>"
            )
            number += 1
        drawn.append("</div>" if inside and part != inside else "")
        drawn.append(ARROW if len(drawn) > 1 else "")
        if part and part != inside:
            drawn.append(f'<div class="lm-part"><span>{escape(part)}</span>')
        drawn.append(f'<div class="lm-row">{"".join(labels)}</div>')
        inside = part
    return "".join(drawn) + ("</div>" if inside else "")


def _panel(number: int, box: Box) -> str:
    shown = _shares(box) if box.names else _strip(box.values)
    return (
        f'<section data-box="{number}" aria-label="{escape(box.title)}">'
        f"<strong>{escape(box.title)}</strong>"
        f'<p class="lm-formula">{escape(box.formula)}</p>{shown}'
        f"<p>{escape(box.said)}</p><pre>{escape(box.code)}</pre>"
        f'<p><a href="#{escape(box.where)}">Step by step</a></p></section>'
    )


def _shares(box: Box) -> str:
    pairs = zip(box.names, box.values, strict=True)
    told = ((escape(name), f"{value:.3f}".removesuffix(".000")) for name, value in pairs)
    spans = (f"<span>{name} <b>{value}</b></span>" for name, value in told)
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


def anatomy(question: str, rows: Sequence[tuple[str, Sequence[Box]]]) -> Anatomy:
    """Show a model's parts as a map of boxes; a chosen one opens its panel.

    Parameters
    ----------
    question : str
        What the reader is asked to do.
    rows : sequence of (str, sequence of Box)
        From top to bottom: the part that a row belongs to, "" for none, and its boxes.

    Raises
    ------
    ValueError
        If there are fewer than two boxes, or one has no values.
    """
    found = Anatomy(question, rows)
    if len(found.boxes) < 2:
        raise ValueError(f"{len(found.boxes)} box is no map: give two or more")
    for box in found.boxes:
        if not len(box.values) or (box.names and len(box.names) != len(box.values)):
            raise ValueError(f"{box.title!r} needs values, and as many names if any")
    return found
