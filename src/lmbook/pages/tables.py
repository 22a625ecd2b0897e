"""A view's data as an HTML table: for readers without scripts, or without sight.

The table says what the picture says, not every number: where each token looks most, the
points of a curve.
"""

import html
import itertools
from collections.abc import Iterable, Sequence

from lmcourse.views import markup
from lmcourse.views.poems import model_shelves

MOST_ROWS, MOST_COLUMNS = 40, 16  # the rest is named, not listed


def data_table(view: dict) -> str:
    """Return a view's data as a folded table in HTML; "" if its stored state says enough.

    Parameters
    ----------
    view : dict
        The JSON of a view (`lmcourse.views.View`). Used are ``kind``, such as "sentences",
        and ``data``, a dict, whose keys the kind decides.

    Returns
    -------
    str
        A ``<details>`` with the table; "" for a kind that `_TABLES_BY_KIND` does not have.
    """
    if view["kind"] not in _TABLES_BY_KIND:
        return ""
    summary, body = _TABLES_BY_KIND[view["kind"]](view["data"])
    return (
        f'<details class="lmc-table"><summary>{html.escape(summary)}</summary>'
        f'<div class="lmc-scroll" tabindex="0" role="region" '
        f'aria-label="{html.escape(summary)}">{body}</div></details>'
    )


def _cell(value) -> str:
    """Return one value as text: floats with four digits, None as a dash.

    ``value`` : number, str or None.
    """
    if value is None:
        return "–"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _grid(head: Sequence, rows: Iterable[Sequence]) -> str:
    """Return a table in HTML whose first column names the rows.

    Beyond `MOST_ROWS` and `MOST_COLUMNS` rows and columns are left out, and a line says so.

    Parameters
    ----------
    head : sequence
        The names of the columns.
    rows : iterable of sequence
        The values of each row, its name first: str, numbers or None.
    """
    rows = list(rows)
    shown = [map(_cell, row[:MOST_COLUMNS]) for row in rows[:MOST_ROWS]]
    table = markup.table([_cell(name) for name in head[:MOST_COLUMNS]], shown)
    if len(head) > MOST_COLUMNS or len(rows) > MOST_ROWS:
        down, across = min(len(rows), MOST_ROWS), min(len(head), MOST_COLUMNS)
        shown = f"{down} of {len(rows)} rows and {across} of {len(head)} columns"
        table += f"<p>The first {shown}.</p>"
    return table


def _heaviest_key(weights: Sequence[float], tokens: Sequence[str]) -> str:
    """Return the token with the greatest weight, and the weight: "cat 0.50".

    ``weights`` : of attention from one token, a float for each of ``tokens``, a list of
    str.
    """
    key = max(range(len(weights)), key=weights.__getitem__)
    return f"{tokens[key]} {weights[key]:.2f}"


def _attention_heads(data: dict) -> tuple[str, str]:
    """Return title and table (HTML) of what each token attends to most, by head.

    ``data`` has ``tokens``, list of str, and ``attention``, weights as nested lists (heads,
    queries, keys). The table has a row for each token, a column for each head.
    """
    tokens = data["tokens"]
    rows = [
        [token, *(_heaviest_key(head[query], tokens) for head in data["attention"])]
        for query, token in enumerate(tokens)
    ]
    head = ["Token", *(f"Head {head}" for head in range(len(data["attention"])))]
    return "Table: the token that each token attends to most", _grid(head, rows)


def _by_layer(data: dict) -> tuple[str, str]:
    """Return title and table (HTML) of the heaviest link of two tokens, layer by layer.

    ``data`` has ``tokens``, list of str; ``heads``, the numbers of those shown; and
    ``attention``, weights as nested lists (layers, heads, queries, keys). The table has a
    row for each layer and a column for each head, with cells such as "it → cat 0.50".
    """
    rows = [
        [f"Layer {name}", *(_heaviest_link(head, data["tokens"]) for head in layer)]
        for name, layer in enumerate(data["attention"])
    ]
    head = ["Layer", *(f"Head {head}" for head in data["heads"])]
    return "Table: the heaviest link in each layer and head", _grid(head, rows)


def _heaviest_link(weights: Sequence[Sequence[float]], tokens: Sequence[str]) -> str:
    """Return the two tokens of a head's greatest weight, and it: "it → cat 0.50".

    The first is the one that attends (the query). ``weights`` : of one head, nested lists
    (queries, keys); ``tokens`` : list of str.
    """
    query = max(range(len(tokens)), key=lambda query: max(weights[query]))
    return f"{tokens[query]} → {_heaviest_key(weights[query], tokens)}"


