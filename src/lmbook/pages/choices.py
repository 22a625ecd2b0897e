"""Multiple choice: ``{choices} KEY``, a list, the right letter glued under the key.

On the site a click tells; what it tells of an option stands behind a dash or in a second
paragraph of it, or else is what the chapter's check says of its letter. Page and check
agree on the right one, or the build fails; with another model the page tells if not.
"""

import re

from docutils import nodes
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective
from sphinx_exercise.nodes import exercise_enumerable_node

from lmbook.pages.findings import found_note
from lmbook.pages.glue import format_glue
from lmbook.pages.markup import html_tag, with_code
from lmbook.pages.tasks import registered
from lmcourse.exercises import check

logger = logging.getLogger(__name__)
LETTERS = "abcdefgh"
KINDS = {"predict", "spot", "judge"}


class choose(nodes.General, nodes.Element):
    """A list of options; ``key`` names the glued letter, ``right`` is it."""


def hash_answer(key: str, letter: str) -> str:
    """Return a hash of the right letter (FNV-1a), which static/tasks.js computes too."""
    found = 2166136261
    for byte in f"{key}:{letter}".encode():
        found = (found ^ byte) * 16777619 % 2**32
    return f"{found:08x}"


class Choices(SphinxDirective):
    """A list with letters; which one is right is not to be read in the page."""

    required_arguments = 1
    has_content = True

    def run(self) -> list[nodes.Node]:
        key, said = self.arguments[0], self.parse_content_to_nodes()
        if len(said) != 1 or not isinstance(said[0], nodes.bullet_list):
            raise self.error(f"the choices {key} hold one list, begun with - ")
        options = said[0].children
        try:
            right = format_glue(self.env.temp_data.get("lmbook_glued", {}), key, "")
        except ValueError as error:
            raise self.error(f"the choices {key}: {error}") from None
        if len(right) != 1 or right not in LETTERS[: len(options)]:
            allowed = f"a letter from a to {LETTERS[len(options) - 1]}"
            raise self.error(f"the choices {key}: {right!r} was glued, not {allowed}")
        found = nodes.enumerated_list("", *options, enumtype="loweralpha")
        found["prefix"], found["suffix"] = "", "."
        node = choose("", found, key=key, right=right)
        data = {"data-key": key, "data-hash": hash_answer(key, right)}
        node["html"] = {"class": "lm-choose"} | data
        self.set_source_info(node)
        return [node]


# --- what a click tells ---------------------------------------------------------------


def add_feedback(app, doctree: nodes.document) -> None:
    """Put what a click tells behind each option, once the tasks are put together."""
    tasks = doctree.findall(exercise_enumerable_node)
    tasks = [task for task in tasks if KINDS & {*task["classes"]}]
    within = {node: task for task in tasks for node in task.findall(choose)}
    for node in list(doctree.findall(choose)):
        if node not in within:
            text = "the choices %s stand in no predict, spot or judge task"
            logger.warning(text, node["key"], location=node)
            continue
        label = within[node]["label"].replace("_", "-")
        name = registered(app.env.docname).get(label, "")
        note = found_note(app.env.temp_data["lmbook"]["models"])
        for letter, option in zip(LETTERS, node[0], strict=False):
            answer = _cut_answer(option)
            if name:
                verdict = check(name, letter)
                _compare(node, letter, verdict, note)
                if not (verdict or answer or letter == node["right"]):
                    answer = [nodes.paragraph("", "", *with_code(verdict.message))]
            if answer:
                option += nodes.container("", *answer, classes=["lm-told"])


def _compare(node: choose, letter: str, verdict, note: list[nodes.Node]) -> None:
    """Hold the page's right letter to the check's; with another model they may differ."""
    if note and letter == node["right"] and not verdict:
        node.parent.insert(node.parent.index(node) + 1, note)
    elif not note and bool(verdict) != (letter == node["right"]):
        text = "the choices %s: the page glued %r, but %s"
        logger.warning(text, node["key"], node["right"], verdict, location=node)


def _cut_answer(option: nodes.list_item) -> list[nodes.Node]:
    """Cut off an option what a click on it tells."""
    rest = option.children[1:]
    if rest:
        del option[1:]
        return rest
    words = option[0]
    for place, node in enumerate(words):
        if isinstance(node, nodes.Text) and (dash := re.search(r"\s—\s", node)):
            answer = [nodes.Text(node[dash.end() :]), *words[place + 1 :]]
            words[place:] = [nodes.Text(node[: dash.start()])]
            return [nodes.paragraph("", "", *answer)]
    return []


def setup(app) -> None:
    """Know the directive."""
    app.add_node(choose, html=html_tag("div"))
    app.add_directive("choices", Choices)
    app.connect("doctree-read", add_feedback)
