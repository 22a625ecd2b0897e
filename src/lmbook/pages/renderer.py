"""Views on the site: the myst-nb renderer of their JSON, and a guard on every figure."""

import html
import json

from docutils import nodes
from sphinx.util import logging

from lmbook.execute.compare import FIGURE
from lmbook.pages.tables import table
from lmcourse.views import MIME
from lmcourse.views.poems import KINDS, stored

__all__ = ["ViewRenderer", "setup", "view_html"]

logger = logging.getLogger(__name__)
PLOTLY_MIME = "application/vnd.plotly.v1+json"
NAMES = {
    "attention_heads": "attention heat maps",
    "head_view": "attention lines by layer and head",
    "model_view": "attention of every layer and head",
    "sentences": "where a token looks, sentence by sentence",
    "tokens": "coloured tokens",
    "plot": "plot",
    "poems": "explorer of poems",
    "strike_out": "themes with their words struck out",
}
HINTS = {
    "attention_heads": "Click a head, or go to it with the arrow keys, to see it in full.",
    "head_view": (
        "Choose a layer; click a coloured square to switch a head, double-click (or "
        "Shift+Enter) to see it alone; point at a token to see its lines only."
    ),
    "model_view": "Click a head, or choose one with the arrow keys and Enter, to open it.",
    "sentences": (
        "Choose a sentence and a head; click a token to see where it looks. Arrow keys go "
        "from token to token and from head to head."
    ),
}


def library(view: dict) -> str:
    """Return which entry of `assets.LIBRARIES` draws a view, or ``play/`` and a module."""
    if view["kind"] == "play":
        return f"play/{view['data']['module']}"
    own = {"head_view": "head_view", "model_view": "model_view", "plot": "plotly"}
    own |= {"sentences": "sentences"} | dict.fromkeys(KINDS, "poems")
    return own.get(view["kind"], "circuitsvis")


def traces(view: dict) -> list[str]:
    """Return the kinds of traces in a plot, frames included; none for another view."""
    if view["kind"] != "plot":
        return []
    figure = view["data"]["figure"]
    every = [figure, *figure.get("frames", [])]
    found = {trace.get("type") for part in every for trace in part.get("data", [])}
    return sorted((found - {None}) | {"scatter"})


def height(view: dict) -> int:
    """Return about how many pixels high a view will be, so that the page does not jump."""
    data = view["data"]
    if view["kind"] == "plot":
        return int(data["figure"]["layout"].get("height") or 450)
    if view["kind"] == "sentences":
        return 330
    count = len(data["tokens"])
    if view["kind"] == "head_view":
        return round(22.5 * count) + 64
    if view["kind"] == "model_view":
        heads, layers = len(data["heads"]), len(data["layers"])
        thumbnail = count * 7 * 12 / heads + 10
        return round(max(layers * thumbnail + 38, count * 18 + 55))
    return 560 if view["kind"] == "attention_heads" else 60


def script_json(value) -> str:
    """Return JSON that no HTML parser takes for anything else."""
    dumped = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    escapes = {"<": r"\u003c", ">": r"\u003e", "&": r"\u0026"}
    escapes |= {"\u2028": r"\u2028", "\u2029": r"\u2029"}
    for plain, escaped in escapes.items():
        dumped = dumped.replace(plain, escaped)
    return dumped


def _canvas(view: dict) -> str:
    """Return the place to draw in: the view's stored state, or what it shows, in words."""
    if view["kind"] == "play":
        return f'<div class="lmc-canvas lmc-stored">{view["data"]["stored"]}</div>\n'
    if view["kind"] in KINDS:
        return f'<div class="lmc-canvas lmc-stored">{stored(view)}</div>\n'
    return (
        f'<div class="lmc-canvas" style="min-height: {height(view)}px">'
        f'<p class="lmc-alt">{html.escape(view["alt"])}</p>'
        '<noscript><p class="lmc-alt">Drawing this needs JavaScript; the table below has '
        "the same data.</p></noscript></div>\n"
    )


