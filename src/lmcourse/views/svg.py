"""A static figure as SVG with real text, drawn for a desk and once more for a phone.

A picture of one width would have letters of five pixels on a phone. The same figure is
therefore laid out twice, with type of the same size, and panels that stood side by side
stand one below the other; where words would then lie on words there is no such version,
and the site lets a reader scroll.
"""

import itertools
import re
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from io import StringIO

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import Collection, QuadMesh
from matplotlib.figure import Figure
from matplotlib.gridspec import GridSpec, SubplotSpec
from matplotlib.text import Text
from matplotlib.ticker import FixedLocator
from matplotlib.transforms import Bbox

WIDE, NARROW = 7.2, 3.4  # inches, at 96 pixels each: a column at a desk and on a phone
LEAST = 9.0  # points: 12 pixels, 11 where a picture is shrunk a little
PANEL = 2.7  # inches: a panel's height where panels are stacked, or more:
NAMED_ROW, AROUND = 0.2, 0.9  # inches for each row that has a name, and for all else
MANY = 400  # marks; a cloud of more is kept as pixels
PLAIN = dict.fromkeys(("Date", "Creator", "Format", "Type"))  # nothing that changes by day


def draw(figure: Figure) -> tuple[str, str, bool]:
    """Draw a figure as SVG in two widths.

    Parameters
    ----------
    figure : Figure
        It is laid out anew for each width, and afterwards as it was.

    Returns
    -------
    wide : str
        For a desk: SVG, at most `WIDE` = 7.2 inches wide; where words would then lie on
        words, larger, so that the reader scrolls.
    narrow : str
        For a phone: SVG, `NARROW` = 3.4 inches wide; empty where words would lie on words.
    is_stacked : bool
        Whether panels that stood side by side stand below one another in the second.
    """
    with _layout_restored(figure):
        width, height = figure.get_size_inches()
        clashes = _clashes(figure)
        growth = _enlarge_words(figure)
        _rasterize_large_clouds(figure)
        figure.set_size_inches(min(width, WIDE), height)
        if _clashes(figure) > clashes:
            # It scrolls, if need be.
            figure.set_size_inches(width * growth, height * growth)
        wide = _svg(figure)
        stacked_height = _stack(figure)
        figure.set_size_inches(NARROW, stacked_height or height)
        narrow = "" if _clashes(figure) > clashes else _svg(figure)
        return wide, narrow, bool(narrow and stacked_height)


@contextmanager
def _layout_restored(figure: Figure) -> Iterator[None]:
    """Put a figure back as it was when the ``with`` is left, after an error, too.

    Restored are its size, the font size of all words, which collections are rasterized and,
    of axes that were moved to another cell of their grid, what a `_Panel` keeps: the cell,
    the rectangle in the figure, whether a layout engine makes room for it, and whether tick
    labels show.
    """
    size = figure.get_size_inches().copy()
    fonts = {word: word.get_fontsize() for word in figure.findobj(Text)}
    rasterized = {part: part.get_rasterized() for part in figure.findobj(Collection)}
    panels = [_Panel.of(axes) for axes in figure.axes]
    try:
        yield
    finally:
        figure.set_size_inches(size)
        for word, font in fonts.items():
            word.set_fontsize(font)
        for part, was_rasterized in rasterized.items():
            part.set_rasterized(was_rasterized)
        for panel in panels:
            panel.restore()


@dataclass(frozen=True)
class _Panel:
    """Place, position, layout and labels of one axes before panels are stacked.

    Attributes
    ----------
    axes : Axes
    place : SubplotSpec or None
        Its cell in the figure's grid; None if it has none.
    positions : dict of str to Bbox
        "original" and "active", the two positions that matplotlib keeps.
    in_layout : bool
        Whether a layout engine makes room for it.
    has_x_labels, has_y_labels : bool
        Whether the labels of ticks show below it, and on its left.
    """

    axes: Axes
    place: SubplotSpec | None
    positions: dict[str, Bbox]
    in_layout: bool
    has_x_labels: bool
    has_y_labels: bool

    @classmethod
    def of(cls, axes: Axes) -> "_Panel":
        """Note where an axes stands in its figure, and which labels of ticks it shows."""
        return cls(
            axes,
            axes.get_subplotspec(),
            {
                "original": axes.get_position(original=True).frozen(),
                "active": axes.get_position().frozen(),
            },
            axes.get_in_layout(),
            axes.xaxis.get_tick_params().get("labelbottom", True),
            axes.yaxis.get_tick_params().get("labelleft", True),
        )

    def restore(self) -> None:
        """Put the axes back where it was, with its labels of ticks, if it was moved."""
        if self.axes.get_subplotspec() is self.place:
            return  # not moved
        self.axes.set_subplotspec(self.place)
        for which, position in self.positions.items():
            self.axes.set_position(position, which)
        self.axes.set_in_layout(self.in_layout)
        self.axes.tick_params(labelbottom=self.has_x_labels, labelleft=self.has_y_labels)


