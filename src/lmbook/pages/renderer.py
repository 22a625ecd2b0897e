"""Views and figures on the site: the myst-nb renderer of what cells show."""

import re
from html import escape

from docutils import nodes

from lmbook.execute.keys import hash_json
from lmbook.pages.tables import data_table
from lmcourse.views import MIME
from lmcourse.views.figures import MIME as FIGURE
from lmcourse.views.markup import script_json
from lmcourse.views.view import PLOTLY

SVG = "image/svg+xml"
BERTVIZ = ("jquery/jquery.slim.min.js", "d3/d3.min.js")
CIRCUITSVIS = ("circuitsvis", "circuitsvis/iife.js")
# Kind of view → the module that draws it, and the libraries that this needs. Other kinds
# have a module of their own name, and no library.
DRAWERS = {
    "attention_heads": CIRCUITSVIS,
    "tokens": CIRCUITSVIS,
    "head_view": ("bertviz", *BERTVIZ, "bertviz/head_view.js"),
    "model_view": ("bertviz", *BERTVIZ, "bertviz/model_view.js"),
    "plot": ("plotly", "plotly/plotly.min.js"),
    "poems": ("poems",),
    "surprise": ("surprise",),
}
HEIGHTS = {"attention_heads": 560, "head_view": 450, "model_view": 450, "sentences": 330}
HINTS = {
    "attention_heads": "Click a head, or go to it with the arrow keys, to see it in full.",
    "head_view": (
        "Choose a layer; click a coloured square to switch a head, double-click (or "
        "Shift+Enter) to see it alone; point at a token to see its lines only."
    ),
    "model_view": "Click a head, or choose one with the arrow keys and Enter, to open it.",
    "sentences": (
        "Choose a sentence and a head; click a token to see what it attends to. Arrow keys "
        "go from token to token and from head to head. The mark on a noun's bar shows what "
        "the noun would get if every token got the same."
    ),
}


def trace_types(view: dict) -> list[str]:
    """Return the types of plotly's traces that a plot has, sorted; [] for another view.

    Such as ["heatmap", "scatter"]. Those of the frames of an animation are among them, and
    always "scatter", which is in every bundle of plotly.js.

    Parameters
    ----------
    view : dict
        ``kind``, and for "plot" ``data["figure"]``, a figure as plotly's JSON.
    """
    if view["kind"] != "plot":
        return []
    figure = view["data"]["figure"]
    parts = [figure, *figure.get("frames", [])]
    types = {t.get("type", "scatter") for part in parts for t in part.get("data", [])}
    return sorted(types | {"scatter"})


def estimated_height(kind: str, data: dict) -> int:
    """Return about how many pixels high a view will be, so that the page does not jump.

    ``kind`` : of the view, such as "head_view"; ``data`` : what it is drawn from. Only that
    of a "plot" is used: ``figure``, as plotly's JSON, may say its height.
    """
    if kind == "plot":
        return int(data["figure"]["layout"].get("height") or 450)
    return HEIGHTS.get(kind, 60)


def view_html(view: dict) -> str:
    """Return a view as HTML: data, a place to draw in, and what needs no script.

    The latter is its stored state, a table of its data, or both.

    Parameters
    ----------
    view : dict
        ``kind``, what draws it, such as "head_view"; ``data``, what it is drawn from, JSON;
        ``stored``, the HTML that stands there before any script runs, perhaps ""; ``alt``,
        what it shows in words.
    """
    kind = view["kind"]
    alt = escape(view["alt"])
    stored = view["stored"]
    hint = f'<p class="lmc-hint">{HINTS[kind]}</p>' if kind in HINTS else ""
    name = re.sub("[-_]", " ", kind)
    style = ""
    if not stored:
        style = f' style="min-height: {estimated_height(kind, view["data"])}px"'
        stored = (
            f'<p class="lmc-alt">{alt}</p><noscript><p class="lmc-alt">Drawing this needs '
            "JavaScript; the table below has the same data.</p></noscript>"
        )
    classes = f"lmc-view lmc-{kind.replace('_', '-')}"
    if kind not in DRAWERS:  # a view of ours, drawn in the page
        classes += " lmc-play"
    return (
        f'<div class="{classes}" role="group" aria-label="{escape(name)}: {alt}" '
        f'data-kind="{escape(kind)}" data-module="{escape(module_name(kind))}" '
        f'data-state="waiting">\n<div class="lmc-canvas"{style}>{stored}</div>\n'
        f'{hint}{data_table(view)}\n<script type="application/json" class="lmc-data">'
        f"{script_json(view['data'])}</script>\n</div>\n"
    )


def module_name(kind: str) -> str:
    """Return the name of the JavaScript module that draws a kind of view.

    It is that of a file in ``static/play``, without ".js". ``kind`` : such as "head_view",
    which "bertviz" draws; a kind that `DRAWERS` does not have is the module's own name.
    """
    return DRAWERS.get(kind, (kind,))[0]


