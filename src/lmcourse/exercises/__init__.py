"""Checks that a reader runs on their own answers.

A chapter's checks live in the module of this package named after the chapter. Each is
registered under ``"chapter.exercise"`` and is data: `Case`, examples with an independent
oracle's result and a table of known mistakes, and `Faults`, a table of what may be wrong
where an answer has many right forms (`lmcourse.exercises.cases`)::

    @exercise("attention.merge_heads")
    def merge_heads():
        x = normal(2, 3, 5, 4)  # (batch, heads, tokens, d_head)
        mistakes = {"the heads are added up; lay them side by side.": x.sum(1)}
        yield Case([x], torch.cat(x.unbind(1), -1), mistakes)

`diagnoses` lists what a check has words for. Whatever an answer is or does, `check` turns
it into a `Verdict`.
"""

import importlib
import random
import re
import warnings
from collections.abc import Callable, Iterable, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from html import escape
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
import torch
from torch._tensor_str import printoptions as torch_printoptions

from lmcourse.exercises.answers import (
    NotTried,
    Unfit,
    Wrong,
    compare,
    describe,
    expect,
    run,
)
from lmcourse.exercises.cases import Case, Faults, Procedure
from lmcourse.exercises.codes import class_code, task_label

__all__ = ["Case", "Faults", "Verdict", "Wrong", "check", "compare", "diagnoses"]
__all__ += ["exercise", "expect", "judge", "names", "predict", "run", "yours"]

# *Words* between single asterisks, which touch them.
_STRESSED = re.compile(r"(?<![\w*])\*(?![\s*])([^*]+)(?<!\s)\*(?![\w*])")

KINDS = ("predict", "spot the bug", "build", "experiment", "judge")


class _Exercise(NamedTuple):
    """A registered exercise: how its check is made, and of which kind it is.

    Attributes
    ----------
    steps : callable
        Returns the check's steps, `Case`, `Faults` or `Procedure`, one after the other.
    kind : str
        One of `KINDS`.
    feedback : mapping of str to str or None
        Of a multiple choice: letter → what a reader who chooses it is told, None for the
        right one; else empty.
    """

    steps: Callable[
        [], Iterable[Case | Faults | Procedure]
    ]  # what is asked for, one after the other
    kind: str
    feedback: Mapping[str, str | None] = MappingProxyType({})  # of a multiple choice


_EXERCISES: dict[str, _Exercise] = {}  # "chapter.exercise" → what is registered for it


@dataclass(frozen=True)
class Verdict:
    """The result of a check, shown when it is the last line of a cell.

    Attributes
    ----------
    name : str
        The exercise, ``"chapter.exercise"``.
    ok : bool
        Whether the answer is right.
    message : str
        What is right, or which mistake it looks like. Never the answer.
    tried : bool
        False while the answer is as the page gave it.
    diagnosis : str
        Which of the check's `diagnoses` it is; empty if none.
    code : str
        Six characters for a teacher, such as "k7f-2qx", which hold the letter that was
        chosen in a *predict* task (`lmcourse.exercises.codes`); empty in other exercises.
    """

    name: str
    ok: bool
    message: str
    tried: bool = True
    diagnosis: str = ""
    code: str = ""

    def __bool__(self):
        """Return whether the answer is right, ``ok``."""
        return self.ok

    @property
    def _kind(self):
        """Whether the answer is "right" or "wrong", or "untried" if there is none yet."""
        if not self.tried:
            return "untried"
        return "right" if self.ok else "wrong"

    def __repr__(self):
        """Return the line that a reader sees, such as "✓ attention.softmax: right."

        The mark is ✓ if the answer is right, ✗ if it is wrong, and ○ if there is none yet
        (``tried`` is False). The exercise's name and the message follow, and the code to
        send to a teacher if there is one.
        """
        mark = {"right": "✓", "wrong": "✗", "untried": "○"}[self._kind]
        code = f" In class, send this code: {self.code}" if self.code else ""
        return f"{mark} {self.name}: {self.message}{code}"

    def _repr_html_(self):
        """Return the verdict as HTML for a notebook: one paragraph with the line of `repr`.

        Its class is lm-right, lm-wrong or lm-untried. Code between backticks is shown as
        code, words between single asterisks (`_STRESSED` matches these) are stressed.
        """
        parts = re.split(r"`([^`]+)`", escape(repr(self)))  # every other one is code
        parts[::2] = [_STRESSED.sub(r"<em>\1</em>", part) for part in parts[::2]]
        parts[1::2] = [f"<code>{part}</code>" for part in parts[1::2]]
        body = "".join(parts)
        return f'<p class="lm-verdict lm-{self._kind}">{body}</p>'


