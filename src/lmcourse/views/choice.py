"""Panels to choose between: radio buttons and style rules do the work, without a script.

On paper and in plain text all of them are shown.
"""

import hashlib
from collections.abc import Callable, Iterable, Sequence
from html import escape

import numpy as np

from lmcourse.views.checks import as_array
from lmcourse.views.markup import library
from lmcourse.views.view import View, tidy


def choice(
    kind: str,
    question: str,
    plain: str,
    labels: Iterable[str],
    panels: Iterable[str],
    arrange: Callable[[Sequence[str]], str] = "".join,
    first: int = 0,
) -> View:
    """Let a reader choose between panels.

    Parameters
    ----------
    kind : str
        A class, `lm-KIND`, which ``static/choice.css`` styles.
    question, plain : str
        What is to be chosen, and all panels as plain text.
    labels, panels : iterable of str
        As HTML.
    arrange : callable, optional
        Makes one piece of HTML of the buttons.
    first : int
        Which is shown first.
    """
    key = "lm" + hashlib.sha256(plain.encode()).hexdigest()[:10]
    style, buttons, sections = library("choice.css"), [], []
    for i, (label, panel) in enumerate(zip(labels, panels, strict=True)):
        state = " checked" if i == first else ""
        radio = f'<input type="radio" name="{key}" value="{i}"{state}>'
        buttons.append(f"<label>{radio} {label}</label>")
        sections.append(f'<section data-choice="{i}">{panel}</section>')
        style += f'.{key}:has([value="{i}"]:checked) [data-choice="{i}"] {{display:block}}'
    stored = (
        f'<style>{style}</style><div class="lm-choice lm-{kind} {key}"><fieldset>'
        f"<legend>{escape(question)}</legend>{arrange(buttons)}</fieldset>"
        f'<div aria-live="polite">{"".join(sections)}</div></div>'
    )
    return View(kind, None, stored, alt=question, plain=plain)


def samples(question: str, shown: dict, pictures=None, first: str = "") -> View:
    """Let a reader choose between texts.

    Parameters
    ----------
    question : str
        What is to be chosen.
    shown : dict
        Name of the writer → a note in one line, and what it wrote.
    pictures : list of str, optional
        One a writer, as HTML: `looks`, say.
    first : str
        The name that is shown first, where it is not the first one.
    """
    pictures = [""] * len(shown) if pictures is None else pictures
    plain, labels, panels = [], [], []
    at = list(shown).index(first) if first else 0
    for (name, (note, body)), picture in zip(shown.items(), pictures, strict=True):
        name, note, body = tidy(name), tidy(note), body.strip("\n")
        plain.append(f"[{name}: {note}]\n{body}")
        labels.append(escape(name))
        written = f'<p class="lm-text">{escape(body)}</p>'
        panels.append(f"<p>{escape(note)}</p>{picture}{written}")
    return choice("samples", tidy(question), "\n\n".join(plain), labels, panels, first=at)


def looks(shares, *, alt: str, top: float = 1.0) -> str:
    """Draw how far back heads look, a small bar chart each, as an SVG.

    Parameters
    ----------
    shares : array of shape (layers, heads, tokens)
        The weights of the last token on each; every row sums to 1.
    alt : str
    top : float
        The share that fills a chart's height.

    Returns
    -------
    str
        Bars stand as the tokens do, the last one on the right; a dashed line shows even
        shares.
    """
    shares = as_array(shares)  # (layers, heads, tokens)
    layers, heads, tokens = shares.shape
    wide, unit, marks = 11 * tokens, 72 / top, []
    for layer, head in np.ndindex(layers, heads):
        x, y = 2 + head * (wide + 12), 112 * layer + 98
        places = enumerate(shares[layer, head])
        bars = (f"M{x + 11 * i} {y}v{-unit * w:.1f}h9v{unit * w:.1f}z" for i, w in places)
        even = f"M{x} {y - unit / tokens:.1f}h{wide}"
        marks.append(f'<path d="{"".join(bars)}"/><path class="lm-even" d="{even}"/>')
        ends = ((x, tokens - 1), (x + wide - 11, 0))
        marks += [f'<text x="{at}" y="{y + 13}">{back}</text>' for at, back in ends]
    names = [f'<text x="2" y="{112 * i + 16}">block {i}</text>' for i in range(layers)]
    size = f"0 0 {heads * (wide + 12)} {112 * layers + 4}"
    return (
        f'<svg class="lm-looks" viewBox="{size}" role="img" '
        f'aria-label="{escape(tidy(alt))}">{"".join(names + marks)}</svg>'
    )
