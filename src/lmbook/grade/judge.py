"""The course's own checks on answers that stay in a sandbox.

A check runs here. Where it calls the answer, the call goes into the sandbox and its result
comes back as plain data. So whatever the submission does to its own process, to this
package's modules there or to what is printed, only the values that it gives count.
"""

import builtins
import sys
import time

import cloudpickle
import numpy as np
import torch
from torch.overrides import _get_current_function_mode_stack
from torch.utils._python_dispatch import _get_current_dispatch_mode_stack

from lmbook.grade import answers
from lmbook.grade.sandbox import Sandbox, Stopped
from lmcourse import exercises

# Answers that are models or classes, or are given a model that they may change: their
# checks need them at hand, so they run beside the submission's code, in a fresh process of
# the sandbox, and the table says so.
NEED_ANSWER = {
    "backpropagation.attention",
    "backpropagation.heads",
    "backpropagation.norm",
    "bert-internals.small_bert",
    "embeddings.static_vectors",
    "encoder-decoder.new_style",
    "fine-tuning.lora",
    "fine-tuning.own",
    "inside-gpt.carry",
    "mini-gpt.own",
    "mini-gpt.sweep",
    "scaling.small",
}
MOST_CALLS = 10**5  # of PyTorch's functions, of which a watcher is told
GRACE_SECONDS = 600  # seconds beyond an answer's own, for whoever hands its reply on


class WaitingKernel:
    """The copy of a submission's kernel that waits with an answer, asked like a `Sandbox`.

    Parameters
    ----------
    box : Sandbox
        In which the submission was run.
    stem : str
        The task, in hexadecimal digits.
    """

    def __init__(self, box: Sandbox, stem: str):
        self._box, self._stem = box, stem

    def ask(self, *request, seconds: float, held=None) -> object:
        """Send a request to the copy, by way of its sandbox, and return the reply.

        Parameters
        ----------
        *request
            The name of a function of `lmbook.grade.answers`, and its arguments.
        seconds : float
            How long it may take.
        held : callable, optional
            Called with the number (int) and the name (str) of a function there; returns
            what stands for it here.

        Returns
        -------
        object
            The reply, read from JSON.

        Raises
        ------
        Stopped
            If no time is left; also what `Sandbox.ask` raises.
        """
        if seconds <= 0:
            raise Stopped("it took too long")
        handed = "through", self._stem, cloudpickle.dumps(request), seconds
        return self._box.ask(*handed, seconds=seconds + GRACE_SECONDS, held=held)


class Clock:
    """Counts what time an answer has left: that of its own calls, not of the check.

    Parameters
    ----------
    seconds : float
        For all its calls together.
    """

    def __init__(self, seconds: float):
        self._left = seconds
        self._begun = 0.0

    def __enter__(self) -> float:
        """Let a call begin; return how many seconds are left for it."""
        self._begun = time.monotonic()
        return self._left

    def __exit__(self, *_):
        """Subtract the seconds of the call that ends from what is left."""
        self._left -= time.monotonic() - self._begun


class RemoteFunction:
    """A function in a sandbox, to be called from here.

    What it returns or raises comes back as plain data; what it does to its inputs, to
    random numbers and to whoever watches PyTorch's calls is done here, too.

    Parameters
    ----------
    box : Sandbox or WaitingKernel
    number : int
        By which the function is known there.
    name : str
        The function's own.
    clock : Clock
        Counts the seconds that are left to all calls of the answer together.
    """

    def __init__(self, box: Sandbox | WaitingKernel, number: int, name: str, clock: Clock):
        self._box, self._number, self._clock = box, number, clock
        self.__name__ = name

    def __reduce__(self):
        """Tell pickle how to make the function again: in the sandbox, by its number.

        So when it is an argument of another call, the function itself arrives there.
        """
        return answers.held_function, (self._number,)

    def __call__(self, *inputs, **named):
        """Call the function in its sandbox; return what it gives there, or raise its error.

        What it changes in its ``inputs`` and in the state of PyTorch's random numbers is
        changed here as well, and whoever watches PyTorch's calls here is shown its calls.
        ``named`` are its named arguments: changes to them stay there. The reply is the dict
        that `lmbook.grade.answers.call` describes.

        Raises
        ------
        Stopped
            If it takes longer than its clock has left, or its process ended.
        """
        request = "call", self._number, inputs, named, torch.get_rng_state()
        with self._clock as seconds:
            outcome = self._box.ask(*request, seconds=seconds, held=self._held)
        torch.set_rng_state(outcome["random"])
        _replay_calls(outcome["names"], outcome["calls"])
        for value, after in zip(inputs, outcome["after"], strict=True):
            if after is not None:
                apply_changes(value, after)
        if "raised" in outcome:
            raise _rebuild_error(*outcome["raised"])
        return outcome["gave"]

    def _held(self, number: int, name: str):
        """Return what stands here for another function of the same sandbox.

        An answer holds it, or returned it; its calls take time of the same clock.

        ``number`` : int, by which the sandbox knows it; ``name`` : str.
        """
        return RemoteFunction(self._box, number, name, self._clock)


