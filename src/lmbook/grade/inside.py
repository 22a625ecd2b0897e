"""The program in the sandbox: runs a notebook, or holds answers for the judge.

It reads pickles of the judge from its standard input and writes JSON to what was its
standard output; before each stands its length, twenty digits.
"""

import ast
import base64
import json
import math
import os
import pickle
import re
import signal
import socket
import time
from contextlib import ExitStack, suppress
from pathlib import Path

ANSWERS_FOLDER = ".answers"  # in HOME: where `lmbook.grade.record` leaves them
LENGTH_DIGITS = 20  # of a length
KERNEL_NOT_BEGUN = "the kernel did not begin"  # which no submission is to blame for
# Seconds that a kernel and the recorder may take to begin: a limit for hangs.
START_SECONDS = 600


# --- what is nobody's time and memory ---------------------------------------------------


def import_statements(code: list[str]) -> list[str]:
    """Return the import statements of a notebook, cell by cell, those in functions too.

    ``code`` : list of str, its cells. IPython's own commands are passed over; so is a cell
    that is no Python.
    """
    from IPython.core.inputtransformer2 import TransformerManager

    statements = []
    for cell in code:
        with suppress(Exception):  # it will be said when the cell is run
            tree = ast.parse(TransformerManager().transform_cell(cell))
            statements += [
                ast.unparse(node)
                for node in ast.walk(tree)
                if isinstance(node, (ast.Import, ast.ImportFrom))
            ]
    return statements


def import_ahead(code: list[str]) -> None:
    """Import what a notebook will import, so that its own cells need not wait for it.

    ``code`` : list of str, its cells. What cannot be imported is left to them.
    """
    for statement in import_statements(code):
        with suppress(Exception):
            exec(statement, {})


def limit_memory(room: int) -> None:
    """Let this process take only so much more memory than it has now.

    ``room`` : int, bytes; more than that is refused with a MemoryError. 0 is no limit. It
    asks Linux (``/proc``) what the process has.
    """
    if room:
        import resource  # which Windows has not

        status = Path("/proc/self/status").read_text()
        used = int(re.search(r"VmData:\s*(\d+) kB", status)[1]) * 1024
        resource.setrlimit(resource.RLIMIT_DATA, (used + room, used + room))


# --- running a notebook -----------------------------------------------------------------


class Kernel:
    """A kernel for a notebook's cells, with what records their answers.

    When it begins, it runs a cell that imports `lmbook.grade.record`, which from then on
    keeps every answer that is given to a check.

    Parameters
    ----------
    code : list of str
        The cells. What they import is imported when the kernel begins: this is not counted.
    room : int
        Bytes that its process may use beyond that; 0 is no limit.

    Raises
    ------
    RuntimeError
        If the kernel, or what records the answers, does not begin.
    """

    def __init__(self, code: list[str], room: int):
        from jupyter_client.manager import AsyncKernelManager
        from nbclient import NotebookClient
        from nbformat.v4 import new_code_cell, new_notebook

        recorder = new_code_cell(
            f"import lmbook.grade.record\nlmbook.grade.answers.prepare({code!r}, {room})"
        )
        self._cells = [*map(new_code_cell, code)]
        notebook = new_notebook(cells=[recorder, *self._cells])
        manager = AsyncKernelManager(kernel_name="python3", transport="ipc")  # no network
        self._client = NotebookClient(notebook, km=manager, interrupt_on_timeout=True)
        self._client.startup_timeout = self._client.timeout = START_SECONDS
        with ExitStack() as running:
            try:
                running.enter_context(self._client.setup_kernel())
                self._client.execute_cell(recorder, 0)
            except Exception as error:
                raise RuntimeError(f"{KERNEL_NOT_BEGUN}: {error}") from error
            self._running = running.pop_all()

    def run(self, cell_seconds: float, seconds: float) -> tuple:
        """Run the cells, and end the kernel.

        Parameters
        ----------
        cell_seconds, seconds : float
            What a cell may take, and all of them together.

        Returns
        -------
        recorded : list of (str, str, str)
            What `_recorded_answers` returns: task, kind and content of each file that was
            kept of an answer.
        problems : list of str
            What went wrong in which cell, such as "cell 3 raised NameError: …"; cells are
            counted from 1.
        """
        problems = []
        with self._running:
            end = time.monotonic() + seconds
            for number, cell in enumerate(self._cells, 1):
                left = end - time.monotonic()
                if left <= 0:
                    problems.append(f"it was stopped before cell {number}: out of time")
                    break
                problem, alive = self._run_cell(cell, number, min(cell_seconds, left))
                problems += [problem] if problem else []
                if not alive:
                    break
        return _recorded_answers(), problems

    def _run_cell(self, cell, number: int, seconds: float) -> tuple[str, bool]:
        """Run a cell; return what went wrong, "" if nothing, and whether the kernel lives.

        ``cell`` : of a notebook (nbformat); ``number`` : by which it is called, from 1;
        ``seconds`` : float, what it may take, which is rounded up. A cell that takes longer
        is interrupted, and the kernel lives on.
        """
        from nbclient.exceptions import CellExecutionError, CellTimeoutError

        self._client.timeout = math.ceil(seconds)  # it takes no fractions
        slow = f"took longer than {self._client.timeout} s"
        cell.outputs = []
        try:
            self._client.execute_cell(cell, number)
        except CellExecutionError as error:
            message = f"raised {error.ename}: {error.evalue}"[:300]
            late = error.ename == "KeyboardInterrupt"  # by which a cell is stopped
            return f"cell {number} {slow if late else message}", True
        except (CellTimeoutError, TimeoutError):
            return f"cell {number} {slow}", True
        except Exception as error:  # also of messages that it wrote into itself
            return f"the kernel died in cell {number}: {error}"[:300], False
        return "", True


