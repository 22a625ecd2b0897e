"""The parts of the studies of *backpropagation*, on small numbers worked out by hand."""

import numpy as np
import pytest

from lmcourse.numpy_nn.decoder import mean_distances
from studies.backpropagation import guesses, starts, vector_lengths


def test_the_best_of_some_guesses_is_that_of_each_length():
    rows = [{"random": [[1.0, 5.0], [3.0, 2.0], [2.0, 9.0]]}]
    assert guesses.best_guesses(rows).tolist() == [[3.0, 9.0]]
    assert guesses.best_guesses(rows, 2).tolist() == [[3.0, 5.0]]


def test_a_guess_moves_what_its_kind_says():
    names = ["dictionary.table", "blocks.modules.0.norm_1.weight", "output.bias"]
    moved = {
        kind: [name for name in names if guesses.is_guessed(name, kind)]
        for kind in guesses.SETTINGS["guesses"]
    }
    assert moved == {
        "all": names,
        "no vectors": names[1:],
        "output biases": names[2:],
    }


def test_distances_are_those_of_the_way_and_mark():
    marks = vector_lengths.SETTINGS["marks"]
    back = [[float(mark), 3.0] for mark in marks]
    rows = [{"way": "swapped", "back": back}, {"way": "as it is", "back": 2 * back}]
    assert vector_lengths.distances(rows, "swapped", marks[1]).tolist() == [[marks[1], 3]]


def test_a_gap_is_that_of_means_over_words():
    ones = [{"sonnets": [[6.0, 2], [9.0, 3]]}, {"sonnets": [[8.0, 2], [11.0, 3]]}]
    others = [{"sonnets": [[4.0, 2], [7.0, 3]]}]
    mean, (low, high) = starts.gap(ones, others)
    assert mean == pytest.approx((7 + 10 - 4 - 7) / 5)
    assert low == pytest.approx(1.0)
    assert high == pytest.approx(1.5)


def test_the_start_at_the_word_frequencies_predicts_them():
    _, _, texts, _, known = starts.load_parts()
    model = starts.begin("frequencies", seed=0)
    logits = model.forward(texts["training"][:7])[-1]
    shares = np.exp(logits) / np.exp(logits).sum()
    often = np.bincount(texts["training"], minlength=len(shares)) / len(texts["training"])
    assert np.abs(shares - often)[:known].sum() < 0.4
    flat = np.exp(starts.begin("random", seed=0).forward(texts["training"][:7])[-1])
    assert np.abs(flat / flat.sum() - often)[:known].sum() > 1


def test_the_farthest_word_is_named_first():
    looks = [[[0.0, 0.0, 1.0], [1.0, 0.0, 0.0]]]  # (layers, heads, tokens)
    assert mean_distances([{"states": [{"looks": looks}]}]).tolist() == [[[1.0]]]
