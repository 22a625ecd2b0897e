"""Calling a reader's answer, and comparing what it gives with an oracle's result.

An answer may be anything and do anything, so nothing here trusts it: it gets copies, and
whatever it raises or returns becomes a `Wrong` with words for it.
"""

import copy
import dis
import re
import reprlib
import traceback
from collections.abc import Mapping, Sequence
from contextlib import contextmanager

import numpy as np
import torch
from torch.overrides import TorchFunctionMode

from lmcourse.numbers import format_number

TOLERANCE = 1e-5  # as a share of the oracle's largest magnitude; float32 keeps it
SHOWN = 160  # characters of a call or a result that a message shows
MAX_ENTRIES = 10**7  # a list with more is not even read
MAX_AXES = 64  # of a NumPy array
# What is called of a module → what its author, the reader, wrote for it.
METHODS = {"forward": "compute", "backward": "gradient"}
CELL_FILE = re.compile(r"ipykernel_\d+|<ipython-input|<cell")  # where IPython keeps a cell
CONTAINERS = (list, tuple, dict, set)  # whose entries are copied and shown
# Bytecode instructions of a function whose body is still `...`, in any version of Python.
EMPTY_BODY = {
    "RESUME",
    "NOP",
    "COPY_FREE_VARS",
    "LOAD_CONST",
    "RETURN_CONST",
    "RETURN_VALUE",
}
_COLLECTING: list[list[str]] = []  # the lists that `noted` fills with diagnoses
_BRIEF = reprlib.Repr()  # writes values so short that a message can show them
_BRIEF.maxlist = _BRIEF.maxtuple = _BRIEF.maxset = _BRIEF.maxdict = 12
_BRIEF.maxstring = _BRIEF.maxother = 80


class Wrong(Exception):
    """What a check raises; its message tells the reader what to look at.

    Parameters
    ----------
    message : str
    diagnosis : str, optional
        The known mistake that it is, as the check declares it; by default the message.
    """

    def __init__(self, message: str, diagnosis: str = ""):
        """Take the message for the reader, and the known mistake that it is.

        Without ``diagnosis``, the message itself names the known mistake.
        """
        super().__init__(message)
        self.diagnosis = diagnosis or message

    def reworded(self, message: str) -> "Wrong":
        """Return a `Wrong` with another message, a str, and the same diagnosis."""
        return Wrong(message, self.diagnosis)


class Unfit(Wrong):
    """What is no known mistake: an error, a type, a shape, numbers that differ."""

    def __init__(self, message: str):
        """Take the message for the reader; no diagnosis belongs to it, so that is empty."""
        super().__init__(message)
        self.diagnosis = ""

    def reworded(self, message: str) -> Wrong:
        """Return an `Unfit` with another message, a str."""
        return Unfit(message)


class NotTried(Unfit):
    """What a check raises at an answer that is still as the page gave it."""

    def __init__(self):
        """Make the message: not tried yet."""
        super().__init__("not tried yet.")


def type_name(value: object) -> str:
    """Return the name of a value's type, such as "list", for a message about the value."""
    return type(value).__name__


def describe(error: BaseException) -> str:
    """Put an exception into words, "Type: text"; ``error`` may fail when it is printed.

    A text of more than 320 characters (twice `SHOWN`) is cut, and ends in an ellipsis.
    """
    try:
        text = str(error)
    except KeyboardInterrupt:
        raise
    except BaseException:  # whatever the reader's own error does when it is printed
        text = "(its text cannot be printed)"
    text = text if len(text) <= 2 * SHOWN else text[: 2 * SHOWN] + "…"
    return f"{type_name(error)}: {text}"


def run(function: object, *inputs, keep: bool = False):
    """Call a reader's function; explain an exception or an answer left open.

    Parameters
    ----------
    function : object
        The answer.
    *inputs
        What it is called with. Tensors, arrays, lists, tuples, dicts and sets are copied;
        what else there is, a model or a random generator, is handed on.
    keep : bool
        Hand on the inputs themselves, to see whether the answer changes them.

    Returns
    -------
    object
        What the function returns.

    Raises
    ------
    Unfit
        If it is not a function, raises anything but KeyboardInterrupt, or returns nothing.
    NotTried
        If it has no body yet, only ``...``, or returns ``...``. It is an `Unfit`, too.
    """
    if not callable(function):
        raise Unfit(f"pass the function itself; this is of type {type_name(function)}.")
    copied = (*CONTAINERS, torch.Tensor, np.ndarray)
    if not keep:
        inputs = [copy.deepcopy(x) if isinstance(x, copied) else x for x in inputs]
    try:
        result = function(*inputs)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # sys.exit() too: it would end the reader's kernel
        where = _line(error)
        raise Unfit(f"{_name(function)} stopped with {describe(error)}{where}") from error
    if result is ... or (result is None and _is_empty(function)):
        raise NotTried
    if result is None:
        raise Unfit(f"{_name(function)} returns nothing; end it with `return`.")
    return result