def view_html(view: dict) -> str:
    """Return a view as HTML: data, a place to draw in, and a table that needs no script.

    A view that runs in the page has its stored state instead of a table.

    Parameters
    ----------
    view : dict
        As `lmcourse.views.View.description` gives it.
    """
    kind, alt, data = view["kind"], html.escape(view["alt"]), view["data"]
    hint = f'<p class="lmc-hint">{HINTS[kind]}</p>' if HINTS.get(kind) else ""
    caption = html.escape(view["caption"])
    caption = f'<p class="lmc-caption">{caption}</p>' if caption else ""
    name, module, below = NAMES.get(kind), "", ""
    if kind == "play":
        name, module = data["module"].replace("-", " "), f' data-module="{data["module"]}"'
        data = data["data"]
    else:
        below = table(view)
    return (
        f'<div class="lmc-view lmc-{kind.replace("_", "-")}" role="group" '
        f'aria-label="{html.escape(name)}: {alt}" data-kind="{kind}"{module} '
        f'data-library="{library(view)}" data-state="waiting">\n'
        f"{_canvas(view)}{hint}{caption}{below}\n"
        f'<script type="application/json" class="lmc-data">'
        f"{script_json(data)}</script>\n</div>\n"
    )


class ViewRenderer:
    """The entry point of the group ``myst_nb.mime_renderers``."""

    mime_priority_overrides = (("*", MIME, 1),)

    @staticmethod
    def handle_mime(renderer, data, inline):
        """Return a view's nodes, or None for a MIME type that is not ours."""
        if data.mime_type == PLOTLY_MIME:
            return []  # a bare plotly figure has no other form here: `check_figures`
        if data.mime_type == FIGURE:
            return []  # for tests; the image stands beside it
        if data.mime_type != MIME:
            return None
        content = data.content
        view = json.loads(content) if isinstance(content, (str, bytes)) else content
        node = nodes.raw("", view_html(view), format="html")
        node["lmcourse_library"] = library(view)
        node["lmcourse_traces"] = traces(view)
        node["lmcourse_stores"] = view["data"].get("stores", [])
        node["lmcourse_caption"] = bool(view["caption"])
        return [node]


def _captioned(node: nodes.Node) -> bool:
    """Say whether a node stands in a figure with a caption."""
    while node is not None:
        if isinstance(node, nodes.figure):
            return any(isinstance(child, nodes.caption) for child in node.children)
        node = node.parent
    return False


def check_figures(app, doctree, docname) -> None:
    """Warn of a figure that code made and that has no caption or no alternative text.

    A warning fails the build. Views cannot be without alternative text.
    """
    for cell in doctree.findall(nodes.container):
        if cell.get("nb_element") != "cell_code_output":
            continue
        for node in cell.findall(nodes.Element):
            if isinstance(node, nodes.image):
                if not node.get("alt", "").strip():
                    logger.warning(
                        "a picture has no alternative text: give the cell's metadata "
                        "mystnb.image.alt",
                        location=node if node.line else cell,
                    )
            elif not node.attributes.get("lmcourse_library") or node["lmcourse_caption"]:
                continue
            if not _captioned(node):
                logger.warning(
                    "a figure has no caption: give the cell's metadata "
                    "mystnb.figure.caption",
                    location=node if node.line else cell,
                )


def mend_bibliography(app, pagename, templatename, context, doctree) -> None:
    """Make the entries of a list of citations what the list says they are.

    docutils writes a ``list`` of ``doc-biblioentry``, which ARIA no longer knows.
    """
    if "body" in context:
        context["body"] = context["body"].replace(
            'role="doc-biblioentry"', 'role="listitem"'
        )


def setup(app) -> None:
    """Check figures once their form for the site is chosen; mend what docutils writes."""
    app.connect("doctree-resolved", check_figures)
    app.connect("html-page-context", mend_bibliography)
