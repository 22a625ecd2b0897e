"""The drawing libraries' own HTML, for Jupyter and Colab.

Tokens are data. bertviz and circuitsvis put them into a ``<script>`` as JSON without
escaping ``<``, and circuitsvis sets them as HTML; both are handed tokens here that show
the same characters and can be neither.
"""

from collections.abc import Callable

import torch

__all__ = ["attention_heads", "head_view", "html", "inert", "model_view", "tokens"]

JOINER = "\u2060"  # invisible, and ends what would begin a tag or an entity
STAND_IN = "\ue000"  # a private character that no token has
BLUE, SKY, ORANGE = "#0072B2", "#56B4E9", "#E69F00"  # black is legible on the last two
ALTERNATE = 0.35  # how strongly tokens without values are tinted


def html(make: Callable[[dict], str], data: dict) -> Callable[[], str]:
    """Return a function that makes the HTML when it is asked for."""
    return lambda: make(data)


def inert(token: str) -> str:
    """Return a token that looks the same and is never read as a tag or an entity."""
    return token.replace("<", "<" + JOINER).replace("&", "&" + JOINER)


def _circuitsvis(view) -> str:
    """Return circuitsvis's HTML with its script inside, so that it draws offline.

    Its own ``_repr_html_`` asks the network whether to inline the script; and it leaves
    its ``div`` open, which swallows what follows.
    """
    closed = view.local_src.replace('15px 0;"/>', '15px 0; background: white;"></div>', 1)
    return f'<div style="background: white; color: black">{closed}</div>'


def attention_heads(data: dict) -> str:
    """Return circuitsvis's attention heads."""
    from circuitsvis.attention import attention_heads

    return _circuitsvis(
        attention_heads(
            data["attention"],
            [inert(token) for token in data["tokens"]],
            attention_head_names=[inert(name) for name in data["head_names"]],
            mask_upper_tri=data["causal"],
            positive_color=BLUE,
            negative_color=ORANGE,
        )
    )


def tokens(data: dict) -> str:
    """Return circuitsvis's coloured tokens."""
    from circuitsvis.tokens import colored_tokens

    values, limits = data["values"], {}
    if values is None:
        values = [ALTERNATE * (-1) ** index for index in range(len(data["tokens"]))]
        limits = {"min_value": -1, "max_value": 1}
    inert_tokens = [inert(token) for token in data["tokens"]]
    colours = {"positive_color": SKY, "negative_color": ORANGE}
    return _circuitsvis(colored_tokens(inert_tokens, values, **limits, **colours))


def _bertviz(render, data: dict, **options) -> str:
    """Return bertviz's HTML, its tokens unable to end the script they stand in."""
    layers = [torch.tensor(layer).unsqueeze(0) for layer in data["attention"]]
    safe = [token.replace("<", STAND_IN) for token in data["tokens"]]
    page = render(layers, safe, html_action="return", **options).data
    page = page.replace(r"\ue000", r"\u003c")
    return f'<div style="background: white; color: black">{page}</div>'


def head_view(data: dict) -> str:
    """Return bertviz's head view."""
    from bertviz import head_view

    return _bertviz(
        head_view,
        data,
        sentence_b_start=data["sentence_b_start"],
        layer=data["layer"],
        heads=data["heads"],
    )


def model_view(data: dict) -> str:
    """Return bertviz's model view."""
    from bertviz import model_view

    page = _bertviz(model_view, data, display_mode="light")
    for name in ("layers", "heads"):
        shown = list(range(len(data[name])))
        page = page.replace(
            f'"include_{name}": {shown}', f'"include_{name}": {data[name]}', 1
        )
    return page
