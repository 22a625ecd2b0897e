"""Views that run in the page: a stored state for all, and a module for the site."""

import html
import re
from dataclasses import dataclass

from lmcourse.views.view import View

__all__ = ["Still", "play"]

NOTE = "On the book's site this view answers to what you type and click."


def play(module, data, stored, *, alt, caption="", stores=()) -> View:
    """A view that a JavaScript module of the site brings to life.

    Parameters
    ----------
    module : str
        ``lmbook/static/play/MODULE.js``, which exports ``mount(element, data, context)``.
    data : dict
        JSON-ready; handed to ``mount``.
    stored : str
        HTML that is right before any script runs, and is all that a notebook and paper
        show. Whoever makes it escapes what came from data.
    alt : str
        What the view shows, for readers who cannot see it.
    caption : str, optional
    stores : sequence of str
        Which weights and vocabularies it loads, by their names in `lmbook.play.stores`.

    Returns
    -------
    View

    Raises
    ------
    ValueError
        If the module's name is not one.
    """
    if not re.fullmatch("[a-z][a-z-]*", module):
        raise ValueError(f"module must be letters and hyphens, not {module!r}")
    described = {"module": module, "stores": [*stores], "stored": stored, "data": data}
    shown = f'<div class="lmc-stored">{stored}<p><small>{NOTE}</small></p></div>'
    return View("play", alt, caption, described, lambda: shown)


@dataclass(frozen=True)
class Still:
    """A view that stays as it is at first, everywhere, and says why.

    Attributes
    ----------
    stored : str
        HTML; whoever makes it escapes what came from data.
    why : str
        A sentence.
    alt, caption : str
        As of `lmcourse.views.view.View`.
    """

    stored: str
    why: str
    alt: str
    caption: str = ""

    def __repr__(self) -> str:
        return f"[{self.why}] {self.alt}"

    def _repr_html_(self) -> str:
        below = f"<p>{html.escape(self.caption)}</p>" if self.caption else ""
        style = "text-align: left; overflow-wrap: break-word"
        first = f"<p><small>{html.escape(self.why)} This was computed before.</small></p>"
        return f'<div class="lmc-stored" style="{style}">{first}{self.stored}{below}</div>'
