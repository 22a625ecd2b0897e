"""The gradients of attention scores, against small steps up and down."""

import numpy as np
import pytest

from lmcourse.numpy_nn.decoder import Decoder
from lmcourse.numpy_nn.scores import head_gradients, heads_of, with_moved_scores

RNG = np.random.default_rng(0)
MODEL = Decoder("abcdefg", RNG.normal(size=(7, 6)), heads=3, d_ff=8)
LINE = np.array([0, 3, 1, 6, 2])


@pytest.mark.parametrize("layer", [0, 1])
def test_a_small_change_of_a_score_moves_the_loss_as_its_gradient_says(layer):
    weights, _, d_scores = head_gradients(MODEL, LINE, layer)
    step = 1e-5
    for head, query, key in [(0, 3, 1), (2, 1, 0), (1, 2, 2)]:
        change = np.zeros((4, 4))
        change[query, key] = step
        above, _ = with_moved_scores(MODEL, LINE, layer, head, change)
        below, _ = with_moved_scores(MODEL, LINE, layer, head, -change)
        slope = (above - below) / (2 * step)
        assert d_scores[head, query, key] == pytest.approx(slope, rel=1e-4, abs=1e-9)
    _, same = with_moved_scores(MODEL, LINE, layer, 1, np.zeros((4, 4)))
    np.testing.assert_allclose(same, weights[1], rtol=0, atol=1e-12)


def test_the_gradient_of_a_weight_is_that_of_the_scores_before_the_softmax():
    weights, d_weights, d_scores = head_gradients(MODEL, LINE, 0)
    common = (weights * d_weights).sum(-1, keepdims=True)
    np.testing.assert_allclose(d_scores, weights * (d_weights - common), atol=1e-12)
    np.testing.assert_allclose(d_scores.sum(-1), 0, atol=1e-12)


def test_the_model_is_left_as_it_was():
    before = MODEL.forward(LINE)
    kinds = [type(head.attention.softmax).__name__ for head in heads_of(MODEL, 1)]
    head_gradients(MODEL, LINE, 1)
    with_moved_scores(MODEL, LINE, 1, 0, np.ones((4, 4)) * [0.0, 1, 2, 3])
    assert kinds == [type(h.attention.softmax).__name__ for h in heads_of(MODEL, 1)]
    np.testing.assert_array_equal(MODEL.forward(LINE), before)
    assert not any(p.grad.any() for p in MODEL.parameters().values())
