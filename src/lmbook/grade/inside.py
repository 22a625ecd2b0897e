"""The program in the sandbox: runs a notebook, or holds answers for the judge.

It reads pickles of the judge from its standard input and writes JSON to what was its
standard output; before each stands its length, twenty digits.
"""

import base64
import json
import math
import os
import pickle
import signal
import socket
import time
from contextlib import ExitStack
from pathlib import Path

ANSWERS_FOLDER = ".answers"  # in HOME: where `lmbook.grade.record` leaves them
LENGTH_DIGITS = 20  # of a length
KERNEL_NOT_BEGUN = "the kernel did not begin"  # which no submission is to blame for
START_SECONDS = (
    600  # seconds that a kernel and the recorder may take to begin: a limit for hangs
)


# --- running a notebook -----------------------------------------------------------------


def run_notebook(code: list[str], cell_seconds: float, seconds: float) -> tuple:
    """Run a notebook's cells in a fresh kernel.

    Parameters
    ----------
    code : list of str
    cell_seconds, seconds : float
        What a cell may take, and all of them together. How long the kernel takes to begin
        does not count.

    Returns
    -------
    kept : list of (str, str, str)
        Task, in hexadecimal digits; what was kept of it, "pickle", "why" or "socket"; its
        content in base 64.
    problems : list of str
        What went wrong in which cell; cells are counted from 1.

    Raises
    ------
    RuntimeError
        If the kernel, or what records the answers, does not begin.
    """
    from jupyter_client.manager import AsyncKernelManager
    from nbclient import NotebookClient
    from nbclient.exceptions import CellExecutionError, CellTimeoutError
    from nbformat.v4 import new_code_cell, new_notebook

    problems = []
    recorder = new_code_cell("import lmbook.grade.record")
    notebook = new_notebook(cells=[recorder, *map(new_code_cell, code)])
    manager = AsyncKernelManager(kernel_name="python3", transport="ipc")  # no network here
    client = NotebookClient(notebook, km=manager, interrupt_on_timeout=True)
    client.startup_timeout = client.timeout = START_SECONDS
    with ExitStack() as running:
        try:
            running.enter_context(client.setup_kernel())
            client.execute_cell(recorder, 0)
        except Exception as error:
            raise RuntimeError(f"{KERNEL_NOT_BEGUN}: {error}") from error
        end = time.monotonic() + seconds
        for number, cell in enumerate(notebook.cells[1:], 1):
            left = end - time.monotonic()
            if left <= 0:
                problems.append(f"it was stopped before cell {number}: out of time")
                break
            client.timeout = math.ceil(min(cell_seconds, left))  # it takes no fractions
            slow = f"took longer than {client.timeout} s"
            cell.outputs = []
            try:
                client.execute_cell(cell, number)
            except CellExecutionError as error:
                message = f"raised {error.ename}: {error.evalue}"[:300]
                late = error.ename == "KeyboardInterrupt"  # by which a cell is stopped
                problems.append(f"cell {number} {slow if late else message}")
            except (CellTimeoutError, TimeoutError):
                problems.append(f"cell {number} {slow}")
            except Exception as error:  # also of messages that it wrote into itself
                problems.append(f"the kernel died in cell {number}: {error}"[:300])
                break
    return _recorded_answers(), problems


def _recorded_answers() -> list[tuple[str, str, str]]:
    """Return the answers that `lmbook.grade.record` left in the home folder.

    A list of (task, kind, content): the task in hexadecimal digits; "pickle", "why" or
    "socket"; the file in base 64, "" of a socket.
    """
    folder = Path(os.environ["HOME"]) / ANSWERS_FOLDER
    kept = []
    for path in folder.iterdir() if folder.is_dir() else ():
        kind = path.suffix.removeprefix(".")
        if kind == "socket":
            kept.append((path.stem, kind, ""))
        elif kind in ("pickle", "why") and path.is_file():
            kept.append((path.stem, kind, base64.b64encode(path.read_bytes()).decode()))
    return kept


def ask_waiting(stem: str, request: bytes, seconds: float) -> str:
    """Hand a request on to the process that waits with an answer; return its reply.

    Parameters
    ----------
    stem : str
        The task, in hexadecimal digits: the name of the process's socket.
    request : bytes
        A pickle for it: the name of a function of `lmbook.grade.answers`, and arguments.
    seconds : float
        How long it may take; it is ended if it takes longer.

    Returns
    -------
    str
        JSON, as `lmbook.grade.as_json` writes it.

    Raises
    ------
    TimeoutError
        If it takes too long.
    EOFError
        If it has ended.
    """
    folder = Path(os.environ["HOME"]) / ANSWERS_FOLDER
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(seconds)
        try:
            os.chdir(folder)  # a socket's path may not be long
            client.connect(f"{stem}.socket")
            with client.makefile("rwb") as stream:
                stream.write(f"{len(request):0{LENGTH_DIGITS}d}".encode() + request)
                stream.flush()
                reply = read_request(stream)
        except TimeoutError:
            os.kill(int((folder / f"{stem}.pid").read_text()), signal.SIGKILL)
            raise TimeoutError("it took too long") from None
        finally:
            os.chdir(folder.parent)
    return reply.decode()


# --- serving ----------------------------------------------------------------------------


def read_request(stream) -> bytes:
    """Read a message of a stream: its length, in `LENGTH_DIGITS` digits, and its content.

    Parameters
    ----------
    stream : binary file

    Returns
    -------
    bytes
        The content.

    Raises
    ------
    EOFError
        If the other side has ended.
    """
    length = stream.read(LENGTH_DIGITS)
    if len(length) < LENGTH_DIGITS:
        raise EOFError("its process has ended")
    return stream.read(int(length))


def write_reply(stream, text: str) -> None:
    """Write a text to a binary stream: its length in `LENGTH_DIGITS` digits, then it."""
    content = text.encode()
    stream.write(f"{len(content):0{LENGTH_DIGITS}d}".encode() + content)
    stream.flush()


def serve(what: str, *rest) -> str:
    """Do what the judge asks for, and return the result as JSON.

    Parameters
    ----------
    what : str
        "run", to run a notebook; "through", to ask a process that waits with an answer; or
        the name of a function of `lmbook.grade.answers`.
    *rest
        Its arguments.
    """
    if what == "run":
        return json.dumps(run_notebook(*rest))
    if what == "through":
        return ask_waiting(*rest)
    from lmbook.grade import answers, as_json  # PyTorch, which running needs not

    return as_json.dumps(getattr(answers, what)(*rest), answers.hold)


def main() -> None:
    """Serve the judge; what the submission prints goes nowhere."""
    source, target = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nothing, stream)
    while True:
        request = pickle.load(source)
        try:
            text = serve(*request)
        except BaseException as error:  # an answer may raise when it is looked at
            failed = f"{type(error).__name__}: {error}"[:999]
            text = json.dumps({"kind": "failed", "of": failed})
        write_reply(target, text)


if __name__ == "__main__":
    main()
