"""What Jupyter and Colab show of a view: HTML that draws it, without a network.

Tokens are data. bertviz and circuitsvis put them into a ``<script>`` as JSON without
escaping ``<``, and circuitsvis sets them as HTML; both are handed tokens here that show
the same characters and can be neither.
"""

import json
import re
import uuid
from html import escape
from importlib import import_module, resources

import torch

from lmcourse.numbers import percent
from lmcourse.views.markup import library, script_json, table

JOINER = "\u2060"  # invisible, and ends what would begin a tag or an entity
STAND_IN = "\ue000"  # a private character that no token has
BLUE, SKY, ORANGE = "#0072B2", "#56B4E9", "#E69F00"  # black is legible on the last two
# Jupyter sets tables flush right, as numbers are; those of views hold texts, too.
LEFT = "<style>.lmc-stored.lmc-stored table :is(th, td) { text-align: left }</style>"
FULL = 60  # hundredths of support at which a word's colour is full, as on the site
NOTE = "On the book's site this view answers to what you type and click."


def html(view) -> str:
    """Return a view as HTML: drawn, if that is known here, or as it is stored.

    ``view`` : a `View`. Its ``kind`` is looked up in `DRAWERS`, kind → a function from the
    view to HTML. Of another kind, its ``stored`` HTML is shown and, if it has ``data``, a
    note that the view answers on the book's site.
    """
    if view.kind in DRAWERS:
        return DRAWERS[view.kind](view)
    if view.data is None:
        return f'<div class="lmc-stored">{view.stored}</div>'
    note = f"<p><small>{NOTE}</small></p>"
    return f'<div class="lmc-stored">{LEFT}{view.stored}{note}</div>'


def inert(token: str) -> str:
    """Return a token that looks the same and is never read as a tag or an entity.

    ``token`` : str. An invisible character, U+2060, is put behind each ``<`` and ``&``.
    """
    return token.replace("<", "<" + JOINER).replace("&", "&" + JOINER)


def _circuitsvis(view) -> str:
    """Return circuitsvis's HTML with its script inside, so that it draws offline.

    Its own ``_repr_html_`` asks the network whether to inline the script; and it leaves
    its ``div`` open, which swallows what follows. ``view`` : what a function of circuitsvis
    returned, a ``RenderedHTML``; its ``local_src`` is HTML with the script inside.
    """
    closed = view.local_src.replace('15px 0;"/>', '15px 0; background: white;"></div>', 1)
    return f'<div style="background: white; color: black">{closed}</div>'


def attention_heads(view) -> str:
    """Return a `View` of attention heads as HTML, drawn by circuitsvis.

    ``view`` : its ``data`` is a dict: ``tokens``, a list of str; ``attention``, the weights
    as nested lists (heads, tokens, tokens), rows are queries; ``causal``, whether what lies
    above the diagonal is left out.
    """
    from circuitsvis.attention import attention_heads

    tokens = [inert(token) for token in view.data["tokens"]]
    colours = {"positive_color": BLUE, "negative_color": ORANGE}
    options = colours | {"mask_upper_tri": view.data["causal"]}
    return _circuitsvis(attention_heads(view.data["attention"], tokens, **options))


def tokens(view) -> str:
    """Return a `View` of coloured tokens as HTML, drawn by circuitsvis.

    ``view`` : its ``data`` is a dict: ``tokens``, a list of str, and ``values``, a number
    for each; blue above 0, orange below.
    """
    from circuitsvis.tokens import colored_tokens

    tokens = [inert(token) for token in view.data["tokens"]]
    colours = {"positive_color": SKY, "negative_color": ORANGE}
    return _circuitsvis(colored_tokens(tokens, view.data["values"], **colours))


def sentences(view) -> str:
    """Return every sentence in the head shown first, as HTML: the darker, the more weight.

    ``view`` : its ``data`` is a dict. ``sentences`` has a dict for each sentence:
    ``tokens``, a list of str; ``weights``, attention in per cent, nested lists (heads,
    tokens, tokens); ``query``, the position of the token that attends, which is framed.
    ``notes`` has a str for each sentence, which stands below it; one that is the same for
    all of them is written once, at the end. ``head`` is the head's number, from 0.
    """
    data = view.data
    lines = []
    same = len(set(data["notes"])) == 1
    notes = [""] * len(data["notes"]) if same else data["notes"]
    for sentence, note in zip(data["sentences"], notes, strict=True):
        query = sentence["query"]
        shares = sentence["weights"][data["head"]][query]
        spans = (
            f'<span style="background: rgba(0, 114, 178, {0.6 * share / 100:.3f}); '
            f'padding: 2px; {"outline: 1px solid" if position == query else ""}" '
            f'title="{percent(share / 100)}">{escape(token)}</span>'
            for position, (token, share) in enumerate(
                zip(sentence["tokens"], shares, strict=True)
            )
        )
        below = f"<br><small>{escape(note)}</small>" if note else ""
        lines.append(f"<p>{' '.join(spans)}{below}</p>")
    lines += [f"<p>{escape(data['notes'][0])}</p>"] if same else []
    lines.append(f"<p><small>{NOTE}</small></p>")
    return f'<div style="background: white; color: black">{"".join(lines)}</div>'


