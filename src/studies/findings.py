"""Proofs: functions that check what a page says, run where the page places them.

A chapter's proofs are functions in ``studies/NAME/proofs.py`` (its hyphens written as
underscores). Each takes the ``page``, asserts, and returns what the text quotes. The
``page`` is a `Page`: the names that the chapter's cells have defined before the proof, as
attributes. ``page.bert`` is what the page calls ``bert``; proofs cannot change it, and a
null replaces some of the names (`Page.replaced`).

>>> @finding(
...     "“It” gives most of its attention to the two nouns.",
...     rival="every other word of the sentences",
...     null=random_weights,
...     n="{sentences} sentences",
...     interval="{span:.0%}",
... )
... def it_attends_to_the_nouns(page):
...     '''What exactly is asserted, on which sentences, drawn how.'''
...     ...
...     assert low > 0.5
...     return {"it": share, "span": (low, high), "sentences": len(tried)}

The chapter says ``:::{proof} it_attends_to_the_nouns`` where it is to run
(`lmbook.execute.placed`) and quotes ``{glue:text}`it_attends_to_the_nouns.it:.0%` ``.
`run` is what the page's kernel calls there. A test runs each finding on its null, and
there it must raise an AssertionError (``tests/pages/test_nulls.py``).
"""

import functools
import inspect
import os
import random
import re
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from types import FunctionType, ModuleType

import studies

RECORD = "application/vnd.lmbook.proof+json"  # MIME type of the record of a proof
GLUE = "application/papermill.record/"  # before the MIME type of a value for the text
FEWEST_WORDS = 3


class NotSo(AssertionError):
    """A finding that does not hold, for instance of another model than the default."""


# --- what a proof sees -------------------------------------------------------------------


class Page:
    """The names that a page has defined so far, as attributes that can only be read.

    Parameters
    ----------
    names : dict
        The page's namespace.
    """

    def __init__(self, names: dict):
        """Keep the namespace itself, not a copy; ``names`` : see the class."""
        object.__setattr__(self, "_names", names)

    def __getattr__(self, name: str):
        """Return the value of a name; an AttributeError says if it is not defined yet."""
        try:
            return self._names[name]
        except KeyError:
            message = f"the page has not defined {name!r} before it comes to this proof"
            raise AttributeError(message) from None

    def __setattr__(self, name: str, value) -> None:
        """Raise an AttributeError that names what was set: a page can only be read.

        ``value`` is not used.
        """
        raise AttributeError(f"a proof only reads its page: {name!r} cannot be set")

    def __dir__(self):
        """Return the names that the page has defined, sorted."""
        return sorted(self._names)

    def replaced(self, **values) -> "Page":
        """Return a copy of the page in which some names have other values.

        Functions that the page defines see the new values, too. Nothing is computed again:
        what the page has computed from an old value has to be replaced as well. Functions
        of other modules, methods, and functions in other decorators than `functools.cache`
        keep the old values.

        Parameters
        ----------
        **values
            By name.

        Raises
        ------
        AttributeError
            If the page has no such name: a null that changes nothing would prove nothing.
        """
        for name in values:
            getattr(self, name)
        world = dict(self._names)
        for name, value in self._names.items():
            world[name] = _rebound(value, self._names, world)
        world.update(values)
        return Page(world)


def _rebound(value, old: dict, new: dict):
    """Return a page's function with other globals, and any other value as it is.

    A function in `functools.cache` or `functools.lru_cache` gets a new, empty cache.

    Parameters
    ----------
    value : object
        A value of the page. It is "a page's function" if its globals are ``old``.
    old, new : dict
        The page's namespace, and the one in which the new function finds its globals.
    """
    if isinstance(value, functools._lru_cache_wrapper):
        inner = _rebound(value.__wrapped__, old, new)
        if inner is value.__wrapped__:
            return value
        return functools.lru_cache(**value.cache_parameters())(inner)
    if not isinstance(value, FunctionType) or value.__globals__ is not old:
        return value
    parts = (value.__name__, value.__defaults__, value.__closure__)
    function = FunctionType(value.__code__, new, *parts)
    function.__kwdefaults__ = value.__kwdefaults__
    return functools.update_wrapper(function, value)


Null = Callable[[Page], Page]

