"""Lists made of all pages: tasks, plans of weeks, mistakes with what mends them, findings.

The directive ``weeks`` has a line for each week, names of chapters; what a chapter builds
on must come before it, and with ``:whole:`` none may be missing. ``tasks`` lists all tasks,
``mistakes`` the code of each *spot the bug*, what the check said of it when the page was
executed, what mends it, and what else the checks know by name; for ``findings`` see
`lmbook.pages.findings`.
"""

import re
from collections.abc import Iterator
from functools import partial
from html import escape
from pathlib import Path
from typing import ClassVar, NamedTuple

from docutils import nodes
from docutils.parsers.rst.directives import flag
from sphinx.util.docutils import SphinxDirective

from lmbook.execute.run import load_executed_chapter
from lmbook.pages.cells import parse_cells
from lmbook.pages.course import read_page
from lmbook.pages.course_map import reading_time
from lmbook.pages.findings import findings_html
from lmbook.pages.markup import html_table, inline_html
from lmbook.pages.tasks import CHECK_CALL, KIND_TITLES, checks_by_label, read_classes
from lmcourse import exercises

_TASK = re.compile(r"^:{3,}\{exercise-start\} ?([^\n]*)\n((?::\w[^\n]*\n)*)", re.M)
TASK_COLUMNS = ("Task", "Kind", "Minutes", "Level", "Chapter")


class Task(NamedTuple):
    """A task as its chapter's source has it."""

    label: str
    title: str
    attributes: list[str]  # kind, minutes, level, in words
    code: str  # of its first cell
    solution: str  # the same of its solution


def read_tasks(text: str) -> Iterator[Task]:
    """Yield the tasks of a chapter's source, in their order.

    One without a label or without the classes of a task is left out: its page reports it
    (`lmbook.pages.tasks.note_tasks`).

    Parameters
    ----------
    text : str
        The chapter, in MyST.

    Yields
    ------
    Task
        ``label``, such as "ex-attention-heads"; ``title``; ``attributes``, a list of its
        kind, minutes and level in words: "Build", "10 minutes", "level 2 of 3"; ``code`` of
        its first cell, and ``solution``, that of the first cell of its solution, "" if
        there is none.
    """
    first_cells = {}  # (label, part) → code
    for cell in parse_cells(text):
        first_cells.setdefault((cell.exercise, cell.part), cell.source)
    for title, lines in _TASK.findall(text):
        options = dict(re.findall(r"^:(\w+): *(.*)$", lines, re.M))
        label = options.get("label", "")
        attributes = read_classes(options.get("class", "").split())
        if not (label and attributes):
            continue
        starter = first_cells.get((label, "exercise"), "")
        solution = first_cells.get((label, "solution"), "")
        yield Task(label, title, attributes, starter, solution)


# --- what the directives make ----------------------------------------------------------


class teaching_list(nodes.General, nodes.Element):
    """Where a list comes, when all pages are read."""


class Teaching(SphinxDirective):
    """The directives ``tasks``, ``weeks``, ``mistakes`` and ``findings``.

    Each leaves a `teaching_list`, which is filled in when all pages are read.
    """

    option_spec: ClassVar = {"whole": flag}
    has_content = True

    def run(self) -> list[nodes.Node]:
        """Return the place of the list; a plan of weeks with faults is an error.

        The place is a `teaching_list`, whose ``kind`` is the directive's name. That of
        ``weeks`` has, as ``weeks``, a list of the names of chapters for each line; with the
        option ``whole`` each chapter of the book must be among them.
        """
        self.env.note_reread()  # it lists what other pages hold
        place = teaching_list(kind=self.name)
        if self.name == "weeks":
            place["weeks"] = [line.split() for line in self.content if line.strip()]
            faults = plan_faults(place["weeks"], self.config.lmbook_chapters)
            if "whole" in self.options:
                missing = {*self.config.lmbook_chapters}.difference(*place["weeks"])
                faults += [f"{name} is missing" for name in sorted(missing)]
            if faults:
                raise self.error("; ".join(faults))
        return [place]