def bertviz_script(name: str) -> str:
    """Return one of bertviz's scripts as a function of its parameters and its libraries.

    The script is a template that asks require.js for jQuery and d3 and has a marker
    where its parameters go. As the body of a function whose arguments carry these very
    names it needs neither. Its group of lines has the id "attention", as a section of
    the page may: that one is renamed.

    ``name`` : of the script, "head_view" or "model_view".

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

    Frame and parameters are cut out of what bertviz's Python returns, and put into
    ``bertviz.html`` with its script and the libraries. A ``<`` of a token could end the
    script: bertviz is handed another character, which becomes an escaped ``<``.

    ``name`` : "head_view" or "model_view"; ``data`` : dict: ``attention``, the weights as
    nested lists (layers, heads, tokens, tokens), and ``tokens``, a list of str;
    ``options`` : of bertviz's function of that name.
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


def head_view(view) -> str:
    """Return a `View` of attention in lines, bertviz's head view, as HTML.

    ``view`` : its ``data`` is a dict: ``tokens``, a list of str; ``attention``, the weights
    as nested lists (layers, heads, tokens, tokens); the ``layer``, an int, and the
    ``heads``, a list of int, that are shown first, from 0.
    """
    layer = view.data["layer"]
    heads = view.data["heads"]
    return _bertviz("head_view", view.data, layer=layer, heads=heads)


def model_view(view) -> str:
    """Return a `View` of all heads of all layers, bertviz's model view, as HTML.

    ``view`` : its ``data`` is a dict: ``tokens``, a list of str, and ``attention``, the
    weights as nested lists (layers, heads, tokens, tokens).
    """
    return _bertviz("model_view", view.data, display_mode="light")


def plot(view) -> str:
    """Return a `View` of a plotly figure as HTML.

    It is drawn by plotly.js, which comes from its own site; without a network the
    alternative text stands there.

    ``view`` : its ``extra`` has one value, the figure as a dict of plotly's JSON (``data``,
    ``layout``, perhaps ``frames``); ``alt`` is the text.
    """
    import plotly.graph_objects as go

    tag = go.Figure().to_html(include_plotlyjs="cdn")
    matches = {
        k: re.search(rf'<script[^>]*\b{k}="(.+?)"', tag) for k in ("src", "integrity")
    }
    source = json.dumps({k: match[1] for k, match in matches.items() if match})
    (figure,), name = view.extra.values(), f"plot-{uuid.uuid4().hex}"
    drawn = script_json(figure)
    return library("plot.html") % (name, escape(view.alt), name, drawn, source)


def poems(view) -> str:
    """Return the explorer of poems as HTML, with the scripts and styles that draw it.

    The same script draws it on the site; there it is a module, so its ``import`` and
    ``export`` are taken out here.

    ``view`` : what `lmcourse.views.poems` returned. ``kind`` is "poems"; ``stored`` is the
    HTML that stands there until the script has run, the first poem; ``data`` is a dict that
    the script reads: ``texts``, ``places``, ``shelves`` (sections by number), ``names``,
    ``levels``, ``support``, ``near``, ``first``.
    """
    modules = (library(name) for name in ("dom.js", "poems.js"))
    scripts = [
        re.sub(r"^(import [^;]*;|export )", "", text, flags=re.M) for text in modules
    ]
    shown = (library("poems.css"), view.kind.replace("_", "-"), view.stored)
    return library("poems.html") % (*shown, *scripts, view.kind, script_json(view.data))


def word_removal(view) -> str:
    """Return each poem with its words coloured by what striking them out changes, as HTML.

    A word on a coloured ground speaks for the section that the last level gives the poem, a
    word above a dashed line against it. The first poem is open, the others unfold.

    ``view`` : its ``data`` is a dict: ``names``, those of the sections; ``levels``, the
    names of the model's levels; ``poems``, a dict for each: ``text``; ``own``, the number
    of the editors' section; ``words``, a list of str; the support for each section, in
    hundredths (100 is no more than by chance): ``printed``, of the whole poem, nested lists
    (levels, sections), and ``said``, without each word, (levels, words, sections).
    """
    poems = view.data["poems"]
    shared = (view.data["names"], view.data["levels"])
    first, *others = (_struck_out(poem, *shared) for poem in poems)
    folded = (
        f"<details><summary>{escape(poem['text'].split(chr(10))[0])}</summary>{html}</details>"
        for poem, html in zip(poems[1:], others, strict=True)
    )
    key = (
        f'<p><span style="{_ground(FULL)}">speaks for the section</span> '
        f'<span style="{_ground(-FULL)}">speaks against it</span></p>'
    )
    note = f"<p><small>{NOTE}</small></p>"
    return f'<div class="lmc-stored">{first}{key}{"".join(folded)}{note}</div>'


def _ground(lost: int) -> str:
    """Return the style (CSS) of a word without which a section loses support.

    ``lost`` : how many hundredths; a word with more than 0 has an orange ground, another a
    dashed blue line below. The colour is full at 60, `FULL`.
    """
    share = min(1, abs(lost) / FULL)
    if lost > 0:
        return f"background: rgba(230, 159, 0, {0.45 * share:.2f})"
    return f"border-bottom: 3px dashed rgba(74, 155, 212, {share:.2f})"


def _struck_out(poem: dict, names: list[str], levels: list[str]) -> str:
    """Return one poem as HTML, its words coloured, with what decides its section.

    Below it stand the editors' section, the model's at the last level, the one with the
    most support, and the words without which the model would give another one.

    Parameters
    ----------
    poem : dict
        ``text``; ``own``, the number of the editors' section; ``words``, a list of str; the
        support for each section, in hundredths: ``printed``, of the whole poem, nested
        lists (levels, sections), and ``said``, without each word, (levels, words,
        sections).
    names : list of str
        The sections.
    levels : list of str
        The names of the model's levels.
    """
    printed = poem["printed"][-1]
    struck = poem["said"][-1]
    model = printed.index(max(printed))
    marked = ""
    end = 0
    for word, without in zip(poem["words"], struck, strict=True):
        start = poem["text"].index(word, end)
        style = _ground(printed[model] - without[model])
        marked += escape(poem["text"][end:start])
        marked += f'<span style="{style}">{escape(word)}</span>'
        end = start + len(word)
    marked = (marked + escape(poem["text"][end:])).replace("\n", "<br>")
    other = [
        f"“{escape(word)}”: {escape(names[without.index(max(without))])}"
        for word, without in zip(poem["words"], struck, strict=True)
        if without.index(max(without)) != model
    ]
    decides = (
        f"Without {'; without '.join(other)}." if other else "No single word decides it."
    )
    return (
        f"<blockquote>{marked}</blockquote><p>The editors: {escape(names[poem['own']])}. "
        f"The model {escape(levels[-1])}: {escape(names[model])}. {decides}</p>"
    )


def sorting(view) -> str:
    """Return poems to be sorted by hand as HTML, and, folded, where they were put.

    ``view`` : its ``data`` is a dict: ``texts``, a list of str; ``names``, those of the
    sections; ``levels``, the names of the model's levels; ``editors``, the number of the
    editors' section for each text; ``models``, the model's, nested lists (levels, texts),
    of which the last level is shown.
    """
    data = view.data
    poems = "".join(
        f"<li><blockquote>{escape(text).replace(chr(10), '<br>')}</blockquote></li>"
        for text in data["texts"]
    )
    head = ("poem", "the editors", f"the model {data['levels'][-1]}")
    judged = zip(data["texts"], data["editors"], data["models"][-1], strict=True)
    rows = (
        (f"{number}. {text.split(chr(10))[0]}", data["names"][own], data["names"][model])
        for number, (text, own, model) in enumerate(judged, start=1)
    )
    return (
        f'<div class="lmc-stored">{LEFT}<ol>{poems}</ol><details><summary>The sections: '
        f"the editors’ and the model’s</summary>{table(head, rows)}</details>"
        f"<p><small>{NOTE}</small></p></div>"
    )


_KINDS = (attention_heads, tokens, sentences, head_view, model_view, plot, poems)
DRAWERS = {drawer.__name__: drawer for drawer in _KINDS}
DRAWERS |= {"word-removal-view": word_removal, "sorting-view": sorting}
