"""Views: what they refuse, what they say, and what no token can do."""

import hashlib
import json
import re
import subprocess
import sys
from xml.etree import ElementTree

import bs4
import matplotlib as mpl
import numpy as np
import plotly.graph_objects as go
import pytest
import torch

from lmbook.pages.tables import data_table
from lmcourse import views
from lmcourse.numbers import percent
from lmcourse.views import notebook
from lmcourse.views.block import PARTS, _drawing
from lmcourse.views.markup import library, script_json

NASTY = ["[CLS]", "</script>", "<b>", '"', "'", "&lt;", "🦋", "שלום", "<!--", "a b"]
ALT = "What can be seen."
LIBRARIES = {
    "d3.min.js": "5dbe924b3847df010f0b8572dd6ef42ea87d6370eeff72b13ea236247412a53c",
    "jquery.slim.min.js": (
        "9261efb3407e3a9096e4654750d8eff6b3a663422f48845c7fbcc65034c340cf"
    ),
}
PLOTLY = "application/vnd.plotly.v1+json"


def weights(*shape, tokens=10, seed=0):
    """Return attention weights of shape (*shape, tokens, tokens)."""
    generator = torch.Generator().manual_seed(seed)
    scores = torch.randn(*shape, tokens, tokens, generator=generator)
    return scores.softmax(dim=-1)


def make(kind, tokens=NASTY):
    """Return a view of a kind, with tokens that could do harm."""
    few = tokens[:4]
    return {
        "attention_heads": lambda: views.attention_heads(weights(3), tokens, alt=ALT),
        "head_view": lambda: views.head_view(weights(2, 3), tokens, alt=ALT),
        "model_view": lambda: views.model_view(weights(2, 3), tokens, alt=ALT),
        "sentences": lambda: views.sentences(
            [(tokens, weights(3), 2, [(0, 2)]), (few, weights(3, tokens=4), 0, [])],
            alt=ALT,
            head=0,
            notes=[tokens[2], "two"],
        ),
        "tokens": lambda: views.tokens(tokens, range(10), alt=ALT),
        "plot": lambda: views.plot(go.Figure(go.Bar(x=tokens, y=[*range(10)])), alt=ALT),
    }[kind]()


KINDS = ["attention_heads", "head_view", "model_view", "sentences", "tokens", "plot"]


@pytest.fixture(scope="module")
def by_kind():
    return {kind: make(kind) for kind in KINDS}


# --- the bundle -----------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_a_view_has_three_forms_the_same_on_every_run(by_kind, kind):
    bundle, again = by_kind[kind]._repr_mimebundle_(), make(kind)._repr_mimebundle_()
    assert set(bundle) - {PLOTLY} == {views.MIME, "text/html", "text/plain"}
    described = bundle[views.MIME]
    assert (described["kind"], described["alt"]) == (kind, ALT)
    assert bundle["text/plain"] == f"[{kind.replace('_', ' ')}] {ALT}"
    assert repr(by_kind[kind]) == bundle["text/plain"]
    assert json.dumps(again[views.MIME], allow_nan=False) == json.dumps(described)


def test_a_view_without_data_is_shown_as_it_is_stored():
    view = views.View("still", None, "<p>stored</p>", alt=ALT, plain="as text")
    stored = '<div class="lmc-stored"><p>stored</p></div>'
    assert view._repr_mimebundle_() == {"text/html": stored, "text/plain": "as text"}


def test_a_view_with_data_says_in_a_notebook_that_the_site_draws_it():
    bundle = views.View("toy-view", {}, "<p>stored</p>", alt=ALT)._repr_mimebundle_()
    assert "<p>stored</p><p><small>On the book's site" in bundle["text/html"]
    assert bundle[views.MIME]["stored"] == "<p>stored</p>"


def test_an_alternative_text_is_one_line_in_which_no_number_leaves_its_unit():
    text = f"It gets\n  {percent(0.71)}  of the weight.\t"
    alt = views.View("still", None, "<p>stored</p>", alt=text).alt
    assert alt == "It gets 71\N{NO-BREAK SPACE}% of the weight."


def test_a_view_needs_an_alternative_text():
    with pytest.raises(ValueError, match="alt is empty"):
        views.View("still", None, "<p>stored</p>", alt=" \n")


# --- attention ------------------------------------------------------------------------


