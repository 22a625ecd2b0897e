"""Every chapter's tasks, and what readers answer: right, wrong, nothing, anything."""

import importlib
import random
import re
import sys
from functools import cache
from typing import NamedTuple
from unittest import mock

import matplotlib.pyplot as plt
import numpy as np
import pytest
import torch

from chapters import CHAPTERS, definitions, exercise_cells, last_value, page_namespace
from lmcourse import exercises
from lmcourse.exercises import answers, check
from lmcourse.exercises.cases import blank
from test_same_code import module_definitions, tree
from wrong_answers.nonsense import WAYS, contained, nonsense


class Task(NamedTuple):
    """A task as its page has it."""

    chapter: str
    label: str
    kind: str
    written: bool  # whether its cell has an answer to fill in and a check


def tasks():
    """Return the tasks of all pages, "chapter.exercise" → task, without running any."""
    by_name = {}
    for path in sorted(CHAPTERS.glob("*.md")):
        text = path.read_text(encoding="utf-8")
        for gated in re.findall(r"\{exercise-start\}.*?\{exercise-end\}", text, re.DOTALL):
            label = re.search(r"^:label:[ \t]*(\S+)", gated, re.MULTILINE)[1]
            kind = re.search(r"^:class:[ \t]*(\S+)", gated, re.MULTILINE)[1]
            name = label.removeprefix(f"ex-{path.stem}-").replace("-", "_")
            task = Task(path.stem, label, kind, "exercises.check(" in gated)
            by_name[f"{path.stem}.{name}"] = task
    return by_name


TASKS = tasks()
PAGES = sorted({task.chapter for task in TASKS.values()})
WRITTEN = [name for name, task in TASKS.items() if task.written]
CALLED = [  # what takes a function or a class; two symbols are no function
    name
    for name, task in TASKS.items()
    if task.kind in ("build", "spot") and name != "tokenization.joined_by_replace"
]
SOLVED = {
    "ScaledDotProductAttention": "attention",
    "ProjectedAttention": "attention",
    "MultiHeadAttention": "attention",
}
FORBIDS = {  # their pages forbid a way of doing it
    "attention.all_at_once",
    "attention.masked_softmax",
    "bert-internals.embed",
    "mini-gpt.windows",
    "transformer-block.layer_norm",
}


@pytest.fixture(autouse=True)
def closed_figures():
    yield
    plt.close("all")


def table(chapter):
    """Return the module of a chapter's answers."""
    return importlib.import_module(f"wrong_answers.{chapter.replace('-', '_')}")


def namespace(chapter):
    """Return what a task finds: the page's imports and definitions.

    What a page has computed by then, and models that no test trains, are given by the
    module of its answers.
    """
    page = page_namespace(chapter)
    page.update(getattr(table(chapter), "given", dict)(page))
    return page


def cells(name):
    return exercise_cells(TASKS[name].chapter)[TASKS[name].label]


@cache
def solution(name):
    """Run a task's solution; return its verdict and the answer that it hands in."""
    with mock.patch.object(exercises, "check", wraps=check) as called:
        verdict = last_value(cells(name).solution, namespace(TASKS[name].chapter))
    return verdict, called.call_args.args[1]


# --- the pages' own cells ---------------------------------------------------------------


@pytest.mark.parametrize("chapter", PAGES)
def test_every_task_has_its_check_in_the_pages_order_and_of_its_kind(chapter):
    from lmbook.pages.tasks import KIND_TITLES

    mine = {name: task for name, task in TASKS.items() if task.chapter == chapter}
    assert list(mine) == exercises.names(chapter)
    assert len(mine) >= 4
    for name, task in mine.items():
        assert name in exercises.names(chapter, KIND_TITLES[task.kind].lower())


@pytest.mark.parametrize("name", SOLVED)
def test_solutions_are_the_packages_code(name):
    page = {}
    for written in exercise_cells("backpropagation").values():
        page |= definitions(written.solution)
    package = module_definitions(f"lmcourse.numpy_nn.{SOLVED[name]}")
    ours = tree(page[f"{name}Solution"]).replace("Solution'", "'")
    assert ours == tree(package[name])


# --- what every task has: the rows of its table -----------------------------------------


def rows_of(name, which):
    """Return what a chapter's table has for a task: of WRONG, RIGHT, FORBIDDEN, …"""
    chapter, _, task = name.partition(".")
    return getattr(table(chapter), which, {}).get(task, {})


