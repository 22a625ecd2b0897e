"""What a published notebook points at: the site, the wheel, other pages, glued numbers."""

import ast
import functools
import os
import re
import subprocess
from pathlib import Path

import nbformat
from pybtex.database import parse_file
from pybtex.richtext import Text
from sphinx.util import logging

from lmbook.keys import ROOT
from lmbook.markdown import Links

__all__ = [
    "BRANCH",
    "FOLDER",
    "BookLinks",
    "format_glue",
    "glued",
    "repository",
    "site_address",
    "wheel_address",
]

logger = logging.getLogger(__name__)
FOLDER = "notebooks"
BRANCH = "gh-pages"  # holds the site; .github/workflows/site.yml writes it
GLUE = "application/papermill.record/text/plain"


def repository() -> str:
    """Return "owner/name" from ``GITHUB_REPOSITORY`` or the git remote; else empty."""
    named = os.environ.get("GITHUB_REPOSITORY", "")
    if not named:
        asked = ["git", "-C", str(ROOT), "config", "--get", "remote.origin.url"]
        named = subprocess.run(asked, capture_output=True, text=True).stdout.strip()
        if "github.com" not in named:
            return ""
    match = re.search(r"([\w.-]+/[\w.-]+?)(?:\.git)?/?$", named)
    return match[1] if match else ""


def site_address() -> str:
    """Return the address of the published site, ending in a slash; "" if unknown."""
    owner, _, name = repository().partition("/")
    if not name:
        return ""
    host = f"https://{owner.lower()}.github.io/"
    return host if name.lower() == f"{owner.lower()}.github.io" else f"{host}{name}/"


def wheel_address(wheel: str) -> str:
    """Return where Colab gets the wheel: beside the notebook, on the branch of both."""
    owner = repository()
    if not owner:
        return wheel
    return f"https://raw.githubusercontent.com/{owner}/{BRANCH}/{FOLDER}/{wheel}"


def glued(executed: nbformat.NotebookNode) -> dict[str, str]:
    """Return the values that the page glued, name → repr."""
    found = {}
    for cell in executed.cells:
        for output in cell.get("outputs", []):
            name = output.get("metadata", {}).get("scrapbook", {}).get("name")
            if name and GLUE in output.get("data", {}):
                found[name] = output["data"][GLUE]
    return found


def format_glue(values: dict[str, str], name: str, form: str) -> str:
    if name not in values:
        raise ValueError(f"nothing was glued under the name {name!r}")
    try:
        value = ast.literal_eval(values[name])
    except (ValueError, SyntaxError):
        value = values[name]
    try:
        return format(value, form)
    except (TypeError, ValueError):
        message = (
            f"{name!r} is {values[name]}, which has no format {form!r}: glue a plain number"
        )
        raise ValueError(message) from None


class BookLinks:
    """What a page refers to, resolved with Sphinx's environment."""

    def __init__(self, app, page: str, values: dict[str, str]):
        self.env, self.page, self.values = app.env, page, values
        self.base = site_address() or "../"
        self.works = _bibliography(str(Path(app.srcdir) / "references.bib"))
        # Not there if no page has an exercise.
        self.exercises = getattr(app.env, "sphinx_exercise_registry", {})
        self.entries = {
            work.key: (work.bibliography_key.docname, work.citation_id)
            for work in app.env.get_domain("cite").citations
        }

    def links(self) -> Links:
        return Links(
            reference=self.reference,
            number=self.number,
            equation=self.equation,
            exercise=self.exercise,
            cite=self.cite,
            glue=lambda name, form: format_glue(self.values, name, form),
            page=self.address,
        )

    def _target(self, label: str) -> tuple[str, str, str]:
        std = self.env.get_domain("std")
        if label in std.labels:
            return std.labels[label]
        if label in std.anonlabels:
            return (*std.anonlabels[label], label)
        if label in self.env.found_docs:
            return label, "", self.env.titles[label].astext()
        logger.warning("the notebook of %s refers to %r: not in the book", self.page, label)
        return self.page, "", label

    def reference(self, label: str, text: str | None) -> str:
        page, anchor, title = self._target(label)
        if label in self.exercises:
            title = self.exercise(label)
        return f"[{text or title}]({self._url(page, anchor)})"

    def number(self, label: str) -> str:
        page, anchor, title = self._target(label)
        numbers = self.env.toc_fignumbers.get(page, {})
        for kind, word in (("figure", "Figure"), ("table", "Table")):
            if anchor in numbers.get(kind, {}):
                number = ".".join(map(str, numbers[kind][anchor]))
                return f"[{word} {number}]({self._url(page, anchor)})"
        return f"[{title}]({self._url(page, anchor)})"

    def equation(self, label: str) -> str:
        page, number = self.env.get_domain("math").equations[label]
        numbers = self.env.toc_fignumbers.get(page, {}).get("displaymath", {})
        full = numbers.get(f"equation-{label}")
        return ".".join(map(str, full)) if full else str(number)

    def exercise(self, label: str) -> str:
        found = self.exercises[label]
        numbers = self.env.toc_fignumbers[found["docname"]]["exercise"][label]
        word, *subtitle = found["node"].children[0].children
        name = f"{word.astext()} {'.'.join(map(str, numbers))}"
        return f"{name} ({subtitle[0].astext()})" if subtitle else name

    def cite(self, keys: str, style: str) -> str:
        cited = []
        for key in keys.split(","):
            names, year = self.works[key.strip()]
            title = f"{names}, {year}" if style == "p" else f"{names} ({year})"
            cited.append(f"[{title}]({self._url(*self.entries[key.strip()])})")
        return f"({'; '.join(cited)})" if style == "p" else ", ".join(cited)

    def address(self, target: str) -> str:
        page, _, anchor = target.partition("#")
        if page:
            return self._url(page.removesuffix(".md"), anchor)
        page, label, _ = self._target(anchor)
        return self._url(page, label)

    def _url(self, page: str, anchor: str) -> str:
        name = page if "." in page else f"{page}.html"
        return f"{self.base}{name}" + (f"#{anchor}" if anchor else "")


@functools.cache
def _bibliography(path: str) -> dict[str, tuple[str, str]]:
    """Return, for each work's key, its authors as in a sentence, and its year."""
    works = {}
    for key, entry in parse_file(path).entries.items():
        people = entry.persons.get("author") or entry.persons.get("editor") or []
        names = [
            str(Text(*person.rich_prelast_names, *person.rich_last_names))
            for person in people
        ]
        if len(names) > 2:
            names = [f"{names[0]} et al."]
        works[key] = (" and ".join(names), entry.fields.get("year", ""))
    return works
