"""A GPT without one part, against the same GPT taken apart by hand."""

import copy

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from berts import loud_bert
from lmcourse.ablation import PARTS, hooked_heads_before, without
from lmcourse.gpt.inside import losses_without
from lmcourse.gpt.model import GPT, GPTConfig
from lmcourse.transformer import Block


@pytest.fixture
def model():
    model = GPT(GPTConfig(vocab_size=11, context=8, layers=2, heads=3, d_model=12))
    for weight in model.parameters():
        nn.init.normal_(weight, std=0.5)
    return model.double().eval()


def by_hand(block, x, part):
    """Run a block without a part, written out."""
    block = copy.deepcopy(block)
    with torch.no_grad():
        if part == "attention":
            block.attention.output.weight.zero_()
            block.attention.output.bias.zero_()
        elif part == "feed_forward":
            block.feed_forward.down.weight.zero_()
            block.feed_forward.down.bias.zero_()
        elif part in ("norm_1", "norm_2"):
            setattr(block, part, nn.Identity())
        elif part not in PARTS:
            block.attention.output.weight[:, 4 * part : 4 * (part + 1)] = 0
    first = block.attention(block.norm_1(x))[0]
    x = first if part == "residual_1" else x + first
    second = block.feed_forward(block.norm_2(x))
    return second if part == "residual_2" else x + second


@pytest.mark.parametrize("part", [*PARTS, 0, 1, 2])
def test_a_part_is_away_and_comes_back(model, part):
    x = torch.randn(2, 5, 12).double()
    block = model.blocks[1]
    with torch.no_grad():
        whole = block(x)[0]
        wanted = by_hand(block, x, part)
        with without(block, part):
            output = block(x)[0]
        assert (output - whole).abs().max() > 1e-3
        torch.testing.assert_close(output, wanted, atol=1e-9, rtol=1e-9)
        torch.testing.assert_close(block(x)[0], whole, atol=0, rtol=0)


def test_heads_of_another_library_s_model_can_be_changed():
    bert = loud_bert(0, 6, hidden_size=12, num_attention_heads=3, intermediate_size=24)
    ids = torch.tensor([[2, 7, 5, 9, 3]])
    dense = bert.encoder.layer[1].attention.output.dense

    def without_the_last(heads):
        """Return what the heads return, (batch, tokens, heads, d_head), but of the last."""
        assert heads.shape == (1, 5, 3, 4)
        heads = heads.clone()
        heads[:, :, 2] = 0
        return heads

    with torch.no_grad():
        whole = bert(ids).last_hidden_state
        with hooked_heads_before(dense, 3, without_the_last):
            changed = bert(ids).last_hidden_state
        with hooked_heads_before(dense, 3, lambda heads: None):
            assert torch.equal(bert(ids).last_hidden_state, whole)
        assert torch.equal(bert(ids).last_hidden_state, whole)
        dense.weight[:, 8:] = 0
        torch.testing.assert_close(changed, bert(ids).last_hidden_state)
    assert (changed - whole).abs().max() > 1e-3


def test_with_the_norm_last_only_a_head_can_be_away():
    block, x = Block(12, 3, 24, norm_first=False), torch.randn(1, 3, 12)
    with pytest.raises(ValueError, match="norm_first"), without(block, "norm_1"):
        pass
    with without(block, 1):
        output, _ = block(x)
    with torch.no_grad():
        block.attention.output.weight[:, 4:8] = 0
    torch.testing.assert_close(output, block(x)[0])


def test_changes_of_the_loss_are_paired(model):
    ids = torch.randint(11, (40, 9))
    inputs, targets = ids[:, :-1], ids[:, 1:]
    table = losses_without(model.train(), inputs, targets)
    assert model.training  # as it was
    assert len(table) == 2 * (6 + 3)
    assert [*table.part[:9]] == [*PARTS, 0, 1, 2]
    model.eval()

    def losses():
        with torch.no_grad():
            logits = model(inputs)
        each = [F.cross_entropy(x, y) for x, y in zip(logits, targets, strict=True)]
        return torch.stack(each)

    whole = losses()
    with without(model.blocks[1], "norm_2"):
        change = losses() - whole
    row = table[(table.layer == 1) & (table.part == "norm_2")].iloc[0]
    assert row.loss == pytest.approx((whole + change).mean().item(), rel=1e-9)
    assert row.change == pytest.approx(change.mean().item(), rel=1e-9)
    spread = 1.96 * change.numpy().std(ddof=1) / 40**0.5  # of a normal distribution
    ends = [(row.low - row.change) / spread, (row.high - row.change) / spread]
    assert ends == pytest.approx([-1, 1], abs=0.15)
