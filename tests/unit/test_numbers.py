"""Numbers as the book writes them, and intervals beside what theory and SciPy say."""

import itertools

import numpy as np
import pytest
from scipy import stats

from lmcourse.numbers import (
    bootstrap_interval,
    crossed_interval,
    format_estimate,
    format_number,
    percent,
)
from lmcourse.views import band, error_bars

SPACE, MINUS = "\N{NO-BREAK SPACE}", "\N{MINUS SIGN}"


@pytest.mark.parametrize(
    ("value", "form", "text"),
    [
        (0.714, ".0%", f"71{SPACE}%"),
        (-0.25, "+.2f", f"{MINUS}0.25"),
        (0.25, "+.2f", "+0.25"),
        (-3, "", f"{MINUS}3"),
        (-0.004, ".2f", "0.00"),
        (-0.004, ".0%", f"0{SPACE}%"),
        (-1e-30, ".1e", f"{MINUS}1.0e-30"),
        (float("-inf"), ".1f", f"{MINUS}inf"),
        ((-0.5, 0.25), ".1f", f"{MINUS}0.5 to 0.2"),
        ((0.62, 0.75), ".0%", f"62 to 75{SPACE}%"),
        ([0.62, 0.75], ".1f", "0.6 to 0.8"),
        (np.array([0.62, 0.75]), ".1f", "0.6 to 0.8"),
        ("-ing", "", "-ing"),
        (12345, ",", "12,345"),
        (np.float32(0.5), ".1f", "0.5"),
    ],
)
def test_numbers_and_intervals_are_written_alike(value, form, text):
    assert format_number(value, form) == text


def test_shares_and_estimates_are_written_with_per_cent():
    assert percent(0.714) == f"71{SPACE}%"
    assert percent((0.714, 0.8), 1) == f"71.4 to 80.0{SPACE}%"
    wanted = f"{MINUS}0.20 ({MINUS}0.30 to 0.10)"
    assert format_estimate(-0.2, (-0.3, 0.1), ".2f") == wanted


@pytest.mark.parametrize(("value", "form"), [((1, 2, 3), ".1f"), ("one", ".2f")])
def test_what_no_format_fits_is_refused(value, form):
    with pytest.raises(ValueError, match=r"two ends|format code"):
        format_number(value, form)


# --- intervals ------------------------------------------------------------------------


def test_the_interval_of_a_mean_is_that_of_the_normal_distribution():
    values = stats.norm(3, 2).ppf(np.linspace(0.001, 0.999, 400))
    half = 1.96 * values.std() / 20
    interval = bootstrap_interval(values, draws=8000)
    assert interval == pytest.approx((3 - half, 3 + half), abs=0.01)


def test_in_groups_each_group_weighs_the_same():
    rng = np.random.default_rng(1)
    groups = [rng.normal(0, 1, 900), rng.normal(4, 1, 100), rng.normal(10, 2, 400)]
    labels = np.repeat(["a", "b", "c"], [900, 100, 400])
    interval = bootstrap_interval(np.concatenate(groups), groups=labels, draws=8000)
    middle = np.mean([group.mean() for group in groups])
    half = 1.96 * np.sqrt(sum(group.var() / len(group) for group in groups)) / 3
    assert interval == pytest.approx((middle - half, middle + half), abs=0.01)


def test_a_ratio_is_of_samples_that_are_drawn_together():
    old = np.random.default_rng(0).uniform(1, 100, 50)

    def saved(new, old, axis):
        return 1 - new.sum(axis) / old.sum(axis)

    low, high = bootstrap_interval(0.7 * old, old, statistic=saved)
    assert (low, high) == pytest.approx((0.3, 0.3))  # text by text it is the same share


def test_a_statistic_may_look_up_what_is_drawn():
    x, noise = np.random.default_rng(2).normal(size=(2, 60))
    y = x + noise

    def correlations(drawn, axis):
        return np.array([np.corrcoef(x[at], y[at])[0, 1] for at in drawn.astype(int)])

    def correlation(x, y):
        return stats.pearsonr(x, y).statistic

    settings = {"n_resamples": 400, "method": "percentile", "rng": 0, "paired": True}
    wanted = stats.bootstrap((x, y), correlation, **settings).confidence_interval
    interval = bootstrap_interval(range(60), statistic=correlations, draws=400)
    assert interval == pytest.approx(tuple(wanted))


