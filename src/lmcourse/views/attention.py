"""Attention and tokens: drawn by circuitsvis and bertviz, many sentences by the site."""

import numpy as np

from lmcourse.views import checks
from lmcourse.views.view import View


def attention_heads(attention, tokens, *, alt, causal=False) -> View:
    """Return a view with a small heat map of each head, and the chosen head in full.

    It is drawn by circuitsvis.

    Parameters
    ----------
    attention : array-like of shape (heads, tokens, tokens)
        Weights of one layer; rows are queries, columns keys. A leading axis of one text
        is dropped.
    tokens : list of str
    alt : str
        What the view shows, for readers who cannot see it.
    causal : bool, optional
        Grey out later tokens, for a decoder. An encoder attends both ways.

    Returns
    -------
    View

    Raises
    ------
    ValueError
        If the weights are missing, do not fit the tokens, do not sum to 1 in each row,
        or are not causal although `causal` is set.
    """
    weights = checks.head_weights(attention, tokens)  # (heads, tokens, tokens)
    if causal:
        checks.check_causal(weights)
    data = {"tokens": list(tokens), "attention": checks.rounded(weights), "causal": causal}
    return View("attention_heads", data, alt=alt)


def head_view(attentions, tokens, *, alt, layer=0, heads=None) -> View:
    """Draw lines from each token to those it attends to, by layer and head (bertviz).

    Parameters
    ----------
    attentions : list of array-like of shape (heads, tokens, tokens)
        One per layer; a leading axis of one text is dropped.
    tokens : list of str
    alt : str
        What the view shows, for readers who cannot see it.
    layer : int, optional
        The layer shown first, from 0.
    heads : list of int, optional
        The heads shown first, from 0; all by default.

    Returns
    -------
    View

    Raises
    ------
    ValueError
        If weights are missing, do not fit the tokens or do not sum to 1 in each row, or
        an index is out of range.
    """
    weights = checks.layer_weights(attentions, tokens)  # (layers, heads, tokens, tokens)
    data = {
        "tokens": list(tokens),
        "attention": checks.rounded(weights),
        "layer": checks.indices("layer", [layer], weights.shape[0])[0],
        "heads": checks.indices("heads", heads, weights.shape[1]),
    }
    return View("head_view", data, alt=alt)


def model_view(attentions, tokens, *, alt) -> View:
    """Show every head of every layer at a glance; a click opens one (bertviz).

    Parameters
    ----------
    attentions : list of array-like of shape (heads, tokens, tokens)
        One per layer; a leading axis of one text is dropped.
    tokens : list of str
    alt : str
        What the view shows, for readers who cannot see it.

    Returns
    -------
    View

    Raises
    ------
    ValueError
        If weights are missing, do not fit the tokens or do not sum to 1 in each row.
    """
    weights = checks.layer_weights(attentions, tokens)  # (layers, heads, tokens, tokens)
    data = {
        "tokens": list(tokens),
        "attention": checks.rounded(weights),
        "layers": list(range(weights.shape[0])),
        "heads": list(range(weights.shape[1])),
    }
    return View("model_view", data, alt=alt)


def sentences(
    read, *, alt, head, notes, layer=None, around=None, pair=None, untrained=None
) -> View:
    """Let a reader choose a sentence, and show what a token of it attends to, by head.

    Parameters
    ----------
    read : list of (list of str, array-like, int, list of (int, int))
        A tuple for each sentence: its tokens; the attention weights of one layer, (heads,
        tokens, tokens); the position of the token whose weights are shown first; and the
        nouns, each as (first position, last position + 1). The view draws a bar for each
        noun: the weight that the chosen token gives to it.
    alt : str
        What the view shows, for readers who cannot see it.
    head : int
        The head shown first, from 0.
    notes : list of str
        One a sentence, shown below it.
    layer : int, optional
        The layer of these heads, from 0. If it is given, the reader can type sentences of
        their own on the site, which carries one BERT, that of ``LMCOURSE_BERT`` or the
        built-in.
    around : (int, int), optional
        The IDs of [CLS] and [SEP], which ``layer`` needs.
    pair : str, optional
        Two lines, with a line break between them, that stand where the reader types.
        Default: two sentences on a dog.
    untrained : list of array-like, optional
        The weights, (heads, tokens, tokens), of the same sentences in a model that has
        learned nothing: the reader can switch to it.

    Returns
    -------
    View
        Its weights are whole per cents. In a notebook: every sentence in the first head.

    Raises
    ------
    ValueError
        If weights are missing, do not fit the tokens or do not sum to 1 in each row; if a
        noun or the query lies outside its sentence, or there is no such head; if there is
        not a note for each sentence, or the untrained model has read other sentences; or
        if ``layer`` is given without ``around``.
    """
    if len(notes) != len(read):
        raise ValueError(f"{len(notes)} notes for {len(read)} sentences: one each, please")
    if layer is not None and around is None:
        raise ValueError("layer needs around, the IDs of [CLS] and [SEP]")
    shown = []
    for words, attention, query, nouns in read:
        if query not in range(len(words)):
            raise ValueError(f"of {len(words)} tokens there is no token {query}")
        if not all(0 <= start < end <= len(words) for start, end in nouns):
            raise ValueError(f"of {len(words)} tokens there can be no nouns at {nouns}")
        positions = {"query": int(query), "nouns": np.reshape(nouns, (-1, 2)).tolist()}
        percent = _per_cent(attention, words)
        checks.indices("head", [head], len(percent))
        shown.append({"tokens": list(words), "weights": percent} | positions)
    data = {"sentences": shown, "notes": notes, "head": head}
    if untrained is not None:
        both = zip(untrained, read, strict=True)
        data["untrained"] = [_per_cent(weights, each[0]) for weights, each in both]
    live = {} if layer is None else {"layer": layer, "around": list(around)}
    if pair is not None:
        live["pair"] = pair
    stores = [] if layer is None else ["bert", "bert-pieces"]
    return View("sentences", data | live, alt=alt, stores=stores)


def _per_cent(attention, words) -> list:
    """Return attention weights in whole per cents, nested lists (heads, tokens, tokens).

    Parameters
    ----------
    attention : array of shape (heads, tokens, tokens)
    words : sequence of str
        The tokens.
    """
    return np.rint(100 * checks.head_weights(attention, words)).astype(int).tolist()


def tokens(tokens, values, *, alt) -> View:
    """Show a text in tokens that are coloured by a number each (circuitsvis).

    Parameters
    ----------
    tokens : list of str
    values : array-like of shape (tokens,)
        Blue above zero, orange below, white at zero; hover shows the number.
    alt : str
        What the view shows, for readers who cannot see it.

    Returns
    -------
    View

    Raises
    ------
    ValueError
        If the values do not fit the tokens or are not finite.
    """
    tokens = checks.token_list(tokens)
    values = checks.as_array(values)
    if values.shape != (len(tokens),) or not np.isfinite(values).all():
        wanted = f"{len(tokens)} finite numbers, one a token"
        raise ValueError(f"values should be {wanted}, not {values}")
    return View("tokens", {"tokens": tokens, "values": checks.rounded(values)}, alt=alt)
