"""Settings that mean nothing are refused by name."""

import math

import pytest

from lmcourse.gpt.model import GPTConfig
from lmcourse.gpt.training import TrainingConfig

SIZES = {"vocab_size": 11, "context": 9, "layers": 3, "heads": 2, "d_model": 12}
COUNTS = ("steps", "batch", "evaluate_every", "validation_windows")
ABOVE_0 = ("learning_rate", "muon_learning_rate", "clip")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        *(
            ({name: value}, rf"{name} must be a whole number from 1 to .*, not {value!r}")
            for name in SIZES
            for value in (0, 2.0, True, None, "many", 10**9)
        ),
        ({"heads": 5}, "5 heads do not divide d_model = 12"),
        ({"positions": "sinusoidal"}, "positions must be 'learned' or 'rotary', not 'sin"),
        ({"positions": None}, "positions must be 'learned' or 'rotary', not None"),
        ({"positions": "rotary", "heads": 4}, "must be even"),
        *(
            ({"dropout": value}, "dropout must be a finite number from 0, below 1, not")
            for value in (-0.1, 1, 1.0, math.nan, "much")
        ),
        *(
            ({"ngrams": value}, "ngrams must be a list of whole numbers from 1, not")
            for value in ((5, 0), [1.5], 5, "ab", None, [10**9])
        ),
    ],
    ids=str,
)
def test_sizes_that_do_not_fit(options, message):
    with pytest.raises(ValueError, match=message):
        GPTConfig(**SIZES | options)


def test_a_config_survives_json():
    assert GPTConfig(**SIZES, ngrams=[1, 4]) == GPTConfig(**SIZES, ngrams=(1, 4))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        *(
            ({name: value}, rf"{name} must be a whole number from 1 to .*, not {value!r}")
            for name in COUNTS
            for value in (0, 1.5, 24.0, "x", None, True)
        ),
        *(
            ({name: value}, rf"{name} must be a finite number above 0, not {value!r}")
            for name in ABOVE_0
            for value in (0, -1, math.nan, math.inf, "abc", None, True)
        ),
        ({"clip": 10**400}, "clip must be a finite number"),
        ({"warmup": -1}, "warmup must be a whole number from 0, not -1"),
        ({"warmup": 1.5}, "warmup must be a whole number from 0, not 1.5"),
        ({"steps": 4}, "a warmup of 100 steps must be shorter than the run of 4"),
        ({"steps": 4, "warmup": 4}, "a warmup of 4 steps must be shorter"),
        ({"weight_decay": -0.5}, "weight_decay must be a finite number from 0, not -0.5"),
        ({"final": -2}, "final must be a finite number from 0 to 1, not -2"),
        ({"final": 1.5}, "final must be a finite number from 0 to 1, not 1.5"),
        ({"seed": 10**12 + 1}, r"seed must be .* from -10\*\*12 to 10\*\*12, not 1000000"),
        ({"seed": -(10**30)}, "seed must be"),
        ({"seed": 1.5}, "seed must be a whole number"),
        ({"optimizer": "sgd"}, "optimizer must be 'adamw' or 'muon', not 'sgd'"),
        ({"optimizer": None}, "optimizer must be 'adamw' or 'muon', not None"),
    ],
    ids=str,
)
def test_settings_that_mean_nothing(options, message):
    with pytest.raises(ValueError, match=message):
        TrainingConfig(**options)


def test_settings_at_the_ends_of_their_ranges():
    TrainingConfig(steps=4, warmup=3)
    for final in (0, 1):
        TrainingConfig(warmup=0, weight_decay=0, final=final, clip=1e-9, learning_rate=1)
