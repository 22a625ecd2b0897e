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
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util import logging
from sphinx_exercise.nodes import exercise_enumerable_node, exercise_title

from lmbook.pages.proofs import WORK_CLASS, fold
from lmcourse import exercises
from lmcourse.exercises.codes import task_label

logger = logging.getLogger(__name__)
KIND_TITLES = {  # class → heading; in small letters the kind in the table of checks
    "predict": "Predict",
    "spot": "Spot the bug",
    "build": "Build",
    "experiment": "Experiment",
    "judge": "Judge",
}
VERDICT_SUMMARY = "What does the check say?"  # the line over what it says of the starter
CHECK_CALL = re.compile(r"exercises\.check\(")
_TASK_CLASSES = re.compile(
    rf"({'|'.join(KIND_TITLES)}) minutes-([2-9]|[1-9]\d) level-([1-3])(?: {WORK_CLASS})?"
)


def read_classes(classes: list[str]) -> list[str]:
    """Read the classes of a task: its kind, its minutes and its level.

    Parameters
    ----------
    classes : list of str
        Such as ``["exercise", "build", "minutes-10", "level-2"]``.

    Returns
    -------
    list of str
        Words for a heading, such as ``["Build", "10 minutes", "level 2 of 3"]``; empty if
        these are not the classes of a task.
    """
    match = _TASK_CLASSES.fullmatch(" ".join(classes).removeprefix("exercise "))
    if not match:
        return []
    kind, minutes, level = match.groups()
    return [KIND_TITLES[kind], f"{minutes} minutes", f"level {level} of 3"]


def checks_by_label(page: str) -> dict[str, str]:
    """Return the names of a chapter's checks by the labels of their tasks.

    Parameters
    ----------
    page : str
        The chapter's name.

    Returns
    -------
    dict of str to str
        Label of a task → name of its check, such as ``{"ex-attention-heads":
        "attention.heads"}``; empty if the chapter has no checks.
    """
    try:
        names = exercises.names(page)
    except ValueError:
        return {}
    return {task_label(name): name for name in names}


def task_fault(page: str, label: str, classes: list[str]) -> str:
    """Return what is wrong with a task, in words; "" if nothing.

    Behind "exercise" its classes must be kind, minutes and level, in this order;
    "lm-work" may follow. If the chapter has checks, one must belong to the task's label,
    and be of its kind.

    Parameters
    ----------
    page : str
        The chapter's name.
    label : str
        The task's, such as "ex-attention-heads"; underscores count as hyphens.
    classes : list of str
        Such as ``["exercise", "build", "minutes-10", "level-2"]``.
    """
    if not (attributes := read_classes(classes)):
        kinds = ", ".join(KIND_TITLES)
        form = f"a kind ({kinds}), minutes-2 to minutes-99, level-1 to level-3"
        return f"its :class: is {' '.join(classes[1:])!r}; it should be {form}"
    checks = checks_by_label(page)
    if not checks:
        return ""
    name = checks.get(label.replace("_", "-"))
    if name is None:
        return f"no check belongs to its label; there are {', '.join(sorted(checks))}"
    kind = attributes[0]
    if name not in exercises.names(page, kind.lower()):
        return f"it is of the kind {kind}, its check {name} is not"
    return ""


def note_tasks(app: Sphinx, doctree: nodes.document) -> None:
    """Keep the labels of a page's tasks for the table of all, and report what is wrong.

    They are kept in ``app.env.metadata`` of the page as ``lmbook_tasks``, a list of str. A
    fault (`task_fault`) is a warning.

    Sphinx calls this when a page has been read; ``doctree`` is the page.
    """
    tasks = list(doctree.findall(exercise_enumerable_node))
    page = app.env.docname
    app.env.metadata[page]["lmbook_tasks"] = [task["label"] for task in tasks]
    for task in tasks:
        if wrong := task_fault(page, task["label"], task["classes"]):
            logger.warning("the task %s: %s", task["label"], wrong, location=page)


def fold_verdicts(app: Sphinx, doctree: nodes.document) -> None:
    """Fold the verdicts in tasks, since they tell what is wrong.

    A verdict is what a check says of the task's starter, the output of a cell that calls
    it. Each is put into a `fold`, with the line "What does the check say?".

    Sphinx calls this when a page has been read; ``doctree`` is the page, changed in place.
    """
    for task in doctree.findall(exercise_enumerable_node):
        for container in list(task.findall(nodes.container)):
            is_output = container.get("nb_element") == "cell_code_output"
            if is_output and CHECK_CALL.search(container.parent[0].astext()):
                # Raw, so that a search skips it.
                line = nodes.raw("", f"<summary>{VERDICT_SUMMARY}</summary>", format="html")
                folded = fold("", line, classes=["lm-starter"])
                container.parent.replace(container, folded)
                folded += container


class Headings(SphinxPostTransform):
    """Write ``Predict · 3 minutes · level 1 of 3: What changes?``, with Sphinx's number."""

    default_priority = 15  # before sphinx-exercise puts it in brackets

    def run(self) -> None:
        """Write the kind, minutes and level of each task of a page into its heading.

        They are the task's classes, such as "build", "minutes-10" and "level-2".
        """
        for task in self.document.findall(exercise_enumerable_node):
            title = task.children[0]
            attributes = read_classes(task["classes"])
            if attributes and isinstance(title, exercise_title):
                kind, *time_and_level = attributes
                colon = nodes.inline("", ": ", classes=["visually-hidden"])
                rest = " · ".join(["", *time_and_level])
                quiet = nodes.inline("", rest, colon, classes=["lm-task-about"])
                head = nodes.inline("", kind, quiet, classes=["lm-task-kind"])
                question = nodes.inline("", "", *title[1].children, classes=["lm-asked"])
                task.replace(title, nodes.title("", "", head, question))


# --- how far a reader is --------------------------------------------------------------


def _write_table(app: Sphinx, env: BuildEnvironment) -> None:
    """Write ``tasks-table.js``, which tells every page the tasks of all pages.

    It sets ``lmcourse.tasks`` to ``book``, the book's title, and ``pages``: name of each
    page with tasks → their labels. Sphinx calls this when all pages are read; ``env`` is
    its environment, in whose ``metadata`` each page's ``lmbook_tasks`` are the labels.
    """
    if app.builder.format == "html":
        noted = {page: env.metadata[page].get("lmbook_tasks") for page in env.found_docs}
        pages = {page: tasks for page, tasks in noted.items() if tasks}
        table = json.dumps({"book": app.config.html_title, "pages": pages}, sort_keys=True)
        text = f"(window.lmcourse = window.lmcourse || {{}}).tasks = {table};\n"
        path = Path(app.outdir) / "_static" / "lib" / "tasks-table.js"
        path.write_text(text, encoding="utf-8")


def setup(app: Sphinx) -> None:
    """Have Sphinx check, fold and list tasks; add the scripts that keep what was done.

    These keep in the reader's browser which tasks are done.
    """
    app.connect("doctree-read", note_tasks)
    app.connect("doctree-read", fold_verdicts)
    app.connect("env-updated", _write_table)
    app.add_post_transform(Headings)
    app.add_js_file("lib/tasks-table.js", loading_method="defer")
    app.add_js_file("lib/tasks.js", loading_method="defer")
    app.add_css_file("lib/tasks.css")
