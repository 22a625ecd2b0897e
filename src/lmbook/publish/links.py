"""What a published notebook points at: the site, the wheel, other pages, glued numbers."""

import functools
import os
import re
import subprocess
from pathlib import Path

from pybtex.database import parse_file
from pybtex.richtext import Text
from sphinx.util import logging

from lmbook.execute.keys import ROOT
from lmbook.pages import drawings
from lmbook.pages.glue import format_glue
from lmbook.pages.tasks import registered
from lmbook.publish.markdown import Links

__all__ = [
    "BRANCH",
    "FOLDER",
    "BookLinks",
    "repository",
    "site_address",
    "wheel_address",
]

logger = logging.getLogger(__name__)
FOLDER = "notebooks"
BRANCH = "gh-pages"  # holds the site; .github/workflows/site.yml writes it
# Labels, exercises and figures: what has an anchor in the notebook, too.
_ANCHOR = re.compile(r"^(?:\(|:label: |    name: )([\w-]+)\)?(?:=|$)", re.MULTILINE)


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


class BookLinks:
    """What a page refers to, resolved with Sphinx's environment.

    Links lead to the site. If its address is not known, they lead to a place in the same
    notebook or to the notebook beside it; what is in neither is text, without a link.
    """

    def __init__(self, app, page: str, values: dict[str, str], notebooks: list[str]):
        self.env, self.page, self.values = app.env, page, values
        self.base, self.notebooks = site_address(), notebooks
        source = Path(app.env.doc2path(page)).read_text(encoding="utf-8")
        self.source, self.anchors = source, set(_ANCHOR.findall(source))
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
            page=self.linked,
            drawing=self.drawing,
            check=self.check,
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
        return self._link(text or title, page, anchor)

    def number(self, label: str) -> str:
        page, anchor, title = self._target(label)
        numbers = self.env.toc_fignumbers.get(page, {})
        for kind, word in (("figure", "Figure"), ("table", "Table")):
            if anchor in numbers.get(kind, {}):
                number = ".".join(map(str, numbers[kind][anchor]))
                return self._link(f"{word} {number}", page, anchor)
        return self._link(title, page, anchor)

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
            cited.append(self._link(title, *self.entries[key.strip()]))
        return f"({'; '.join(cited)})" if style == "p" else ", ".join(cited)

    def linked(self, target: str, text: str) -> str:
        page, _, anchor = target.partition("#")
        if not page:
            page, anchor, _ = self._target(anchor)
        return self._link(text, page.removesuffix(".md"), anchor)

    def drawing(self, name: str) -> str:
        value = functools.partial(format_glue, self.values)
        return drawings.image(drawings.source(Path(self.env.srcdir), name, value))

    def check(self, key: str) -> str:
        before = re.split(rf"\{{choices\}} {re.escape(key)}\b", self.source)[0]
        label = re.findall(r"^:label: *(ex-\S+)", before, re.MULTILINE)[-1:]
        return registered(self.page).get("".join(label).replace("_", "-"), "")

    def _link(self, text: str, page: str, anchor: str) -> str:
        place = f"#{anchor}" if anchor else ""
        if self.base:
            return f"[{text}]({self.base}{page}.html{place})"
        if page == self.page and anchor in self.anchors:
            return f"[{text}]({place})"
        if page != self.page and page in self.notebooks:
            return f"[{text}]({page}.ipynb)"
        return text


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