def _is_empty(function: object) -> bool:
    """Say whether a function's body is only ``...``, as the page gave it; a bool.

    Of a method ``forward`` or ``backward`` of our `Module` this is asked of what the reader
    wrote for it, ``compute`` or ``gradient`` (`METHODS`). `EMPTY_BODY` names the bytecode
    instructions of an empty body. What has no Python code is not empty.
    """
    written = METHODS.get(str(getattr(function, "__name__", "")), "")
    method = getattr(getattr(function, "__self__", None), written, function)
    code = getattr(method, "__code__", None)
    return bool(code) and {step.opname for step in dis.get_instructions(code)} <= EMPTY_BODY


def _name(function: object) -> str:
    """Return what a reader calls a function of theirs, "your function" if it has no name.

    A bound ``forward`` or ``backward`` of our `Module`, which has ``compute``, is called
    after what the reader wrote for it: ``compute`` or ``gradient`` (`METHODS`).
    """
    called = str(getattr(function, "__name__", "your function"))
    ours = hasattr(getattr(function, "__self__", None), "compute")  # a module's method
    return METHODS.get(called, called) if ours else called


def _line(error: BaseException) -> str:
    """Show the line of the reader's own cell in which an error happened; "" if unknown.

    ``error`` : with its traceback, of which the last frame in a cell of IPython counts
    (`CELL_FILE` matches the names of their files). Returns words to be put behind a
    sentence, such as " (line 2 of your cell: `x / 0`)"; of the line 160 characters at most
    (`SHOWN`).
    """
    try:
        frames = traceback.extract_tb(error.__traceback__)
    except Exception:
        return ""
    cells = [frame for frame in frames if frame.line and CELL_FILE.search(frame.filename)]
    if not cells:
        return ""
    return f" (line {cells[-1].lineno} of your cell: `{cells[-1].line[:SHOWN]}`)"


def expect(answer, inputs, want, mistakes=None, *, tolerance: float = TOLERANCE) -> None:
    """Call the answer with copies of the inputs and compare; add the example to the words.

    Parameters
    ----------
    answer : object
        The reader's function.
    inputs : sequence
        What it is called with.
    want : array-like, Tensor or list of str
        What it should return.
    mistakes : dict of str to array-like, optional
        What is said of a known mistake → what it gives for these inputs, or a function that
        returns that.
    tolerance : float
        How far numbers may differ, relative to the largest expected.

    Raises
    ------
    Wrong
        If the answer stops with an error or returns something else; a short example is
        shown with what it gave, such as "For softmax([1, 2]) you gave [0.3, 0.7]."
    """
    got = run(answer, *inputs)
    try:
        compare(got, want, mistakes, tolerance=tolerance)
    except Wrong as wrong:
        message = f"{wrong}{_example(answer, inputs, got)}"
        raise wrong.reworded(message) from None


def rounded(value: object, digits: int = 6) -> object:
    """Return a value with all its floats rounded, to show what a reader's code returned.

    Parameters
    ----------
    value : object
        A number, text, or list, tuple, set or dict of such.
    digits : int
        Significant digits of a float, at most.

    Returns
    -------
    object
        The same kind of container, which holds Python's own numbers: 4.533585109028847 is
        4.53359, 0.1 stays 0.1. Whole numbers, texts and anything else are as they were.
    """
    if isinstance(value, dict):
        return {
            rounded(key, digits): rounded(entry, digits) for key, entry in value.items()
        }
    if type(value) in (list, tuple, set):
        return type(value)(rounded(entry, digits) for entry in value)
    if isinstance(value, (float, np.floating)):
        return float(f"{float(value):.{digits}g}")
    return value


