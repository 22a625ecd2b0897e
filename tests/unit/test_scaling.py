"""Laws are found again.

What a training costs is held against what PyTorch counts on the page *scaling*.
"""

import numpy as np
import pytest

from lmcourse import scaling
from studies.scaling import scaling as study

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
    counts = scaling.resample_groups(groups, 50)
    assert counts.shape == (50, 7)
    assert (counts[:, 0] == counts[:, 2]).all()
    assert (counts[:, [0, 3, 4, 5]].sum(1) == 4).all()
    assert counts[:, 3].std() > 0


def test_what_is_foretold_is_what_each_way_says():
    rows = [
        {"parameters": n, "tokens": d, "test": loss}
        for n, d, loss in zip(SIZE, TOKENS, LOSS, strict=True)
    ]
    found = scaling.predict_runs(rows[:-1], [{"parameters": 1e5, "tokens": 5e5}], draws=50)[
        0
    ]
    own = [row["test"] for row in rows if row["parameters"] == 1e5]
    assert found["law"] == pytest.approx(own[2], abs=1e-3)
    assert found["interval"][0] <= found["law"] + 1e-3 <= found["interval"][1] + 2e-3
    assert found["same"] == pytest.approx(own[1], abs=1e-4)
    assert found["ratio"] == pytest.approx(own[1] * own[1] / own[0], abs=1e-4)
    other = [row["test"] for row in rows if row["parameters"] == 1e4]
    assert found["neighbour"] == pytest.approx(own[1] * other[2] / other[1], abs=1e-4)
    there = {"parameters": 1e4, "tokens": 25e5, "test": 1.0}
    target = {"parameters": 1e5, "tokens": 25e5}
    far = scaling.predict_runs([*rows[:-1], there], [target], draws=5)[0]
    assert far["ratio"] == pytest.approx(own[1] * (own[1] / own[0]) ** 2, abs=1e-4)
    assert found["line"] < found["law"]  # no floor
    missed = scaling.relative_errors([found], rows[-1:])[0]
    assert missed["same"] == pytest.approx(own[1] / own[2] - 1, abs=1e-4)
    results = {"smaller": [], "largest": [rows[-1] | {"seed": 1}], "foretold": [found]}
    assert study.summary(results)["verdict"] == "holds"
    results["foretold"] = [found | {"law": 1.5 * own[2]}]
    assert study.summary(results)["verdict"] == "not so"


def test_a_straight_line_is_found_again():
    power = 9 * SIZE**-0.1 * TOKENS**-0.2
    there = scaling.predict_by_line(SIZE, TOKENS, power, 1e6, 1e7)
    assert there == pytest.approx(9 * 1e6**-0.1 * 1e7**-0.2)