def test_arrays_lists_tensors_and_a_batch_of_one_are_rounded_alike():
    tensor = weights(2, tokens=4)
    forms = [tensor, tensor[None], tensor.numpy(), tensor.tolist(), tensor.clone()]
    forms[-1].requires_grad_()
    wanted = np.round(tensor.double().numpy(), 3).tolist()
    for form in forms:
        shown = views.attention_heads(form, list("abcd"), alt=ALT)
        assert shown.data["attention"] == wanted


def test_half_precision_weights_are_accepted():
    half = weights(2, tokens=300).bfloat16()
    views.attention_heads(half, ["x"] * 300, alt=ALT)


def test_missing_attention_says_how_to_get_it():
    for call in (
        lambda: views.attention_heads(None, ["a"], alt=ALT),
        lambda: views.head_view(None, ["a"], alt=ALT),
        lambda: views.head_view([[[[1.0]]], None], ["a"], alt=ALT),
        lambda: views.model_view((), ["a"], alt=ALT),
    ):
        with pytest.raises(ValueError, match="attn_implementation='eager'"):
            call()


@pytest.mark.parametrize(
    ("attention", "message"),
    [
        (weights(3, tokens=9), r"shape \(3, 9, 9\); 10 tokens .*count \[CLS\]"),
        (weights(2, 3), r"shape \(2, 3, 10, 10\); 10 tokens of one text"),
        (weights(3) * 0.9, r"the rows sum to 0\.9 to 0\.9;.*softmax"),
        (2 * torch.eye(10).expand(3, 10, 10) - 0.1, r"the least weight is −0\.1"),
        (torch.full((3, 10, 10), torch.nan), "the rows sum to nan to nan"),
        (torch.empty(0, 10, 10), r"shape \(0, 10, 10\); 10 tokens of one text"),
    ],
)
def test_weights_that_are_none_are_refused(attention, message):
    with pytest.raises(ValueError, match=message):
        views.attention_heads(attention, NASTY, alt=ALT)
    with pytest.raises(ValueError, match=message):
        views.model_view([weights(3), attention], NASTY, alt=ALT)


def test_layers_with_other_numbers_of_heads_are_named():
    with pytest.raises(ValueError, match=r"attentions\[1\] has 3 heads, attentions\[0\] 2"):
        views.model_view([weights(2), weights(3)], NASTY, alt=ALT)


def test_later_tokens_are_hidden_where_nothing_looks_at_them():
    attention, tokens = weights(2, tokens=4), list("abcd")
    with pytest.raises(ValueError, match="not causal"):
        views.attention_heads(attention, tokens, alt=ALT, causal=True)
    causal = attention.tril()
    causal = causal / causal.sum(dim=-1, keepdim=True)
    for given, is_causal in ((attention, False), (causal, True)):
        view = views.attention_heads(given, tokens, alt=ALT, causal=is_causal)
        assert view.data["causal"] is is_causal
        assert f'"maskUpperTri": {str(is_causal).lower()}' in view._repr_html_()


@pytest.mark.parametrize(
    ("choice", "message"),
    [
        ({"layer": 2}, r"layer=\[2\]: there are 2, so 0 to 1"),
        ({"heads": [0, 3]}, "there are 3, so 0 to 2"),
    ],
)
def test_choices_out_of_range_are_refused(choice, message):
    with pytest.raises(ValueError, match=message):
        views.head_view(weights(2, 3), NASTY, alt=ALT, **choice)


def test_a_model_view_has_every_head_of_every_layer():
    attention = weights(4, 5)
    view = views.model_view(attention, NASTY, alt=ALT)
    wanted = attention.double().numpy()
    np.testing.assert_allclose(view.data["attention"], wanted, atol=5.1e-4)
    assert view.data["layers"] == [0, 1, 2, 3]
    assert view.data["heads"] == [0, 1, 2, 3, 4]
    given = parameters(view)
    assert given["include_layers"] == view.data["layers"]
    assert given["include_heads"] == view.data["heads"]


# --- sentences ------------------------------------------------------------------------


def test_sentences_are_whole_per_cents_of_every_head():
    attention = weights(3, tokens=4)
    look = (list("abcd"), attention, 1, [(0, 1), (2, 4)])
    view = views.sentences([look], alt=ALT, head=2, notes=[""])
    (shown,) = view.data["sentences"]
    assert shown["query"] == 1
    assert shown["nouns"] == [[0, 1], [2, 4]]
    assert "layer" not in view.data
    assert view.stores == []
    live = views.sentences([look], alt=ALT, head=2, notes=[""], layer=3, around=(7, 8))
    assert live.stores == ["bert", "bert-pieces"]
    assert (live.data["layer"], live.data["around"]) == (3, [7, 8])
    percent = 100 * attention.double().numpy()
    np.testing.assert_allclose(shown["weights"], percent, atol=0.5 + 1e-9)
    assert isinstance(shown["weights"][0][0][0], int)


