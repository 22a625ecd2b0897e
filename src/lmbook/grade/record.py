"""In a submission's kernel: keep every answer that is handed to a check, as it is then.

An answer is kept in two ways. As a pickle it can be opened in another process, in which
the notebook has not run. Some answers cannot be pickled, or rest on what a
pickle does not hold: a cache, a module that the notebook wrote, a setting of Python. So the
kernel is forked as well, and the copy, in which all is as it was when the check was called,
waits to be asked.
"""

import ctypes
import fcntl
import os
import pickle
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import cloudpickle
from IPython import get_ipython

from lmbook.grade import answers, as_json
from lmbook.grade.inside import ANSWERS_FOLDER, read_request, write_reply
from lmcourse import exercises

ANSWERS = Path(os.environ["HOME"]) / ANSWERS_FOLDER
LOOK_EVERY = 5  # seconds from one look at whether a copy is still of use to the next

_original_check = exercises.check


def recording_check(name, answer):
    """Keep an answer, then check it, in the place of `lmcourse.exercises.check`.

    The answer is written into the folder `ANSWERS` as a pickle (TASK.pickle, with the
    task's name in hexadecimal digits) or, where it cannot be pickled, the error as a text
    (TASK.why). A copy of this process stays behind with the answer itself, since a pickle
    does not hold all that it needs. What was kept of an earlier answer to the same task is
    removed.

    Parameters
    ----------
    name : str
        Of the task, such as "attention.heads".
    answer : object
        Whatever the reader's notebook gives to the check.

    Returns
    -------
    lmcourse.exercises.Verdict
        Of the course's own check.
    """
    ANSWERS.mkdir(exist_ok=True)
    stem = str(name).encode().hex()
    for old in ANSWERS.glob(f"{stem}.*"):  # the last time counts
        _remove_recorded(old)
    try:
        content = cloudpickle.dumps(answer)
    except Exception as error:
        (ANSWERS / f"{stem}.why").write_text(f"{type(error).__name__}: {error}"[:1000])
    else:
        (ANSWERS / f"{stem}.pickle").write_bytes(content)
    with suppress(OSError):  # no more processes are allowed: there is the pickle
        _leave_copy(stem, answer)
    return _original_check(name, answer)


def _remove_recorded(path: Path) -> None:
    """Remove a file that was kept of an answer, if it is there.

    A file ``.pid`` holds the number of the process that waits with the answer: that process
    is killed.
    """
    if path.suffix == ".pid":
        with suppress(OSError, ValueError):
            os.kill(int(path.read_text()), signal.SIGKILL)
    path.unlink(missing_ok=True)


def _leave_copy(stem: str, answer: object) -> None:
    """Leave a copy of this process that holds an answer, and waits to be asked for it.

    This process forks twice, so that the copy is nobody's child: a kernel that ends takes
    its children along. It returns when the copy can be asked (`_answer_requests`), or has
    ended. ``stem`` is the task's name in hexadecimal digits, of which the names of files
    are made.

    Raises
    ------
    OSError
        If no more processes are allowed.
    """
    begun, ready = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.setsid()
            if os.fork() == 0:
                os.close(begun)
                _answer_requests(stem, answer, ready)
        finally:
            os._exit(0)
    os.close(ready)
    os.waitpid(child, 0)
    os.read(begun, 1)  # until it can be asked, or has ended
    os.close(begun)


def _answer_requests(stem: str, answer: object, ready: int) -> None:
    """Answer the judge's requests, which `lmbook.grade.inside` hands on.

    A request is a pickle: the name of a function of `lmbook.grade.answers`, and its
    arguments. The reply is what that returns, as JSON; an error becomes the reply
    ``{"kind": "failed", "of": message}``. The function ``load`` returns ``answer`` here,
    whatever it is given.

    It ends when its socket is gone, as the whole folder is when the sandbox ends, and while
    it computes when who asked ends: where nothing is shut in, nobody else would end it.

    Parameters
    ----------
    stem : str
        The task's name in hexadecimal digits. In the folder `ANSWERS` the socket is
        ``STEM.socket``, and this process's number stands in ``STEM.pid``.
    answer : object
        What the reader's notebook gave to the check.
    ready : int
        A pipe's descriptor: a byte is written to it, and it is closed, once requests can
        come.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _end_at(signal.SIGIO)
    sys.stdout = sys.stderr = open(os.devnull, "w")  # noqa: SIM115 as long as it lives
    answers.load = lambda content: answer
    with socket.socket(socket.AF_UNIX) as server:
        os.chdir(ANSWERS)  # a socket's path may not be long
        server.bind(f"{stem}.socket")
        server.listen()
        (ANSWERS / f"{stem}.pid").write_text(str(os.getpid()))
        os.chdir(ANSWERS.parent)
        os.write(ready, b".")
        os.close(ready)
        server.settimeout(LOOK_EVERY)
        while (ANSWERS / f"{stem}.socket").exists():
            try:
                connection, _ = server.accept()
            except TimeoutError:
                continue
            with connection, connection.makefile("rwb") as stream:
                what, *rest = pickle.loads(read_request(stream))
                with _ending_with(connection):
                    try:
                        result = getattr(answers, what)(*rest)
                        text = as_json.dumps(result, answers.hold)
                    except BaseException as error:  # it may raise when it is looked at
                        failed = f"{type(error).__name__}: {error}"[:999]
                        text = f'{{"kind": "failed", "of": {as_json.dumps(failed)}}}'
                write_reply(stream, text)


def _end_at(number: int) -> None:
    """Let a signal end this process at once, whatever it computes.

    By default SIGIO does so on Linux, and nothing on macOS. A handler in Python would not
    do: it waits for Python's lock. ``number`` : int, the signal's.
    """
    system = ctypes.CDLL(None)
    system.signal.argtypes = ctypes.c_int, ctypes.c_void_p
    system.signal.restype = ctypes.c_void_p
    system.signal(number, ctypes.cast(system._exit, ctypes.c_void_p))


@contextmanager
def _ending_with(connection: socket.socket) -> Iterator[None]:
    """End this process if the other end of a connection closes inside a ``with``.

    The system sends SIGIO then, which ends the process whatever it computes. A thread that
    waits could not: a computation in C may never let go of Python's lock.

    Parameters
    ----------
    connection : socket
        Nothing more must come from there, and SIGIO must end the process (`_end_at`).
    """
    flags = fcntl.fcntl(connection, fcntl.F_GETFL)
    fcntl.fcntl(connection, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(connection, fcntl.F_SETFL, flags | os.O_ASYNC)
    with suppress(BlockingIOError):  # it has not closed
        if not connection.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT):
            os._exit(0)
    yield
    # Who reads the reply would send the signal, too.
    fcntl.fcntl(connection, fcntl.F_SETFL, flags)


def _run_command(command: str) -> None:
    """Run a line ``!command`` of a cell, in the place of IPython's own ``system``.

    IPython's needs a terminal, and there is none in the sandbox. The command gets no input.
    As in Jupyter, one that fails raises nothing: its exit status goes into the notebook's
    variable ``_exit_code``.

    ``command`` : str, for the shell, without the exclamation mark.
    """
    shell = get_ipython()
    done = subprocess.run(command, shell=True, stdin=subprocess.DEVNULL, check=False)
    shell.user_ns["_exit_code"] = done.returncode


exercises.check = recording_check
if get_ipython() is not None:
    get_ipython().system = _run_command
