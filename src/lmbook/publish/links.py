"""What a chapter refers to, as a notebook can show it: links, numbers, glued values."""

import base64
import mimetypes
import re
from html import escape
from pathlib import Path
from urllib.parse import unquote

from pybtex.richtext import Text
from sphinx.util import logging

from lmbook.pages import drawings
from lmbook.pages.course import read_page
from lmbook.pages.glue import format_glue
from lmbook.pages.tasks import checks_by_label
from lmbook.publish.addresses import site_address

logger = logging.getLogger(__name__)
# Labels, exercises and figures: what has an anchor in the notebook, too.
_ANCHOR = re.compile(r"^(?:\(|:label: |    name: )([\w-]+)\)?(?:=|$)", re.MULTILINE)


class BookLinks:
    """What a chapter refers to, resolved with Sphinx's environment.

    Links lead to the site. If its address is not known, they lead to a place in the same
    notebook or to the notebook beside it; what is in neither is text, without a link.

    Parameters
    ----------
    app : Sphinx
    name : str
        The chapter.
    values : dict of str to str
        What it glued, name → repr.
    notebooks : list of str
        All chapters that have a notebook.
    """

    def __init__(self, app, name: str, values: dict[str, str], notebooks: list[str]):
        self.env, self.name, self.values = app.env, name, values
        self.base, self.notebooks = site_address(), notebooks
        self.source = read_page(Path(app.env.doc2path(name)))
        self.anchors = set(_ANCHOR.findall(self.source))
        # Not there if no page has an exercise.
        self.exercises = getattr(app.env, "sphinx_exercise_registry", {})

    def reference(self, label: str, text: str | None) -> str:
        """Return a link to a label or a page; its text is the title if none is given."""
        page, anchor, title = self._target(label)
        if label in self.exercises:
            title = self.exercise(label)
        return self._link(text or title, page, anchor)

    def number(self, label: str) -> str:
        """Return a link such as "[Figure 3](…)"."""
        page, anchor, title = self._target(label)
        number = self._numbered(page, "figure", anchor)
        return self._link(f"Figure {number}" if number else title, page, anchor)

    def equation(self, label: str) -> str:
        """Return an equation's number."""
        equations = self.env.get_domain("math").equations
        if label not in equations:  # Sphinx has warned of it
            return label
        page, number = equations[label]
        return self._numbered(page, "displaymath", f"equation-{label}") or str(number)

    def exercise(self, label: str) -> str:
        """Return a task's name, such as "Exercise 3 (Merge the heads)"."""
        found = self.exercises[label]
        word, *subtitle = found["node"].children[0].children
        name = f"{word.astext()} {self._numbered(found['docname'], 'exercise', label)}"
        return f"{name} ({subtitle[0].astext()})" if subtitle else name

    def cite(self, keys: str, in_sentence: bool) -> str:
        """Return links to the bibliography: as part of a sentence, or in brackets."""
        works = {work.key: work for work in self.env.get_domain("cite").citations}
        cited = []
        for key in map(str.strip, keys.split(",")):
            if key not in works:  # Sphinx has warned of it
                cited.append(key)
                continue
            work = works[key]
            names, year = _names(work.entry), work.entry.fields.get("year", "n. d.")
            title = f"{names} ({year})" if in_sentence else f"{names}, {year}"
            page = work.bibliography_key.docname
            cited.append(self._link(title, page, work.citation_id))
        return ", ".join(cited) if in_sentence else f"({'; '.join(cited)})"

    def page(self, target: str, text: str) -> str:
        """Return a link to what a link in the source leads to; "" has the page's title."""
        page, _, anchor = target.partition("#")
        if not page:
            page, anchor, _ = self._target(anchor)
        page = page.removesuffix(".md")
        return self._link(text or self._target(page)[2], page, anchor)

    def image(self, target: str, alt: str) -> str:
        """Return a picture, put into the notebook: nothing need lie beside that.

        A picture that is not there is told by its alternative text; Sphinx warns of it.
        """
        folder = Path(self.env.srcdir)
        if not target.startswith("/"):
            folder = Path(self.env.doc2path(self.name)).parent
        path = folder / unquote(target.removeprefix("/"))
        kind = mimetypes.guess_type(path.name)[0]
        if not path.is_file() or not (kind or "").startswith("image/"):
            return alt
        data = base64.b64encode(path.read_bytes()).decode()
        return f'<img src="data:{kind};base64,{data}" alt="{escape(alt)}">'

    def unknown(self, what: str) -> None:
        """Warn of a directive or a role for which no plain Markdown is known."""
        pattern = re.escape(what.split(" ", 1)[1])
        found = re.search(pattern, self.source)
        line = self.source.count("\n", 0, found.start()) + 1 if found else None
        logger.warning(
            "no plain Markdown is known for the %s: the notebook has its text alone",
            what,
            location=(self.name, line),
        )

    def glue(self, name: str, form: str) -> str:
        """Return a glued value."""
        return format_glue(self.values, name, form)

    def drawing(self, name: str) -> str:
        """Return a drawing as an HTML image."""
        return drawings.image_html(
            drawings.read_drawing(Path(self.env.srcdir), name, self.glue)
        )

    def check(self, key: str) -> str:
        """Return the check of the task that has the choices of a key; "" if none."""
        before = re.split(rf"\{{choices\}} {re.escape(key)}\b", self.source)[0]
        label = re.findall(r"^:label: *(ex-\S+)", before, re.MULTILINE)[-1:]
        return checks_by_label(self.name).get("".join(label).replace("_", "-"), "")

    def _numbered(self, page: str, kind: str, anchor: str) -> str:
        """Return the number of a figure, an equation or a task, "" if it has none."""
        numbers = self.env.toc_fignumbers.get(page, {}).get(kind, {})
        return ".".join(map(str, numbers.get(anchor, ())))

    def _target(self, label: str) -> tuple[str, str, str]:
        """Return page, anchor and title of a label or a page."""
        std = self.env.get_domain("std")
        if label in std.labels:
            return std.labels[label]
        if label in std.anonlabels:
            return (*std.anonlabels[label], label)
        if label in self.env.found_docs:
            return label, "", self.env.titles[label].astext()
        return self.name, "", label  # nowhere: Sphinx has warned of it

    def _link(self, text: str, page: str, anchor: str) -> str:
        """Return a link to a place in the book, as a notebook can follow it."""
        place = f"#{anchor}" if anchor else ""
        if self.base:
            return f"[{text}]({self.base}{page}.html{place})"
        if page == self.name and anchor in self.anchors:
            return f"[{text}]({place})"
        if page != self.name and page in self.notebooks:
            return f"[{text}]({page}.ipynb)"
        return text


def _names(entry) -> str:
    """Return the authors of a work, as in a sentence."""
    people = entry.persons.get("author") or entry.persons.get("editor") or []
    names = [str(Text(*each.rich_prelast_names, *each.rich_last_names)) for each in people]
    return f"{names[0]} et al." if len(names) > 2 else " and ".join(names)
