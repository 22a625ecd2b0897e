"""Each way is measured in a process of its own."""

import numpy as np

from lmbook.bench import measure


def hold(mebibytes):
    """Prepare little; hold so much memory when run."""

    def run():
        block = np.ones(mebibytes * 2**17)
        return float(block.sum())

    return run


def test_time_memory_and_result_of_a_fresh_process():
    ballast = np.ones(300 * 2**17)  # 300 MiB here must not count there
    small, large = measure.isolated(hold, 10), measure.isolated(hold, 200)
    assert small["result"] == 10 * 2**17
    assert large["seconds"] > 0
    more = large["peak_mib"] - small["peak_mib"]  # 190, give or take what lay about
    assert 100 < more < 300
    assert small["peak_mib"] < measure.peak_mib() - 150
    assert ballast.nbytes == 300 * 2**20
