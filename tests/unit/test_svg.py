"""Static figures as SVG: real words, two widths, the same bytes every time."""

import re
from io import StringIO
from types import SimpleNamespace

import matplotlib.pyplot as plt
import numpy as np
import pytest

from lmbook.pages.renderer import figure_node
from lmcourse import views
from lmcourse.views import figures, svg


@pytest.fixture(autouse=True)
def styled():
    with plt.rc_context():
        views.style()
        yield
    plt.close("all")


def panels(count=2, names=("bee", "fly"), size=(9, 3)):
    figure, axes = plt.subplots(1, count, figsize=size, sharey=True, squeeze=False)
    for number, each in enumerate(axes[0]):
        each.bar(range(len(names)), range(1, len(names) + 1))
        each.set_xticks(range(len(names)), names, fontsize=6)
        each.set(title=f"panel {number}")
    return figure


def width(text):
    """Return how wide a picture is, in inches."""
    return float(re.search(r'<svg[^>]* width="([\d.]+)pt"', text)[1]) / 72


def sizes(text):
    return [
        float(size) for size in re.findall(r"font(?:-size)?: (?:\w+ )*([\d.]+)px", text)
    ]


def test_a_figure_has_words_and_two_widths():
    wide, narrow, stacked = svg.draw(panels())
    for text, most in ((wide, svg.WIDE), (narrow, svg.NARROW)):
        assert {"bee", "fly", "panel 0", "panel 1"} <= {
            *re.findall(r">([^<>]+)</text>", text)
        }
        assert min(sizes(text)) >= svg.LEAST
        assert width(text) <= most + 0.2
    assert stacked
    heights = [
        float(h) for h in re.findall(r'<svg[^>]* height="([\d.]+)pt"', wide + narrow)
    ]
    assert heights[1] > 1.5 * heights[0]


def test_stacked_panels_have_room_for_all_names_of_their_rows():
    names = [f"row {number}" for number in range(15)]
    figure, both = plt.subplots(1, 2, figsize=(7.2, 4.6), sharey=True)
    for axes in both:
        axes.plot(range(15), range(15), "o")
    both[0].set_yticks(range(15), names)
    _, narrow, stacked = svg.draw(figure)
    assert stacked
    for name in names:
        assert narrow.count(f">{name}</text>") == 2


def test_one_panel_is_not_stacked_and_keeps_its_size():
    figure = panels(1)
    assert svg.draw(figure)[2] is False
    assert tuple(figure.get_size_inches()) == (9, 3)


def shared_panels():
    """Two panels that share a y axis, whose labels the second one hides."""
    return panels(2)


def cloud():
    figure, axes = plt.subplots(layout="constrained")
    points = axes.scatter(*np.random.default_rng(0).random((2, 3000)), label="bees")
    axes.legend(fontsize=5)
    figure.colorbar(points)
    return figure


def placed_by_hand():
    figure, axes = plt.subplots(1, 2, figsize=(9, 3))
    axes[1].set_position((0.6, 0.3, 0.2, 0.5))
    axes[0].set_aspect("equal")
    axes[0].tick_params(labelbottom=False)
    axes[0].set_title("small", fontsize=4)
    return figure


def as_saved(figure):
    """Return a figure as matplotlib itself draws it: its text, and the numbers in that."""
    file = StringIO()
    figure.savefig(file, format="svg", metadata={"Date": None})
    text = re.sub(r"data:image/png[^\"]*|#?\bm?[pm]?[0-9a-f]{9,}", "", file.getvalue())
    number = r"-?\d+(?:\.\d+)?(?:e-?\d+)?"
    return re.sub(number, "0", text), np.array(re.findall(number, text), dtype=float)


def same_picture(one, other):
    """Say whether two are the same to a fifth of a point: a layout settles by and by."""
    return one[0] == other[0] and np.allclose(one[1], other[1], rtol=0, atol=0.2)


@pytest.mark.parametrize("make", [shared_panels, cloud, placed_by_hand])
def test_showing_a_figure_does_not_change_it(make):
    figure = make()
    before = as_saved(figure)
    figures._shown(figure)
    assert same_picture(as_saved(figure), before)


def test_a_figure_that_cannot_be_drawn_is_left_as_it_was(monkeypatch):
    figure = panels()
    before = as_saved(figure)

    def fail(figure):
        raise OSError("no room")

    with monkeypatch.context() as patch:
        patch.setattr(svg, "_svg", fail)
        with pytest.raises(OSError, match="no room"):
            svg.draw(figure)
    assert same_picture(as_saved(figure), before)


def test_the_same_figure_is_the_same_text():
    first, again = svg.draw(panels()), svg.draw(panels())
    assert first == again
    assert not re.search(r"<dc:date|<metadata|\d{4}-\d\d-\d\d|Matplotlib v", first[0])


@pytest.mark.parametrize("kind", ["scatter", "pcolormesh"])
def test_many_marks_are_kept_as_pixels(kind):
    figure, axes = plt.subplots()
    values = np.random.default_rng(0).random((2, 3000))
    if kind == "scatter":
        axes.scatter(*values)
    else:
        axes.pcolormesh(values.reshape(60, 100))
    wide, *_ = svg.draw(figure)
    assert "data:image/png" in wide
    assert len(wide) < 300_000


def output(figure, alt="A bee <b>"):
    data, metadata = figures._shown(figure)
    cell = {"mystnb": {"image": {"alt": alt}}}
    text = data[figures.SVG]
    return SimpleNamespace(content=text, output_metadata=metadata, cell_metadata=cell)


def test_on_the_page_it_is_inline_and_no_id_clashes():
    one, two = (figure_node(output(panels(count))).astext() for count in (2, 3))
    ids = re.findall(r'\sid="([^"]+)"', one + two)
    assert len(ids) == len(set(ids))
    used = re.findall(r'(?:url\(|href=")#([\w-]+)', one + two)
    assert used
    assert {*used} <= {*ids}
    assert 'aria-label="A bee &lt;b&gt;"' in one
    assert one.count("<svg") == 2
    assert "lm-stacked" in one


def test_words_never_lie_on_words_for_the_sake_of_a_phone():
    """What has no narrow version scrolls, and takes the focus."""
    names = [f"a rather long name {i}" for i in range(3)]
    markup = figure_node(output(panels(1, names, (7, 3)))).astext()
    assert 'lm-scrolls" tabindex="0"' in markup
    assert markup.count("<svg") == 1


@pytest.mark.parametrize(
    "harm",
    ["<script>harm()</script>", '<g onclick="harm()"/>', '<a href="https://a.example"/>'],
)
def test_a_figure_that_would_do_something_is_refused(harm):
    figure = output(panels())
    figure.content = figure.content.replace("</svg>", f"{harm}</svg>")
    with pytest.raises(ValueError, match="a script or an address") as refused:
        figure_node(figure)
    assert harm[-8:] in str(refused.value)  # where it stands
