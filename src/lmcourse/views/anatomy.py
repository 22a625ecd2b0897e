"""A model's parts on one way up, and switches of which each setting has a picture."""

import hashlib
import itertools
from collections.abc import Mapping, Sequence
from html import escape

from lmcourse.numbers import percent
from lmcourse.views.apart import bars
from lmcourse.views.choice import choice, radio, row_of
from lmcourse.views.markup import library
from lmcourse.views.view import View


def anatomy(question: str, shown: dict, first: str, untrained=None) -> View:
    """Let a reader choose a word, and see its vector part by part, up to the guess.

    Parameters
    ----------
    question : str
        What is to be chosen.
    shown : dict
        A word → its rows, each (a name, a formula, the numbers of a vector or None, what is
        said of it). The numbers are drawn as a strip with a scale of its own; None draws
        none.
    first : str
        The word that is shown first.
    untrained : dict, optional
        The same words and rows of a model that has learned nothing: the reader can switch
        to it.

    Returns
    -------
    View

    Raises
    ------
    ValueError
        If ``untrained`` has other words, or ``first`` is none of them.
    """
    if untrained is not None and list(untrained) != list(shown):
        raise ValueError(f"of the untrained model, these words are wanted: {list(shown)}")
    paragraphs = []
    for word, rows in shown.items():
        lines = [f"{name}: {description}" for name, _, _, description in rows]
        paragraphs.append("\n".join([f"[{word}]", *lines]))
    plain = "\n\n".join(paragraphs)
    panels = map(_rows, shown.values())
    position = row_of(first, shown)
    untrained_panels = map(_rows, (untrained or {}).values())
    words = map(escape, shown)
    return choice("look", question, plain, words, panels, position, untrained_panels)


def _rows(rows) -> str:
    """Return a list of a block's parts as HTML.

    ``rows`` : iterable of (name, formula, numbers, description), three str and a list of
    float or None: the numbers are drawn as a strip, and the description stands below it.
    """
    items = ""
    for name, formula, numbers, description in rows:
        strip = "" if numbers is None else bars(numbers, max(map(abs, numbers)) or 1)
        items += f"<li><b>{escape(name)}<small>{escape(formula)}</small></b>"
        items += f"<div>{strip}<span>{escape(description)}</span></div></li>"
    return f'<ol class="lm-anatomy">{items}</ol>'


def switches(
    question: str, names: Sequence, shown: Mapping, described: Mapping, even
) -> View:
    """Let a reader turn switches, and see the shares that belong to their setting.

    Parameters
    ----------
    question : str
        What the shares are of.
    names : sequence of (str, str)
        Of each switch what it says when off, and when on.
    shown : mapping
        A setting, a tuple of one bool a switch → a dict from names to their shares, 0 to 1.
    described : mapping
        A setting → a sentence about it, a str.
    even : float
        The share that is marked in every bar.

    Returns
    -------
    View
    """
    key = "lm" + hashlib.sha256(repr((names, shown)).encode()).hexdigest()[:10]
    style = library("choice.css")
    panels = ""
    plain = []
    for setting in itertools.product((False, True), repeat=len(names)):
        code = "".join("1" if on else "0" for on in setting)
        chosen = (
            f':has([name="{key}{i}"][value="{digit}"]:checked)'
            for i, digit in enumerate(code)
        )
        style += f'.{key}{"".join(chosen)} [data-choice="{code}"] {{display:block}}'
        rows = "".join(_row(*pair, even) for pair in shown[setting].items())
        panels += f'<section data-choice="{code}"><table class="lm-shares">{rows}</table>'
        panels += f"<p>{escape(described[setting])}</p></section>"
        pairs = zip(names, setting, strict=True)
        labels = ", ".join(if_on if on else if_off for (if_off, if_on), on in pairs)
        plain.append(f"[{labels}] {described[setting]}")
    groups = "".join(_group(f"{key}{i}", pair) for i, pair in enumerate(names))
    stored = f'<style>{style}</style><div class="lm-choice lm-look {key}">{groups}'
    stored += f'<p>{escape(question)}</p><div aria-live="polite">{panels}</div></div>'
    return View("switches", None, stored, alt=question, plain="\n".join(plain))


def _group(name: str, pair: Sequence[str]) -> str:
    """Return two radio buttons as HTML, of which the first is on.

    ``name`` : the attribute by which a browser knows them as a group; ``pair`` : their two
    labels.
    """
    radios = "".join(
        radio(name, str(i), escape(label), i == 0) for i, label in enumerate(pair)
    )
    return f'<fieldset aria-label="{escape(" or ".join(pair))}">{radios}</fieldset>'


def _row(name: str, share: float, even: float) -> str:
    """Return a row of the table as HTML: a name, its share as a bar and as a number.

    ``share`` and ``even`` are between 0 and 1; the bar has a mark at ``even``.
    """
    bar = f'<path class="lm-up" d="M0 3h{100 * share:.1f}v20H0z"/>'
    mark = f'<path class="lm-even" d="M{100 * even:.1f} 0v26"/>'
    frame = 'viewBox="0 0 100 26" preserveAspectRatio="none"'
    drawing = f'<svg class="lm-bars" aria-hidden="true" {frame}>{bar}{mark}</svg>'
    cells = f"<td>{drawing}</td><td>{percent(share)}</td>"
    return f'<tr><th scope="row">{escape(name)}</th>{cells}</tr>'
