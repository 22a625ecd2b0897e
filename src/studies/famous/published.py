"""Published results that can be asked of the models at hand: ``published.toml``."""

import tomllib
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Published:
    """A published result, as it was written down before anything was measured.

    Attributes
    ----------
    name : str
        By which the study, the table and the page call it.
    title : str
        What it is about, in a few words.
    source : str
        Its key in the bibliography.
    sentence : str
        As its authors put it; "…" where something is left out.
    chapter : str
        The label of the part of this book that explains it.
    model : str
        Which model is asked: "SmolLM2", "MiniLM", "our GPT" or "a toy model".
    asked : str
        What is measured here.
    rule : str
        When the sentence holds of our model.
    null : str
        The world in which there is nothing to find.
    foretold : str
        "holds" or "not so".
    why : str
        Why we expected that.
    number : str
        What they measured; "" if the sentence has no number.
    seen : str
        What chapters of this book had shown before; "" if nothing.
    changed : str
        When, from what and why a rule or what is asked was changed later; "" if it wasn't.
    elsewhere : str
        In which other forms it is asked, by the same rule (`studies.famous.elsewhere`); ""
        if in none.
    known : str
        What was known of those before they were measured, and what we expect of them.
    """

    name: str
    title: str
    source: str
    sentence: str
    chapter: str
    model: str
    asked: str
    rule: str
    null: str
    foretold: str
    why: str
    number: str = ""
    seen: str = ""
    changed: str = ""
    elsewhere: str = ""
    known: str = ""


FILE = Path(__file__).with_name("published.toml")


def read_published(path=FILE):
    """Return the published results of a TOML file, name → `Published`, in its order.

    Parameters
    ----------
    path : Path
        Has a table for each result, by its name; its keys are the other fields of
        `Published`. The default is ``published.toml`` in this folder.

    Raises
    ------
    TypeError
        If a table lacks a field, or has one that is unknown; the message names the field.
    """
    tables = tomllib.loads(path.read_text(encoding="utf-8"))
    return {name: Published(name=name, **fields) for name, fields in tables.items()}


RESULTS = read_published()