def _example(answer, inputs, got) -> str:
    """Return a sentence that shows a call and its result; "" if the result is not plain.

    Parameters
    ----------
    answer : callable
        The reader's function, for its name.
    inputs : sequence
        What it was called with. Left out if it is longer than 160 characters (`SHOWN`), or
        not plain.
    got : object
        What it returned. Plain are numbers, strings, and short lists of them. Numbers are
        rounded, long lists shortened (`_BRIEF`).

    Returns
    -------
    str
        For example " For softmax([1, 2]) you gave [0.3, 0.7].", or " Yours is [0.3, 0.7]."
    """
    if isinstance(got, (np.generic, np.ndarray, torch.Tensor)) and got.shape == ():
        got = got.item()
    if not _is_plain(got):
        return ""
    gave = _BRIEF.repr(rounded(got))
    if len(gave) > SHOWN:
        return ""
    call = f"{_name(answer)}({', '.join(map(_BRIEF.repr, map(rounded, inputs)))})"
    if len(call) > SHOWN or not all(map(_is_plain, inputs)):
        return f" Yours is {gave}."
    return f" For {call} you gave {gave}."


def _is_plain(value: object) -> bool:
    """Return whether a value is short and simple enough to be shown in a message.

    ``value`` : plain are numbers, str, bytes, and lists, tuples, dicts (by their keys) and
    sets (`CONTAINERS`) of at most 160 plain values (`SHOWN`).
    """
    if isinstance(value, CONTAINERS):
        return len(value) <= SHOWN and all(map(_is_plain, value))
    return isinstance(value, (int, float, str, bytes))


def compare(
    got: object,
    want: object,
    mistakes: Mapping[str, object] | None = None,
    *,
    tolerance: float = TOLERANCE,
) -> None:
    """Compare an answer with the oracle's, then with what known mistakes would give.

    The diagnoses are also handed to whoever collects them (`noted`).

    Parameters
    ----------
    got, want : array-like, Tensor or list of str
        The reader's result, or a plain value of theirs, and the oracle's. If ``want`` is a
        list of str, both are compared as such, else as numbers.
    mistakes : mapping of str to array-like, optional
        Diagnosis → the result that this mistake produces, or a function that returns it.
    tolerance : float
        Relative to the largest magnitude of the oracle; whole numbers must be equal.

    Raises
    ------
    Wrong
        With the diagnosis that fits.
    Unfit
        If none does; it says the type, the shape, or the first place that differs, without
        the value that should stand there.
    """
    mistakes = mistakes or {}
    _note(mistakes)
    texts = isinstance(want, list) and all(isinstance(entry, str) for entry in want)
    got = strings(got) if texts else array(got)
    if not texts and array(want).dtype == bool != got.dtype:
        raise Unfit(f"a tensor of True and False is expected, not of {got.dtype}.")
    if _same(got, want, tolerance):
        return
    for diagnosis, wrong in mistakes.items():
        wrong = wrong() if callable(wrong) else wrong
        if _same(got, wrong, tolerance):
            raise Wrong(diagnosis)
    raise Unfit(
        "the strings differ." if texts else _difference(got, array(want), tolerance)
    )


def _same(got: np.ndarray | list, want: object, tolerance: float) -> bool:
    """Return whether two results are equal: strings exactly, floats within a tolerance.

    Whole numbers and bools in ``want`` must be equal, too; NaN equals NaN. Arrays of
    different shapes are not equal.

    ``got`` : what an answer returned, an array or a list of str; ``want`` : what is right,
    array-like or, if ``got`` is a list, a list of str; ``tolerance`` : float, as a share of
    the largest finite magnitude in ``want``.
    """
    if isinstance(got, list):
        return got == want
    want = array(want)
    if got.shape != want.shape:
        return False
    if want.dtype.kind in "biu":
        return np.array_equal(got, want)
    return bool(_near(got, want, tolerance).all())


def _near(got: np.ndarray, want: np.ndarray, tolerance: float) -> np.ndarray:
    """Return where two arrays agree, but for a share of the largest number expected.

    ``got``, ``want`` : of one shape; NaN agrees with NaN. ``tolerance`` : that share, of
    the largest finite magnitude in ``want`` (of 1 if that is 0). Returns a bool array of
    their shape.
    """
    scale = np.max(np.abs(want), where=np.isfinite(want), initial=0) or 1
    return np.isclose(got, want, rtol=0, atol=tolerance * scale, equal_nan=True)


