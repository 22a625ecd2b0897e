"""Multiple choice: ``{choices} KEY``, a list, the right letter glued under the key."""

from docutils import nodes
from sphinx.util.docutils import SphinxDirective

from lmbook.glue import format_glue, page_values
from lmbook.markdown import LETTERS

__all__ = ["setup"]


def sealed(key: str, letter: str) -> str:
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
        key, said = self.arguments[0], nodes.Element()
        self.state.nested_parse(self.content, self.content_offset, said)
        if len(said) != 1 or not isinstance(said[0], nodes.bullet_list):
            raise self.error(f"the choices {key} hold one list, begun with - ")
        options = said[0].children
        try:
            right = format_glue(page_values(self.state.document), key, "")
        except ValueError as error:
            raise self.error(f"the choices {key}: {error}") from None
        if right not in LETTERS[: len(options)] or len(right) != 1:
            allowed = f"a letter from a to {LETTERS[len(options) - 1]}"
            raise self.error(f"the choices {key}: {right!r} was glued, not {allowed}")
        found = nodes.enumerated_list("", *options, enumtype="loweralpha")
        found["prefix"], found["suffix"] = "", "."
        found["classes"].append("lm-choices")
        seal = f'<div class="lm-choose" data-key="{key}" data-seal="{sealed(key, right)}">'
        ends = (nodes.raw("", text, format="html") for text in (seal, "</div>"))
        return [next(ends), found, next(ends)]


def setup(app) -> None:
    """Know the directive."""
    app.add_directive("choices", Choices)
