"""Cells that prove and sections that go deeper, folded on the site.

A code cell tagged ``proof`` is one line there, ``✓ checked:`` and its first comment, that
opens. What stands between ``deeper-start`` and ``deeper-end`` is a section that opens.
Both are plain ``<details>``: they work by key and without scripts.
"""

import re

from docutils import nodes
from sphinx.transforms import SphinxTransform
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

__all__ = ["fold", "sentence", "setup"]

logger = logging.getLogger(__name__)
FEWEST = 3  # words of a sentence


class fold(nodes.General, nodes.Element):
    """What opens: first a `fold_line`, then what was folded."""


class fold_line(nodes.General, nodes.TextElement):
    """The line of a `fold` that always shows."""


class fold_edge(nodes.General, nodes.Element):
    """Where a section begins (``edge`` is "start", with its `fold_line`) or ends."""


class Edge(SphinxDirective):
    """``deeper-start`` with a title, and ``deeper-end``."""

    optional_arguments = 1
    final_argument_whitespace = True

    def run(self) -> list[nodes.Node]:
        edge = self.name.rpartition("-")[2]
        node = fold_edge(edge=edge)
        self.set_source_info(node)
        if edge == "start":
            title = self.arguments[0] if self.arguments else ""
            if not title:
                logger.warning("deeper-start has no title", location=node)
            inline, messages = self.state.inline_text(title, self.lineno)
            node += fold_line(title, "", *inline)
            return [node, *messages]
        return [node]


def sentence(source: str) -> str:
    """Return what a proof cell says that it checks: the comment that it begins with.

    Raises
    ------
    ValueError
        If it begins with none, or with one of fewer than three words.
    """
    comment = re.match(r"(?:#[^\n]*(?:\n|$))+", source.strip())
    lines = comment[0].split("\n") if comment else []
    text = " ".join(line.lstrip("#").strip() for line in lines).strip().rstrip(".")
    if len(text.split()) < FEWEST:
        raise ValueError(
            "a proof cell begins with a comment, a sentence that says what is checked; "
            f"this one begins with {source.strip().partition(chr(10))[0]!r}"
        )
    return text


class Fold(SphinxTransform):
    """Fold proof cells and deeper sections, once exercises are put together."""

    default_priority = 11

    def apply(self) -> None:
        for node in list(self.document.findall(fold_edge)):
            if node["edge"] == "start":
                _fold_section(node)
        for node in self.document.findall(fold_edge):
            logger.warning("a deeper-end without its deeper-start", location=node)
        for node in list(self.document.findall(_is_proof)):
            _fold_proof(node)


def _is_proof(node: nodes.Node) -> bool:
    return (
        isinstance(node, nodes.container)
        and node.get("nb_element") == "cell_code"
        and "proof" in node["cell_metadata"].get("tags", [])
    )


def _fold_section(start: fold_edge) -> None:
    """Put what is between two edges into a fold; a warning if it cannot be."""
    parent = start.parent
    first = parent.index(start)
    inside = []
    for node in parent.children[first + 1 :]:
        if isinstance(node, fold_edge | nodes.section):
            break
        inside.append(node)
    else:
        node = None
    made = fold(classes=["lm-deeper"])
    made.source, made.line = start.source, start.line
    if not (isinstance(node, fold_edge) and node["edge"] == "end"):
        why = {type(None): "nothing ends it", fold_edge: "another begins in it"}
        said = why.get(type(node), "a heading stands in it (use bold text)")
        logger.warning("this deeper-start is not closed: %s", said, location=start)
    else:
        parent.remove(node)
    for node in inside:
        parent.remove(node)
    made += [*start.children, *inside]
    parent.replace(start, made)


def _fold_proof(cell: nodes.container) -> None:
    try:
        text = sentence(cell[0].astext())
    except ValueError as error:
        logger.warning("%s", error, location=cell)
        text = "(this cell does not say what)"
    made = fold(classes=["lm-proof"])
    made.source, made.line = cell.source, cell.line
    parts = re.split(r"`([^`]+)`", text)
    inline = [
        nodes.literal(part, part) if n % 2 else nodes.Text(part)
        for n, part in enumerate(parts)
    ]
    mark = nodes.inline("", "✓ checked:", classes=["lm-mark"])
    cell.parent.replace(cell, made)
    made += [fold_line("", "", mark, nodes.Text(" "), *inline), cell]


# --- HTML -----------------------------------------------------------------------------


def _open(self, node: fold) -> None:
    self.body.append(self.starttag(node, "details"))


def _close(self, node: fold) -> None:
    self.body.append("</details>\n")


def _open_line(self, node: fold_line) -> None:
    self.body.append("<summary>")


def _close_line(self, node: fold_line) -> None:
    self.body.append("</summary>\n")


def name_folds(app, doctree: nodes.document) -> None:
    """Let ``{ref}`` use a fold's title where its label has no other text."""
    labels = app.env.get_domain("std").labels
    for node in doctree.findall(fold):
        for name in node["names"]:
            labels[name] = (app.env.docname, node["ids"][0], node[0].astext())


def setup(app) -> None:
    """Add directives, nodes and the transform."""
    app.add_directive("deeper-start", Edge)
    app.add_directive("deeper-end", Edge)
    app.add_node(fold, html=(_open, _close))
    app.add_node(fold_line, html=(_open_line, _close_line))
    app.add_transform(Fold)
    app.connect("doctree-read", name_folds)
    app.add_css_file("lib/proofs.css")
