"""Findings: what was found, what it was held against, and whether it holds now.

One page lists all empirical claims of the book (`lmbook.pages.teaching`): the findings of
its pages, and the studies in ``data/studies``. Each is a sentence that opens on what it was
held against; `static/findings.js` groups them by their verdict.
"""

import itertools
import json
from collections.abc import Callable
from html import escape
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx

from lmbook.execute.keys import DEFAULTS
from lmbook.execute.run import load_stored_notebook
from lmbook.execute.verdicts import FIELDS
from lmbook.pages.markup import inline_html, inline_nodes
from lmcourse.numbers import format_number

VERDICT_MARKS = {"checked": "✓ holds", "holds": "✓ holds", "not so": "✗ not so"}
FIELD_LABELS = {
    "rival": "Rival",
    "null": "Null",
    "n": "Looked at",
    "interval": "Interval",
}


def not_so_words(models: dict[str, str]) -> str:
    """Return words for what does not hold: "not so for my-bert".

    Parameters
    ----------
    models : dict of str to str
        For each model that a page asked for: the environment variable that chooses it, such
        as LMCOURSE_BERT → the model's name. Named are those that are not the default.
    """
    return f"not so for {' and '.join(sorted({*models.values()} - {*DEFAULTS.values()}))}"


def default_models_note(models: dict[str, str]) -> list[nodes.paragraph]:
    """Return a note for text that is true of the default models only.

    Parameters
    ----------
    models : dict of str to str
        For each model that the page asked for: the environment variable that chooses it,
        such as LMCOURSE_BERT → the model's name.

    Returns
    -------
    list of paragraph
        One, such as "Found with the built-in GPT; not so for my-gpt."; [] if all models are
        the default ones.
    """
    old = [DEFAULTS[each] for each in models if models[each] != DEFAULTS[each]]
    note = f"Found with {' and '.join(old)}; {not_so_words(models)}."
    return [nodes.paragraph("", note, classes=["lm-found-note"])] if old else []


def fields_list(fields: dict[str, str]) -> list[nodes.bullet_list]:
    """Return what a proof was held against as a list of lines "NAME: TEXT".

    Parameters
    ----------
    fields : dict of str to str
        Name of each field, such as "rival" → its text, with code between backticks.

    Returns
    -------
    list of bullet_list
        One; [] if there are no fields.
    """
    lines = [inline_nodes(f"{name}: {text}") for name, text in fields.items()]
    items = [nodes.list_item("", nodes.paragraph("", "", *line)) for line in lines]
    return [nodes.bullet_list("", *items, classes=["lm-fields"])] if items else []


# --- the page that lists them -----------------------------------------------------------


def _note_claims(app: Sphinx, doctree: nodes.document) -> None:
    """Keep what a page claims, and where it does, for the page of all findings.

    The claims are those of the nodes with an attribute ``claim``, a dict
    (`lmbook.pages.proofs`). They are kept in ``app.env.metadata`` of the page as
    ``lmbook_claims``, a list of these dicts, each with ``at``: the page and the anchor.

    Sphinx calls this when a page has been read; ``doctree`` is the page.
    """
    proofs = doctree.findall(lambda node: "claim" in getattr(node, "attributes", ()))
    app.env.metadata[app.env.docname]["lmbook_claims"] = [
        node["claim"] | {"at": [(app.env.docname, f"#{node['ids'][0]}")]} for node in proofs
    ]


def _all_claims(app: Sphinx) -> list[dict]:
    """Return all claims in the order of the book, each study where it is first shown.

    Returns
    -------
    list of dict
        Of each claim ``claim``, its sentence; ``kind``, "finding" or "study"; ``verdict``,
        "checked" or "holds" if it holds, else "not so" or another word; ``at``, pairs of a
        page's name and an anchor, which show it; ``note``, its models or the command that
        runs the study. All text and perhaps missing: ``rival``, the other explanation that
        it was held against; ``null``, the world in which there is nothing to find; ``n``,
        what was examined; ``interval``; ``about``, what is asserted; ``failed``, the
        assertion that failed; ``source``, the function's code.
    """
    metadata = app.env.metadata
    env = app.env
    pages = [page for page in env.collect_relations() if page in metadata]
    claims = [row for page in pages for row in metadata[page].get("lmbook_claims", [])]
    root = Path(app.srcdir).parent
    reads = {page: _studies_read(page, root) for page in pages}
    for path in sorted((root / "data" / "studies").glob("*.json")):
        row = json.loads(path.read_text("utf-8"))
        row["at"] = [(page, "") for page in pages if path.stem in reads[page]]
        row["n"] = f"{row['n']}; seeds: {len(row['seeds'])}"
        row["interval"] = format_number(row["interval"], ".3g") if row["interval"] else ""
        claims.append(row | {"kind": "study", "note": f"`{row['command']}`"})

    def place(row: dict) -> int:
        """Return the place in the book, from 0, of the page that first shows a claim.

        ``row`` : the claim; its ``at`` is empty if no page does, and then it comes last.
        """
        return pages.index(row["at"][0][0]) if row["at"] else len(pages)

    return sorted(claims, key=place)


