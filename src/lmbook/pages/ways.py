"""Two ways to read a page: *Read*, without code, and *Work*, with all of it.

What belongs to *Work* alone gets the class ``lm-work``: printed text, proofs, tasks that
need code, and what stands between ``workshop-start`` and ``workshop-end``. The page holds
all of it; ``static/ways.css`` hides it, and the code of cells, while the reader's way is
"read", which ``static/ways.js`` keeps. Without scripts everything shows.
"""

from collections.abc import Iterable

from docutils import nodes
from sphinx_exercise.nodes import exercise_enumerable_node, solution_node

from lmbook.pages.proofs import WORK, fold

IN_CODE = {"spot", "build", "experiment"}  # kinds of tasks
FOLDED = {"all", "output", "input+output"}  # ways to hide a cell that hide what it gave
PLAIN = {"text/plain"}


def for_work(node: nodes.Node) -> bool:
    """Say whether a node is marked as belonging to *Work* alone."""
    return WORK in getattr(node, "attributes", {}).get("classes", ())


def divide(app, doctree: nodes.document) -> None:
    """Mark what belongs to *Work*; say at the page's end how much that is."""
    tasks = [
        task
        for task in doctree.findall(exercise_enumerable_node)
        if IN_CODE & {*task["classes"]}
    ]
    labels = {task["label"] for task in tasks}
    solutions = doctree.findall(solution_node)
    _mark(tasks)
    _mark(each for each in solutions if each["target_label"] in labels)
    proofs = list(doctree.findall(lambda node: "lm-proof" in _classes(node)))
    _mark(proofs)
    _mark(doctree.findall(lambda node: "lm-checked" in _classes(node)))
    cells = list(doctree.findall(lambda node: _part(node) == "cell_code"))
    for cell in cells:
        _divide_cell(cell)
    for each in (fold, nodes.section):  # of which nothing is left but their names
        whole = [node for node in doctree.findall(each) if all(map(for_work, node[1:]))]
        _mark(node for node in whole if len(node) > 1)
    counts = {"cell of code": len(cells) - len(proofs), "task in code": len(tasks)}
    left = [
        _counted(n, thing) for thing, n in (counts | {"proof": len(proofs)}).items() if n
    ]
    if left:
        _add_line(doctree, left)


def _classes(node: nodes.Node) -> list[str]:
    return getattr(node, "attributes", {}).get("classes", [])


def _part(node: nodes.Node) -> str:
    return getattr(node, "attributes", {}).get("nb_element", "")


def _mark(found: Iterable[nodes.Element]) -> None:
    for node in found:
        node["classes"].append(WORK)


def _divide_cell(cell: nodes.container) -> None:
    """Mark a cell's printed text, and the cell if nothing of it is left."""
    shown = "shown" in cell["cell_metadata"].get("tags", [])
    gave = [node for node in cell if _part(node) == "cell_code_output"]
    parts = [part for node in gave for part in node]
    text = [part for part in parts if not shown and _is_text(part)]
    for part in text:  # of a bundle one alternative takes its place
        _mark(node for each in part for node in each) if _part(part) else _mark([part])
    if len(text) == len(parts) or cell.get("hide_mode") in FOLDED:
        _mark([cell])


def _is_text(part: nodes.Element) -> bool:
    """Say whether a part of an output is text as it was printed."""
    if _part(part) == "mime_bundle":
        return {each.get("mime_type") for each in part} <= PLAIN
    return isinstance(part, nodes.literal_block)


def _counted(count: int, thing: str) -> str:
    first, *rest = thing.split(" ", 1)
    return " ".join([str(count), first + "s" * (count != 1), *rest])


def _add_line(doctree: nodes.document, left: list[str]) -> None:
    """Say at the end of a page what *Read* leaves out."""
    said = " and ".join(filter(None, [", ".join(left[:-1]), left[-1]]))
    line = nodes.paragraph("", f"Left out here: {said}. ", classes=["lm-left-out"])
    line += nodes.raw(
        "", '<button type="button" data-way="work">Show them</button>', format="html"
    )
    page = next(doctree.findall(nodes.section))
    end = page[-1] if "course-end" in _classes(page[-1]) else page
    end.insert(0 if end is not page else len(page), line)


def setup(app) -> None:
    """Divide each page once its tasks, proofs and end are made."""
    app.connect("doctree-read", divide, priority=700)
    app.add_js_file("lib/ways.js", priority=100)  # before anything is drawn
    app.add_css_file("lib/ways.css")