def _difference(got: np.ndarray, want: np.ndarray, tolerance: float) -> str:
    """Say how two results differ, without the value that should stand there.

    ``got`` : what an answer returned; ``want`` : what is right, and different from it;
    ``tolerance`` : float, relative to the largest finite number in ``want``. Returns a
    sentence: about the shape, a NaN, a single number, or the first number that differs.
    """
    if got.shape != want.shape:
        hint = ", one number" if want.shape == () else ""
        hint = hint or ("; yours is one number" if got.shape == () else "")
        return f"the shape is {got.shape}; it should be {want.shape}{hint}."
    if np.isnan(got.astype(float)).any() and not np.isnan(want.astype(float)).any():
        return "there is a NaN in the result."
    if want.shape == ():
        return f"the numbers differ; {format_number(got, '.4g')} is not it."
    differs = ~_near(got, want, tolerance if want.dtype.kind == "f" else 0)
    first = tuple(int(i) for i in np.argwhere(differs)[0])
    return (
        f"{differs.sum()} of {differs.size} numbers differ, the first at {first}, "
        f"where yours is {format_number(got[first], '.4g')}."
    )


def array(value: object) -> np.ndarray:
    """Return numbers as an array, a tensor's without its gradient.

    ``value`` : a number, nested lists, an array or a Tensor; anything else is refused. What
    is bfloat16 becomes float32.

    Raises
    ------
    Unfit
        If these are no numbers: text, complex, objects, ragged, or in a list of more than
        ten million entries (`MAX_ENTRIES`).
    """
    try:
        if isinstance(value, Sequence) and len(value) > MAX_ENTRIES:
            raise Unfit(f"{len(value):,} entries are far too many.")
        numbers = np.asarray(_detached(value))
    except (Exception, SystemExit) as error:
        if isinstance(error, Wrong):
            raise
        if isinstance(value, (list, tuple)):
            reason = "the rows differ in length or kind: they make no array."
            raise Unfit(reason) from error
        raise Unfit(f"an array or tensor is expected, not {type_name(value)}.") from error
    if numbers.dtype.kind not in "biuf":
        listed = isinstance(value, (list, tuple))
        held = f"a {type_name(value)} of {type_name(value[0])}" if listed else ""
        raise Unfit(f"numbers are expected, not {held or type_name(value)}.")
    return numbers


def _detached(value: object) -> object:
    """Return a value whose tensors, in lists and tuples too, are as NumPy takes them.

    They are on the CPU, have no gradient, and float32 in place of bfloat16. ``value`` :
    anything; lists and tuples become lists if they, or those in them, begin with a Tensor,
    all else stays as it is.
    """
    if isinstance(value, torch.Tensor):
        value = value.detach().cpu()
        return value.float() if value.dtype == torch.bfloat16 else value
    first = value
    for _ in range(MAX_AXES):  # a list may be its own first entry
        if not isinstance(first, (list, tuple)) or not first:
            break
        first = first[0]
    if first is value or not isinstance(first, torch.Tensor):
        return value
    return [_detached(entry) for entry in value]


