"""Another order that pages and Python share: it moves words, and no token comes or goes."""

import numpy as np
import pytest

from berts import bits_at as bits_of_the_page
from berts import shuffled_numbers
from lmcourse import random_order
from lmcourse.models import load_bert

TEXT = "  One two, three\n\nfour — five\tunfathomable six!\nseven\n"


@pytest.fixture(scope="module")
def tokenizer():
    return load_bert(device="cpu")[0]


def tokens(tokenizer, text, room):
    """Return the tokens that are read of a text."""
    return tokenizer.tokenize(text)[:room]


@pytest.mark.parametrize("seed", [0, 1, 2**32 - 1])
def test_the_numbers_are_those_of_the_page(seed):
    wanted = bits_of_the_page(seed, np.arange(2000)).tolist()
    assert [random_order.bits_at(seed, place) for place in range(2000)] == wanted


def test_things_are_ordered_as_in_the_page_and_never_stay():
    wanted = shuffled_numbers([*range(50)], 7)
    assert random_order.reordered(range(50), 7) == wanted
    assert random_order.reordered("word", 7) == [
        *map("word".__getitem__, shuffled_numbers([*range(4)], 7))
    ]
    for count in range(2, 9):
        for seed in range(40):
            mixed = random_order.reordered(range(count), seed)
            assert sorted(mixed) == [*range(count)]
            assert mixed != [*range(count)]
    assert (random_order.reordered([]), random_order.reordered("a")) == ([], ["a"])


def test_a_list_that_comes_out_as_it_was_begins_with_its_second():
    seed = next(
        seed for seed in range(99) if shuffled_numbers([0, 1, 2], seed) == [0, 1, 2]
    )
    assert random_order.reordered("abc", seed) == ["b", "c", "a"]


def test_words_change_places_and_lines_keep_their_number(tokenizer):
    mixed = random_order.reordered_words(TEXT, tokenizer, 100)
    assert mixed.split() != TEXT.split()
    assert sorted(mixed.split()) == sorted(TEXT.split())
    lines = [len(line.split()) for line in TEXT.split("\n")]
    assert [len(line.split()) for line in mixed.split("\n")] == lines
    assert sorted(tokens(tokenizer, mixed, 100)) == sorted(tokens(tokenizer, TEXT, 100))


def test_of_a_long_text_the_same_tokens_are_read(tokenizer):
    whole = tokenizer.tokenize(TEXT)
    words = TEXT.split()
    for room in range(1, len(whole) + 1):
        mixed = random_order.reordered_words(TEXT, tokenizer, room)
        assert sorted(tokens(tokenizer, mixed, room)) == sorted(whole[:room])
    assert mixed.split() != words
    assert random_order.reordered_words(TEXT, tokenizer, 3).split()[3:] == words[3:]


def test_ideographs_are_words_and_words_are_not_joined(tokenizer):
    text = "床前明月光，ab 疑是cd地上霜"
    mixed = random_order.reordered_words(text, tokenizer, 100)
    subwords = tokens(tokenizer, mixed, 100)
    assert subwords != tokens(tokenizer, text, 100)
    assert sorted(subwords) == sorted(tokens(tokenizer, text, 100))


def test_a_text_without_two_words_stays(tokenizer):
    for text in ("", " ", "word\n", "月"):
        assert random_order.reordered_words(text, tokenizer, 100) == text
