"""The object that every view is: a description, and ways to show it."""

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import KW_ONLY, dataclass, field
from html import escape

__all__ = ["MIME", "View", "script_json", "table", "text"]

MIME = "application/vnd.lmcourse.view+json"
VERSION = 2
NOTE = "<p><small>On the book's site this view answers to what you type and click.</small></p>"


def text(name: str, value: str) -> str:
    """Return `value` with its spaces tidied; refuse what is not a string.

    Raises
    ------
    TypeError
        If `value` is not a string.
    """
    if not isinstance(value, str):
        raise TypeError(f"{name} must be a string, not {type(value).__name__}")
    return " ".join(value.split())


def script_json(value) -> str:
    """Return JSON that no HTML parser takes for anything else."""
    dumped = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return dumped.translate({ord(c): rf"\u{ord(c):04x}" for c in "<>&\u2028\u2029"})


def table(head: Sequence, rows: Iterable[Sequence]) -> str:
    """Return a table as HTML; its first column names the rows. Cells are escaped."""
    columns = "".join(f'<th scope="col">{escape(str(name))}</th>' for name in head)
    lines = [
        f'<tr><th scope="row">{escape(str(name))}</th>'
        + "".join(f"<td>{escape(str(cell))}</td>" for cell in cells)
        + "</tr>"
        for name, *cells in rows
    ]
    columns = f"<thead><tr>{columns}</tr></thead>" if head else ""
    return f"<table>{columns}<tbody>{''.join(lines)}</tbody></table>"


@dataclass(frozen=True)
class View:
    """One view, ready to be a cell's last expression.

    Attributes
    ----------
    kind : str
        What draws it on the site, by its name in `lmbook`: "head_view", "toy-view", ...
    data : dict or None
        JSON-ready, rounded, the same on every run. None where nothing draws it: it stays
        as it is stored.
    stored : str
        HTML that is right before any script runs, and that paper and notebooks show;
        whoever makes it escapes what came from data. Empty where `html` draws.
    alt : str
        What a reader who cannot see the view should know. Never empty.
    caption : str
        Shown below the view; empty where the cell's metadata gives the caption.
    plain : str
        The view as plain text, if that is more than its alternative text.
    stores : sequence of str
        Which weights and vocabularies it loads on the site, by their names in
        `lmbook.play.stores.STORES`.
    html : callable returning str, optional
        What draws it in Jupyter and Colab; `stored` and a note without it.
    extra : dict of str to object
        Further entries of the MIME bundle.

    Raises
    ------
    ValueError
        If `alt` is empty.
    TypeError
        If `alt` or `caption` is not a string.
    """

    kind: str
    data: dict | None
    stored: str = field(default="", repr=False)
    _: KW_ONLY
    alt: str
    caption: str = ""
    plain: str = field(default="", repr=False)
    stores: Sequence[str] = ()
    html: Callable[[], str] | None = field(default=None, repr=False, compare=False)
    extra: dict = field(default_factory=dict, repr=False, compare=False)

    def __post_init__(self):
        object.__setattr__(self, "alt", text("alt", self.alt))
        object.__setattr__(self, "caption", text("caption", self.caption))
        if not self.alt:
            raise ValueError(
                "alt is empty: say in a sentence or two what the view shows, for readers "
                "who cannot see it"
            )

    def description(self) -> dict:
        """Return the JSON description that the site draws from."""
        found = {"version": VERSION, "kind": self.kind, "alt": self.alt}
        found |= {"caption": self.caption, "data": self.data}
        return found | {"stored": self.stored, "stores": [*self.stores]}

    def __repr__(self) -> str:
        return self.plain or f"[{self.kind.replace('_', ' ')}] {self.alt}"

    def _repr_html_(self) -> str:
        """Return what Jupyter and Colab show."""
        if self.html is not None:
            return self.html()
        return self.stored if self.data is None else f"<div>{self.stored}{NOTE}</div>"

    def _repr_mimebundle_(self, include=None, exclude=None) -> dict:
        """Return every form of the view that IPython can show."""
        bundle = {"text/html": self._repr_html_(), "text/plain": repr(self), **self.extra}
        return bundle if self.data is None else {MIME: self.description(), **bundle}
