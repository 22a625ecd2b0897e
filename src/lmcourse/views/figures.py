"""What a static figure shows, as numbers: so that a test can see that it changed.

An image cannot be compared between two machines. Beside it, a notebook's output therefore
carries a description: the words, the limits of the axes, and of each line, bar, point
cloud and heat map a few places, in shares of the axis, as the eye reads them.
"""

import itertools
import sys

import numpy as np
from matplotlib.axes import Axes
from matplotlib.category import StrCategoryLocator
from matplotlib.collections import Collection, PathCollection
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from matplotlib.ticker import FixedLocator

from lmcourse.views import checks, svg

MIME, SVG = "application/vnd.lmcourse.figure+json", "image/svg+xml"
SAMPLES = 8  # of each artist
ARTISTS = 12  # of each kind


def register() -> None:
    """Have IPython, if it runs, show a figure as SVG, its description beside it.

    That is instead of the picture that matplotlib would show. Elsewhere nothing happens.
    """
    running = sys.modules.get("IPython")  # it is imported where it runs
    shell = running.get_ipython() if running else None
    if shell:
        from matplotlib_inline.config import InlineBackend

        InlineBackend.instance(parent=shell).figure_formats = set()  # ours alone
        shell.display_formatter.mimebundle_formatter.for_type(Figure, _shown)


def _shown(figure: Figure) -> tuple[dict, dict]:
    """Return what a notebook holds of a figure, and the metadata: two dicts by MIME type.

    The first has the description (`describe`) and the SVG for a desk; in the second, the
    SVG has a dict: ``narrow``, the SVG for a phone or "", and ``stacked``, whether panels
    stand below one another in it.
    """
    description = describe(figure)
    wide, narrow, stacked = svg.draw(figure)
    return {MIME: description, SVG: wide}, {SVG: {"narrow": narrow, "stacked": stacked}}


def describe(figure: Figure) -> dict:
    """Describe a matplotlib figure.

    Returns
    -------
    dict
        ``"words"``: the titles and legends of the whole, if any.
        ``"axes"``: for each axes a dict: its ``words``, ``limits`` and, where it has them,
        ``ticks`` (labels of ticks that were chosen); ``lines``, ``patches``, ``points`` and
        ``shapes``, each a list of dicts, one an artist: ``count``, how many points it has,
        and ``at``, at most 8 of them (`SAMPLES`), each [x, y] from 0 to 1 along the axes;
        and ``images``, a list of dicts: ``shape``, and ``ends`` and ``shares``, the limits
        of the colours and at most 8 values, from 0 to 1 between these limits.
    """
    words = _words(figure.texts, *figure.legends)
    described = {"axes": [_axes(axes) for axes in figure.axes]}
    return {"words": words} | described if words else described


def _words(texts, *legends) -> list[str]:
    """Return what some texts and legends say, as far as they say anything.

    ``texts`` : iterable of matplotlib's Text; ``legends`` : Legend or None, of which title
    and entries come first.
    """
    titled = [[legend.get_title(), *legend.get_texts()] for legend in legends if legend]
    return [t.get_text() for t in itertools.chain(*titled, texts) if t.get_text()]


def _ticks(axes: Axes) -> list[str]:
    """Return the labels of ticks that somebody chose, x before y, a list of str.

    Other ticks follow from the limits of the axes, and so do all of hidden axes.
    """
    chosen = (FixedLocator, StrCategoryLocator)
    shown = [axis for axis in (axes.xaxis, axes.yaxis) if axes.axison]
    shown = [axis for axis in shown if isinstance(axis.get_major_locator(), chosen)]
    return _words(itertools.chain(*(axis.get_ticklabels() for axis in shown)))


