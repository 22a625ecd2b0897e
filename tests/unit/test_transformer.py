"""The blocks against PyTorch's own layers, with copied weights and all axes different."""

from functools import partial

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.testing import assert_close
from transformers import LlamaConfig
from transformers.models.llama.modeling_llama import LlamaDecoderLayer, LlamaRotaryEmbedding

from lmcourse.attention import MultiHeadAttention, causal_mask, padding_mask
from lmcourse.dates import Transformer
from lmcourse.positions import rotate, sinusoidal
from lmcourse.transformer import Block, Embed, FeedForward, LayerNorm, Stack
from near import ROUNDING, near
from test_attention import copy_attention
from test_gpt_model import shuffled

BATCH, SOURCES, TARGETS, D_MODEL, HEADS, D_FF, LAYERS, VOCAB = 2, 7, 5, 12, 3, 20, 4, 11
DTYPES = pytest.mark.parametrize("dtype", list(ROUNDING), ids=["float64", "float32"])
NORM_FIRST = pytest.mark.parametrize("norm_first", [True, False], ids=["pre", "post"])


def copy_(ours, theirs):
    ours.weight.data.copy_(theirs.weight)
    ours.bias.data.copy_(theirs.bias)


def copy_block(ours, theirs):
    copy_attention(ours.attention, theirs.self_attn)
    copy_(ours.feed_forward.up, theirs.linear1)
    copy_(ours.feed_forward.down, theirs.linear2)
    copy_(ours.norm_1, theirs.norm1)
    copy_(ours.norm_2, theirs.norm2 if ours.cross is None else theirs.norm3)
    if ours.cross is not None:
        copy_attention(ours.cross, theirs.multihead_attn)
        copy_(ours.norm_cross, theirs.norm2)


def torch_layer(kind, norm_first, dtype, activation="gelu"):
    options = {"dropout": 0.0, "activation": activation, "batch_first": True}
    return shuffled(kind(D_MODEL, HEADS, D_FF, norm_first=norm_first, **options)).to(dtype)


def source_mask():
    """Attention mask of a batch whose second source is two tokens shorter."""
    mask = torch.ones(BATCH, SOURCES)
    mask[1, -2:] = 0
    return mask


@NORM_FIRST
@DTYPES
@pytest.mark.parametrize("activation", ["relu", "gelu"])
def test_encoder_block_equals_torch(norm_first, dtype, activation):
    theirs = torch_layer(nn.TransformerEncoderLayer, norm_first, dtype, activation)
    ours = Block(D_MODEL, HEADS, D_FF, activation, norm_first).to(dtype)
    copy_block(ours.eval(), theirs)
    x, keep = torch.randn(BATCH, SOURCES, D_MODEL, dtype=dtype), source_mask()
    with torch.no_grad():
        got, weights = ours(x, mask=padding_mask(keep))
        want = theirs(x, src_key_padding_mask=keep == 0)
    near(got[keep.bool()], want[keep.bool()])
    assert weights.shape == (BATCH, HEADS, SOURCES, SOURCES)
    assert (weights[1, :, :, -2:] == 0).all()


@NORM_FIRST
def test_whole_equals_nn_transformer(norm_first):
    dtype = torch.float64
    layer = torch_layer(nn.TransformerEncoderLayer, norm_first, dtype)
    norm = nn.LayerNorm(D_MODEL)
    theirs = nn.Transformer(
        D_MODEL,
        HEADS,
        num_decoder_layers=LAYERS,
        dim_feedforward=D_FF,
        dropout=0.0,
        activation="gelu",
        # Nested tensors are not to be had with these sizes, and torch would say so.
        custom_encoder=nn.TransformerEncoder(layer, LAYERS, norm, False),
        batch_first=True,
        norm_first=norm_first,
    )
    theirs = shuffled(theirs).to(dtype)
    stack = partial(Stack, LAYERS, D_MODEL, HEADS, D_FF, norm_first=norm_first)
    ours = Transformer(VOCAB, LAYERS, D_MODEL, HEADS, D_FF)
    ours.encoder, ours.decoder = stack(), stack(cross=True)  # for the page's own
    ours = ours.to(dtype).eval()
    for side in ["encoder", "decoder"]:
        mine, other = getattr(ours, side), getattr(theirs, side)
        copy_(mine.norm, other.norm)
        for block, layer in zip(mine.blocks, other.layers, strict=True):
            copy_block(block, layer)
    source = torch.randint(1, VOCAB, (BATCH, SOURCES))
    source[1, -2:] = 0
    target = torch.randint(1, VOCAB, (BATCH, TARGETS))
    masks = {"src_key_padding_mask": source == 0, "memory_key_padding_mask": source == 0}
    masks["tgt_mask"] = ~causal_mask(TARGETS)
    with torch.no_grad():
        want = theirs(ours.embed(source), ours.embed(target), **masks)
        got, weights = ours.decode(target, *ours.encode(source))
    near(got, ours.output(want))
    assert {w.shape for w in weights} == {(BATCH, HEADS, TARGETS, SOURCES)}
    assert all((w[1, ..., -2:] == 0).all() for w in weights)


