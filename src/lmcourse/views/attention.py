"""Attention and tokens: drawn by circuitsvis and bertviz, many sentences by the site."""

from functools import partial

import numpy as np

from lmcourse.views import checks, notebook
from lmcourse.views.view import View

__all__ = ["attention_heads", "head_view", "model_view", "sentences", "tokens"]


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


def sentences(looks, *, alt, caption="", head=0, notes=None) -> View:
    """Several sentences to choose from: where one token of each looks, head by head.

    Parameters
    ----------
    looks : list of tuple
        One a sentence: its tokens, the weights of one layer as for `attention_heads`, and
        the position of the token whose look is shown first.
    alt : str
        What the view shows, for readers who cannot see it.
    caption : str, optional
    head : int, optional
        The head shown first.
    notes : list of str, optional
        One a sentence, shown below it.

    Returns
    -------
    View
        Its weights are whole per cents. In a notebook: every sentence in the first head.

    Raises
    ------
    ValueError
        If there are no sentences, their weights do not fit, an index is out of range, or
        the sentences differ in their number of heads, or from the notes in theirs.
    """
    shown = []
    for words, attention, query in looks:
        words = checks.token_list(words)
        weights = checks.head_weights(attention, words)  # (heads, tokens, tokens)
        query = checks.indices("query", [query], len(words))[0]
        percent = np.rint(100 * weights).astype(int).tolist()
        shown.append({"tokens": words, "weights": percent, "query": query})
    notes = [""] * len(shown) if notes is None else checks.token_list(notes)
    heads = {len(sentence["weights"]) for sentence in shown}
    if len(heads) != 1 or len(notes) != len(shown):
        raise ValueError(
            f"{len(shown)} sentences with {len(notes)} notes and {sorted(heads)} heads: "
            "pass at least one sentence, a note for each, weights of as many heads"
        )
    head = checks.indices("head", [head], heads.pop())[0]
    data = {"sentences": shown, "notes": notes, "head": head}
    return View("sentences", alt, caption, data, partial(notebook.sentences, data))


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
