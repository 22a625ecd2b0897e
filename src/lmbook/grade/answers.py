"""In the sandbox: the answers that were handed in, to be called from outside.

Nothing that is said here is a verdict, with one exception: an answer that cannot be judged
from outside (`lmbook.grade.judge.TOGETHER`) is checked here.
"""

import pickle

import torch

from lmbook.grade import as_json
from lmcourse import exercises
from lmcourse.exercises.answers import Called, _is_empty
from lmcourse.exercises.mini_gpt import CallCounter

HELD: list = []  # functions, which the judge knows by their number


def held(number: int):
    """Return a function that the judge hands back, as `lmbook.grade.judge.Remote` says."""
    return HELD[number]


def keep(function) -> int:
    """Hold a function; return its number."""
    HELD.append(function)
    return len(HELD) - 1


def load(content: bytes) -> object:
    """Return an answer, a function of it as a number."""
    return pickle.loads(content)


def call(number: int, inputs: tuple, named: dict, random: torch.Tensor) -> dict:
    """Call a function; return what it gave, and what became of its inputs."""
    torch.set_rng_state(random)
    function, before = HELD[number], [as_json.dumps(state(x)) for x in inputs]
    with Called() as watch, CallCounter() as counting:
        try:
            found = {"gave": function(*inputs, **named)}
        except BaseException as error:  # sys.exit() and Ctrl-C too: it is the answer's own
            kind = type(error)
            found = {"raised": [kind.__module__, kind.__name__, str(error)[:1000]]}
    if found.get("gave", 0) is None and _is_empty(function):
        found["gave"] = ...
    after = [state(x) for x in inputs]
    changed = [as_json.dumps(x) != old for x, old in zip(after, before, strict=True)]
    found["after"] = [x if c else None for x, c in zip(after, changed, strict=True)]
    found |= {"names": watch.names, "calls": counting.calls}
    return found | {"random": torch.get_rng_state()}


def state(value: object) -> object:
    """Return what a function may change of an input, as plain data; None if nothing."""
    if isinstance(value, torch.Generator):
        return value.get_state()
    if isinstance(value, torch.nn.Module):
        return [part.training for part in value.modules()]
    if isinstance(value, (list, dict, torch.Tensor)) or type(value).__name__ == "ndarray":
        return value
    return dict(getattr(value, "__dict__", {})) or None


def check(name: str, content: bytes) -> list:
    """Check an answer here, beside the submission's code."""
    verdict = exercises.check(name, pickle.loads(content))
    return [verdict.ok, verdict.tried, verdict.message]