def _studies_read(page: str, root: Path) -> set[str]:
    """Return the names of the stored studies that a page read when it was executed.

    They are files of ``data/studies``, without ".json"; none if the page was not executed.
    ``page`` : its name; ``root`` : the book's folder.
    """
    executed = load_stored_notebook(page, root)
    reads = executed.metadata.lmbook.reads if executed else ()
    paths = (Path(each) for each in reads)
    return {path.stem for path in paths if path.parts[-3:-1] == ("data", "studies")}


def findings_html(app: Sphinx, link: Callable[[str], str], _) -> str:
    """Return all empirical claims of the book as HTML: sentences that open on the rest.

    They are grouped by the page that first shows them; above stands how many hold. "" if
    there are none.

    Parameters
    ----------
    app : Sphinx
    link : callable
        From a page's name to its address.
    _ : Node
        Unused: what the HTML takes the place of.
    """
    rows = _all_claims(app)
    if not rows:
        return ""
    groups = ""
    for page, claims in itertools.groupby(
        rows, key=lambda row: row["at"] and row["at"][0][0]
    ):
        items = "".join(_claim_html(app, link, row) for row in claims)
        name = _page_name(app, page) if page else "Not shown on a page"
        groups += f'<section class="lm-group"><h2>{escape(name)}</h2>\n{items}</section>\n'
    return f'{_summary(rows)}<div class="lm-findings">\n{groups}</div>\n'


def _summary(rows: list[dict]) -> str:
    """Return how many findings hold, as HTML.

    ``rows`` : a dict for each claim. Those with ``kind`` "finding" are counted; one holds
    if its ``verdict`` is "checked".
    """
    verdicts = [row["verdict"] for row in rows if row["kind"] == "finding"]
    hold = verdicts.count("checked")
    text = f"<strong>{hold} of {len(verdicts)} findings hold</strong> with these models."
    return f"<p>{text}</p>\n"


def _claim_html(app: Sphinx, link: Callable[[str], str], row: dict) -> str:
    """Return a claim as HTML: its sentence and verdict, which open on all the rest.

    Parameters
    ----------
    app : Sphinx
    link : callable
        From a page's name to its address.
    row : dict
        ``claim``, its sentence; ``kind``, "finding" or "study"; ``verdict``, "checked" or
        "holds" if it holds, else "not so" or another word; ``at``, pairs of a page's name
        and an anchor, which show it; ``note``, its models or the command that runs the
        study, perhaps "". All text and perhaps missing: ``rival``, the other explanation
        that it was held against; ``null``, the world in which there is nothing to find;
        ``n``, what was examined; ``interval``; ``about``, what is asserted; ``failed``, the
        assertion that failed; ``source``, the function's code.
    """
    mark = VERDICT_MARKS.get(row["verdict"], row["verdict"])
    holds = "✓" in mark
    links = [
        f'<a href="{escape(link(page) + anchor)}">{escape(_page_name(app, page))}</a>'
        for page, anchor in row["at"]
    ]
    terms = [
        (FIELD_LABELS[name], inline_html(row[name])) for name in FIELDS if row.get(name)
    ]
    if row.get("about"):
        terms.append(("What is asserted", inline_html(row["about"])))
    if row.get("failed"):
        terms.append(("Where it failed", inline_html(f"`{row['failed']}`")))
    if row["note"]:
        origin = "Run by" if row["kind"] == "study" else "Model"
        terms.append((origin, inline_html(row["note"])))
    if links:
        terms.append(("Shown in", ", ".join(links)))
    fields = "".join(f"<dt>{name}</dt><dd>{text}</dd>\n" for name, text in terms)
    code = row.get("source", "")
    if code:
        fields += f"<dt>Code</dt><dd><pre>{escape(code)}</pre></dd>\n"
    where = _page_name(app, row["at"][0][0]) if row["at"] else ""
    return (
        f'<details class="lm-claim {"lm-holds" if holds else "lm-fails"}"'
        f' data-kind="{row["kind"]}">\n<summary><span class="lm-sentence">'
        f'{inline_html(row["claim"])}</span> <span class="lm-mark">{mark}</span>'
        f' <small class="lm-from">{escape(where)}</small></summary>\n'
        f"<dl>{fields}</dl></details>\n"
    )


def _page_name(app: Sphinx, page: str) -> str:
    """Return what a page is called: "4. Attention", or its title if it is no chapter.

    ``page`` : its name; ``app`` : Sphinx's, which knows the chapters.
    """
    chapter = app.config.lmbook_chapters.get(page)
    if chapter is None:
        return app.env.titles[page].astext()
    return chapter.with_number(chapter.short)


def setup(app: Sphinx) -> None:
    """Have Sphinx collect the claims of each page when it has been read."""
    app.connect("doctree-read", _note_claims)
