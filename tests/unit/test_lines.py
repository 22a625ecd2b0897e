"""Positions after marks, lines that are changed, and the probability of a new line."""

import pytest
import torch
from torch import nn

from lmcourse import lines
from lmcourse.tokenization import CharTokenizer

LINE = "When I do count the clock that tells the "
TEXT = "x" * 20 + "\nso, it is.\nwell: no"
KEPT_LENGTH = [lines.shuffled, lines.one_letter, lines.no_vowels, lines.no_spaces]


def test_positions_are_after_marks_before_a_space_or_a_new_line():
    positions = lines.after_marks(TEXT, 12)
    assert [TEXT[position - 1 : position + 1] for position in positions] == [
        ", ",
        ".\n",
        ": ",
    ]


def test_a_position_needs_its_line_in_the_context_and_twice_the_context_before_it():
    assert lines.after_marks(TEXT, 4) == [24]
    assert lines.after_marks(TEXT, 20) == []


@pytest.mark.parametrize("change", KEPT_LENGTH)
def test_these_changes_keep_the_number_of_characters(change):
    assert len(change(LINE)) == len(LINE)
    assert change(LINE) != LINE


def test_what_the_changes_take_away():
    assert sorted(lines.shuffled(LINE)) == sorted(LINE)
    assert not set("aeiouy") & {*lines.no_vowels(LINE).lower()}
    assert " " not in lines.no_spaces(LINE)
    assert len(lines.words_halved(LINE).split()) == len(LINE.split())
    assert lines.words_halved("the clocks") == "t clo"
    assert lines.cut_short(LINE, 5) == LINE[5:]
    assert lines.lengthened(LINE, 3) == "eee" + LINE


def test_only_the_line_before_the_position_is_changed_and_not_its_end():
    text = "abc\n0123456789,\nmore"
    seen = lines.before(text, 15, lines.one_letter, 15)
    assert seen == "abc\neeeeee6789,"
    assert lines.before(text, 15, lambda line: line[4:], 8) == "c\n456789,"[-8:]


def test_a_short_line_stays_as_it_is():
    assert lines.before("abc\nno,\n", 7, lines.one_letter, 7) == "abc\nno,"


def test_the_probability_is_that_of_a_new_line_or_a_space():
    tokenizer = CharTokenizer("\n ,a")

    class Fixed(nn.Module):
        """Gives a new line three times the probability of a space."""

        def __init__(self):
            super().__init__()
            self.logits = nn.Parameter(torch.tensor([0.6, 0.2, 0.1, 0.1]).log())

        def forward(self, ids):
            return self.logits.expand(*ids.shape, 4)

    probs = lines.new_line_probs(Fixed(), tokenizer, ["a,", ",a"])
    torch.testing.assert_close(probs, torch.full((2,), 0.75, dtype=torch.float64))
