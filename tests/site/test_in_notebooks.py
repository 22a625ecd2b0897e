"""Views as Jupyter and Colab show them: drawn at the first run, with no network."""

import numpy as np
import plotly.graph_objects as go
import pytest
from plotly.offline import get_plotlyjs

import visits
from lmcourse import views

pytestmark = [pytest.mark.browser]

TOKENS = ["[CLS]", "</script>", "<img src=x onerror=harm()>", "&lt;", "🦋", "[SEP]"]
MARKS = {
    "attention_heads": ("canvas", 4),
    "tokens": (".colored-tokens > span", 6),
    "head_view": ("#bertviz-attention line", 3 * 6 * 6),
    "model_view": ("rect.attn_background", 2 * 3),
    "poems": (".lmp-near li", 2),
}
PLOT = (".barlayer .point", 6)
HEAD = """<!doctype html><meta charset="utf-8">
<script>harmed = 0; harm = () => { harmed = 1 }</script>"""
# What classic Jupyter has on its page, and what a library must not register with.
LOADER = """<script>
window.define = () => { throw new Error("mismatched anonymous define()"); };
window.define.amd = {}; window.module = {}; window.exports = {};
window.require = window.requirejs = () => { throw new Error("no such module"); };
</script>"""
# JupyterLab and VS Code set the HTML, then put each script in again, so that it runs.
INSERT = """html => {
  const host = document.body.appendChild(document.createElement("div"));
  host.innerHTML = html;
  for (const old of Array.from(host.getElementsByTagName("script"))) {
    const script = document.createElement("script");
    for (const { name, value } of old.attributes) script.setAttribute(name, value);
    script.textContent = old.textContent;
    old.parentNode.replaceChild(script, old);
  }
}"""
FRAME = """html => {
  const frame = document.createElement("iframe");
  frame.srcdoc = html;
  document.body.append(frame);
}"""


def view_of(kind):
    """Return a view of each kind, with tokens that could do harm."""
    even = np.full((3, len(TOKENS), len(TOKENS)), 1 / len(TOKENS))
    text = {"tokens": TOKENS, "alt": "For a notebook."}
    bars = go.Bar(x=TOKENS, y=[1, 2, 3, 4, 5, 6], text=TOKENS, name="<b>bars</b>")
    layout = {"showlegend": True, "title": {"text": "a <b>title</b>"}}
    shelved = {"names": TOKENS[:2], "levels": ["static", "0"], "alt": "Six poems."}
    shelved |= {"near": np.array([[[0], [2], [3], [4], [5], [0]]] * 2)}
    points = np.eye(6)[None, :, :2] + np.zeros((2, 1, 1))
    return {
        "poems": lambda: views.poems(TOKENS, TOKENS, TOKENS[:2] * 3, points, **shelved),
        "attention_heads": lambda: views.attention_heads(even, **text),
        "tokens": lambda: views.tokens(values=range(6), **text),
        "head_view": lambda: views.head_view([even, even], **text),
        "model_view": lambda: views.model_view([even, even], **text),
        "plot": lambda: views.plot(go.Figure(bars, layout), alt="Six <bars>."),
    }[kind]()


@pytest.fixture
def page(browser):
    """A page with no network, and what it asked for and what went wrong in it."""
    page = visits.new_page(browser)
    visits.slow(page)
    page.asked, page.errors = [], []

    def refuse(route):
        page.asked.append(route.request.url)
        route.abort()

    page.route("**/*", refuse)
    page.on("pageerror", lambda error: page.errors.append(str(error)))
    yield page
    page.close()


@pytest.mark.parametrize("way", ["lab", "classic", "colab"])
@pytest.mark.parametrize("kind", MARKS)
def test_views_draw_at_the_first_run_with_no_network(page, kind, way):
    """Two on a page, the second while the first is there; no token becomes markup."""
    page.set_content(HEAD + (LOADER if way == "classic" else ""))
    selector, count = MARKS[kind]
    for number in (1, 2):
        html = view_of(kind)._repr_mimebundle_()["text/html"]
        if way == "colab":
            page.evaluate(FRAME, HEAD + html)
            page.wait_for_function(f"frames.length === {number}")
            place = page.frame_locator("iframe").nth(number - 1)
        else:
            page.evaluate(INSERT, html)
            place = page.locator("body > div").nth(number - 1)
        marks = place.locator(selector)
        marks.nth(count - 1).wait_for(state="attached", timeout=visits.LOAD)
        assert marks.count() == count
        if kind == "head_view":
            assert place.locator("#left text").all_text_contents() == TOKENS
    assert page.evaluate("[typeof d3, typeof jQuery, typeof $]") == ["undefined"] * 3
    assert [frame.evaluate("harmed || 0") for frame in page.frames].count(1) == 0
    assert page.errors == []
    assert page.asked == []


