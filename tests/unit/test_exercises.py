"""What every exercise check is made with."""

import linecache
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from lmcourse import exercises
from lmcourse.exercises import (
    Case,
    Faults,
    Verdict,
    Wrong,
    check,
    compare,
    diagnoses,
    exercise,
    expect,
    names,
    predict,
    run,
)
from lmcourse.exercises.answers import Called, diagnose, noted, number, rounded, unpack


@exercise("toy.double")
def _double():
    mistakes = {"this adds two; double it.": 5}
    yield Case([], 6, mistakes, ask=lambda answer: run(answer, 3))


@pytest.fixture(autouse=True)
def toy(monkeypatch):
    monkeypatch.setattr(exercises, "_load", lambda chapter: None)
    monkeypatch.setattr(exercises, "_EXERCISES", dict(exercises._EXERCISES))


def test_right_wrong_and_known_wrong():
    assert check("toy.double", lambda x: 2 * x)
    known = check("toy.double", lambda x: x + 2)
    assert known.message.startswith("this adds two; double it.")
    other = check("toy.double", lambda x: 7)
    assert not known
    assert not other
    assert "7 is not it" in other.message
    assert "6" not in other.message  # the answer is never told


def test_the_line_of_the_cell_that_failed_is_shown():
    source = "def double(x):\n    return helper(x)\n\ndef helper(x):\n    return x / 0\n"
    name, space = "/tmp/ipykernel_7/123.py", {}
    linecache.cache[name] = (len(source), None, source.splitlines(True), name)
    exec(compile(source, name, "exec"), space)
    message = check("toy.double", space["double"]).message
    assert "double stopped with ZeroDivisionError" in message
    assert "(line 5 of your cell: `return x / 0`)" in message
    assert "line" not in check("toy.double", lambda x: x / 0).message


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (lambda x: [].append(x), "returns nothing; end it with `return`."),
        (5, "pass the function itself; this is of type int"),
        (lambda x: x / 0, "stopped with ZeroDivisionError"),
        (lambda x: "six", "numbers are expected, not str."),
        (lambda x: ["six"], "numbers are expected, not a list of str."),
        (lambda x: 6 + 0j, "numbers are expected, not complex"),
        (lambda x: [6, 6], "the shape is (2,); it should be (), one number"),
        (lambda x: float("nan"), "NaN"),
        (lambda x: [[1], [2, 3]], "the rows differ in length"),
    ],
)
def test_other_answers_get_a_friendly_word(answer, message):
    verdict = check("toy.double", answer)
    assert not verdict
    assert message in verdict.message


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
    rows = [torch.ones(3, requires_grad=True), torch.ones(3, dtype=torch.bfloat16)]
    compare([rows, tuple(rows)], np.ones((2, 2, 3)))
    compare([True, False], np.array([True, False]))
    compare([np.inf, np.nan, 1.0], [np.inf, np.nan, 1.0])
    compare([1e6, 1.0], [1e6, 2.0])  # a tolerance is a share of the largest magnitude
    compare([1e-9, 0.0], [1e-9, 1e-15])
    compare(10.0**9, 10**9)


@pytest.mark.parametrize(
    ("got", "want", "message"),
    [
        ([1.0, 2.1], [1.0, 2.0], r"1 of 2 numbers differ, the first at \(1,\)"),
        ([1.1e-9, 0.0], [1e-9, 0.0], r"the first at \(0,\)"),
        ([1.5], [1.0], "differ"),
        (10**9 + 1, 10**9, "numbers differ"),  # whole numbers must be equal
        ([-np.inf, 1.0], [np.inf, 1.0], "1 of 2"),
        (np.ones((1, 3)), np.ones(3), r"the shape is \(1, 3\); it should be \(3,\)"),
    ],
)
def test_what_differs_is_told(got, want, message):
    with pytest.raises(Wrong, match=message):
        compare(got, want)


