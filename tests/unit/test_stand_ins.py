"""What a part is given and returns, and something else in its place."""

import numpy as np
import torch
from torch import nn

from lmcourse.stand_ins import given_and_returned, instead, shuffled_rows, straight_line


def model():
    torch.manual_seed(0)
    return nn.Sequential(nn.Embedding(11, 4), nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 3))


def test_what_a_part_is_given_and_returns():
    net, ids = model(), torch.randint(11, (2, 5))
    recorded = given_and_returned(net, [net[1], net[3]], ids)
    given, returned = recorded[net[1]]
    assert torch.equal(given, net[0](ids).view(10, 4))
    assert torch.equal(returned, net[1](given))
    assert torch.equal(recorded[net[3]][1], net(ids).view(10, 3))
    assert not net[1]._forward_hooks


def test_something_else_stands_in_and_leaves():
    net, ids = model(), torch.randint(11, (2, 5))
    before = net(ids)
    with instead(net[3], lambda x: x[..., :3] + 1):
        changed = net(ids)
    assert torch.equal(changed, net[:3](ids)[..., :3] + 1)
    assert torch.equal(net(ids), before)


def test_a_straight_line_finds_a_linear_layer_and_no_nearer_one_exists():
    torch.manual_seed(0)
    given, layer = torch.randn(50, 4, dtype=torch.float64), nn.Linear(4, 3).double()
    line = straight_line(given, layer(given).detach())
    torch.testing.assert_close(line(given), layer(given).detach(), rtol=0, atol=1e-9)
    bent = given[:, :3].relu()
    left = bent - straight_line(given, bent)(given)
    torch.testing.assert_close(
        given.T @ left, torch.zeros(4, 3).double(), rtol=0, atol=1e-9
    )
    assert left.mean(0).abs().max() < 1e-9


def test_a_straight_line_after_a_norm_does_not_hang_on_rounding():
    torch.manual_seed(3)
    scales = torch.logspace(0, -1, 12)
    given = torch.nn.functional.layer_norm(torch.randn(5000, 12), (12,)) * scales
    returned = torch.tanh(given @ torch.randn(12, 5))
    nudged = given * (1 + 1e-7 * torch.randn_like(given))
    line, again = straight_line(given, returned), straight_line(nudged, returned)
    elsewhere = torch.randn(40, 12)
    assert line(elsewhere).dtype == torch.float32
    torch.testing.assert_close(line(elsewhere), again(elsewhere), rtol=1e-3, atol=1e-3)
    with_ones = np.column_stack([given.double(), np.ones(len(given))])
    oracle = np.linalg.lstsq(with_ones, returned.double().numpy(), rcond=1e-6)[0]
    torch.testing.assert_close(
        line(given.double()), torch.from_numpy(with_ones @ oracle), rtol=0, atol=1e-6
    )


def test_a_shuffled_neuron_has_its_own_numbers():
    weight = torch.arange(24.0).view(4, 6)
    mixed = shuffled_rows(weight, seed=0)
    assert torch.equal(mixed.sort(1).values, weight)
    assert not torch.equal(mixed, weight)
    assert torch.equal(mixed, shuffled_rows(weight, seed=0))
    assert not torch.equal(mixed, shuffled_rows(weight, seed=1))
