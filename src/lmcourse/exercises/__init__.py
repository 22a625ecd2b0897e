"""Checks that a reader runs on their own answers.

A chapter's checks live in the module of this package named after the chapter; each is a
function registered under ``"chapter.exercise"``. A check compares the answer with an
independent oracle and, when it is wrong, tries to recognise a known mistake.
"""

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from html import escape

import numpy as np

__all__ = ["Verdict", "Wrong", "check", "compare", "exercise", "names", "run"]

_CHECKS: dict[str, Callable[[object], None]] = {}


class Wrong(Exception):
    """What a check raises; its message tells the reader what to look at."""


@dataclass(frozen=True)
class Verdict:
    """The result of a check, shown when it is the last line of a cell.

    Attributes
    ----------
    name : str
        The exercise, ``"chapter.exercise"``.
    ok : bool
    message : str
        What is right, or which mistake it looks like. Never the answer.
    """

    name: str
    ok: bool
    message: str

    def __bool__(self):
        return self.ok

    def __repr__(self):
        return f"{'✓' if self.ok else '✗'} {self.name}: {self.message}"

    def _repr_html_(self):
        kind = "right" if self.ok else "wrong"
        return f'<p class="lm-verdict lm-{kind}">{escape(repr(self))}</p>'


def exercise(name: str):
    """Register the decorated check under ``name``; it raises `Wrong` or returns None."""

    def register(function):
        _CHECKS[name] = function
        return function

    return register


def names(chapter: str) -> list[str]:
    """Return the exercises of one chapter, in the order in which they are defined."""
    _load(chapter)
    return [name for name in _CHECKS if name.startswith(f"{chapter}.")]


def _load(chapter: str) -> None:
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
        What the exercise asks for, most often a function.

    Returns
    -------
    Verdict
        True when right; its message diagnoses a wrong answer.

    Raises
    ------
    ValueError
        If there is no such exercise.
    """
    known = names(name.partition(".")[0])
    if name not in known:
        raise ValueError(f"no exercise {name!r}; this chapter has: {', '.join(known)}")
    try:
        _CHECKS[name](answer)
    except Wrong as wrong:
        return Verdict(name, False, str(wrong))
    return Verdict(name, True, "right.")


def run(function: object, *args, **kwargs):
    """Call a reader's function; explain an exception or an answer left open.

    Raises
    ------
    Wrong
        If it is not a function, raises, or returns None or ``...``.
    """
    if not callable(function):
        raise Wrong(f"pass the function itself; this is a {type(function).__name__}.")
    name = getattr(function, "__name__", "your function")
    try:
        result = function(*args, **kwargs)
    except Exception as error:
        raise Wrong(f"{name} stopped with {type(error).__name__}: {error}") from error
    if result is None or result is ...:
        raise Wrong(f"nothing to check yet: {name} returns nothing. Fill in its body.")
    return result


def _array(value: object) -> np.ndarray:
    if hasattr(value, "detach"):
        value = value.detach().cpu()
    try:
        return np.asarray(value)
    except (TypeError, ValueError) as error:
        kind = type(value).__name__
        raise Wrong(f"an array or tensor is expected, not a {kind}.") from error


def _close(got: np.ndarray, want: np.ndarray, tolerance: float) -> bool:
    if got.shape != want.shape or got.dtype.kind not in "biuf":
        return False
    return np.allclose(got, want, rtol=tolerance, atol=tolerance, equal_nan=True)


def compare(
    got: object,
    want: object,
    mistakes: Mapping[str, object] | None = None,
    *,
    tolerance: float = 1e-5,
) -> None:
    """Compare an answer with the oracle's, then with what known mistakes would give.

    Parameters
    ----------
    got, want : array-like or Tensor
        The reader's result and the oracle's.
    mistakes : mapping of str to array-like, optional
        Diagnosis → the result that this mistake produces.
    tolerance : float
        Relative and absolute.

    Raises
    ------
    Wrong
        With the diagnosis that fits; else the shape, or the first place that differs,
        without the value that should stand there.
    """
    got, want = _array(got), _array(want)
    if _close(got, want, tolerance):
        return
    for diagnosis, wrong in (mistakes or {}).items():
        if _close(got, _array(wrong), tolerance):
            raise Wrong(diagnosis)
    if got.dtype.kind not in "biuf":
        raise Wrong(f"numbers are expected, not {got.dtype}.")
    if got.shape != want.shape:
        raise Wrong(f"the shape is {got.shape}; it should be {want.shape}.")
    if np.isnan(got.astype(float)).any() and not np.isnan(want.astype(float)).any():
        raise Wrong("there is a NaN in the result.")
    off = ~np.isclose(got, want, rtol=tolerance, atol=tolerance, equal_nan=True)
    where = tuple(int(i) for i in np.argwhere(off)[0])
    raise Wrong(
        f"{off.sum()} of {off.size} numbers differ, the first at {where}, "
        f"where yours is {got[where]:.4g}."
    )
