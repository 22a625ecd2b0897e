"""What a chapter refers to, as a notebook can show it: links, numbers, glued values."""

import base64
import mimetypes
import re
from html import escape
from pathlib import Path
from urllib.parse import unquote

from sphinx.util import logging

from lmbook.pages import drawings
from lmbook.pages.course import read_page
from lmbook.pages.glue import format_glue
from lmbook.pages.tasks import checks_by_label
from lmbook.publish.addresses import site_address

logger = logging.getLogger(__name__)
# Labels, exercises, drawings and figures: what has an anchor in the notebook, too.
_ANCHOR = re.compile(r"^(?:\(|:label: |:name: |    name: )([\w-]+)\)?(?:=|$)", re.MULTILINE)


class BookLinks:
    """What a chapter refers to, resolved with Sphinx's environment.

    Links lead to the site. If its address is not known, they lead to a place in the same
    notebook or to the notebook beside it; what is in neither is text, without a link.

    Parameters
    ----------
    app : Sphinx
    name : str
        The chapter's.
    values : dict of str to str
        What it glued, and what its proofs returned: name → repr.
    notebooks : list of str
        Names of all chapters that have a notebook.

    Attributes
    ----------
    env : BuildEnvironment
        Sphinx's.
    name, values, notebooks
        As given.
    base : str
        The address of the site, ending in a slash; "" if it is not known.
    source : str
        The chapter's text, in MyST.
    anchors : set of str
        The labels that have an anchor in the chapter's notebook, too.
    exercises : dict
        Label of each task of the book → what sphinx-exercise knows of it: its ``node``, and
        ``docname``, the name of its page.
    """

    def __init__(self, app, name: str, values: dict[str, str], notebooks: list[str]):
        self.env = app.env
        self.name = name
        self.values = values
        self.base = site_address()
        self.notebooks = notebooks
        self.source = read_page(Path(app.env.doc2path(name)))
        self.anchors = set(_ANCHOR.findall(self.source))
        # Not there if no page has an exercise.
        self.exercises = getattr(app.env, "sphinx_exercise_registry", {})

    def reference(self, label: str, text: str | None) -> str:
        """Return a link, in Markdown, to a label or a page.

        ``label`` : the label, or the page's name; ``text`` : the link's. If that is None,
        it is the title of what the link leads to, of a task "Exercise 3 (Merge the heads)".
        """
        page, anchor, title = self._target(label)
        if label in self.exercises:
            title = self.exercise(label)
        return self._link(text or title, page, anchor)

    def number(self, label: str) -> str:
        """Return a link, in Markdown, to the figure of a label: "[Figure 3](…)".

        Of a figure without a number the text is its title.
        """
        page, anchor, title = self._target(label)
        number = self._numbered(page, "figure", anchor)
        return self._link(f"Figure {number}" if number else title, page, anchor)

    def equation(self, label: str) -> str:
        """Return the number of the equation of a label, such as "3".

        ``label`` : of the equation in the source; it is returned itself if there is no such
        equation.
        """
        equations = self.env.get_domain("math").equations
        if label not in equations:  # Sphinx has warned of it
            return label
        page, number = equations[label]
        return self._numbered(page, "displaymath", f"equation-{label}") or str(number)

    def exercise(self, label: str) -> str:
        """Return the name of a task: "Exercise 3 (Merge the heads)", by its label.

        ``label`` : such as "ex-attention-heads", one that sphinx-exercise knows.
        """
        entry = self.exercises[label]
        title = entry["node"].children[0]  # "Exercise", and a node of the words, if any
        word, *subtitle = title.children
        name = f"{word.astext()} {self._numbered(entry['docname'], 'exercise', label)}"
        return f"{name} ({subtitle[0].astext()})" if subtitle else name

    def cite(self, keys: str, in_sentence: bool) -> str:
        """Return links to the bibliography, in Markdown.

        Parameters
        ----------
        keys : str
            Of the works in the bibliography, separated by commas. One that is not there
            stays as it is.
        in_sentence : bool
            Whether it is part of a sentence, "Vaswani et al. (2017)", instead of standing
            in brackets, "(Vaswani et al., 2017)".
        """
        works = {work.key: work for work in self.env.get_domain("cite").citations}
        cited = []
        for key in map(str.strip, keys.split(",")):
            if key not in works:  # Sphinx has warned of it
                cited.append(key)
                continue
            work = works[key]
            names = author_names(work.entry)
            year = work.entry.fields.get("year", "n. d.")
            title = f"{names} ({year})" if in_sentence else f"{names}, {year}"
            page = work.bibliography_key.docname
            cited.append(self._link(title, page, work.citation_id))
        return ", ".join(cited) if in_sentence else f"({'; '.join(cited)})"

    def page(self, target: str, text: str) -> str:
        """Return a link, in Markdown, to what a link in the source leads to.

        Parameters
        ----------
        target : str
            "PAGE.md", "PAGE.md#ANCHOR" or "#LABEL".
        text : str
            The link's; "" stands for the page's title.
        """
        page, _, anchor = target.partition("#")
        if not page:
            page, anchor, _ = self._target(anchor)
        page = page.removesuffix(".md")
        return self._link(text or self._target(page)[2], page, anchor)

    def image(self, target: str, alt: str) -> str:
        """Return a picture as an HTML image that holds its data, so no file is needed.

        ``target`` is its path: from the folder of the chapters if it begins with a slash,
        else from that of the chapter. ``alt`` is its alternative text, which is returned if
        there is no such picture; Sphinx warns of it.
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
        """Warn of a directive or a role for which no plain Markdown is known.

        ``what`` is such as "directive {tab-set}" or "role {download}".
        """
        pattern = re.escape(what.split(" ", 1)[1])
        match = re.search(pattern, self.source)
        line = self.source.count("\n", 0, match.start()) + 1 if match else None
        logger.warning(
            "no plain Markdown is known for the %s: the notebook has its text alone",
            what,
            location=(self.name, line),
        )

    def glue(self, name: str, form: str) -> str:
        """Return a value that the chapter glued, or that a proof of it returned, as text.

        ``name`` : "KEY", or "PROOF.KEY" for what a proof returned; ``form`` : its format,
        such as ".0%", or "". A ValueError is raised if there is no such value, or it has no
        such format.
        """
        return format_glue(self.values, name, form)

    def drawing(self, name: str) -> str:
        """Return the drawing ``_figures/NAME.svg`` as an HTML image that holds its data.

        A ValueError is raised if there is none, or it quotes a value that is missing.
        """
        return drawings.image_html(
            drawings.read_drawing(Path(self.env.srcdir), name, self.glue)
        )

    def check(self, key: str) -> str:
        """Return the name of a multiple-choice task's check, such as "attention.heads".

        ``key`` : what stands behind ``{choices}`` in the source. The task is the last that
        begins before it, by its label. "" if there is no such task, or it has no check.
        """
        before = re.split(rf"\{{choices\}} {re.escape(key)}\b", self.source)[0]
        label = re.findall(r"^:label: *(ex-\S+)", before, re.MULTILINE)[-1:]
        return checks_by_label(self.name).get("".join(label).replace("_", "-"), "")

    def _numbered(self, page: str, kind: str, anchor: str) -> str:
        """Return the number of a figure, an equation or a task, such as "3" or "3.1".

        ``page`` is the name of its page; ``kind`` what Sphinx calls it: "figure",
        "displaymath" or "exercise"; ``anchor`` its anchor on the page. "" if it has none.
        """
        numbers = self.env.toc_fignumbers.get(page, {}).get(kind, {})
        return ".".join(map(str, numbers.get(anchor, ())))

    def _target(self, label: str) -> tuple[str, str, str]:
        """Return what a label, or a page's name, leads to.

        Returns
        -------
        page, anchor, title : str
            The page's name; the anchor on it, "" for the page as a whole; and the title
            there, the label itself if there is none. Of a label that is unknown the page is
            the chapter, and the anchor "".
        """
        std = self.env.get_domain("std")
        if label in std.labels:
            return std.labels[label]
        if label in std.anonlabels:
            return (*std.anonlabels[label], label)
        if label in self.env.found_docs:
            return label, "", self.env.titles[label].astext()
        return self.name, "", label  # nowhere: Sphinx has warned of it

    def _link(self, text: str, page: str, anchor: str) -> str:
        """Return a link, in Markdown, to a place in the book, as a notebook can follow it.

        ``page`` is the page's name; ``anchor`` is "" for the page as a whole. The link
        leads to the site if its address is known; else to the anchor in this notebook, or
        to the notebook of the other page. Where there is neither, the text alone is
        returned.
        """
        place = f"#{anchor}" if anchor else ""
        if self.base:
            return f"[{text}]({self.base}{page}.html{place})"
        if page == self.name and anchor in self.anchors:
            return f"[{text}]({place})"
        if page != self.name and page in self.notebooks:
            return f"[{text}]({page}.ipynb)"
        return text


def author_names(entry) -> str:
    """Return the surnames of a work's authors: "A", "A and B" or "A et al.".

    Those of its editors if it has no authors; "" if it has neither.

    ``entry`` : pybtex.database.Entry, the work in the bibliography.
    """
    people = entry.persons.get("author") or entry.persons.get("editor") or []
    parts = [[*each.rich_prelast_names, *each.rich_last_names] for each in people]
    names = [" ".join(map(str, each)) for each in parts]
    return f"{names[0]} et al." if len(names) > 2 else " and ".join(names)
