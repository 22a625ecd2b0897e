"""What stands of Shannon's game before any script runs."""

import re

import pytest

from lmcourse import guessing, views
from lmcourse.gpt.checkpoints import load_gpt
from lmcourse.gpt.model import GPT
from lmcourse.tokenization import CharTokenizer


@pytest.fixture(scope="module")
def view():
    return views.shannon(*load_gpt("sonnets", device="cpu")[:2])


def test_the_stored_line_is_not_given_to_the_reader(view):
    first, *others = guessing.held_out_lines()
    assert [line["name"] for line in view.data["lines"]] == [each.name for each in others]
    assert first.text in view.alt
    assert first.text not in str(view.data)


def test_the_stored_numbers_are_those_of_the_models(view):
    tokenizer, model, _ = load_gpt("sonnets", device="cpu")
    first = guessing.held_out_lines()[0]
    model = model.half().float().eval()
    line = guessing.guess_line(
        guessing.gpt_probs(model), tokenizer.alphabet, first.before, first.text
    )
    row = re.search(r'<th scope="row">GPT</th>(.*?)</tr>', view.stored)[1]
    shown = [int(cell) for cell in re.findall(r"<td>(\d+)</td>", row)]
    assert shown == line.guesses
    bits = guessing.bits_of(line.guesses)
    assert f"between {bits.lower:.1f} and {bits.upper:.1f} bits" in view.alt.split("GPT")[1]


def test_a_gpt_that_has_never_read_such_letters_is_told():
    tokenizer = CharTokenizer("abc")
    config = load_gpt("sonnets", device="cpu")[1].config
    small = type(config)(**{**vars(config), "vocab_size": 3})
    view = views.shannon(tokenizer, GPT(small))
    assert view.data is None
    assert "it has never read" in view.stored
    assert "GPT:" not in view.alt
