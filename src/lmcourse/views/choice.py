"""Panels to choose between: radio buttons and style rules do the work, without a script.

On paper and in plain text all of them are shown.
"""

import hashlib
from collections.abc import Iterable
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
    first: int = 0,
    untrained: Iterable[str] = (),
) -> View:
    """Let a reader choose between panels.

    Parameters
    ----------
    kind : str
        What the view is, such as "samples"; its HTML has the class ``lm-KIND``, which
        ``static/choice.css`` styles.
    question, plain : str
        What is to be chosen, and what all panels say as plain text. The names of the radio
        buttons are made of a hash of the latter, so it must differ from view to view of a
        page.
    labels, panels : iterable of str
        What each button says, and what is shown at it; as HTML.
    first : int
        Which is shown first, from 0.
    untrained : iterable of str, optional
        The same panels of a model that has learned nothing: the reader can switch to them.

    Returns
    -------
    View
        Without data: all is in its stored HTML. Its alternative text is the question.
    """
    key = "lm" + hashlib.sha256(plain.encode()).hexdigest()[:10]
    style = library("choice.css")
    buttons = []
    sections = []
    untrained = list(untrained)
    trained = ':has([value="trained"]:checked)' if untrained else ""
    for i, (label, panel) in enumerate(zip(labels, panels, strict=True)):
        buttons.append(radio(key, str(i), label, i == first))
        sections.append(f'<section data-choice="{i}">{panel}</section>')
        chosen = f':has([value="{i}"]:checked)'
        style += f'.{key}{chosen}{trained} [data-choice="{i}"] {{display:block}}'
        if untrained:
            name = f"random-{i}"
            random = ':has([value="random"]:checked)'
            sections.append(f'<section data-choice="{name}">{untrained[i]}</section>')
            style += f'.{key}{chosen}{random} [data-choice="{name}"] {{display:block}}'
    switch = _worlds(f"{key}-world") if untrained else ""
    stored = (
        f'<style>{style}</style><div class="lm-choice lm-{kind} {key}">{switch}<fieldset>'
        f"<legend>{escape(question)}</legend>{''.join(buttons)}</fieldset>"
        f'<div aria-live="polite">{"".join(sections)}</div></div>'
    )
    return View(kind, None, stored, alt=question, plain=plain)


def radio(name: str, value: str, label: str, is_checked: bool) -> str:
    """Return a radio button in its label, as HTML.

    ``name`` : of its group; ``value`` : what choosing it means; ``label`` : HTML;
    ``is_checked`` : whether it is chosen at first.
    """
    state = " checked" if is_checked else ""
    return (
        f'<label><input type="radio" name="{name}" value="{value}"{state}> {label}</label>'
    )


def _worlds(name: str) -> str:
    """Return the switch between a trained model and one with random weights.

    ``name`` : of the group of radio buttons. Returns HTML.
    """
    trained = radio(name, "trained", "trained", True)
    random = radio(name, "random", "random weights", False)
    legend = "<legend>Had it learned nothing?</legend>"
    return f"<fieldset>{legend}{trained}{random}</fieldset>"


def row_of(name: str, names: Iterable[str]) -> int:
    """Return the place of a ``name`` among ``names``, from 0, to show it first.

    Raises
    ------
    ValueError
        If it is none of them; it says which there are.
    """
    names = list(names)
    if name not in names:
        raise ValueError(f"there is no {name!r} to show first, but: {', '.join(names)}")
    return names.index(name)


def samples(
    question: str, shown: dict, pictures=None, first: str = "", answers=None
) -> View:
    """Let a reader choose between texts.

    Parameters
    ----------
    question : str
        What stands above the choice, such as "Who wrote this?".
    shown : dict
        What the reader can choose, such as the name of a writer → (a note in one line, the
        text that is shown), both str.
    pictures : list of str, optional
        For each text HTML that stands beside it, such as a drawing.
    first : str
        The name of the text that is shown first. Default: the first of ``shown``.
    answers : list of str, optional
        For each text HTML that stands below it, as it is to be read after the text.

    Returns
    -------
    View

    Raises
    ------
    ValueError
        If ``first`` is none of the names, or there are not as many pictures or answers.
    """
    pictures = [""] * len(shown) if pictures is None else pictures
    answers = [""] * len(shown) if answers is None else answers
    plain = []
    labels = []
    panels = []
    at = row_of(first, shown) if first else 0
    for (name, (note, body)), picture, answer in zip(
        shown.items(), pictures, answers, strict=True
    ):
        name = tidy(name)
        note = tidy(note)
        body = body.strip("\n")
        plain.append(f"[{name}: {note}]\n{body}")
        labels.append(escape(name))
        written = f'{picture}<p class="lm-text">{escape(body)}</p>'
        beside = f'<div class="lm-beside">{written}</div>'
        panels.append(f"<p>{escape(note)}</p>{beside}{answer}")
    return choice("samples", tidy(question), "\n\n".join(plain), labels, panels, first=at)


def looks(shares, names, *, alt: str, top: float = 1.0) -> str:
    """Draw how far back the last token attends, a bar chart for each layer, as an SVG.

    Parameters
    ----------
    shares : array of shape (rows, layers, tokens)
        The last token's attention weight on each; all of a layer sum to 1.
    names : list of str
        What each row is of.
    alt : str
        What the drawing shows, for readers who cannot see it.
    top : float
        The share that fills a chart's height.

    Returns
    -------
    str
        Bars stand as the tokens do, the last one on the right; a dashed line shows even
        shares.
    """
    shares = as_array(shares)  # (rows, layers, tokens)
    rows, layers, tokens = shares.shape
    wide = 21 * tokens
    unit = 64 / top
    marks = []
    for row, layer in np.ndindex(rows, layers):
        x = 2 + layer * (wide + 22)
        y = 118 * row + 96
        columns = enumerate(shares[row, layer])
        bars = (f"M{x + 21 * i} {y}v{-unit * w:.1f}h18v{unit * w:.1f}z" for i, w in columns)
        even = f"M{x} {y - unit / tokens:.1f}h{wide}"
        marks.append(f'<path d="{"".join(bars)}"/><path class="lm-even" d="{even}"/>')
        marks += [
            f'<text x="{x + 21 * i + 5}" y="{y + 14}">{tokens - 1 - i}</text>'
            for i in range(tokens)
        ]
        marks.append(
            f'<text x="{x}" y="{y - 76}">{escape(names[row])}, layer {layer}</text>'
        )
    size = f"0 0 {layers * (wide + 22) - 18} {118 * rows}"
    return (
        f'<svg class="lm-looks" viewBox="{size}" role="img" '
        f'aria-label="{escape(tidy(alt))}">{"".join(marks)}</svg>'
    )
