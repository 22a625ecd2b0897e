"""The blocks against PyTorch's own layers, with copied weights and all axes different."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.testing import assert_close
from transformers import LlamaConfig
from transformers.models.llama.modeling_llama import LlamaMLP

from lmcourse.attention import causal_mask
from lmcourse.positions import sinusoidal
from lmcourse.transformer import (
    Block,
    Embed,
    FeedForward,
    LayerNorm,
    RMSNorm,
    Transformer,
    greedy,
)
from near import ROUNDING, near
from test_attention import copy_attention

BATCH, SOURCES, TARGETS, D_MODEL, HEADS, D_FF, LAYERS, VOCAB = 2, 7, 5, 12, 3, 20, 4, 11


@pytest.fixture(autouse=True)
def _seed():
    torch.manual_seed(0)


def shuffled(module, dtype):
    """Give every parameter a random value: a norm's ones and zeros would hide a swap."""
    for parameter in module.parameters():
        nn.init.normal_(parameter, std=0.3)
    return module.to(dtype).eval()


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


@pytest.mark.parametrize("norm_first", [True, False], ids=["pre", "post"])
@pytest.mark.parametrize("activation", ["relu", "gelu"])
def test_whole_equals_nn_transformer(norm_first, activation):
    options = {"activation": activation, "norm_first": norm_first}
    shared = {"dropout": 0.0, "batch_first": True, **options}
    layer = nn.TransformerEncoderLayer(D_MODEL, HEADS, D_FF, **shared)
    # Nested tensors are not to be had with these sizes, and torch would say so.
    encoder = nn.TransformerEncoder(layer, LAYERS, nn.LayerNorm(D_MODEL), False)
    sizes = {"num_decoder_layers": LAYERS, "dim_feedforward": D_FF}
    theirs = nn.Transformer(D_MODEL, HEADS, custom_encoder=encoder, **sizes, **shared)
    theirs = shuffled(theirs, torch.float64)
    ours = Transformer(VOCAB, LAYERS, D_MODEL, HEADS, D_FF, **options).double().eval()
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


@pytest.mark.parametrize("dtype", list(ROUNDING), ids=str)
@given(scale=st.floats(-3, 4), shift=st.floats(-50, 50), width=st.integers(2, 17))
@settings(deadline=None, max_examples=25)
def test_norms_equal_torch(dtype, scale, shift, width):
    x = (torch.randn(3, 5, width, dtype=torch.float64) * 10**scale + shift).to(dtype)
    for ours, theirs in [
        (LayerNorm(width), nn.LayerNorm(width)),
        (LayerNorm(width, eps=1e-12), nn.LayerNorm(width, eps=1e-12)),
        (RMSNorm(width), nn.RMSNorm(width, eps=1e-6)),
    ]:
        theirs = shuffled(theirs, dtype)
        ours = ours.to(dtype)
        ours.load_state_dict(theirs.state_dict())
        # The mean is subtracted first: what is lost there grows with shift / spread.
        slack = 1 + abs(shift) / 10**scale if isinstance(ours, LayerNorm) else 1
        tolerance = ROUNDING[dtype] * slack
        assert_close(ours(x), theirs(x), rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("norm", [LayerNorm, RMSNorm])
@pytest.mark.parametrize("value", [0.0, 1e4, -1e4])
def test_norms_of_a_constant_are_finite(norm, value):
    assert norm(D_MODEL)(torch.full((3, D_MODEL), value)).isfinite().all()


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


def test_swiglu_is_llamas():
    sizes = {"hidden_size": D_MODEL, "intermediate_size": D_FF}
    config = LlamaConfig(**sizes, num_attention_heads=HEADS)
    theirs = shuffled(LlamaMLP(config), torch.float64)
    ours = FeedForward(D_MODEL, D_FF, "swiglu").double()
    for name in ["gate", "up", "down"]:
        layer = getattr(ours, name)
        layer.weight.data.copy_(getattr(theirs, f"{name}_proj").weight)
        nn.init.zeros_(layer.bias)
    x = torch.randn(BATCH, TARGETS, D_MODEL, dtype=torch.float64)
    near(ours(x), theirs(x))


def test_norm_option_reaches_every_norm():
    model = Transformer(VOCAB, 2, D_MODEL, HEADS, D_FF, norm=RMSNorm)
    assert not [m for m in model.modules() if isinstance(m, LayerNorm)]
    assert len([m for m in model.modules() if isinstance(m, RMSNorm)]) == 2 * 5 + 2


def test_embed_tells_positions_apart():
    embed = Embed(VOCAB, D_MODEL)
    near(
        embed(torch.tensor([[3, 3, 3]]))[0], embed.table.weight[3] + sinusoidal(3, D_MODEL)
    )


class Script(nn.Module):
    """A model that writes a fixed text for each source, whatever was written before."""

    pad = 0

    def __init__(self, texts):
        super().__init__()
        self.texts = texts

    def encode(self, source):
        return source, None

    def decode(self, target, memory, mask):
        del mask
        logits = torch.zeros(*target.shape, VOCAB)
        for row, text in enumerate(self.texts):
            for step in range(target.shape[1]):
                logits[row, step, text[step]] = 1.0
        return logits, []


@pytest.mark.parametrize(
    ("stop", "limit", "want"),
    [(2, 6, [[5, 6, 2], [7, 2, 0]]), (10, 4, [[5, 6, 2, 9], [7, 2, 8, 8]])],
)
def test_greedy_stops_each_row_at_its_own_stop(stop, limit, want):
    model = Script([[5, 6, 2, 9, 9, 9], [7, 2, 8, 8, 8, 8]])
    source = torch.ones(2, 3, dtype=torch.long)
    assert greedy(model, source, start=1, stop=stop, limit=limit).tolist() == want


def test_greedy_is_the_argmax_of_the_model():
    model = Transformer(VOCAB, 2, D_MODEL, HEADS, D_FF).eval()
    source = torch.randint(1, VOCAB, (BATCH, SOURCES))
    written = greedy(model, source, start=1, stop=VOCAB + 1, limit=6)
    start = torch.full((BATCH, 1), 1)
    again = model(source, torch.cat([start, written[:, :-1]], 1)).argmax(-1)
    assert written.tolist() == again.tolist()
