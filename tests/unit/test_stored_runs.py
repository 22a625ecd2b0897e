"""Tables of stored trainings, on runs that are made up."""

import numpy as np

from lmcourse.gpt import stored_runs


def test_parts_are_in_the_order_in_which_they_are_added():
    rows = [("whole", 1, 1.0), ("whole", 2, 1.1), ("bare", 1, 2.0), ("bare", 2, 2.1)]
    runs = [{"rung": rung, "seed": seed, "test": loss} for rung, seed, loss in rows]
    table = stored_runs.parts_table(runs)
    assert [*table.index] == ["bare", "whole"]
    assert table.loc["bare", 2] == 2.1


def test_little_runs_are_those_at_the_rate_with_the_lowest_mean_of_best_losses():
    rows = [(0.0, 0.1, [3.0, 1.0, 2.0]), (0.0, 0.2, [3.0, 1.5, 1.5])]
    rows += [(0.3, 0.1, [3.0, 2.0, 2.0]), (0.3, 0.2, [3.0, 1.9, 2.5])]
    runs = [
        {
            "dropout": dropout,
            "rate": rate,
            "seed": 1,
            "history": [[step, 0.0, loss] for step, loss in enumerate(losses)],
        }
        for dropout, rate, losses in rows
    ]
    table = stored_runs.little_runs(runs)
    assert [*zip(table.dropout, table.rate, table.best, strict=True)] == [
        (0.0, 0.1, 1.0),
        (0.3, 0.2, 1.9),
    ]


def test_gains_are_means_over_the_seeds_of_the_small_gpt():
    def row(*models, gain):
        return {"models": [*models], "sonnets": [gain, 2 * gain]}

    rows = [row("counting", seed, gain=int(seed)) for seed in ("1", "2", "3")]
    rows += [row("1", "2", gain=1), row("1", "3", gain=2), row("2", "3", gain=6)]
    rows.append(row("counting", "the course's", gain=5))
    gains = stored_runs.gains(rows)
    np.testing.assert_allclose(gains["n-grams + small GPT"], [2, 4])
    np.testing.assert_allclose(gains["small GPT + another"], [3, 6])
    np.testing.assert_allclose(gains["n-grams + the course's GPT"], [5, 10])