# --- what a proof is ---------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Proof:
    """A sentence, the function that checks it, and what it is compared with.

    Parameters
    ----------
    function : callable
        From a `Page` to a dict: name → number, text, or pair of numbers (an interval).
    sentence : str
        What is checked, for people.
    kind : {"proof", "finding"}
        About the mechanism, or about the model at hand.
    rival, n, interval : str
        See `finding`; "" for what is not said.
    null : callable or None
        From the page to the page in the world in which there is nothing to find.
    no_null : str
        Why there is no such world; "" if there is.
    """

    function: Callable[[Page], dict]
    sentence: str
    kind: str
    rival: str = ""
    null: Null | None = None
    n: str = ""
    interval: str = ""
    no_null: str = ""

    def __call__(self, page: Page) -> dict:
        """Run the function on a page, and return what it returns."""
        return self.function(page)

    @property
    def name(self) -> str:
        """The name of the function."""
        return self.function.__name__

    def fields(self) -> dict[str, str]:
        """Return what the page says about the proof beside its sentence.

        Returns
        -------
        dict of str to str
            Texts: those of ``rival``, ``null``, ``n`` and ``interval`` that there are, with
            ``{key}`` where a value that the function returns is to be filled in. ``null``
            is the first paragraph of its docstring, or "none, since" and the reason.
        """
        null = ""
        if self.no_null:
            null = f"none, since {self.no_null}"
        if self.null:
            null = (inspect.getdoc(self.null) or "").partition("\n\n")[0].rstrip(".")
            null = " ".join(null.split())
        fields = {"rival": self.rival, "null": null, "n": self.n, "interval": self.interval}
        return {name: text for name, text in fields.items() if text}


def proof(sentence: str) -> Callable[[Callable], Proof]:
    """Make a function a proof about the mechanism, which holds for every model.

    Parameters
    ----------
    sentence : str
        What is checked, for people; code stands between backticks.

    Returns
    -------
    callable
        The decorator, from a function of a `Page` to a `Proof`.
    """

    def decorate(function: Callable[[Page], dict]) -> Proof:
        """Return the function as a `Proof`.

        ``function`` : from a `Page` to a dict, name → value that the text may quote. A
        ValueError says if the sentence is too short.
        """
        _check_sentence(sentence)
        return Proof(function, sentence.rstrip("."), "proof")

    return decorate


def finding(
    sentence: str,
    *,
    rival: str,
    n: str,
    null: Null | None = None,
    interval: str = "",
    no_null: str = "",
) -> Callable[[Callable], Proof]:
    """Make a function a finding: what was found in the model at hand.

    With the default model it must hold, or the build fails; another model may be told *not
    so*. Its checks are ``assert`` statements: where one fails, the function is run again
    without them, so that the text can quote what it returns.

    Parameters
    ----------
    sentence : str
        What was found, for people: one thought, at most one number. It says no more than
        is asserted.
    rival : str
        The simplest thing that could do it as well.
    n : str
        How much was looked at.
    null : callable, optional
        From the page to the page in which there is nothing to find, see `Page.replaced`;
        there the function must raise an AssertionError. The first sentence of its
        docstring says what it is.
    interval : str, optional
        What covers texts, draws or seeds.
    no_null : str, optional
        If there can be no null, why: a sentence after "since".

    Notes
    -----
    ``rival``, ``n`` and ``interval`` may hold ``{key}`` or ``{key:format}``, values that
    the function returns. A pair of numbers is written as "60 to 75 %".

    Raises
    ------
    ValueError
        If something is missing, or there are both a null and a reason for having none.
    """

    def decorate(function: Callable[[Page], dict]) -> Proof:
        """Return the function as a `Proof`; raise a ValueError if something is missing.

        ``function`` : from a `Page` to a dict, name → value that the text may quote.
        """
        _check_sentence(sentence)
        if not (rival.strip() and n.strip()):
            raise ValueError(f"{function.__name__}: a finding must say its rival and its n")
        if bool(null) == bool(no_null.strip()):
            raise ValueError(
                f"{function.__name__}: a finding must have a null, or say in no_null why "
                "there is none"
            )
        if null and not inspect.getdoc(null):
            raise ValueError(
                f"{function.__name__}: its null has no docstring; the first sentence must "
                "say what it is"
            )
        facts = {"rival": rival, "null": null, "n": n, "interval": interval}
        return Proof(function, sentence.rstrip("."), "finding", **facts, no_null=no_null)

    return decorate