def plan_faults(weeks: list[list[str]], chapters: dict) -> list[str]:
    """Return what is wrong with a plan: unknown chapters, or some that come too early.

    Parameters
    ----------
    weeks : list of list of str
        The names of the chapters of each week, in the order in which they are taught.
    chapters : dict of str to Chapter
        Name → chapter, all of the book; ``builds_on`` has the names of those that must come
        before it.

    Returns
    -------
    list of str
        A fault each, such as "week 2: attention lacks embeddings" or "week 2: there is no
        chapter atention"; [] if there is none.
    """
    faults = []
    taught = set()
    for number, names in enumerate(weeks, 1):
        for name in names:
            if name not in chapters:
                faults.append(f"week {number}: there is no chapter {name}")
                continue
            lacks = [other for other in chapters[name].builds_on if other not in taught]
            faults += [f"week {number}: {name} lacks {other}" for other in lacks]
            taught.add(name)
    return faults


# Each of these four returns a list as HTML. ``link`` gives the address of a page by its
# name; ``node`` is the `teaching_list` in whose place the HTML is put.


def _tasks(app, link, node) -> str:
    """Return a table of all tasks of the book as HTML, a row each.

    Columns are the task's title, a link to it, its kind, minutes and level, and the short
    name of its chapter.

    ``app`` : Sphinx's; ``link`` : callable, from a page's name to its address; ``node`` is
    not used.
    """
    rows = []
    for chapter, task in _all_tasks(app):
        kind, *time_and_level = task.attributes
        minutes, level = (re.search(r"\d+", words)[0] for words in time_and_level)
        cells = _task_link(link, chapter, task), kind, minutes, level, escape(chapter.short)
        rows.append(("", cells))
    table = html_table("lm-tasks", TASK_COLUMNS, rows)
    return f'<div class="pst-scrollable-table-container">{table}</div>'


def _weeks(app, link, node) -> str:
    """Return a plan as HTML: the chapters of each week, and how long they take.

    ``app`` : Sphinx's; ``link`` : callable, from a page's name to its address;
    ``node["weeks"]`` : list of lists of str, the names of each week's chapters.
    """
    items = ""
    for names in node["weeks"]:
        chapters = [app.config.lmbook_chapters[name] for name in names]
        links = (f'<a href="{link(c.name)}">{escape(c.title)}</a>' for c in chapters)
        items += f"<li>{'<br>'.join(links)}<br>{reading_time(chapters)}</li>\n"
    return f'<ol class="lm-weeks">{items}</ol>'


def _mistakes(app, link, node) -> str:
    """Return every mistake that a task is about, chapter by chapter, as HTML.

    That is of each task *spot the bug* its bug with the right code (`_bug_and_fix`), and of
    every task what its check says to the wrong answers that it knows, folded.

    ``app`` : Sphinx's; ``link`` : callable, from a page's name to its address; ``node`` is
    not used. A LookupError is raised if a check does not refuse the bug of its task.
    """
    html = ""
    last = None
    for chapter, task in _all_tasks(app):
        name = checks_by_label(chapter.name).get(task.label.replace("_", "-"))
        sentences = exercises.diagnoses(name) if name else []
        if chapter != last:
            html += f"<h2>{escape(chapter.short)}</h2>\n"
        last = chapter
        if task.attributes[0] == KIND_TITLES["spot"]:
            html += _bug_and_fix(app, link, chapter, task)
        elif sentences:
            html += f"<h3>{_task_link(link, chapter, task)}</h3>\n"
        if sentences:
            items = "".join(f"<li>{inline_html(each)}</li>\n" for each in sentences)
            html += f"<details><summary>{len(sentences)} wrong answers that its check knows"
            html += f"</summary><ul>{items}</ul></details>\n"
    return f'<div class="lm-mistakes">{html}</div>'


