"""The record of what each idea of the fast recipe is worth."""

import json

import pytest

from lmbook.bench import ideas
from lmcourse.data import load_corpus, load_texts, train_val_test_split
from lmcourse.gpt import sweep
from lmcourse.train import new_run


@pytest.fixture(scope="module")
def corpus():
    return load_corpus("sonnets"), train_val_test_split(load_texts("sonnets"))


def test_the_stored_record_is_whole(corpus):
    stored = sweep.load_sweep("ideas")
    kinds = [(run["seed"], run["way"]) for run in stored["ways"]]
    assert kinds == [(seed, way) for seed in range(3) for way in ideas.WAYS]
    starts = [(run["warmup"], run["seed"]) for run in stored["beginnings"]]
    assert starts == [(warmup, seed) for warmup in ideas.WARMUPS for seed in range(5)]
    assert all(len(run["losses"]) == ideas.FIRST for run in stored["beginnings"])
    assert stored["record"]["chapter"] == ideas.CHAPTER
    target, text = stored["record"]["target"], corpus[0]
    for run in stored["ways"]:
        _, trainer = new_run(text, *ideas.WAYS[run["way"]], parts=corpus[1], device="cpu")
        assert run["parameters"] == trainer.bare.parameters_count
        assert run["reached"] == (run["loss"] <= target)
        assert run["reached"] or run["steps"] == trainer.config.steps


def test_the_stored_beginning_is_what_the_code_finds(corpus, monkeypatch):
    monkeypatch.setattr(ideas, "FIRST", 4)
    for stored in sweep.load_sweep("ideas")["beginnings"][::5]:
        found = ideas.beginning(*corpus, stored["warmup"], stored["seed"])
        assert found["losses"] == pytest.approx(stored["losses"][:4], rel=1e-2)


def test_a_run_ends_at_the_target_or_after_its_steps(corpus):
    soon = ideas.until(*corpus, "fast", 0, 9.0, 40)
    assert (soon["steps"], soon["reached"]) == (ideas.EVERY, True)
    late = ideas.until(*corpus, "without small", 0, 0.1, 12)
    assert (late["steps"], late["reached"]) == (12, False)
    assert late["parameters"] > soon["parameters"]
    assert late["loss"] > 0.1


def test_it_is_stored_only_if_asked(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(ideas, "WAYS", {"fast": ("fast", ())})
    monkeypatch.setattr(ideas, "FIRST", 1)
    path = tmp_path / "ideas.json"
    monkeypatch.setattr(ideas, "stored_at", lambda name: path)
    asked = ["--seeds", "1", "--steps", "1"]
    assert ideas.main(asked) == 0
    assert not path.exists()
    assert ideas.main([*asked, "--store"]) == 0
    stored = json.loads(path.read_text(encoding="utf-8"))
    assert [run["way"] for run in stored["ways"]] == ["fast"]
    assert len(stored["beginnings"]) == 10
    said = capsys.readouterr().out.splitlines()
    assert json.loads(said[-1])["benchmark"] == "ideas"
