"""Tasks: the five kinds of exercise, and how far a reader is.

A task is an exercise of sphinx-exercise with a kind as its class. Here its heading gets the
kind's word, it is held to the chapter's table of checks, and every page learns which tasks
each chapter has; what was done stays in the reader's browser (``static/tasks.js``).
"""

import json
from pathlib import Path

from docutils import nodes
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util import logging
from sphinx_exercise.nodes import exercise_enumerable_node, exercise_title

from lmcourse import exercises

logger = logging.getLogger(__name__)
WORDS = {  # class → heading; in small letters the kind in the table of checks
    "predict": "Predict",
    "spot": "Spot the bug",
    "build": "Build",
    "experiment": "Experiment",
    "judge": "Judge",
}
FORM = ("exercise", "dropdown")  # classes that say nothing about the kind


def registered(page: str) -> dict[str, str]:
    """Return the labels of a chapter's checks → their names; {} if it has no table."""
    try:
        found = exercises.names(page)
    except ValueError:
        return {}
    return {f"ex-{name.replace('.', '-').replace('_', '-')}": name for name in found}


def check(page: str, label: str, classes: list[str]) -> None:
    """Hold a task to its kind, and to the chapter's table of checks if there is one.

    Raises
    ------
    ValueError
        If it has not one kind; or if the table has no check of this label and kind.
    """
    kind = " ".join(name for name in classes if name not in FORM)
    if kind not in WORDS:
        raise ValueError(f"its kind is {kind!r}; :class: is one of {', '.join(WORDS)}")
    if table := registered(page):
        name = table.get(label.replace("_", "-"))
        if name is None:
            known = ", ".join(sorted(table))
            raise ValueError(f"no check belongs to its label; there are {known}")
        if name not in exercises.names(page, WORDS[kind].lower()):
            raise ValueError(f"it is of the kind {kind!r}, its check {name} is not")


def collect(app, doctree: nodes.document) -> None:
    """Note a page's tasks, and report what is wrong with them."""
    tasks = list(doctree.findall(exercise_enumerable_node))
    page = app.env.docname
    app.env.metadata[page]["lmbook_tasks"] = [task["label"] for task in tasks]
    for task in tasks:
        try:
            check(page, task["label"], task["classes"])
        except ValueError as error:
            logger.warning("the task %s: %s", task["label"], error, location=page)


class Headings(SphinxPostTransform):
    """Write ``Predict: What does the mask change?``; the number is Sphinx's."""

    default_priority = 15  # before sphinx-exercise puts it in brackets

    def run(self) -> None:
        for task in self.document.findall(exercise_enumerable_node):
            kinds = [WORDS[name] for name in WORDS if name in task["classes"]]
            title = task.children[0]
            if kinds and isinstance(title, exercise_title):
                colon = nodes.inline("", ": ", classes=["visually-hidden"])
                word = nodes.inline("", kinds[0], colon, classes=["lm-task-kind"])
                asked = nodes.inline("", "", *title[1].children, classes=["lm-asked"])
                task.replace(title, nodes.title("", "", word, asked))


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
    app.connect("env-updated", _write_table)
    app.add_post_transform(Headings)
    app.add_js_file("lib/tasks-table.js", loading_method="defer")
    app.add_js_file("lib/tasks.js", loading_method="defer")
    app.add_css_file("lib/tasks.css")
