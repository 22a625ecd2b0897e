"""The toy's numbers, an autoencoder worked by hand, and the marks of characters."""

import pytest
import torch
import torch.nn.functional as F
from torch.testing import assert_close

from lmcourse import sparse


def test_draws_are_those_of_numerical_recipes():
    state, wanted = 7, []
    for _ in range(6):
        state = (1664525 * state + 1013904223) & 0xFFFFFFFF
        wanted.append(state / 4294967296)
    draws = sparse.Draws(7)
    assert draws(2, 2).flatten().tolist() == wanted[:4]
    assert draws(2).tolist() == wanted[4:]


@pytest.mark.parametrize("sparsity", [0.0, 0.3, 0.9])
def test_so_many_features_are_absent_and_the_others_uniform(sparsity):
    examples = sparse.toy_examples(sparsity, features=7)
    assert examples.shape == (1024, 7)
    assert (examples == 0).double().mean().item() == pytest.approx(sparsity, abs=0.02)
    there = examples[examples > 0]
    assert there.max() < 1
    assert there.mean().item() == pytest.approx(0.5, abs=0.03)
    assert not torch.equal(examples, sparse.toy_examples(sparsity, features=7, seed=1))


def test_the_toy_begins_around_zero():
    start = sparse.toy_start(6, 3, seed=2)
    assert start.shape == (3, 6)
    assert -0.5 <= start.min() < 0 < start.max() < 0.5
    assert_close(start + 0.5, sparse.Draws(2)(3, 6))


@pytest.mark.parametrize("bend", [True, False])
def test_the_toy_is_trained_by_adam_at_a_rate_that_falls(bend):
    examples = sparse.toy_examples(0.5, 4)
    weights = sparse.toy_start(4, 2, 3).requires_grad_()
    bias = torch.zeros(4, dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.Adam([weights, bias], sparse.RATE)
    falling = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.0, 5)
    for _ in range(5):
        back = torch.einsum("ef,df,dg->eg", examples, weights, weights) + bias
        loss = F.mse_loss(back.clamp(min=0) if bend else back, examples)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        falling.step()
    trained = sparse.train_toy(0.5, 5, 4, 2, 3, bend)
    assert_close(trained[0], weights.detach())
    assert_close(trained[1], bias.detach())
    assert trained[2] == pytest.approx(loss.item())


def worked_model():
    """Return an autoencoder whose directions are x, y, z and -x, its scale 2."""
    model = sparse.SparseAutoencoder(d_model=3, features=4, active=2)
    directions = torch.tensor([[1.0, 0, 0], [0, 1, 0], [0, 0, 1], [-1, 0, 0]])
    model.encoder.data, model.decoder.data = directions, directions.clone()
    model.centre, model.scale = torch.tensor([1.0, 2.0, 3.0]), torch.tensor(2.0)
    return model.requires_grad_(False)


def test_an_autoencoder_worked_by_hand():
    model = worked_model()
    states = torch.tensor([[5.0, 4, 5], [-7, 2, 1], [1, 2, 3]])
    # less the centre, over the scale: (2, 1, 1), (-4, 0, -1), (0, 0, 0)
    strengths = model.encode(states)
    assert strengths[0, 0] == 2
    assert (strengths[0] > 0).sum() == 2
    assert strengths[1].tolist() == [0, 0, 0, 4]
    assert strengths[2].tolist() == [0, 0, 0, 0]
    assert model(states)[1].tolist() == [-7, 2, 3]  # what is below is lost
    assert model(states)[2].tolist() == [1, 2, 3]
    model.bias.data = torch.tensor([0.0, 5, 0, -3])
    assert model.encode(states)[0].tolist() == [2, 6, 0, 0]
    assert model.encode(states)[1].tolist() == [0, 5, 0, 1]


def test_states_of_a_batch_are_encoded_as_one_by_one():
    model = worked_model()
    states = torch.randn(2, 5, 3, generator=torch.Generator().manual_seed(0)) * 4
    each = torch.stack([model.encode(state) for state in states.view(10, 3)])
    assert_close(model.encode(states), each.view(2, 5, 4))
    assert_close(model(states), model.decode(each).view(2, 5, 3))


def test_directions_begin_with_length_one_and_alike():
    model = sparse.SparseAutoencoder(6, 9, 2, torch.Generator().manual_seed(0))
    assert_close(model.decoder.norm(dim=1), torch.ones(9))
    assert torch.equal(model.encoder, model.decoder)
    assert model.encoder is not model.decoder
    assert model.active == 2


def test_an_autoencoder_is_trained_on_centred_states_of_size_one():
    generator = torch.Generator().manual_seed(0)
    states = torch.randn(50, 6, generator=generator) * 3 + 4
    model = sparse.train_autoencoder(states, 8, 2, steps=3, batch=5, rate=1e-2, seed=4)
    assert_close(model.centre, states.mean(0))
    centred = states - states.mean(0)
    assert_close(model.scale, centred.pow(2).mean().sqrt())
    assert not any(weight.requires_grad for weight in model.parameters())

    generator = torch.Generator().manual_seed(4)
    by_hand = sparse.SparseAutoencoder(6, 8, 2, generator)
    by_hand.centre, by_hand.scale = model.centre, model.scale
    optimizer = torch.optim.Adam(by_hand.parameters(), 1e-2)
    falling = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.0, 3)
    for _ in range(3):
        rows = states[torch.randint(50, (5,), generator=generator)]
        error = (by_hand(rows) - rows) / model.scale
        optimizer.zero_grad()
        error.pow(2).mean().backward()
        optimizer.step()
        falling.step()
        lengths = by_hand.decoder.data.norm(dim=1, keepdim=True)
        by_hand.decoder.data /= lengths
    for ours, wanted in zip(model.parameters(), by_hand.parameters(), strict=True):
        assert_close(ours, wanted.detach(), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(
    ("text", "mark", "wanted"),
    [
        ("a b\nc d", "a space", "  "),
        ("a b\nc d\n", "a line’s end", "\n\n"),
        ("Eau by Io", "a vowel", "EauIo"),
        ("Ah BE, no", "a capital letter", "ABE"),
        ("at Odd or", "after a vowel", "tdr"),
        ("the Thy oth", "after “th”", "ey"),
        ("That with", "after “th”", "a"),
        ("the oe a", "a word’s second letter", "he"),
        ("they 'tis", "a word’s third letter", "es"),
        ("ab, cd ef", "in a line’s first word", "ab"),
        ("ab, cd ef\ngh ij", "in a line’s second word", "cdij"),
        ("x" * 29 + "yz!", "far into a line", "z!"),
        ("The with than\nThy", "in a word that begins with “th”", "hehanhy"),
        ("a, bc d.e", "in a word after a comma", "bc"),
        ("My bee, my, own", "in a word after “my”", "bee"),
        ("Thou art; to thee, I; thine own", "after “thou” or its kin", "artIown"),
        ("a b,\nc d\ne", "in a line after a comma’s", "c d\n"),
    ],
)
def test_marks_of_characters(text, mark, wanted):
    marks = sparse.character_marks(text)
    assert marks.shape == (len(text), len(sparse.MARKS))
    column = marks[:, sparse.MARKS.index(mark)].tolist()
    assert "".join(c for c, holds in zip(text, column, strict=True) if holds) == wanted
