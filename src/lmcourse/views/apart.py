"""What a token attends to in one head: products, their sums, weights, the mixture."""

import math
from html import escape

import numpy as np

from lmcourse.numbers import format_number, percent
from lmcourse.views.checks import as_array
from lmcourse.views.choice import choice
from lmcourse.views.view import View


def apart(question: str, shown: dict) -> View:
    """Let a reader choose between sentences, and see what one token of each attends to.

    Parameters
    ----------
    question : str
        What is to be chosen.
    shown : dict
        A sentence's name → a tuple of four: its tokens, a list of str; the query of the one
        token, (d_head,); the keys of all tokens, and their values, (tokens, d_head).

    Returns
    -------
    View
        A table a sentence: of each token the products of the query's numbers with the
        key's as bars, all on one scale, their sum, the sum divided by the root of d_head,
        and the weight, its softmax. Above it the query, below it the mixture of the values.
        As plain text, each token with its weight.

    Raises
    ------
    ValueError
        If keys or values are not one a token, or not as wide as the query.
    """
    parts = [_part(*given) for given in shown.values()]
    scales = [max(np.abs(part[i]).max() for part in parts) or 1 for i in (1, 2, 3)]
    texts = (
        ", ".join(
            f"{token} {percent(weight)}"
            for token, weight in zip(part[0], part[-1], strict=True)
        )
        for part in parts
    )
    plain = "\n\n".join(map("[{}]\n{}".format, shown, texts))
    panels = (_panel(part, scales) for part in parts)
    return choice("look", question, plain, map(escape, shown), panels)


def _part(tokens, query, keys, values):
    """Compute what one query attends to.

    Parameters
    ----------
    tokens : list of str
    query : array of shape (d_head,)
    keys, values : array of shape (tokens, d_head)

    Returns
    -------
    tokens, query
        The arguments of these names.
    mixed : array of shape (d_head,)
        The sum of the values, each times its weight.
    products : array of shape (tokens, d_head)
        The query times each key, dimension by dimension.
    scores, weights : array of shape (tokens,)
        The sums of the products divided by the root of d_head, and their softmax.

    Raises
    ------
    ValueError
        If keys or values haven't the shape (tokens, d_head).
    """
    query, keys, values = map(as_array, (query, keys, values))
    wanted = (len(tokens), *query.shape)
    given = (keys.shape, values.shape)
    if given != (wanted, wanted):
        raise ValueError(f"keys and values should have the shape {wanted}: {given}")
    products = query * keys  # (tokens, d_head)
    scores = products.sum(1) / math.sqrt(len(query))  # (tokens,)
    powers = np.exp(scores - scores.max())
    weights = powers / powers.sum()
    return tokens, query, weights @ values, products, scores, weights


def _panel(part, scales) -> str:
    """Return the table of one sentence, as HTML: products, score and weight of each token.

    ``part`` is a tuple: the tokens, a list of str; the query and the mixed values,
    (d_head,); the products of query and keys, (tokens, d_head); the scores, which are the
    products' sums divided by the root of d_head, and the weights, (tokens,). ``scales`` :
    three floats, the largest magnitudes that the bars of query, values and products show.
    """
    tokens, query, mixed, products, scores, weights = part
    root = math.sqrt(len(query))
    rows = ""
    for token, row, score, weight in zip(tokens, products, scores, weights, strict=True):
        cells = (
            bars(row, scales[2]),
            format_number(root * score, ".1f"),
            format_number(score, ".1f"),
            percent(weight),
        )
        cells = "".join(f"<td>{cell}</td>" for cell in cells)
        rows += f'<tr><th scope="row">{escape(token)}</th>{cells}</tr>'
    head = ("key of", "query × key", "sum", f"÷ √{len(query)}", "weight")
    names = "".join(f'<th scope="col">{name}</th>' for name in head)
    # A row of the table, so that its bars stand above those that they are multiplied with.
    asked = f'<th scope="row">query</th><td colspan="4">{bars(query, scales[0])}</td>'
    return (
        f"<table><thead><tr>{asked}</tr><tr>{names}</tr></thead><tbody>{rows}</tbody></table>"
        f"<p>The values, mixed by these weights: {bars(mixed, scales[1])}</p>"
    )


def bars(numbers, scale: float) -> str:
    """Draw numbers as bars, up from the line above 0 and down below it.

    ``numbers`` : sequence of float; ``scale`` : the magnitude that fills half the height.
    Returns an SVG drawing as HTML.
    """
    paths = {"up": "", "low": ""}
    for i, up in enumerate(13 * np.asarray(numbers) / scale):
        paths["up" if up > 0 else "low"] += f"M{4 * i} 13v{-up:.1f}h3v{up:.1f}z"
    paths["even"] = f"M0 13h{4 * len(numbers)}"
    drawn = "".join(f'<path class="lm-{name}" d="{d}"/>' for name, d in paths.items())
    frame = f'viewBox="0 0 {4 * len(numbers)} 26" preserveAspectRatio="none"'
    return f'<svg class="lm-bars" aria-hidden="true" {frame}>{drawn}</svg>'
