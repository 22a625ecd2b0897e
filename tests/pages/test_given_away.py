"""Nothing in the sources gives an answer away: no letter, no wording, no proof."""

import re
from collections import Counter
from functools import cache
from typing import NamedTuple

import pytest

from chapters import CHAPTERS
from lmbook.execute.placed import find_placed_proofs
from lmbook.pages.choices import LETTERS
from lmcourse import exercises

TASK = re.compile(r"^[:`]{3,}\{exercise-start\}.*?^[:`]{3,}\{exercise-end\}", re.M | re.S)
SOLUTION = r"^[:`]{{3,}}\{{solution-start\}} {}\n.*?^[:`]{{3,}}\{{solution-end\}}"
CHOICES = re.compile(r"\{choices\} (\S+)\n(.*?)\n:::", re.S)
PROOF = re.compile(r"^:{3,}\{proof\}", re.M)
CAREFUL = re.compile(
    r"\b(probably|perhaps|maybe|may|might|seems?|hardly|these|can't|cannot|not yet|open"
    r"|another question|about as)\b",
    re.IGNORECASE,
)


class Page(NamedTuple):
    """A task's source with its solution, and what stands before it."""

    text: str
    before: str
    proofs_before: frozenset[str]

    @property
    def options(self) -> list[str]:
        listed = CHOICES.search(self.text)
        return re.split(r"^- ", listed[2], flags=re.M)[1:] if listed else []

    @property
    def key(self) -> str:
        """What computes the right letter, "proof.value"."""
        return CHOICES.search(self.text)[1]

    @property
    def classes(self) -> list[str]:
        return re.search(r"^:class: *(.*)", self.text, re.M)[1].split()


@cache
def tasks() -> dict[str, Page]:
    """Return all tasks, "chapter.exercise" → its source."""
    by_name = {}
    for path in sorted(CHAPTERS.glob("*.md")):
        page = path.read_text(encoding="utf-8")
        placed = find_placed_proofs(page)
        for task in TASK.finditer(page):
            label = re.search(r"^:label: *(\S+)", task[0], re.M)[1]
            end = re.compile(SOLUTION.format(re.escape(label)), re.M | re.S)
            solved = end.search(page, task.end())
            last = solved.end() if solved else task.end()
            name = label.removeprefix(f"ex-{path.stem}-").replace("-", "_")
            text, before = page[task.start() : last], page[: task.start()]
            line = before.count("\n")
            earlier = frozenset(proof for proof, (begin, _) in placed if begin < line)
            by_name[f"{path.stem}.{name}"] = Page(text, before, earlier)
    return by_name


@cache
def right_letters() -> dict[str, str]:
    """Return the right letter of every multiple choice."""
    letters = {}
    for name, task in tasks().items():
        if task.options:
            exercises.names(name.partition(".")[0])
            feedback = exercises._EXERCISES[name].feedback
            assert "".join(feedback) == LETTERS[: len(task.options)], name
            letters[name] = next(letter for letter, words in feedback.items() if not words)
    return letters


def test_no_letter_is_right_more_than_a_third_of_the_time():
    right = right_letters()
    assert max(Counter(right.values()).values()) <= len(right) / 3
    three = [letter for name, letter in right.items() if len(tasks()[name].options) == 3]
    shares = [three.count(letter) / len(three) for letter in "abc"]
    assert max(shares) - min(shares) < 0.2, shares


def given_away(name: str) -> list[str]:
    """Return how a choice, or what stands around it, tells the right answer."""
    task = tasks()[name]
    place = LETTERS.index(right_letters()[name])
    careful = [bool(CAREFUL.search(option)) for option in task.options]
    lengths = [len(option) for option in task.options]
    most = max(length for n, length in enumerate(lengths) if n != place)
    early = [f"{{glue:text}}`{task.key}", f'exercises.check("{name}"']
    ways = {
        "it is the only careful one": careful[place] and sum(careful) == 1,
        "it is by far the longest": lengths[place] > max(1.25 * most, most + 30),
        "its letter is glued or checked before": any(x in task.before for x in early),
    }
    return [way for way, gives in ways.items() if gives]


@pytest.mark.parametrize("name", right_letters())
def test_a_choice_gives_nothing_away(name):
    assert not given_away(name)


@pytest.mark.parametrize("name", tasks())
def test_no_proof_stands_between_a_question_and_its_answer(name):
    question, _, _ = tasks()[name].text.partition("{solution-start}")
    assert not PROOF.search(question)


def predictions() -> list[str]:
    """Return the choices in which a reader predicts what has not been shown yet."""
    return [name for name in right_letters() if "predict" in tasks()[name].classes]


@pytest.mark.parametrize("name", predictions())
def test_what_is_to_be_predicted_is_not_proven_before(name):
    task = tasks()[name]
    assert task.key.partition(".")[0] not in task.proofs_before
