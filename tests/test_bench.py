"""Benchmarks measure each way in a process of its own."""

import json

import numpy as np
import pytest

from lmcourse import bench


def hold(mebibytes):
    """Prepare little; hold so much memory when run."""

    def run():
        block = np.ones(mebibytes * 2**17)
        return float(block.sum())

    return run


def die():
    raise SystemExit(3)


def test_time_memory_and_result_of_a_fresh_process():
    ballast = np.ones(300 * 2**17)  # 300 MiB here must not count there
    small, large = bench.isolated(hold, 10), bench.isolated(hold, 200)
    assert small["result"] == 10 * 2**17
    assert large["seconds"] > 0
    grown = [run["peak_mib"] - run["start_mib"] for run in (small, large)]
    assert 185 < grown[1] - grown[0] < 215
    assert small["peak_mib"] < 300 <= ballast.nbytes / 2**20


def test_a_death_is_told():
    with pytest.raises(RuntimeError, match=r"die\(\) died with exit code 3"):
        bench.isolated(die)


def test_report(capsys):
    bench.report(
        [{"way": "a", "seconds": 1.23456}, {"way": "long", "seconds": 2}], {"ratio": 2.0}
    )
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["way", "seconds"]
    assert lines[1].split() == ["a", "1.235"]
    assert json.loads(lines[-1]) == {"ratio": 2.0}