def solution_passes(name):
    verdict, _ = solution(name)
    assert verdict, verdict
    assert verdict.name == name
    assert verdict.message.partition(" ")[0] == "right.", verdict.message


def starter_is_told_kindly(name):
    """An untouched answer is not tried yet; a bug is there from the start."""
    verdict = last_value(cells(name).starter, namespace(TASKS[name].chapter))
    assert not verdict
    assert verdict.name == name
    assert verdict.tried == (TASKS[name].kind == "spot")
    if verdict.tried:
        assert verdict.diagnosis in exercises.diagnoses(name), verdict
    else:
        assert repr(verdict) == f"○ {name}: not tried yet."


def others_pass(name):
    """Another algorithm or library passes, and the same in another container."""
    right, solved = rows_of(name, "RIGHT"), solution(name)[1]
    others = list(right)
    contained_answer = contained(solved)
    if contained_answer is not solved:
        others.append(contained_answer)
    for answer in (*right, contained_answer):
        assert check(name, answer), check(name, answer)
    assert len(others) >= 2, "two other right answers are needed"


def mistakes_are_told(name):
    """Each result that the check knows as a mistake gets its diagnosis, and is declared."""
    answer = solution(name)[1]
    tables, right = compared(name, answer)
    assert right, right
    assert {blank(message) for table in tables for message in table} <= {
        *exercises.diagnoses(name)
    }
    is_given = {message: False for mistakes in tables for message in mistakes}
    for at, mistakes in enumerate(tables):
        for message, result in mistakes.items():  # an example may be too small to tell two
            _, verdict = compared(name, answer, at, result)
            is_given[message] |= verdict.diagnosis == blank(message)
    assert all(is_given.values()), is_given


def wrong_answers_are_told(name):
    """Each wrong answer gets its words, which the check declares or which fit any task."""
    wrong, messages = rows_of(name, "WRONG"), []
    declared = {"", *exercises.diagnoses(name)}
    for words, given in wrong.items():
        for answer in given if isinstance(given, list) else [given]:
            verdict = check(name, answer)
            assert not verdict
            assert words in verdict.message, verdict
            assert verdict.diagnosis in declared, verdict
            assert [s for s in wrong if s in verdict.message and s not in words] == []
        messages.append(verdict.message)
    assert len(set(messages)) == len(messages)
    assert len(exercises.diagnoses(name)) >= 3


def nonsense_fails(name):
    """Three answers of the right type and shape fail, and the check goes through."""
    solved = solution(name)[1]
    for answer in rows_of(name, "NONSENSE") or [nonsense(solved, way) for way in WAYS]:
        verdict = check(name, answer)
        assert not verdict, verdict
        assert verdict.tried, verdict
        assert "could not be checked" not in verdict.message, verdict


def forbidden_is_noticed(name):
    """What the page forbids fails, though its result is right."""
    forbidden = rows_of(name, "FORBIDDEN")
    assert forbidden or name not in FORBIDS
    for words, answer in dict(forbidden).items():
        verdict = check(name, answer)
        assert not verdict
        assert words in verdict.message, verdict


def typed_claims_fail(name):
    """Of an experiment plausible numbers that nobody measured pass nothing."""
    if TASKS[name].kind == "experiment":
        typed = rows_of(name, "TYPED")
        assert typed or is_choice(solution(name)[1])
        for answer in typed:
            assert not check(name, answer), answer


def is_choice(answer):
    """Return whether an answer says what was chosen, and claims no result of it."""
    return isinstance(answer, int) or type(answer).__name__.endswith("Config")


def letters_are_told(name):
    """Each wrong letter has words of its own; none and no letter are told kindly."""
    exercises.names(TASKS[name].chapter)
    feedback = exercises._EXERCISES[name].feedback
    wrong = {letter: words for letter, words in feedback.items() if words}
    assert len(feedback) == len(wrong) + 1 >= 3
    assert len(set(wrong.values())) == len(wrong)
    for letter in feedback:
        for typed in (letter, f" {letter.upper()} "):
            verdict = check(name, typed)
            assert verdict.message == wrong.get(letter, "right.")
            assert verdict.ok == (letter not in wrong)
    assert not any(check(name, answer).tried for answer in ("", None, ...))
    assert all(check(name, x).message.startswith("choose one") for x in ("z", "ab", 2))


