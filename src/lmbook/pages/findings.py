"""Findings: what was found, what it was held against, and whether it holds now.

All empirical claims of the book are listed in a table (`lmbook.pages.teaching`): the proofs
that are findings or have a rival, and the studies in ``data/studies``.
"""

import json
import re
from collections.abc import Callable
from html import escape
from pathlib import Path

from docutils import nodes

from lmbook.execute.keys import DEFAULTS
from lmbook.execute.verdicts import FIELDS
from lmbook.pages.markup import html_table, with_code

VERDICTS = {"checked": "✓ holds", "holds": "✓ holds", "not so": "✗ not so"}
COLUMNS = ("Claim", "Rival", "Null", "n", "Interval", "Verdict", "Shown in")
SCRIPT = '<script defer src="_static/lib/findings.js"></script>\n'


def not_so(models: dict[str, str]) -> str:
    """Return the words for what does not hold for the models that are not the defaults."""
    return f"not so for {' and '.join(sorted({*models.values()} - {*DEFAULTS.values()}))}"


def found_note(models: dict[str, str]) -> list[nodes.paragraph]:
    """Return what stands at text that is true of the defaults only; nothing at these."""
    old = [DEFAULTS[each] for each in models if models[each] != DEFAULTS[each]]
    said = f"Found with {' and '.join(old)}; {not_so(models)}."
    return [nodes.paragraph("", said, classes=["lm-found-note"])] if old else []


def fields_list(fields: dict[str, str]) -> list[nodes.bullet_list]:
    """Return the fields of a proof as a list; nothing if it has none."""
    told = [with_code(f"{name}: {text}") for name, text in fields.items()]
    items = [nodes.list_item("", nodes.paragraph("", "", *each)) for each in told]
    return [nodes.bullet_list("", *items, classes=["lm-fields"])] if items else []


# --- the page that lists them -----------------------------------------------------------


def _collect(app, doctree: nodes.document) -> None:
    """Keep what a page claims, and where."""
    proofs = doctree.findall(lambda node: "claim" in getattr(node, "attributes", ()))
    app.env.metadata[app.env.docname]["lmbook_claims"] = [
        node["claim"] | {"at": [(app.env.docname, f"#{node['ids'][0]}")]} for node in proofs
    ]


def _claims(app) -> list[dict]:
    """Return all claims in the order of the book, each study where it is first shown."""
    about, env = app.env.metadata, app.env
    pages = [page for page in env.collect_relations() if page in about]
    found = [row for page in pages for row in about[page].get("lmbook_claims", [])]
    text = {page: Path(env.doc2path(page)).read_text("utf-8") for page in pages}
    for path in sorted((Path(app.srcdir).parent / "data" / "studies").glob("*.json")):
        row = json.loads(path.read_text("utf-8"))
        reads = rf"""\bstored\(\s*["']{path.stem}["']"""
        row["at"] = [(p, "") for p in pages if re.search(reads, text[p])]
        row["n"] = f"{row['n']}; seeds: {len(row['seeds'])}"
        row["interval"] = " to ".join(f"{end:.3g}" for end in row["interval"] or ())
        found.append(row | {"kind": "study", "note": f"`{row['command']}`"})
    return sorted(found, key=lambda row: pages.index(row["at"][0][0]) if row["at"] else 99)


def findings(app, link: Callable[[str], str], _) -> str:
    """Return the table of all empirical claims of the book."""
    rows = _claims(app)
    table = html_table("lm-findings", COLUMNS, (_row(app, link, row) for row in rows))
    return f"{_result(rows)}{table}\n{SCRIPT}" if rows else ""


def _result(rows: list[dict]) -> str:
    """Return how many findings hold, and how many claims lack a field."""
    found = [row for row in rows if row["kind"] == "finding"]
    hold = sum(row["verdict"] == "checked" for row in found)
    lack = sum(not (row.get("rival") and row.get("null")) for row in rows)
    said = f"<p><strong>{hold} of {len(found)} findings hold</strong> for these models. "
    return f"{said}Of {len(rows)} claims in all {lack} still lack a rival or a null.</p>\n"


def _row(app, link: Callable[[str], str], row: dict) -> tuple[str, list[str]]:
    """Return a claim's attributes and its cells."""
    texts = [row.get(name) or "–" for name in ("claim", *FIELDS)] + [row["note"]]
    *said, note = (re.sub(r"`(.+?)`", r"<code>\1</code>", escape(text)) for text in texts)
    mark = VERDICTS.get(row["verdict"], row["verdict"])
    said.append(f'<span class="lm-mark">{mark}</span> <small>{note}</small>')
    chapters, links = app.config.lmbook_chapters, []
    for page, anchor in row["at"]:
        of = chapters.get(page)
        name = f"{of.numeral}. {of.short}" if of else app.env.titles[page].astext()
        links.append(f'<a href="{escape(link(page) + anchor)}">{escape(name)}</a>')
    good = "lm-holds" if "✓" in mark else "lm-fails"
    about = f' class="{good}" data-kind="{row["kind"]}"'
    return about, [*said, "<br>".join(links) or "–"]


def setup(app) -> None:
    """Collect claims while pages are read."""
    app.connect("doctree-read", _collect)
