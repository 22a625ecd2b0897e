"""Poems, who stands beside whom, and the shelves of editors and model: an explorer.

It is drawn by ``static/poems.js``, on the site and in notebooks.
"""

from html import escape

import numpy as np

from lmcourse.views.checks import as_array
from lmcourse.views.view import View


def poems(texts, places, shelves, support, *, near, names, levels, alt, first=0) -> View:
    """Who stands beside each poem, level by level, and where a model would put it.

    Parameters
    ----------
    texts : list of str
    places : list of str
        Where each was printed, as it is shown.
    shelves : sequence of str
        The editors' shelf of each.
    support : array-like of shape (levels, texts, shelves)
        What speaks for each shelf at each level; the greatest is the model's.
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
    data = {
        "texts": texts,
        "places": places,
        "shelves": [names.index(shelf) for shelf in shelves],
        "names": names,
        "levels": levels,
        "support": _whole(100 * as_array(support)),
        "near": _whole(as_array(near)),
        "first": first,
    }
    own, model, _ = model_shelves(data)[first]
    text = escape(texts[first]).replace("\n", "<br>")
    where = f"The editors' shelf: {names[own]}. The model's, at the top: {names[model]}."
    stored = f'<blockquote class="lmp-text">{text}</blockquote><p>{escape(where)}</p>'
    return View("poems", data, stored, alt=alt)


def _whole(values) -> list:
    return np.rint(values).astype(int).tolist()


def model_shelves(data: dict) -> list[tuple[int, int, float]]:
    """Return of each poem the editors' shelf, the model's at the last level, its lead."""
    rows = zip(data["shelves"], data["support"][-1], strict=True)
    return [(own, int(np.argmax(s)), (max(s) - s[own]) / 100) for own, s in rows]
