"""Multiple choice: ``{choices} KEY``, a list, the right letter glued under the key.

On the site a click tells; what it tells of an option stands behind a dash or in a second
paragraph of it, or else is what the chapter's check says of its letter. Page and check
agree on the right one, or the build fails; with another model the page tells if not, and
there it may be that none is right (`NONE_IS_RIGHT`).
"""

import re

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective
from sphinx_exercise.nodes import exercise_enumerable_node

from lmbook.pages.findings import default_models_note
from lmbook.pages.glue import format_glue
from lmbook.pages.markup import html_tag, inline_nodes
from lmbook.pages.tasks import checks_by_label
from lmcourse.exercises import check

logger = logging.getLogger(__name__)
LETTERS = "abcdefgh"
NONE_IS_RIGHT = "?"  # what a proof returns in the place of the right letter, if none is
KINDS_WITH_CHOICES = {"predict", "spot", "judge"}


class choice_list(nodes.General, nodes.Element):
    """Docutils' node for a list of options.

    Attributes: ``key``, the name under which the page glued the right letter; ``right``,
    that letter, or `NONE_IS_RIGHT`; ``html``, the attributes of its HTML element.
    """


def hash_answer(key: str, letter: str) -> str:
    """Return a hash of the right letter (FNV-1a, 32 bits).

    ``static/tasks.js`` computes it too: the page holds the hash, and not the letter.

    Parameters
    ----------
    key : str
        That of the choices, so that the same letter has another hash in each task.
    letter : str
        The right one, such as "b"; `NONE_IS_RIGHT` if none is.

    Returns
    -------
    str
        Eight hexadecimal digits.
    """
    hashed = 2166136261
    for byte in f"{key}:{letter}".encode():
        hashed = (hashed ^ byte) * 16777619 % 2**32
    return f"{hashed:08x}"


class Choices(SphinxDirective):
    """A list with letters; which one is right is not to be read in the page."""

    required_arguments = 1
    has_content = True

    def run(self) -> list[nodes.Node]:
        """Return the options as a `choice_list`, lettered from a.

        It is an error if what stands in the directive is not one list, if there are more
        options than letters, or if the page did not glue the letter of one of its options
        under the directive's key. With other models than the default ones the page may say
        there that none is right.
        """
        key = self.arguments[0]
        content = self.parse_content_to_nodes()
        if len(content) != 1 or not isinstance(content[0], nodes.bullet_list):
            raise self.error(
                f"the choices {key} must hold one list and nothing else, each option begun "
                "with - "
            )
        options = content[0].children
        if len(options) > len(LETTERS):
            last = LETTERS[-1]
            raise self.error(f"the choices {key} are {len(options)}; letters end at {last}")
        try:
            right = format_glue(self.env.temp_data.get("lmbook_glued", {}), key, "")
        except ValueError as error:
            raise self.error(f"the choices {key}: {error}") from None
        models = self.env.temp_data["lmbook"]["models"]
        none_may_be = right == NONE_IS_RIGHT and default_models_note(models)
        if not none_may_be and (len(right) != 1 or right not in LETTERS[: len(options)]):
            allowed = f"a letter from a to {LETTERS[len(options) - 1]}"
            raise self.error(
                f"the choices {key}: {right!r} was glued as the right one; it must be "
                f"{allowed}"
            )
        lettered = nodes.enumerated_list("", *options, enumtype="loweralpha")
        lettered["prefix"], lettered["suffix"] = "", "."
        node = choice_list("", lettered, key=key, right=right)
        data = {"data-key": key, "data-hash": hash_answer(key, right)}
        node["html"] = {"class": "lm-choose"} | data
        self.set_source_info(node)
        return [node]


# --- what a click tells ---------------------------------------------------------------