@DTYPES
@given(scale=st.floats(-3, 4), shift=st.floats(-50, 50), width=st.integers(2, 17))
@settings(max_examples=25)
def test_norms_equal_torch(dtype, scale, shift, width):
    x = (torch.randn(3, 5, width, dtype=torch.float64) * 10**scale + shift).to(dtype)
    for ours, theirs in [
        (LayerNorm(width), nn.LayerNorm(width)),
        (LayerNorm(width, eps=1e-12), nn.LayerNorm(width, eps=1e-12)),
    ]:
        theirs = shuffled(theirs).to(dtype)
        ours = ours.to(dtype)
        ours.load_state_dict(theirs.state_dict())
        # The mean is subtracted first: what is lost there grows with shift / spread.
        tolerance = ROUNDING[dtype] * (1 + abs(shift) / 10**scale)
        assert_close(ours(x), theirs(x), rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("value", [0.0, 1e4, -1e4])
def test_norms_of_a_constant_are_finite(value):
    assert LayerNorm(D_MODEL)(torch.full((3, D_MODEL), value)).isfinite().all()


def test_an_unknown_activation_is_named():
    with pytest.raises(ValueError, match=r"'swish' is not in .*'swiglu'"):
        FeedForward(D_MODEL, D_FF, "swish")


def test_dropout_of_an_update_is_scaled_and_in_training_only():
    block = Block(4, 2, 8, dropout=0.25)
    x, update = torch.zeros(40, 1000), torch.ones(40, 1000)
    added = block.train().after(x, update, block.norm_1)
    assert_close(added.unique(), torch.tensor([0.0, 1 / 0.75]))
    assert abs((added == 0).float().mean() - 0.25) < 0.02
    assert_close(block.eval().after(x, update, block.norm_1), update)


def test_a_memory_and_cross_attention_go_together():
    x = torch.randn(BATCH, SOURCES, D_MODEL)
    for cross, memory in [(True, None), (False, x)]:
        with pytest.raises(ValueError, match="go together"):
            Block(D_MODEL, HEADS, D_FF, cross=cross)(x, memory)


def test_block_equals_the_one_of_llama():
    """RMSNorm, SwiGLU, rotary positions, no biases: another library's layer."""
    dtype = torch.float32  # to which that library turns norms, angles and softmax
    config = LlamaConfig(
        hidden_size=D_MODEL,
        intermediate_size=D_FF,
        num_attention_heads=HEADS,
        num_key_value_heads=HEADS,
        rms_norm_eps=1e-6,
        attn_implementation="eager",
    )
    theirs = shuffled(LlamaDecoderLayer(config, 0)).to(dtype)
    attention = partial(MultiHeadAttention, bias=False)
    sizes = (D_MODEL, HEADS, D_FF)
    norm = partial(nn.RMSNorm, eps=1e-6)
    ours = Block(*sizes, "swiglu", norm=norm, attention=attention)
    names = {"input_layernorm": "norm_1", "post_attention_layernorm": "norm_2"}
    names |= {f"self_attn.{n[0]}_proj": f"attention.{n}" for n in ["query", "key", "value"]}
    names |= {"self_attn.o_proj": "attention.output"}
    names |= {f"mlp.{n}_proj": f"feed_forward.{n}" for n in ["gate", "up", "down"]}
    for name, weight in theirs.state_dict().items():
        part, _, kind = name.rpartition(".")
        getattr(ours.get_submodule(names[part]), kind).data.copy_(weight)
    for part in (ours.feed_forward.gate, ours.feed_forward.up, ours.feed_forward.down):
        nn.init.zeros_(part.bias)
    x = torch.randn(BATCH, TARGETS, D_MODEL)
    angles = LlamaRotaryEmbedding(config)(x, torch.arange(TARGETS)[None])
    mask = causal_mask(TARGETS)
    hidden = torch.zeros(mask.shape).masked_fill(~mask, -torch.inf)
    with torch.no_grad():
        want = theirs(x, attention_mask=hidden, position_embeddings=angles)
        got, _ = ours(x, mask=mask, rotate=partial(rotate, layout="half"))
    near(got, want)


def test_norm_option_reaches_every_norm():
    model = Stack(2, D_MODEL, HEADS, D_FF, norm=nn.RMSNorm, cross=True)
    assert not [m for m in model.modules() if isinstance(m, LayerNorm)]
    assert len([m for m in model.modules() if isinstance(m, nn.RMSNorm)]) == 2 * 3 + 1


def test_embed_adds_positions():
    embed = Embed(VOCAB, D_MODEL)
    assert_close(
        embed(torch.tensor([[3, 3, 3]]))[0], embed.table.weight[3] + sinusoidal(3, D_MODEL)
    )
