"""The description of a figure: places written out, and what it makes a comparison see."""

import json

import matplotlib.pyplot as plt
import numpy as np
import pytest
import seaborn as sns

from compare import FIGURE, difference
from lmcourse.views.figures import MIME, describe


@pytest.fixture(autouse=True)
def closed_figures():
    yield
    plt.close("all")


def described(draw):
    """Return the description of one axes, from 0 to 10 and from 0 to 5."""
    figure, axes = plt.subplots()
    draw(axes)
    axes.set(xlim=(0, 10), ylim=(0, 5))
    description = describe(figure)["axes"][0]
    assert json.loads(json.dumps(description)) == description
    return description


def test_lines_are_described_in_shares_of_the_axes():
    def draw(axes):
        axes.plot([0, 5, 10], [0, 1, 5])
        axes.axvline(2)

    description = described(draw)
    assert description["limits"] == [0, 10, 0, 5]
    assert description["lines"] == [
        {"count": 3, "at": [[0, 0], [0.5, 0.2], [1, 1]]},
        {"count": 2, "at": [[0.2, 0], [0.2, 1]]},
    ]


def test_bars_are_described_by_their_corners_in_shares_of_the_axes():
    description = described(lambda axes: axes.bar([1, 4], [2, 3], width=2))
    corners = [[0, 0], [0.2, 0.4], [0.3, 0], [0.5, 0.6]]
    assert description["patches"] == [{"count": 4, "at": corners}]


def test_points_are_described_in_shares_of_the_axes_and_missing_ones_as_none():
    description = described(lambda axes: axes.scatter([2.5, np.nan], [2.5, 1]))
    assert description["points"] == [{"count": 2, "at": [[0.25, 0.5], [None, None]]}]


def test_areas_are_described_by_their_corners_in_shares_of_the_axes():
    description = described(lambda axes: axes.fill_between([0, 10], [1, 1], [4, 4]))
    (area,) = description["shapes"]
    corners = {(0, 0.2), (0, 0.8), (1, 0.2), (1, 0.8)}
    assert {tuple(place) for place in area["at"]} <= corners


def test_a_logarithmic_axis_is_read_as_it_is_drawn():
    figure, axes = plt.subplots()
    axes.loglog([1, 10, 100], [1, 10, 100])
    axes.set(xlim=(1, 100), ylim=(1, 1e4))
    (line,) = describe(figure)["axes"][0]["lines"]
    assert line["at"] == [[0, 0], [0.5, 0.25], [1, 0.5]]


def test_words_and_colours():
    figure, (left, right) = plt.subplots(1, 2)
    left.plot([1, 2], label="a bee")
    left.legend()
    left.set(xlabel="step", title="one")
    sns.heatmap([[1.0, 3.0], [2.0, 1.0]], ax=right, annot=True, cbar=False)
    one, two = describe(figure)["axes"]
    assert one["words"] == ["one", "step", "a bee"]
    assert two["words"] == ["1", "3", "2", "1"]
    assert two["images"] == [{"shape": [2, 2], "ends": [1, 3], "shares": [0, 1, 0.5, 0]}]
    picture, axes = plt.subplots()
    axes.imshow(np.full((2, 1, 3), 0.25))
    shown = describe(picture)["axes"][0]["images"]
    assert shown == [{"shape": [2, 1, 3], "colours": [0.25] * 6}]


def test_words_of_the_whole_and_at_the_ticks():
    figure, (left, right) = plt.subplots(1, 2)
    left.bar(["bee", "fly"], [1, 2], label="noise")
    right.set_yticks([0, 1], ["dark", "light"])
    figure.suptitle("both")
    figure.legend(title="what")
    description = describe(figure)
    assert description["words"] == ["what", "noise", "both"]
    one, two = description["axes"]
    assert [one["ticks"], two["ticks"]] == [["bee", "fly"], ["dark", "light"]]
    assert one["words"] == two["words"] == []
    right.set_axis_off()
    assert "ticks" not in describe(figure)["axes"][1]
    plain, axes = plt.subplots()
    axes.plot([1, 2])  # numbers at the ticks follow from the limits
    assert "words" not in describe(plain)
    assert "ticks" not in describe(plain)["axes"][0]


def output(draw):
    data = {"text/plain": "<Figure>", MIME: described(draw)}
    return [{"output_type": "display_data", "metadata": {}, "data": data}]


def curve(axes, scale=1.0, label="loss", shift=0, marks=0):
    steps = np.linspace(0, 9, 50)
    axes.plot(steps, scale * np.roll(4 * np.exp(-steps), shift), label=label)
    axes.scatter(range(marks), range(marks))
    axes.legend()


@pytest.mark.parametrize(
    "options", [{"scale": 1.1}, {"label": "lass"}, {"shift": 1}, {"marks": 3}], ids=str
)
def test_a_changed_figure_is_noticed(options):
    assert MIME == FIGURE
    assert difference(output(curve), output(lambda axes: curve(axes, **options)))


def test_what_nobody_sees_is_not():
    assert not difference(output(curve), output(lambda axes: curve(axes, scale=1.01)))
