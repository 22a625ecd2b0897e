"""In the sandbox: the answers that were handed in, to be called from outside.

Nothing that is said here is a verdict, with one exception: an answer that cannot be judged
from outside (`lmbook.grade.judge.NEED_ANSWER`) is checked here.
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

    That is importing what the cells and the checks import, and calling one function
    (`torch.sin`) as answers are called, since PyTorch itself imports more when a call is
    first watched. Then `FUNCTIONS` is emptied and the memory limited.

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
    """Return the function that `hold` keeps here under a number.

    The judge has only a stand-in for it, a `lmbook.grade.judge.RemoteFunction`, which is
    pickled as a call of this function. So where the judge gives it to another function of
    the answer as an argument, the function itself arrives there.

    ``number`` : int, what `hold` returned; one beyond is an IndexError.
    """
    return FUNCTIONS[number]


def hold(function) -> int:
    """Keep a function of an answer in `FUNCTIONS`, and return its number there.

    By that number the judge, who never gets the function itself, has it called (`call`).
    ``function`` : callable.
    """
    FUNCTIONS.append(function)
    return len(FUNCTIONS) - 1


def load(content: bytes) -> object:
    """Return the answer that a pickle holds, of whatever type.

    Called in the sandbox alone: opening a pickle may run any code. On its way to the judge
    the answer becomes JSON (`lmbook.grade.inside.serve`), with a number in the place of
    each function in it (`hold`).

    ``content`` : the pickle, which the submission's kernel wrote. Errors in opening it are
    raised as they are.
    """
    return pickle.loads(content)


def call(number: int, inputs: tuple, named: dict, random: torch.Tensor) -> dict:
    """Call a function of an answer, and watch what it does.

    Parameters
    ----------
    number : int
        What `hold` returned for the function: its position in the list `FUNCTIONS`.
    inputs : tuple
        What it is called with, in order.
    named : dict
        Its named arguments: name → value.
    random : uint8 Tensor
        The state of PyTorch's random numbers where the judge is, which is set here first.

    Returns
    -------
    dict
        - ``gave``: what the function returned; ``...`` if it returned None because its body
          is still empty, as in a task that was not begun. It is missing after an error,
        - ``raised``: only after an error, a list of its type's module and name and of its
          message, at most 1000 characters,
        - ``after``: a list with an entry for each of ``inputs``: what `changeable_state`
          returns of it after the call, or None if the call did not change that,
        - ``names``: list of str, the functions of PyTorch that it called,
        - ``calls``: int, how many operations of PyTorch these took,
        - ``random``: uint8 Tensor, the state of random numbers after it.
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
    """Return the part of an input that a function could change.

    Of a generator that is its state, a uint8 Tensor; of a module whether each of its parts
    is in training mode, a list of bool; a list, dict, Tensor or array is returned itself,
    not a copy; of another object a dict of its attributes, their values not copied. None if
    it has none, as a number or a text.
    What changes inside of a tuple or a set is not seen: of these, too, None is returned.

    A module's weights are not among it: answers that may change these are checked beside
    the submission's code (`lmbook.grade.judge.NEED_ANSWER`).

    The caller writes what this returns as JSON before a call and again after it, and
    compares the two texts (`call`). If they differ, the judge is sent the latter, and does
    the same to its own input (`lmbook.grade.judge.apply_changes`).
    """
    if isinstance(value, torch.Generator):
        return value.get_state()
    if isinstance(value, torch.nn.Module):
        return [part.training for part in value.modules()]
    if isinstance(value, (list, dict, torch.Tensor)) or type(value).__name__ == "ndarray":
        return value
    return dict(getattr(value, "__dict__", {})) or None


def check(name: str, content: bytes) -> list:
    """Check an answer in the sandbox, beside the submission's code.

    Parameters
    ----------
    name : str
        The task, such as "attention.heads".
    content : bytes
        The answer as a pickle.

    Returns
    -------
    list of bool, bool and str
        One of each: whether the answer is right, whether it was tried (is more than the
        starter), and what the check says of it, a sentence.
    """
    verdict = exercises.check(name, pickle.loads(content))
    return [verdict.ok, verdict.tried, verdict.message]