def test_a_generator_goes_on_from_interval_to_interval():
    values = np.random.default_rng(3).normal(size=25)
    same_rng = np.random.default_rng(7)
    drawn = values[same_rng.integers(25, size=(2, 500, 25))].mean(-1)  # (intervals, draws)
    wanted = np.quantile(drawn, [0.025, 0.975], axis=1).T
    rng = np.random.default_rng(7)
    intervals = [bootstrap_interval(values, draws=500, seed=rng) for _ in range(2)]
    np.testing.assert_allclose(intervals, wanted, rtol=1e-12)


def test_a_long_sample_gives_the_same_in_parts(monkeypatch):
    values = np.random.default_rng(0).normal(size=300)
    whole = bootstrap_interval(values, draws=200)
    monkeypatch.setattr("lmcourse.numbers.LARGEST_BATCH", 1000)
    assert bootstrap_interval(values, draws=200) == whole
    assert bootstrap_interval(values, draws=200, seed=1) != whole


@pytest.mark.parametrize(
    ("samples", "groups"),
    [
        ([], None),
        ([[1.0]], None),
        ([[1.0, np.nan, 2.0]], None),
        ([[1.0, 2.0], [1.0, 2.0, 3.0]], None),
        ([[[1.0, 2.0], [3.0, 4.0]]], None),
        ([[1.0, 2.0, 3.0]], ["a", "a", "b"]),
        ([[1.0, 2.0]], ["a"]),
        ([[1.0, 2.0], [1.0, 2.0]], ["a", "a"]),
    ],
)
def test_what_has_no_interval_is_refused(samples, groups):
    with pytest.raises(ValueError, match=r".+"):
        bootstrap_interval(*samples, groups=groups)


def test_a_table_has_the_interval_of_all_ways_to_draw_rows_and_columns():
    table = np.array([[0.0, 1.0, 5.0], [2.0, 7.0, 3.0]])
    rows = [list(drawn) for drawn in itertools.product(range(2), repeat=2)]
    columns = [list(drawn) for drawn in itertools.product(range(3), repeat=3)]
    means = [table[i][:, j].mean() for i in rows for j in columns]  # each as likely
    interval = crossed_interval(table, draws=20_000)
    wanted = np.quantile(means, [0.025, 0.975], method="inverted_cdf")
    assert interval == pytest.approx(tuple(wanted))


def test_rows_of_a_table_are_not_taken_as_independent_cells():
    by_row = np.repeat(np.random.default_rng(0).normal(size=(20, 1)), 30, axis=1)
    low, high = crossed_interval(by_row)
    assert high - low == pytest.approx(2 * 1.96 * by_row.std() / np.sqrt(20), rel=0.15)


def test_a_table_of_one_column_has_the_interval_of_the_normal_distribution():
    half = np.random.default_rng(0).normal(size=(200, 1))
    rows = np.concatenate([half, -half])  # no skew: both ends are as far from 0
    end = 1.96 * rows.std() / 20
    interval = crossed_interval(rows, draws=20_000)
    assert interval == pytest.approx((-end, end), rel=0.04)


def table_with_a_gap():
    """Return a table of fives, (2, 4, 3), of which one value is missing."""
    table = np.full((2, 4, 3), 5.0)
    table[0, 1, 2] = np.nan
    return table


def test_a_crossed_interval_leaves_missing_values_out():
    assert crossed_interval(table_with_a_gap()) == pytest.approx((5, 5))


def test_a_crossed_interval_may_be_of_a_ratio():
    table = table_with_a_gap()
    assert crossed_interval(3 * table, table) == pytest.approx((3, 3))


def test_a_crossed_interval_of_tables_of_two_shapes_is_refused():
    table = table_with_a_gap()
    with pytest.raises(ValueError, match="shapes"):
        crossed_interval(table, table[0])


# --- drawing --------------------------------------------------------------------------


def test_intervals_are_drawn_from_low_to_high():
    from matplotlib.figure import Figure

    intervals = [(0.5, 2.0), (1.5, 3.5)]
    axes = Figure().subplots()
    error_bars(axes, [10, 20], [1, 2], intervals, color="C1")
    (bars,) = axes.containers[0].lines[2]
    ends = [[tuple(end) for end in segment] for segment in bars.get_segments()]
    assert ends == [[(10, 0.5), (10, 2.0)], [(20, 1.5), (20, 3.5)]]
    error_bars(axes, [10, 20], [1, 2], intervals, horizontal=True)
    (bars,) = axes.containers[1].lines[2]
    assert bars.get_segments()[1].tolist() == [[1.5, 20], [3.5, 20]]
    band(axes, [10, 20], intervals)
    area = axes.collections[-1]
    corners = {tuple(corner) for corner in area.get_paths()[0].vertices}
    assert corners >= {(10, 0.5), (10, 2.0), (20, 1.5), (20, 3.5)}
