"""What the presets are made of, and what each idea changes."""

import dataclasses

import pytest

from lmcourse.gpt.model import make_model
from lmcourse.train import IDEAS, PRESETS, recipe


def flat(configs):
    """The fields of both configurations in one dict."""
    model, chosen = map(dataclasses.asdict, configs)
    assert set(model) & set(chosen) == set()
    return model | chosen


@pytest.mark.parametrize("idea", IDEAS)
def test_each_idea_can_be_left_out_and_changes_its_fields_only(idea):
    classic, fast = flat(recipe("classic", 60)), flat(recipe("fast", 60))
    without = flat(recipe("fast", 60, [idea]))
    changed = {name for name in fast if fast[name] != without[name]}
    assert changed == set(IDEAS[idea])  # so that none is without effect, or shared
    assert {name: fast[name] for name in changed} == IDEAS[idea]
    assert all(without[name] == classic[name] for name in changed)


def test_fast_is_classic_and_its_ideas():
    classic = flat(recipe("classic", 60))
    assert flat(recipe("fast", 60, IDEAS)) == classic
    assert flat(recipe("fast", 60))["vocab_size"] == 60
    assert set(PRESETS) == {"classic", "fast"}


@pytest.mark.parametrize("vocab_size", [40, 65, 100])
def test_fast_has_no_more_parameters_than_classic(vocab_size):
    sizes = {p: make_model(recipe(p, vocab_size)[0]).parameters_count for p in PRESETS}
    assert sizes["fast"] <= sizes["classic"]


def test_recipes_take_changes_and_refuse_strangers():
    model, chosen = recipe("fast", 60, layers=1, seed=7)
    assert (model.layers, chosen.seed) == (1, 7)
    with pytest.raises(ValueError, match="no preset 'slow'; there are classic, fast"):
        recipe("slow", 60)
    with pytest.raises(ValueError, match=r"fast has no idea magic .* ngrams, rotary"):
        recipe("fast", 60, ["magic", "muon"])
    with pytest.raises(ValueError, match=r"classic has no idea muon .* it has none"):
        recipe("classic", 60, ["muon"])
    with pytest.raises(ValueError, match=r"no setting depth, width; there are context, .*"):
        recipe("fast", 60, depth=3, width=4)
    with pytest.raises(ValueError, match=r"layers must be a whole number .*, not 'many'"):
        recipe("fast", 60, layers="many")
