"""In the sandbox: the answers that were handed in, to be called from outside.

Nothing that is said here is a verdict, with one exception: an answer that cannot be judged
from outside (`lmbook.grade.judge.TOGETHER`) is checked here.
"""

import pickle

import torch

from lmbook.grade import as_json
from lmbook.grade.inside import import_ahead, limit_memory
from lmcourse import exercises
from lmcourse.exercises.answers import Called, _is_empty
from lmcourse.exercises.mini_gpt import CallCounter

FUNCTIONS: list = []  # those of answers, which the judge knows by their place here


def prepare(code: list[str], room: int, chapter: str = "") -> None:
    """Do what is no submission's doing, before its time and memory are counted.

    That is importing, also what PyTorch itself imports when a call is first watched.

    Parameters
    ----------
    code : list of str
        The submission's cells: what they import is imported now.
    room : int
        Bytes that this process may use beyond what it uses now; 0 is no limit.
    chapter : str
        A chapter whose checks will run here; "" if none will.
    """
    import_ahead(code)
    if chapter:
        exercises.names(chapter)
    outcome = call(hold(torch.sin), (torch.zeros(1),), {}, torch.get_rng_state())
    as_json.dumps(outcome)
    FUNCTIONS.clear()
    limit_memory(room)


def held_function(number: int):
    """Return the function that is held here (`hold`) under a number.

    Where the judge hands a function on to another, it so arrives as itself.

    That is how a `lmbook.grade.judge.RemoteFunction` is pickled.
    """
    return FUNCTIONS[number]


def hold(function) -> int:
    """Hold a function here, and return the number by which the judge knows it.

    ``function`` : callable.
    """
    FUNCTIONS.append(function)
    return len(FUNCTIONS) - 1


def load(content: bytes) -> object:
    """Unpickle an answer. A function in it goes to the judge as a number (`hold`)."""
    return pickle.loads(content)


def call(number: int, inputs: tuple, named: dict, random: torch.Tensor) -> dict:
    """Call a function of an answer.

    Parameters
    ----------
    number : int
        By which the function is kept in ``FUNCTIONS``.
    inputs : tuple
        What it is called with, in order.
    named : dict
        Its named arguments.
    random : Tensor
        The state of PyTorch's random numbers, as it is where the judge is.

    Returns
    -------
    dict
        ``gave``, what it returned, or ``raised``: module, name and text of its error.
        ``after``: each input that it changed, None for the others. ``names`` and ``calls``:
        the functions of PyTorch that it called by name, and how many operations they were.
        ``random``: the state of random numbers after it.
    """
    torch.set_rng_state(random)
    function = FUNCTIONS[number]
    before = [as_json.dumps(changeable_state(x)) for x in inputs]
    with Called() as watch, CallCounter() as counting:
        try:
            outcome = {"gave": function(*inputs, **named)}
        except BaseException as error:  # sys.exit() and Ctrl-C too: it is the answer's own
            kind = type(error)
            outcome = {"raised": [kind.__module__, kind.__name__, str(error)[:1000]]}
    if outcome.get("gave", 0) is None and _is_empty(function):
        outcome["gave"] = ...
    after = [changeable_state(x) for x in inputs]
    changed = [as_json.dumps(x) != old for x, old in zip(after, before, strict=True)]
    outcome["after"] = [x if c else None for x, c in zip(after, changed, strict=True)]
    outcome |= {"names": watch.names, "calls": counting.calls}
    return outcome | {"random": torch.get_rng_state()}


def changeable_state(value: object) -> object:
    """Return what a function may change of an input, as plain data; None if nothing."""
    if isinstance(value, torch.Generator):
        return value.get_state()
    if isinstance(value, torch.nn.Module):
        return [part.training for part in value.modules()]
    if isinstance(value, (list, dict, torch.Tensor)) or type(value).__name__ == "ndarray":
        return value
    return dict(getattr(value, "__dict__", {})) or None


def check(name: str, content: bytes) -> list:
    """Check an answer here, beside the submission's code.

    Parameters
    ----------
    name : str
        The task, such as "attention.heads".
    content : bytes
        The answer as a pickle.

    Returns
    -------
    list
        Whether it is right, whether it was tried, and what the check says.
    """
    verdict = exercises.check(name, pickle.loads(content))
    return [verdict.ok, verdict.tried, verdict.message]