def test_sentences_of_an_untrained_model_are_the_same_sentences():
    other = weights(3, tokens=4, seed=1)
    options = {"alt": ALT, "head": 0, "notes": [""]}
    read = [(list("abcd"), weights(3, tokens=4), 1, [])]
    view = views.sentences(read, untrained=[other], **options)
    percent = 100 * other.double().numpy()
    np.testing.assert_allclose(view.data["untrained"][0], percent, atol=0.5 + 1e-9)
    assert "untrained" not in views.sentences(read, **options).data
    for wrong, message in (([], "argument 2"), ([weights(3, tokens=5)], "tokens")):
        with pytest.raises(ValueError, match=message):
            views.sentences(read, untrained=wrong, **options)


@pytest.mark.parametrize("noun", [(1, 1), (3, 5), (-1, 2)])
def test_a_noun_outside_its_sentence_is_refused(noun):
    look = (list("abcd"), weights(3, tokens=4), 1, [noun])
    with pytest.raises(ValueError, match="of 4 tokens there can be no nouns at"):
        views.sentences([look], alt=ALT, head=0, notes=[""])


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"query": 4}, "of 4 tokens there is no token 4"),
        ({"head": 3}, r"head=\[3\]: there are 3, so 0 to 2"),
        ({"notes": []}, "0 notes for 1 sentences"),
        ({"layer": 2}, "layer needs around"),
    ],
)
def test_what_a_view_of_sentences_cannot_show_is_refused(changed, message):
    options = {"alt": ALT, "head": 0, "notes": [""], "query": 1} | changed
    look = (list("abcd"), weights(3, tokens=4), options.pop("query"), [])
    with pytest.raises(ValueError, match=message):
        views.sentences([look], **options)


def test_in_a_notebook_every_sentence_is_shown_in_the_first_head(by_kind):
    even = torch.full((2, 2, 2), 0.5)
    one_hot = torch.eye(2).expand(2, 2, 2)
    looks = [(["one", "two"], even, 0, []), (["three", "four"], one_hot, 1, [])]
    view = views.sentences(looks, alt=ALT, head=1, notes=["first", "second"])
    page = view._repr_html_()
    assert re.findall(r'title="(\d+)\N{NO-BREAK SPACE}%">(\w+)', page) == [
        ("50", "one"),
        ("50", "two"),
        ("0", "three"),
        ("100", "four"),
    ]
    assert "first" in page
    assert "second" in page
    assert "On the book's site" in page
    assert "script" not in elements(by_kind["sentences"]._repr_html_())


def test_in_a_notebook_a_note_that_all_sentences_share_is_written_once():
    looks = [(["one", "two"], torch.full((1, 2, 2), 0.5), 0, [])] * 3
    view = views.sentences(looks, alt=ALT, head=0, notes=["What is it?"] * 3)
    assert view._repr_html_().count("What is it?") == 1


# --- tokens ---------------------------------------------------------------------------


@pytest.mark.parametrize("tokens", [[101, 102], []])
def test_what_is_no_list_of_tokens_is_refused(tokens):
    with pytest.raises(ValueError, match="convert_ids_to_tokens"):
        views.tokens(tokens, [], alt=ALT)


@pytest.mark.parametrize("values", [[1.0], [[1.0, 2.0]], [1.0, float("nan")]])
def test_values_that_do_not_fit_are_refused(values):
    with pytest.raises(ValueError, match="values should be 2 finite numbers, one a token"):
        views.tokens(["a", "b"], values, alt=ALT)


def elements(page):
    """Return the names of the elements that a browser would make."""
    return [element.name for element in bs4.BeautifulSoup(page, "html.parser").find_all()]


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "plot"])
def test_no_token_becomes_an_element(by_kind, kind):
    """The notebook's HTML and the site's table have the elements that words give."""
    plain = make(kind, [f"token{i}" for i in range(len(NASTY))])
    assert elements(by_kind[kind]._repr_html_()) == elements(plain._repr_html_())
    site, wanted = data_table(by_kind[kind].description()), data_table(plain.description())
    assert elements(site) == elements(wanted)


