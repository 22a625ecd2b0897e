"""Two ways to read a page: *Read*, without code, and *Work*, with all of it.

What belongs to *Work* alone gets the class ``lm-work``: printed text, proofs, tasks that
need code, and what stands between ``workshop-start`` and ``workshop-end``. The page holds
all of it; ``static/ways.css`` hides it, and the code of cells, while the reader's way is
"read", which ``static/ways.js`` keeps. Without scripts everything shows.
"""

from docutils import nodes
from sphinx.application import Sphinx
from sphinx_exercise.nodes import exercise_enumerable_node, solution_node

from lmbook.pages.proofs import WORK_CLASS, fold

KINDS_IN_CODE = {"spot", "build", "experiment"}  # kinds of tasks
# Ways to hide a cell that hide what it gave.
HIDDEN_OUTPUT_MODES = {"all", "output", "input+output"}


def for_work(node: nodes.Node) -> bool:
    """Return whether a node belongs to *Work* alone: it has the class ``lm-work``.

    *Work* is the way to read a page with all its code; *Read* is the one without.
    """
    return WORK_CLASS in getattr(node, "attributes", {}).get("classes", ())


def mark_for_work(app: Sphinx, doctree: nodes.document) -> None:
    """Mark what belongs to *Work* alone; say at the page's end how much that is.

    It gets the class ``lm-work``: tasks that need code and their solutions, what cells
    print, cells of which nothing else is left, and sections in which nothing else stands.
    Proofs have the class already. *Read*, the way to read a page without code, leaves all
    of it out, and the code of cells.

    Sphinx calls this when a page has been read; ``doctree`` is the page, changed in place.
    """
    tasks = list(doctree.findall(exercise_enumerable_node))
    tasks = [task for task in tasks if KINDS_IN_CODE & {*task["classes"]}]
    labels = {task["label"] for task in tasks}
    solutions = (s for s in doctree.findall(solution_node) if s["target_label"] in labels)
    for node in [*tasks, *solutions]:
        node["classes"].append(WORK_CLASS)
    proofs = [node for node in doctree.findall(fold) if "lm-proof" in node["classes"]]
    cells = [n for n in doctree.findall(nodes.container) if _element_kind(n) == "cell_code"]
    for cell in cells:
        _mark_cell(cell)
    sections = (s for s in doctree.findall(nodes.section) if isinstance(s[0], nodes.title))
    for node in [*doctree.findall(fold), *sections]:  # a solution's section has no title
        if len(node) > 1 and all(map(for_work, node[1:])):
            node["classes"].append(WORK_CLASS)  # nothing of it is left but its name
    counts = {
        "cells of code": len({cell["cell_index"] for cell in cells}),
        "tasks in code": len(tasks),
        "proofs": len(proofs),
    }
    if cells:
        parts = (f"{things} ({count})" for things, count in counts.items() if count)
        _add_summary(doctree, ", ".join(parts))


def _element_kind(node: nodes.Element) -> str:
    """Return what part of a notebook myst-nb made a node of; "" if none.

    Such as "cell_code", a cell with its outputs, "cell_code_output", these alone, or
    "mime_bundle", an output in several MIME types.
    """
    return node.get("nb_element", "")


def _mark_cell(cell: nodes.container) -> None:
    """Mark a cell's printed text for *Work*, and the cell if nothing else is left of it.

    That is so if it shows nothing but printed text, or if what it shows is hidden. Printed
    text of a cell with the tag ``shown`` is for both ways to read a page. ``cell`` :
    myst-nb's, changed in place.
    """
    is_kept = "shown" in cell["cell_metadata"].get("tags", [])
    outputs = [
        output
        for node in cell
        if _element_kind(node) == "cell_code_output"
        for output in node
    ]
    texts = [each for each in outputs if not is_kept and _is_printed_text(each)]
    for text in texts:
        marked = [text]
        if _element_kind(text):  # a bundle: one of its alternatives takes its place
            marked = [node for alternative in text for node in alternative]
        for node in marked:
            node["classes"].append(WORK_CLASS)
    if len(texts) == len(outputs) or cell.get("hide_mode") in HIDDEN_OUTPUT_MODES:
        cell["classes"].append(WORK_CLASS)


def _is_printed_text(part: nodes.Element) -> bool:
    """Return whether a part of a cell's output is text as it was printed, and no more.

    ``part`` : a block of text, or myst-nb's bundle of one output in several MIME types.
    """
    if _element_kind(part) == "mime_bundle":
        return {each.get("mime_type") for each in part} <= {"text/plain"}
    return isinstance(part, nodes.literal_block)


def _add_summary(doctree: nodes.document, left: str) -> None:
    """Say at the end of a page what *Read* leaves out, with a button that shows it.

    ``doctree`` : the page, which is added to; ``left`` : str, what is left out, such as
    "cells of code (12), proofs (3)".
    """
    button = '<button type="button" data-way="work">Show them</button>'
    line = nodes.paragraph("", f"Left out here: {left}. ", classes=["lm-left-out"])
    line += nodes.raw("", button, format="html")
    page = next(doctree.findall(nodes.section))
    last = page[-1]
    if "course-end" in last.get("classes", ()):  # the end of a chapter begins with it
        last.insert(0, line)
    else:
        page.append(line)


def setup(app: Sphinx) -> None:
    """Have Sphinx mark what of each page is for *Work* alone, and add scripts and styles.

    It does so when the page's tasks, proofs and end are made.
    """
    app.connect("doctree-read", mark_for_work, priority=700)
    app.add_js_file("lib/ways.js", priority=100)  # before anything is drawn
    app.add_css_file("lib/ways.css")