def view_node(view: dict) -> nodes.raw:
    """Return a view as a node that knows what the page must load.

    ``view`` : dict: ``kind``, str, what draws it, such as "head_view"; ``data``, what it is
    drawn from, JSON-ready, None if nothing draws it; ``stored``, the HTML that stands there
    before any script runs; ``alt``, str, the view in words; ``stores``, list of str, the
    weights and vocabularies that it loads. The node has the attributes ``lmcourse_kind``, a
    str, ``lmcourse_traces`` and ``lmcourse_stores``, lists of str: by these it is decided
    which scripts and data the page gets (`lmbook.publish.assets.page_assets`).
    """
    node = nodes.raw("", view_html(view), format="html")
    node["lmcourse_kind"] = view["kind"]
    node["lmcourse_traces"] = trace_types(view)
    node["lmcourse_stores"] = view["stores"]
    return node


def _inline_svg(svg: str, kind: str) -> str:
    """Return a figure's SVG as part of a page: its ids clash with no other's.

    Parameters
    ----------
    svg : str
        As Matplotlib writes it.
    kind : str
        A class for it: "lm-wide" or "lm-narrow".

    Returns
    -------
    str
        The element ``<svg>``, without its style. Of its ids only those that it uses itself
        are left, which begin with a hash of it.

    Raises
    ------
    ValueError
        If it holds what a figure of ours never does: a script, or an address.
    """
    active = re.search(
        r"<(script|foreignObject|a)\b|\son\w+=|href=\"(?!#|data:image/png)", svg
    )
    if active:
        excerpt = svg[active.start() :][:60].strip()
        raise ValueError(
            f"a figure holds a script or an address, {excerpt!r}, which a page would run "
            "or load: draw it without"
        )
    prefix = f"p{hash_json(svg)[:8]}-"
    used = set(re.findall(r'(?:url\(|href=")#([\w-]+)', svg))
    svg = re.sub(r"<style.*?</style>", "", svg, flags=re.DOTALL)  # about all of the page
    svg = svg[svg.index("<svg") :].replace("<svg ", f'<svg class="{kind}" ', 1)
    svg = re.sub(r'\sid="([^"]*)"', lambda match: match[0] if match[1] in used else "", svg)
    return re.sub(r'(\sid="|(?:url\(|href=")#)', rf"\1{prefix}", svg)


def figure_node(data) -> nodes.raw:
    """Return a figure in both its widths, inline: its letters are the page's own.

    So they have the site's type, a reader can find and copy them, and a test can measure
    them. One that is too wide for a phone and has no narrow version scrolls.

    Parameters
    ----------
    data : MimeData
        myst-nb's, of an output. ``content`` is the SVG; ``output_metadata`` has under
        "image/svg+xml" ``narrow``, the SVG of the narrow version, "" if there is none, and
        ``stacked``, whether its panels stand one below the other there; ``cell_metadata``
        has the alternative text.

    Returns
    -------
    raw
        A ``<div>`` with both, in HTML; the style sheet shows one.
    """
    narrow, stacked = (data.output_metadata[SVG][key] for key in ("narrow", "stacked"))
    drawings = _inline_svg(data.content, "lm-wide")
    classes = ["lm-plot"]
    if stacked:
        classes.append("lm-stacked")
    tab_stop = ""
    if narrow:
        drawings += _inline_svg(narrow, "lm-narrow")
    else:
        classes.append("lm-scrolls")
        tab_stop = ' tabindex="0"'  # keys scroll it as well
    alt = data.cell_metadata.get("mystnb", {}).get("image", {}).get("alt", "")
    return nodes.raw(
        "",
        f'<div class="{" ".join(classes)}"{tab_stop} role="img" '
        f'aria-label="{escape(alt)}">{drawings}</div>',
        format="html",
    )


class ViewRenderer:
    """The entry point of the group ``myst_nb.mime_renderers``."""

    mime_priority_overrides = (("*", MIME, 1),)

    @staticmethod
    def handle_mime(renderer, data, inline):
        """Return the nodes of an output, or None to leave it to other renderers.

        Handled are views (of the type `MIME`, a dict), figures that have a narrow version
        (SVG), and two types of which nothing is shown on the site (plotly's own, and
        `FIGURE`, which tests read): for these the list is empty.

        Parameters
        ----------
        renderer : object
            myst-nb's; unused.
        data : MimeData
            myst-nb's: ``content``, the output in one MIME type, ``mime_type``; and
            ``output_metadata``, a dict.
        inline : bool
            Unused: whether the output stands in a line of text.
        """
        if data.mime_type in (PLOTLY, FIGURE):
            return []  # a bare plotly figure has no other form here; `FIGURE` is for tests
        if data.mime_type == SVG and "narrow" in data.output_metadata.get(SVG, {}):
            return [figure_node(data)]
        if data.mime_type != MIME:
            return None
        return [view_node(data.content)]
