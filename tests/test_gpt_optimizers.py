"""Rates written out, which optimizer moves what, and settings that mean nothing."""

import math

import pytest
import torch

from lmcourse.gpt.model import GPT, GPTConfig
from lmcourse.gpt.muon import Muon
from lmcourse.gpt.optimizers import TrainingConfig, make_optimizers, rate

SMALL = {"vocab_size": 11, "context": 5, "layers": 2, "heads": 2, "d_model": 8}


def test_rates_written_out():
    config = TrainingConfig(steps=10, warmup=4, final=0.1)
    want = {0: 0.25, 1: 0.5, 2: 0.75, 3: 1.0, 4: 1.0}  # warm-up, then the peak
    want |= {6: 0.775, 7: 0.55, 8: 0.325, 10: 0.1, 99: 0.1}  # cos 60° = 1/2; the end
    assert {step: rate(step, config) for step in want} == pytest.approx(want)
    assert rate(5, config) == pytest.approx(0.1 + 0.45 * (1 + math.sqrt(3) / 2))


def test_rates_without_warmup_or_without_room_for_a_cosine():
    config = TrainingConfig(steps=4, warmup=0, final=0.0)
    want = [1.0, 0.5 + math.sqrt(0.125), 0.5, 0.5 - math.sqrt(0.125), 0.0]
    assert [rate(step, config) for step in range(5)] == pytest.approx(want)
    config = TrainingConfig(steps=2, warmup=8)
    assert [rate(step, config) for step in range(2)] == [1 / 8, 2 / 8]


@pytest.mark.parametrize("optimizer", ["adamw", "muon"])
@pytest.mark.parametrize(
    "options", [{}, {"positions": "rotary", "ngrams": (5, 7)}], ids=str
)
def test_every_parameter_is_moved_once_and_only_matrices_decay(optimizer, options):
    model = GPT(GPTConfig(**SMALL | options))
    config = TrainingConfig(
        optimizer=optimizer, learning_rate=0.5, matrix_rate=0.25, weight_decay=0.125
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
        assert group["peak"] == group["lr"] == (0.25 if by_muon else 0.5)
        if not by_muon:
            assert group["weight_decay"] == (0.125 if weight.ndim == 2 else 0.0), name
    assert len(optimizers) == (2 if optimizer == "muon" else 1)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        *(
            ({name: 0}, f"{name} must be at least 1, not 0")
            for name in ("steps", "batch", "evaluate_every", "windows")
        ),
        *(
            ({name: value}, rf"{name} must be a whole number, not {value!r}")
            for name in ("steps", "batch", "evaluate_every", "windows", "warmup", "seed")
            for value in (1.5, 24.0, "x", None, True)
        ),
        *(
            ({name: value}, rf"{name} must be a finite number, not {value!r}")
            for name in ["learning_rate", "matrix_rate", "final", "weight_decay", "clip"]
            for value in (math.nan, math.inf, "abc", None, True)
        ),
        ({"clip": 10**400}, "clip must be a finite number"),
        *(
            ({name: value}, f"{name} must be above 0, not {value}")
            for name in ("learning_rate", "clip")
            for value in (0, -1)
        ),
        ({"matrix_rate": 0.0, "optimizer": "muon"}, "matrix_rate must be above 0"),
        ({"warmup": -1}, "warmup must be at least 0, not -1"),
        ({"weight_decay": -0.5}, "weight_decay must be at least 0, not -0.5"),
        ({"final": -2}, "final -2 is not a share, from 0 to 1"),
        ({"final": 1.5}, "final 1.5 is not a share, from 0 to 1"),
        ({"seed": 10**12 + 1}, r"seed 1000000000001 is not between -10\*\*12 and"),
        ({"seed": -(10**30)}, "is not between"),
        ({"optimizer": "sgd"}, "'sgd' is not 'adamw' or 'muon'"),
        ({"optimizer": None}, "None is not 'adamw' or 'muon'"),
    ],
    ids=str,
)
def test_settings_that_mean_nothing(options, message):
    with pytest.raises(ValueError, match=message):
        TrainingConfig(**options)


def test_settings_at_the_ends_of_their_ranges():
    TrainingConfig(matrix_rate=-1.0)  # AdamW does not ask for it
    for final in (0, 1):
        TrainingConfig(warmup=0, weight_decay=0, final=final, clip=1e-9, learning_rate=1)