def _axes(axes: Axes) -> dict:
    """Describe one pair of axes: words, limits, and what is drawn in it.

    Returns a dict: ``words``, a list of str; ``limits``, [x from, x to, y from, y to]; if
    there are any, ``ticks``, a list of str, and ``lines``, ``patches`` (the corners of all
    in one dict), ``points`` (clouds of marks), ``shapes`` (filled ones) and ``images``
    (heat maps), each a list of dicts, at most 12 (`ARTISTS`), with a sample of the places
    (`_points`) or colours (`_colours`) of one. Polar or 3D axes have only words, limits and
    ticks.
    """
    names = [axes.title, axes.xaxis.label, axes.yaxis.label]
    described = {
        "words": _words(names) + _words(axes.texts, axes.get_legend()),
        "limits": [float(f"{end:.4g}") for end in (*axes.get_xlim(), *axes.get_ylim())],
    }
    ticks = _ticks(axes)
    if ticks:
        described["ticks"] = ticks
    if axes.name != "rectilinear":  # of others only the words and the limits
        return described
    images = [*axes.images, *axes.collections]
    images = [image for image in images if np.size(image.get_array()) > 1]
    shapes = [s for s in axes.collections if not isinstance(s, PathCollection)]
    points = [p for p in axes.collections if isinstance(p, PathCollection)]
    bars = np.array([patch.get_window_extent().get_points() for patch in axes.patches])
    kinds = {
        "lines": [_points(axes, _line(line)) for line in _some(axes.lines)],
        "patches": [_points(axes, bars.reshape(-1, 2))] if len(bars) else [],
        "points": [_points(axes, _cloud(cloud)) for cloud in _some(points)],
        "shapes": [_points(axes, _outline(s)) for s in _some(shapes) if s not in images],
        "images": [_colours(image) for image in _some(images)],
    }
    return described | {kind: artists for kind, artists in kinds.items() if artists}


def _some(items, most: int = ARTISTS) -> list:
    """Return at most ``most`` of the items (of a sequence), evenly spaced, as a list."""
    chosen = np.linspace(0, len(items) - 1, min(len(items), most)).round()
    return [items[int(i)] for i in chosen]


def _line(line) -> np.ndarray:
    """Return the points of a line, a Line2D, on the canvas, (n, 2), in pixels."""
    return line.get_transform().transform(line.get_xydata())


def _cloud(cloud: PathCollection) -> np.ndarray:
    """Return where the marks of a cloud are on the canvas, (n, 2), in pixels."""
    return cloud.get_offset_transform().transform(cloud.get_offsets())


def _outline(shape: Collection) -> np.ndarray:
    """Return the corners of filled shapes on the canvas, (n, 2), in pixels.

    ``shape`` : a collection of paths, such as the band of ``fill_between``.
    """
    vertices = [path.vertices for path in shape.get_paths()]
    return shape.get_transform().transform(np.concatenate(vertices or [np.empty((0, 2))]))


def _points(axes: Axes, pixels: np.ndarray) -> dict:
    """Describe points on the canvas in shares of the axes, 0 to 1.

    ``pixels`` : array (n, 2). Returns a dict: ``count``, how many there are; ``at``, at
    most 8 of them, each [x, y].
    """
    shares = axes.transAxes.inverted().transform(np.reshape(pixels, (-1, 2)))
    return {"count": len(shares), "at": _sampled(shares)}


def _colours(image: AxesImage | Collection) -> dict:
    """Describe the colours of an image: its shape, and samples of its values.

    Returns a dict: ``shape``; of an image of numbers ``ends``, the limits of its colours,
    and ``shares``, a sample of where its values lie between them, 0 to 1; of an image of
    colours ``colours``, a sample of them. A sample is a list of at most 8 numbers.
    """
    values = np.ma.filled(np.ma.asarray(image.get_array(), dtype=float), np.nan)
    if values.ndim == 3:  # colours themselves, not numbers that become colours
        return {"shape": list(values.shape), "colours": _sampled(values.ravel())}
    low, high = image.get_clim()
    shares = (values.ravel() - low) / ((high - low) or 1.0)
    return {
        "shape": list(values.shape),
        "ends": [float(f"{end:.4g}") for end in (low, high)],
        "shares": _sampled(shares),
    }


def _sampled(values: np.ndarray) -> list:
    """Return at most 8 of the values (`SAMPLES`), evenly spaced, with three decimals.

    ``values`` : array, sampled along its first axis. A NaN becomes None.
    """
    return checks.rounded(np.array(_some(values, SAMPLES), dtype=float))