def _enlarge_words(figure: Figure) -> float:
    """Give words at least `LEAST` = 9 points; return by how much the smallest grew.

    That is a factor, 1 if all words are large enough. ``figure`` is changed.
    """
    words = [text for text in figure.findobj(Text) if text.get_text()]
    growth = max([1, *(LEAST / word.get_fontsize() for word in words)])
    for word in words:
        word.set_fontsize(max(word.get_fontsize(), LEAST))
    return growth


def _rasterize_large_clouds(figure: Figure) -> None:
    """Keep heat maps, and clouds of more than `MANY` = 400 marks, as pixels in the SVG."""
    for part in figure.findobj(Collection):
        marks = max(len(part.get_offsets()), np.size(part.get_array()))
        if marks > MANY or isinstance(part, QuadMesh):
            part.set_rasterized(True)


def _stack(figure: Figure) -> float:
    """Put the panels of a single row below one another, and show the ticks' labels of each.

    A figure with one panel, or with more rows, stays as it is.

    Returns
    -------
    float
        How high they are together, in inches; 0 if they stay where they are.
    """
    panels = [axes for axes in figure.axes if axes.get_subplotspec()]
    grids = {axes.get_gridspec().get_geometry() for axes in panels}
    if grids != {(1, len(panels))} or len(panels) == 1:
        return 0.0
    for axes, place in zip(panels, GridSpec(len(panels), 1, figure), strict=True):
        axes.set_subplotspec(place)
        axes.tick_params(labelleft=axes.yaxis.get_visible(), labelbottom=True)
    return len(panels) * max(map(_panel_height, panels))


def _panel_height(axes: Axes) -> float:
    """Return how high a panel must be, in inches: 2.7, or more if its rows have names.

    ``axes`` : the panel. Rows have names where the ticks of the y axis were chosen by hand
    (a `FixedLocator`).
    """
    if not isinstance(axes.yaxis.get_major_locator(), FixedLocator):
        return PANEL
    return max(PANEL, NAMED_ROW * len(axes.get_yticks()) + AROUND)


def _clashes(figure: Figure) -> int:
    """Count what goes wrong at a figure's present size; it is laid out for that.

    Pairs of words (labels of ticks, texts in the axes) of which one lies on the other;
    titles, legends and texts wider than the picture; panels less than an inch wide; and
    warnings of matplotlib.
    """
    with warnings.catch_warnings(record=True, action="always") as caught:  # of no room, say
        figure.draw_without_rendering()
    panels = [axes for axes in figure.axes if axes.get_subplotspec()]
    crushed = sum(axes.bbox.width < figure.dpi for axes in panels)
    overlapping = sum(
        _overlaps(words)
        for axes in figure.axes
        for words in (axes.get_xticklabels(), axes.get_yticklabels(), axes.texts)
    )
    # Words of the whole figure count once an axes, as they did when pages were laid out.
    beyond = sum(
        part.get_window_extent().width > figure.bbox.width + 1
        for axes in figure.axes
        for part in (axes.title, axes.get_legend(), *figure.texts)
        if part is not None
    )
    return len(caught) + crushed + overlapping + beyond


def _overlaps(words: Sequence[Text]) -> int:
    """Count the pairs of level or upright words whose bounding boxes overlap.

    Hidden and empty words do not count.
    """
    shown = [word for word in words if word.get_text() and word.get_visible()]
    boxes = [word.get_window_extent() for word in shown if word.get_rotation() in (0, 90)]
    return sum(one.overlaps(other) for one, other in itertools.combinations(boxes, 2))


def _svg(figure: Figure) -> str:
    """Return a figure as SVG, without digits and metadata that nobody needs.

    The numbers of paths, in points, keep two decimals (`_rounded_path`); what is kept as
    pixels, such as large clouds, has 200 an inch. Metadata that change by day, such as the
    date, are left out (`PLAIN`).
    """
    file = StringIO()
    figure.savefig(file, format="svg", dpi=200, bbox_inches="tight", metadata=PLAIN)
    return re.sub(r' d="[^"]*"', _rounded_path, file.getvalue())


def _rounded_path(path: re.Match) -> str:
    """Return an SVG path's attribute with its numbers cut after two decimals, unrounded.

    ``path`` : the match of the whole attribute, such as ``d="M1.2345 2"``.
    """
    return re.sub(r"(\.\d\d)\d+", r"\1", path[0])
