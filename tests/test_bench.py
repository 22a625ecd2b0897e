"""What a benchmark prints."""

import json

from lmbook import bench


def test_report(capsys):
    bench.report(
        [{"way": "a", "seconds": 1.23456}, {"way": "long", "seconds": 2}], {"ratio": 2.0}
    )
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["way", "seconds"]
    assert lines[1].split() == ["a", "1.235"]
    assert json.loads(lines[-1]) == {"ratio": 2.0}
