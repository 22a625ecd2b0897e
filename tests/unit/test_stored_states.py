"""What a notebook shows of views that run on the site alone: their stored states."""

import math

import bs4
import pytest
import torch

from lmcourse import views, vision
from lmcourse.data import stored
from lmcourse.figures import backpropagation, beyond_text, fine_tuning, positional_encoding
from lmcourse.numbers import format_number


def read(view):
    return bs4.BeautifulSoup(view._repr_html_(), "html.parser")


def rows_of(page):
    return [[cell.text for cell in row.select("th, td")] for row in page.select("tbody tr")]


def test_the_graph_has_each_value_and_how_the_loss_follows_it():
    def loss(q, k, v, t):
        return (v / (1 + math.exp(-q * k)) - t) ** 2

    view = backpropagation.graph()
    start, small = view.data["start"], 1e-6
    shown = {name: (value, slope) for name, value, slope in rows_of(read(view))}
    assert shown["L"] == (f"{loss(**start):.2f}", "1.00")
    for name, value in start.items():
        slope = (loss(**start | {name: value + small}) - loss(**start)) / small
        assert shown[name] == (f"{value:.2f}", format_number(slope, ".2f"))


def test_steps_of_a_training_are_written_with_a_comma():
    view = backpropagation.training_run(stored("backpropagation"))
    labels = [label.text.strip() for label in read(view).select("label")]
    assert labels[0] == "0 (random weights)"
    assert labels[-1] == "2,000"
    assert "[1,000: Loss on the sonnets" in view.plain
    assert "Bar charts after 2,000 steps." in view.stored


@pytest.mark.parametrize("seed", range(4))
def test_which_list_is_the_neurons_is_told_in_a_fold(seed):
    with pytest.raises(ValueError, match="one neuron or more"):
        views.neurons({}, seed=seed)
    view = views.neurons({"neuron 7": (["an a", "a"], ["of c", "d"])}, seed=seed)
    page, pair = read(view), view.data["pairs"][0]
    answer = page.details.extract().p.text
    assert answer.startswith(f"{'AB'[pair['neuron']]} is neuron 7’s: 2 of its 2 texts end")
    assert "neuron 7" not in page.text
    assert "shuffled" not in page.text
    assert [row[1:] for row in rows_of(page)] == [
        *map(list, zip(*pair["lists"], strict=True))
    ]


def test_dials_are_drawn_and_add_up_to_the_score():
    page = read(positional_encoding.dials())
    parts = [float(text.text.replace("−", "-")) for text in page.svg.select("text")]
    data = positional_encoding.dials().data
    turns = [data["behind"] * speed for speed in data["speeds"]]
    want = [
        math.cos(a) * (q[0] * k[0] + q[1] * k[1])
        + math.sin(a) * (q[0] * k[1] - q[1] * k[0])
        for a, q, k in zip(turns, data["query"], data["key"], strict=True)
    ]
    assert parts == pytest.approx(want, abs=0.01)
    assert not any("-" in cell for row in rows_of(page) for cell in row)
    scores = {
        row[0]: [float(x.replace("−", "-")) for x in row[1:]] for row in rows_of(page)
    }
    assert scores["3"] == [1, 2, 6]  # made for three tokens back
    assert len(page.svg.select("circle")) == len(data["speeds"])


def test_losses_at_the_far_end_have_a_row_for_each_way_the_trained_models_first():
    results = stored("positional-encoding")["results"]
    view = positional_encoding.repairs_view(results)
    page, (bases, ways, _) = read(view), view.data["controls"]
    rows = {name: [float(x) for x in numbers] for name, *numbers in rows_of(page)}
    assert [*rows] == ways["values"]
    cases = iter(view.data["cases"])
    for i, _ in enumerate(bases["values"]):
        for way in ways["values"]:
            for column in (i, i + len(bases["values"])):
                assert rows[way][column] == pytest.approx(next(cases)["far"], abs=0.006)
    heads = [cell.text for cell in page.select_one("thead tr").select("th")]
    assert heads[1:] == ["trained", "random weights"]


def test_a_digit_is_drawn_where_its_ink_is():
    image = torch.zeros(1, 8, 8)
    image[0, 2, 5], image[0, 7, 0] = 1.0, 0.5
    with torch.no_grad():
        page = read(beyond_text.digits(vision.VisionTransformer().eval(), image, [0]))
    inked = [(r["x"], r["y"], r["fill-opacity"]) for r in page.svg.select("[fill-opacity]")]
    assert inked == [("5", "2", "1.00"), ("0", "7", "0.50")]


def test_two_pieces_are_whole_and_coloured_before_and_after():
    piece = "An <a>,\na bee"
    sure, unsure = [[100.0, []]] * len(piece), [[0.01, []]] * len(piece)
    losses = {"Dickinson validation": 2.0, "Shakespeare validation": 1.0}
    moments = [{"D": unsure} | losses, {"D": sure} | losses]
    page = read(fine_tuning.surprise({"D": piece}, {"all weights": moments}, [0, 9]))
    before, after = page.select("p[style*=pre-wrap]")
    assert before.text == after.text == piece
    assert [span["style"][-6:-1] for span in (before.span, after.span)] == [
        " 0.62",
        " 0.00",
    ]
