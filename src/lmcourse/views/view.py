"""The object that every view is: a description, and ways to show it."""

import re
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, field

from lmcourse.views import notebook

MIME = "application/vnd.lmcourse.view+json"
PLOTLY = "application/vnd.plotly.v1+json"
VERSION = 2


def tidy(text: str) -> str:
    """Return a text in one line, a single space between its words.

    A no-break space, as in "71 %", belongs to a word and stays.
    """
    return re.sub(r"[^\S\N{NO-BREAK SPACE}]+", " ", text).strip()


@dataclass(frozen=True)
class View:
    """One view, ready to be a cell's last expression.

    Attributes
    ----------
    kind : str
        What draws it: "head_view", "toy-view", ... On the site a module that
        `lmbook.pages.renderer` knows, in Jupyter and Colab a function of
        `lmcourse.views.notebook`, if it has one.
    data : dict or None
        JSON-ready, rounded, the same on every run. None where nothing draws it: it stays
        as it is stored.
    stored : str
        HTML that is right before any script runs, and all that paper shows; whoever makes
        it escapes what came from data. Where it is empty, `lmbook` tells the data in a
        table.
    alt : str
        What a reader who cannot see the view should know. Never empty.
    plain : str
        The view as plain text, if that is more than its alternative text.
    stores : sequence of str
        Which weights and vocabularies it loads on the site, by their names in
        `lmbook.play.stores.STORES`.
    extra : dict of str to object
        MIME type, such as `PLOTLY`, that of a plotly figure → what a notebook holds of the
        view in that form, beside HTML, plain text and the site's own form.

    Raises
    ------
    ValueError
        If `alt` is empty.
    """

    kind: str
    data: dict | None
    stored: str = field(default="", repr=False)
    _: KW_ONLY
    alt: str
    plain: str = ""
    stores: Sequence[str] = ()
    extra: dict = field(default_factory=dict, compare=False)

    def __post_init__(self):
        """Put the alternative text into one line; raise ValueError if it is empty."""
        object.__setattr__(self, "alt", tidy(self.alt))
        if not self.alt:
            raise ValueError("alt is empty: what does a reader miss who cannot see it?")

    def description(self) -> dict:
        """Return the JSON description that the site draws from, a dict.

        It has the attributes ``kind``, ``alt``, ``data``, ``stored`` and ``stores`` (a
        list), and ``version``, the number of this form.
        """
        description = {
            "version": VERSION,
            "kind": self.kind,
            "alt": self.alt,
            "data": self.data,
        }
        return description | {"stored": self.stored, "stores": [*self.stores]}

    def __repr__(self) -> str:
        """Return the view as plain text; if there is none, its kind and `alt`."""
        return self.plain or f"[{self.kind.replace('_', ' ')}] {self.alt}"

    def _repr_html_(self) -> str:
        """Return what Jupyter and Colab show of the view, as HTML."""
        return notebook.html(self)

    def _repr_mimebundle_(self, include=None, exclude=None) -> dict:
        """Return every form of the view that IPython can show, by MIME type.

        HTML (a str), plain text, what is in ``extra``, and, if the view has data, its
        `description`, which the site draws from, under `MIME`. ``include`` and ``exclude``
        are IPython's wishes; they are not used.
        """
        bundle = {"text/html": self._repr_html_(), "text/plain": repr(self), **self.extra}
        return bundle if self.data is None else {MIME: self.description(), **bundle}
