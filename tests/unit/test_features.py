"""Sparse autoencoders, and how well one number tells a property."""

import pytest
import torch
from sklearn.metrics import f1_score

from lmcourse.sparse import (
    MARKS,
    SparseAutoencoder,
    character_marks,
    train_autoencoder,
)
from studies.features.reading import best_units, f1_scores, named


def test_so_many_features_are_there_and_directions_keep_their_length():
    generator = torch.Generator().manual_seed(0)
    states = torch.randn(300, 12, generator=generator) + 5
    model = train_autoencoder(states, features=30, active=4, steps=40, batch=64)
    strengths = model.encode(states)
    assert (strengths >= 0).all()
    assert ((strengths > 0).sum(1) <= 4).all()
    torch.testing.assert_close(model.decoder.norm(dim=1), torch.ones(30))
    untrained = SparseAutoencoder(12, 30, 4, generator)
    untrained.centre, untrained.scale = model.centre, model.scale
    error, before = ((each(states) - states).square().mean() for each in (model, untrained))
    assert error < before


def test_true_directions_are_found():
    generator = torch.Generator().manual_seed(1)
    directions = torch.nn.functional.normalize(torch.randn(24, 16, generator=generator))
    there = torch.rand(6000, 24, generator=generator) < 0.06
    states = (there * (0.5 + torch.rand(6000, 24, generator=generator))) @ directions
    model = train_autoencoder(states, features=48, active=2, steps=1500, batch=256)
    cosines = (directions @ model.decoder.T).amax(1)
    assert (cosines > 0.9).float().mean() > 0.8


def test_f1_is_scikit_learn_s():
    generator = torch.Generator().manual_seed(2)
    numbers = torch.randint(0, 6, (80, 5), generator=generator).float()
    marks = torch.rand(80, 3, generator=generator) < 0.3
    scores, thresholds = f1_scores(numbers, marks)
    for unit in range(5):
        for mark in range(3):
            tried = {
                value: f1_score(marks[:, mark], numbers[:, unit] >= value)
                for value in numbers[:, unit].unique().tolist()
            }
            assert scores[unit, mark].item() == pytest.approx(max(tried.values()))
            threshold = thresholds[unit, mark].item()
            assert tried[threshold] == pytest.approx(max(tried.values()))


def test_a_unit_that_tells_a_property_is_found_with_either_sign():
    generator = torch.Generator().manual_seed(3)
    numbers = torch.rand(200, 6, generator=generator)
    marks = (numbers[:, 4:5] < 0.2).clone()
    halves = numbers[:100], marks[:100], numbers[100:], marks[100:]
    units, scores = best_units(*halves, signs=(1, -1))
    assert units == [10]  # the fifth of those with a minus
    assert scores[0] > 0.9


def test_names_are_tried_where_they_were_not_made():
    marks = torch.zeros(400, 2, dtype=torch.bool)
    marks[:200, 0] = True
    marks[:40, 1] = True
    numbers = torch.zeros(400, 1)
    numbers[:20] = 5.0  # the strongest have both: the rarer one gives the name
    numbers[20:100] = 1.0
    result = named(numbers, marks, numbers, marks)
    assert result == {"tried": 1, "names": [[0, 1, 0.4, 1.0]]}


def test_marks_are_told_by_the_text_so_far():
    text = "I love thy, then\nMy heart"
    marks = character_marks(text)
    name = {mark: MARKS.index(mark) for mark in MARKS}

    def at(mark):
        return "".join(
            c for c, holds in zip(text, marks[:, name[mark]], strict=True) if holds
        )

    assert at("a capital letter") == "IM"
    assert at("in a line’s first word") == "IMy"
    assert at("in a word after “my”") == "heart"
    assert at("in a word after a comma") == "then"
    assert at("in a word that begins with “th”") == "hyhen"
    assert at("a vowel") == "Ioeeea"
    assert at("in a line’s second word") == "loveheart"
    assert at("a word’s second letter") == "ohhye"
    assert at("in a line after a comma’s") == ""
    half = len(text) // 2
    assert torch.equal(character_marks(text[:half]), marks[:half])
