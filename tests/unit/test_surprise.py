"""What a poem's letters are coloured by: what the model gives when it is asked directly."""

import math
import re

import pytest
import torch

from lmbook.pages.surprise import START, expectations, surprise_view
from lmcourse.data import load_poems
from lmcourse.gpt.checkpoints import load_gpt
from lmcourse.gpt.gpt2 import to_transformers

poems = load_poems()
POEM = poems.loc[poems["first_line"] == "A word is dead", "text"].iloc[0]


@pytest.fixture(scope="module")
def expected():
    return expectations(POEM)


def test_shares_are_those_of_the_same_model_in_transformers(expected):
    tokenizer, model, _ = load_gpt("sonnets", "cpu")
    theirs = to_transformers(model).eval()
    context = model.config.context
    ids = torch.tensor(tokenizer.encode(START + POEM))
    with torch.no_grad():
        begin = theirs(ids[None, :context]).logits[0].softmax(-1)
        late = theirs(ids[None, -context - 1 : -1]).logits[0, -1].softmax(-1)
    shown = context - len(START)  # letters that the first window tells of
    wanted = [begin[i + 1, ids[i + 2]].item() for i in range(shown)]
    assert [share for share, _ in expected[:shown]] == pytest.approx(wanted, rel=1e-4)
    assert math.isclose(expected[-1][0], late[ids[-1]].item(), rel_tol=1e-4)
    top = begin[len(START) - 1].topk(4).indices.tolist()
    assert [letter for letter, _ in expected[0][1]] == [tokenizer.decode([i]) for i in top]


POEM_OF_MARKUP = '<"\n&'
GUESSES = [("<", 0.5), ("'", 0.25), ("\n", 0.125), ("&", 0.1)]
PROBABILITIES = (0.5, 2**-5, 1e-12, 0.5)  # of the poem's four characters
STRENGTHS = [0.1, 0.5, 1, 0.1]  # bits of surprise, by the ten that are the strongest colour


def view_of_markup():
    return surprise_view(POEM_OF_MARKUP, [(share, GUESSES) for share in PROBABILITIES])


def test_the_page_carries_the_poem_and_the_guesses_in_per_cent():
    data = view_of_markup().data
    guesses = [["<", 50], ["'", 25], ["\n", 12.5], ["&", 10]]
    assert data["text"] == POEM_OF_MARKUP
    assert data["letters"] == [
        [50, STRENGTHS[0], guesses],
        [3.1, STRENGTHS[1], guesses],
        [0, STRENGTHS[2], guesses],
        [50, STRENGTHS[3], guesses],
    ]


def test_the_stored_page_colours_each_character_and_escapes_it():
    coloured = re.findall(r"--s: ([\d.]+)\">(.*?)</span>", view_of_markup().stored)
    assert [float(strength) for strength, _ in coloured] == STRENGTHS
    assert [shown for _, shown in coloured] == ["&lt;", "&quot;", "↵", "&amp;"]
