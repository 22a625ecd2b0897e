"""A text whose letters are shuffled keeps everything but their order."""

from collections import Counter

from lmcourse.shuffled import shuffled_letters

TEXT = "Hope is the thing with feathers —\nThat perches in the soul, ’tis said.\n"


def shape(text):
    return [character.isalpha() or character for character in text]


def test_letters_change_places_and_nothing_else_does():
    mixed = shuffled_letters(TEXT)
    assert Counter(mixed) == Counter(TEXT)
    assert shape(mixed) == shape(TEXT)
    assert mixed != TEXT


def test_the_seed_decides():
    assert shuffled_letters(TEXT, 3) == shuffled_letters(TEXT, 3)
    assert shuffled_letters(TEXT, 3) != shuffled_letters(TEXT, 4)


def test_a_text_without_letters_stays():
    assert shuffled_letters("") == ""
    assert shuffled_letters("12 — 34!\n") == "12 — 34!\n"
