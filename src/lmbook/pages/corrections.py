"""What Sphinx and docutils write into each page, put right before it is stored."""

import re

from docutils import nodes
from sphinx.application import Sphinx

_FORMULA = re.compile(
    r'(?P<before>[(\[“]?)<span class="math notranslate nohighlight">[^<]*</span>'
    r"(?P<after>[,.;:!?)\]”]*)"
)


def fix_bibliography_roles(
    app: Sphinx,
    pagename: str,
    templatename: str,
    context: dict,
    doctree: nodes.document | None,
) -> None:
    """Make the entries of a list of citations what the list says they are.

    docutils writes a ``list`` of ``doc-biblioentry``, which ARIA no longer knows; each
    becomes a ``listitem``. Sphinx calls this for each page, whose HTML, changed here, is
    ``body`` of its ``context``; the other arguments are not used.
    """
    if "body" in context:
        old, new = 'role="doc-biblioentry"', 'role="listitem"'
        context["body"] = context["body"].replace(old, new)


def join_marks(html: str) -> str:
    """Return a page's HTML in which no line begins with punctuation after a formula.

    To a browser a formula is a box, and a line may end at either side of it, even before a
    comma. So a formula and the punctuation that touches it are put into one ``<span>``,
    which is not broken.
    """

    def whole(match: re.Match) -> str:
        """Return a formula and the punctuation that touches it, if any, as one piece."""
        if not (match["before"] or match["after"]):
            return match[0]
        return f'<span class="lm-whole">{match[0]}</span>'

    return _FORMULA.sub(whole, html)


def join_marks_of_page(
    app: Sphinx,
    pagename: str,
    templatename: str,
    context: dict,
    doctree: nodes.document | None,
) -> None:
    """Keep punctuation on the line of the formula that it follows (`join_marks`).

    Sphinx calls this for each page, whose HTML, changed here, is ``body`` of its
    ``context``; the other arguments are not used.
    """
    if "body" in context:
        context["body"] = join_marks(context["body"])


def drop_second_viewport(
    app: Sphinx,
    pagename: str,
    templatename: str,
    context: dict,
    doctree: nodes.document | None,
) -> None:
    """Take docutils' viewport off a page: Sphinx's template gives each page one.

    Sphinx calls this for each page, whose ``<meta>`` elements are the text ``metatags`` of
    its ``context``, which is changed; the other arguments are not used.
    """
    metatags = context.get("metatags", "")
    context["metatags"] = re.sub(r'<meta name="viewport"[^>]*>', "", metatags)


def setup(app: Sphinx) -> None:
    """Have Sphinx change each page: citations, punctuation of formulas, viewport."""
    app.connect("html-page-context", fix_bibliography_roles)
    app.connect("html-page-context", join_marks_of_page)
    app.connect("html-page-context", drop_second_viewport)
