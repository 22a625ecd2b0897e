"""Attention against PyTorch, and its own invariants."""

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from lmcourse.attention import MultiHeadAttention, attention, causal_mask, padding_mask
from near import near

BATCH, HEADS, QUERIES, KEYS, D_HEAD, D_VALUE = 2, 3, 5, 7, 4, 6
dtypes = pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)


@pytest.fixture
def generator():
    return torch.Generator().manual_seed(0)


def qkv(generator, dtype=torch.float64):
    shapes = [(QUERIES, D_HEAD), (KEYS, D_HEAD), (KEYS, D_VALUE)]
    return [
        torch.randn(BATCH, HEADS, *shape, generator=generator).to(dtype) for shape in shapes
    ]


def some_mask(generator, *shape):
    mask = torch.rand(*shape, generator=generator) < 0.5
    mask[..., 0] = True  # no row allows nothing
    return mask


@dtypes
@pytest.mark.parametrize(
    "shape", [(QUERIES, KEYS), (BATCH, 1, 1, KEYS), (BATCH, HEADS, QUERIES, KEYS)], ids=str
)
def test_mask_and_bias_agree_with_torchs_additive_mask(generator, dtype, shape):
    query, key, value = qkv(generator, dtype)
    mask = some_mask(generator, *shape)
    bias = torch.randn(HEADS, QUERIES, KEYS, generator=generator).to(dtype)
    output, _ = attention(query, key, value, mask, bias=bias)
    additive = torch.where(mask, bias, -torch.inf)
    near(output, F.scaled_dot_product_attention(query, key, value, attn_mask=additive))


@dtypes
@pytest.mark.parametrize(
    "shape", [(QUERIES, KEYS), (BATCH, 1, 1, KEYS), (BATCH, HEADS, QUERIES, KEYS)], ids=str
)
def test_masked_weights_are_zero_and_the_others_sum_to_one(generator, dtype, shape):
    query, key, value = qkv(generator, dtype)
    mask = some_mask(generator, *shape)
    bias = torch.randn(HEADS, QUERIES, KEYS, generator=generator).to(dtype)
    _, weights = attention(query, key, value, mask, bias=bias)
    assert weights.shape == (BATCH, HEADS, QUERIES, KEYS)
    near(weights.sum(-1), torch.ones(BATCH, HEADS, QUERIES, dtype=dtype))
    assert (weights.masked_select(~mask) == 0).all()


def test_refuses_what_has_no_answer(generator):
    query, key, value = qkv(generator)
    mask = torch.ones(QUERIES, KEYS, dtype=torch.bool)
    mask[2] = False
    with pytest.raises(ValueError, match="allows nothing"):
        attention(query, key, value, mask)
    with pytest.raises(ValueError, match="allows nothing"):  # not by the bias either
        attention(query, key, value, bias=torch.where(mask, 0.0, -torch.inf))
    with pytest.raises(ValueError, match="boolean"):
        attention(query, key, value, mask.long())
    with pytest.raises(ValueError, match="d_head 4, key has 3"):
        attention(query, key[..., :3], value)
    with pytest.raises(ValueError, match="no keys"):
        attention(query, key[..., :0, :], value[..., :0, :])
    for bias in (torch.inf, torch.nan):
        added = torch.zeros(QUERIES, KEYS)
        added[1, 2] = bias
        with pytest.raises(ValueError, match=r"holds \+inf or NaN"):
            attention(query, key, value, bias=added)
    for heads in (0, 5):
        with pytest.raises(ValueError, match=f"{heads} heads do not divide"):
            MultiHeadAttention(12, heads)


def test_causal_mask_is_past_and_present():
    want = torch.tensor([[j <= i for j in range(KEYS)] for i in range(KEYS)])
    assert torch.equal(causal_mask(KEYS), want)


def test_padding_does_not_change_the_tokens_before_it(generator):
    layer = MultiHeadAttention(12, HEADS).double()
    x = torch.randn(BATCH, KEYS, 12, generator=generator, dtype=torch.float64)
    present = torch.ones(BATCH, KEYS, dtype=torch.long)
    present[1, 4:] = 0
    mask = padding_mask(present)
    assert mask.shape == (BATCH, 1, 1, KEYS)
    assert mask.dtype == torch.bool
    padded, _ = layer(x, mask=mask)
    near(padded[1, :4], layer(x[1:, :4])[0][0])
    near(padded[0], layer(x)[0][0])


def copy_attention(ours, theirs):
    """Give our attention the weights of an `nn.MultiheadAttention`."""
    weight, bias = theirs.in_proj_weight.chunk(3), theirs.in_proj_bias.chunk(3)
    parts = (ours.query, ours.key, ours.value)
    for layer, w, b in zip(parts, weight, bias, strict=True):
        layer.load_state_dict({"weight": w, "bias": b})
    ours.output.load_state_dict(theirs.out_proj.state_dict())


def from_torch(theirs):
    ours = MultiHeadAttention(theirs.embed_dim, theirs.num_heads)
    copy_attention(ours, theirs)
    return ours.to(theirs.in_proj_weight.dtype)


@dtypes
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("cross", [False, True])
def test_agrees_with_torchs_module(generator, dtype, masked, cross):
    d_model = 12
    theirs = nn.MultiheadAttention(d_model, HEADS, batch_first=True)
    nn.init.normal_(theirs.in_proj_bias, generator=generator)
    nn.init.normal_(theirs.out_proj.bias, generator=generator)
    theirs = theirs.to(dtype)
    x = torch.randn(BATCH, QUERIES, d_model, generator=generator).to(dtype)
    memory = torch.randn(BATCH, KEYS, d_model, generator=generator).to(dtype)
    source = memory if cross else x
    mask = some_mask(generator, QUERIES, source.shape[1]) if masked else None
    output, weights = from_torch(theirs)(x, memory if cross else None, mask=mask)
    forbidden = None if mask is None else ~mask
    want, want_weights = theirs(
        x, source, source, attn_mask=forbidden, average_attn_weights=False
    )
    near(output, want)
    near(weights, want_weights)


def test_rotate_and_bias_reach_the_scores(generator):
    layer = MultiHeadAttention(12, HEADS).double()
    x = torch.randn(BATCH, QUERIES, 12, generator=generator, dtype=torch.float64)
    bias = torch.randn(HEADS, QUERIES, QUERIES, generator=generator, dtype=torch.float64)

    def rotate(part):  # any function of all heads, tokens and dimensions in their order
        return part.cumsum(-1).cumsum(-2)

    output, weights = layer(x, bias=bias, rotate=rotate)
    query, key, value = (
        f(x).unflatten(-1, (HEADS, 4)).transpose(1, 2)  # (batch, heads, tokens, d_head)
        for f in (layer.query, layer.key, layer.value)
    )
    want = F.scaled_dot_product_attention(rotate(query), rotate(key), value, attn_mask=bias)
    near(output, layer.output(want.transpose(1, 2).flatten(-2)))
    near(weights @ value, want)
