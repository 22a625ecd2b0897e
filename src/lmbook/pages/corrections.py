"""What Sphinx and docutils write into each page, put right before it is stored."""

import re

from docutils import nodes
from sphinx.application import Sphinx

_FORMULA = re.compile(
    r'(?P<before>[(\[“]?)<span class="math notranslate nohighlight">[^<]*</span>'
    r"(?P<after>[,.;:!?)\]”]*)"
)


def mark_citations(html: str) -> str:
    """Return a page's HTML in which the entries of a list of citations are its items.

    docutils writes a ``list`` of ``doc-biblioentry``, which ARIA no longer knows; each
    becomes a ``listitem``.
    """
    return html.replace('role="doc-biblioentry"', 'role="listitem"')


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


def drop_viewport(metatags: str) -> str:
    """Return a page's ``<meta>`` elements without docutils' viewport.

    Sphinx's template gives each page one; docutils' would be a second one.
    """
    return re.sub(r'<meta name="viewport"[^>]*>', "", metatags)


def correct_page(
    app: Sphinx,
    pagename: str,
    templatename: str,
    context: dict,
    doctree: nodes.document | None,
) -> None:
    """Put right what is written of a page; Sphinx calls this for each.

    ``context``, which is changed, has the page's HTML as ``body``, where it has a text, and
    its ``<meta>`` elements as ``metatags``; the other arguments are not used.
    """
    if "body" in context:
        context["body"] = join_marks(mark_citations(context["body"]))
    context["metatags"] = drop_viewport(context.get("metatags", ""))


def setup(app: Sphinx) -> None:
    """Have Sphinx correct each page before it is stored."""
    app.connect("html-page-context", correct_page)