def exercise(name: str, kind: str = "build", solution: object = None):
    """Register what the decorated function yields as the check of ``name``.

    The function takes nothing: it yields `Case` (an example with its right result) and
    `Faults` (what may be wrong), which are asked of an answer one after the other. The
    first that does not hold counts.

    Parameters
    ----------
    name : str
        ``"chapter.exercise"``, such as "attention.merge_heads".
    kind : str
        One of `KINDS`: "predict", "spot the bug", "build", "experiment" or "judge".
    solution : object, optional
        A right answer, where an oracle needs the answer itself, such as the weights of a
        reader's module. Then the function takes an answer, compares it itself with
        `compare`, `expect` and `diagnose`, and raises `Wrong`. Run on the solution, it
        shows which wrong answers it has words for (`Procedure`).

    Returns
    -------
    callable
        A decorator, which returns the function as it is.

    Raises
    ------
    ValueError
        If there is no such kind.
    """
    if kind not in KINDS:
        raise ValueError(f"no kind of exercise {kind!r}; there are: {', '.join(KINDS)}")

    def register(function):
        """Keep a function in `_EXERCISES` as the check of ``name``, and return it.

        ``function`` : callable. Without a solution it takes nothing and yields `Case` and
        `Faults`; with one it takes an answer, and raises `Wrong` if that is wrong.
        """
        steps = function if solution is None else lambda: [Procedure(function, solution)]
        _EXERCISES[name] = _Exercise(steps, kind)
        return function

    return register


def multiple_choice(name: str, *, kind: str, **feedback: str | None) -> None:
    """Register, in `_EXERCISES`, an exercise that is answered with a letter.

    Parameters
    ----------
    name, kind : str
        ``"chapter.exercise"``; and what is asked of the reader: "predict" or "judge".
    **feedback : str or None
        Letter, from a on → what a reader who chooses it is told; None for the right one.
    """

    def read_letter(answer):
        """Return the letter that an answer is, a lower-case str.

        ``answer`` : object, what the reader hands in. Dots, a question mark and empty text
        are `NotTried`; what is no letter of ``feedback`` is `Unfit`.
        """
        letter = answer.strip().lower() if isinstance(answer, str) else None
        if letter in ("", "...", "?"):
            raise NotTried
        if letter not in feedback:
            raise Unfit(f"choose one letter of {', '.join(feedback)}, as a string.")
        return letter

    table = {words: letter.__eq__ for letter, words in feedback.items() if words}
    _EXERCISES[name] = _Exercise(lambda: [Faults(read_letter, table)], kind, feedback)


predict = partial(multiple_choice, kind="predict")
judge = partial(multiple_choice, kind="judge")


def names(chapter: str, kind: str | None = None) -> list[str]:
    """Return a chapter's exercises, perhaps of one kind only, in their order.

    Parameters
    ----------
    chapter : str
        Its name, such as "mini-gpt"; its module is imported if it was not yet.
    kind : str, optional
        "predict", "spot the bug", "build", "experiment" or "judge"; by default all kinds.

    Returns
    -------
    list of str
        Names of exercises, such as "mini-gpt.windows".

    Raises
    ------
    ValueError
        If the chapter has no exercises.
    """
    _load(chapter)
    mine = {n: e for n, e in _EXERCISES.items() if n.startswith(f"{chapter}.")}
    return [name for name, task in mine.items() if kind in (None, task.kind)]


def _load(chapter: str) -> None:
    """Import a chapter's module of exercises, which registers its checks.

    ``chapter`` : its name, such as "mini-gpt", whose module is ``mini_gpt`` in this
    package. If there is none, this is a ValueError; other failing imports are raised as
    they are.
    """
    module = f"{__name__}.{chapter.replace('-', '_')}"
    try:
        importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name != module:
            raise
        raise ValueError(f"there are no exercises for a chapter {chapter!r}") from None


