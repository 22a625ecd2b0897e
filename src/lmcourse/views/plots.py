"""The look of static figures, and plotly figures as views."""

import html
import json

import numpy as np

from lmcourse.views.view import PLOTLY, View

# After Okabe and Ito: blue, vermilion, green, pink, brown, azure, grey. Shifted so that
# each stands out at 3:1 from the page in both themes, and any two differ for dichromats.
PALETTE = ["#0072B2", "#D55E00", "#0EA266", "#C37AAB", "#96562C", "#3067DC", "#696969"]
SEQUENTIAL = "Blues"  # zero is the page, in both themes
DIVERGING = "RdBu_r"
AXIS = {"automargin": True, "gridcolor": "#dddddd", "zeroline": False}
LAYOUT = {  # of plotly, in Jupyter and Colab: the book's colours on white
    "colorway": PALETTE,
    "margin": {"t": 30, "r": 10},
    "paper_bgcolor": "white",
    "plot_bgcolor": "white",
    "xaxis": AXIS,
    "yaxis": AXIS,
}
AT_ONCE = {"mode": "immediate", "frame": {"duration": 0, "redraw": True}}  # of a slider
DIGITS = 4
EXACT = 1e15  # whole numbers below this, of at most 15 digits, keep all their digits
# Where a figure has data, which may look like markup. Titles and the text of annotations,
# templates, prefixes and suffixes are the author's, who may mean it.
DATA_KEYS = {
    "x", "y", "z", "x0", "x1", "y0", "y1", "a", "b", "c", "text", "hovertext", "name",
    "customdata", "labels", "parents", "ids", "locations", "label", "values", "meta",
    "categoryarray", "tickvals", "ticktext",
}  # fmt: skip


def style() -> None:
    """Set the look of matplotlib's figures; call it once, in the import cell.

    The style sheet is ``static/lmcourse.mplstyle``, the colours of lines are `PALETTE`. In
    IPython figures are then shown as SVG. Backgrounds are transparent and the type dark:
    the site turns static pictures over in its dark theme.
    """
    import matplotlib.pyplot as plt

    from lmcourse.views import figures

    figures.register()
    plt.style.use("lmcourse.views.static.lmcourse")  # a style sheet
    plt.rcParams["axes.prop_cycle"] = plt.cycler(color=PALETTE)


def _number(digits: str) -> float | int:
    """Return a number that JSON writes with a point or an exponent, in short.

    A whole number becomes an int and keeps all its digits, unless it has more than 15;
    any other number is rounded to four significant digits (`DIGITS`) and stays a float.

    ``digits`` : a finite number as it is written, such as "0.123456" or "1e20".
    """
    value = float(digits)
    if value == int(value) and abs(value) < EXACT:
        return int(value)
    return float(f"{value:.{DIGITS}g}")


def _literal(value, keys: set[str] = DATA_KEYS, data: bool = False):
    """Return part of a plotly figure, its data escaped so that they show as they are.

    In a str of data, ``<``, ``>`` and ``&`` are escaped and a line break becomes
    ``<br>``; numbers stay as they are. The ``text`` of titles and annotations is no data.

    Parameters
    ----------
    value : dict, list, str or other
        The part.
    keys : set of str
        Keys under which data stand, such as "x", "text" and "name".
    data : bool
        Whether ``value`` itself stands under such a key.

    Returns
    -------
    dict, list, str or other
        A copy of the part.
    """
    if isinstance(value, dict):
        own = {key: key.endswith("title") or key == "annotations" for key in value}
        return {
            key: _literal(entry, keys - {"text"} if own[key] else keys, key in keys)
            for key, entry in value.items()
        }
    if isinstance(value, list):
        return [_literal(entry, keys, data) for entry in value]
    if not data or not isinstance(value, str):
        return value
    return html.escape(value, quote=False).replace("\n", "<br>")


def plot(fig, *, alt) -> View:
    """Make a plotly figure a view that follows the site's theme and needs no other host.

    Parameters
    ----------
    fig : plotly.graph_objects.Figure
        Left as it is. Its template is replaced by the book's; explicit colours stay.
        What its data say is shown as it is, ``<b>`` too; titles, annotations and
        templates may have markup.
    alt : str
        What the figure shows, for readers who cannot see it.

    Returns
    -------
    View
        Its ``data`` has the ``figure``, a dict of plotly's JSON: ``data``, ``layout`` and,
        if there are any, ``frames``; numbers in four significant digits.
    """
    from plotly.utils import PlotlyJSONEncoder

    parts = {"data": fig.data, "layout": fig.layout, "frames": fig.frames}
    text = json.dumps(parts, cls=PlotlyJSONEncoder)  # NaN becomes null, a gap
    figure = json.loads(text, parse_float=_number)
    figure["layout"].pop("template", None)
    # The name of a frame is not shown; the steps of sliders refer to it.
    frames = [_literal(f) | {"name": f.get("name")} for f in figure.pop("frames")]
    figure = _literal(figure) | ({"frames": frames} if frames else {})
    drawn = figure | {"layout": {"template": {"layout": LAYOUT}, **figure["layout"]}}
    return View("plot", {"figure": figure}, alt=alt, extra={PLOTLY: drawn})


def error_bars(axes, positions, values, intervals, *, horizontal=False, **style) -> None:
    """Draw values with their intervals as bars, in matplotlib.

    Parameters
    ----------
    axes : matplotlib.axes.Axes
    positions : array-like of shape (points,)
        Where they stand on the axis that is not measured.
    values : array-like of shape (points,)
    intervals : array-like of shape (points, 2)
        Low and high of each, as `lmcourse.numbers` returns them.
    horizontal : bool, optional
        Measure along x.
    **style
        Of `matplotlib.axes.Axes.errorbar`: ``label``, ``color``, ``fmt``.
    """
    values = np.asarray(values)
    intervals = np.asarray(intervals)
    reach = np.abs(intervals.T - values)  # (2, points): down and up
    style = {"fmt": "o", "capsize": 2} | style
    if horizontal:
        axes.errorbar(values, positions, xerr=reach, **style)
    else:
        axes.errorbar(positions, values, yerr=reach, **style)


def band(axes, positions, intervals, **style) -> None:
    """Draw intervals along a line as a band behind it, in matplotlib.

    Parameters
    ----------
    axes : matplotlib.axes.Axes
    positions : array-like of shape (points,)
        Along x.
    intervals : array-like of shape (points, 2)
        Low and high at each.
    **style
        Of `matplotlib.axes.Axes.fill_between`: ``color``, ``label``.
    """
    low, high = np.asarray(intervals).T
    axes.fill_between(positions, low, high, **({"alpha": 0.25, "linewidth": 0} | style))
