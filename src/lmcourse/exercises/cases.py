"""What a check is made of: cases to compare, and faults to look for.

A check is data. It is known without an answer what it asks for and which mistakes it has
words for, and one procedure runs all of them::

    @exercise("attention.merge_heads")
    def merge_heads():
        x = normal(2, 3, 5, 4)  # (batch, heads, tokens, d_head)
        mistakes = {"the heads are added up; lay them side by side.": x.sum(1)}
        yield Case([x], torch.cat(x.unbind(1), -1), mistakes)

Where an answer has many right forms, as that of an experiment, a check has `Faults`.
"""

import re
import string
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from numbers import Real

from lmcourse.exercises.answers import (
    TOLERANCE,
    NotTried,
    Wrong,
    adding,
    compare,
    expect,
    noted,
)
from lmcourse.numbers import format_number

_FIELD = re.compile(r"\{[^}]*\}")  # where a value is filled into a diagnosis: "{loss:.2f}"


@dataclass(frozen=True)
class Case:
    """An example: what an answer is given, what is right, and what known mistakes give.

    Attributes
    ----------
    inputs : sequence
        What the answer is called with.
    want : array-like, Tensor or list of str
        The oracle's result, or, where that costs time, a function that returns it.
    mistakes : mapping of str to array-like
        Diagnosis, in words for the reader → the result that this mistake gives for the same
        inputs, or a function that returns it.
    ask : callable, optional
        From the answer to what is compared, where that is not what one call returns: one of
        two results, or those of many calls. ``inputs`` are not used then.
    instead : mapping of str to str
        Some of the words of any other verdict (``"UnicodeDecodeError"``, ``"differ"``;
        ``""`` is in all of them) → the diagnosis that takes their place. ``{error}`` in it
        is those words without their full stop, ``{text}`` what the answer's own error said.
    prefix : str
        What stands before the words of the comparison, such as "inputs:"; with ``ask``.
    tolerance : float
        How far a number may be off, relative to the largest magnitude of ``want``; whole
        numbers must be equal.
    """

    inputs: Sequence
    want: object
    mistakes: Mapping[str, object] = field(default_factory=dict)
    ask: Callable[[object], object] | None = None
    instead: Mapping[str, str] = field(default_factory=dict)
    prefix: str = ""
    tolerance: float = TOLERANCE

    def diagnoses(self) -> Iterator[str]:
        """Yield the sentences for wrong answers: ``instead`` first, then ``mistakes``.

        Each is a str, with an ellipsis for every value that is filled in.
        """
        yield from map(blank, self.instead.values())
        yield from self.mistakes

    def judge(self, answer: object) -> None:
        """Raise `Wrong` if the answer is wrong here.

        The message is that of the known mistake (``mistakes``) which gives the same result.
        Any other message is replaced if it has some words of ``instead`` in it. An answer
        still as the page gave it is `NotTried`.

        ``answer`` : what the reader hands in, most often a function.
        """
        try:
            self._compare(answer)
        except NotTried:
            raise
        except Wrong as wrong:
            _raise_instead(wrong, self.instead)
            raise

    def _compare(self, answer: object) -> None:
        """Compare what the answer gives with what is right; raise `Wrong` if it differs.

        The answer is called with ``inputs``; if the case has ``ask``, that is called with
        the answer and returns what is compared, and ``prefix`` stands before the words of a
        `Wrong`. ``want`` may be a function that returns what is right.

        ``answer`` : what the reader hands in, most often a function.
        """
        want = self.want() if callable(self.want) else self.want
        if self.ask is None:
            return expect(
                answer, self.inputs, want, self.mistakes, tolerance=self.tolerance
            )
        got = self.ask(answer)
        with adding(self.prefix) if self.prefix else nullcontext():
            return compare(got, want, self.mistakes, tolerance=self.tolerance)


