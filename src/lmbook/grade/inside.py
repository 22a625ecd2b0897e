"""The program in the sandbox: runs a notebook, or holds answers for the judge.

It reads pickles of the judge from its standard input and writes JSON to what was its
standard output.
"""

import base64
import json
import os
import pickle
import time
from pathlib import Path

FOLDER = ".answers"  # in HOME: where `lmbook.grade.record` leaves them


def run(code: list[str], cell_seconds: float, seconds: float) -> tuple:
    """Run a notebook's cells in a fresh kernel; return the answers, and what went wrong."""
    from jupyter_client.manager import AsyncKernelManager
    from nbclient import NotebookClient
    from nbclient.exceptions import CellExecutionError, CellTimeoutError
    from nbformat.v4 import new_code_cell, new_notebook

    end, problems = time.monotonic() + seconds, []
    sources = ["import lmbook.grade.record", *code]
    notebook = new_notebook(cells=list(map(new_code_cell, sources)))
    manager = AsyncKernelManager(kernel_name="python3", transport="ipc")  # no network here
    client = NotebookClient(notebook, km=manager, interrupt_on_timeout=True)
    with client.setup_kernel():
        for number, cell in enumerate(notebook.cells):
            left = end - time.monotonic()
            if left <= 0:
                problems.append(f"it was stopped before cell {number}: out of time")
                break
            client.timeout, cell.outputs = max(1, min(cell_seconds, left)), []
            slow = f"took longer than {client.timeout:.0f} s"
            try:
                client.execute_cell(cell, number)
            except CellExecutionError as error:
                said = f"raised {error.ename}: {error.evalue}"[:300]
                late = error.ename == "KeyboardInterrupt"  # by which a cell is stopped
                problems.append(f"cell {number} {slow if late else said}")
            except (CellTimeoutError, TimeoutError):
                problems.append(f"cell {number} {slow}")
            except Exception as error:  # also of messages that it wrote into itself
                problems.append(f"the kernel died in cell {number}: {error}"[:300])
                break
    return _answers(), problems


def _answers() -> list[tuple[str, str]]:
    folder = Path(os.environ["HOME"]) / FOLDER
    files = [*folder.iterdir()] if folder.is_dir() else []
    return [(f.name, base64.b64encode(f.read_bytes()).decode()) for f in files]


def serve(what: str, *rest) -> str:
    """Do what the judge asks for; return JSON."""
    if what == "run":
        return json.dumps(run(*rest))
    from lmbook.grade import held, wire  # PyTorch, which running a notebook does not need

    return wire.dumps(getattr(held, what)(*rest), held.keep)


def main() -> None:
    """Serve the judge; what the submission prints goes nowhere."""
    source, target = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nothing, stream)
    while True:
        request = pickle.load(source)
        try:
            said = serve(*request)
        except BaseException as error:  # an answer may raise when it is looked at
            failed = f"{type(error).__name__}: {error}"[:999]
            said = json.dumps({"kind": "failed", "of": failed})
        target.write(f"{len(said.encode()):020d}".encode() + said.encode())
        target.flush()


if __name__ == "__main__":
    main()
