"""Attention in the plane: words as points, a query, and what comes out."""

import html
import math

import numpy as np

from lmcourse.numbers import format_number, percent
from lmcourse.views.checks import as_array, token_list
from lmcourse.views.markup import table
from lmcourse.views.view import View

LIMIT, UNIT = 3, 75  # the plane reaches from -3 to 3; a unit in the drawing
INK = {  # on the site the theme's, elsewhere these
    "key": "var(--k, #0067a3)",
    "query": "var(--q, #b54f00)",
    "output": "var(--o, #0a7a4c)",
}


def attention_toy(words, keys, query) -> View:
    """Show words as points in the plane, which are their keys, and one query.

    On the site the reader drags words and query (or moves them by arrow keys), and sees
    the products, the division by √d_head, the mask, the weights and the output; the
    division and a causal mask can be switched, and a temperature chosen.

    Parameters
    ----------
    words : list of str
    keys : array-like of shape (words, 2)
        Between -3 and 3. They are the values, too: the output lies among the words.
    query : array-like of shape (2,)
        The last word's, which matters once the causal mask is on.

    Returns
    -------
    View
        Its alternative text tells the weights, with the division and without a mask.

    Raises
    ------
    ValueError
        If a shape does not fit, or a point lies outside the plane.
    """
    words = token_list(words)
    keys = as_array(keys)
    query = as_array(query)
    points = np.vstack([keys, query])  # (words + 1, 2)
    if points.shape != (len(words) + 1, 2) or not (np.abs(points) <= LIMIT).all():
        raise ValueError(
            f"a key a word and a query are points from {format_number(-LIMIT)} to {LIMIT}; "
            f"these have the shapes {keys.shape} and {query.shape}"
        )
    data = {"keys": keys.tolist(), "query": query.tolist()}
    data |= {"words": words, "position": len(words) - 1}
    products = keys @ query  # (words,)
    powers = np.exp((products - products.max()) / math.sqrt(2))
    weights = powers / powers.sum()
    output = weights @ keys  # (2,)
    shares = ", ".join(f"{w} {percent(s)}" for w, s in zip(words, weights, strict=True))
    alt = f"Words as points in the plane. The query weighs them: {shares}."
    rows = [
        [
            word,
            format_number(product, ".2f"),
            format_number(product / math.sqrt(2), ".2f"),
            percent(weight),
        ]
        for word, product, weight in zip(words, products, weights, strict=True)
    ]
    stored = _drawing(words, keys, query, weights, output)
    stored += table(["word", "q · k", "÷ √2", "weight"], rows)
    return View("toy-view", data, stored, alt=alt)


def _drawing(words: list[str], keys, query, weights, output) -> str:
    """Return the plane as SVG; it is what `toy-view.js` draws at first.

    Each is an arrow from the origin; a key's circle is the larger, the more weight it has.

    ``keys`` : one point a word, (words, 2); ``query`` and ``output`` : (2,), all from -3 to
    3; ``weights`` : (words,), which sum to 1.
    """

    def mark(point, name, radius, text):
        """Return an arrow from the origin to a point, with its name, as SVG.

        ``point`` : its two coordinates; ``name`` : "key", "query" or "output", which
        chooses the colour; ``radius`` : of the circle, in pixels; ``text`` : its label.
        """
        x = 240 + UNIT * point[0]
        y = 240 - UNIT * point[1]
        ink = INK[name]
        width = 4.5 if name == "output" else 1.5
        return (
            f'<g style="stroke: {ink}; stroke-width: {width}; fill: {ink}">'
            f'<line x1="240" y1="240" x2="{x:.1f}" y2="{y:.1f}"/>'
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius:.1f}" fill-opacity="0.35"/></g>'
            f'<text x="{x:.1f}" y="{max(y - radius - 8, 16):.1f}" text-anchor="middle" '
            f'fill="currentColor" font-size="15">{html.escape(text)}</text>'
        )

    marks = [
        mark(key, "key", 7 + 26 * math.sqrt(weight), f"{word} {percent(weight)}")
        for key, weight, word in zip(keys, weights, words, strict=True)
    ]
    # The query's arrow is the thinner one: on top, both are seen where they meet.
    marks += [mark(output, "output", 1, "output"), mark(query, "query", 6, "query")]
    return (
        '<svg viewBox="0 0 480 480" style="max-width: 480px; width: 100%" '
        f'aria-hidden="true">{"".join(marks)}</svg>'
    )
