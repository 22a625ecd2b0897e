"""Poems, their nearest others, and the sections of editors and model: an explorer.

It is drawn by ``static/poems.js``, on the site and in notebooks.
"""

from html import escape

import numpy as np

from lmcourse.views.checks import as_array
from lmcourse.views.view import View


def poems(
    texts,
    sources,
    shelves,
    support,
    *,
    near,
    names,
    levels,
    alt,
    first=0,
    untrained=None,
    reordered=None,
) -> View:
    """Show each poem's nearest others, level by level, and where a model would put it.

    Parameters
    ----------
    texts : list of str
        The poems.
    sources : list of str
        Where each was printed, as it is shown.
    shelves : sequence of str
        The editors' section of each, one of ``names``.
    support : array-like of shape (levels, texts, sections)
        What speaks for each section at each level: 1 where it is as likely as by chance, 2
        where twice as likely; the section with the most is the model's.
    near : array-like of shape (levels, texts, neighbours)
        The numbers, from 0, of each text's nearest others, the nearest first.
    names : list of str
        The sections, in the order of ``support``.
    levels : list of str
        Their names, the lowest first. The last is shown first.
    alt : str
        What the view shows, for readers who cannot see it.
    first : int
        The row of the poem shown first.
    untrained : pair of array-like, optional
        Support and nearest of a model that has learned nothing, of the same shapes: the
        reader can switch to it.
    reordered : tuple of (array-like, array-like, list of str), optional
        Support and nearest of the texts with their words in another order, of the same
        shapes, and these texts.

    Returns
    -------
    View
        Its data are these arguments as lists, ``shelves`` as the sections' numbers and
        ``support`` in hundredths, whole numbers. Stored is the poem that is shown first.

    Raises
    ------
    ValueError
        If a section is none of the names, or there is no poem in the row ``first``.
    """
    if unknown := set(shelves) - set(names):
        raise ValueError(f"{sorted(unknown)} are no sections; these are {list(names)}")
    if first not in range(len(texts)):
        raise ValueError(f"there is no row {first}: {len(texts)} poems are given")
    data = {
        "texts": texts,
        "places": sources,
        "shelves": [names.index(shelf) for shelf in shelves],
        "names": names,
        "levels": levels,
        "support": _whole(100 * as_array(support)),
        "near": _whole(as_array(near)),
        "first": first,
    }
    if untrained is not None:
        other_support, other_near = (as_array(each) for each in untrained)
        data["untrained"] = {
            "support": _whole(100 * other_support),
            "near": _whole(other_near),
        }
    if reordered is not None:
        other_support, other_near, other_texts = reordered
        data["reordered"] = {
            "support": _whole(100 * as_array(other_support)),
            "near": _whole(as_array(other_near)),
            "texts": other_texts,
        }
    own, model, _ = model_shelves(data)[first]
    text = escape(texts[first]).replace("\n", "<br>")
    where = f"The editors: {names[own]}. The model, at the top: {names[model]}."
    stored = f'<blockquote class="lmp-text">{text}</blockquote><p>{escape(where)}</p>'
    return View("poems", data, stored, alt=alt)


def _whole(values) -> list:
    """Return ``values``, an array, rounded to whole numbers, as nested lists of int."""
    return np.rint(values).astype(int).tolist()


def model_shelves(data: dict) -> list[tuple[int, int, float]]:
    """Return for each poem its section by the editors, that by the model, and a lead.

    The model's is that of the last level. The lead is how much more speaks for the model's
    section than for the editors', in shares of what is expected by chance.

    ``data`` : what the view carries: ``shelves``, the editors' section of each poem, by
    number; ``support``, in hundredths, nested lists (levels, poems, sections).
    """
    rows = zip(data["shelves"], data["support"][-1], strict=True)
    return [(own, int(np.argmax(s)), (max(s) - s[own]) / 100) for own, s in rows]
