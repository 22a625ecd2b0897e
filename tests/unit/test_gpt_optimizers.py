"""The schedule written out, and which optimizer moves what."""

import math

import pytest
import torch

from lmcourse.gpt.model import GPTConfig, make_model
from lmcourse.gpt.training import TrainingConfig, make_optimizers, schedule
from lmcourse.optimizers import Muon

SMALL = {"vocab_size": 11, "context": 5, "layers": 2, "heads": 2, "d_model": 8}


def test_the_schedule_written_out():
    config = TrainingConfig(steps=10, warmup=4, final=0.1)
    want = {0: 0.25, 1: 0.5, 2: 0.75, 3: 1.0, 4: 1.0}  # warm-up, then the peak
    want |= {6: 0.775, 7: 0.55, 8: 0.325, 10: 0.1, 99: 0.1}  # cos 60° = 1/2; the end
    assert {step: schedule(step, config) for step in want} == pytest.approx(want)
    assert schedule(5, config) == pytest.approx(0.1 + 0.45 * (1 + math.sqrt(3) / 2))


def test_the_schedule_without_warmup():
    config = TrainingConfig(steps=4, warmup=0, final=0.0)
    want = [1.0, 0.5 + math.sqrt(0.125), 0.5, 0.5 - math.sqrt(0.125), 0.0]
    assert [schedule(step, config) for step in range(5)] == pytest.approx(want)


@pytest.mark.parametrize("optimizer", ["adamw", "muon"])
@pytest.mark.parametrize(
    "options", [{}, {"positions": "rotary", "ngrams": (5, 7)}], ids=str
)
def test_every_parameter_is_moved_once_and_only_matrices_decay(optimizer, options):
    model = make_model(GPTConfig(**SMALL | options))
    config = TrainingConfig(
        optimizer=optimizer, learning_rate=0.5, muon_learning_rate=0.25, weight_decay=0.125
    )
    optimizers = make_optimizers(model, config)
    names = {id(weight): name for name, weight in model.named_parameters()}
    moved = {}
    for made in optimizers:
        for group in made.param_groups:
            for weight in group["params"]:
                assert names[id(weight)] not in moved
                moved[names[id(weight)]] = made, group
    assert set(moved) == set(names.values())
    for name, weight in model.named_parameters():
        made, group = moved[name]
        by_muon = optimizer == "muon" and name.startswith("blocks.") and weight.ndim == 2
        assert isinstance(made, Muon if by_muon else torch.optim.AdamW), name
        assert made.defaults["lr"] == group["lr"] == (0.25 if by_muon else 0.5)
        if not by_muon:
            assert group["weight_decay"] == (0.125 if weight.ndim == 2 else 0.0), name
    assert len(optimizers) == (2 if optimizer == "muon" else 1)