def add_feedback(app: Sphinx, doctree: nodes.document) -> None:
    """Put what a click tells behind each option, once the tasks are put together.

    That is what the chapter's text says of the option, or else, of a wrong one, what the
    task's check says of its letter. Choices outside of a *predict*, *spot* or *judge* task
    are reported as a warning. With the default models, so is a letter on which page and
    check disagree. With others, a note is put behind the choices if the check refuses the
    page's letter, or if the page says that none is right (`NONE_IS_RIGHT`): it says with
    which models they were found.

    Sphinx calls this when a page has been read; ``doctree`` is the page, changed in place.
    """
    tasks = doctree.findall(exercise_enumerable_node)
    tasks = [task for task in tasks if KINDS_WITH_CHOICES & {*task["classes"]}]
    task_of = {node: task for task in tasks for node in task.findall(choice_list)}
    for node in list(doctree.findall(choice_list)):
        if node not in task_of:
            text = "the choices %s stand in no predict, spot or judge task"
            logger.warning(text, node["key"], location=node)
            continue
        label = task_of[node]["label"].replace("_", "-")
        check_name = checks_by_label(app.env.docname).get(label, "")
        note = default_models_note(app.env.temp_data["lmbook"]["models"])
        if node["right"] == NONE_IS_RIGHT:
            _put_behind(node, note)
        for letter, option in zip(LETTERS, node[0], strict=False):
            feedback = _split_off_feedback(option)
            if check_name:
                verdict = check(check_name, letter)
                _compare_with_check(node, letter, verdict, note)
                if not (verdict or feedback or letter == node["right"]):
                    feedback = [nodes.paragraph("", "", *inline_nodes(verdict.message))]
            if feedback:
                option += nodes.container("", *feedback, classes=["lm-told"])


def _compare_with_check(
    node: choice_list, letter: str, verdict, note: list[nodes.Node]
) -> None:
    """Warn if the page and the task's check disagree on whether a letter is right.

    With other models than the default they may: then, if the check says no to the letter
    that the page has as right, a note is put behind the choices, and there is no warning.

    Parameters
    ----------
    node : choice_list
        The choices in the page. ``node["right"]`` is the letter that the page glued as the
        right one, ``node["key"]`` names the choices in the warning.
    letter : str
        Of one of the options, such as "b".
    verdict : lmcourse.exercises.Verdict
        What the check says of this letter: true if it is right; as text its message.
    note : list of Node
        A paragraph that says which models the page is about, if the reader chose others
        than the default ones; empty for these.
    """
    if note and letter == node["right"] and not verdict:
        _put_behind(node, note)
    elif not note and bool(verdict) != (letter == node["right"]):
        text = "the choices %s: the page glued %r, but %s"
        logger.warning(text, node["key"], node["right"], verdict, location=node)


def _put_behind(node: choice_list, note: list[nodes.Node]) -> None:
    """Put a note behind choices, which stand in a page; changed in place."""
    node.parent.insert(node.parent.index(node) + 1, note)


def _split_off_feedback(option: nodes.list_item) -> list[nodes.Node]:
    """Remove from an option what a click on it tells, and return that.

    It is all paragraphs but the first, or else what stands behind the first dash (—) with
    spaces around it, as a paragraph; [] if there is neither. ``option`` : the item of the
    list, changed in place.
    """
    later_paragraphs = option.children[1:]
    if later_paragraphs:
        del option[1:]
        return later_paragraphs
    words = option[0]
    for place, node in enumerate(words):
        if isinstance(node, nodes.Text) and (dash := re.search(r"\s—\s", node)):
            behind = [nodes.Text(node[dash.end() :]), *words[place + 1 :]]
            words[place:] = [nodes.Text(node[: dash.start()])]
            return [nodes.paragraph("", "", *behind)]
    return []


def setup(app: Sphinx) -> None:
    """Register the directive ``choices``, its node and what completes it with Sphinx."""
    app.add_node(choice_list, html=html_tag("div"))
    app.add_directive("choices", Choices)
    app.connect("doctree-read", add_feedback)