def check(name: str, answer: object) -> Verdict:
    """Check an answer to an exercise.

    Parameters
    ----------
    name : str
        ``"chapter.exercise"``, as printed in the exercise.
    answer : object
        What the exercise asks for, most often a function. None and ``...`` count as not
        tried.

    Returns
    -------
    Verdict
        True when right; its message diagnoses a wrong answer. An answer to a "predict" task
        also gets its code for a class. Whatever the answer raises becomes a verdict, except
        KeyboardInterrupt. Random states, the default type, the gradient mode and how arrays
        are printed stay as they were.

    Raises
    ------
    ValueError
        If there is no such exercise.
    """
    steps = _registered(name).steps
    code = _code(name, answer)
    try:
        with _global_state_restored():
            if answer is None or answer is ...:
                raise NotTried
            remarks = [step.judge(answer) for step in steps()]
    except KeyboardInterrupt:
        raise
    except Wrong as wrong:
        tried = not isinstance(wrong, NotTried)
        return Verdict(name, False, str(wrong), tried, wrong.diagnosis, code)
    except BaseException as error:  # an answer may be anything, and raise when looked at
        words = f"your answer could not be checked: {describe(error)}"
        return Verdict(name, False, words)
    return Verdict(name, True, " ".join(["right.", *filter(None, remarks)]), code=code)


def _code(name: str, answer: object) -> str:
    """Return the class's code of an answer to a *predict* task, such as "k7f-2qx".

    It says which letter was chosen in which task. "" if the exercise is of another kind, or
    the answer is no letter of it.

    ``name`` : ``"chapter.exercise"``; ``answer`` : what the reader hands in.
    """
    task = _registered(name)
    if task.kind != "predict" or not issubclass(type(answer), str):
        return ""
    letter = str.lower(str.strip(answer))  # its own methods may be anything, and raise
    return class_code(task_label(name), letter) if letter in task.feedback else ""


def _registered(name: str) -> _Exercise:
    """Return the exercise that is registered under a name; if none is, raise ValueError.

    ``name`` : ``"chapter.exercise"``. An `_Exercise` has ``steps``, a function that returns
    the check's steps (`Case`, `Faults` or `Procedure`); ``kind``, such as "predict"; and
    ``feedback`` of a multiple choice: letter → what is told, None for the right one.
    """
    known = names(str(name).partition(".")[0])
    if name not in known:
        raise ValueError(f"no exercise {name!r}; this chapter has: {', '.join(known)}")
    return _EXERCISES[name]


def diagnoses(name: str) -> list[str]:
    """Return the sentences that a check has for wrong answers, each once, in their order.

    Parameters
    ----------
    name : str
        Of the exercise, such as "attention.softmax".

    Returns
    -------
    list of str
        Where a sentence is to quote a value of the answer, it has an ellipsis (…).

    Raises
    ------
    ValueError
        If there is no such exercise.
    """
    steps = _registered(name).steps
    with _global_state_restored():
        return list(
            dict.fromkeys(diagnosis for step in steps() for diagnosis in step.diagnoses())
        )


def yours(name: str, answer: object, ours: object) -> object:
    """Return a reader's own answer if it passes its check, else the package's.

    Parameters
    ----------
    name : str
        The exercise, ``"chapter.exercise"``.
    answer : object
        The reader's class or function.
    ours : object
        The package's, which takes its place until then.

    Returns
    -------
    object
        ``answer`` or ``ours``. It is printed with which of them the page goes on.
    """
    called = getattr(ours, "__name__", name)
    if answer is not ours and check(name, answer):
        print(f"The page goes on with your {called}.")
        return answer
    print(
        f"The page goes on with the package's {called}: yours does not pass its check yet."
    )
    print("When it does, run its cell and this one again.")
    return ours


@contextmanager
def _global_state_restored():
    """Put back, at the end of a ``with``, what a check or answer may change in a notebook.

    That is the state of the random generators of Python, NumPy and PyTorch (on every GPU,
    too), PyTorch's default type and gradient mode, filters of warnings, how NumPy treats
    errors of floats, and how arrays and tensors are printed.
    """
    python = random.getstate()
    dtype = torch.get_default_dtype()
    legacy = np.random.get_state()  # noqa: NPY002 the reader's own code may use it
    # Before CUDA is first used no GPU has a state, and to ask for one would start CUDA.
    gpus = range(torch.cuda.device_count() if torch.cuda.is_initialized() else 0)
    with (
        np.printoptions(),
        np.errstate(),
        torch_printoptions(),
        warnings.catch_warnings(),
        # It changes nothing here; at the end it sets the mode that it found.
        torch.set_grad_enabled(torch.is_grad_enabled()),
        torch.random.fork_rng(gpus),
    ):
        try:
            yield
        finally:
            random.setstate(python)
            np.random.set_state(legacy)  # noqa: NPY002
            torch.set_default_dtype(dtype)
