"""Lists made of all pages: tasks, plans of weeks, mistakes with what mends them, findings.

The directive ``weeks`` has a line for each week, names of chapters; what a chapter builds
on must come before it, and with ``:whole:`` none may be missing. ``tasks`` lists all tasks,
``mistakes`` the code of each *spot the bug*, what the check said of it when the page was
executed, what mends it, and what else the checks know by name; for ``findings`` see
`lmbook.pages.findings`.
"""

import ast
import inspect
import re
import textwrap
from collections.abc import Iterator
from functools import partial
from html import escape
from pathlib import Path
from typing import ClassVar, NamedTuple

from docutils import nodes
from docutils.parsers.rst.directives import flag
from markdown_it import MarkdownIt
from sphinx.util.docutils import SphinxDirective

from lmbook.execute.run import executed
from lmbook.pages.cells import parse_cells
from lmbook.pages.course_map import took
from lmbook.pages.findings import findings
from lmbook.pages.markup import html_table
from lmbook.pages.tasks import CHECKED, WORDS, asked, registered
from lmcourse import exercises

_TASK = re.compile(r"^:{3,}\{exercise-start\} ?([^\n]*)\n((?::\w[^\n]*\n)*)", re.M)
HEADS = ("Task", "Kind", "Minutes", "Level", "Chapter")


class Task(NamedTuple):
    """A task as its chapter's source has it."""

    label: str
    title: str
    about: list[str]  # kind, minutes, level, in words
    code: str  # of its first cell
    solution: str  # the same of its solution


def read_tasks(text: str) -> Iterator[Task]:
    """Yield the tasks of a chapter's source, in their order."""
    code = {}
    for cell in parse_cells(text):
        code.setdefault((cell.exercise, cell.part), cell.source)
    for title, options in _TASK.findall(text):
        told = dict(re.findall(r"^:(\w+): *(.*)$", options, re.M))
        label, about = told["label"], asked(told["class"].split())
        first = [code.get((label, part), "") for part in ("exercise", "solution")]
        yield Task(label, title, about, *first)


def diagnoses(name: str) -> list[str]:
    """Return the wrong answers that a check has words for, without the right one."""
    exercises.names(name.partition(".")[0])  # which loads them
    function, _, feedback = exercises._EXERCISES[name]
    if feedback:  # it is answered with a letter
        return [words for words in feedback.values() if words]
    code = list(_code(function))
    names = {each.id for each in code if isinstance(each, ast.Name)}
    for each in map(function.__globals__.get, sorted(names)):  # what it hands on to
        if inspect.isfunction(each) and each.__module__ == function.__module__:
            code += _code(each)
    tables = [key for each in code if isinstance(each, ast.Dict) for key in each.keys]
    texts = [key.value for key in tables if isinstance(key, ast.Constant)]
    return [t for t in dict.fromkeys(texts) if isinstance(t, str) and t.endswith(".")]


def _code(function) -> Iterator[ast.AST]:
    return ast.walk(ast.parse(textwrap.dedent(inspect.getsource(function))))


# --- what the directives make ----------------------------------------------------------


class teaching_list(nodes.General, nodes.Element):
    """Where a list comes, when all pages are read."""


class Teaching(SphinxDirective):
    """``tasks``, ``weeks``, ``mistakes`` or ``findings``."""

    option_spec: ClassVar = {"whole": flag}
    has_content = True

    def run(self) -> list[nodes.Node]:
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
    """Return what is wrong with a plan: unknown chapters, or some that come too early."""
    faults, taught = [], set()
    for number, names in enumerate(weeks, 1):
        for name in names:
            below = chapters[name].builds_on if name in chapters else ["no such chapter"]
            lacks = [other for other in below if other not in taught]
            faults += [f"week {number}: {name} lacks {other}" for other in lacks]
            taught.add(name)
    return faults


def _tasks(app, link, node) -> str:
    """Return a table of all tasks."""
    rows = []
    for chapter, task in _all_tasks(app):
        kind, *told = task.about
        minutes, level = (re.search(r"\d+", each)[0] for each in told)
        cells = _titled(link, chapter, task), kind, minutes, level, escape(chapter.short)
        rows.append(("", cells))
    table = html_table("lm-tasks", HEADS, rows)
    return f'<div class="pst-scrollable-table-container">{table}</div>'


