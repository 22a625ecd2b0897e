"""Muon against singular value decompositions and PyTorch's own."""

import pytest
import torch

from lmcourse.optimizers import Muon, orthogonalise

SHAPES = pytest.mark.parametrize("shape", [(9, 4), (4, 9), (6, 6), (1, 5), (5, 1)], ids=str)


@pytest.fixture
def generator():
    return torch.Generator().manual_seed(0)


def draw(generator, *shape):
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


def close(got, want, tolerance=1e-9):
    torch.testing.assert_close(got, want, rtol=tolerance, atol=tolerance)


def by_singular_values(matrix, rounds=5):
    """What the polynomial does, done to the singular values one by one."""
    u, sizes, vh = torch.linalg.svd(matrix, full_matrices=False)
    sizes = sizes / (sizes.square().sum().sqrt() + 1e-7)
    for _ in range(rounds):
        sizes = 3.4445 * sizes - 4.7750 * sizes**3 + 2.0315 * sizes**5
    return u @ sizes.diag() @ vh


@SHAPES
@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
def test_singular_vectors_stay_and_values_come_near_one(generator, shape, scale):
    matrix = scale * draw(generator, *shape)
    for rounds in (0, 1, 5):
        close(orthogonalise(matrix, rounds), by_singular_values(matrix, rounds))
    values = torch.linalg.svdvals(orthogonalise(matrix))
    assert values.min() > 0.6
    assert values.max() < 1.3


@SHAPES
def test_steps_equal_those_written_out(generator, shape):
    weight = torch.nn.Parameter(draw(generator, *shape))
    optimizer = Muon([weight], lr=0.03, momentum=0.9)
    want, average = weight.detach().clone(), torch.zeros(shape, dtype=torch.float64)
    for _ in range(4):
        weight.grad = draw(generator, *shape)
        average = 0.9 * average + 0.1 * weight.grad
        ahead = 0.9 * average + 0.1 * weight.grad
        want -= 0.03 * max(1, shape[0] / shape[1]) ** 0.5 * by_singular_values(ahead)
        optimizer.step()
        close(weight.detach(), want)


@SHAPES
def test_steps_agree_with_torchs(generator, shape):
    """Theirs computes in bfloat16, with 8 binary digits."""
    ours = torch.nn.Parameter(draw(generator, *shape).float())
    theirs = torch.nn.Parameter(ours.detach().clone())
    optimizers = (
        Muon([ours], lr=0.03, momentum=0.9),
        torch.optim.Muon(
            [theirs], lr=0.03, momentum=0.9, weight_decay=0.0, adjust_lr_fn="original"
        ),
    )
    for _ in range(5):
        before = ours.detach().clone(), theirs.detach().clone()
        ours.grad = draw(generator, *shape).float()
        theirs.grad = ours.grad.clone()
        for optimizer in optimizers:
            optimizer.step()
        got, want = ours.detach() - before[0], theirs.detach() - before[1]
        assert torch.cosine_similarity(got.flatten(), want.flatten(), 0) > 0.99
        assert got.norm().item() == pytest.approx(want.norm().item(), rel=0.05)


def test_groups_have_their_own_rates_and_no_gradient_is_no_step(generator):
    first, second, third = (
        torch.nn.Parameter(draw(generator, 4, 3).float()) for _ in range(3)
    )
    optimizer = Muon([{"params": [first, third], "lr": 0.1}, {"params": [second]}], lr=0.3)
    before = [weight.detach().clone() for weight in (first, second, third)]
    first.grad = draw(generator, 4, 3).float()
    second.grad = first.grad.clone()
    optimizer.step()
    close(3 * (first.detach() - before[0]), second.detach() - before[1], 1e-4)
    assert torch.equal(third, before[2])
    assert third not in optimizer.state