def test_texts_are_compared():
    expect(lambda x: ("a", "b"), ["ab"], ["a", "b"])
    with pytest.raises(
        Wrong, match=r"the strings differ. For \S+\('ab'\) you gave \['b'\]"
    ):
        expect(lambda x: ["b"], ["ab"], ["a", "b"])


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ("b", None),
        (" B ", None),
        ("a", "the mean runs over rows."),
        ("c", "choose one letter of a, b, as a string."),
    ],
)
def test_a_letter_is_compared(answer, message):
    predict("toy.axis", a="the mean runs over rows.", b=None)
    verdict = check("toy.axis", answer)
    assert verdict.ok == (message is None)
    assert verdict.message.startswith(message or "right.")


def test_a_diagnosis_shows_call_and_result_if_both_are_short():
    def double(x):
        return x + 2

    with pytest.raises(Wrong, match=r"^add\. For double\(3\) you gave 5\.$"):
        expect(double, [3], 6, {"add.": 5})


def test_a_diagnosis_shows_the_result_alone_if_the_call_is_long():
    def double(x):
        return x.sum() + 2

    with pytest.raises(Wrong, match=r"^add\. Yours is 2\.0\.$"):
        expect(double, [np.zeros(9)], 6.0, {"add.": 2.0})


def test_a_diagnosis_shows_neither_call_nor_result_if_both_are_long():
    def double(x):
        return x + 2

    with pytest.raises(Wrong, match=r"^add\.$"):
        expect(double, [np.zeros(9)], np.ones(9), {"add.": np.full(9, 2)})


@pytest.mark.parametrize("keep", [False, True])
def test_inputs_are_copies_unless_asked_otherwise(keep):
    inputs = torch.zeros(2), np.zeros(2), [0], (np.zeros(2),), {"a": [0]}

    def spoil(tensor, array, numbers, pair, mapping):
        tensor[0] = array[0] = numbers[0] = pair[0][0] = mapping["a"][0] = 1
        return 1

    run(spoil, *inputs, keep=keep)
    assert [x[0] for x in (*inputs[:3], *inputs[3], inputs[4]["a"])] == [keep] * 5


def test_the_first_fault_of_those_declared_counts():
    @exercise("toy.faults")
    def faults():
        seen = {
            "{value} is small.": lambda seen: seen.value < 3,
            "odd.": lambda seen: seen.value % 2,
            "large.": lambda seen: seen.value > 9,
        }
        yield Faults(
            lambda answer: SimpleNamespace(value=number(answer)),
            seen,
            right="{value:.2f} is a good one.",
        )

    verdict = check("toy.faults", 4)
    assert (verdict.ok, verdict.message) == (True, "right. 4.00 is a good one.")
    assert check("toy.faults", 11).message == "odd."
    small = check("toy.faults", 2)
    assert (small.message, small.diagnosis) == ("2.0 is small.", "… is small.")
    assert diagnoses("toy.faults") == ["… is small.", "odd.", "large."]


def test_numbers_in_a_message_are_written_as_everywhere_in_the_book():
    texts = "{share:.1%} of {count:,} with {value:+.2f}, {low}, {name:>3} and {pair}."

    @exercise("toy.numbers")
    def numbers():
        yield Faults(lambda answer: answer, {texts: lambda seen: seen.bad}, right=texts)

    seen = {"share": np.float32(0.125), "count": 30522, "value": -0.5, "low": np.int64(-3)}
    seen |= {"name": "-x", "pair": [1, -2]}
    told = "12.5\N{NO-BREAK SPACE}% of 30,522 with −0.50, −3,  -x and [1, -2]."
    right = check("toy.numbers", SimpleNamespace(**seen, bad=False))
    assert right.message == f"right. {told}"
    wrong = check("toy.numbers", SimpleNamespace(**seen, bad=True))
    assert (wrong.message, wrong.diagnosis) == (told, "… of … with …, …, … and ….")