def _task_link(link, chapter, task: Task) -> str:
    """Return a task's title as a link to it, in HTML.

    ``link`` : callable, from a page's name to its address; ``chapter`` : the task's
    `Chapter`, of which ``name`` is used; ``task`` : with ``title`` and ``label``.
    """
    return (
        f'<a href="{link(chapter.name)}#{escape(task.label)}">{inline_html(task.title)}</a>'
    )


def _bug_and_fix(app, link, chapter, task: Task) -> str:
    """Return a bug as HTML: its code, what the check said of it, and the right code.

    ``app`` : Sphinx's; ``link`` : callable, from a page's name to its address;
    ``chapter`` : the task's `Chapter`; ``task`` : with ``code``, which has the bug, and
    ``solution``, both Python; the lines that call the check are left out.

    What the check said is missing if the page was not executed to its end. A LookupError is
    raised if the check did not say that the code is wrong (`_verdict_on_bug`).
    """
    highlight = app.builder.highlighter.highlight_block
    wrong = highlight(_without_checks(task.code), "python")
    right = highlight(_without_checks(task.solution), "python")
    verdict = inline_html(_verdict_on_bug(app, chapter.name, task))
    return (
        f"<h3>{_task_link(link, chapter, task)}</h3>\n{wrong}"
        f'<p class="lm-verdict lm-wrong">{verdict}</p>\n'
        f"<details><summary>What is right</summary>{right}</details>\n"
    )


def _without_checks(code: str) -> str:
    """Return Python code without the lines that call a check, ``exercises.check(…)``."""
    return "\n".join(line for line in code.split("\n") if not CHECK_CALL.search(line))


def _verdict_on_bug(app, page: str, task: Task) -> str:
    """Return what the check said of a bug when its page was executed.

    A verdict "✗ NAME: message" is among the outputs of the cell; the message is returned.

    ``app`` : Sphinx's; ``page`` : the page's name; ``task`` : its ``code`` is the cell with
    the bug, its ``label`` is for the error. "" if the page was not executed to its end.

    Raises
    ------
    LookupError
        If the check did not say that the code is wrong.
    """
    try:
        notebook = load_executed_chapter(page, Path(app.srcdir).parent)
    except LookupError:  # the page itself says that it is not whole
        return ""
    for cell in notebook.cells:
        if cell.source.strip() == task.code.strip():
            texts = [o.get("data", {}).get("text/plain", "") for o in cell.outputs]
            for verdict in texts:
                if verdict.startswith("✗"):
                    return verdict.partition(": ")[2]
    raise LookupError(f"{page}: the check of {task.label} does not fail on its own bug")


def _all_tasks(app) -> Iterator[tuple]:
    """Yield each task of the book with its chapter, in order: pairs (`Chapter`, `Task`).

    ``app`` : Sphinx's, whose configuration has the chapters.
    """
    for name, chapter in app.config.lmbook_chapters.items():
        for task in read_tasks(read_page(Path(app.env.doc2path(name)))):
            yield chapter, task


RENDERERS = {
    "tasks": _tasks,
    "weeks": _weeks,
    "mistakes": _mistakes,
    "findings": findings_html,
}


def _fill_in_lists(app, doctree: nodes.document, docname: str) -> None:
    """Put the lists into a page. Sphinx calls this when all pages are read.

    Each takes the place of a `teaching_list`, by whose ``kind`` `RENDERERS` has the
    function that makes it. They are HTML: a builder that writes another format, or follows
    links, gets none. ``app`` : Sphinx's; ``doctree`` : the page, changed in place;
    ``docname`` : its name.
    """
    link = partial(app.builder.get_relative_uri, docname)
    for node in list(doctree.findall(teaching_list)):
        html = ""
        if app.builder.format == "html":
            html = RENDERERS[node["kind"]](app, link, node)
        node.replace_self([nodes.raw("", html, format="html")] if html else [])


def setup(app) -> None:
    """Add the directives ``tasks``, ``weeks``, ``mistakes`` and ``findings``.

    Their lists are filled in when all pages are read.
    """
    for name in RENDERERS:
        app.add_directive(name, Teaching)
    app.connect("doctree-resolved", _fill_in_lists)
