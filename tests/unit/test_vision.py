"""Patches, the stretches of the digits, and a vision Transformer."""

import re

import torch
import torch.nn.functional as F

from lmbook.play import stores
from lmcourse.models import trained
from lmcourse.vision import (
    STARTS,
    VisionTransformer,
    digits,
    patches,
    split_digits,
    train_classifier,
)


def test_patches_are_those_of_unfold():
    images = torch.arange(2.0 * 6 * 9).view(2, 6, 9)
    assert torch.equal(patches(images, 3), F.unfold(images[:, None], 3, stride=3).mT)


def test_each_stretch_judges_once_and_none_is_in_two_parts():
    every = [torch.cat(split_digits(fold)).sort().values for fold in range(5)]
    assert all(torch.equal(each, torch.arange(1797)) for each in every)
    judged = torch.cat([split_digits(fold)[2] for fold in range(5)])
    assert torch.equal(judged, torch.arange(1797))
    assert not set(split_digits(4)[1].tolist()) & set(split_digits(4)[2].tolist())


def test_stretches_begin_where_a_form_does():
    shown = "".join(map(str, digits()[1].tolist()))
    forms = [0]
    for each in re.finditer("0123456789(?=0123456)", shown):
        if each.start() > forms[-1] + 60:
            forms.append(each.start())
    assert len(forms) == 14
    assert tuple(forms[::3]) == STARTS


def test_dealt_patches_with_places_dealt_alike_change_nothing():
    torch.manual_seed(0)
    model, order = VisionTransformer().double(), torch.randperm(16)
    images = torch.rand(3, 8, 8).double()
    cut = patches(images)[:, order].mT
    dealt = F.fold(cut, (8, 8), 2, stride=2)[:, 0]
    wanted = model(images)[0]
    assert not torch.allclose(model(dealt)[0], wanted)
    model.positions.data = model.positions.data[order]
    torch.testing.assert_close(model(dealt)[0], wanted)


def test_without_positions_the_order_of_patches_is_not_seen():
    torch.manual_seed(0)
    model = VisionTransformer(positions=False).double()
    images = torch.rand(2, 8, 8).double()
    halves_exchanged = torch.cat([images[:, 4:], images[:, :4]], 1)
    torch.testing.assert_close(model(halves_exchanged)[0], model(images)[0])


def test_without_positions_training_learns_none():
    torch.manual_seed(0)
    model = VisionTransformer(positions=False).double()
    images = torch.rand(16, 8, 8).double()
    train_classifier(model, images, torch.arange(16) % 10, steps=2)
    assert not model.positions.any()


def test_the_one_that_comes_with_the_course_reads_what_it_has_not_seen():
    images, labels = digits()
    model, judged = trained("digits", VisionTransformer), split_digits(0)[2]
    assert (model(images[judged])[0].argmax(-1) == labels[judged]).float().mean() > 0.9
    assert len(stores.digits_file(model)) < 200_000