def _rebuild_error(module: str, name: str, text: str) -> Exception:
    """Return an error like the one that was raised in the sandbox.

    ``module`` and ``name`` are those of its type, ``text`` is its message. It is of the
    same type if that is Python's own or of `lmcourse`; no other module is asked for a type.
    Otherwise it is of a new type of that name, and a RuntimeError if the type wants more
    than a message.
    """
    known = module == "builtins" or module.startswith("lmcourse.")
    kind = getattr(sys.modules.get(module, builtins), name, None) if known else None
    if not (isinstance(kind, type) and issubclass(kind, Exception)):
        kind = type(str(name), (Exception,), {})
    try:
        return kind(text)
    except Exception:  # it wants more than a text
        return RuntimeError(f"{name}: {text}")


def _replay_calls(names: list, calls: int) -> None:
    """Show whoever watches PyTorch here what was called in the sandbox.

    Watchers are the modes that are active, as by ``with TorchFunctionMode()``: those of
    functions see each name, those of operations (`TorchDispatchMode`) only how many there
    were; at most `MOST_CALLS` of each.

    Parameters
    ----------
    names : list of str
        Names of PyTorch's functions that were called.
    calls : int
        How many operations they were.
    """
    for mode in _get_current_function_mode_stack():
        for name in names[:MOST_CALLS]:
            mode.__torch_function__(_function_named(str(name)), ())
    for mode in _get_current_dispatch_mode_stack():
        for _ in range(min(int(calls), MOST_CALLS)):
            mode.__torch_dispatch__(_function_named(""), ())


def _function_named(name: str):
    """Return a function that does nothing; its ``__name__`` is what a watcher sees."""

    def function(*inputs, **named):
        """Do nothing; only its name is seen. It takes any arguments, and returns None."""
        return None

    function.__name__ = name
    return function


def apply_changes(value: object, after: object) -> None:
    """Do to an input what the function did to its copy in the sandbox.

    Parameters
    ----------
    value : object
        The input; changed in place.
    after : object
        What became of the copy: of a generator its state, a uint8 Tensor; of a module
        whether each part is in training mode, a list of bool; of a tensor, array, list or
        dict the whole; of another object a dict of its attributes.
    """
    if isinstance(value, torch.Generator):
        value.set_state(after)
    elif isinstance(value, torch.nn.Module):
        for part, training in zip(value.modules(), after, strict=True):
            part.training = bool(training)
    elif isinstance(value, torch.Tensor):
        with torch.no_grad():
            value.copy_(after)
    elif isinstance(value, (np.ndarray, list)):
        value[:] = after
    elif isinstance(value, dict):
        value.clear()
        value.update(after)
    else:
        vars(value).update(after)


def judge(name: str, content: bytes, box: Sandbox | WaitingKernel, seconds: float):
    """Check an answer; return the verdict of the course's own check.

    The check runs here and calls the answer's functions in the sandbox. Only for the tasks
    of `NEED_ANSWER`, whose checks need the answer itself, it runs in the sandbox as well.

    Parameters
    ----------
    name : str
        The task, such as "attention.heads".
    content : bytes
        The answer, pickled in the submission's kernel; it is opened in the sandbox only.
        Where it waits, it is not needed.
    box : Sandbox or WaitingKernel
        Where the answer is: a process that opens the pickle, or one that waits with it.
    seconds : float
        For all calls of the answer together.

    Returns
    -------
    lmcourse.exercises.Verdict
        With ``ok``, ``tried`` and ``message``.

    Raises
    ------
    Stopped
        If it took too long or ended; the sandbox is then of no more use.
    Failed
        If the answer cannot be opened in the sandbox.
    """
    if name in NEED_ANSWER:
        ok, tried, message = box.ask("check", name, content, seconds=seconds)
        return exercises.Verdict(name, bool(ok), str(message), bool(tried))
    clock = Clock(seconds)
    held = RemoteFunction(box, 0, "", clock)._held
    with clock as left:
        answer = box.ask("load", content, seconds=left, held=held)
    return exercises.check(name, answer)