@dataclass(frozen=True)
class Faults:
    """What may be wrong with an answer that has many right forms.

    Attributes
    ----------
    look : callable
        From the answer to what is seen in it: what was measured, a `SimpleNamespace` if the
        diagnoses name some of it. It raises `Wrong` if the answer cannot be looked at.
    table : mapping of str to callable
        Diagnosis, in words for the reader → a function from what is seen to whether the
        answer has this fault; the first that holds counts. ``{loss:.2f}`` in a diagnosis is
        the attribute ``loss`` of what is seen.
    instead : mapping of str to str
        Some of the words of a `Wrong` that ``look`` raises → the diagnosis that takes their
        place, as in a `Case`.
    right : str
        What a right answer is told besides, with values filled in as in a diagnosis.
    """

    look: Callable[[object], object]
    table: Mapping[str, Callable[[object], bool]]
    instead: Mapping[str, str] = field(default_factory=dict)
    right: str = ""

    def diagnoses(self) -> Iterator[str]:
        """Yield the sentences for wrong answers: first of ``instead``, then of ``table``.

        Each is a str, with an ellipsis for every value that is filled in.
        """
        yield from map(blank, (*self.instead.values(), *self.table))

    def judge(self, answer: object) -> str:
        """Raise `Wrong` if the answer has one of the faults; else return what to say.

        ``look`` is called with the answer and returns what is seen in it. The first
        diagnosis in ``table`` whose function says of this that it holds is raised; its
        ``{name}`` are filled in with attributes of what is seen. Where ``look`` itself
        raises a `Wrong` with some words of ``instead``, the diagnosis that stands there for
        them takes its place.

        ``answer`` : what the reader hands in. Returns ``right``, a str, filled in likewise.
        """
        try:
            seen = self.look(answer)
        except NotTried:
            raise
        except Wrong as wrong:
            _raise_instead(wrong, self.instead)
            raise
        values = getattr(seen, "__dict__", {})
        for diagnosis, holds in self.table.items():
            if holds(seen):
                raise filled(diagnosis, values)
        return _fill_in(self.right, values)


@dataclass(frozen=True)
class Procedure:
    """A check that compares by itself, since its oracle needs the answer.

    Attributes
    ----------
    judge : callable
        Takes the answer and returns nothing; it raises `Wrong`, by `compare`, `expect` and
        `diagnose`.
    solution : object
        A right answer.
    """

    judge: Callable[[object], None]
    solution: object

    def diagnoses(self) -> Iterator[str]:
        """Yield the sentences for wrong answers, each a str.

        They are those that ``judge`` hands to `compare` and `diagnose` while it runs on the
        right answer, ``solution``: `noted` collects them. Values that are filled in are an
        ellipsis.
        """
        with noted() as diagnoses:
            self.judge(self.solution)
        yield from map(blank, diagnoses)


def blank(diagnosis: str) -> str:
    """Return a diagnosis with an ellipsis for each value that is filled in.

    ``diagnosis`` : str, such as "a loss of {loss:.2f}.", of which "a loss of …." is
    returned. `_FIELD` matches words in braces.
    """
    return _FIELD.sub("…", diagnosis)


def filled(diagnosis: str, values: Mapping[str, object]) -> Wrong:
    """Return the `Wrong` of a diagnosis in which values are to be filled in.

    ``diagnosis`` : str, such as "a loss of {loss:.2f}."; ``values`` : name → value, such as
    ``{"loss": 2.5}``. The message has the values, its ``diagnosis`` an ellipsis for each.
    """
    return Wrong(_fill_in(diagnosis, values), blank(diagnosis))


class _Filler(string.Formatter):
    """Fills values in as `str.format` does, but numbers as the book writes them."""

    def format_field(self, value: object, format_spec: str) -> str:
        """Return a value as text: a number by `format_number`, anything else as it is."""
        if isinstance(value, Real):
            return format_number(value, format_spec)
        return super().format_field(value, format_spec)


def _fill_in(text: str, values: Mapping[str, object]) -> str:
    """Return a text in which values are filled in, numbers as the book writes them.

    ``text`` : str, such as "{share:.0%} are chosen."; ``values`` : name → value, such as
    ``{"share": 0.71}``. The share becomes "71 %", whose space does not break, and a minus
    is a minus sign.
    """
    return _Filler().vformat(text, (), values)


def _raise_instead(wrong: Wrong, instead: Mapping[str, str]) -> None:
    """Raise the diagnosis that takes the place of a verdict's words, if there is one.

    A verdict that already has a diagnosis keeps it.

    Parameters
    ----------
    wrong : Wrong
        The verdict on an answer; the answer's own error, if there was one, is its cause.
    instead : mapping of str to str
        Some words of the verdict ("" is in all of them) → the diagnosis. ``{error}`` in it
        becomes the verdict without its full stop, ``{text}`` the text of the answer's own
        error.

    Raises
    ------
    Wrong
        For the first of these words that the verdict has.
    """
    for words, diagnosis in instead.items():
        if words in str(wrong) and not wrong.diagnosis:
            values = {"error": str(wrong).rstrip("."), "text": str(wrong.__cause__)}
            raise filled(diagnosis, values) from wrong
