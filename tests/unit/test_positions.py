"""Positions against transformers, complex numbers, loops and the papers' properties."""

import cmath
import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.testing import assert_close
from transformers.models.bloom.modeling_bloom import build_alibi_tensor
from transformers.models.gptj import modeling_gptj as gptj
from transformers.models.llama import modeling_llama as llama
from transformers.models.t5.modeling_t5 import T5Attention

from lmcourse.positions import (
    LearnedPositions,
    RelativeBias,
    alibi_bias,
    alibi_slopes,
    frequencies,
    half_to_interleaved,
    interleaved_to_half,
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


@pytest.mark.parametrize(("tokens", "d_model"), [(7, 2), (50, 6), (129, 20), (123_457, 4)])
def test_sinusoidal_is_the_formula(tokens, d_model):
    table = sinusoidal(tokens, d_model)
    assert table.dtype == torch.float32
    assert table.shape == (tokens, d_model)
    for position in (0, 1, tokens - 1):
        for dimension in range(d_model):
            wave = math.cos if dimension % 2 else math.sin
            want = wave(angle(position, dimension // 2, d_model))
            assert table[position, dimension].item() == pytest.approx(want, abs=1e-6)


@pytest.mark.parametrize(
    ("refused", "said"),
    [
        (lambda: frequencies(0), "pairs"),
        (lambda: sinusoidal(5, 7), "pairs"),
        (lambda: rotate(torch.ones(3, 5)), "pairs"),
        (lambda: rotate(torch.ones(3, 4), layout="halves"), "'halves'"),
        (lambda: rotate(torch.ones(3, 4), 5), "for 3 tokens"),
        (lambda: rotate(torch.ones(3, 4), [1, 2]), "for 3 tokens"),
        (lambda: rotate(torch.ones(3, 4), torch.ones(1, 3)), "for 3 tokens"),
        (lambda: LearnedPositions(9, 4)(10), "10 tokens, but only 9 positions"),
        (lambda: alibi_slopes(0), "not 0"),
        (lambda: relative_buckets(40, 32, 16), "reach = 16 is not beyond"),
        (lambda: relative_buckets(40, 1), "no whole number from two"),
        (lambda: relative_buckets(40, 2.5), "no whole number from two"),
    ],
)
def test_what_makes_no_positions_is_refused(refused, said):
    with pytest.raises(ValueError, match=said):
        refused()


@pytest.mark.parametrize("layout", ["half", "interleaved"])
def test_layouts_are_llama_s_and_gpt_j_s(layout):
    x = sample()
    angles = [[angle(p, i, D_HEAD) for i in range(D_HEAD // 2)] for p in range(TOKENS)]
    angles = torch.tensor(angles, dtype=torch.float64)[None]
    if layout == "half":
        both = torch.cat([angles, angles], -1)
        want, _ = llama.apply_rotary_pos_emb(x, x, both.cos(), both.sin())
    else:
        want = gptj.apply_rotary_pos_emb(x.transpose(1, 2), angles.sin(), angles.cos())
        want = want.transpose(1, 2)
    assert_close(rotate(x, layout=layout), want, rtol=0, atol=1e-12)
    near(rotate(x.float(), layout=layout), want.float())


@settings(deadline=None, max_examples=40)
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
    got = rotate(x, [position], base=base)[0]
    for i in range(pairs):
        turn = cmath.exp(1j * angle(position, i, 2 * pairs, base))
        want = complex(*values[2 * i : 2 * i + 2]) * turn
        assert complex(*got[2 * i : 2 * i + 2].tolist()) == pytest.approx(want, abs=1e-8)


def test_layouts_convert_into_each_other():
    assert interleaved_to_half(torch.arange(6)).tolist() == [0, 2, 4, 1, 3, 5]
    assert half_to_interleaved(torch.arange(6)).tolist() == [0, 3, 1, 4, 2, 5]


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


def test_relative_bias_is_looked_up_by_query_key_and_head():
    torch.manual_seed(4)
    bias = RelativeBias(HEADS, buckets=6, reach=10)
    with torch.no_grad():
        bias.table.normal_()
    got, bucket = bias(TOKENS), relative_buckets(TOKENS, 6, 10)
    assert got.shape == (HEADS, TOKENS, TOKENS)
    for head, query, key in ((0, 3, 1), (1, 10, 0), (2, 1, 9)):
        assert got[head, query, key] == bias.table[bucket[query, key], head]
    got.sum().backward()
    assert_close(bias.table.grad[:, 0], bucket.flatten().bincount(minlength=6).float())
