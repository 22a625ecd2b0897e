"""The object that every view is: a description, and ways to show it."""

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, field

from lmcourse.views import notebook

MIME = "application/vnd.lmcourse.view+json"
PLOTLY = "application/vnd.plotly.v1+json"
VERSION = 2


def tidy(text: str) -> str:
    """Return a text in one line, a single space between its words."""
    return " ".join(text.split())


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
        Further entries of the MIME bundle.

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
        object.__setattr__(self, "alt", tidy(self.alt))
        if not self.alt:
            raise ValueError("alt is empty: what does a reader miss who cannot see it?")

    def description(self) -> dict:
        """Return the JSON description that the site draws from."""
        told = {"version": VERSION, "kind": self.kind, "alt": self.alt, "data": self.data}
        return told | {"stored": self.stored, "stores": [*self.stores]}

    def __repr__(self) -> str:
        return self.plain or f"[{self.kind.replace('_', ' ')}] {self.alt}"

    def _repr_html_(self) -> str:
        return notebook.html(self)

    def _repr_mimebundle_(self, include=None, exclude=None) -> dict:
        """Return every form of the view that IPython can show."""
        bundle = {"text/html": self._repr_html_(), "text/plain": repr(self), **self.extra}
        return bundle if self.data is None else {MIME: self.description(), **bundle}
