"""Findings: what was found with one model, and whether it holds for another.

The directive ``findings`` lists all of the book, with their verdicts and links.
"""

from docutils import nodes
from sphinx.util.docutils import SphinxDirective
from sphinx.util.nodes import make_refnode

from lmbook.execute.keys import DEFAULTS

VERDICTS = {"checked": "✓ holds", "not so": "✗ not so"}


def not_so(models: dict[str, str]) -> str:
    """Return the words for what does not hold for the models that are not the defaults."""
    return f"not so for {' and '.join(sorted({*models.values()} - {*DEFAULTS.values()}))}"


def found_note(models: dict[str, str]) -> list[nodes.paragraph]:
    """Return what stands at text that is true of the defaults only; nothing at these."""
    old = [DEFAULTS[each] for each in models if models[each] != DEFAULTS[each]]
    said = f"Found with {' and '.join(old)}; {not_so(models)}."
    return [nodes.paragraph("", said, classes=["lm-found-note"])] if old else []


# --- the page that lists them -----------------------------------------------------------


class findings_list(nodes.General, nodes.Element):
    """Where the table of findings comes."""


class Findings(SphinxDirective):
    """``findings``: a table of all findings of the book."""

    def run(self) -> list[nodes.Node]:
        return [findings_list()]


def _collect(app, doctree: nodes.document) -> None:
    """Keep what a page found: sentence, place and verdict, and its models."""
    env = app.env
    proofs = doctree.findall(lambda node: "finding" in getattr(node, "attributes", ()))
    rows = [(node["finding"], node["ids"][0], node["verdict"]) for node in proofs]
    models = env.temp_data.get("lmbook", {}).get("models", {})
    env.metadata[env.docname]["lmbook_found"] = (" and ".join(models.values()), rows)


def _pages_to_write(app, env) -> set[str]:
    """Return the page that lists findings: it is written anew, whatever changed."""
    return {"findings"} & env.found_docs


def _fill_in(app, doctree: nodes.document, docname: str) -> None:
    for node in list(doctree.findall(findings_list)):
        pages = [name for name in app.env.collect_relations() if name in app.env.metadata]
        rows = [
            (page, models, *row)
            for page in pages
            for models, found in [app.env.metadata[page].get("lmbook_found", ("", []))]
            for row in found
        ]
        node.replace_self([_result(rows), _table(app, docname, rows)] if rows else [])


def _result(rows: list[tuple]) -> nodes.paragraph:
    """Return how many hold, for which models."""
    hold = sum(row[-1] == "checked" for row in rows)
    models = " and ".join(sorted({row[1] for row in rows}))
    said = nodes.strong("", f"{hold} of {len(rows)} findings hold")
    return nodes.paragraph("", "", said, nodes.Text(f" for {models}."))


def _table(app, docname: str, rows: list[tuple]) -> nodes.table:
    """Return a row a finding: its page, the sentence as a link to it, model, verdict."""
    group = nodes.tgroup("", cols=4)
    group += [nodes.colspec(colwidth=width) for width in (20, 50, 18, 12)]
    names = [[nodes.Text(name)] for name in ("Chapter", "Finding", "Model", "Verdict")]
    group += nodes.thead("", _row(names))
    body = nodes.tbody()
    chapters = app.config.lmbook_chapters
    for page, models, sentence, place, verdict in rows:
        link = make_refnode(app.builder, docname, page, place, nodes.Text(sentence))
        said = nodes.inline("", VERDICTS.get(verdict, verdict), classes=["lm-mark"])
        title = chapters[page].short if page in chapters else app.env.titles[page].astext()
        row = _row([[nodes.Text(title)], [link], [nodes.Text(models)], [said]])
        row["classes"].append("lm-holds" if verdict == "checked" else "lm-fails")
        body += row
    group += body
    return nodes.table("", group, classes=["lm-findings"])


def _row(cells: list[list[nodes.Node]]) -> nodes.row:
    entries = [nodes.entry("", nodes.paragraph("", "", *cell)) for cell in cells]
    return nodes.row("", *entries)


def setup(app) -> None:
    """Add the directive; collect while pages are read, list when they are written."""
    app.add_directive("findings", Findings)
    app.connect("doctree-read", _collect)
    app.connect("env-updated", _pages_to_write)
    app.connect("doctree-resolved", _fill_in)
