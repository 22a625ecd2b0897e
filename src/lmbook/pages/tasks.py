"""Tasks: the five kinds of exercise, and how far a reader is.

A task is an exercise of sphinx-exercise whose classes are kind, minutes and difficulty:
``build minutes-10 level-2``. Here its heading gets them, what its check says of the starter
is folded, it is held to the chapter's table of checks, and every page learns which tasks
each chapter has; what was done stays in the reader's browser (``static/tasks.js``).
"""

import json
import re
from pathlib import Path

from docutils import nodes
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util import logging
from sphinx_exercise.nodes import exercise_enumerable_node, exercise_title

from lmbook.pages.proofs import WORK, fold
from lmcourse import exercises

logger = logging.getLogger(__name__)
WORDS = {  # class → heading; in small letters the kind in the table of checks
    "predict": "Predict",
    "spot": "Spot the bug",
    "build": "Build",
    "experiment": "Experiment",
    "judge": "Judge",
}
FOLDED = "What does the check say?"  # the line over what it says of the starter
CHECKED = re.compile(r"exercises\.check\(")
CLASSES = re.compile(
    rf"({'|'.join(WORDS)}) minutes-([2-9]|[1-9]\d) level-([1-3])(?: {WORK})?"
)


def asked(classes: list[str]) -> list[str]:
    """Read a task's classes: "Build", "10 minutes", "level 2 of 3"; [] if wrong."""
    found = CLASSES.fullmatch(" ".join(classes).removeprefix("exercise "))
    if not found:
        return []
    kind, minutes, level = found.groups()
    return [WORDS[kind], f"{minutes} minutes", f"level {level} of 3"]


def registered(page: str) -> dict[str, str]:
    """Return the labels of a chapter's checks → their names; {} if it has no table."""
    try:
        found = exercises.names(page)
    except ValueError:
        return {}
    return {f"ex-{name.replace('.', '-').replace('_', '-')}": name for name in found}


def fault(page: str, label: str, classes: list[str]) -> str:
    """Return what is wrong with a task, "" if nothing.

    Its classes are kind, minutes and level, and if the chapter has a table of checks, that
    has one of its label and kind.
    """
    if not (said := asked(classes)):
        form = f"a kind ({', '.join(WORDS)}), minutes-2 to minutes-99, level-1 to level-3"
        return f"its :class: is {' '.join(classes[1:])!r}; it should be {form}"
    table = registered(page)
    name = table.get(label.replace("_", "-"))
    if table and name is None:
        return f"no check belongs to its label; there are {', '.join(sorted(table))}"
    if table and name not in exercises.names(page, said[0].lower()):
        return f"it is of the kind {said[0]}, its check {name} is not"
    return ""


def collect(app, doctree: nodes.document) -> None:
    """Note a page's tasks, and report what is wrong with them."""
    tasks = list(doctree.findall(exercise_enumerable_node))
    page = app.env.docname
    app.env.metadata[page]["lmbook_tasks"] = [task["label"] for task in tasks]
    for task in tasks:
        if wrong := fault(page, task["label"], task["classes"]):
            logger.warning("the task %s: %s", task["label"], wrong, location=page)


def fold_verdicts(app, doctree: nodes.document) -> None:
    """Fold what cells of tasks show that call a check: it tells what is wrong."""
    for task in doctree.findall(exercise_enumerable_node):
        for shown in list(task.findall(nodes.container)):
            output = shown.get("nb_element") == "cell_code_output"
            if output and CHECKED.search(shown.parent[0].astext()):
                line = nodes.raw("", f"<summary>{FOLDED}</summary>", format="html")
                made = fold("", line, classes=["lm-starter"])  # a search skips what is raw
                shown.parent.replace(shown, made)
                made += shown


class Headings(SphinxPostTransform):
    """Write ``Predict · 3 minutes · level 1 of 3: What changes?``, with Sphinx's number."""

    default_priority = 15  # before sphinx-exercise puts it in brackets

    def run(self) -> None:
        for task in self.document.findall(exercise_enumerable_node):
            title, said = task.children[0], asked(task["classes"])
            if said and isinstance(title, exercise_title):
                colon = nodes.inline("", ": ", classes=["visually-hidden"])
                about = " · ".join(["", *said[1:]])
                quiet = nodes.inline("", about, colon, classes=["lm-task-about"])
                word = nodes.inline("", said[0], quiet, classes=["lm-task-kind"])
                words = nodes.inline("", "", *title[1].children, classes=["lm-asked"])
                task.replace(title, nodes.title("", "", word, words))


# --- how far a reader is --------------------------------------------------------------


def _write_table(app, env) -> None:
    """Leave which tasks each page has, once for all pages."""
    if app.builder.format == "html":
        found = {page: env.metadata[page].get("lmbook_tasks") for page in env.found_docs}
        pages = {page: tasks for page, tasks in found.items() if tasks}
        table = json.dumps({"book": app.config.html_title, "pages": pages}, sort_keys=True)
        text = f"(window.lmcourse = window.lmcourse || {{}}).tasks = {table};\n"
        path = Path(app.outdir) / "_static" / "lib" / "tasks-table.js"
        path.write_text(text, encoding="utf-8")


def setup(app) -> None:
    """Check and count tasks; give every page the scripts that keep what was done."""
    app.connect("doctree-read", collect)
    app.connect("doctree-read", fold_verdicts)
    app.connect("env-updated", _write_table)
    app.add_post_transform(Headings)
    app.add_js_file("lib/tasks-table.js", loading_method="defer")
    app.add_js_file("lib/tasks.js", loading_method="defer")
    app.add_css_file("lib/tasks.css")
