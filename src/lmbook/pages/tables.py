"""A view's data as an HTML table: for readers without scripts, or without sight.

The table says what the picture says, not every number: where each token looks most, the
points of a curve.
"""

import html
import itertools
from collections.abc import Iterable, Sequence

from lmcourse.views import markup
from lmcourse.views.poems import model_shelves

ROWS, COLUMNS = 40, 16  # the rest is named, not listed


def table(view: dict) -> str:
    """Return a folded table of a view's data; nothing if its stored state says enough."""
    if view["kind"] not in _KINDS:
        return ""
    summary, body = _KINDS[view["kind"]](view["data"])
    return (
        f'<details class="lmc-table"><summary>{html.escape(summary)}</summary>'
        f'<div class="lmc-scroll" tabindex="0" role="region" '
        f'aria-label="{html.escape(summary)}">{body}</div></details>'
    )


def _cell(value) -> str:
    """Return one value as text: numbers short, nothing as a dash."""
    if value is None:
        return "–"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _grid(head: Sequence, rows: Iterable[Sequence]) -> str:
    """Return a table whose first column names the rows; what is too much is named."""
    rows = list(rows)
    shown = [map(_cell, row[:COLUMNS]) for row in rows[:ROWS]]
    table = markup.table([_cell(name) for name in head[:COLUMNS]], shown)
    if len(head) > COLUMNS or len(rows) > ROWS:
        down, across = min(len(rows), ROWS), min(len(head), COLUMNS)
        shown = f"{down} of {len(rows)} rows and {across} of {len(head)} columns"
        table += f"<p>The first {shown}.</p>"
    return table


def _most(weights: Sequence[float], tokens: Sequence[str]) -> str:
    """Return where a row of weights is greatest."""
    key = max(range(len(weights)), key=weights.__getitem__)
    return f"{tokens[key]} {weights[key]:.2f}"


def _attention_heads(data: dict) -> tuple[str, str]:
    tokens = data["tokens"]
    rows = [
        [token, *(_most(head[query], tokens) for head in data["attention"])]
        for query, token in enumerate(tokens)
    ]
    head = ["Token", *(f"Head {head}" for head in range(len(data["attention"])))]
    return "Table: the token that each token attends to most", _grid(head, rows)


def _by_layer(data: dict) -> tuple[str, str]:
    """One row a layer, one column a head: the heaviest link of two tokens."""
    rows = [
        [f"Layer {name}", *(_link(head, data["tokens"]) for head in layer)]
        for name, layer in enumerate(data["attention"])
    ]
    head = ["Layer", *(f"Head {head}" for head in data["heads"])]
    return "Table: the heaviest link in each layer and head", _grid(head, rows)


def _link(weights: Sequence[Sequence[float]], tokens: Sequence[str]) -> str:
    """Return the heaviest link of one head."""
    query = max(range(len(tokens)), key=lambda query: max(weights[query]))
    return f"{tokens[query]} → {_most(weights[query], tokens)}"


def _sentences(data: dict) -> tuple[str, str]:
    """One row a sentence: where its token looks in the head shown first."""
    rows = []
    for sentence, note in zip(data["sentences"], data["notes"], strict=True):
        words, query = sentence["tokens"], sentence["query"]
        shares = sentence["weights"][data["head"]][query]
        order = sorted(range(len(words)), key=lambda key: -shares[key])[:3]
        looks = ", ".join(f"{words[key]} {shares[key]} %" for key in order)
        rows.append([" ".join(words), words[query], looks, note])
    head = ["Sentence", "From", f"Most weight in head {data['head']}", "Note"]
    return "Table: where the token looks in each sentence", _grid(head, rows)


def _tokens(data: dict) -> tuple[str, str]:
    pairs = zip(data["tokens"], data["values"], strict=True)
    rows = [[position, *pair] for position, pair in enumerate(pairs)]
    return "Table: tokens and values", _grid(["Position", "Token", "Value"], rows)


def _plot(data: dict) -> tuple[str, str]:
    traces = _unescaped(data["figure"]["data"])
    return "Table: the plotted data", "".join(map(_trace, traces, itertools.count(1)))


def _poems(data: dict) -> tuple[str, str]:
    """The sections against each other at the last level; then who is put elsewhere."""
    found, names = model_shelves(data), data["names"]
    pairs = [(own, model) for own, model, _ in found]
    counts = [
        [name, *(pairs.count((row, column)) for column in range(len(names)))]
        for row, name in enumerate(names)
    ]
    order = sorted(range(len(found)), key=lambda poem: -found[poem][2])
    rows = [
        [data["texts"][poem].partition("\n")[0], names[own], names[model], f"{lead:.1f}"]
        for poem in order
        for own, model, lead in [found[poem]]
        if own != model
    ]
    head = ["Poem", "Editors", "Model", "Lead"]
    body = _grid(["Editors \\ model", *names], counts) + _grid(head, rows)
    return "Table: the sections, and the poems the model would put elsewhere", body


def _unescaped(value):
    """Return part of a figure with the text that `views.plot` had escaped."""
    if isinstance(value, dict):
        return {key: _unescaped(entry) for key, entry in value.items()}
    if isinstance(value, list):
        return [_unescaped(entry) for entry in value]
    return html.unescape(value) if isinstance(value, str) else value


def _trace(trace: dict, number: int) -> str:
    """One trace: a matrix as it is, else the axes as columns."""
    name, z = trace.get("name") or f"Trace {number}", trace.get("z")
    if z and isinstance(z[0], list):
        across, down = trace.get("x") or range(len(z[0])), trace.get("y") or range(len(z))
        rows = ([label, *row] for label, row in zip(down, z, strict=False))
        body = _grid(["Row", *across], rows)
    else:
        keys = ("labels", "values", "hovertext" if "hovertext" in trace else "text", *"xyz")
        lists = {key: trace[key] for key in keys if isinstance(trace.get(key), list)}
        points = enumerate(zip(*lists.values(), strict=False), 1)
        body = _grid(["Point", *lists], ([number, *point] for number, point in points))
    about = html.escape(f"{name} ({trace.get('type', 'scatter')})")
    return f"<p>{about}</p>{body}"


_KINDS = {
    "attention_heads": _attention_heads,
    "head_view": _by_layer,
    "model_view": _by_layer,
    "sentences": _sentences,
    "tokens": _tokens,
    "plot": _plot,
    "poems": _poems,
}
