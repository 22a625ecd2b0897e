"""Findings: what was found, what it was held against, and whether it holds now.

One page lists all empirical claims of the book (`lmbook.pages.teaching`): the proofs that
are findings or have a rival, and the studies in ``data/studies``. Each is a sentence that
opens on what it was held against; `static/findings.js` groups them by their verdict.
"""

import itertools
import json
import re
from collections.abc import Callable
from html import escape
from pathlib import Path

from docutils import nodes

from lmbook.execute.keys import DEFAULTS
from lmbook.execute.run import stored
from lmbook.execute.verdicts import FIELDS
from lmbook.pages.markup import with_code
from lmcourse.numbers import format_number

VERDICTS = {"checked": "✓ holds", "holds": "✓ holds", "not so": "✗ not so"}
LABELS = {
    "rival": "Rival",
    "null": "Null",
    "n": "Looked at",
    "interval": "Interval",
}


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
    root = Path(app.srcdir).parent
    reads = {page: _studies_read(page, root) for page in pages}
    for path in sorted((root / "data" / "studies").glob("*.json")):
        row = json.loads(path.read_text("utf-8"))
        row["at"] = [(page, "") for page in pages if path.stem in reads[page]]
        row["n"] = f"{row['n']}; seeds: {len(row['seeds'])}"
        row["interval"] = format_number(row["interval"], ".3g") if row["interval"] else ""
        found.append(row | {"kind": "study", "note": f"`{row['command']}`"})
    return sorted(found, key=lambda row: pages.index(row["at"][0][0]) if row["at"] else 99)


def _studies_read(page: str, root: Path) -> set[str]:
    """Return the stored studies that a page read when it was executed."""
    executed = stored(page, root)
    reads = executed.metadata.lmbook.reads if executed else ()
    paths = (Path(each) for each in reads)
    return {path.stem for path in paths if path.parts[-3:-1] == ("data", "studies")}


def findings(app, link: Callable[[str], str], _) -> str:
    """Return all empirical claims of the book: the sentences, each opening on the rest."""
    rows = _claims(app)
    if not rows:
        return ""
    groups = ""
    for page, claims in itertools.groupby(
        rows, key=lambda row: row["at"] and row["at"][0][0]
    ):
        told = "".join(_item(app, link, row) for row in claims)
        name = _page_name(app, page) if page else "Not shown on a page"
        groups += f'<section class="lm-group"><h2>{escape(name)}</h2>\n{told}</section>\n'
    return f'{_result(rows)}<div class="lm-findings">\n{groups}</div>\n'


def _result(rows: list[dict]) -> str:
    """Return how many findings hold, and how many claims lack a field."""
    found = [row for row in rows if row["kind"] == "finding"]
    hold = sum(row["verdict"] == "checked" for row in found)
    lack = sum(not (row.get("rival") and row.get("null")) for row in rows)
    said = f"<p><strong>{hold} of {len(found)} findings hold</strong> with these models."
    if lack:
        said += f" Of {len(rows)} claims in all, {lack} still lack a rival or a null."
    return f"{said}</p>\n"


def _item(app, link: Callable[[str], str], row: dict) -> str:
    """Return a claim: its sentence with its verdict, which opens on all the rest."""
    mark = VERDICTS.get(row["verdict"], row["verdict"])
    holds = "✓" in mark
    links = [
        f'<a href="{escape(link(page) + anchor)}">{escape(_page_name(app, page))}</a>'
        for page, anchor in row["at"]
    ]
    told = [(LABELS[name], _html(row[name])) for name in FIELDS if row.get(name)]
    told += [(LABELS[name], "none yet") for name in ("rival", "null") if not row.get(name)]
    told += [("What is asserted", _html(row["about"]))] if row.get("about") else []
    told += [("Where it failed", _html(f"`{row['failed']}`"))] if row.get("failed") else []
    if row["note"]:
        told.append(("Run by" if row["kind"] == "study" else "Model", _html(row["note"])))
    told += [("Shown in", ", ".join(links))] if links else []
    fields = "".join(f"<dt>{name}</dt><dd>{text}</dd>\n" for name, text in told)
    code = row.get("source", "")
    if code:
        fields += f"<dt>Code</dt><dd><pre>{escape(code)}</pre></dd>\n"
    where = _page_name(app, row["at"][0][0]) if row["at"] else ""
    return (
        f'<details class="lm-claim {"lm-holds" if holds else "lm-fails"}"'
        f' data-kind="{row["kind"]}">\n<summary><span class="lm-sentence">'
        f'{_html(row["claim"])}</span> <span class="lm-mark">{mark}</span>'
        f' <small class="lm-from">{escape(where)}</small></summary>\n'
        f"<dl>{fields}</dl></details>\n"
    )


def _html(text: str) -> str:
    """Return words as HTML, code between backticks."""
    return re.sub(r"`(.+?)`", r"<code>\1</code>", escape(text))


def _page_name(app, page: str) -> str:
    of = app.config.lmbook_chapters.get(page)
    return f"{of.numeral}. {of.short}" if of else app.env.titles[page].astext()


def setup(app) -> None:
    """Collect claims while pages are read."""
    app.connect("doctree-read", _collect)
