"""Pairs of lines to choose from, before any script runs."""

import re
from html import unescape

import numpy as np
import pytest

from lmcourse import preferences, views
from lmcourse.gpt.checkpoints import load_gpt
from lmcourse.tokenization import CharTokenizer
from lmcourse.views.choices import (
    LONGEST,
    PAIRS,
    SHORTEST,
    correct_predictions,
    write_pairs,
)


@pytest.fixture(scope="module")
def gpt():
    return load_gpt(device="cpu")[:2]


@pytest.fixture(scope="module")
def view(gpt):
    return views.choices(*gpt)


def test_all_lines_differ_and_every_pair_has_one_with_more_echoes(view):
    pairs = view.data["pairs"]
    lines = [line for pair in pairs for line in pair]
    assert len(pairs) == PAIRS
    assert len(set(lines)) == 2 * PAIRS
    assert all(SHORTEST <= len(line) <= LONGEST for line in lines)
    assert set("".join(lines)) <= set(view.data["alphabet"])
    echoes = [[preferences.properties(line)["echoes"] for line in pair] for pair in pairs]
    assert all(a != b for a, b in echoes)


def test_the_lines_are_the_same_for_a_seed_only(gpt, view):
    assert write_pairs(*gpt) == view.data["pairs"]
    assert write_pairs(*gpt, seed=4) != view.data["pairs"]


def test_stored_are_the_first_pair_and_what_more_echoes_would_get(view):
    pairs = view.data["pairs"]
    shown = [unescape(line) for line in re.findall("<li>(.*?)</li>", view.stored)]
    assert shown == pairs[0]
    apart = preferences.differences(*zip(*pairs, strict=True))
    taken = apart[:, preferences.PROPERTIES.index("echoes")] > 0
    weights = preferences.fit_reward(apart, taken)
    cells = re.findall(r"<td>([−\d.]+)</td>", view.stored)
    shown = [float(cell.replace("−", "-")) for cell in cells]
    assert shown == pytest.approx(weights, abs=0.006)
    assert (
        f"predict {correct_predictions(apart, taken):g} of {PAIRS} choices correctly"
        in view.alt
    )


def test_what_is_left_out_is_foretold_from_the_others_alone():
    one = np.array([[1.0], [1.0], [-1.0], [0.0]])
    assert (
        correct_predictions(one, [True, True, False, True]) == 3.5
    )  # no difference: one half
    # Two pairs that say the opposite: each foretells the other wrongly.
    assert correct_predictions([[2.0, 0.0], [2.0, 0.0]], [True, False]) == 0


def test_held_out_texts_fill_the_context_and_one_more(gpt, view):
    room = gpt[1].config.context
    assert view.data["held_out"]
    assert {len(text) for text in view.data["held_out"]} == {room + 1}


def test_a_model_that_repeats_itself_is_told(gpt):
    class Silent(CharTokenizer):
        def decode(self, ids):
            return "Same"

    with pytest.raises(ValueError, match="only 0 pairs"):
        views.choices(Silent(gpt[0].alphabet), gpt[1])
