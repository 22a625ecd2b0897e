"""The toy of superposition, and its view before any script runs."""

import bs4
import pytest
import torch

from lmcourse import sparse, views


def test_sparse_features_share_two_dimensions_and_dense_ones_do_not():
    for seed in (1, 2, 3):
        weights, _, _ = sparse.train_toy(0.9, seed=seed)
        assert (weights.norm(dim=0) > 0.8).all()
        angles = torch.atan2(weights[1], weights[0]).sort().values
        gaps = torch.rad2deg(angles.diff())
        torch.testing.assert_close(gaps, torch.full_like(gaps, 72.0), atol=8, rtol=0)
    dense, _, _ = sparse.train_toy(0.0)
    assert not (dense.norm(dim=0) > 0.8).any()


@pytest.mark.parametrize("bend", [True, False])
def test_its_loss_is_that_of_its_weights_and_bias(bend):
    weights, bias, loss = sparse.train_toy(0.7, bend=bend)
    arrows = weights.numpy()
    examples = sparse.toy_examples(0.7).numpy()
    back = examples @ arrows.T @ arrows + bias.numpy()
    if bend:
        back = back.clip(min=0)
    # the last of the steps, whose rate has come down to nearly 0, moves hardly anything
    assert loss == pytest.approx(((back - examples) ** 2).mean(), rel=1e-5)


def test_without_a_bend_no_more_features_fit_than_dimensions():
    _, _, bent = sparse.train_toy(0.9)
    weights, _, linear = sparse.train_toy(0.9, bend=False)
    assert linear > 2 * bent
    squares = weights.square().sum().item()
    assert squares == pytest.approx(2, abs=0.05)  # two directions of length 1 in all


def test_the_stored_state_is_the_trained_toy():
    view = views.superposition(0.9)
    page = bs4.BeautifulSoup(view.stored, "html.parser")
    weights, _, _ = sparse.train_toy(0.9)
    rows = [row.find_all("td") for row in page.find_all("tr")[1:]]
    lengths = [float(row[-3].text) for row in rows]
    assert lengths == pytest.approx(weights.norm(dim=0).tolist(), abs=0.006)
    lines = [(float(line["x2"]), float(line["y2"])) for line in page.find_all("line")]
    wanted = [(240 + 150 * x, 240 - 150 * y) for x, y in weights.T.tolist()]
    for line, point in zip(lines, wanted, strict=True):
        assert line == pytest.approx(point, abs=0.1)


@pytest.mark.parametrize("sparsity", [-0.1, 0.96, float("nan")])
def test_a_sparsity_that_leaves_nothing_is_refused(sparsity):
    with pytest.raises(ValueError, match="from 0 to"):
        views.superposition(sparsity)
