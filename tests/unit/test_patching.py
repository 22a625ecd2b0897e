"""Copying what a model held for one text into another, and the texts for it."""

from itertools import product

import pytest
import torch
import torch.nn.functional as F

from lmcourse.gpt.inside import outputs, states
from lmcourse.llama import Llama, LlamaConfig
from lmcourse.patching import changed_states, copied_heads, copied_state
from lmcourse.prompts import LUNCH, NAMES, PLACES, TASKS, THINGS, errands, task_pairs, twins


@pytest.fixture
def model():
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=17, context=9, layers=3, heads=4, kv_heads=2, d_model=16, d_ff=24
    )
    model = Llama(config).double().eval()
    for weight in model.parameters():
        torch.nn.init.normal_(weight, std=0.5)
    return model.requires_grad_(False)


def texts():
    generator = torch.Generator().manual_seed(1)
    return torch.randint(17, (2, 3, 6), generator=generator)  # two batches of three


def ended(model, x, layer):
    """Run the layers from one on."""
    for block in model.blocks[layer:]:
        x, _ = block(x)
    return F.linear(model.norm(x), model.output_matrix)


def test_a_copied_state_is_the_other_texts_from_there_on(model):
    one, two = texts()
    stream, others = states(model, one), states(model, two)
    x = stream[2].clone()
    x[:, 3] = others[2][:, 3]
    with copied_state(model, 2, 3, others[2][:, 3]):
        copied = model(one)
    torch.testing.assert_close(copied, ended(model, x, 2))
    torch.testing.assert_close(model(one), ended(model, stream[2], 2))  # all as before


def test_copied_heads_change_the_last_token_by_what_they_returned_there(model):
    one, two = texts()
    source, heads = outputs(model, two), [(1, 0), (1, 3)]
    x = states(model, one)[1]
    own = outputs(model, one)
    update, _ = model.blocks[1].attention(model.blocks[1].norm_1(x))
    columns = model.blocks[1].attention.output.weight.unflatten(1, (4, -1))
    for layer, head in heads:
        change = (source[layer, head] - own[layer, head])[:, -1]  # (batch, d_head)
        update[:, -1] += change @ columns[:, head].T
    x = x + update
    x = x + model.blocks[1].feed_forward(model.blocks[1].norm_2(x))
    with copied_heads(model, heads, source):
        copied = model(one)
    torch.testing.assert_close(copied, ended(model, x, 2))
    mean = {key: value[:, -1].mean(0) for key, value in source.items()}
    with copied_heads(model, heads, mean):  # one vector for all texts
        assert not torch.allclose(model(one), copied)


@pytest.mark.parametrize("first_gives", [None, True, False])
def test_a_twin_has_the_other_person_give(first_gives):
    one = errands(12, seed=3, form=LUNCH, first_gives=first_gives)
    two = twins(one)
    for text, twin, other, giver in zip(*one[:1], *two[:1], *one[1:], strict=True):
        assert text.count(giver) == twin.count(other) == 2
        assert text.count(other) == twin.count(giver) == 1
        assert twins(two).texts[one.texts.index(text)] == text
    assert (two.other, two.giver) == (one.giver, one.other)
    firsts = [text.split()[1] for text in one.texts]
    gives = [name == giver for name, giver in zip(firsts, one.giver, strict=True)]
    assert set(gives) == ({True, False} if first_gives is None else {first_gives})
    assert one == errands(12, seed=3, form=LUNCH, first_gives=first_gives)
    assert {*one.other, *one.giver} <= {*NAMES}


def test_every_place_is_told_with_every_thing():
    drawn = errands(16).texts
    pairs = [(text.split()[7].strip(","), text.split()[11]) for text in drawn]
    assert set(pairs) == set(product(PLACES, THINGS))


def test_what_else_a_block_is_given_stays():
    class Both(torch.nn.Module):
        def forward(self, stream, mask):
            return stream * mask

    model = torch.nn.Module()
    model.blocks = torch.nn.ModuleList([Both()])
    stream, mask = torch.ones(2, 3, 4), torch.full((2, 3, 4), 5.0)
    with copied_state(model, 0, 1, torch.full((2, 4), 7.0)):
        changed = model.blocks[0](stream, mask)
    assert changed[:, 1].eq(35).all()
    assert changed[:, [0, 2]].eq(5).all()


def test_tasks_have_a_word_and_one_answer():
    for task in TASKS:
        words = [word for word, _ in task_pairs(task)]
        assert len(words) == len(set(words)) >= 30


class Plus(torch.nn.Module):
    """A block of two inputs, which adds them up."""

    def forward(self, states, more):
        return states + more


def test_the_states_of_one_layer_alone_are_changed():
    model = torch.nn.Module()
    model.blocks = [Plus(), Plus()]
    with changed_states(model, 1, lambda x: 10 * x):
        assert model.blocks[0](torch.ones(2), 3).tolist() == [4, 4]
        assert model.blocks[1](torch.ones(2), 3).tolist() == [13, 13]


def test_states_are_changed_inside_a_with_only():
    block = torch.nn.Identity()
    model = torch.nn.Module()
    model.blocks = [block]
    with changed_states(model, 0, lambda x: x + 1):
        assert block(torch.zeros(2)).tolist() == [1, 1]
    assert block(torch.zeros(2)).tolist() == [0, 0]
