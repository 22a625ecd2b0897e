"""The sweep over sizes: what it stores, and what is stored in the repository."""

import pytest

from lmcourse.data import load_corpus
from lmcourse.gpt import sweep
from lmcourse.gpt.model import GPT
from lmcourse.train import recipe


def test_a_small_sweep_end_to_end(tmp_path, monkeypatch):
    monkeypatch.setenv("LMCOURSE_DEVICE", "cpu")
    small = {"layers": 1, "heads": 2, "d_model": 8, "steps": 4, "warmup": 1}
    small["evaluate_every"] = 2
    monkeypatch.setattr(sweep, "BASE", {**sweep.BASE, **small})
    monkeypatch.setattr(sweep, "AXES", {"heads": (1, 2), "layers": (1, 2)})
    out = tmp_path / "new" / "sweep.json"
    monkeypatch.setattr(sweep, "stored_at", lambda *name: out)
    sweep.main()
    stored = sweep.load_sweep()
    runs = stored["runs"]
    assert [(run["axis"], run["value"]) for run in runs] == [
        ("heads", 1),
        ("heads", 2),
        ("layers", 1),
        ("layers", 2),
    ]
    assert runs[1] == runs[2] | {"axis": "heads", "value": 2}  # the base, trained once
    assert runs[0]["parameters"] == runs[1]["parameters"] < runs[3]["parameters"]
    assert [entry["step"] for entry in runs[3]["history"]] == [0, 2, 4]
    assert runs[0]["sample"].startswith(sweep.PROMPT)
    assert stored["record"]["base"]["steps"] == 4
    trained = [runs[0], runs[1], runs[3]]
    assert stored["record"]["seconds"] == round(sum(run["seconds"] for run in trained), 1)


def test_the_stored_sweep_is_of_the_stored_settings():
    stored = sweep.load_sweep()
    assert stored["record"]["base"] == sweep.BASE
    text = load_corpus(stored["record"]["corpus"])
    sizes = {
        (run["axis"], tuple(v) if isinstance(v := run["value"], list) else v): run
        for run in stored["runs"]
    }
    trained = {run["sample"]: run["seconds"] for run in stored["runs"]}
    # The base model is on three axes; one layer, and a width of 32, are shapes too.
    assert len(trained) == len(stored["runs"]) - 4
    assert stored["record"]["seconds"] == pytest.approx(sum(trained.values()), abs=0.06)
    assert set(sizes) == {(axis, v) for axis, values in sweep.AXES.items() for v in values}
    for (axis, value), run in sizes.items():
        config, _ = recipe("classic", len(set(text)), **sweep.settings_at(axis, value))
        assert GPT(config).parameters_count == run["parameters"]
        assert run["history"][-1]["step"] == sweep.BASE["steps"]
        assert run["history"][-1]["val_loss"] < run["history"][0]["val_loss"] - 1


def test_shapes_are_of_about_one_size():
    shapes = [run for run in sweep.load_sweep()["runs"] if run["axis"] == "shape"]
    sizes = [run["parameters"] for run in shapes]
    assert max(sizes) < 1.15 * min(sizes)
    assert len(shapes) >= 4


def test_a_missing_sweep_says_how_to_make_it(tmp_path, monkeypatch):
    monkeypatch.setattr(sweep, "corpora_folder", lambda: tmp_path)
    with pytest.raises(FileNotFoundError, match=r"mini-gpt\.json is missing.*make models"):
        sweep.load_sweep()
