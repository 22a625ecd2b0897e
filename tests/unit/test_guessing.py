"""Shannon's game: guesses, and his bounds on the bits a letter has."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmcourse import guessing
from lmcourse.data import load_texts, train_val_test_split

SHANNON = [0.80, 0.07, 0.0, 0.03, 0.04, 0.02, 0.01, 0.01, 0.0, 0.01, 0.0, 0.0, 0.0, 0.01]


def by_hand(shares):
    """Return Shannon's formulas (1951, equation 17), term by term."""
    lower = upper = 0
    for i, share in enumerate(shares, 1):
        after = shares[i] if i < len(shares) else 0
        lower += i * (share - after) * np.log2(i)
        upper -= share * np.log2(share) if share else 0
    return lower, upper


def test_bounds_are_shannons():
    """Of 100 letters with his shares after 99 letters, rounded to hundredths."""
    guesses = [i for i, share in enumerate(SHANNON, 1) for _ in range(round(100 * share))]
    assert len(guesses) == 100
    assert guessing.bounds(guesses) == pytest.approx(by_hand(SHANNON))


def test_bounds_of_a_worked_example():
    """Three of four letters at once, one at the second guess: q = 3/4, 1/4.

    Lower: 1 (3/4 - 1/4) log2 1 + 2 (1/4) log2 2 = 1/2. Upper: 2 - 3/4 log2 3.
    """
    assert guessing.bounds([1, 1, 2, 1]) == pytest.approx((0.5, 2 - 0.75 * np.log2(3)))


def test_who_always_knows_needs_nothing_and_who_never_knows_needs_all():
    assert guessing.bounds([1] * 9) == (0, 0)
    assert guessing.bounds(range(1, 28)) == pytest.approx((np.log2(27), np.log2(27)))


@given(st.lists(st.floats(0.01, 1), min_size=27, max_size=27), st.integers(0, 2**32 - 1))
def test_an_ideal_guesser_lies_between_its_bounds(weights, seed):
    """Letters drawn again and again from one distribution, guessed in its order."""
    probs = np.sort(np.array(weights) / sum(weights))[::-1]
    counts = np.random.default_rng(seed).multinomial(20000, probs)
    lower, upper = guessing.bounds(np.repeat(np.arange(1, 28), counts))
    entropy = -(probs * np.log2(probs)).sum()
    assert lower - 0.1 < entropy < upper + 0.1


@pytest.mark.parametrize("wrong", [[], [0], [28], [1, 29]])
def test_impossible_guesses_are_refused(wrong):
    with pytest.raises(ValueError, match="1 to 27 guesses"):
        guessing.bounds(wrong)


def test_the_interval_is_the_jackknife_over_letters():
    guesses = [1, 1, 1, 2, 1, 5, 1, 1, 9, 2, 1, 1]
    bits = guessing.bits_of(guesses)
    n = len(guesses)
    left = np.array([guessing.bounds(guesses[:i] + guesses[i + 1 :]) for i in range(n)])
    whole = np.array(guessing.bounds(guesses))
    centre = n * whole - (n - 1) * left.mean(0)
    error = np.sqrt((n - 1) * left.var(0))
    assert bits.low == pytest.approx(max(0, (centre - 1.96 * error)[0]))
    assert bits.high == pytest.approx((centre + 1.96 * error)[1])
    assert (bits.lower, bits.upper) == pytest.approx(tuple(whole))


def test_intervals_of_few_letters_are_wide_and_include_the_truth():
    """Of samples of a known source nine in ten intervals include its entropy, or more."""
    probs = np.array([0.6, 0.15, 0.1, 0.05, 0.04, 0.03, 0.02, 0.01])
    entropy = -(probs * np.log2(probs)).sum()
    rng = np.random.default_rng(0)

    def draw(letters):
        samples = rng.choice(8, size=(200, letters), p=probs) + 1
        return [guessing.bits_of(sample) for sample in samples]

    few, many = draw(30), draw(600)
    for intervals in (few, many):
        assert np.mean([x.low <= entropy <= x.high for x in intervals]) > 0.9
    assert np.median([x.high - x.low for x in few]) > 1.5 * np.median(
        [x.high - x.low for x in many]
    )


def test_one_letter_says_nothing():
    assert guessing.bits_of([3]).low == 0
    assert guessing.bits_of([3]).high == guessing.MOST


def test_capitals_are_letters_and_marks_are_not():
    assert [guessing.letter_of(c) for c in "aZ ',é\n"] == ["a", "z", " ", *[None] * 4]
    probs = guessing.letter_probs([0.1, 0.2, 0.3, 0.4], "aA .")
    assert probs[0] == pytest.approx(0.5)
    assert probs[-1] == pytest.approx(0.5)
    assert probs.sum() == pytest.approx(1)
    with pytest.raises(ValueError, match="none of the letters a to z"):
        guessing.letter_probs([0.4, 0.6], "!?")


def test_the_likeliest_is_guessed_first_and_ties_in_order():
    probs = np.zeros(27)
    probs[[2, 4]] = 0.3, 0.7
    guesses = [guessing.guesses_for(probs, letter) for letter in "ecab "]
    assert guesses == [1, 2, 3, 4, 27]


def test_a_line_is_guessed_after_its_true_letters():
    """A model that expects a repetition of the last character."""
    alphabet = "ab ,\n"
    seen = []

    def again(ids):
        seen.append("".join(alphabet[i] for i in ids))
        return np.where(np.arange(5) == ids[-1], 0.6, 0.1)

    line = guessing.guess_line(again, alphabet, "b\n", "aa,b")
    assert seen == ["b\n", "b\na", "b\naa,"]
    assert line.guesses == [1, 1, 2]
    assert line.bits == pytest.approx([np.log2(3), np.log2(0.8 / 0.6), np.log2(3)])


def test_no_line_of_the_game_was_learned_from():
    parts = train_val_test_split(load_texts("sonnets"))
    lines = guessing.held_out_lines()
    assert (
        len({line.text for line in lines}) == len(lines) == len(load_texts("sonnets")) // 10
    )
    for _, before, text in lines:
        assert before + text in parts.test
        assert text not in parts.training
        assert text not in parts.validation