def test_a_number_that_differs_is_told_with_a_minus_sign():
    @exercise("toy.minus")
    def minus():
        yield Case([[1.0, 2.0]], np.array([1.0, 2.0]))
        yield Case([1.0], 2.0)

    assert (
        "where yours is −2." in check("toy.minus", lambda x: -np.asarray(x)[::-1]).message
    )
    same = check("toy.minus", lambda x: np.asarray(x) if np.ndim(x) else -x / 4)
    assert "the numbers differ; −0.25 is not it." in same.message


def test_diagnoses_are_listed_without_an_answer():
    @exercise("toy.listed")
    def listed():
        yield Case([1], 2, {"add.": 0, "this costs.": lambda: 1 / 0})
        yield Case([2], 3, {"add.": 1}, instead={"stopped with": "{error}: catch it."})

    assert diagnoses("toy.listed") == ["add.", "this costs.", "…: catch it."]
    predict("toy.letter", a="no.", b=None)
    assert diagnoses("toy.letter") == ["no."]
    with pytest.raises(ValueError, match=r"no exercise 'toy\.none'"):
        diagnoses("toy.none")


@pytest.mark.parametrize(
    ("answer", "diagnosis"),
    [
        (lambda x: x + 2, "this adds two; double it."),
        (lambda x: 7, ""),
        (lambda x: x / 0, ""),
        (..., ""),
        (lambda x: 6, ""),
    ],
)
def test_a_verdict_says_which_diagnosis_it_is(answer, diagnosis):
    assert check("toy.double", answer).diagnosis == diagnosis


def test_an_oracle_that_needs_the_answer_is_asked_of_a_solution():
    @exercise("toy.weights", solution=lambda x: 2 * x)
    def weights(answer):
        diagnose({"this is no function of x.": answer(1) == answer(2)})
        compare(answer(3), 3 * answer(1), {"{axis} is added.": 3 + answer(1)})

    assert diagnoses("toy.weights") == ["this is no function of x.", "… is added."]
    assert check("toy.weights", lambda x: 5 * x)
    assert check("toy.weights", lambda x: 5).message == "this is no function of x."
    diagnose({"nobody collects any more.": False})
    assert diagnoses("toy.weights") == ["this is no function of x.", "… is added."]


def test_what_a_check_raises_by_hand_is_not_declared():
    def look(answer):
        raise Wrong("surprise.")

    @exercise("toy.raising")
    def raising():
        yield Faults(look, {"odd.": bool})

    assert check("toy.raising", 1).diagnosis not in {"", *diagnoses("toy.raising")}


def test_a_case_may_ask_for_something_else_and_say_it_in_other_words():
    @exercise("toy.second")
    def second():
        wordings = {"stopped with": "{error}. It said: {text}!", "differ": "look again."}
        ask, mistakes = lambda answer: run(answer, 3)[1], {"one.": lambda: 1}
        yield Case([], 2, mistakes, ask=ask, instead=wordings, prefix="the second:")

    def fails(x):
        raise KeyError("a")

    assert check("toy.second", lambda x: (0, 2))
    assert check("toy.second", lambda x: (0, 1)).message == "the second: one."
    assert check("toy.second", lambda x: (0, 5)).message == "look again."
    verdict = check("toy.second", fails)
    assert verdict.message == "fails stopped with KeyError: 'a'. It said: 'a'!"
    assert verdict.diagnosis == "…. It said: …!"
    assert not check("toy.second", lambda x: ...).tried


@pytest.fixture
def loss_experiment():
    """An experiment whose result, a loss, must be at most 1.5."""

    @exercise("toy.loss", kind="experiment")
    def loss():
        yield Faults(number, {"train for longer.": lambda loss: loss > 1.5})


@pytest.mark.usefixtures("loss_experiment")
def test_an_experiment_is_checked_by_its_result():
    assert check("toy.loss", torch.tensor(1.2))
    assert check("toy.loss", 1.7).message == "train for longer."
    assert check("toy.loss", None).message == "not tried yet."