def _weeks(app, link, node) -> str:
    """Return a plan: the chapters of each week, and how long they take."""
    items = ""
    for names in node["weeks"]:
        chapters = [app.config.lmbook_chapters[name] for name in names]
        links = (f'<a href="{link(c.name)}">{escape(c.title)}</a>' for c in chapters)
        items += f"<li>{'<br>'.join(links)}<br>{took(chapters)}</li>\n"
    return f'<ol class="lm-weeks">{items}</ol>'


def _mistakes(app, link, node) -> str:
    """Return every mistake, chapter by chapter."""
    html, last = "", None
    for chapter, task in _all_tasks(app):
        name = registered(chapter.name).get(task.label.replace("_", "-"))
        words = diagnoses(name) if name else []
        if chapter != last:
            html += f"<h2>{escape(chapter.short)}</h2>\n"
        last = chapter
        if task.about[0] == WORDS["spot"]:
            html += _mended(app, link, chapter, task)
        elif words:
            html += f"<h3>{_titled(link, chapter, task)}</h3>\n"
        if words:
            told = "".join(f"<li>{_inline(each)}</li>\n" for each in words)
            html += f"<details><summary>{len(words)} wrong answers that its check knows"
            html += f"</summary><ul>{told}</ul></details>\n"
    return f'<div class="lm-mistakes">{html}</div>'


def _titled(link, chapter, task: Task) -> str:
    return f'<a href="{link(chapter.name)}#{escape(task.label)}">{_inline(task.title)}</a>'


def _inline(text: str) -> str:
    """Return words as HTML: code between backticks, what is stressed between asterisks."""
    return MarkdownIt("zero").enable(["backticks", "emphasis"]).renderInline(text)


def _mended(app, link, chapter, task: Task) -> str:
    """Return a bug: its code, what the check said of it, and the code that is right."""
    highlight, codes = app.builder.highlighter.highlight_block, (task.code, task.solution)
    kept = [[x for x in code.split("\n") if not CHECKED.search(x)] for code in codes]
    wrong, right = (highlight("\n".join(lines), "python") for lines in kept)
    return (
        f"<h3>{_titled(link, chapter, task)}</h3>\n{wrong}"
        f'<p class="lm-verdict lm-wrong">{_inline(_verdict(app, chapter.name, task))}</p>\n'
        f"<details><summary>What is right</summary>{right}</details>\n"
    )


def _verdict(app, page: str, task: Task) -> str:
    """Return what the check said of a bug when its page was executed.

    Raises
    ------
    LookupError
        If it did not say that it is wrong.
    """
    try:
        notebook = executed(page, Path(app.srcdir).parent)
    except LookupError:  # the page itself says that it is not whole
        return ""
    for cell in notebook.cells:
        if cell.source.strip() == task.code.strip():
            said = [o.get("data", {}).get("text/plain", "") for o in cell.outputs]
            for verdict in said:
                if verdict.startswith("✗"):
                    return verdict.partition(": ")[2]
    raise LookupError(f"{page}: the check of {task.label} does not fail on its own bug")


def _all_tasks(app) -> Iterator[tuple]:
    for name, chapter in app.config.lmbook_chapters.items():
        for task in read_tasks(Path(app.env.doc2path(name)).read_text("utf-8")):
            yield chapter, task


MADE = {"tasks": _tasks, "weeks": _weeks, "mistakes": _mistakes, "findings": findings}


def _fill_in(app, doctree: nodes.document, docname: str) -> None:
    link = partial(app.builder.get_relative_uri, docname)
    for node in list(doctree.findall(teaching_list)):
        html = MADE[node["kind"]](app, link, node)
        node.replace_self([nodes.raw("", html, format="html")] if html else [])


def setup(app) -> None:
    """Add the directives; they are filled in when all pages are read."""
    for name in MADE:
        app.add_directive(name, Teaching)
    app.connect("doctree-resolved", _fill_in)
