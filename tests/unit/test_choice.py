"""Panels to choose between: texts, pictures of heads, and the map of a model's parts."""

import re

import bs4
import pytest

from lmcourse import views

SHOWN = {"counting <b>": ("It counts.", "\nShall I <script>\nO&O"), "a GPT": ("Two", "so")}


def box(name, values=(0.5, -0.25, 0.0), **changes):
    told = {"title": f"Title of {name}", "formula": f"f({name})", "code": f"x = {name}"}
    told |= {"said": f"About {name}", "where": f"place-{name}"} | changes
    return views.Box(name, values=list(values), **told)


ROWS = [
    ("", [box("tokens", [101, 7], names=["[CLS]", "hope"])]),
    ("tables", [box("word\n9 × 3"), box("place")]),
    ("tables", [box("sum")]),
    ("layer", [box("mix", range(-20, 20))]),
    ("", [box("top")]),
]


def read(view):
    return bs4.BeautifulSoup(view._repr_html_(), "html.parser")


@pytest.fixture
def page():
    return read(views.anatomy("Which box?", ROWS))


def test_each_box_has_a_panel_and_a_rule_that_opens_it(page):
    inputs, panels = page.select("label > input[type=radio]"), page.select("section")
    assert len(inputs) == len(panels) == 6
    key = inputs[0]["name"]
    assert {radio["name"] for radio in inputs} == {key}  # arrow keys go through them
    assert [radio.has_attr("checked") for radio in inputs] == [True] + 5 * [False]
    css = page.style.get_text()
    for radio, panel in zip(inputs, panels, strict=True):
        value = radio["value"]
        assert panel["data-choice"] == value
        chosen = f'.{key}:has([value="{value}"]:checked)'
        assert f'{chosen} [data-choice="{value}"] {{display:block}}' in css
    assert key in page.select_one(".lm-anatomy")["class"]


def test_rows_of_one_part_share_a_frame(page):
    frames = page.select(".lm-part")
    assert [frame.span.get_text() for frame in frames] == ["tables", "layer"]
    assert [len(frame.select("label")) for frame in frames] == [3, 1]
    assert len(page.select(".lm-down")) == len(ROWS) - 1
    assert page.select("label")[1].small.get_text() == "9 × 3"


def test_a_panel_shows_formula_code_and_numbers(page):
    panels = page.select("section")
    assert panels[1].pre.get_text() == "x = word\n9 × 3"
    assert panels[2].a["href"] == "#place-place"
    assert panels[0].select_one(".lm-shares").get_text() == "[CLS] 101hope 7"
    cells = panels[2].select("rect")
    assert [cell["class"][0] for cell in cells] == ["lm-up", "lm-low", "lm-low"]
    assert [float(cell["fill-opacity"]) for cell in cells] == [1, 0.5, 0]
    assert panels[2].svg["aria-label"] == "It begins 0.50, -0.25, 0.00"
    assert len(panels[4].select("rect")) == 32  # of forty


def test_names_and_words_of_a_map_are_escaped():
    wild = box("<script>", [1.0, 2.0], names=["<b>", "&"], code="a < b")
    found = views.anatomy("<i>", [("<u>", [wild, box("x", [0.0])])])
    html = found._repr_html_()
    assert not re.search(r"<script|<b>(?!\d)|<i>|<u>", html)
    assert "a &lt; b" in html
    assert "a < b" in repr(found)


def test_texts_are_escaped_and_whole():
    page = read(views.samples("Who <wrote> it?", SHOWN))
    assert not page.select("script, b, wrote")
    assert page.legend.text == "Who <wrote> it?"
    assert page.label.text.strip() == "counting <b>"
    first = [line.text for line in page.section.find_all("p")]
    assert first == ["It counts.", "Shall I <script>\nO&O"]


def test_two_of_them_do_not_meet_and_one_is_the_same_twice():
    others = (SHOWN, SHOWN, SHOWN | {"third": ("x", "y")})
    first, again, other = (read(views.samples("Who?", s)).input["name"] for s in others)
    assert first == again != other


def test_as_text_all_are_there():
    assert repr(views.samples("Who?", SHOWN)).split("\n\n")[1] == "[a GPT: Two]\nso"


def test_a_picture_stands_with_its_text():
    view = views.samples("Who?", SHOWN, ["<svg>1</svg>", "<svg>2</svg>"])
    assert [panel.svg.text for panel in read(view).select("section")] == ["1", "2"]


def test_another_than_the_first_may_be_shown_first():
    inputs = read(views.samples("Who?", SHOWN, first="a GPT")).select("input")
    assert [radio.has_attr("checked") for radio in inputs] == [False, True]
    with pytest.raises(ValueError, match="nobody"):
        views.samples("Who?", SHOWN, first="nobody")


def test_a_bar_is_as_high_as_its_share():
    shares = [
        [[0.25, 0.75], [0.5, 0.5]],
        [[1.0, 0.0], [0.1, 0.9]],
    ]  # (rows, layers, tokens)
    svg = views.looks(shares, ["<b>", "two"], alt="Four <heads>")
    bars = [re.findall(r"v-([\d.]+)h18", d) for d in re.findall(r'<path d="([^"]*)"', svg)]
    flat = [share for layer in shares for head in layer for share in head]
    assert [float(h) for bar in bars for h in bar] == [pytest.approx(64 * s) for s in flat]
    assert 'aria-label="Four &lt;heads&gt;"' in svg
    assert "&lt;b&gt;, layer 1" in svg
    assert svg.count('class="lm-even"') == 4