def _recorded_answers() -> list[tuple[str, str, str]]:
    """Return what `lmbook.grade.record` kept of each answer that was given to a check.

    It left files in the folder ``.answers`` of the home folder, TASK.KIND.

    Returns
    -------
    list of (str, str, str)
        Of each file the task's name, its UTF-8 bytes in hexadecimal digits; the kind; and
        the content in base 64. Kinds are "pickle", the answer, pickled; "why", the error
        for which it could not be pickled, as text; and "socket", the address of a process
        that waits with the answer, whose content is "".
    """
    folder = Path(os.environ["HOME"]) / ANSWERS_FOLDER
    files = folder.iterdir() if folder.is_dir() else ()
    recorded = []
    for path in files:
        kind = path.suffix.removeprefix(".")
        if kind == "socket":
            recorded.append((path.stem, kind, ""))
        elif kind in ("pickle", "why") and path.is_file():
            recorded.append((path.stem, kind, base64.b64encode(path.read_bytes()).decode()))
    return recorded


def ask_waiting(stem: str, request: bytes, seconds: float) -> str:
    """Hand a request on to the process that waits with an answer; return its reply.

    That process is a copy of the submission's kernel, which `lmbook.grade.record` left.

    Parameters
    ----------
    stem : str
        The task, in hexadecimal digits. In the folder ``.answers`` of the home folder the
        process's socket is ``STEM.socket``, and ``STEM.pid`` has its number.
    request : bytes
        A pickle for it: the name of a function of `lmbook.grade.answers`, and arguments.
    seconds : float
        How long it may take; the process is killed if it takes longer.

    Returns
    -------
    str
        JSON, as `lmbook.grade.as_json` writes it.

    Raises
    ------
    TimeoutError
        If it takes too long.
    EOFError
        If it ends before it has replied.
    OSError
        If it had ended before.
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

KERNELS: list[Kernel] = []  # the one that has begun


def read_request(stream) -> bytes:
    """Read a message of a stream: its length in bytes, as twenty digits, and its content.

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
    """Write a text to a binary stream: first its length in bytes, as twenty digits."""
    content = text.encode()
    stream.write(f"{len(content):0{LENGTH_DIGITS}d}".encode() + content)
    stream.flush()


def serve(what: str, *rest) -> str:
    """Do what the judge asks for, and return the result as JSON.

    Parameters
    ----------
    what : str
        "begin", to begin a notebook's kernel; "run", to run its cells there, and end it;
        "through", to ask a process that waits with an answer; or the name of a function of
        `lmbook.grade.answers`, such as "call".
    *rest
        Its arguments: those of `Kernel`, of `Kernel.run`, of `ask_waiting`, or of that
        function.

    Returns
    -------
    str
        JSON, as `lmbook.grade.as_json` writes it: null for "begin".
    """
    if what == "begin":
        KERNELS.append(Kernel(*rest))
        return json.dumps(None)
    if what == "run":
        return json.dumps(KERNELS.pop().run(*rest))
    if what == "through":
        return ask_waiting(*rest)
    from lmbook.grade import answers, as_json  # PyTorch, which running needs not

    return as_json.dumps(getattr(answers, what)(*rest), answers.hold)


def main() -> None:
    """Answer the judge's requests, one after the other, until this process is killed.

    A request is a pickled tuple on the standard input, the arguments of `serve`. The reply,
    JSON after its length (`write_reply`), goes to what is the standard output at first:
    after that the three standard streams lead nowhere, and so does what the submission
    prints. An error of any kind becomes the reply ``{"kind": "failed", "of": message}``.
    """
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
