"""The object that every interactive view is: a description, and ways to show it."""

from collections.abc import Callable
from dataclasses import dataclass, field

__all__ = ["MIME", "View", "text"]

MIME = "application/vnd.lmcourse.view+json"
VERSION = 1


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


@dataclass(frozen=True)
class View:
    """One interactive view, ready to be a cell's last expression.

    Attributes
    ----------
    kind : str
        Which view, by the name of the function that made it: "head_view", "plot", ...
    alt : str
        What a reader who cannot see the view should know. Never empty.
    caption : str
        Shown below the view; empty where the cell's metadata gives the caption.
    data : dict
        JSON-ready, rounded, the same on every run.
    html : callable returning str
        The drawing library's own HTML, made only when it is asked for.
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
    alt: str
    caption: str
    data: dict
    html: Callable[[], str] = field(repr=False, compare=False)
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
        shown = ("kind", "alt", "caption", "data")
        return {"version": VERSION} | {name: getattr(self, name) for name in shown}

    def __repr__(self) -> str:
        return f"[{self.kind.replace('_', ' ')}] {self.alt}"

    def _repr_mimebundle_(self, include=None, exclude=None) -> dict:
        """Return every form of the view that IPython can show."""
        return {
            MIME: self.description(),
            "text/html": self.html(),
            "text/plain": repr(self),
            **self.extra,
        }
