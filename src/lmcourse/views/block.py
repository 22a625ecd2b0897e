"""The Transformer block as a drawing whose parts are switched off."""

from lmcourse.numbers import format_estimate, format_number
from lmcourse.views.markup import library, table
from lmcourse.views.view import View

PARTS = {  # what is missing without it
    "norm_1": ("norm 1", "attention reads the vectors at whatever size they have"),
    "attention": ("attention", "no information passes between the tokens"),
    "residual_1": ("path past attention", "only what attention returns goes on"),
    "norm_2": ("norm 2", "the feed-forward network reads vectors of whatever size"),
    "feed_forward": ("feed-forward", "no vector is worked on by itself"),
    "residual_2": ("path past feed-forward", "only what feed-forward returns goes on"),
}
HEAD = "the other heads go on"


def block(
    measured, first: int = 0, whole_line: str = "", untrained=None, reordered=None
) -> View:
    """Show a block of a GPT; a click on a part tells the loss of the model without it.

    The site says nothing about a part before it was clicked.

    Parameters
    ----------
    measured : DataFrame
        A row for each part that is switched off: ``layer``, from 0; ``part``, a str
        ("norm_1", "attention", "residual_1", "norm_2", "feed_forward" or "residual_2"; the
        residuals are the paths past attention and past the feed-forward network) or an int,
        the number of a head; ``loss`` without it and its ``change``, that loss less the
        loss of the whole model, with the ends of its interval, ``low`` and ``high``, in
        nats a character; ``line``, what the model then writes. The same parts for every
        layer.
    first : int
        The layer that is shown first, from 0.
    whole_line : str
        What the model writes with all its parts.
    untrained : pair of DataFrame and str, optional
        The same of a model that has learned nothing, and its line: the reader can switch
        to it.
    reordered : pair of DataFrame and str, optional
        The same of the model, where it reads letters in another order.

    Returns
    -------
    View
        Its alternative text tells how the loss changes without each part of the layer
        ``first``. Stored is the table of all.
    """
    heads = sorted(part for part in set(measured.part) if isinstance(part, int))
    parts = PARTS | {str(head): (f"head {head}", HEAD) for head in heads}
    drawing = _drawing(heads)
    data = _measured(measured, whole_line)
    layers, whole_loss = data["layers"], data["whole"]
    data |= {"parts": parts, "drawing": drawing, "first": first}
    if untrained is not None:
        data["untrained"] = _measured(*untrained)
    if reordered is not None:
        data["reordered"] = _measured(*reordered)
    changes = ", ".join(
        f"{parts[part][0]} {format_number(change, '+.2f')}"
        for part, change, *_ in layers[first]
    )
    alt = (
        f"A block and its parts. The loss is {whole_loss:.2f}; "
        f"in layer {first} without {changes}."
    )
    if untrained is not None:
        alt += " A switch puts random weights in the model's place"
        alt += "." if reordered is None else ", or letters in another order."
    rows = [
        [
            parts[cells[0][0]][0],
            *(
                format_estimate(change, interval, "+.3f")
                for _, change, *interval, _ in cells
            ),
        ]
        for cells in zip(*layers, strict=True)
    ]
    losses = table(["without", *(f"layer {i}" for i in range(len(layers)))], rows)
    sentence = f"The loss of the whole model is {whole_loss:.2f} nats a character."
    sentence += " How it changes without a part:"
    stored = f"{drawing}<p>{sentence}</p>{losses}"
    return View("block-view", data, stored, alt=alt)


def _measured(measured, line: str) -> dict:
    """Return what was measured of one model, a dict: ``layers``, ``whole`` and ``line``.

    ``measured`` : DataFrame, a row for each ``layer`` and ``part``, with ``loss``,
    ``change``, ``low``, ``high`` in nats a character, and ``line``; ``line`` : what the
    model writes with all its parts. ``layers`` has for each layer the rows, lists of part,
    change, low, high and line; ``whole`` is the loss with all parts.
    """
    shown = ["part", "change", "low", "high", "line"]
    rounded = measured.assign(part=measured.part.astype(str)).round(3)
    layers = [rows[shown].to_numpy().tolist() for _, rows in rounded.groupby("layer")]
    whole_loss = float((measured.loss - measured.change).iloc[0])
    return {"layers": layers, "whole": round(whole_loss, 3), "line": line}


def _drawing(heads) -> str:
    """Return the drawing of a block as SVG.

    ``heads`` : list of int, the heads, each of which gets a box in the drawing
    ``static/block.svg``. The parts are legible without the site's styles, as in a notebook.
    """
    part = 'fill="none" stroke="currentColor" stroke-width="1.5"'
    word = (
        'fill="currentColor" stroke="none" text-anchor="middle" dominant-baseline="central"'
    )
    width = min(36, 188 / max(1, len(heads)) - 4)
    left = 220 - (width + 4) * len(heads) / 2
    boxes = "\n".join(
        f'<g {part} data-part="{head}"><rect x="{left + (width + 4) * i + 2:.1f}" y="158" '
        f'width="{width:.1f}" height="32" rx="4"/><text {word} x="'
        f'{left + (width + 4) * (i + 0.5):.1f}" y="174">{head}</text></g>'
        for i, head in enumerate(heads)
    )
    return library("block.svg") % boxes
