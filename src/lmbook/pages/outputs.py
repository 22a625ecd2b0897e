"""Sphinx shows what `lmbook.execute.run` left in the store, and executes nothing itself.

jupyter-cache, which myst-nb would ask, finds a notebook by its cells, whatever they ran
on, and keeps none that failed. So myst-nb has execution switched off and reads each
chapter with its outputs already filled in: `{glue}` and figures work as with notebooks
that carry their outputs. Its own way to plug in a reader is not told the page's name.
"""

import functools
import logging as standard_logging
import re
from pathlib import Path

import myst_nb.sphinx_
from myst_nb.core.read import create_nb_reader
from nbformat import NotebookNode
from sphinx.application import Sphinx
from sphinx.util import logging

from lmbook.execute.placed import place_proofs
from lmbook.execute.run import page_name, restore_outputs, store_path
from lmbook.execute.verdicts import note_verdicts
from lmbook.pages.glue import glued_values

logger = logging.getLogger(__name__)


def _fill_page(app: Sphinx, path: Path, notebook: NotebookNode) -> NotebookNode:
    """Fill a page's outputs in; if they are not whole, say so at its top.

    The outputs are those of the chapter's last execution, if nothing changed since. What is
    known of them is left in ``app.env.temp_data``: as "lmbook" what `note_verdicts` counts,
    as "lmbook_glued" the values for the text, name → repr. Outputs that are not whole are a
    warning, too, unless another chapter alone was asked for.

    Parameters
    ----------
    app : Sphinx
    path : Path
        The page's file.
    notebook : NotebookNode
        The page as myst-nb reads it; changed in place.

    Returns
    -------
    NotebookNode
        The same notebook.
    """
    root = Path(app.srcdir).parent
    name = page_name(path, root)
    place_proofs(notebook, name)
    if all(cell.cell_type != "code" for cell in notebook.cells):
        return notebook
    app.env.note_dependency(str(store_path(name, root)))  # read again when it changes
    wrong = restore_outputs(notebook, name, root)
    app.env.temp_data["lmbook"] = note_verdicts(notebook, whole=not wrong)
    app.env.temp_data["lmbook_glued"] = glued_values(notebook)
    if wrong:
        if app.config.lmbook_only in ("", name):
            logger.warning("%s: %s", name, wrong["what"], location=name)
        warning = (
            f"\n\n::::{{admonition}} This page is not whole: {wrong['what']}\n"
            ":class: error\nOutputs from there on are missing.\n\n"
            f"~~~~~~text\n{wrong['error'] or wrong['what']}\n~~~~~~\n::::\n"
        )
        first = notebook.cells[0]
        first.source = re.sub(
            "(?m)^# .*$", lambda title: title[0] + warning, first.source, count=1
        )
    return notebook


def _page_reader(app: Sphinx, path: str, *arguments):
    """Return myst-nb's reader of a page, made to fill the outputs in (`_fill_page`).

    It stands in for myst-nb's ``create_nb_reader``, and takes what that takes: ``path``,
    str, the page's file, and other arguments, which are handed on. ``app`` : Sphinx's. None
    for a file that is not a notebook.
    """
    reader = create_nb_reader(path, *arguments)
    if reader is not None:
        read = reader.read
        reader.read = lambda text: _fill_page(app, Path(path), read(text))
    return reader


class _WarningsOfOtherPages(standard_logging.Filter):
    """Leave out and count the warnings of all pages but one, for a handler of Sphinx's.

    Parameters
    ----------
    folder : Path
        Of the pages.
    page : str
        The name of the one whose warnings are shown.

    Attributes
    ----------
    count : int
        How many warnings were left out.
    """

    def __init__(self, folder: Path, page: str):
        super().__init__()
        self.folder = folder
        self.page = page
        self.count = 0

    def filter(self, record: standard_logging.LogRecord) -> bool:
        """Return whether a record is shown; count it if not.

        Its ``location`` is a text like "/book/chapters/page.md:12". One of another page
        below the folder is not shown; one without a page's location is.
        """
        path = Path(re.sub(r":[\d:]*$", "", str(getattr(record, "location", None) or "")))
        if path.suffix != ".md" or not path.is_relative_to(self.folder):
            return True
        if path == self.folder / f"{self.page}.md":
            return True
        self.count += 1
        return False


def _show_warnings_of(app: Sphinx, page: str) -> None:
    """Show the warnings of one page alone; say at the end how many others there were.

    A filter on the handlers by which Sphinx shows warnings does that. ``app`` : Sphinx's;
    ``page`` : the page's name.
    """
    others = _WarningsOfOtherPages(Path(app.srcdir), page)
    handlers = [
        handler
        for handler in standard_logging.getLogger("sphinx").handlers
        if handler.level >= standard_logging.WARNING
    ]
    for handler in handlers:  # after Sphinx's own filters, which resolve the location
        handler.addFilter(others)

    def say(_app: Sphinx, _exception: Exception | None) -> None:
        """Take the filter away, and print how many warnings were left out, if any."""
        for handler in handlers:
            handler.removeFilter(others)
        if others.count:
            print(
                f"{others.count} warnings that name other pages were left out: those were "
                "not executed. `make html` shows what is wrong with them."
            )

    app.connect("build-finished", say)


def _limit_warnings(app: Sphinx, config) -> None:
    """Show only the warnings of the chapter that alone was executed, if there is one.

    Sphinx calls this when its configuration is read. ``app`` : Sphinx's; ``config`` : the
    configuration, with ``lmbook_only``, the chapter's name, or "" if all were executed.
    """
    if config.lmbook_only:
        _show_warnings_of(app, config.lmbook_only)


def setup(app: Sphinx) -> None:
    """Put `_page_reader`, which fills outputs in, in the place of myst-nb's own reader.

    Where one chapter alone was executed, warnings that stand on other pages are left out.
    """
    # The chapter that alone was executed: others may lack outputs, and need not say so.
    app.add_config_value("lmbook_only", "", "", [str])
    app.connect("config-inited", _limit_warnings)
    myst_nb.sphinx_.create_nb_reader = functools.partial(_page_reader, app)