def normal(*shape: int, seed: int = 0) -> torch.Tensor:
    """Return normally distributed float32 numbers, from a generator of their own.

    ``shape`` : the sizes of the Tensor's axes, int; ``seed`` : int, of that generator.
    """
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def rotated(x: torch.Tensor, positions=None, half: bool = False) -> torch.Tensor:
    """Return vectors rotated by their positions (rotary positions), by complex numbers.

    Each pair of a vector's numbers is a complex number. Pair i is rotated by
    position * 10000^(-2i / d_head) radians.

    Parameters
    ----------
    x : Tensor of shape (..., tokens, d_head)
    positions : sequence of float, optional
        Default 0, 1, 2, …
    half : bool
        Whether pair i is the numbers i and i + d_head / 2; by default 2i and 2i + 1.

    Returns
    -------
    Tensor of the shape of x
    """
    if half:
        x = x.unflatten(-1, (2, -1)).mT.flatten(-2)
    tokens, width = x.shape[-2:]
    frequencies = [10000 ** (-2 * i / width) for i in range(width // 2)]
    positions = range(tokens) if positions is None else positions
    angle = torch.tensor([[p * f for f in frequencies] for p in positions], dtype=x.dtype)
    rotation = torch.polar(torch.ones_like(angle), angle)  # (tokens, d_head / 2)
    pairs = torch.view_as_complex(x.unflatten(-1, (-1, 2)).contiguous())
    turned = torch.view_as_real(pairs * rotation)  # (..., tokens, d_head / 2, 2)
    return (turned.mT if half else turned).flatten(-2)


def diagnose(faults: Mapping[str, object]) -> None:
    """Raise the first diagnosis whose condition holds, as `Wrong`.

    It is for answers of which many forms are right. The diagnoses are also handed to
    whoever collects them (`noted`).

    ``faults`` : mapping, diagnosis, in words for the reader, → whether it holds.
    """
    _note(faults)
    for diagnosis, holds in faults.items():
        if holds:
            raise Wrong(diagnosis)


@contextmanager
def noted():
    """Collect the diagnoses that `compare` and `diagnose` are given inside a ``with``.

    Yields a list of str, which grows. While the ``with`` lasts it is one of `_COLLECTING`,
    the lists to which diagnoses are added.
    """
    diagnoses: list[str] = []
    _COLLECTING.append(diagnoses)
    try:
        yield diagnoses
    finally:
        _COLLECTING.pop()  # not `remove`, which takes the first list that is equal


def _note(table: Mapping[str, object]) -> None:
    """Add a table's diagnoses to the lists of all who collect them (`noted`).

    ``table`` : mapping, its keys are the diagnoses. `_COLLECTING` holds the lists.
    """
    for diagnoses in _COLLECTING:
        diagnoses.extend(table)


@contextmanager
def adding(prefix: str):
    """Put words before those of a diagnosis.

    ``prefix`` : these words. A `Wrong` from inside the ``with`` is raised again with them;
    a `NotTried` stays as it is.
    """
    try:
        yield
    except NotTried:
        raise
    except Wrong as wrong:
        raise wrong.reworded(f"{prefix} {wrong}") from wrong


class Called(TorchFunctionMode):
    """Note the names of PyTorch's functions that are called inside a ``with``.

    It serves checks of answers that must do without some of them.

    Attributes
    ----------
    names : list of str
        One name for each call, such as "softmax".
    """

    def __init__(self):
        """Begin with an empty list of the names of functions that are called."""
        super().__init__()
        self.names: list[str] = []

    def __torch_function__(self, function, types, args=(), kwargs=None):
        """Note the name of a function of PyTorch that is called, and call it.

        PyTorch calls this in place of ``function(*args, **kwargs)``; ``types`` is not used.
        """
        self.names.append(getattr(function, "__name__", ""))
        return function(*args, **(kwargs or {}))


def number(value: object) -> float:
    """Return ``value``, one finite number, as a float; raise `Unfit` if it is none."""
    scalar = array(value)
    if scalar.shape != ():
        raise Unfit(f"one number is expected, not {scalar.shape} of them.")
    if not np.isfinite(scalar):
        raise Unfit("the number should be finite.")
    return float(scalar)


def strings(value: object) -> list[str]:
    """Return ``value``, a list or tuple of str, as a list; raise `Unfit` if it is none."""
    if not isinstance(value, (list, tuple)):
        raise Unfit(f"a list of strings is expected, not {type_name(value)}.")
    if not all(isinstance(entry, str) for entry in value):
        raise Unfit("the list should hold strings only.")
    return list(value)


def unpack(value: object, count: int, what: str) -> Sequence:
    """Return what an answer returned, if it has so many parts.

    Parameters
    ----------
    value : object
        A list, a tuple, or an array or Tensor in which the parts are stacked.
    count : int
        How many are expected.
    what : str
        What they are, for the message.

    Returns
    -------
    list or tuple

    Raises
    ------
    Unfit
        If it is anything else, or has another number of parts.
    """
    if isinstance(value, (torch.Tensor, np.ndarray)) and value.ndim and len(value) == count:
        value = list(value)  # they were stacked
    if not isinstance(value, (list, tuple)) or len(value) != count:
        raise Unfit(f"return {what}; this is {_amount(value)}.")
    return value


def _amount(value: object) -> str:
    """Say what a wrong ``value`` is: "a list of 3", "a tuple of 1", or "of type int"."""
    if isinstance(value, (list, tuple)):
        return f"a {type_name(value)} of {len(value)}"
    return f"of type {type_name(value)}"
