"""Proofs and sections that go deeper, folded on the site.

A proof (``:::{proof} NAME``) is one line there, ``✓ checked:`` and its sentence. It opens
on what it was held against, its function and what that returned. If a finding does not
hold for the model at hand, its line says so, and the prose around is marked. What stands
between ``deeper-start`` and ``deeper-end`` is a section that opens; between
``workshop-start`` and ``workshop-end`` stands what only who works through the page wants
(`lmbook.pages.ways`). Folds are plain ``<details>``: they work by key, without scripts.
"""

import itertools

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

from lmbook.execute.placed import TAG
from lmbook.execute.verdicts import insert_values
from lmbook.pages.findings import default_models_note, fields_list, not_so_words
from lmbook.pages.markup import html_tag, inline_nodes, page_link

logger = logging.getLogger(__name__)
WORK_CLASS = "lm-work"  # what is for those who work through a page
VERDICT_MARKS = {"checked": "✓ checked:", "failed": "✗ failed:", "not run": "not checked:"}


class fold(nodes.General, nodes.Element):
    """Docutils' node for what opens: first a `fold_line`, then what was folded.

    A proof's has its ``verdict``; a finding's also ``claim``, what the page *Findings* is
    to know of it.
    """


class fold_line(nodes.General, nodes.TextElement):
    """The line of a `fold` that always shows."""


class fold_edge(nodes.General, nodes.Element):
    """Where a section of a ``kind`` begins (``edge`` is "start") or ends."""


class Edge(SphinxDirective):
    """``deeper-start`` with a title, ``workshop-start`` without, and their ends."""

    optional_arguments = 1
    final_argument_whitespace = True

    def run(self) -> list[nodes.Node]:
        """Return the edge as a `fold_edge`, with the line that always shows of its fold.

        Only ``deeper-start`` has such a line, with the title that is its argument; a
        missing title is a warning.
        """
        kind, _, edge = self.name.rpartition("-")
        node = fold_edge(kind=kind, edge=edge)
        self.set_source_info(node)
        if edge == "end" or kind == "workshop":
            return [node]
        if not self.arguments:
            logger.warning("this deeper-start has no title", location=node)
        inline, messages = self.parse_inline(" ".join(self.arguments))
        kind = nodes.inline("", "Going deeper", classes=["lm-kind"])
        node += fold_line("", "", kind, nodes.Text(" "), *inline)
        return [node, *messages]


class Misplaced(SphinxDirective):
    """A proof where no cell can stand; elsewhere the reader has replaced it."""

    required_arguments = 1
    has_content = True

    def run(self) -> list[nodes.Node]:
        """Raise an error that says where a proof may stand, and names this one."""
        rule = "a proof stands at the top level of a page, in no other directive or list"
        raise self.error(f"{rule}: {self.arguments[0]}")


class Fold(SphinxTransform):
    """Fold proofs and deeper sections, once exercises are put together."""

    default_priority = 11

    def apply(self) -> None:
        """Fold proofs and sections that go deeper, and mark the prose around some findings.

        That is the prose around findings that do not hold for the models at hand. An edge
        without its counterpart is a warning. At the page's end it is said how many
        statements were checked, as `lmbook.pages.outputs` counted them.
        """
        for node in list(self.document.findall(fold_edge)):
            if node["edge"] == "start":
                _fold_section(node)
        for node in list(self.document.findall(fold_edge)):
            kind = node["kind"]
            logger.warning("this %s-end has no %s-start", kind, kind, location=node)
            node.parent.remove(node)
        counts = self.env.temp_data.get("lmbook", {})
        proofs = []
        for cell in list(self.document.findall(nodes.container)):
            if TAG in cell.get("cell_metadata", {}).get("tags", []):
                proofs.append(_fold_proof(cell, counts["models"]))
        for proof in proofs:
            if proof["verdict"] == "not so":
                _mark_prose(proof, counts["models"])
        sections = self.document.findall(nodes.section)
        if counts.get("statements") and (page := next(iter(sections), None)):
            page += _summary_of_checks(counts, self.env)


