"""Scores of a line, likeness of rows, hands of clocks, and long texts."""

import math

import numpy as np
import pytest
import torch
from torch.testing import assert_close

from lmcourse import long_texts, word_order
from lmcourse.lengths import LONG, SHORT, sonnet_ids

WORDS = 4


def parts():
    generator = torch.Generator().manual_seed(0)

    def normal(*shape):
        return torch.randn(*shape, generator=generator).double()

    places = WORDS + word_order.FARTHER
    return word_order.OrderParts(
        words=normal(WORDS, 8),
        queries=normal(8, word_order.D_HEAD),
        keys=normal(8, word_order.D_HEAD),
        sinusoidal=normal(places, 8),
        learned=normal(places, 8),
        prices=normal(2 * WORDS - 1),
    )


def test_added_positions_are_in_the_scores():
    made = parts()
    scheme = word_order.order_schemes(made)["learned"]
    order, start = [2, 0, 3, 1], 5
    x = made.words[order] + made.learned[start : start + WORDS]
    want = (x @ made.queries) @ (x @ made.keys).T / math.sqrt(word_order.D_HEAD)
    got = [
        [
            word_order.pair_score(scheme, a, b, m + start, n + start)
            for n, b in enumerate(order)
        ]
        for m, a in enumerate(order)
    ]
    assert_close(torch.tensor(got).double(), want)


def test_only_what_depends_on_positions_changes():
    schemes = word_order.order_schemes(parts())
    same, swapped = [0, 1, 2, 3], [0, 3, 2, 1]
    moved = {name: word_order.count_changed(s, swapped) for name, s in schemes.items()}
    later = {name: word_order.count_changed(s, same, 7) for name, s in schemes.items()}
    assert moved["none"] == 0 < min(n for name, n in moved.items() if name != "none")
    assert {name for name, n in later.items() if n} == {"sinusoidal", "learned"}


def test_mean_cosines_are_those_of_all_pairs_of_rows():
    table = torch.randn(9, 5, generator=torch.Generator().manual_seed(1))
    rows = table.double().numpy()
    for apart, got in enumerate(word_order.mean_cosines(table, 4)):
        pairs = [(rows[i], rows[i + apart]) for i in range(9 - apart)]
        cosines = [a @ b / np.linalg.norm(a) / np.linalg.norm(b) for a, b in pairs]
        assert got == pytest.approx(np.mean(cosines))


def test_all_hands_agree_three_tokens_back():
    scores = word_order.dial_scores()
    assert_close(scores[word_order.BEHIND], torch.arange(1, 7).double())
    assert scores.max() < 6 + 1e-9


def test_a_guess_is_the_entropy_of_the_characters():
    training, _, vocab_size = sonnet_ids()
    counts = np.bincount(training.numpy(), minlength=vocab_size)
    shares = counts[counts > 0] / counts.sum()
    assert long_texts.guess_loss() == pytest.approx(-(shares * np.log(shares)).sum())


@pytest.mark.parametrize("base", long_texts.BASES)
def test_slowing_the_pairs_that_did_not_come_round_leaves_nothing_new(base):
    assert not long_texts.angles_met(base, "nothing").all()
    assert long_texts.angles_met(base, "pairs that did not").all()
    usual = long_texts.slowed(base, "nothing")
    changed = long_texts.slowed(base, "pairs that did not") != usual
    assert torch.equal(changed, usual * SHORT < 2 * math.pi)
    assert_close(long_texts.slowed(base, "all pairs"), usual / (LONG / SHORT))
    larger = usual / long_texts.slowed(base, "larger base")
    assert_close(larger[[0, -1]], torch.tensor([1.0, 4.0]).double())


def test_near_and_far_are_the_first_and_the_last_quarter():
    run = {"loss": [[0] * 8, [1, 1, 5, 5, 5, 5, 2, 4]], "ways": {"new": [0] * 6 + [7, 9]}}
    assert long_texts.near_loss(run) == 1
    assert long_texts.far_loss(run) == 3
    assert long_texts.far_loss(run, "new") == 8
