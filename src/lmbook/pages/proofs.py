"""Cells that prove and sections that go deeper, folded on the site.

A code cell tagged ``proof`` is one line there, ``✓ checked:`` and its first comment, that
opens. If it is a finding as well, and does not hold for the model at hand, the line says
so, and the prose around is marked. What stands between ``deeper-start`` and ``deeper-end``
is a section that opens. Folds are plain ``<details>``: they work by key, without scripts.
"""

import re

from docutils import nodes
from sphinx import addnodes
from sphinx.transforms import SphinxTransform
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

from lmbook.execute.verdicts import check_order, sentence
from lmbook.pages.findings import found_note, not_so

__all__ = ["fold", "setup"]

logger = logging.getLogger(__name__)
MARKS = {"checked": "✓ checked:", "failed": "✗ failed:", "not run": "not checked:"}


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
        node = fold_edge(edge=self.name.rpartition("-")[2])
        self.set_source_info(node)
        title = " ".join(self.arguments)
        if node["edge"] == "end":
            return [node]
        if not title:
            logger.warning("this deeper-start has no title", location=node)
        inline, messages = self.state.inline_text(title, self.lineno)
        kind = nodes.inline("", "Going deeper", classes=["lm-kind"])
        node += fold_line("", "", kind, nodes.Text(" "), *inline)
        return [node, *messages]


class Fold(SphinxTransform):
    """Fold proof cells and deeper sections, once exercises are put together."""

    default_priority = 11

    def apply(self) -> None:
        for node in list(self.document.findall(fold_edge)):
            if node["edge"] == "start":
                _fold_section(node)
        for node in list(self.document.findall(fold_edge)):
            logger.warning("this deeper-end has no deeper-start", location=node)
            node.parent.remove(node)
        about = self.env.temp_data.get("lmbook", {})
        proofs = [
            _fold_proof(cell, about["models"])
            for cell in list(self.document.findall(nodes.container))
            if {"proof", "finding"} & {*cell.get("cell_metadata", {}).get("tags", [])}
        ]
        for proof in proofs:
            if proof["verdict"] == "not so":
                _mark_prose(proof, about["models"])
        sections = self.document.findall(nodes.section)
        if about.get("statements") and (page := next(iter(sections), None)):
            page += _closing(about, self.env)


def _between(parent: nodes.Element, first: int) -> tuple[list[nodes.Node], nodes.Node]:
    """Return what follows up to an edge or a heading, and that; a text if there is none."""
    inside = []
    for node in parent.children[first:]:
        if isinstance(node, fold_edge | nodes.section):
            return inside, node
        inside.append(node)
    return inside, nodes.Text("")


def _fold_section(start: fold_edge) -> None:
    """Put what is between two edges into a fold; a warning if it cannot be."""
    parent = start.parent
    inside, last = _between(parent, parent.index(start) + 1)
    made = fold("", *start.children, classes=["lm-deeper"])
    made.source, made.line = start.source, start.line
    parent.replace(start, made)
    for node in inside:
        parent.remove(node)
        made += node
    if isinstance(last, fold_edge) and last["edge"] == "end":
        parent.remove(last)
        return
    why = {nodes.section: "a heading stands in it", fold_edge: "another begins in it"}
    said = why.get(type(last), "there is no deeper-end among what follows")
    logger.warning("this deeper-start is not closed: %s", said, location=made)


def _fold_proof(cell: nodes.container, models: dict[str, str]) -> fold:
    """Put a cell into a fold whose line is its sentence and its verdict."""
    about, text = cell["cell_metadata"], ""
    try:
        if "proof" not in about["tags"]:
            raise ValueError("a cell tagged finding is a proof: tag it proof as well")
        text = sentence(cell[0].astext())
        if "finding" in about["tags"]:
            check_order(cell[0].astext())
    except ValueError as error:
        logger.warning("%s", error, location=cell)
    cell.attributes.pop("hide_mode", None)  # it is folded already
    verdict = about.get("lmbook", "not run")
    kind = {"checked": "lm-holds"}.get(verdict, "lm-fails")
    made = fold(classes=["lm-proof", kind], verdict=verdict)
    made.source, made.line = cell.source, cell.line
    said = MARKS.get(verdict) or f"✗ {not_so(models)}:"
    mark = nodes.inline("", said, classes=["lm-mark"])
    cell.parent.replace(cell, made)
    made += [fold_line("", "", mark, nodes.Text(" "), *_with_code(text)), cell]
    if "finding" in about["tags"]:
        made["finding"] = text
        made["ids"].append(_place(cell.document, text))
    return made


