"""Attention and tokens, drawn by circuitsvis and bertviz."""

from functools import partial

import numpy as np

from lmcourse.views import checks, notebook
from lmcourse.views.view import View

__all__ = ["attention_heads", "head_view", "model_view", "tokens"]


def attention_heads(
    attention, tokens, *, alt, caption="", causal=False, head_names=None
) -> View:
    """One small heat map per head, and the chosen head in full (circuitsvis).

    Parameters
    ----------
    attention : array-like of shape (heads, tokens, tokens)
        Weights of one layer; rows are queries, columns keys. A leading axis of one text
        is dropped.
    tokens : list of str
    alt : str
        What the view shows, for readers who cannot see it.
    caption : str, optional
    causal : bool, optional
        Grey out later tokens, for a decoder. An encoder attends both ways.
    head_names : list of str, optional
        One per head; "Head 0", "Head 1", ... by default.

    Returns
    -------
    View

    Raises
    ------
    ValueError
        If the weights are missing, do not fit the tokens, do not sum to 1 in each row,
        or are not causal although `causal` is set.
    """
    tokens = checks.token_list(tokens)
    weights = checks.head_weights(attention, tokens)  # (heads, tokens, tokens)
    if causal:
        checks.check_causal(weights)
    if head_names is None:
        head_names = [f"Head {head}" for head in range(len(weights))]
    names = checks.token_list(head_names)
    if len(names) != len(weights):
        raise ValueError(f"{len(names)} head_names for {len(weights)} heads")
    data = {
        "tokens": tokens,
        "attention": checks.rounded(weights),
        "causal": bool(causal),
        "head_names": names,
    }
    html = partial(notebook.attention_heads, data)
    return View("attention_heads", alt, caption, data, html)


def head_view(
    attentions, tokens, *, alt, caption="", sentence_b_start=None, layer=0, heads=None
) -> View:
    """Lines from each token to the tokens it attends to, by layer and head (bertviz).

    Parameters
    ----------
    attentions : list of array-like of shape (heads, tokens, tokens)
        One per layer; a leading axis of one text is dropped.
    tokens : list of str
    alt : str
        What the view shows, for readers who cannot see it.
    caption : str, optional
    sentence_b_start : int, optional
        Where the second text of a pair begins; adds a choice of the four blocks.
    layer : int, optional
        The layer shown first.
    heads : list of int, optional
        The heads shown first; all by default.

    Returns
    -------
    View

    Raises
    ------
    ValueError
        If weights are missing, do not fit the tokens or do not sum to 1 in each row, or
        an index is out of range.
    """
    tokens = checks.token_list(tokens)
    weights = checks.layer_weights(attentions, tokens)  # (layers, heads, tokens, tokens)
    if sentence_b_start is not None and not 0 < sentence_b_start < len(tokens):
        last = len(tokens) - 1
        raise ValueError(f"sentence_b_start={sentence_b_start} is not one of 1 to {last}")
    data = {
        "tokens": tokens,
        "attention": checks.rounded(weights),
        "sentence_b_start": None if sentence_b_start is None else int(sentence_b_start),
        "layer": checks.indices("layer", [layer], weights.shape[0])[0],
        "heads": checks.indices("heads", heads, weights.shape[1]),
    }
    html = partial(notebook.head_view, data)
    return View("head_view", alt, caption, data, html)


def model_view(attentions, tokens, *, alt, caption="") -> View:
    """Every head of every layer at a glance; click one to open it (bertviz).

    Parameters
    ----------
    attentions : list of array-like of shape (heads, tokens, tokens)
        One per layer; a leading axis of one text is dropped.
    tokens : list of str
    alt : str
        What the view shows, for readers who cannot see it.
    caption : str, optional

    Returns
    -------
    View

    Raises
    ------
    ValueError
        As `head_view`.
    """
    tokens = checks.token_list(tokens)
    weights = checks.layer_weights(attentions, tokens)  # (layers, heads, tokens, tokens)
    data = {
        "tokens": tokens,
        "attention": checks.rounded(weights),
        "layers": list(range(weights.shape[0])),
        "heads": list(range(weights.shape[1])),
    }
    html = partial(notebook.model_view, data)
    return View("model_view", alt, caption, data, html)


def tokens(tokens, values=None, *, alt, caption="") -> View:
    """A text in coloured tokens (circuitsvis).

    Parameters
    ----------
    tokens : list of str
    values : array-like of shape (tokens,), optional
        Blue above zero, orange below, white at zero; hover shows the number. Without
        values two colours alternate, so that the borders can be seen.
    alt : str
        What the view shows, for readers who cannot see it.
    caption : str, optional

    Returns
    -------
    View

    Raises
    ------
    ValueError
        If the values do not fit the tokens or are not finite.
    """
    tokens = checks.token_list(tokens)
    if values is not None:
        values = checks.as_array(values)
        if values.shape != (len(tokens),) or not np.isfinite(values).all():
            wanted = f"{len(tokens)} finite numbers, one a token"
            raise ValueError(f"values should be {wanted}, not {values}")
        values = checks.rounded(values)
    data = {"tokens": tokens, "values": values}
    return View("tokens", alt, caption, data, partial(notebook.tokens, data))
