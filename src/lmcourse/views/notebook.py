"""The drawing libraries' own HTML, for Jupyter and Colab.

Tokens are data. bertviz and circuitsvis put them into a ``<script>`` as JSON without
escaping ``<``, and circuitsvis sets them as HTML; both are handed tokens here that show
the same characters and can be neither.
"""

import html
import re
from importlib import import_module, resources

import torch

JOINER = "\u2060"  # invisible, and ends what would begin a tag or an entity
STAND_IN = "\ue000"  # a private character that no token has
BLUE, SKY, ORANGE = "#0072B2", "#56B4E9", "#E69F00"  # black is legible on the last two
ALTERNATE = 0.35  # how strongly tokens without values are tinted


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


def sentences(data: dict) -> str:
    """Return every sentence in the head shown first: the darker, the more weight."""
    lines = []
    for sentence, note in zip(data["sentences"], data["notes"], strict=True):
        query = sentence["query"]
        shares = sentence["weights"][data["head"]][query]
        spans = (
            f'<span style="background: rgba(0, 114, 178, {0.6 * share / 100:.3f}); '
            f'padding: 2px; {"outline: 1px solid" * (position == query)}" '
            f'title="{share} %">{html.escape(token)}</span>'
            for position, (token, share) in enumerate(
                zip(sentence["tokens"], shares, strict=True)
            )
        )
        lines.append(f"<p>{' '.join(spans)}<br><small>{html.escape(note)}</small></p>")
    return f'<div style="background: white; color: black">{"".join(lines)}</div>'


def library(name: str) -> str:
    """Return a file of ``static``: d3 5.16.0, jQuery 3.7.1 (slim), or a frame for them."""
    return (resources.files("lmcourse.views") / "static" / name).read_text("utf-8")


def bertviz_script(name: str) -> str:
    """Return one of bertviz's scripts as a function of its parameters and its libraries.

    The script is a template that asks require.js for jQuery and d3 and has a marker
    where its parameters go. As the body of a function whose arguments carry these very
    names it needs neither. Its group of lines has the id "attention", as a section of
    the page may: that one is renamed.

    Raises
    ------
    ValueError
        If the script is not as expected.
    """
    body = (resources.files("bertviz") / f"{name}.js").read_text("utf-8")
    ids = {'"id", "attention"': 1, '"#attention"': 8} if name == "head_view" else {}
    if "PYTHON_PARAMS" not in body or any(body.count(k) != n for k, n in ids.items()):
        raise ValueError(f"bertviz's {name}.js has changed; see bertviz_script")
    for old in ids:
        body = body.replace(old, old.replace("attention", "bertviz-attention"))
    return f"function (PYTHON_PARAMS, require, requirejs, console) {{\n{body}\n}}"


def _bertviz(name: str, data: dict, **options) -> str:
    """Return bertviz's HTML with all that draws it inside: nothing is asked for.

    Its frame and parameters come from its Python, whose tokens could end the script.
    """
    layers = [torch.tensor(layer).unsqueeze(0) for layer in data["attention"]]
    safe = [token.replace("<", STAND_IN) for token in data["tokens"]]
    render = getattr(import_module("bertviz"), name)
    page = render(layers, safe, html_action="return", **options).data
    frame = re.search(r"</script>(.*?)<script", page, re.DOTALL)[1]
    params = re.search(r"const params = (\{.*\}); // HACK", page)[1]
    scripts = (library("jquery.slim.min.js"), library("d3.min.js"), bertviz_script(name))
    drawing = library("bertviz.html") % (*scripts, params.replace(r"\ue000", r"\u003c"))
    return f'<div style="background: white; color: black">{frame}{drawing}</div>'


def head_view(data: dict) -> str:
    """Return bertviz's head view."""
    options = ("sentence_b_start", "layer", "heads")
    return _bertviz("head_view", data, **{name: data[name] for name in options})


def model_view(data: dict) -> str:
    """Return bertviz's model view."""
    return _bertviz("model_view", data, display_mode="light")
