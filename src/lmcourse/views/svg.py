"""A static figure as SVG with real text, drawn for a desk and once more for a phone.

A picture of one width would have letters of five pixels on a phone. The same figure is
therefore laid out twice, with type of the same size, and panels that stood side by side
stand one below the other; where words would then lie on words there is no such version,
and the site lets a reader scroll.
"""

import itertools
import re
import warnings
from io import StringIO

import numpy as np
from matplotlib.collections import Collection, QuadMesh
from matplotlib.figure import Figure
from matplotlib.gridspec import GridSpec
from matplotlib.text import Text

WIDE, NARROW = 7.2, 3.4  # inches, at 96 pixels each: a column at a desk and on a phone
LEAST = 9.0  # points: 12 pixels, 11 where a picture is shrunk a little
PANEL = 2.7  # inches: a panel's height where panels are stacked
MANY = 400  # marks; a cloud of more is kept as pixels
PLAIN = dict.fromkeys(("Date", "Creator", "Format", "Type"))  # nothing that changes by day


def draw(figure: Figure) -> tuple[str, str, bool]:
    """Return a figure as SVG in two widths, and whether panels are stacked in the second.

    That one is empty where words would lie on words. The figure keeps its size, panels
    that were stacked stay so.
    """
    size, clashes = figure.get_size_inches().copy(), _clashes(figure)
    words = [text for text in figure.findobj(Text) if text.get_text()]
    grown = max([1, *(LEAST / word.get_fontsize() for word in words)])
    for word in words:
        word.set_fontsize(max(word.get_fontsize(), LEAST))
    for part in figure.findobj(Collection):
        marks = max(len(part.get_offsets()), np.size(part.get_array()))
        if marks > MANY or isinstance(part, QuadMesh):
            part.set_rasterized(True)
    figure.set_size_inches(min(size[0], WIDE), size[1])
    if _clashes(figure) > clashes:
        figure.set_size_inches(size * grown)  # it scrolls, if need be
    wide, height = _svg(figure), _stack(figure)
    figure.set_size_inches(NARROW, height or size[1])
    narrow = "" if _clashes(figure) > clashes else _svg(figure)
    figure.set_size_inches(size)
    return wide, narrow, bool(narrow and height)


def _stack(figure: Figure) -> float:
    """Put the panels of a single row below one another; return how high they are."""
    panels = [axes for axes in figure.axes if axes.get_subplotspec()]
    grids = {axes.get_gridspec().get_geometry() for axes in panels}
    if grids != {(1, len(panels))} or len(panels) == 1:
        return 0.0
    for axes, place in zip(panels, GridSpec(len(panels), 1, figure), strict=True):
        axes.set_subplotspec(place)
        axes.tick_params(labelleft=axes.yaxis.get_visible(), labelbottom=True)
    return PANEL * len(panels)


def _clashes(figure: Figure) -> int:
    """Count words on words, titles and legends beyond the picture, and crushed panels."""
    with warnings.catch_warnings(record=True, action="always") as told:  # of no room, say
        figure.draw_without_rendering()
    panels = [axes for axes in figure.axes if axes.get_subplotspec()]
    found = len(told) + sum(axes.bbox.width < figure.dpi for axes in panels)
    for axes in figure.axes:
        for words in (axes.get_xticklabels(), axes.get_yticklabels(), axes.texts):
            shown = [w for w in words if w.get_text() and w.get_visible()]
            flat = [word for word in shown if word.get_rotation() in (0, 90)]
            boxes = [word.get_window_extent() for word in flat]
            found += sum(a.overlaps(b) for a, b in itertools.combinations(boxes, 2))
        for part in filter(None, (axes.title, axes.get_legend(), *figure.texts)):
            found += part.get_window_extent().width > figure.bbox.width + 1
    return found


def _svg(figure: Figure) -> str:
    """Return a figure as SVG, its paths in hundredths of a point."""
    file = StringIO()
    figure.savefig(file, format="svg", dpi=200, bbox_inches="tight", metadata=PLAIN)
    text = file.getvalue()
    return re.sub(r' d="[^"]*"', lambda d: re.sub(r"(\.\d\d)\d+", r"\1", d[0]), text)
