"""Poems between the editors' shelves and a model's: an explorer, and words struck out.

Both are drawn by ``static/poems.js``, on the site and in notebooks.
"""

from html import escape

import numpy as np

from lmcourse.views.checks import as_array, rounded
from lmcourse.views.view import View


def poems(
    texts, places, shelves, support, *, planes, near, names, levels, alt, first=0
) -> View:
    """Poems on a plane, level by level, and those that a model would put elsewhere.

    Parameters
    ----------
    texts : list of str
    places : list of str
        Where each was printed, as it is shown.
    shelves : sequence of str
        The editors' shelf of each.
    support : array-like of shape (levels, texts, shelves)
        What speaks for each shelf at each level; the greatest is the model's.
    planes : array-like of shape (levels, texts, 2)
        Where each text lies.
    near : array-like of shape (levels, texts, neighbours)
        Positions of each text's nearest others, the nearest first.
    names : list of str
        The shelves, in the order of ``support``.
    levels : list of str
        Their names, the lowest first. The last is shown first.
    alt : str
        What the view shows, for readers who cannot see it.
    first : int
        The poem shown first.

    Returns
    -------
    View
    """
    planes = as_array(planes)
    data = {
        "texts": texts,
        "places": places,
        "shelves": [names.index(shelf) for shelf in shelves],
        "names": names,
        "levels": levels,
        "support": _whole(100 * as_array(support)),
        "planes": _whole(1000 * planes / np.abs(planes).max()),
        "near": _whole(as_array(near)),
        "first": first,
    }
    return View("poems", data, _first_poem(data), alt=alt)


def strike_out(themes, levels, *, alt) -> View:
    """How well each level tells a theme, with its words and without them.

    Parameters
    ----------
    themes : list of dict
        Each has its ``name``, its ``words`` (word → in how many poems), how many
        ``poems`` speak of it, ``bag`` (a bag of words' score with and without them), and
        at each level the score, its low and its high end: ``said``, ``struck`` and
        ``lost`` (said less struck), of the shape (levels, 3). The first is shown first.
    levels : list of str
    alt : str

    Returns
    -------
    View
    """
    shown = []
    for theme in themes:
        kept = {"name": theme["name"], "poems": int(theme["poems"])}
        kept["words"] = [[word, int(n)] for word, n in theme["words"].items()]
        for key in ("said", "struck", "lost", "bag"):
            kept[key] = rounded(as_array(theme[key]))
        shown.append(kept)
    data = {"levels": levels, "themes": shown}
    return View("strike_out", data, _first_theme(shown[0]), alt=alt)


def _whole(values) -> list:
    return np.rint(values).astype(int).tolist()


def model_shelves(data: dict) -> list[tuple[int, int, float]]:
    """Return of each poem the editors' shelf, the model's at the last level, its lead."""
    rows = zip(data["shelves"], data["support"][-1], strict=True)
    return [(own, int(np.argmax(s)), (max(s) - s[own]) / 100) for own, s in rows]


def _first_poem(data: dict) -> str:
    poem, names = data["first"], data["names"]
    own, model, _ = model_shelves(data)[poem]
    text = escape(data["texts"][poem]).replace("\n", "<br>")
    where = f"The editors' shelf: {names[own]}. The model's, at the top: {names[model]}."
    return f'<blockquote class="lmp-text">{text}</blockquote><p>{escape(where)}</p>'


def _first_theme(theme: dict) -> str:
    said, struck = theme["said"][-1], theme["struck"][-1]
    words = ", ".join(word for word, _ in theme["words"])
    return escape(
        f"{theme['name']} ({words}): {said[0]:.2f} as printed, {struck[0]:.2f} with "
        f"the words struck out ({struck[1]:.2f} to {struck[2]:.2f}), last level."
    )