def _place(document: nodes.document, text: str) -> str:
    """Return an id for a finding, made of its words."""
    base = found = nodes.make_id(f"finding-{text}")[:60].rstrip("-")
    number = 1
    while found in document.ids:
        number += 1
        found = f"{base}-{number}"
    document.ids[found] = nodes.Element()  # taken
    return found


def _with_code(text: str) -> list[nodes.Node]:
    """Return a sentence whose code stands between backticks."""
    parts = enumerate(re.split(r"`([^`]+)`", text))
    return [nodes.literal(p, p) if n % 2 else nodes.Text(p) for n, p in parts]


# --- prose around a finding that does not hold ------------------------------------------


def _is_prose(node: nodes.Node) -> bool:
    return not (
        isinstance(node, fold | nodes.section | nodes.title)
        or node.get("nb_element") == "cell_code"
        or node.tagname.startswith(("exercise", "solution"))
        or "lm-found-with" in node["classes"]
    )


def _mark_prose(proof: fold, models: dict[str, str]) -> None:
    """Mark the prose that leads to a proof; if there is none, the prose after it."""
    parent, at = proof.parent, proof.parent.index(proof)
    before = at
    while before and "lm-proof" in parent[before - 1].get("classes", []):
        before -= 1  # a row of proofs shares its prose
    first = before
    while first and _is_prose(parent[first - 1]):
        first -= 1
    prose = parent.children[first:before]
    if not prose:
        first, last = at + 1, at + 1
        while last < len(parent) and _is_prose(parent[last]):
            last += 1
        prose = parent.children[first:last]
    if not prose:
        return
    parent[first : first + len(prose)] = [
        nodes.container("", *found_note(models), *prose, classes=["lm-found-with"])
    ]


def _closing(about: dict, env) -> nodes.paragraph:
    """Return what a page says at its end of what was checked."""
    total, inside, proofs = (about[key] for key in ("statements", "proven", "proofs"))
    each = "1 statement was" if total == 1 else f"{total} statements were"
    said = f"When this page was built, {each} checked"
    if proofs:
        where = "1 proof" if proofs == 1 else f"{proofs} proofs"
        said += f", {'all' if inside == total else inside} of them in {where}"
    made = nodes.paragraph("", said, classes=["lm-checked"])
    made += nodes.Text(". An assertion counts once, also in a loop.")
    if about["findings"] and "findings" in env.found_docs:
        made += nodes.Text(" What is about the model at hand stands among ")
        link = addnodes.pending_xref(refdomain="std", reftype="doc", reftarget="findings")
        link["refexplicit"] = True
        made += [link, nodes.Text(".")]
        link += nodes.inline("", "all findings of the book")
    return made


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
    """Let ``{ref}`` use a fold's line where it is given no text of its own."""
    labels = app.env.get_domain("std").labels
    for node in doctree.findall(fold):
        for name in node["names"]:
            said = "".join(part.astext() for part in node[0][1:]).strip()
            labels[name] = (app.env.docname, node["ids"][0], said)


def setup(app) -> None:
    """Add directives, nodes and the transform."""
    app.add_directive("deeper-start", Edge)
    app.add_directive("deeper-end", Edge)
    app.add_node(fold, html=(_open, _close))
    app.add_node(fold_line, html=(_open_line, _close_line))
    app.add_transform(Fold)
    app.connect("doctree-read", name_folds)
    app.add_css_file("lib/proofs.css")
    app.add_js_file("lib/folds.js", loading_method="defer")