ROWS = {
    "solution": solution_passes,
    "starter": starter_is_told_kindly,
    "right": others_pass,
    "mistakes": mistakes_are_told,
    "wrong": wrong_answers_are_told,
    "nonsense": nonsense_fails,
    "forbidden": forbidden_is_noticed,
    "typed": typed_claims_fail,
}
LETTERS = {"letters": letters_are_told}
# These train, or read many texts, at each check: the rest of their tables is for steady.
TRAINING = {"embeddings.scrambled", "fine-tuning.own", "transformer-block.without_norms"}
TRAINING |= {"dickinson-layers.equals"}
QUICK = {"solution", "starter", "nonsense"}


def marks_of(name, row):
    """Return the marks of a row of a task's table: what takes long is for steady."""
    takes_long = name in TRAINING and row not in QUICK
    return [pytest.mark.steady] if takes_long else []


EVERY = [
    pytest.param(name, row, marks=marks_of(name, row))
    for name in TASKS
    for row in (ROWS if name in WRITTEN else LETTERS)
]


@pytest.mark.parametrize(("name", "row"), EVERY)
def test_a_task_holds(name, row):
    (ROWS | LETTERS)[row](name)


def compared(name, answer, at=None, result=None):
    """Check an answer; return what it was compared with, and the verdict.

    Parameters
    ----------
    at : int, optional
        The comparison, of those that the check makes one after the other, at which
        ``result`` is handed in instead of what the answer gave.

    Returns
    -------
    tables : list of dict
        Of each comparison the known mistakes, diagnosis → the result of it.
    verdict : Verdict
    """
    tables, compare = [], answers.compare

    def hand_in(got, want, mistakes=None, **tolerance):
        if len(tables) == at:
            got = result() if callable(result) else result
        tables.append(mistakes or {})
        compare(got, want, mistakes, **tolerance)

    with pytest.MonkeyPatch.context() as patch:
        for module in [m for m in sys.modules if m.startswith("lmcourse.exercises")]:
            if getattr(sys.modules[module], "compare", None) is compare:
                patch.setattr(sys.modules[module], "compare", hand_in)
        return tables, check(name, answer)


# --- answers that nobody asked for ------------------------------------------------------


def surroundings():
    """Return what belongs to the whole notebook, in a form that can be compared."""
    legacy = np.random.get_state()  # noqa: NPY002
    return (
        random.getstate(),
        (legacy[0], legacy[1].tobytes(), *legacy[2:]),
        torch.get_rng_state().numpy().tobytes(),
        torch.get_default_dtype(),
        torch.is_grad_enabled(),
        repr(torch.tensor(1 / 3)),
        np.get_printoptions(),
        np.geterr(),
    )


@pytest.fixture
def wanted(monkeypatch):
    """Return the oracles' results, in words, as they are compared."""
    seen, same = [], answers._same

    def spy(got, want, tolerance):
        numbers = not isinstance(got, list) and np.shape(want) == ()
        seen.append(f"{float(want):.4g}" if numbers else str(want))
        return same(got, want, tolerance)

    monkeypatch.setattr(answers, "_same", spy)
    return seen


@pytest.mark.parametrize("name", [*WRITTEN, "attention.sharper"])
def test_whatever_is_answered_there_is_a_verdict(name, wanted):
    from wrong_answers.exotic import EXOTIC

    for kind, answer in EXOTIC.items():
        before = surroundings()
        wanted.clear()
        verdict = check(name, answer)
        assert not verdict, kind
        assert 0 < len(verdict.message.strip()) < 1000, kind
        shown = [want for want in wanted if len(want) > 3 and want in verdict.message]
        assert not shown, (kind, verdict)
        assert surroundings() == before, kind


@pytest.mark.parametrize("name", CALLED)
def test_an_error_in_the_answer_is_told_and_an_interruption_goes_through(name):
    from lmcourse.numpy_nn.core import Module

    def raising(error):
        def answer(*inputs):
            raise error

        module = type("Answer", (Module,), {"__init__": answer})
        takes_a_class = "the class itself" in check(name, answer).message
        return module if takes_a_class else answer

    error = IndexError("out of range")
    assert "stopped with IndexError: out of range" in check(name, raising(error)).message
    with pytest.raises(KeyboardInterrupt):
        check(name, raising(KeyboardInterrupt()))
