"""A text whose letters are shuffled keeps everything but their order."""

from collections import Counter

from lmcourse.shuffled import shuffled_letters, shuffled_words

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
    assert shuffled_letters(TEXT) == shuffled_letters(TEXT, 0)


def test_a_text_without_letters_stays():
    assert shuffled_letters("") == ""
    assert shuffled_letters("12 — 34!\n") == "12 — 34!\n"


def test_words_change_places_and_lines_keep_their_number():
    text = "  One two, three\n\nfour — five\tsix!\nseven\n"
    mixed = shuffled_words(text)
    assert mixed != text
    assert sorted(mixed.split()) == sorted(text.split())
    lines = [len(line.split()) for line in text.split("\n")]
    assert [len(line.split()) for line in mixed.split("\n")] == lines
    assert mixed.startswith("  ")
    assert (shuffled_words(text, 1) == mixed, shuffled_words(text) == mixed) == (
        False,
        True,
    )
    assert [shuffled_words(each) for each in ("", " ", "word\n")] == ["", " ", "word\n"]