def _sentences(data: dict) -> tuple[str, str]:
    """Return title and table (HTML) of what one token of each sentence attends to most.

    The table has a row for each sentence: its text, the token, the three tokens to which it
    attends most in one head, with their weights in per cent, and a note.

    ``data`` : ``sentences``, dicts with ``tokens``, list of str, ``weights`` in per cent,
    nested lists (heads, queries, keys), and ``query``, the token's position; ``notes``, a
    str for each sentence; ``head``, the one that is shown, from 0.
    """
    rows = []
    for sentence, note in zip(data["sentences"], data["notes"], strict=True):
        words, query = sentence["tokens"], sentence["query"]
        shares = sentence["weights"][data["head"]][query]
        order = sorted(range(len(words)), key=lambda key: -shares[key])[:3]
        most = ", ".join(f"{words[key]} {shares[key]} %" for key in order)
        rows.append([" ".join(words), words[query], most, note])
    head = ["Sentence", "From", f"Most weight in head {data['head']}", "Note"]
    return "Table: what the token attends to in each sentence", _grid(head, rows)


def _tokens(data: dict) -> tuple[str, str]:
    """Return title and table (HTML) of a view of tokens that are coloured by a value.

    ``data`` : ``tokens``, list of str, and ``values``, a number for each. The table has a
    row for each token: its position, from 0, the token and its value.
    """
    pairs = zip(data["tokens"], data["values"], strict=True)
    rows = [[position, *pair] for position, pair in enumerate(pairs)]
    return "Table: tokens and values", _grid(["Position", "Token", "Value"], rows)


def _plot(data: dict) -> tuple[str, str]:
    """Return title and tables (HTML) of the numbers that a plotly figure draws.

    There is a table for each of its traces. ``data["figure"]`` is the figure as plotly's
    JSON, whose ``data`` is the list of traces.
    """
    traces = _unescaped(data["figure"]["data"])
    return "Table: the plotted data", "".join(map(_trace_table, traces, itertools.count(1)))


def _poems(data: dict) -> tuple[str, str]:
    """Return title and two tables (HTML): into which section editors and model put poems.

    The model's section of a poem is the one with the greatest support at the last level.
    The first table counts the poems for each section of the editors (rows) and of the model
    (columns). The second lists the poems on which the two differ: first line, the editors'
    section, the model's, and the lead, by how much its support is greater.

    ``data`` : ``names`` of the sections; for each poem its text in ``texts`` and the number
    of the editors' section in ``shelves``; ``support``, nested lists (levels, poems,
    sections), how much speaks for each section, in hundredths of what is expected by
    chance.
    """
    assignments = model_shelves(data)
    names = data["names"]
    pairs = [(own, model) for own, model, _ in assignments]
    counts = [
        [name, *(pairs.count((row, column)) for column in range(len(names)))]
        for row, name in enumerate(names)
    ]
    order = sorted(range(len(assignments)), key=lambda poem: -assignments[poem][2])
    rows = [
        [data["texts"][poem].partition("\n")[0], names[own], names[model], f"{lead:.1f}"]
        for poem in order
        for own, model, lead in [assignments[poem]]
        if own != model
    ]
    head = ["Poem", "Editors", "Model", "Lead"]
    body = _grid(["Editors \\ model", *names], counts) + _grid(head, rows)
    return "Table: the sections, and the poems the model would put elsewhere", body


def _unescaped(value):
    """Return part of a plotly figure with its text as before `views.plot` escaped it.

    ``value`` : anything that JSON can hold; in all strings in it, HTML's character
    references, such as "&lt;", become characters. So is what is returned.
    """
    if isinstance(value, dict):
        return {key: _unescaped(entry) for key, entry in value.items()}
    if isinstance(value, list):
        return [_unescaped(entry) for entry in value]
    return html.unescape(value) if isinstance(value, str) else value


def _trace_table(trace: dict, number: int) -> str:
    """Return a trace of a plotly figure as an HTML table, its name and type above it.

    A matrix (``z``, nested lists) stands as it is, ``x`` above and ``y`` beside it. Of any
    other trace there is a row for each point, and a column for each of its lists
    ``labels``, ``values``, ``hovertext`` (or ``text``), ``x``, ``y`` and ``z``.

    ``trace`` : plotly's JSON; ``number`` : from 1, names a trace that has no ``name``.
    """
    name = trace.get("name") or f"Trace {number}"
    z = trace.get("z")
    if z and isinstance(z[0], list):
        across = trace.get("x") or range(len(z[0]))
        down = trace.get("y") or range(len(z))
        rows = ([label, *row] for label, row in zip(down, z, strict=False))
        body = _grid(["Row", *across], rows)
    else:
        words = "hovertext" if "hovertext" in trace else "text"
        keys = ("labels", "values", words, "x", "y", "z")
        lists = {key: trace[key] for key in keys if isinstance(trace.get(key), list)}
        points = enumerate(zip(*lists.values(), strict=False), 1)
        body = _grid(["Point", *lists], ([number, *point] for number, point in points))
    caption = html.escape(f"{name} ({trace.get('type', 'scatter')})")
    return f"<p>{caption}</p>{body}"


_TABLES_BY_KIND = {
    "attention_heads": _attention_heads,
    "head_view": _by_layer,
    "model_view": _by_layer,
    "sentences": _sentences,
    "tokens": _tokens,
    "plot": _plot,
    "poems": _poems,
}
