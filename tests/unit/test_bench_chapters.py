"""The stored trainings of two chapters, and the commands that make them."""

import datetime
import json

import pytest
import torch

from lmbook.bench import block, dates, tuning
from lmcourse.adapters import load_adapters


@pytest.mark.parametrize("group", block.SETTINGS)
def test_every_setting_was_run_from_three_starts(group):
    stored = json.loads(block.stored_at().read_text())[group]
    assert len(stored) == len(block.SETTINGS[group]) * len(block.SEEDS) >= 6
    assert {run["seed"] for run in stored} == {*block.SEEDS}
    for run in stored:
        steps = [step for step, *_ in run["history"]]
        assert steps == [*range(0, steps[-1] + 1, block.EVERY)]


@pytest.mark.parametrize("off", block.PARTS)
def test_a_part_that_is_off_is_off(off):
    torch.manual_seed(0)
    model = block.Reader(11, layers=2, d_model=8, off=off, xavier=True)
    ids = torch.randint(11, (3, 5))
    loss = model(ids, ids, torch.ones(5, 5, dtype=torch.bool).tril())
    loss.backward()
    names = {n for n, p in model.named_parameters() if p.grad is not None}
    left = {"norms": "blocks.0.norm_1", "attention": "blocks.0.attention"}
    left["feed_forward"] = "blocks.0.feed_forward"
    for part, name in left.items():
        assert any(name in n for n in names) == (part != off)
    if off == "residuals":  # what the last step returns is all that is left
        last = model.stack.blocks[-1].feed_forward.down
        torch.nn.init.zeros_(last.weight)
        torch.nn.init.zeros_(last.bias)
        x = model.embed(ids)
        assert model.stack.blocks[-1](x)[0].abs().max() == 0


def test_a_run_learns_and_is_the_same_again():
    small = {"layers": 1, "d_model": 16, "steps": 25, "learning_rate": 1e-2}
    first, again = (block.run(0, **small, warmup=5) for _ in range(2))
    assert first == again
    (_, _, before), (_, _, after) = block.run(0, **small)["history"]
    assert after < before - 0.5


def test_dates_are_read_by_the_chapters_own_code():
    page = dates.chapter()
    day = datetime.date(1886, 5, 15)
    assert page.styles(day)[:2] == ["15 May 1886", "May 15, 1886"]
    assert page.where(day) == {
        "year": slice(7, None),
        "month": slice(3, 6),
        "day": slice(0, 2),
    }
    model, kept = dates.run(0, steps=2)
    stored = json.loads(dates.stored_at().read_text(encoding="utf-8"))
    assert len(stored["runs"]) == len(dates.SEEDS) >= 3
    assert [run.keys() for run in stored["runs"]] == [kept.keys()] * len(dates.SEEDS)
    for name in ("right", "looks", "hidden"):
        shapes = {torch.tensor(run[name]).shape for run in [*stored["runs"], kept]}
        assert len(shapes) == 1
    made = dates.states(model)
    for rows, again in zip(stored["states"], made, strict=True):
        for one, same in zip(rows, again, strict=True):
            assert (one["source"], one["wanted"]) == (same["source"], same["wanted"])
            assert len(one["looks"][0][0]) == len(one["source"])
            assert len(one["chances"]) == len(one["written"]) + 1 == len(one["looks"])
            assert all(90 <= sum(row) <= 110 for look in one["looks"] for row in look)


def test_the_sonnets_model_is_taught_by_the_chapters_own_code():
    stored = json.loads(tuning.stored_at().read_text(encoding="utf-8"))
    settings = {
        (method, size, rate)
        for method, sizes in tuning.SIZES.items()
        for size in sizes
        for rate in tuning.RATES[method]
    }
    runs = [run for run in stored["runs"] if not run["replayed"]]
    assert {(run["method"], run["size"], run["rate"]) for run in runs} == settings
    assert len(runs) == len(settings) * len(tuning.SEEDS)
    assert len(tuning.SEEDS) >= 3
    assert {run["replayed"] for run in stored["runs"]} == {0, *tuning.REPLAYED}
    assert len(stored["runs"]) == len(runs) + len(tuning.REPLAYED) * len(tuning.SEEDS)
    given = tuning.material()
    run, _ = tuning.run(given, "LoRA", 2, 1e-2, 1, replayed=2, budget=2)
    same = next(r for r in runs if (r["method"], r["size"], r["seed"]) == ("LoRA", 2, 1))
    assert run.keys() == same.keys()
    assert run["parameters"] == same["parameters"]
    assert run["steps"] == 3
    assert abs(run["steps"] / 2 - same["steps"] / tuning.BUDGET) < 0.5
    again, _ = tuning.run(given, "LoRA", 2, 1e-2, 1, replayed=2, budget=2)
    assert again == run
    untouched = stored["runs"][0]["moments"][0]
    for name, loss in tuning.losses(*given[1:]).items():
        assert abs(loss - untouched[name]) < 1e-3


def test_the_stored_marker_is_a_lora_of_the_sonnets_model():
    given = tuning.material()
    model = tuning.steer(given, steps=1)
    before = tuning.losses(model, given[2])
    load_adapters(tuning.marker_at(), model)
    assert tuning.losses(model, given[2]) != before
    record = json.loads(tuning.stored_at().read_text(encoding="utf-8"))["record"]
    assert record["marker"] == tuning.MARKER


def test_bert_is_trained_as_a_whole_on_few_labels():
    stored = json.loads(tuning.stored_at().read_text(encoding="utf-8"))["everything"]
    for name, (texts, labels) in tuning.tasks().items():
        assert len(texts) == len(labels)
        held_out = sum(place % 10 in (4, 9) for place in range(len(texts)))
        found = stored[name]
        assert [one["size"] for one in found] == [
            n for n in tuning.LABELS for _ in range(3)
        ]
        assert {len(one["hits"]) for one in found} == {held_out}
    (one, *_) = tuning.classify(texts[:60], labels[:60] != labels[0], (8,), steps=1)
    assert len(one["hits"]) == 12