def test_the_model_view_shows_every_head_in_a_narrow_notebook(page):
    page.set_content(HEAD)
    page.set_viewport_size({"width": 600, "height": 800})
    even = np.full((12, 6, 6), 1 / 6)
    view = views.model_view([even] * 6, tokens=TOKENS, alt="Even.")
    page.evaluate(INSERT, view._repr_mimebundle_()["text/html"])
    heads = page.locator("rect.attn_background")
    heads.nth(71).wait_for(state="attached", timeout=visits.LOAD)
    drawn = page.locator("svg").bounding_box()
    assert drawn["x"] + drawn["width"] <= 600
    for head in (heads.first, heads.last):
        box = head.bounding_box()
        assert drawn["x"] <= box["x"]
        assert box["x"] + box["width"] <= drawn["x"] + drawn["width"] + 1
        assert box["y"] + box["height"] <= drawn["y"] + drawn["height"] + 1


def test_the_texts_of_a_stored_table_are_flush_left_in_jupyter(page):
    rule = ".jp:not(.jp-prose) td { text-align: right }"  # as strong as JupyterLab's
    page.set_content(f"{HEAD}<style>{rule}</style><body class=jp>")
    lists = {"neuron 0": (["a long text that ends in a"], ["b"])}
    page.evaluate(INSERT, views.neurons(lists)._repr_mimebundle_()["text/html"])
    cells = page.locator("td")
    assert cells.count() == 2
    for cell in cells.all():
        assert cell.evaluate("cell => getComputedStyle(cell).textAlign") == "left"


def shown(page, selector):
    """Return the texts that a reader sees, in their order."""
    return page.locator(selector).all_text_contents()


@pytest.fixture
def online(page):
    """The page in Colab: plotly.js comes from its own site, checked by its hash."""
    page.route(
        "https://cdn.plot.ly/**",
        lambda route: route.fulfill(
            body=get_plotlyjs(),
            content_type="text/javascript",
            headers={"Access-Control-Allow-Origin": "*"},
        ),
    )
    page.set_content(HEAD)
    yield page
    assert page.errors == []
    assert page.asked == []


def test_a_plot_draws_and_shows_its_text_as_it_is(online):
    online.evaluate(INSERT, view_of("plot")._repr_mimebundle_()["text/html"])
    selector, count = PLOT
    online.locator(selector).nth(count - 1).wait_for(timeout=visits.LOAD)
    assert shown(online, ".xaxislayer-above text") == TOKENS
    assert shown(online, ".barlayer text") == TOKENS
    assert shown(online, ".legendtext") == ["<b>bars</b>"]
    assert shown(online, ".gtitle") == ["a title"]
    assert online.evaluate("harmed") == 0


def test_the_wheel_over_a_figure_in_space_scrolls_the_page(online):
    cloud = go.Scatter3d(x=[0, 1, 2], y=[0, 1, 0], z=[0, 1, 2], mode="markers")
    view = views.plot(go.Figure(cloud), alt="Three points in space.")
    online.evaluate(INSERT, view._repr_mimebundle_()["text/html"])
    online.evaluate("document.body.style.paddingBottom = '2000px'")
    scene = online.locator(".gl-container canvas").first
    scene.wait_for(timeout=visits.LOAD)
    scene.hover()
    online.mouse.wheel(0, 200)
    online.wait_for_function("() => scrollY > 100", timeout=visits.LOAD)


def test_a_plot_without_network_says_what_it_shows(page):
    page.set_content(HEAD)
    with page.expect_event("requestfailed", timeout=visits.LOAD):
        page.evaluate(INSERT, view_of("plot")._repr_mimebundle_()["text/html"])
    assert page.locator("body").inner_text().startswith("Six <bars>.")
    assert "plotly.js is fetched from its own site" in page.locator("body").inner_text()
    (asked,) = page.asked
    assert asked.startswith("https://cdn.plot.ly/plotly-")
    assert page.errors == []
