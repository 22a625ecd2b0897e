"""Writing with a GPT, against its own logits."""

import math

import pytest
import torch

from lmcourse.gpt.generation import generate
from test_gpt_model import BATCH, CONTEXT, KINDS, VOCAB, gpt, some_ids


@pytest.fixture(autouse=True)
def _seed():
    torch.manual_seed(0)


def test_generate_draws_the_same_with_the_same_seed():
    model, ids = gpt(), some_ids(tokens=3)

    def write(seed):
        return generate(model, ids, 20, generator=torch.Generator().manual_seed(seed))

    assert torch.equal(write(1), write(1))
    assert not torch.equal(write(1), write(2))
    assert write(1).shape == (BATCH, 23)
    assert torch.equal(write(1)[:, :3], ids)
    assert torch.equal(generate(model, ids, 0), ids)


@KINDS
def test_temperature_zero_takes_the_likeliest_and_sees_the_context(options):
    model, ids = gpt(**options), some_ids(tokens=CONTEXT + 2)  # longer than it can see
    got = generate(model, ids, 6, temperature=0)
    for i in range(BATCH):
        written = ids[i].tolist()
        for _ in range(6):
            logits = model(torch.tensor([written[-CONTEXT:]]))[0, -1]
            written.append(max(range(VOCAB), key=lambda k: logits[k].item()))
        assert got[i].tolist() == written


@pytest.mark.parametrize("temperature", [0.5, 1.0, 3.0])
def test_tokens_are_drawn_as_often_as_they_are_likely(temperature):
    model, ids = gpt(), some_ids(batch=1)
    drawn = generate(model, ids.expand(20_000, -1), 1, temperature)[:, -1]
    with torch.no_grad():
        odds = [math.exp(x / temperature) for x in model(ids)[0, -1].tolist()]
    want = torch.tensor(odds) / sum(odds)
    got = drawn.bincount(minlength=VOCAB) / len(drawn)
    assert (got - want).abs().max() < 0.02  # five standard deviations


@pytest.mark.parametrize("training", [True, False])
def test_generate_leaves_the_mode_alone_and_never_drops(training):
    model, ids = gpt(dropout=0.5), some_ids(tokens=2)
    want = generate(model, ids, 6, temperature=0)
    model.train(training)
    assert torch.equal(generate(model, ids, 6, temperature=0), want)
    assert model.training is training
    with pytest.raises(ValueError, match="0 tokens"):
        generate(model, ids[:, :0], 1)
    assert model.training is training


def test_a_temperature_below_zero():
    with pytest.raises(ValueError, match=r"temperature -0\.1 is negative"):
        generate(gpt(), some_ids(), 1, temperature=-0.1)
