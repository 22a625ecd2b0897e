"""Search: the text of every section, for MiniSearch to look through in the browser.

Sphinx's own search knows words by their stems, finds nothing for a word with a slip, and
fetches pages to quote them, which a browser refuses where the book is opened as files.
Ours is one script, loaded on the page of results only; `static/search.js` asks it.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.config import Config

from lmbook.pages.proofs import fold_line
from lmbook.pages.ways import for_work

SCRIPTS = ("minisearch/index.js", "search-data.js", "search.js")  # in this order
_LEFT_OUT = (nodes.math_block, nodes.raw, nodes.comment, addnodes.glossary)
_BLOCKS = (nodes.paragraph, nodes.caption, nodes.entry, nodes.rubric, fold_line)


def sections(doctree: nodes.document) -> Iterator[tuple[str, str, str, str, str]]:
    """Yield the text of each section of a page, without that of sections inside it.

    An entry of a glossary is a section, too: the term is its heading. ``doctree`` : the
    page.

    Yields
    ------
    anchor, heading, prose, work, code : str
        The section's anchor on the page and its heading. A page can be read in two ways,
        *Read* and *Work*: ``prose`` is the text that both show, ``work`` that which only
        *Work* shows; ``code`` are the names that stand in code, sorted, with spaces
        between.
    """
    for section in doctree.findall(_has_heading):
        title = section[0].astext()
        prose = []
        work = []
        code = []
        for child in section.children[1:]:
            if not _has_heading(child):
                _gather_text(child, work if for_work(section) else prose, work, code)
        names = sorted(set(re.findall(r"[A-Za-z_]\w{2,}", " ".join(code))))
        yield section["ids"][0], title, _one_line(prose), _one_line(work), " ".join(names)
    for glossary in doctree.findall(addnodes.glossary):
        for entry in glossary.findall(nodes.definition_list_item):
            term = entry[0]
            definition = entry[-1]
            yield term["ids"][0], term.astext(), _one_line([_text_of(definition)]), "", ""


def _has_heading(node: nodes.Node) -> bool:
    """Return whether a node is a section with a title; in exercises some have none."""
    return isinstance(node, nodes.section) and isinstance(node[0], nodes.title)


def _resolve_references(doctree: nodes.document, env) -> nodes.document:
    """Replace references by the titles of what they refer to, in place; return the page.

    A term of the glossary is replaced by its own text. References to numbers and citations,
    which are not known yet, are left out. Those with a text of their own, and those to
    Python objects, stay.

    ``doctree`` : the page; ``env`` : Sphinx's environment.
    """
    labels = env.get_domain("std").labels
    for reference in list(doctree.findall(addnodes.pending_xref)):
        if not reference.get("refexplicit") and reference["refdomain"] != "py":
            *_, title = labels.get(reference["reftarget"], [""])
            words = {"ref": title, "term": reference.astext()}
            text = nodes.Text(words.get(reference["reftype"], ""))
            reference.parent.replace(reference, text)
    return doctree


def _one_line(parts: list[str]) -> str:
    """Join texts, each run of white space as one space."""
    return re.sub(r"\s+", " ", " ".join(parts)).strip()


def _gather_text(
    node: nodes.Node, prose: list[str], work: list[str], code: list[str]
) -> None:
    """Add the texts inside a node to three lists; of outputs, captions only.

    Parameters
    ----------
    node : Node
        Of a page. What is left out of a search (formulas, raw HTML, comments, glossaries,
        and the line and the end that each chapter gets) adds nothing.
    prose, work, code : list of str
        Texts are appended to them: what both ways to read a page show, what only *Work*
        shows, and blocks of code.
    """
    if isinstance(node, _LEFT_OUT) or not isinstance(node, nodes.Element):
        return
    if {"course-end", "course-line"} & {*node["classes"]}:
        return
    if for_work(node):
        prose = work
    if node.get("nb_element") == "cell_code_output":
        prose += map(_text_of, node.findall(nodes.caption))
    elif isinstance(node, nodes.literal_block):
        code.append(node.astext())
    elif isinstance(node, _BLOCKS):
        prose.append(_text_of(node))
    else:
        for child in node.children:
            _gather_text(child, prose, work, code)


def _text_of(node: nodes.Element) -> str:
    """Return the text of a node, such as a paragraph, each formula as "…"."""
    texts = node.findall(nodes.Text)
    return "".join("…" if isinstance(t.parent, nodes.math) else str(t) for t in texts)


def _add_search(
    app: Sphinx,
    pagename: str,
    templatename: str,
    context: dict,
    doctree: nodes.document | None,
) -> None:
    """Add the scripts that search to the page of results, and write what they search.

    Sphinx calls this for each page, when it knows the text of all; all arguments but
    ``app`` and ``pagename`` are not used. What is searched is written first: Sphinx puts a
    checksum of each script into its address.
    """
    if pagename == "search":
        _write_search_data(app)
        for name in SCRIPTS:
            app.add_js_file(f"lib/{name}", loading_method="defer")


def _write_search_data(app: Sphinx) -> None:
    """Write the sections of all pages as a script: files cannot be fetched.

    The script ``search-data.js`` sets ``window.lmbookSections`` to a list of lists: the
    page's address, its name with the number of the chapter, and, of each section
    (`sections`), anchor, heading, prose, work and code.
    """
    chapters = app.config.lmbook_chapters
    entries = []
    for name in sorted(app.env.found_docs):
        title = app.env.titles[name].astext()
        chapter = chapters.get(name)
        where = chapter.with_number(chapter.short) if chapter else title
        uri = app.builder.get_target_uri(name)
        doctree = _resolve_references(app.env.get_doctree(name), app.env)
        for number, (anchor, heading, *texts) in enumerate(sections(doctree)):
            if chapter and number == 0:  # by its name the chapter itself is found first
                heading = f"{chapter.short}: {heading}"
            entries.append((uri, where, anchor, heading, *texts))
    body = json.dumps(entries, ensure_ascii=False, separators=(",", ":"))
    path = Path(app.outdir) / "_static" / "lib" / "search-data.js"
    path.write_text(f"window.lmbookSections = {body};\n", encoding="utf-8")


def _switch_off_sphinx_search(app: Sphinx) -> None:
    """Keep Sphinx from making its own index of words, when it writes HTML."""
    if app.builder.name == "html":
        app.builder.search = False


def _configure(app: Sphinx, config: Config) -> None:
    """Tell Sphinx of our page of results: the template ``search.html`` of `lmbook`."""
    config.templates_path.append(str(Path(__file__).parents[1] / "templates"))
    config.html_additional_pages["search"] = "search.html"


def setup(app: Sphinx) -> None:
    """Put our search in the place of Sphinx's: its page of results, and its data."""
    app.connect("config-inited", _configure)
    app.connect("builder-inited", _switch_off_sphinx_search)
    app.connect("html-page-context", _add_search)
