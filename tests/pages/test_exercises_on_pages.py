"""Every chapter's exercises, and what readers answer: right, wrong, nothing, anything."""

import importlib
import random
import re

import matplotlib.pyplot as plt
import numpy as np
import pytest
import torch

from chapters import (
    CHAPTERS,
    definitions,
    exercise_cells,
    exercise_kinds,
    last_value,
    page_namespace,
)
from lmbook.pages.tasks import WORDS
from lmcourse import exercises
from lmcourse.exercises import answers, check
from lmcourse.numpy_nn import attention, core, decoder, layers, longer
from test_same_code import module_definitions, tree
from wrong_answers.exotic import EXOTIC

EXERCISES = {
    (path.stem, label): cells
    for path in sorted(CHAPTERS.glob("*.md"))
    for label, cells in exercise_cells(path.stem).items()
}
CHECKED = [task for task, cells in EXERCISES.items() if "check(" in cells.starter]
KINDS = {  # a page that says no kind is of the time when all were built
    (path.stem, label): kind or "build"
    for path in sorted(CHAPTERS.glob("*.md"))
    for label, kind in exercise_kinds(path.stem).items()
}
PAGES = sorted({chapter for chapter, _ in KINDS})
TABLES = {
    page: importlib.import_module(f"wrong_answers.{page.replace('-', '_')}")
    for page in PAGES
}
WRONG = {  # exercise → diagnosis → the answers that get it
    f"{page}.{name}": {s: a if isinstance(a, list) else [a] for s, a in wrong.items()}
    for page, table in TABLES.items()
    for name, wrong in table.WRONG.items()
}
RIGHT = [
    pytest.param(f"{page}.{name}", answer, id=f"{page}.{name}-{i}")
    for page, table in TABLES.items()
    for name, right in getattr(table, "RIGHT", {}).items()
    for i, answer in enumerate(right)
]
NAMES = [name for page in PAGES for name in exercises.names(page)]
SOLVED = {
    "DotProduct": "attention",
    "ScaledDotProductAttention": "attention",
    "ProjectedAttention": "attention",
    "MultiHeadAttention": "attention",
    "sample": "decoder",
}
each = pytest.mark.parametrize(("chapter", "label"), CHECKED)


@pytest.fixture(autouse=True)
def closed_figures():
    yield
    plt.close("all")


def asked(chapter, label):
    """Return the name of the check: what the untouched cell calls; else by the label."""
    if (chapter, label) in CHECKED:
        return re.search(r'check\("([^"]+)"', EXERCISES[chapter, label].starter)[1]
    return f"{chapter}.{label.removeprefix(f'ex-{chapter}-').replace('-', '_')}"


def namespace(chapter):
    """Return what an exercise finds: the page's imports and definitions.

    *Backpropagation* builds on its earlier exercises, an array and two decoders,
    *embeddings* on the words of the poems and on BERT's table; in *dickinson-layers* words
    are struck out, but no model reads what is left, and in *positional-encoding*,
    *encoder-decoder*, *pretraining* and *fine-tuning* no model is trained; in
    *inside-gpt* one of two.
    """
    found = page_namespace(chapter)
    if chapter == "backpropagation":
        found |= vars(core) | vars(layers) | vars(attention) | vars(decoder) | found
        found["rng"] = np.random.default_rng(0)
        found["x"] = found["rng"].normal(size=(2, 5, 4))
        found["model"] = decoder.load(longer.stored_at() / "sonnets.safetensors")
        words = found["model"].dictionary.vocabulary
        vectors = 0.1 * found["rng"].normal(size=(len(words), 60))
        found["untrained"] = decoder.Decoder(words, vectors)
        found["encode"], found["back"] = (
            found["model"].dictionary.encode,
            np.arange(7)[::-1],
        )
    if chapter == "embeddings":
        found |= TABLES[chapter].given()
    if chapter == "dickinson-layers":
        found["strike_out"] = TABLES[chapter].unread
    if chapter == "positional-encoding":
        found["both_ends"] = TABLES[chapter].both_ends
    if chapter == "inside-gpt":
        found["grown"] = {0: (None, [0.02] * 50)}
    if chapter == "encoder-decoder":
        found["teach"] = TABLES[chapter].teach
    if chapter == "pretraining":
        found |= TABLES[chapter].given()
    if chapter == "fine-tuning":
        found["taught"] = TABLES[chapter].taught
    return found


# --- the pages' own cells ---------------------------------------------------------------


