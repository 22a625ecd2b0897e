"""The map of a model's parts: which box opens what, and that data cannot break out."""

import re

import pytest
from bs4 import BeautifulSoup

from lmcourse import views


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


@pytest.fixture
def page():
    found = views.anatomy("Which box?", ROWS)
    return BeautifulSoup(found._repr_html_(), "html.parser")


def test_each_box_has_a_panel_and_a_rule_that_opens_it(page):
    inputs, panels = page.select("label > input[type=radio]"), page.select("section")
    assert len(inputs) == len(panels) == 6
    assert (
        len({radio["name"] for radio in inputs}) == 1
    )  # arrow keys go from one to another
    assert [radio.has_attr("checked") for radio in inputs] == [True] + 5 * [False]
    css = page.style.get_text()
    key = inputs[0]["name"]
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


def test_names_and_words_are_escaped():
    wild = box("<script>", [1.0, 2.0], names=["<b>", "&"], code="a < b")
    found = views.anatomy("<i>", [("<u>", [wild, box("x", [0.0])])])
    html = found._repr_html_()
    assert not re.search(r"<script|<b>(?!\d)|<i>|<u>", html)
    assert "a &lt; b" in html
    assert "a < b" in repr(found)


def test_what_is_no_map_is_refused():
    with pytest.raises(ValueError, match="1 box is no map"):
        views.anatomy("?", [("", [box("a")])])
    with pytest.raises(ValueError, match="'Title of b' needs values"):
        views.anatomy("?", [("", [box("a"), box("b", [])])])
    with pytest.raises(ValueError, match="as many names"):
        views.anatomy("?", [("", [box("a"), box("b", names=["one"])])])