def _fold_section(start: fold_edge) -> None:
    """Put what is between two edges of a section into a fold, or into a container.

    A section that goes deeper becomes a `fold`, one for those who work through the page a
    container of the class "lm-work". It ends at the edge that ends it; if another
    heading, or another section of its kind, comes before that, or the page ends, it ends
    there, with a warning.

    ``start`` : where it begins, with ``kind``, "deeper" or "workshop". The only child of
    "deeper" is the `fold_line` with its title (`Edge`), which comes first in the fold. Both
    edges are removed.
    """
    kind = start["kind"]
    parent = start.parent
    first = start.parent.index(start) + 1
    stops = (
        place
        for place, node in enumerate(parent[first:], first)
        if isinstance(node, nodes.section) or node.get("kind") == kind
    )
    last = next(stops, len(parent))
    is_closed = last < len(parent) and parent[last].get("edge") == "end"
    if not is_closed:
        fault = "this %s-start is not closed before the next, a heading or the page's end"
        logger.warning(fault, kind, location=start)
    inside = [*start.children, *parent[first:last]]
    if kind == "deeper":
        section = fold("", *inside, classes=["lm-deeper"])
    else:
        section = nodes.container("", *inside, classes=[WORK_CLASS, "lm-workshop"])
    section.source, section.line = start.source, start.line  # for warnings
    end = last + 1 if is_closed else last  # the edge at the end goes, too
    parent[first - 1 : end] = [section]


def _fold_in_place_of(cell: nodes.container, text: str, models: dict[str, str]) -> fold:
    """Put a fold in a cell's place; in it is one line alone, the verdict and the sentence.

    Parameters
    ----------
    cell : container
        myst-nb's, of the cell. ``lmbook`` in its ``cell_metadata`` is the verdict:
        "checked", "not so", "failed" or "not run".
    text : str
        The sentence that the cell's proof asserts, in which `code`, *italics* and **bold**
        are marked as in Markdown.
    models : dict of str to str
        For each model that the page asked for: the environment variable that chooses it,
        such as LMCOURSE_BERT → the model's name. If the sentence does not hold, the line
        names those that are not the book's own.

    Returns
    -------
    fold
        With ``verdict``, and the line as its only child.
    """
    verdict = cell["cell_metadata"].get("lmbook", "not run")
    verdict_class = "lm-holds" if verdict == "checked" else "lm-fails"
    proof = fold(classes=["lm-proof", WORK_CLASS, verdict_class], verdict=verdict)
    proof.source, proof.line = cell.source, cell.line
    words = VERDICT_MARKS.get(verdict) or f"✗ {not_so_words(models)}:"
    mark = nodes.inline("", words, classes=["lm-mark"])
    cell.parent.replace(cell, proof)
    proof += fold_line("", "", mark, nodes.Text(" "), *inline_nodes(text))
    return proof


def _register_claim(proof: fold, name: str, models: dict[str, str], **fields: str) -> None:
    """Note on a proof what it claims, for the list of all claims, and give it an address.

    Parameters
    ----------
    proof : fold
        With ``verdict``. It gets an id, and the attribute ``claim``, a dict: ``verdict``;
        ``note``, the names of the models; and what ``fields`` has.
    name : str
        Of the proof's function; its anchor is made of it.
    models : dict of str to str
        For each model that the page asked for: the environment variable that chooses it,
        such as LMCOURSE_BERT → the model's name.
    **fields
        ``claim``, the sentence, and what else `lmbook.pages.findings` shows of it.
    """
    always = {"verdict": proof["verdict"], "note": " and ".join(models.values())}
    proof["claim"] = always | fields
    proof["ids"].append(nodes.make_id(name)[:60].rstrip("-"))
    proof.document.set_id(proof)  # warns if another has it


def _fold_proof(cell: nodes.container, models: dict[str, str]) -> fold:
    """Put a proof that the chapter places into a fold, in the place of its cell.

    Below its line stand what it was held against, the assertion that failed, if one did,
    the function's code and the values that it returned. A finding is also noted for the
    page of all findings (`_register_claim`).

    Parameters
    ----------
    cell : container
        myst-nb's, of the cell. ``lmbook_record`` in its ``cell_metadata`` is a dict:
        ``name`` of the proof; ``kind``, "proof" or "finding"; ``sentence``; ``about``, the
        docstring; ``source``, the function's code; ``failed``, the assertion that failed,
        "" if it holds; ``fields``, such as "rival", and ``values``, pairs of name and text.
        It is missing if the proof was not run.
    models : dict of str to str
        For each model that the page asked for: the environment variable that chooses it,
        such as LMCOURSE_BERT → the model's name.
    """
    record = cell["cell_metadata"].get("lmbook_record")
    if not record:  # the page failed before it came to it
        return _fold_in_place_of(cell, "a proof that was not run", models)
    proof = _fold_in_place_of(cell, record["sentence"], models)
    prefix = f"{record['name']}."
    values = {prefix + key: text for key, text in record["values"]}
    try:
        fields = {
            name: insert_values(text, values, prefix) for name, text in record["fields"]
        }
    except ValueError as error:
        fields = {}
        logger.warning("in a field of a proof: %s", error, location=proof)
    returned = {f"returned `{key}`": f"`{text}`" for key, text in record["values"]}
    failed = {"not so": f"`{record['failed']}`"} if record["failed"] else {}
    code = nodes.literal_block(record["source"], record["source"], language="ipython3")
    source = nodes.container("", code, classes=["lm-proof-source"])
    proof += [*fields_list(fields), *fields_list(failed), source, *fields_list(returned)]
    if record["kind"] == "finding":
        fields |= {key: record[key] for key in ("kind", "about", "source", "failed")}
        _register_claim(proof, record["name"], models, claim=record["sentence"], **fields)
    return proof