def test_circuitsvis_closes_its_div(by_kind):
    page = by_kind["tokens"]._repr_html_()
    assert page.count("<div") == page.count("</div>")


def parameters(view):
    """Return what bertviz's script is handed in a notebook."""
    given = re.search(r"^const params = (\{.*\});$", view._repr_html_(), re.MULTILINE)
    return json.loads(given[1])


@pytest.mark.parametrize("name", ["head_view", "model_view"])
def test_another_bertviz_is_refused(monkeypatch, tmp_path, name):
    (tmp_path / f"{name}.js").write_text("requirejs(['d3'], () => 0)")
    monkeypatch.setattr(notebook.resources, "files", lambda package: tmp_path)
    with pytest.raises(ValueError, match="has changed"):
        notebook.bertviz_script(name)


@pytest.mark.parametrize(("name", "digest"), LIBRARIES.items())
def test_the_libraries_are_those_that_npm_has(name, digest):
    """d3 5.16.0 and jQuery 3.7.1; and they could not end the script that they stand in."""
    body = library(name)
    assert hashlib.sha256(body.encode()).hexdigest() == digest
    assert not re.search("</script|<!--", body)


# --- plots ----------------------------------------------------------------------------


def test_numbers_are_rounded_and_whole_numbers_stay_whole():
    x = np.array([0.0, 12345.0, 1.0 / 3, 123.456789, 2e-7 / 3, np.nan])
    figure = go.Figure(go.Scatter(x=x, y=x.tolist(), customdata=[[True, "a"]] * 6))
    trace = views.plot(figure, alt=ALT).data["figure"]["data"][0]
    assert trace["x"] == [0, 12345, 0.3333, 123.5, 6.667e-08, None]
    assert trace["y"] == trace["x"]
    assert trace["customdata"][0] == [True, "a"]


def test_the_figure_is_left_as_it_is():
    figure = go.Figure(go.Scatter(y=[1 / 3]))
    before = figure.to_json()
    view = views.plot(figure, alt=ALT)
    view._repr_mimebundle_()
    assert figure.to_json() == before
    assert "template" not in view.data["figure"]["layout"]


MARKUP = "<s>&<b>"
PLAIN = "&lt;s&gt;&amp;&lt;b&gt;"


def test_what_data_say_is_escaped_and_what_the_author_writes_is_not():
    title = {"text": "<i>kept</i>"}
    step = {"label": MARKUP, "method": "animate", "args": [["<k>"], {"y": [MARKUP]}]}
    figure = go.Figure(
        go.Bar(
            x=[MARKUP, "two\nlines"],
            y=[1, 2],
            name=MARKUP,
            text=np.array([MARKUP, ""]),
            customdata=[[MARKUP, 1]] * 2,
            hovertemplate="%{x}<br>",
            marker={"colorbar": {"title": title}},
        ),
        layout={
            "title": title,
            "xaxis": {"title": title, "ticktext": [MARKUP], "tickvals": [MARKUP]},
            "annotations": [{"text": "<b>kept</b>", "x": MARKUP}],
            "sliders": [{"steps": [step], "currentvalue": {"prefix": "<i>k</i>"}}],
        },
        frames=[go.Frame(name="<k>", data=[{"x": [MARKUP], "name": MARKUP}])],
    )
    shown = views.plot(figure, alt=ALT).data["figure"]
    (bar,), layout = shown["data"], shown["layout"]
    assert bar["x"] == [PLAIN, "two<br>lines"]
    assert [bar["name"], bar["text"][0], bar["customdata"][0]] == [PLAIN, PLAIN, [PLAIN, 1]]
    assert bar["hovertemplate"] == "%{x}<br>"
    assert bar["marker"]["colorbar"]["title"] == layout["title"] == title
    axis = {"title": title, "ticktext": [PLAIN], "tickvals": [PLAIN]}
    assert layout["xaxis"] == axis
    assert layout["annotations"] == [{"text": "<b>kept</b>", "x": PLAIN}]
    (slider,) = layout["sliders"]
    args = [["<k>"], {"y": [PLAIN]}]
    assert slider["steps"] == [{"label": PLAIN, "method": "animate", "args": args}]
    assert slider["currentvalue"]["prefix"] == "<i>k</i>"
    (frame,) = shown["frames"]
    assert [frame["name"], frame["data"][0]["name"]] == ["<k>", PLAIN]


