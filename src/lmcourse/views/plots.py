"""The look of static figures, and plotly figures as views."""

import functools
import html
import json
import re
import uuid

from lmcourse.views import notebook
from lmcourse.views.view import View

__all__ = ["DIVERGING", "PALETTE", "SEQUENTIAL", "plain", "plot", "style"]

# After Okabe and Ito: blue, vermilion, green, pink, brown, azure, grey. Shifted so that
# each stands out at 3:1 from the page in both themes, and any two differ for dichromats.
PALETTE = ["#0072B2", "#D55E00", "#0EA266", "#C37AAB", "#96562C", "#3067DC", "#696969"]
SEQUENTIAL = "Blues"  # zero is the page, in both themes
DIVERGING = "RdBu_r"
DIGITS = 4
EXACT = 1e15  # floats above this are not exact integers
# Where a figure has data, which may look like markup. Titles and the text of annotations,
# templates, prefixes and suffixes are the author's, who may mean it.
DATA = {
    *("x", "y", "z", "x0", "x1", "y0", "y1", "a", "b", "c", "text", "hovertext", "name"),
    *("customdata", "labels", "parents", "ids", "locations", "label", "values", "meta"),
    *("categoryarray", "tickvals", "ticktext"),
}


def style() -> None:
    """Set the look of matplotlib, seaborn and plotly; call it once, in the import cell.

    Backgrounds are transparent and the type dark: the site turns static pictures over
    in its dark theme.
    """
    import matplotlib.pyplot as plt
    import plotly.io as pio
    import seaborn as sns

    from lmcourse.views import figures

    figures.register()
    pio.templates["lmcourse"] = {"layout": notebook_layout()}
    pio.templates.default = "lmcourse"

    sns.set_theme(style="ticks", palette=PALETTE)
    plt.style.use("lmcourse.views.static.lmcourse")  # a style sheet


def _number(digits: str) -> float | int:
    """Return a number of JSON in four significant digits; whole numbers stay whole."""
    value = float(digits)
    if value == int(value) and abs(value) < EXACT:
        return int(value)
    return float(f"{value:.{DIGITS}g}")


def plain(text: str) -> str:
    """Return text so that plotly shows what it is: ``<b>`` as these three characters.

    `plot` does so for all that is data; titles and annotations made from data need it.
    New lines are kept.
    """
    return html.escape(text, quote=False).replace("\n", "<br>")


def _literal(value, keys: set[str] = DATA, data: bool = False):
    """Return part of a figure with the strings under some keys made plain."""
    if isinstance(value, dict):
        own = {key: key.endswith("title") or key == "annotations" for key in value}
        return {
            key: _literal(entry, keys - {"text"} if own[key] else keys, key in keys)
            for key, entry in value.items()
        }
    if isinstance(value, list):
        return [_literal(entry, keys, data) for entry in value]
    return plain(value) if data and isinstance(value, str) else value


def _figure(fig) -> dict:
    """Return a figure's traces, layout and frames as JSON-ready data, its text plain."""
    from plotly.utils import PlotlyJSONEncoder

    parts = {"data": fig.data, "layout": fig.layout, "frames": fig.frames}
    text = json.dumps(parts, cls=PlotlyJSONEncoder)  # NaN becomes null, a gap
    figure = json.loads(text, parse_float=_number)
    figure["layout"].pop("template", None)
    # The name of a frame is not shown; the steps of sliders refer to it.
    frames = [_literal(f) | {"name": f.get("name")} for f in figure.pop("frames")]
    return _literal(figure) | ({"frames": frames} if frames else {})


def _page(fig, figure: dict, alt: str) -> str:
    """Return HTML that draws a figure, and shows its alternative text where it cannot."""
    tag = type(fig)().to_html(include_plotlyjs="cdn")
    found = {k: re.search(rf'<script[^>]*\b{k}="(.+?)"', tag) for k in ("src", "integrity")}
    source = json.dumps({k: match[1] for k, match in found.items() if match})
    name, drawn = f"plot-{uuid.uuid4().hex}", json.dumps(figure).replace("<", r"\u003c")
    return notebook.library("plot.html") % (name, html.escape(alt), name, drawn, source)


def notebook_layout() -> dict:
    """Return the layout template for Jupyter and Colab: the book's colours on white."""
    axis = {"automargin": True, "gridcolor": "#dddddd", "zeroline": False}
    return {
        "colorway": PALETTE,
        "margin": {"t": 30, "r": 10},
        "paper_bgcolor": "white",
        "plot_bgcolor": "white",
        "xaxis": axis,
        "yaxis": axis,
    }


def plot(fig, *, alt, caption="") -> View:
    """A plotly figure that follows the site's theme and needs no other host.

    Parameters
    ----------
    fig : plotly.graph_objects.Figure
        Left as it is. Its template is replaced by the book's; explicit colours stay.
        What its data say is shown as it is, ``<b>`` too; titles, annotations and
        templates may have markup (see `plain`).
    alt : str
        What the figure shows, for readers who cannot see it.
    caption : str, optional

    Returns
    -------
    View

    Raises
    ------
    TypeError
        If `fig` is not a plotly figure.
    ValueError
        If it has no traces.
    """
    if not hasattr(fig, "to_json") or not hasattr(fig, "data"):
        raise TypeError(f"plot needs a plotly Figure, not {type(fig).__name__}")
    if not fig.data:
        raise ValueError("the figure has no traces: there is nothing to show")
    figure = _figure(fig)
    jupyter = {"template": {"layout": notebook_layout()}, **figure["layout"]}
    drawn = {**figure, "layout": jupyter}
    extra = {"application/vnd.plotly.v1+json": drawn}
    page = functools.partial(_page, fig, drawn, alt)
    return View("plot", alt, caption, {"figure": figure}, page, extra)
