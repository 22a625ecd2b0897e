"""The record of schemes of positions, trained short and tested long."""

import json

import pytest

from lmbook.bench import positions


@pytest.fixture(scope="module")
def names():
    return positions.page()


def test_the_stored_record_is_whole():
    record = json.loads(positions.stored_at().read_text(encoding="utf-8"))
    kinds = [(r["scheme"], r["layers"], r["steps"], r["seed"]) for r in record["runs"]]
    assert kinds == [(*kind, seed) for kind in positions.GRID for seed in positions.SEEDS]
    assert all(len(row) == 16 for run in record["runs"] for row in run["loss"])


def test_a_run_is_the_page_s_own_training(names):
    found = positions.run(names, "learned", 1, 2, seed=3)
    again = positions.run(names, "learned", 1, 2, seed=3)
    assert found == again
    assert found["steps"] == 2
    assert found["seed"] == 3
    assert [len(row) for row in found["loss"]] == [16, 16]
    assert all(3 < loss < 5 for row in found["loss"] for loss in row)  # hardly trained
    assert len(found["lengths"]) == names["LONG"]
    assert found["cosine"][0] == 1
    assert "cosine" not in positions.run(names, "ALiBi", 2, 1, seed=0)


def test_the_record_is_written_and_compared(tmp_path, monkeypatch, capsys):
    path = tmp_path / "record.json"
    monkeypatch.setattr(positions, "stored_at", lambda: path)
    monkeypatch.setattr(positions, "SCHEMES", ("none", "rotary"))
    monkeypatch.setattr(positions, "GRID", [("none", 1, 300), ("rotary", 1, 300)])
    monkeypatch.setattr(positions, "SEEDS", range(1))
    real = positions.run
    short = lambda names, scheme, layers, steps, seed: (  # noqa: E731
        real(names, scheme, layers, 1, seed) | {"steps": steps}
    )
    monkeypatch.setattr(positions, "run", short)
    assert positions.main(["--write"]) == 0
    written = json.loads(path.read_text(encoding="utf-8"))
    assert [run["scheme"] for run in written["runs"]] == ["none", "rotary"]
    assert positions.main(["--steps", "1"]) == 0
    *table, last = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in table] == ["scheme", "none", "rotary"]
    columns = table[2].split()
    assert columns[1] == columns[2]
    assert columns[3] == columns[4]
    assert json.loads(last) == {"steps": 1}
