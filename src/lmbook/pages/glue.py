"""The values that a page's text quotes: what its proofs returned, and what it glued.

``{glue:text}`NAME.KEY:.0%` `` is the value that the proof NAME returned as KEY
(`studies.findings`), ``{glue:text}`KEY:.2f` `` one that a cell of the page glued. Text,
drawings, fields of proofs and notebooks write them alike.
"""

import ast

import nbformat
from docutils import nodes
from myst_nb.ext.glue.roles import PasteTextRole
from sphinx.application import Sphinx
from sphinx.util import logging

from lmcourse.numbers import format_number

GLUE = "application/papermill.record/text/plain"
UNMEASURED = "–"  # what a proof returns in the place of a number that the model can't have
logger = logging.getLogger(__name__)


def glued_values(executed: nbformat.NotebookNode) -> dict[str, str]:
    """Return the values that the page glued or its proofs returned, for its text.

    Parameters
    ----------
    executed : NotebookNode
        The page with its outputs.

    Returns
    -------
    dict of str to str
        Name of each value, "KEY", or "PROOF.KEY" if a proof returned it → its ``repr``,
        such as "0.52".
    """
    values = {}
    for cell in executed.cells:
        for output in cell.get("outputs", []):
            name = output.get("metadata", {}).get("scrapbook", {}).get("name")
            if name and GLUE in output.get("data", {}):
                values[name] = output["data"][GLUE]
    return values


def format_glue(values: dict[str, str], name: str, form: str) -> str:
    """Return a value as text, in a format such as ``".2f"``, ``".0%"`` or ``""``.

    A pair of numbers is an interval: "0.2 to 0.4". The dash that a proof returns in the
    place of a number that the model cannot have (`UNMEASURED`) stays as it is in any
    format.

    Parameters
    ----------
    values : dict of str to str
        Name of each value → its ``repr``.
    name : str
        Of the value: "KEY", or "PROOF.KEY" for what a proof returned.
    form : str
        The format, as `format` takes it.

    Raises
    ------
    ValueError
        If there is none of this name, or it has no such format.
    """
    if name not in values:
        proof, _, key = name.rpartition(".")
        others = [each.partition(".")[2] for each in values if each.startswith(f"{proof}.")]
        if proof and others:
            raise ValueError(f"{proof} returns no {key!r}; it returns {', '.join(others)}")
        if proof:
            raise ValueError(f"no proof on this page returns {name!r}")
        raise ValueError(f"nothing was glued under the name {name!r}")
    try:
        value = ast.literal_eval(values[name])
    except (ValueError, SyntaxError):
        value = values[name]
    if value == UNMEASURED:
        return value
    try:
        return format_number(value, form)
    except (TypeError, ValueError):
        raise ValueError(
            f"{name!r} is {values[name]}, which cannot be written in the format {form!r}"
        ) from None


class GlueText(PasteTextRole):
    """The role ``glue:text``, a value written as everywhere in the book.

    A name that nothing on the page returns or glues is a warning, which fails the build.
    """

    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        """Return the formatted value as an inline node, and no messages.

        The role's text is "NAME:FORMAT", "NAME" being "KEY" or "PROOF.KEY". A name without
        a value, or a value that has no such format, is a warning, and nothing is returned.
        A value of another page ("PAGE::NAME") is left to myst-nb.
        """
        if "::" in self.text:
            return super().run()  # of another page
        values = self.document.settings.env.temp_data.get("lmbook_glued", {})
        name, _, form = self.text.partition(":")
        try:
            text = format_glue(values, name, form)
        except ValueError as error:
            logger.warning("%s", error, location=f"{self.source}:{self.line}")
            return [], []
        node = nodes.inline(text, text, classes=["pasted-text"])
        self.set_source_info(node)
        return [node], []


def setup(app: Sphinx) -> None:
    """Put `GlueText` in the place of myst-nb's role ``glue:text``."""
    app.add_role_to_domain("glue", "text", GlueText(), override=True)
