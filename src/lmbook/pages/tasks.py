"""Tasks: the five kinds of exercise, and how far a reader is.

A task is an exercise of sphinx-exercise whose classes are kind, minutes and difficulty:
``build minutes-10 level-2``. Here its heading gets them, what its check says of the starter
is folded, it is held to the chapter's table of checks, and every page learns which tasks
each chapter has; what was done stays in the reader's browser (``static/tasks.js``).
"""

import json
import re
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from docutils import nodes
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util import logging
from sphinx_exercise.nodes import exercise_enumerable_node, exercise_title

from lmbook.pages.proofs import fold, fold_line
from lmcourse import exercises

logger = logging.getLogger(__name__)
WORDS = {  # class → heading; in small letters the kind in the table of checks
    "predict": "Predict",
    "spot": "Spot the bug",
    "build": "Build",
    "experiment": "Experiment",
    "judge": "Judge",
}
FORM = ("exercise", "dropdown")  # classes that say nothing about the task
FOLDED = "What does the check say?"  # the line over what it says of the starter
CHECKED = re.compile(r"exercises\.check\(")
LEVELS = 3


class Asked(NamedTuple):
    """What a task's classes say of it."""

    kind: str
    minutes: int
    level: int

    def words(self) -> tuple[str, str, str]:
        """Return them as its heading shows them: ("Build", "10 minutes", "●●○")."""
        dots = "●" * self.level + "○" * (LEVELS - self.level)
        return WORDS[self.kind], f"{self.minutes} minute{'s' * (self.minutes > 1)}", dots


def asked(classes: list[str]) -> Asked:
    """Read a task's classes.

    Raises
    ------
    ValueError
        If they are not kind, minutes and level, in this order.
    """
    written = " ".join(name for name in classes if name not in FORM)
    kind, _, rest = written.partition(" ")
    if kind not in WORDS:
        raise ValueError(f"its kind is {kind!r}; :class: begins with {', '.join(WORDS)}")
    found = re.fullmatch(rf"minutes-([1-9]\d?) level-([1-{LEVELS}])", rest)
    if not found:
        raise ValueError(
            f"after its kind stands {rest!r}; :class: is {kind}, minutes-1 to minutes-99, "
            f"and level-1 to level-{LEVELS}, as `{kind} minutes-10 level-2`"
        )
    return Asked(kind, int(found[1]), int(found[2]))


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
        If its classes are not kind, minutes and level; or if the table has no check of
        this label and kind.
    """
    kind = asked(classes).kind
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


def fold_verdicts(app, doctree: nodes.document) -> None:
    """Fold what cells of tasks show that call a check: it tells what is wrong."""
    for task in doctree.findall(exercise_enumerable_node):
        for cell in task.findall(nodes.container):
            shown = [n for n in cell if _is(n, "cell_code_output")]
            if shown and _is(cell, "cell_code") and CHECKED.search(cell[0].astext()):
                line = fold_line("", FOLDED)
                cell.replace(shown[0], made := fold("", line, classes=["lm-starter"]))
                made += shown[0]


def _is(node: nodes.Node, part: str) -> bool:
    return isinstance(node, nodes.container) and node.get("nb_element") == part


class Headings(SphinxPostTransform):
    """Write ``Predict · 3 minutes · ●○○: What changes?``; the number is Sphinx's."""

    default_priority = 15  # before sphinx-exercise puts it in brackets

    def run(self) -> None:
        for task in self.document.findall(exercise_enumerable_node):
            title = task.children[0]
            if not isinstance(title, exercise_title):
                continue
            with suppress(ValueError):  # of which `collect` has warned
                about = asked(task["classes"])
                said = nodes.inline("", *_about(about), classes=["lm-task-kind"])
                words = nodes.inline("", "", *title[1].children, classes=["lm-asked"])
                task.replace(title, nodes.title("", "", said, words))


def _about(task: Asked) -> tuple[str, nodes.Node, nodes.Node]:
    """Return kind, minutes and level; the dots are the style's, words stand for them."""
    kind, minutes, _ = task.words()
    spoken = nodes.inline(
        "", f"level {task.level} of {LEVELS}", classes=["visually-hidden"]
    )
    level = nodes.inline("", "", spoken, classes=[f"lm-level-{task.level}"])
    quiet = nodes.inline("", f" · {minutes} · ", level, classes=["lm-task-about"])
    return kind, quiet, nodes.inline("", ": ", classes=["visually-hidden"])


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
