"""Positions against transformers, complex numbers, loops and the papers' properties."""

import cmath
import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.testing import assert_close
from transformers.models.bloom.modeling_bloom import build_alibi_tensor
from transformers.models.llama import modeling_llama as llama
from transformers.models.t5.modeling_t5 import T5Attention

from lmcourse.lengths import PositionModel, near_mask, sample_windows
from lmcourse.positions import (
    alibi_bias,
    alibi_slopes,
    frequencies,
    relative_buckets,
    rotate,
    sinusoidal,
)
from near import near

BATCH, HEADS, TOKENS, D_HEAD = 2, 3, 11, 8


def sample(dtype=torch.float64, tokens=TOKENS):
    generator = torch.Generator().manual_seed(5)
    return torch.randn(BATCH, HEADS, tokens, D_HEAD, generator=generator).to(dtype)


def angle(position, pair, width, base=10000.0):
    return position / base ** (2 * pair / width)


@pytest.mark.parametrize(("tokens", "d_model"), [(7, 2), (50, 6), (129, 20)])
def test_sinusoidal_is_the_formula(tokens, d_model):
    table = sinusoidal(tokens, d_model)
    assert table.dtype == torch.float32
    assert table.shape == (tokens, d_model)
    for position in (0, 1, tokens - 1):
        for dimension in range(d_model):
            wave = math.cos if dimension % 2 else math.sin
            want = wave(angle(position, dimension // 2, d_model))
            assert table[position, dimension].item() == pytest.approx(want, abs=1e-6)


def test_sinusoidal_is_exact_far_out():
    want = [f(123_456 / 100) for f in (math.sin, math.cos)]
    got = sinusoidal(123_457, 4)[-1, 2:]
    assert_close(got, torch.tensor(want), rtol=0, atol=1e-6)


@pytest.mark.parametrize(
    "refused",
    [
        lambda: frequencies(0),
        lambda: frequencies(-2),
        lambda: sinusoidal(5, 7),
        lambda: rotate(torch.ones(3, 5)),
    ],
)
def test_a_width_that_makes_no_pairs_is_refused(refused):
    with pytest.raises(ValueError, match="pairs"):
        refused()


def test_half_layout_is_llama_s():
    x = sample()
    angles = [[angle(p, i, D_HEAD) for i in range(D_HEAD // 2)] * 2 for p in range(TOKENS)]
    angles = torch.tensor(angles, dtype=torch.float64)[None]
    want, _ = llama.apply_rotary_pos_emb(x, x, angles.cos(), angles.sin())
    assert_close(rotate(x, layout="half"), want, rtol=0, atol=1e-12)
    near(rotate(x.float(), layout="half"), want.float())


def test_an_unknown_layout_is_named():
    with pytest.raises(ValueError, match="'halves'"):
        rotate(sample(), layout="halves")


@settings(max_examples=40)
@given(
    position=st.integers(0, 100_000),
    base=st.floats(10, 1e6),
    pairs=st.integers(1, 5),
    data=st.data(),
)
def test_a_pair_turns_like_a_complex_number(position, base, pairs, data):
    number = st.floats(-10, 10)
    values = data.draw(st.lists(number, min_size=2 * pairs, max_size=2 * pairs))
    x = torch.tensor([values], dtype=torch.float64)
    got = rotate(x, torch.tensor([position]), base=base)[0]
    for i in range(pairs):
        turn = cmath.exp(1j * angle(position, i, 2 * pairs, base))
        want = complex(*values[2 * i : 2 * i + 2]) * turn
        assert complex(*got[2 * i : 2 * i + 2].tolist()) == pytest.approx(want, abs=1e-8)


@pytest.mark.parametrize("heads", [1, 2, 3, 4, 6, 7, 8, 12, 16, 20])
def test_alibi_is_bloom_s_up_to_a_constant_in_each_row(heads):
    tokens = 9
    theirs = build_alibi_tensor(torch.ones(1, tokens), heads, torch.float32)
    theirs = theirs.view(heads, 1, tokens)
    ours = alibi_bias(heads, tokens)
    assert ours.shape == (heads, tokens, tokens)
    for query in range(tokens):
        seen = slice(0, query + 1)
        want = theirs[:, 0, seen] - theirs[:, 0, query : query + 1]
        near(ours[:, query, seen], want)
    assert_close(ours, ours.mT)  # as far ahead as behind


def test_alibi_slopes_of_the_paper():
    assert alibi_slopes(8).tolist() == [2.0**-h for h in range(1, 9)]
    with pytest.raises(ValueError, match="not 0"):
        alibi_slopes(0)


@pytest.mark.parametrize(("buckets", "reach"), [(32, 128), (16, 24), (8, 50)])
def test_buckets_are_t5_s(buckets, reach):
    position = torch.arange(300)
    want = T5Attention._relative_position_bucket(
        position - position[:, None],
        bidirectional=False,
        num_buckets=buckets,
        max_distance=reach,
    )
    assert torch.equal(relative_buckets(300, buckets, reach), want)


@pytest.mark.parametrize("at", [[5], [[0, 1, 2, 3]], 5, list(range(5))])
def test_a_position_for_each_token_or_an_error(at):
    for positions in (at, torch.tensor(at)):  # a bare number, too, is told what is wrong
        with pytest.raises(ValueError, match="for 4 tokens"):
            rotate(torch.ones(2, 4, 8), positions)


def test_positions_may_be_a_list():
    x = torch.ones(2, 4, 8).double()
    assert torch.equal(rotate(x, [3, 4, 5, 6]), rotate(x, torch.arange(3, 7)))


def test_prices_are_looked_up_by_query_key_and_head():
    model = PositionModel("relative", reach=40)
    with torch.no_grad():
        model.relative.normal_()
    bias = model.add_positions(torch.zeros(1, TOKENS, 48))[1]["bias"]
    bucket = relative_buckets(TOKENS, 32, 40)
    for head, query, key in ((0, 3, 1), (1, 10, 0), (2, 1, 9)):
        assert bias[head, query, key] == model.relative[bucket[query, key], head]


def test_near_keys_are_as_many_as_in_training():
    assert near_mask(9, 4).sum(-1).tolist() == [1, 2, 3, 4, 4, 4, 4, 4, 4]


def test_windows_ask_for_the_next_and_for_three_back():
    ids, (following, back) = sample_windows(
        torch.arange(99), 5, 7, torch.Generator().manual_seed(1)
    )
    assert ids.shape == (5, 7)
    assert torch.equal(following, ids + 1)
    assert torch.equal(back, ids - 3)
