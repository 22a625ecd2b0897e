"""Writing with and without a cache, measured."""

import json

import pytest
import torch

from lmbook.bench import generation
from lmcourse.gpt.checkpoints import load_gpt
from lmcourse.gpt.generation import generate


def test_both_ways_write_the_same_and_memory_is_as_computed():
    row = generation.measure(load_gpt("sonnets", "cpu")[1], 12, 1)
    assert row["same_text"] is True
    assert row["cache_bytes"] == row["by_formula"] > 0
    ratio = row["uncached_s"] / row["cached_s"]
    assert row["times_faster"] == pytest.approx(ratio)
    assert row["length"] == 12


@pytest.mark.parametrize(
    ("change", "status"),
    [({}, 0), ({"same_text": False}, 1), ({"by_formula": 1}, 1), ({"times_faster": 4}, 1)],
    ids=str,
)
def test_what_is_wrong_is_told_by_the_status(monkeypatch, capsys, change, status):
    asked = []

    def measured(model, length, turns):
        asked.append((model.config.context, length, turns))
        row = {"length": length, "times_faster": 9.0, "same_text": True}
        return row | {"cache_bytes": 8, "by_formula": 8} | change

    monkeypatch.setattr(generation, "measure", measured)
    assert generation.main(["--turns", "2"]) == status
    assert asked[-1] == (512, 512, 2)
    assert asked[3] == (64, 64, 2)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 10
    told = json.loads(lines[-1])["times_faster"]
    assert told == dict.fromkeys(("sonnets", "larger"), change.get("times_faster", 9.0))


def test_the_larger_model_does_not_write_one_token_for_ever():
    model = generation.larger()
    text = generate(model, torch.zeros(1, 1, dtype=torch.long), 60, temperature=0)[0]
    assert len(set(text.tolist())) > 5
