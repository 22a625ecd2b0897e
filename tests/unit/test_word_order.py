"""Scores of a line, likeness of rows, hands of clocks, and long texts."""

import math

import numpy as np
import pytest
import torch
from torch.testing import assert_close

from lmcourse import long_texts, word_order
from lmcourse.lengths import LONG, SHORT, sonnet_ids
from lmcourse.models import load_bert

WORDS = 4


def parts():
    generator = torch.Generator().manual_seed(0)

    def normal(*shape):
        return torch.randn(*shape, generator=generator).double()

    positions = WORDS + word_order.FARTHER
    return word_order.OrderParts(
        words=normal(WORDS, 8),
        queries=normal(8, word_order.D_HEAD),
        keys=normal(8, word_order.D_HEAD),
        sinusoidal=normal(positions, 8),
        learned=normal(positions, 8),
        prices=normal(2 * WORDS - 1),
    )


def test_added_positions_are_in_the_scores():
    order_parts = parts()
    scheme = word_order.order_schemes(order_parts)["learned"]
    order, start = [2, 0, 3, 1], 5
    x = order_parts.words[order] + order_parts.learned[start : start + WORDS]
    want = (
        (x @ order_parts.queries) @ (x @ order_parts.keys).T / math.sqrt(word_order.D_HEAD)
    )
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


def score_by_hand(order_parts, scheme, a, b, m, n):
    """Return the score of word a at m with word b at n, computed with complex numbers."""
    query = (order_parts.words[a] @ order_parts.queries).numpy()
    key = (order_parts.words[b] @ order_parts.keys).numpy()
    root = math.sqrt(word_order.D_HEAD)
    if scheme == "rotary":
        speeds = 10000.0 ** -(np.arange(0, word_order.D_HEAD, 2) / word_order.D_HEAD)
        query = (query[::2] + 1j * query[1::2]) * np.exp(1j * m * speeds)
        key = (key[::2] + 1j * key[1::2]) * np.exp(1j * n * speeds)
        return (query * key.conj()).real.sum() / root
    score = query @ key / root
    if scheme == "ALiBi":
        return score - abs(m - n) / 2
    if scheme == "relative":
        return score + order_parts.prices[n - m + WORDS - 1].item()
    return score


@pytest.mark.parametrize("name", ["none", "rotary", "ALiBi", "relative"])
def test_scores_of_schemes_that_know_offsets_alone(name):
    order_parts = parts()
    scheme = word_order.order_schemes(order_parts)[name]
    for a in range(WORDS):
        for m in range(WORDS):
            for n in range(WORDS):
                b = (a + m) % WORDS
                score = word_order.pair_score(scheme, a, b, m, n).item()
                assert score == pytest.approx(score_by_hand(order_parts, name, a, b, m, n))


@pytest.mark.parametrize(("change", "counted"), [(0.004, 0), (0.006, 1), (-0.006, 1)])
def test_a_score_that_moves_by_more_than_a_two_hundredth_is_counted(change, counted):
    offsets = torch.zeros(2, 2, 3)  # of two words: the offsets -1, 0 and 1
    offsets[0, 1, 0] = change  # word 0 with word 1 before it
    assert word_order.count_changed({"offsets": offsets}, [1, 0]) == counted
    assert word_order.count_changed({"offsets": offsets}, [0, 1], start=9) == 0


def test_parts_of_a_line_are_a_bert_s():
    tokenizer, bert = load_bert(device="cpu")
    line = ["hope", "hummingbirds"]  # the second is several pieces
    order_parts = word_order.order_parts(line, tokenizer, bert)
    table = bert.embeddings.word_embeddings.weight.detach().double()
    rows = []
    for word in line:
        subword_ids = tokenizer.convert_tokens_to_ids(tokenizer.tokenize(word))
        rows.append(table[subword_ids].mean(0))
    assert len(subword_ids) > 1
    assert_same_but_for_size(order_parts.words, torch.stack(rows))
    tokens = len(line) + 20
    at = bert.embeddings.position_embeddings.weight.detach().double()[:tokens]
    assert_same_but_for_size(order_parts.learned, at)
    angles = torch.arange(tokens)[:, None] * 10000.0 ** -(torch.arange(0, 384, 2) / 384)
    assert_same_but_for_size(
        order_parts.sinusoidal[:, ::2], angles.sin().double(), of_one=False
    )
    assert_same_but_for_size(
        order_parts.sinusoidal[:, 1::2], angles.cos().double(), of_one=False
    )
    for projection in (order_parts.queries, order_parts.keys):
        assert projection.shape == (384, 12)
        assert projection.std().item() == pytest.approx(384**-0.5, rel=0.05)
    assert not torch.equal(order_parts.queries, order_parts.keys)
    assert order_parts.prices.shape == (3,)


def assert_same_but_for_size(values, expected, of_one=True):
    """Say whether vectors are others times one positive number; maybe of deviation 1."""
    assert values.shape == expected.shape
    assert_close(values / values.norm(), expected / expected.norm(), rtol=1e-4, atol=1e-6)
    if of_one:
        assert values.std().item() == pytest.approx(1)


def test_rows_are_shuffled_and_none_is_lost():
    table = torch.arange(60).view(30, 2)
    shuffled = word_order.shuffled_rows(table)
    assert sorted(shuffled.tolist()) == table.tolist()
    assert not torch.equal(shuffled, table)
    assert torch.equal(shuffled, word_order.shuffled_rows(table))
    assert not torch.equal(shuffled, word_order.shuffled_rows(table, seed=4))


def test_hands_are_points_that_turn_at_their_speeds():
    query, key, speeds = word_order.hands()
    assert speeds.tolist() == pytest.approx([10000 ** (-i / 6) for i in range(6)])
    points = [torch.complex(each[:, 0], each[:, 1]) for each in (query, key)]
    halves = points[0].angle() / math.pi
    assert halves.tolist() == pytest.approx([0.9, 0.4, -0.8, 0.2, 0.7, 0.5])
    assert_close(points[1], points[0] * torch.exp(3j * speeds))
    scores = word_order.dial_scores()
    assert scores.shape == (41, 6)
    for distance in (0, 1, 40):
        turned = points[1] * torch.exp(-1j * distance * speeds)
        assert_close(scores[distance], (points[0] * turned.conj()).real.cumsum(0))


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