@pytest.mark.usefixtures("loss_experiment")
def test_an_experiment_wants_one_finite_number():
    assert "one number is expected, not (2,)" in check("toy.loss", [1.0, 1.2]).message
    assert "finite" in check("toy.loss", float("nan")).message


@pytest.mark.usefixtures("loss_experiment")
def test_exercises_are_listed_by_chapter_and_kind():
    assert names("toy", "experiment") == ["toy.loss"]
    assert names("toy", "build") == ["toy.double"]


def test_an_unknown_kind_of_exercise_is_refused_with_those_there_are():
    with pytest.raises(ValueError, match=r"no kind of exercise 'riddle'; there are: pred"):
        exercise("toy.riddle", kind="riddle")


def test_an_untouched_answer_is_not_tried_yet_and_not_wrong():
    def untouched(x):
        """Return twice x."""
        ...

    class Module:
        def forward(self, x):
            return self.compute(x)

        def compute(self, x):
            """Return twice x."""

    for answer in (untouched, lambda x: None, lambda x: ..., Module().forward, ..., None):
        verdict = check("toy.double", answer)
        assert not verdict
        assert not verdict.tried
        assert repr(verdict) == "○ toy.double: not tried yet."
        assert 'class="lm-verdict lm-untried"' in verdict._repr_html_()
    assert check("toy.double", lambda x: 7).tried


def test_what_was_stacked_is_taken_apart():
    assert len(unpack(torch.zeros(2, 3), 2, "two rows")) == 2
    assert unpack(np.arange(2), 2, "two numbers") == [0, 1]
    with pytest.raises(Wrong, match="return two rows; this is of type Tensor"):
        unpack(torch.zeros(3, 3), 2, "two rows")


def test_who_begins_to_collect_diagnoses_last_ends_first():
    with noted() as outer:
        with noted() as inner:
            diagnose({"both hear it.": False})
        diagnose({"the outer one hears it.": False})
    assert inner == ["both hear it."]
    assert outer == ["both hear it.", "the outer one hears it."]


def test_what_is_called_is_noted():
    with Called() as called:
        torch.nn.functional.dropout(torch.ones(3).sqrt())
    assert {"sqrt", "dropout"} <= set(called.names)


def test_a_verdict_is_escaped():
    shown = Verdict("toy.x", False, "<script>alert(1)</script>")._repr_html_()
    assert "<script>" not in shown
    assert "&lt;script&gt;" in shown


def test_code_in_a_verdict_is_shown_as_code():
    message = (
        "`states[0]` is *not* `2 * x < 1 *`; one ` alone, 2 * 3 * 4 and f(*args) are left."
    )
    shown = Verdict("toy.x", False, message)._repr_html_()
    assert "<code>states[0]</code> is <em>not</em> <code>2 * x &lt; 1 *</code>;" in shown
    assert "one ` alone, 2 * 3 * 4 and f(*args) are left." in shown


@pytest.mark.parametrize("got", [[4.533585109028847], 4.533585109028847])
def test_a_wrong_number_is_shown_in_six_digits_at_most(got):
    with pytest.raises(Wrong, match=r"you gave \[?4\.53359\]?\.$"):
        expect(lambda _: got, [0.30000000000000004], np.ones(np.shape(got)))


def test_what_was_returned_is_shown_with_six_digits_at_most():
    assert repr(rounded(4.533585109028847)) == "4.53359"
    assert repr(rounded([0.1, (np.float32(1 / 3), 7)])) == "[0.1, (0.333333, 7)]"
    assert repr(rounded({"loss": 1e-9 / 3, 2: "two"})) == "{'loss': 3.33333e-10, 2: 'two'}"
    assert repr(rounded(float("-inf"))) == "-inf"
    assert rounded(12345678) == 12345678
    assert rounded(True) is True