@pytest.mark.parametrize("chapter", PAGES)
def test_every_exercise_has_its_check_in_the_pages_order(chapter):
    on_page = [asked(page, label) for page, label in KINDS if page == chapter]
    assert on_page == exercises.names(chapter)
    assert len(on_page) >= 4


@pytest.mark.parametrize(("chapter", "label"), KINDS)
def test_page_and_check_agree_on_the_kind(chapter, label):
    kind = WORDS[KINDS[chapter, label]].lower()
    assert asked(chapter, label) in exercises.names(chapter, kind)


@each
def test_the_solution_passes(chapter, label):
    verdict = last_value(EXERCISES[chapter, label].solution, namespace(chapter))
    assert verdict, verdict
    assert (verdict.name, verdict.message) == (asked(chapter, label), "right.")


@each
def test_the_untouched_starter_is_told_so(chapter, label):
    verdict = last_value(EXERCISES[chapter, label].starter, namespace(chapter))
    assert not verdict
    nothing = verdict.message.startswith("nothing to check yet")
    assert nothing == (KINDS[chapter, label] != "spot")  # a bug is there from the start
    assert verdict.name == asked(chapter, label)


@pytest.mark.parametrize("name", SOLVED)
def test_solutions_are_the_packages_code(name):
    page = {}
    for cells in exercise_cells("backpropagation").values():
        page |= definitions(cells.solution)
    package = module_definitions(f"lmcourse.numpy_nn.{SOLVED[name]}")
    called = "sample_solution" if name == "sample" else f"{name}Solution"
    ours = tree(page[called]).replace("Solution'", "'").replace("sample_solution", name)
    assert ours == tree(package[name])


# --- wrong answers, and other right ones ------------------------------------------------


def test_every_exercise_has_a_table_of_wrong_answers():
    assert sorted(WRONG) == sorted(NAMES)
    assert all(len(wrong) >= 3 for wrong in WRONG.values())


@pytest.mark.parametrize(
    ("name", "said"), [(name, said) for name, wrong in WRONG.items() for said in wrong]
)
def test_each_mistake_gets_its_own_diagnosis(name, said):
    for answer in WRONG[name][said]:
        verdict = check(name, answer)
        assert not verdict
        assert said in verdict.message, verdict
        assert [s for s in WRONG[name] if s in verdict.message and s not in said] == []


@pytest.mark.parametrize("name", WRONG)
def test_diagnoses_are_different(name):
    messages = [check(name, answers[0]).message for answers in WRONG[name].values()]
    assert len(set(messages)) == len(messages)


@pytest.mark.parametrize(("name", "answer"), RIGHT)
def test_other_right_answers_pass(name, answer):
    assert check(name, answer), check(name, answer)


def takes_a_class(name):
    return "the class itself" in check(name, lambda *inputs: 1).message


def calls(name):
    """Say whether a check calls the answer; others look at a letter or a result."""
    seen = []
    check(name, lambda *inputs: seen.append(inputs))
    return bool(seen) or takes_a_class(name)


CALLED = [name for name in NAMES if calls(name)]


def test_what_is_built_is_called():
    built = {name for page in PAGES for name in exercises.names(page, "build")}
    assert built <= set(CALLED)


# --- answers that nobody asked for ------------------------------------------------------


def surroundings():
    """Return what belongs to the whole notebook, in a form that can be compared."""
    legacy = np.random.get_state()  # noqa: NPY002
    return (
        random.getstate(),
        (legacy[0], legacy[1].tolist(), *legacy[2:]),
        torch.get_rng_state().tolist(),
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


@pytest.mark.parametrize("name", NAMES)
def test_whatever_is_answered_there_is_a_verdict(name, wanted):
    for kind, answer in EXOTIC.items():
        before = surroundings()
        wanted.clear()
        verdict = check(name, answer)
        assert not verdict, kind
        assert 0 < len(verdict.message.strip()) < 1000, kind
        told = [want for want in wanted if len(want) > 3 and want in verdict.message]
        assert not told, (kind, verdict)
        assert surroundings() == before, kind


@pytest.mark.parametrize("name", CALLED)
def test_an_interruption_goes_through(name):
    def answer(*inputs):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        check(name, module_of(answer) if takes_a_class(name) else answer)


def module_of(answer):
    return type("Answer", (core.Module,), {"__init__": answer})


@pytest.mark.parametrize("name", CALLED)
def test_an_error_in_the_answer_is_told(name):
    def answer(*inputs):
        raise IndexError("out of range")

    broken = module_of(answer) if takes_a_class(name) else answer
    assert "stopped with IndexError: out of range" in check(name, broken).message
