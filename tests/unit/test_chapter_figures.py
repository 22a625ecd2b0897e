"""Figures of chapters, from numbers that are made up: what stands beside what."""

from types import SimpleNamespace

import matplotlib.pyplot as plt
import numpy as np
import pytest
import torch

from lmcourse import views
from lmcourse.figures import attention, dickinson_layers, preferences, scaling
from lmcourse.views import svg


@pytest.fixture
def drawn(monkeypatch):
    """What a figure is when its function shows it."""
    figures = []
    monkeypatch.setattr(plt, "show", lambda: figures.append(plt.gcf()))
    with plt.rc_context():
        views.style()
        yield figures
    plt.close("all")


@pytest.mark.parametrize(
    ("number", "label"),
    [
        (1, "10⁰"),
        (12_345, "1.2 · 10⁴"),
        (4e8, "4 · 10⁸"),
        (9.94e8, "9.9 · 10⁸"),
        (9.96e8, "10⁹"),
        (1e11, "10¹¹"),
    ],
)
def test_large_numbers_are_powers_of_ten(number, label):
    assert scaling.power_of_ten(number) == label


def test_poems_stand_in_a_page_as_text():
    texts = ["To <i>\nlie & lay", "No <b>more</b>"]
    guess = SimpleNamespace(names=["Life", "Love"], support=torch.ones(2, 2))
    shared = (texts, ["Life", "Love"], [guess], ["static"])
    poem = {"poem": 0, "words": ["lie"], "said": [[[1, 2]]]}
    words = dickinson_layers.words(*shared, [poem])
    assert words.stored == "<blockquote>To &lt;i&gt;<br>lie &amp; lay</blockquote>"
    sorting = dickinson_layers.sorting(*shared, [1, 0])
    assert sorting.stored == "<p>No &lt;b&gt;more&lt;/b&gt;<br>To &lt;i&gt;</p>"


def test_the_heads_are_redrawn_for_a_phone(drawn):
    shares = torch.full((5, 2, 6, 3), 0.1)
    shares[:, :, 3, 1] = 0.33
    attention.noun_heads(shares, shares / 2, 0.14, 3, 1)
    _, narrow, _ = svg.draw(drawn[0])
    assert all(f">{words}<" in narrow for words in ("head 1", "random weights"))


@pytest.mark.parametrize("place", [attention.endings, attention.persons])
def test_a_named_word_touches_neither_the_axis_nor_another_dot(drawn, place):
    values = np.random.default_rng(0).uniform(0.05, 0.3, (2, 20))
    groups = {
        name: {f"{name}{i}": value for i, value in enumerate(row)}
        for name, row in zip("ab", values, strict=True)
    }
    groups["a"] |= {"leftmost": 0.01, "rightmost": 0.9}
    place(groups, ["leftmost", "rightmost"])
    figure = drawn[0]
    figure.set_size_inches(svg.NARROW, 3)
    figure.draw_without_rendering()
    axes = figure.axes[0]
    assert {word.get_text() for word in axes.texts} == {"leftmost", "rightmost"}
    for word in axes.texts:
        box = word.get_window_extent()
        assert axes.bbox.x0 < box.x0
        assert box.x1 < axes.bbox.x1
        own = axes.transData.transform((groups["a"][word.get_text()], 0))
        assert min(abs(box.y0 - own[1]), abs(box.y1 - own[1])) < 30  # near its dot


def test_the_poems_names_stand_above_the_shapes(drawn):
    rng = np.random.default_rng(0)
    support = torch.tensor(rng.uniform(0, 3, (4, 6, 2)))
    guesses = [SimpleNamespace(names=["Life", "Love"], support=each) for each in support]
    texts = ["Hope is", "Because I", "A narrow", "d", "e", "f"]
    dickinson_layers.leads(guesses, ["Life", "Love"] * 3, texts, texts[:3])
    figure = drawn[0]
    figure.draw_without_rendering()
    axes = figure.axes[0]
    assert axes.get_legend().get_window_extent().y0 >= axes.bbox.y1
    assert axes.get_xticklabels()[1].get_text() == "before\nlayer 0"


def test_no_mark_of_the_prices_hides_another(drawn):
    """Squares are open and above the diamonds; the legend is not as high as the plot."""

    def row(way, lost):
        return {"way": way, "steps": 1, "echoes": 5.0, "losses": {"answers": 1 + lost}}

    ways = ["reference", "best of four", *preferences.WAYS]
    preferences.prices([[row(way, i / 10) for i, way in enumerate(ways)]])
    figure = drawn[0]
    figure.draw_without_rendering()
    axes = figure.axes[0]
    marks = {line.get_marker(): line for line in axes.lines if line.get_marker() != "None"}
    square, diamond = marks["s"], marks["D"]
    assert square.get_markerfacecolor() == "none"
    assert square.get_markersize() > diamond.get_markersize()
    assert square.get_zorder() > diamond.get_zorder()
    assert axes.get_legend().get_window_extent().height < axes.bbox.height / 2
    assert {word.get_text() for word in axes.texts} == {"best of four lines", "before"}