def _check_sentence(text: str) -> None:
    """Raise a ValueError if a proof's sentence has fewer than three words."""
    if len(text.split()) < FEWEST_WORDS:
        raise ValueError(
            f"a proof must begin with a sentence that says what is checked, not {text!r}"
        )


# --- what a proof returns ----------------------------------------------------------------


def right_letter(choices: Mapping[str, bool], otherwise: str = "?") -> str:
    """Return the letter of a task's right choice: the first whose condition holds.

    Parameters
    ----------
    choices : mapping
        Letter → whether that choice is right. If several are, the first one counts.
    otherwise : str
        What is returned if no condition holds: the letter of the choice that is then right,
        or "?" if none is.

    Returns
    -------
    str
    """
    for letter, is_right in choices.items():
        if is_right:
            return letter
    return otherwise


# --- finding and running it --------------------------------------------------------------


def proofs_module(chapter: str) -> ModuleType:
    """Return a chapter's module of proofs.

    A book that is not this one (``LMBOOK_STUDIES`` names its folder) may have its own.

    Parameters
    ----------
    chapter : str
        The page's name, such as "bert-internals".

    Raises
    ------
    ModuleNotFoundError
        If it has none.
    """
    folder = os.environ.get("LMBOOK_STUDIES", "")
    if folder and folder not in studies.__path__:
        studies.__path__.append(folder)
    return import_module(f"studies.{re.sub(r'[^0-9a-zA-Z]', '_', chapter)}.proofs")


def find(chapter: str, name: str) -> Proof:
    """Return a proof by the name of its function.

    Parameters
    ----------
    chapter : str
        The page's name, such as "bert-internals".
    name : str
        Of the function.

    Raises
    ------
    LookupError
        If the module has no proof of this name, saying which it has.
    """
    module = proofs_module(chapter)
    proofs = {key: value for key, value in vars(module).items() if isinstance(value, Proof)}
    if name not in proofs:
        known = ", ".join(sorted(proofs)) or "none"
        raise LookupError(f"{module.__name__} has no proof {name!r}; it has {known}")
    return proofs[name]


def run(chapter: str, name: str, names: dict) -> None:
    """Run a proof in a page's kernel; leave what it returned for the text.

    Displayed are a record of it (MIME type `RECORD`; `_show` says what is in it) and each
    value that it returned, glued as ``name.key``. A finding that does not hold is run again
    without its assertions, so that there are values.

    Parameters
    ----------
    chapter : str
        The page's name, such as "bert-internals".
    name : str
        Of the proof's function.
    names : dict
        The page's namespace: name → value.

    Raises
    ------
    AssertionError
        If it does not hold; `NotSo` if it is a finding.
    """
    proof = find(chapter, name)
    page = Page(names)
    try:
        with same_draws():
            values = plain_values(proof, proof(page))
    except AssertionError as error:
        line = _asserted(proof, error)
        if proof.kind == "proof":
            _show(proof, {}, f"{line}: {error}")
            raise
        with same_draws():
            values = values_unchecked(proof, page)
        _show(proof, values, f"{line}: {error}".rstrip(": "))
        raise NotSo(str(error)) from error
    _show(proof, values)


@contextmanager
def same_draws() -> Iterator[None]:
    """Restore the random generators at the end of a ``with``, as they were at its start.

    These are the global ones of `random`, NumPy and PyTorch (CPU). So a notebook, which has
    no proofs, draws the random numbers that the page draws.
    """
    import numpy as np
    import torch

    states = random.getstate(), np.random.get_state(), torch.get_rng_state()  # noqa: NPY002
    try:
        yield
    finally:
        random.setstate(states[0])
        np.random.set_state(states[1])  # noqa: NPY002
        torch.set_rng_state(states[2])


