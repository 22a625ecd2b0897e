"""Sequences under a rule, and what is found in a model of them."""

import pytest
import torch

from lmcourse.models import trained
from lmcourse.rules import (
    FIRST_JUDGED,
    PARTNER,
    TURNS,
    SequenceModel,
    ablate_heads,
    letter_losses,
    sample_sequences,
)


@pytest.mark.parametrize("ruled", [1.0, 0.6, 0.0])
def test_letters_follow_the_rule_as_often_as_asked(ruled):
    ids, turn = sample_sequences(400, torch.Generator().manual_seed(0), ruled)
    assert set(turn.tolist()) == {2, 4}
    for back in (2, 4):
        rows = ids[turn == back]
        share = (rows[:, back:] == PARTNER[rows[:, :-back]]).float().mean().item()
        assert share == pytest.approx(ruled + (1 - ruled) / 20, abs=0.02)
    assert (torch.arange(20) != PARTNER).all()


def test_the_loss_of_a_letter_does_not_depend_on_later_ones():
    torch.manual_seed(0)
    model = SequenceModel()
    ids, _ = sample_sequences(2, torch.Generator().manual_seed(0))
    other = ids.clone()
    other[:, 20:] = 0
    losses, others = letter_losses(model, ids), letter_losses(model, other)
    assert torch.equal(losses[:, :19], others[:, :19])


def test_ablated_heads_are_those_of_a_model_changed_by_hand():
    """A head whose columns are zero and whose mean is in the bias, instead of a hook."""
    torch.manual_seed(0)
    model = SequenceModel().double().requires_grad_(False)
    result = ablate_heads(model, 50, seed=3)
    ids, turn = sample_sequences(50, torch.Generator().manual_seed(3))
    attention = model.blocks[0].attention
    x = model.blocks[0].norm_1(model.embed(ids))
    mask = torch.ones(32, 32, dtype=torch.bool).tril()
    for head in range(2):
        _, weights = attention(x, mask=mask, rotate=_rotate)
        value = attention.value(x)[..., 16 * head : 16 * (head + 1)]  # (50, 32, d_head)
        mean = (weights[:, head] @ value).mean((0, 1))
        changed = SequenceModel().double().requires_grad_(False)
        changed.load_state_dict(model.state_dict())
        output = changed.blocks[0].attention.output
        columns = output.weight[:, 16 * head : 16 * (head + 1)]
        output.bias += columns @ mean
        columns.zero_()
        losses = letter_losses(changed, ids)[:, FIRST_JUDGED - 1 :]
        want = [losses[turn == back].mean().item() for back in TURNS]
        assert result["without"][head] == pytest.approx(want, abs=1e-4)
        for back, share in enumerate(result["attention"][head]):  # of what predicts
            seen = [
                weights[:, head, i, i - back].mean().item() for i in range(8 + back, 32)
            ]
            assert share == pytest.approx(sum(seen) / len(seen), abs=1e-4)
    losses = letter_losses(model, ids)[:, FIRST_JUDGED - 1 :]
    want = [losses[turn == back].mean().item() for back in TURNS]
    assert result["whole"] == pytest.approx(want, abs=1e-4)  # the heads came back


def _rotate(x):
    """Rotary positions, by complex numbers."""
    pairs = torch.view_as_complex(x.unflatten(-1, (-1, 2)).contiguous())
    speed = 10000.0 ** (
        -torch.arange(pairs.shape[-1], dtype=torch.float64) * 2 / x.shape[-1]
    )
    angle = torch.arange(x.shape[-2], dtype=torch.float64)[:, None] * speed
    return torch.view_as_real(pairs * torch.polar(torch.ones_like(angle), angle)).flatten(
        -2
    )


def test_the_stored_model_attends_where_the_rules_look():
    result = ablate_heads(trained("rules", SequenceModel), 100)
    assert sorted(x.index(max(x)) + 1 for x in result["attention"]) == [2, 4]
    wholly = [after - before for after, before in zip(*result["without"], strict=True)]
    assert wholly[0] * wholly[1] < 0  # each head carries one of the rules
