"""Laws are found again.

What a training costs is held against what PyTorch counts on the page *scaling*.
"""

import numpy as np
import pytest

from lmcourse import scaling
from studies.scaling import scaling as study
from studies.scaling.predictions import (
    predict_by_line,
    predict_runs,
    relative_errors,
    resample_groups,
)

TRUE = np.array([[1.2, 20.0, 0.5, 60.0, 0.4]])
SIZE, TOKENS = (x.ravel() for x in np.meshgrid([1e3, 1e4, 1e5], [2e4, 1e5, 5e5]))
LOSS = scaling.law(TRUE, SIZE, TOKENS)[0]


def test_a_law_is_found_again():
    np.testing.assert_allclose(scaling.fit(SIZE, TOKENS, LOSS), TRUE, rtol=1e-4)
    by_hand = 1.2 + 20 / 1e4**0.5 + 60 / 1e5**0.4
    assert scaling.law(TRUE, 1e4, 1e5)[0, 0] == pytest.approx(by_hand)


def test_the_fit_is_least_in_relative_error_and_counts_runs_as_it_is_told():
    noisy = LOSS * np.exp(np.random.default_rng(0).normal(0, 0.02, len(LOSS)))
    counts = np.array([[1, 1, 1, 1, 1, 1, 1, 1, 1], [2, 0, 1, 1, 1, 1, 1, 3, 0]], float)
    both = scaling.fit(SIZE, TOKENS, noisy, counts)
    again = [np.repeat(x, counts[1].astype(int)) for x in (SIZE, TOKENS, noisy)]
    np.testing.assert_allclose(both[:1], scaling.fit(SIZE, TOKENS, noisy), rtol=1e-6)
    np.testing.assert_allclose(both[1:], scaling.fit(*again), rtol=1e-6)

    def error(fitted):
        return ((scaling.law(fitted, SIZE, TOKENS)[0] / noisy - 1) ** 2).sum()

    for changed in (both[:1] * [1.01, 1, 1, 1, 1], both[:1] * [1, 1.05, 1, 1, 1], TRUE):
        assert error(both[:1]) < error(changed)


def test_no_part_of_a_law_is_negative():
    rising = 2 + SIZE / 1e5  # larger is worse: no power of the size helps
    assert np.isnan(scaling.fit(SIZE, TOKENS, rising)[0, [0, 1, 3]]).all()


def test_draws_keep_runs_of_one_configuration_together():
    groups = [1, 1, 1, 2, 3, 4, 4]
    counts = resample_groups(groups, 50)
    assert counts.shape == (50, 7)
    assert (counts[:, 0] == counts[:, 2]).all()
    assert (counts[:, [0, 3, 4, 5]].sum(1) == 4).all()
    assert counts[:, 3].std() > 0


# Nine runs on the law: three sizes, each after three numbers of tokens.
RUNS = [
    {"parameters": size, "tokens": tokens, "test": loss}
    for size, tokens, loss in zip(SIZE, TOKENS, LOSS, strict=True)
]
*SEEN, LARGEST = RUNS  # the largest size after most tokens is to be predicted


def loss_of(size, tokens):
    """The loss of one of the nine runs."""
    (loss,) = LOSS[(size == SIZE) & (tokens == TOKENS)]
    return loss


@pytest.fixture(scope="module")
def predicted():
    (prediction,) = predict_runs(SEEN, [{"parameters": 1e5, "tokens": 5e5}], draws=50)
    return prediction


def test_the_law_predicts_the_largest_run(predicted):
    assert predicted["law"] == pytest.approx(LARGEST["test"], abs=1e-3)
    low, high = predicted["interval"]
    assert low - 1e-3 <= predicted["law"] <= high + 1e-3


def test_each_rival_predicts_by_its_own_rule(predicted):
    """Each step has five times the tokens of the one before, the predicted one, too."""
    first, last = loss_of(1e5, 2e4), loss_of(1e5, 1e5)
    assert predicted["same"] == pytest.approx(last, abs=1e-4)
    assert predicted["ratio"] == pytest.approx(last * last / first, abs=1e-4)
    smaller = loss_of(1e4, 5e5) / loss_of(1e4, 1e5)
    assert predicted["neighbour"] == pytest.approx(last * smaller, abs=1e-4)


def test_a_step_twice_as_far_is_taken_twice():
    there = {"parameters": 1e4, "tokens": 25e5, "test": 1.0}
    target = {"parameters": 1e5, "tokens": 25e5}
    (far,) = predict_runs([*SEEN, there], [target], draws=5)
    first, last = loss_of(1e5, 2e4), loss_of(1e5, 1e5)
    assert far["ratio"] == pytest.approx(last * (last / first) ** 2, abs=1e-4)


def test_a_line_without_a_floor_expects_too_little_loss(predicted):
    assert predicted["line"] < predicted["law"]


def test_errors_are_shares_of_the_loss_that_came(predicted):
    (errors,) = relative_errors([predicted], [LARGEST])
    assert errors["same"] == pytest.approx(
        loss_of(1e5, 1e5) / LARGEST["test"] - 1, abs=1e-4
    )


@pytest.mark.parametrize(("factor", "verdict"), [(1, "holds"), (1.5, "not so")])
def test_the_study_holds_where_the_law_comes_near(predicted, factor, verdict):
    prediction = predicted | {"law": factor * LARGEST["test"]}
    largest = [LARGEST | {"seed": 1}]
    results = {"smaller": [], "largest": largest, "foretold": [prediction]}
    assert study.summary(results)["verdict"] == verdict


def test_a_straight_line_is_found_again():
    power = 9 * SIZE**-0.1 * TOKENS**-0.2
    there = predict_by_line(SIZE, TOKENS, power, 1e6, 1e7)
    assert there == pytest.approx(9 * 1e6**-0.1 * 1e7**-0.2)
