"""Every answer in the tasks' tables gets, shut in, the verdict that it gets at hand."""

import sys

import cloudpickle
import pytest

from lmbook.grade import sandbox
from lmbook.grade.judge import NEED_ANSWER, judge
from lmcourse.exercises import check
from shut_in import WHY_NO_SANDBOX, needed, shut_in
from test_exercises_on_pages import WRITTEN, rows_of, solution


@pytest.fixture(scope="module")
def box():
    with sandbox.Sandbox(6) as opened:
        opened.begin("prepare", [])
        yield opened


def given(name):
    """Return the task's solution, and all answers of its tables."""
    answers = [solution(name)[1], *rows_of(name, "RIGHT")]
    wrong = dict(rows_of(name, "WRONG")) | dict(rows_of(name, "FORBIDDEN"))
    for answer in wrong.values():
        answers += answer if isinstance(answer, list) else [answer]
    return answers


@needed
def test_where_it_is_needed_something_can_be_shut_in():
    assert WHY_NO_SANDBOX == ""


@shut_in
@pytest.mark.parametrize("name", [task for task in WRITTEN if task not in NEED_ANSWER])
def test_a_task_is_judged_apart_as_at_hand(name, box):
    answers = given(name)
    for module in [m for n, m in sys.modules.items() if n.startswith("wrong_answers.")]:
        cloudpickle.register_pickle_by_value(module)  # the sandbox has no tests
    for answer in answers:
        handed_in = cloudpickle.dumps(answer)  # before a call leaves something in it
        here, there = check(name, answer), judge(name, handed_in, box, 120)
        assert (there.ok, there.tried) == (here.ok, here.tried), (here, there)
        if "in a loop" not in here.message:  # which counts calls
            assert there.message == here.message