def test_every_form_of_a_plot_has_the_same_plain_text():
    view = views.plot(go.Figure(go.Bar(x=[MARKUP], y=[1], hovertext=["of all"])), alt="<u>")
    bundle = view._repr_mimebundle_()
    assert bundle[PLOTLY]["data"][0]["x"] == [PLAIN]
    assert script_json(PLAIN) in bundle["text/html"]
    assert "&lt;u&gt;" in bundle["text/html"]
    cells = re.findall(r"<td>([^<]*)</td>", data_table(view.description()))
    assert cells == ["of all", PLAIN, "1"]  # escaped once, as HTML


# --- colours --------------------------------------------------------------------------

# Viénot, Brettel and Mollon (1999): what a dichromat sees, in linear RGB.
DICHROMAT = {
    "protan": [[0.1121, 0.8853, -0.0005], [0.1127, 0.8897, -0.0001], [0.0045, 0, 1.0019]],
    "deutan": [[0.2920, 0.7054, -0.0003], [0.2934, 0.7089, 0], [-0.0210, 0.0256, 1.0019]],
}


def linear(colour):
    """Return linear RGB of a hexadecimal colour."""
    rgb = np.array(mpl.colors.to_rgb(colour))
    return np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)


def lab(rgb):
    """Return CIE L*a*b* of linear sRGB, for D65."""
    matrix = np.array(
        [
            [0.4124564, 0.3575761, 0.1804375],
            [0.2126729, 0.7151522, 0.0721750],
            [0.0193339, 0.1191920, 0.9503041],
        ]
    )
    xyz = matrix @ np.clip(rgb, 0, 1) / np.array([0.95047, 1.0, 1.08883])
    f = np.where(xyz > 216 / 24389, np.cbrt(xyz), (24389 / 27 * xyz + 16) / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


@pytest.mark.parametrize("sight", ["normal", *DICHROMAT])
def test_colours_differ_for_every_reader(sight):
    matrix = np.array(DICHROMAT.get(sight, np.eye(3)))
    seen = [lab(matrix @ linear(colour)) for colour in views.PALETTE]
    for first in range(len(seen)):
        for second in range(first):
            distance = np.linalg.norm(seen[first] - seen[second])
            assert distance > 20, (views.PALETTE[first], views.PALETTE[second])


@pytest.mark.parametrize("background", ["#fffdf8", "#14171b"])
@pytest.mark.parametrize("colour", views.PALETTE)
def test_colours_stand_out_in_both_themes(colour, background):
    """WCAG 2.2, 1.4.11: graphics at 3 to 1."""
    weights = np.array([0.2126, 0.7152, 0.0722])
    pair = sorted([weights @ linear(colour), weights @ linear(background)])
    assert (pair[1] + 0.05) / (pair[0] + 0.05) >= 3


def test_style_has_the_rest_from_seaborn():
    import seaborn as sns

    ours = {"axes.facecolor", "figure.facecolor", "axes.grid", "font.size", "image.cmap"}
    ours |= {"axes.spines.right", "axes.spines.top"}
    theirs = sns.axes_style("ticks") | sns.plotting_context("notebook")
    with mpl.rc_context():
        views.style()
        settings = {name: mpl.rcParams[name] for name in theirs.keys() - ours}
    assert settings == {name: theirs[name] for name in settings}


def test_style_is_transparent_and_uses_the_palette():
    with mpl.rc_context():
        views.style()
        assert mpl.rcParams["figure.facecolor"] == "none"
        assert mpl.rcParams["axes.facecolor"] == "none"
        assert mpl.rcParams["image.cmap"] == views.SEQUENTIAL
        cycle = [entry["color"] for entry in mpl.rcParams["axes.prop_cycle"]]
        wanted = [mpl.colors.to_rgb(colour) for colour in views.PALETTE]
        np.testing.assert_allclose([mpl.colors.to_rgb(c) for c in cycle], wanted)


def test_the_parts_of_a_block_are_legible_without_the_sites_styles():
    """A notebook has none: a shape without a fill would be black, and its word with it."""
    root = ElementTree.fromstring(_drawing(range(4)))
    parts = [part for part in root.iter("g") if "data-part" in part.attrib]
    assert len(parts) == len(PARTS) + 4
    for part in parts:
        assert (part.get("fill"), part.get("stroke")) == ("none", "currentColor")
        assert part.find("text").get("fill") == "currentColor"


def test_a_page_with_views_does_not_wait_for_libraries_of_training():
    code = "import sys, lmcourse.views; sys.exit('accelerate' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
