"""Blocks without a part, and what an untrained stack of them does to its tokens."""

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from lmcourse.attention import causal_mask
from lmcourse.lacking import LACKING, Lacking, flow, random_flows, spread, use_xavier
from lmcourse.transformer import Block


def filled(lacking):
    """Return a `Block` with the weights of a `Lacking`."""
    block = Block(8, 4, 32, norm=nn.LayerNorm)
    block.load_state_dict(lacking.state_dict())
    return block


def test_with_nothing_missing_it_is_the_causal_block():
    torch.manual_seed(0)
    lacking, x = Lacking(8), torch.randn(2, 5, 8)
    torch.testing.assert_close(lacking(x), filled(lacking)(x, mask=causal_mask(5))[0])


def test_without_paths_only_the_last_update_goes_on():
    torch.manual_seed(0)
    lacking, x = Lacking(8, ("paths",)), torch.randn(2, 5, 8)
    first, _ = lacking.attention(lacking.norm_1(x), mask=causal_mask(5))
    assert torch.equal(lacking(x), lacking.feed_forward(lacking.norm_2(first)))


def test_a_token_that_attends_to_itself_is_the_same_alone():
    torch.manual_seed(0)
    lacking, x = Lacking(8, ("paths", "other tokens")), torch.randn(2, 5, 8)
    torch.testing.assert_close(lacking(x)[:, 2:3], lacking(x[:, 2:3]))


def test_without_the_bend_the_network_is_linear():
    torch.manual_seed(0)
    network = Lacking(8, ("bend",)).feed_forward.double()
    x, y = torch.randn(2, 3, 8, dtype=torch.float64)
    zero = network(0 * x)
    torch.testing.assert_close(network(x + y) - zero, network(x) + network(y) - 2 * zero)


def test_half_a_path_is_half_the_stream():
    torch.manual_seed(0)
    lacking, x = Lacking(8, path=0.5), torch.randn(1, 3, 8)
    update = torch.randn(1, 3, 8)
    assert torch.equal(lacking.add(x, "attention", update), 0.5 * x + update)


def test_the_spread_of_equal_tokens_is_zero_and_of_opposite_ones_one():
    same = torch.ones(2, 4, 3)
    assert spread(same) == pytest.approx(0)
    opposite = torch.stack([same[0, :2], -same[0, 2:]], 0).view(1, 4, 3)
    assert spread(opposite) == pytest.approx(1)


def test_xavier_has_the_variance_of_the_paper():
    torch.manual_seed(0)
    layer = nn.Linear(300, 500)
    use_xavier(layer)
    assert layer.weight.var().item() == pytest.approx(2 / 800, rel=0.02)
    assert not layer.bias.any()


def test_a_flow_has_a_value_for_each_level_and_its_gradient_is_the_numerical_one():
    measured = flow((), seed=0, layers=3, d_model=8)
    assert {len(values) for values in measured.values()} == {4}
    again = flow((), seed=0, layers=3, d_model=8)
    assert measured == again
    torch.manual_seed(0)
    blocks = nn.ModuleList([Lacking(8) for _ in range(3)])
    use_xavier(blocks)
    end = nn.Sequential(nn.LayerNorm(8), nn.Linear(8, 50))
    x = torch.randn(4, 16, 8).double()
    answers = torch.randint(50, (4, 16))
    nn.ModuleList([blocks, end]).double()

    def loss(x):
        for block in blocks:
            x = block(x)
        return F.cross_entropy(end(x).mT, answers).item()

    step = torch.randn_like(x)
    slope = (loss(x + 1e-5 * step) - loss(x - 1e-5 * step)) / 2e-5
    x.requires_grad_()
    states = x
    for block in blocks:
        states = block(states)
    (gradient,) = torch.autograd.grad(F.cross_entropy(end(states).mT, answers), x)
    assert slope == pytest.approx((gradient * step).sum().item(), rel=1e-4)
    assert measured["gradient"][0] == pytest.approx(gradient.norm().item(), rel=1e-4)


def test_every_kind_of_stack_flows():
    flows = random_flows(range(2), layers=2, d_model=8)
    assert flows.keys() == LACKING.keys()
    assert {len(runs) for runs in flows.values()} == {2}
