"""What every exercise check is made with."""

import numpy as np
import pytest
import torch

from lmcourse import exercises
from lmcourse.exercises import Verdict, Wrong, check, compare, exercise, names, run


@exercise("toy.double")
def _double(answer):
    compare(run(answer, 3), 6, {"this adds two; double it.": 5})


@pytest.fixture(autouse=True)
def toy(monkeypatch):
    monkeypatch.setattr(exercises, "_load", lambda chapter: None)


def test_right_wrong_and_known_wrong():
    assert check("toy.double", lambda x: 2 * x)
    known = check("toy.double", lambda x: x + 2)
    assert not known
    assert known.message == "this adds two; double it."
    other = check("toy.double", lambda x: 7)
    assert not other
    assert "yours is 7" in other.message
    assert "6" not in other.message  # the answer is never told


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (lambda x: None, "nothing to check yet"),
        (lambda x: ..., "nothing to check yet"),
        (5, "pass the function itself; this is a int"),
        (lambda x: x / 0, "stopped with ZeroDivisionError"),
        (lambda: 1, "stopped with TypeError"),
        (lambda x: "six", "numbers are expected"),
        (lambda x: [6, 6], r"the shape is (2,); it should be ()"),
        (lambda x: float("nan"), "NaN"),
        (lambda x: [[1], [2, 3]], "array"),
    ],
)
def test_other_answers_get_a_friendly_word(answer, said):
    verdict = check("toy.double", answer)
    assert not verdict
    assert said in verdict.message


def test_unknown_exercises(monkeypatch):
    with pytest.raises(
        ValueError, match=r"no exercise 'toy\.triple'; this chapter has: toy"
    ):
        check("toy.triple", None)
    monkeypatch.undo()
    with pytest.raises(ValueError, match="no exercises for a chapter 'nowhere'"):
        names("nowhere")


def test_compare_takes_tensors_arrays_and_lists():
    compare(torch.ones(2, 3, requires_grad=True), np.ones((2, 3)))
    compare([1.0, 2.0], torch.tensor([1.0, 2.0 + 1e-6]))
    compare([True, False], np.array([True, False]))
    with pytest.raises(Wrong, match=r"1 of 2 numbers differ, the first at \(1,\)"):
        compare([1.0, 2.1], [1.0, 2.0])


def test_the_shape_counts_not_the_number_of_entries():
    with pytest.raises(Wrong, match=r"the shape is \(1, 3\); it should be \(3,\)"):
        compare(np.ones((1, 3)), np.ones(3))


def test_a_verdict_is_escaped():
    shown = Verdict("toy.x", False, "<script>alert(1)</script>")._repr_html_()
    assert "<script>" not in shown
    assert "&lt;script&gt;" in shown
