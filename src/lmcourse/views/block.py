"""The Transformer block as a drawing whose parts are switched off."""

from lmcourse.views.markup import library, table
from lmcourse.views.view import View

PARTS = {  # what is missing without it
    "norm_1": ("norm 1", "attention reads the vectors at whatever size they have"),
    "attention": ("attention", "no token is told here what the others say"),
    "residual_1": ("path past attention", "only what attention returns goes on"),
    "norm_2": ("norm 2", "the feed-forward network reads vectors of whatever size"),
    "feed_forward": ("feed-forward", "no vector is worked on here by itself"),
    "residual_2": ("path past feed-forward", "only what feed-forward returns goes on"),
}
HEAD = "the other heads look on"
CONTROLS = {  # what may be measured beside the parts
    "constant_1": ("norm 1 → one constant", "one number for all tokens is in its place"),
    "constant_2": ("norm 2 → one constant", "one number for all tokens is in its place"),
    "alone": ("all other layers", "only this one works"),
}


def block(measured, first: int = 0, whole_line: str = "") -> View:
    """A block of a GPT to click: each part switched off, and the loss without it.

    Nothing is told of a part before it was clicked.

    Parameters
    ----------
    measured : DataFrame
        Of `lmcourse.gpt.inside.losses_without`, whose controls have the names of
        `CONTROLS`.
    first : int
        The layer that is shown first.
    whole_line : str
        What the model writes with all its parts, if it wrote without them, too.

    Returns
    -------
    View
        Its alternative text tells what each part of the first layer is worth. Stored is
        the table of all.
    """
    heads = sorted(part for part in set(measured.part) if isinstance(part, int))
    known = {name: told for name, told in CONTROLS.items() if name in set(measured.part)}
    parts = PARTS | known | {str(head): (f"head {head}", HEAD) for head in heads}
    shown = ["part", "change", "low", "high", "line"]
    rounded = measured.assign(part=measured.part.astype(str)).round(3)
    layers = [g[shown].to_numpy().tolist() for _, g in rounded.groupby("layer")]
    drawing = _drawing(heads)
    whole = float((measured.loss - measured.change).iloc[0])
    data = {"parts": parts, "layers": layers, "whole": round(whole, 3), "drawing": drawing}
    data |= {"first": first, "controls": [*known], "line": whole_line}
    told = ", ".join(
        f"{parts[part][0]} {change:+.2f}" for part, change, *_ in layers[first]
    )
    alt = (
        f"A block and its parts. The loss is {whole:.2f}; in layer {first} without {told}."
    )
    numbers = "{:+.3f} ({:+.3f} to {:+.3f})".format
    rows = [
        [parts[cells[0][0]][0], *(numbers(*change[:3]) for _, *change in cells)]
        for cells in zip(*layers, strict=True)
    ]
    losses = table(["without", *(f"layer {i}" for i in range(len(layers)))], rows)
    said = f"The loss of the whole model is {whole:.2f}. How it changes without a part:"
    stored = f"{drawing}<p>{said}</p>{losses}"
    return View("block-view", data, stored, alt=alt)


def _drawing(heads) -> str:
    """Return the drawing of a block as SVG, with a box for each name in ``heads``."""
    width = min(36, 188 / max(1, len(heads)) - 4)
    left = 220 - (width + 4) * len(heads) / 2
    boxes = "\n".join(
        f'<g data-part="{head}"><rect x="{left + (width + 4) * i + 2:.1f}" y="158" '
        f'width="{width:.1f}" height="32" rx="4"/><text x="'
        f'{left + (width + 4) * (i + 0.5):.1f}" y="174">{head}</text></g>'
        for i, head in enumerate(heads)
    )
    return library("block.svg") % boxes
