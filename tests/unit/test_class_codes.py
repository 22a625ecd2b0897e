"""Codes for a class: what a slip does to one, and where a check prints it."""

from itertools import product

import pytest

from lmcourse import exercises
from lmcourse.exercises.codes import LETTERS, SYMBOLS, class_code, task_label

LABELS = ["ex-sequences-own-text", "ex-attention-sharper", "ex-mini-gpt-far"]


def valid():
    """Return all codes of some tasks."""
    return {class_code(label, letter) for label, letter in product(LABELS, LETTERS)}


def test_answers_and_tasks_have_codes_of_their_own():
    assert len(valid()) == len(LABELS) * len(LETTERS)
    for code in valid():
        assert len(code) == 7
        assert set(code) - {"-"} <= set(SYMBOLS)


def sums(code):
    *numbers, last = (SYMBOLS.index(character) for character in code.replace("-", ""))
    return sum(place * number for place, number in enumerate(numbers, 1)) % 31 == last


@pytest.mark.parametrize("label", LABELS)
def test_a_slip_is_always_seen(label):
    for letter in LETTERS:
        code = class_code(label, letter).replace("-", "")
        assert sums(code)
        for place, other in product(range(6), SYMBOLS):
            slipped = code[:place] + other + code[place + 1 :]
            assert sums(slipped) == (slipped == code)
        for place in range(5):
            swapped = code[:place] + code[place + 1] + code[place] + code[place + 2 :]
            assert sums(swapped) == (swapped == code)


def predicts():
    """Return names of *predict* tasks with a table of letters."""
    return exercises.names("sequences", "predict")


def test_a_check_prints_the_code_of_a_prediction():
    name = predicts()[0]
    for letter in "abc":
        code = class_code(task_label(name), letter)
        verdict = exercises.check(name, f" {letter.upper()} ")
        assert repr(verdict).endswith(f"In class, send this code: {code}")
        assert code in verdict._repr_html_()
        assert code not in verdict.message


@pytest.mark.parametrize("answer", [..., None, "?", "z", "", 3])
def test_what_is_no_answer_has_no_code(answer):
    assert "code" not in repr(exercises.check(predicts()[0], answer)).partition(":")[2]


def test_other_kinds_have_no_code():
    judged = exercises.names("sequences", "judge")
    assert judged
    assert not any(exercises.check(name, "a").code for name in judged)