def plain_values(proof: Proof, returned: object) -> dict:
    """Return what a proof returned, numbers of NumPy and PyTorch made Python's.

    Parameters
    ----------
    proof : Proof
        Only its name is used, in messages.
    returned : mapping or None
        Name → number, text, or tuple or list of these.

    Returns
    -------
    dict
        Name → bool, int, float, str or a tuple of these; empty for None.

    Raises
    ------
    TypeError
        If it is no dict, or holds what no text can quote.
    """
    if returned is None:
        return {}
    if not isinstance(returned, Mapping):
        raise TypeError(f"{proof.name} returns a dict, name → value, not {returned!r}")
    return {key: _plain(f"{proof.name}.{key}", value) for key, value in returned.items()}


def _plain(name: str, value):
    """Return a value as Python's own number, text, or tuple of these.

    ``value`` : also of NumPy or PyTorch; ``name`` stands in the TypeError that other values
    raise.
    """
    value = value.tolist() if hasattr(value, "tolist") else value
    if isinstance(value, tuple | list):
        return tuple(_plain(name, each) for each in value)
    if not isinstance(value, bool | int | float | str):
        raise TypeError(f"{name} is a {type(value).__name__}: no text can quote that")
    return value


def values_unchecked(proof: Proof, page: Page) -> dict:
    """Return what a finding would return if it asserted nothing.

    Its module is compiled again without ``assert`` statements, as ``python -O`` does.

    Parameters
    ----------
    proof : Proof
        The finding.
    page : Page
        The names that the lesson has defined, as attributes.

    Returns
    -------
    dict
        Name → value: bool, int, float, str or a tuple of these, Python's own. Empty if the
        finding returns nothing.

    Raises
    ------
    RuntimeError
        If it raises an AssertionError even so, by other means than a statement.
    """
    module = sys.modules[proof.function.__module__]
    path = Path(inspect.getsourcefile(module))
    code = compile(path.read_text("utf-8"), path, "exec", dont_inherit=True, optimize=1)
    names = {key: vars(module)[key] for key in ("__name__", "__file__", "__package__")}
    exec(code, names)
    try:
        return plain_values(proof, names[proof.name](page))
    except AssertionError as error:
        raise RuntimeError(
            f"{proof.name} does not hold, and the text needs what it returns: its checks "
            "should be `assert` statements of its own module"
        ) from error


def _asserted(proof: Proof, error: AssertionError) -> str:
    """Return the line of code in the proof's module that raised an error; "" if none did.

    Of several lines of the module in the traceback it is the innermost.
    """
    path = inspect.getsourcefile(proof.function)
    lines = [
        f.line for f in traceback.extract_tb(error.__traceback__) if f.filename == path
    ]
    return lines[-1] if lines else ""


def _text_of_docstring(function: Callable) -> str:
    """Return a function's docstring up to its first numpydoc section; "" if it has none."""
    return re.split(r"\n\n\w+\n-+\n", inspect.getdoc(function) or "")[0]


def _source(proof: Proof) -> str:
    """Return the code of a proof's function, below that of its null if it has one."""
    null = inspect.getsource(proof.null) if inspect.isfunction(proof.null) else ""
    parts = [null, inspect.getsource(proof.function)]
    return "\n\n".join(filter(None, map(str.rstrip, parts)))


def _show(proof: Proof, values: dict, failed: str = "") -> None:
    """Display the record of a proof, and glue its values, each as ``name.key``.

    The record is a dict: ``name``, ``sentence`` and ``kind`` of the proof; ``fields``,
    pairs of name and text, such as its rival; ``about``, the beginning of its docstring;
    ``source``, its code; ``module``, the dotted name; ``values``, pairs of key and `repr`;
    ``failed``.

    Parameters
    ----------
    proof : Proof
    values : dict
        What it returned: name → bool, int, float, str or a tuple of these.
    failed : str
        The line that did not hold and what it said; "" if all holds.
    """
    from IPython.display import display

    record = {
        "name": proof.name,
        "sentence": proof.sentence,
        "kind": proof.kind,
        "fields": [[name, text] for name, text in proof.fields().items()],
        "about": _text_of_docstring(proof.function),
        "source": _source(proof),
        "module": proof.function.__module__,
        "values": [[key, repr(value)] for key, value in values.items()],
        "failed": failed,
    }
    display({RECORD: record}, raw=True)
    for key, value in values.items():
        glued = {"name": f"{proof.name}.{key}", "mime_prefix": GLUE}
        text = {f"{GLUE}text/plain": repr(value)}
        display(text, raw=True, metadata={"scrapbook": glued})
