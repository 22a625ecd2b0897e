"""Texts to choose between: several writers, one place on the page."""

import hashlib
from html import escape

import numpy as np

from lmcourse.views.checks import as_array
from lmcourse.views.view import text

__all__ = ["Samples", "looks", "samples"]

STYLE = """
.lm-samples {text-align:left}
.lm-samples fieldset {display:flex; flex-wrap:wrap; gap:.3rem; border:0; padding:0;
  margin:0}
.lm-samples legend {font-size:.9em; padding:0 0 .3rem; float:none}
.lm-samples label {border:1px solid currentColor; border-radius:1rem; padding:.15rem .8rem;
  cursor:pointer; font-size:.9em}
.lm-samples label:has(:checked) {outline:3px solid #3067DC; outline-offset:-1px}
.lm-samples label:focus-within {text-decoration:underline}
.lm-samples section {margin-top:.6rem; min-height:11.5rem}
.lm-samples section p:first-child {font-size:.9em; margin:0 0 .4rem}
.lm-samples .lm-text {white-space:pre-wrap; overflow-wrap:anywhere; line-height:1.5;
  font-family:Georgia,'Noto Serif',serif; margin:0}
.lm-looks {display:block; width:100%; max-width:40rem; margin:.4rem 0 .8rem}
.lm-looks text {font:13px system-ui,sans-serif; fill:currentColor}
.lm-looks path {fill:#3b82c4; stroke:none}
.lm-looks .lm-even {fill:none; stroke:currentColor; stroke-dasharray:4 3; opacity:.7}
@media screen {.lm-samples section {display:none}}
"""


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
    names = [f'<text x="2" y="{112 * i + 16}">block {i + 1}</text>' for i in range(layers)]
    size = f"0 0 {heads * (wide + 12)} {112 * layers + 4}"
    label = escape(text("alt", alt))
    return (
        f'<svg class="lm-looks" viewBox="{size}" role="img" aria-label="{label}">'
        f"{''.join(names + marks)}</svg>"
    )


class Samples:
    """Texts of which a reader sees one at a time; on paper and in plain text, all.

    It needs no script: radio buttons and style rules do the work.
    """

    def __init__(self, question: str, shown: list[tuple[str, str, str]], pictures=None):
        self.question, self.shown = question, shown
        self.pictures = pictures or [""] * len(shown)

    def __repr__(self) -> str:
        return "\n\n".join(f"[{name}: {note}]\n{body}" for name, note, body in self.shown)

    def _repr_html_(self) -> str:
        key = "lm" + hashlib.sha256(repr(self).encode()).hexdigest()[:10]
        buttons, sections, rules = [], [], []
        for i, (name, note, body) in enumerate(self.shown):
            state = " checked" if i == 0 else ""
            buttons.append(
                f'<label><input type="radio" name="{key}" value="{i}"{state}> '
                f"{escape(name)}</label>"
            )
            sections.append(
                f'<section data-sample="{i}" aria-label="{escape(name)}">'
                f"<p>{escape(note)}</p>{self.pictures[i]}"
                f'<p class="lm-text">{escape(body)}</p></section>'
            )
            rules.append(
                f'.{key}:has([value="{i}"]:checked) [data-sample="{i}"] {{display:block}}'
            )
        return (
            f"<style>{STYLE}{''.join(rules)}</style>"
            f'<div class="lm-samples {key}"><fieldset>'
            f"<legend>{escape(self.question)}</legend>{''.join(buttons)}</fieldset>"
            f'<div aria-live="polite">{"".join(sections)}</div></div>'
        )


def samples(question: str, shown: dict[str, tuple[str, str]], pictures=None) -> Samples:
    """Let a reader choose between texts.

    Parameters
    ----------
    question : str
        What is to be chosen.
    shown : dict
        Name of the writer → a note in one line, and what it wrote. The first is shown
        first.
    pictures : list of str, optional
        One a writer, as HTML: `looks`, say.

    Raises
    ------
    ValueError
        If there are fewer than two, or not as many pictures.
    TypeError
        If a name, note or text is not a string.
    """
    if len(shown) < 2:
        raise ValueError(f"{len(shown)} text is no choice: give two or more")
    rows = []
    for name, (note, body) in shown.items():
        if not isinstance(body, str):
            raise TypeError(
                f"the text of {name!r} is a {type(body).__name__}, not a string"
            )
        rows.append((text("name", name), text("note", note), body.strip("\n")))
    if pictures is not None and len(pictures) != len(rows):
        raise ValueError(f"{len(pictures)} pictures for {len(rows)} texts: give one each")
    return Samples(text("question", question), rows, pictures)