# --- prose around a finding that does not hold ------------------------------------------


def _is_prose(node: nodes.Node) -> bool:
    """Return whether a node is prose: no fold, heading, cell, task or marked prose.

    Marked prose is a container of the class "lm-found-with" (`_mark_prose`).
    """
    return not (
        isinstance(node, fold | nodes.section | nodes.title)
        or node.get("nb_element") == "cell_code"
        or node.tagname.startswith(("exercise", "solution"))
        or "lm-found-with" in node["classes"]
    )


def _mark_prose(proof: fold, models: dict[str, str]) -> None:
    """Mark the prose that leads to a proof; if there is none, the prose after it.

    The prose is put into a container, with a note of the models that it is true of at its
    top. Proofs in a row share the prose before the first of them.

    ``proof`` : a fold, whose neighbours are changed; ``models`` : for each model that the
    page asked for, the environment variable that chooses it → its name.
    """
    siblings = proof.parent.children
    at = proof.parent.index(proof)
    before = siblings[at - 1 :: -1] if at else []  # the nearest first
    while before and "lm-proof" in before[0].get("classes", []):
        del before[0]  # a row of proofs shares its prose
    prose = list(itertools.takewhile(_is_prose, before))[::-1]
    prose = prose or list(itertools.takewhile(_is_prose, siblings[at + 1 :]))
    if prose:
        first = proof.parent.index(prose[0])
        marked = nodes.container(
            "", *default_models_note(models), *prose, classes=["lm-found-with"]
        )
        proof.parent[first : first + len(prose)] = [marked]


def _summary_of_checks(counts: dict, env) -> nodes.paragraph:
    """Return what a page says at its end of what was checked when it was executed.

    If it has findings, the page of all findings is linked.

    Parameters
    ----------
    counts : dict of str to int
        ``statements`` that were checked (assertions in the code); ``proven``, how many of
        them are in proofs; ``proofs``, how many ran to their end, so that one that failed
        does not count; ``findings``, how many ran, whether they hold or not.
    env : BuildEnvironment
        Sphinx's.
    """
    total, inside, proofs = (counts[key] for key in ("statements", "proven", "proofs"))
    each = "1 statement was" if total == 1 else f"{total} statements were"
    text = f"When this page was built, {each} checked"
    if proofs:
        where = "1 proof" if proofs == 1 else f"{proofs} proofs"
        text += f", {'all' if inside == total else inside} of them in {where}"
    text += ". An assertion is counted once, even if a loop runs it many times."
    paragraph = nodes.paragraph("", text, classes=["lm-checked", WORK_CLASS])
    if counts["findings"] and "findings" in env.found_docs:
        paragraph += nodes.Text(" What they say of the models is listed with ")
        paragraph += page_link("findings", "all findings of the book", env)
        paragraph += nodes.Text(".")
    return paragraph


# --- HTML -----------------------------------------------------------------------------


def name_folds(app: Sphinx, doctree: nodes.document) -> None:
    """Let ``{ref}`` use a fold's line where it is given no text of its own.

    For that the labels of a page's folds get titles in Sphinx's environment. Sphinx calls
    this when a page has been read; ``doctree`` is the page.
    """
    labels = app.env.get_domain("std").labels
    for node in doctree.findall(fold):
        for name in node["names"]:
            title = "".join(part.astext() for part in node[0][1:]).strip()
            labels[name] = (app.env.docname, node["ids"][0], title)


def setup(app: Sphinx) -> None:
    """Add directives, nodes, the transform `Fold` and the style sheet to Sphinx.

    When a page has been read, its folds get their titles for links (`name_folds`).
    """
    for name in ("deeper", "workshop"):
        app.add_directive(f"{name}-start", Edge)
        app.add_directive(f"{name}-end", Edge)
    for node, tag in ((fold, "details"), (fold_line, "summary")):
        app.add_node(node, html=html_tag(tag))
    # One in its place is a cell by now (`lmbook.execute.placed`): Sphinx meets the others.
    app.add_directive("proof", Misplaced)
    app.add_transform(Fold)
    app.connect("doctree-read", name_folds)
    app.add_css_file("lib/proofs.css")
