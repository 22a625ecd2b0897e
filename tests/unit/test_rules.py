"""Sequences under a rule, and what is found in a model of them."""

import pytest
import torch

from lmcourse.models import trained
from lmcourse.rules import PARTNER, REACH, SequenceModel, costs, dissected, grow


@pytest.mark.parametrize("kept", [1.0, 0.6, 0.0])
def test_the_rule_is_kept_as_often_as_told(kept):
    ids, turn = grow(400, torch.Generator().manual_seed(0), kept)
    assert set(turn.tolist()) == {2, 4}
    for back in (2, 4):
        rows = ids[turn == back]
        found = (rows[:, back:] == PARTNER[rows[:, :-back]]).float().mean().item()
        assert found == pytest.approx(kept + (1 - kept) / 20, abs=0.02)
    assert (torch.arange(20) != PARTNER).all()


def test_a_letter_s_cost_does_not_see_it_coming():
    torch.manual_seed(0)
    model = SequenceModel()
    ids, _ = grow(2, torch.Generator().manual_seed(0))
    other = ids.clone()
    other[:, 20:] = 0
    assert torch.equal(costs(model, ids)[:, :19], costs(model, other)[:, :19])


def test_heads_come_back_and_looks_are_shares():
    torch.manual_seed(0)
    model = SequenceModel()
    found = dissected(model, 50)
    assert found == dissected(model, 50)
    assert found["whole"] not in found["without"]
    assert all(len(looks) == REACH and sum(looks) < 1 for looks in found["looks"])


def test_the_one_that_comes_with_the_course_looks_where_the_rule_does():
    found = dissected(trained("rules", SequenceModel), 100)
    assert sorted(looks.index(max(looks)) + 1 for looks in found["looks"]) == [2, 4]
