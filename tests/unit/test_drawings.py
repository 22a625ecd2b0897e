"""Drawings by hand: the rules they are held to, and what is made of them."""

import base64
import re
from types import SimpleNamespace
from xml.etree import ElementTree

import pytest
from docutils import nodes
from docutils.parsers.rst import DirectiveError
from docutils.statemachine import StringList

from lmbook.execute.keys import ROOT
from lmbook.pages.drawings import (
    STYLE,
    Drawing,
    fill_values,
    image_html,
    inline_svg,
    parse_drawing,
)

FIGURES = [
    *ROOT.glob("chapters/_figures/*.svg"),
    *(ROOT / "tests/site/demo/_figures").glob("*.svg"),
]
WIDEST = 400  # units: what a screen of 390 px still shows legibly
SHAPES = ("circle", "ellipse", "line", "path", "polygon", "polyline", "rect")
KNOWN = {"title", "desc", "g", "text", "tspan", *SHAPES}
FORBIDDEN = re.compile(
    r"""(style|id|on\w+|.*href)=.*                      # looks are classes
    | .*=.*url\(.*
    | (fill|stroke|color)=(?!(none|currentColor)$).*
    | transform=.*(scale|matrix|skew).*                 # text keeps its size
    | font-size=(?!(1[3-9]|[2-9]\d)(\.\d+)?$).*         # which is at least 13
    | data-cells=(?![1-9]\d?x[1-9]\d?$).*
    | data-step=(?![1-9]\d?$).*
    """,
    re.DOTALL | re.VERBOSE,
)
CLASSES = set(re.findall(r"\.(d-[\w-]+)", STYLE.read_text("utf-8")))
WORDS = "<title>A bee</title><desc>A bee flies.</desc>"


def drawing(body="", words=WORDS, box="0 0 400 100", more=""):
    return f'<svg viewBox="{box}" {more}>{words}{body}</svg>'


def faults(root):
    """Return what in a drawing breaks the rules of docs/tasks-and-drawings.md."""
    width = float(root.get("viewBox").split()[2])
    messages = []
    if width > WIDEST:
        messages.append(f"{width:g} units wide")
    for part in root.iter():
        if part is not root and part.tag not in KNOWN:
            messages.append(f"<{part.tag}>")
        messages += [
            f"{n}={v!r}" for n, v in part.items() if FORBIDDEN.fullmatch(f"{n}={v}")
        ]
        messages += [f"the class {n!r}" for n in {*part.get("class", "").split()} - CLASSES]
    return messages


@pytest.mark.parametrize("path", FIGURES, ids=lambda path: path.stem)
def test_every_drawing_keeps_the_rules(path):
    assert (
        faults(parse_drawing(fill_values(path.read_text("utf-8"), lambda key, form: "7")))
        == []
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("<svg", "not well-formed"),
        ("<p/>", "must begin with <svg viewBox"),
        (drawing(box="10 0 400 100"), "must begin with <svg viewBox"),
        (drawing(more='width="400"'), "must begin with <svg viewBox"),
        (drawing(words="<title>A bee</title><desc> </desc>"), "<title> and <desc>"),
        (drawing(words="<desc>x</desc><title>y</title>"), "<title> and <desc>"),
    ],
)
def test_what_is_no_drawing_is_told(text, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        parse_drawing(text)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        (drawing(box="0 0 500 100"), "500 units wide"),
        (drawing('<rect fill="#fff"/>'), "fill="),
        (drawing('<rect style="fill: red"/>'), "style="),
        (drawing('<rect id="a"/>'), "id="),
        (drawing('<rect onclick="harm()"/>'), "onclick="),
        (drawing('<rect clip-path="url(https://a.example/b)"/>'), "clip-path="),
        (drawing('<rect class="d-vektor"/>'), "the class 'd-vektor'"),
        (drawing('<rect data-cells="4 x 6"/>'), "data-cells="),
        (drawing('<rect data-step="0"/>'), "data-step="),
        (drawing('<g transform="scale(0.5)"/>'), "transform="),
        (drawing('<text font-size="12">bee</text>'), "font-size="),
        (drawing('<text font-size="0.9em">bee</text>'), "font-size="),
        (drawing("<script/>"), "<script>"),
        (drawing("<svg/>"), "<svg>"),
    ],
)
def test_a_broken_rule_is_found(text, fault):
    (message,) = faults(parse_drawing(text))
    assert message.startswith(fault)


def test_a_namespace_changes_nothing():
    spelled = drawing(more='xmlns="http://www.w3.org/2000/svg"')
    assert inline_svg(spelled, "a") == inline_svg(drawing(), "a")


def test_ids_begin_with_the_figures_name():
    arrows = '<path class="d-arrow" d="M0 0H9"/><path class="d-arrow d-2" d="M0 9H9"/>'
    one, two = (inline_svg(drawing(2 * arrows), name) for name in ("fig-a", "fig-b"))
    ids = re.findall(r'\bid="([^"]+)"', one + two)
    assert len(ids) == len(set(ids)) == 2 * 4  # title, desc, and a head for each colour
    assert set(re.findall(r"url\(#([^)]+)\)", one)) == {"fig-a-head", "fig-a-headd-2"}
    assert 'aria-labelledby="fig-a-title fig-a-desc"' in one


def test_cells_become_lines():
    rect = '<rect class="d-matrix d-1" x="10" y="20" width="60" height="20" '
    root = ElementTree.fromstring(inline_svg(drawing(f'{rect} data-cells="2x3"/>'), "a"))
    (grid,) = [part for part in root.iter() if "d-grid" in part.get("class", "")]
    assert grid.get("d") == "M10 30h60M30 20v20M50 20v20"
    assert grid.get("class") == "d-grid d-1"


def test_glued_values_are_filled_in():
    def value(key, form):
        return format({"n": 7.0, "word": "<b>"}[key], form)

    assert fill_values("{{n:.0f}} × {{ word }}", value) == "7 × &lt;b&gt;"
    with pytest.raises(KeyError):
        fill_values("{{m}}", value)


@pytest.mark.parametrize("parts", [[], [nodes.enumerated_list()]])
def test_what_stands_first_must_be_a_caption(monkeypatch, parts):
    monkeypatch.setattr(Drawing, "parse_content_to_nodes", lambda self: parts)
    env = SimpleNamespace(
        note_dependency=lambda path: None, temp_data={}, srcdir=ROOT / "chapters"
    )
    state = SimpleNamespace(document=SimpleNamespace(settings=SimpleNamespace(env=env)))
    given = ["publish-path"], {"name": "fig-path"}, StringList(["1. One step."])
    machine = SimpleNamespace(reporter=None)
    directive = Drawing("drawing", *given, 1, 0, "", state, machine)
    with pytest.raises(DirectiveError) as caught:
        directive.run()
    wanted = "the drawing publish-path must begin with a caption, a paragraph"
    assert caught.value.msg == wanted


def test_the_authors_guide_shows_every_class():
    drawn = (ROOT / "tests/site/demo/_figures/every-class.svg").read_text()
    assert set(re.findall(r"d-[\w-]+", drawn)) >= CLASSES - {"d-grid", "d-head", "d-paper"}
    guide = ROOT / "docs" / "drawing-classes.svg"
    svg = base64.b64decode(re.search(r"base64,([^\"]+)", image_html(drawn))[1]).decode()
    assert guide.read_text("utf-8") == svg + "\n", f"write `svg` into {guide}"
