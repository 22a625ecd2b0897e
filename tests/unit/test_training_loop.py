"""The training loop against a loop written out; and what its steps are given."""

from itertools import pairwise

import pytest
import torch
from torch import nn

from lmcourse.training_loop import train_model, train_one_cycle, train_scheduled


def linear():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 2), nn.Dropout(0.5)).double()


def batches():
    return torch.randn(5, 7, 3, generator=torch.Generator().manual_seed(1)).double()


@pytest.mark.parametrize("max_norm", [None, 0.01])
def test_steps_equal_a_plain_loop(max_norm):
    model, plain, x = linear(), linear(), batches()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1 / (1 + step))
    seen = []
    torch.manual_seed(2)
    losses = train_model(
        model,
        lambda step: model(x[step]).square().mean(),
        5,
        [optimizer],
        [scheduler],
        max_norm,
        report=lambda step, loss: seen.append((step, loss)),
    )
    torch.manual_seed(2)
    want = []
    for step in range(5):
        loss = plain(x[step]).square().mean()  # dropout acts
        plain.zero_grad()
        loss.backward()
        norm = sum((w.grad**2).sum() for w in plain.parameters()).sqrt().item()
        scale = 1.0 if max_norm is None else min(1.0, max_norm / (norm + 1e-6))
        with torch.no_grad():
            for weight in plain.parameters():
                weight -= 0.1 / (1 + step) * scale * weight.grad
        want.append(loss.item())
    assert losses == pytest.approx(want, abs=1e-12)
    assert seen == [*enumerate(losses, start=1)]
    assert not model.training
    for one, other in zip(model.parameters(), plain.parameters(), strict=True):
        torch.testing.assert_close(one, other, atol=1e-12, rtol=0)


def test_the_learning_rate_is_a_share_of_the_highest():
    model, x = linear(), batches()
    before = model[0].weight.detach().clone()
    train_scheduled(model, lambda step: model(x[step]).sum(), 3, 0.1, lambda step: 0.0)
    assert torch.equal(model[0].weight, before)
    train_scheduled(model, lambda step: model(x[step]).sum(), 1, 0.1, lambda step: 0.5)
    moved = (model[0].weight - before).abs()  # the first step of Adam is one rate long
    assert moved.max().item() == pytest.approx(0.05, rel=0.02)


def test_one_cycle_rises_and_falls():
    model, x = linear(), batches()
    weights = []

    def loss_at(step):
        weights.append(model[0].bias.detach().clone())
        return model[0](x[0]).sum()  # its gradient never changes: steps are the rate

    train_one_cycle(model, loss_at, 100, 0.1, weight_decay=0.0)
    sizes = [(b - a).abs().max().item() for a, b in pairwise(weights)]
    top = max(range(99), key=sizes.__getitem__)
    assert 20 < top < 40
    assert sizes[top] == pytest.approx(0.1, rel=0.05)
    assert sizes[-1] < 0.001
    assert sizes[0] < 0.01
