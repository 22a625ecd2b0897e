"""Execute the chapters in parallel, before the site is built from them.

`execute_chapters` brings ``_build/executed/NAME.ipynb`` up to date: one notebook a chapter,
with the key of what it ran on and the hashes of what it read
(`lmbook.execute.keys`). A chapter is executed again if any of it changed, or if it failed.

A finding is about the default model. With another one it may fail: its AssertionError is
kept as the cell's output, and the chapter goes on. It is a proof that the chapter places
(`lmbook.execute.placed`).
"""

import asyncio
import functools
import os
import re
import tempfile
import time
from pathlib import Path

import nbformat
from joblib import cpu_count
from myst_nb.core.read import read_myst_markdown_notebook
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError
from nbformat import NotebookNode

from lmbook.execute import keys
from lmbook.execute.keys import ROOT
from lmbook.execute.placed import place_proofs
from lmbook.execute.verdicts import (
    COLOUR,
    code_cells,
    error_outputs,
    is_finding,
)
from lmbook.pages.course import read_page
from lmcourse.files import write_whole

# Seconds a cell: it ends a hang and decides nothing else, on however slow a machine.
TIMEOUT = 3600
_CODE_CELL = re.compile(r"^ {0,3}(?:`{3,}|~{3,})\{code-cell\}", re.MULTILINE)
WATCH = Path(__file__).parent / "watch"
THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")


def page_notebook(path: Path, name: str | None = None) -> NotebookNode:
    """Read a chapter as the build does, with a code cell for each proof that it places.

    A chapter places a proof by a directive ``{proof}`` with its name; the cell that takes
    its place runs it.

    Parameters
    ----------
    path : Path
        The chapter's MyST file.
    name : str, optional
        The chapter's name (`page_name`). Default: the file's, without its suffix.

    Returns
    -------
    NotebookNode
        Without outputs.
    """
    notebook = read_myst_markdown_notebook(read_page(path), path=str(path))
    return place_proofs(notebook, name or path.stem)


def chapter_paths(root: Path = ROOT) -> list[Path]:
    """Return the files of the chapters that have code, in alphabetical order.

    ``root`` is the book's folder.

    Raises
    ------
    CourseError
        If one is not UTF-8.
    """
    pages = sorted((root / "chapters").rglob("*.md"))
    return [page for page in pages if _CODE_CELL.search(read_page(page, root))]


def page_name(path: Path, root: Path = ROOT) -> str:
    """Return a chapter's name: its path below ``chapters``, without the suffix.

    ``path`` is the chapter's file, ``root`` the book's folder.
    """
    return path.relative_to(root / "chapters").with_suffix("").as_posix()


def page_path(name: str, root: Path = ROOT) -> Path:
    """Return the file of the chapter of a name, in the book's folder ``root``."""
    return root / "chapters" / f"{name}.md"


def chapter_names(root: Path = ROOT) -> list[str]:
    """Return the names of the chapters that have code, the longest file first.

    ``root`` is the book's folder.
    """
    paths = sorted(chapter_paths(root), key=lambda path: -path.stat().st_size)
    return [page_name(path, root) for path in paths]


def require_chapter(name: str, root: Path = ROOT) -> None:
    """Require that a chapter of a name has code, in the book's folder ``root``.

    Raises
    ------
    LookupError
        If none has, saying which have.
    """
    names = chapter_names(root)
    if name not in names:
        others = ", ".join(sorted(names))
        raise LookupError(
            f"there is no chapters/{name}.md with code in it; there are {others}"
        )


# --- the store ------------------------------------------------------------------------


def store_path(name: str, root: Path) -> Path:
    """Return where the executed notebook of a chapter is stored.

    ``name`` : the chapter's; ``root`` : the book's folder.
    """
    return keys.build_folder(root) / "executed" / f"{name}.ipynb"


def load_stored_notebook(name: str, root: Path = ROOT) -> NotebookNode | None:
    """Read the stored notebook of a chapter's last execution, whatever has changed since.

    Parameters
    ----------
    name : str
        The chapter's.
    root : Path
        The book's folder.

    Returns
    -------
    NotebookNode or None
        With outputs, and in ``metadata.lmbook`` what is known of its execution
        (`_execute_chapter`); None if no readable one is stored.
    """
    try:
        notebook = nbformat.read(store_path(name, root), as_version=4)
    except (OSError, ValueError, nbformat.ValidationError):
        return None
    return notebook if "lmbook" in notebook.metadata else None


def restore_outputs(notebook: NotebookNode, name: str, root: Path = ROOT) -> dict | None:
    """Put the stored outputs of a chapter into its notebook, if they are not stale.

    They are stale if its code changed since, or the software, or a file that it read, or a
    variable of the reader's that it asked for. If they are not, ``metadata.lmbook_models``
    of the notebook gets the models that it asked for: environment variable → name.

    Parameters
    ----------
    notebook : NotebookNode
        The chapter as `page_notebook` reads it now; changed in place.
    name : str
        The chapter's.
    root : Path
        The book's folder.

    Returns
    -------
    dict of str to str, or None
        None if all is well. Else the problem: the chapter was not executed, changed since,
        or failed, which ``what`` says in a line; ``error`` is the text of the error, "" if
        there was none. Outputs of a chapter that failed are put in up to the error, of one
        that changed since, or was not executed, none are.
    """
    stored = load_stored_notebook(name, root)
    if stored is None:
        return {"what": "it was not executed", "error": ""}
    execution = stored.metadata.lmbook
    before = {**execution.reads, **execution.asked}
    now = keys.hash_watched_files(root) | keys.hash_reader_settings()
    unchanged = all(now.get(name) == old_hash for name, old_hash in before.items())
    if not unchanged or execution.key != keys.execution_key(notebook):
        return {"what": "it changed since it was executed", "error": ""}
    for cell, old_cell in zip(code_cells(notebook), code_cells(stored), strict=True):
        cell.outputs = old_cell.outputs
        cell.execution_count = old_cell.execution_count
    notebook.metadata["lmbook_models"] = execution.models
    if "language_info" in stored.metadata:
        notebook.metadata["language_info"] = stored.metadata.language_info
    return execution.failure


def load_executed_chapter(name: str, root: Path = ROOT) -> NotebookNode:
    """Return a chapter with its outputs, which must be whole and up to date.

    Parameters
    ----------
    name : str
        The chapter's.
    root : Path
        The book's folder.

    Returns
    -------
    NotebookNode
        As `page_notebook` reads it, with the stored outputs.

    Raises
    ------
    LookupError
        If the chapter was not executed, failed, or changed since.
    """
    notebook = page_notebook(page_path(name, root), name)
    problem = restore_outputs(notebook, name, root)
    if problem:
        raise LookupError(f"{name} cannot be used: {problem['what']}. Run `make html`.")
    return notebook


# --- the stage ------------------------------------------------------------------------


def _kernel_environment(log: Path, root: Path) -> dict[str, str]:
    """Return the environment variables of a kernel: it has one thread, and logs its reads.

    They are this process's, with what the reader set (models, the device), and with what
    ``watch/sitecustomize.py``, which Python runs when the kernel starts, is to know.

    Parameters
    ----------
    log : Path
        The file in which ``watch/sitecustomize.py`` records what the kernel reads.
    root : Path
        The book's folder.
    """
    path = [str(WATCH), *filter(None, [os.environ.get("PYTHONPATH")])]
    noted = {
        "PYTHONPATH": os.pathsep.join(path),
        "LMBOOK_READS": str(log),
        "LMBOOK_STUDIES": str(root / "src" / "studies"),
        "LMBOOK_WATCHED": os.pathsep.join(map(str, keys.watched_folders(root))),
        "LMBOOK_DATA": os.pathsep.join(map(str, keys.data_folders(root))),
        "LMBOOK_VARIABLES": " ".join(keys.VARIABLES),
    }
    return os.environ | keys.reader_settings() | dict.fromkeys(THREADS, "1") | noted


def _raise_unless_of_other_model(
    log: Path, cell: NotebookNode, execute_reply: dict, **_
) -> None:
    """Raise a cell's error, unless a finding fails because the reader chose another model.

    Then nothing is done, and the chapter goes on. A finding is a proof that says something
    about the model at hand; its error is a `studies.findings.NotSo`. Another model is one
    that the reader chose by an environment variable and that the chapter has asked for.
    nbclient calls this as ``on_cell_error``.

    Parameters
    ----------
    log : Path
        The file in which ``watch/sitecustomize.py`` writes down what the kernel reads: a
        path, or the name of an environment variable that it asked for, on each line.
    cell : NotebookNode
        With the error among its outputs.
    execute_reply : dict
        The kernel's reply, whose ``content`` describes the error.
    **_
        Unused: what else nbclient passes.

    Raises
    ------
    CellExecutionError
        With the error; it ends the execution of the chapter.
    """
    (error,) = error_outputs(cell)
    another = keys.other_models().keys() & keys.variables_asked_for(log)
    if not (is_finding(cell) and error.ename == "NotSo" and another):
        raise CellExecutionError.from_cell_and_msg(cell, execute_reply["content"])


async def _execute_chapter(
    name: str, root: Path, before: dict, timeout: int
) -> NotebookNode:
    """Execute one chapter; a failure is recorded in the notebook, not raised.

    Parameters
    ----------
    name : str
        The chapter's.
    root : Path
        The book's folder.
    before : dict of str to str
        The hashes of the files that it may read, path → SHA-256
        (`lmbook.execute.keys.hash_watched_files`).
    timeout : int
        Seconds that a cell may take.

    Returns
    -------
    NotebookNode
        With outputs. ``metadata.lmbook`` is a dict: ``key``, a hash of all that is known
        before it runs of what its outputs depend on; ``failure``, None, or a dict with
        ``what`` failed, a line, and the ``error``, a text; ``reads``, path of each file
        that it read → SHA-256, None if there was no such file; ``asked``, environment
        variable that it asked for → hash of its value, None if it is not set; ``models``,
        variable of a model that it asked for → the model's name; ``seconds``, how long it
        took.

    Raises
    ------
    asyncio.CancelledError
        If it was stopped, as by Ctrl-C.
    """
    notebook = page_notebook(page_path(name, root), name)
    execution = {"key": keys.execution_key(notebook), "failure": None}
    settings = keys.hash_reader_settings()
    client = NotebookClient(
        notebook,
        allow_errors=True,  # the hook below says which
        timeout=timeout,
        startup_timeout=TIMEOUT,
        iopub_timeout=timeout,  # outputs that come later are lost, and only warned of
        kernel_name="python3",
        extra_arguments=["--log-level=ERROR"],
        resources={"metadata": {"path": str(page_path(name, root).parent)}},
    )
    start = time.monotonic()
    with tempfile.NamedTemporaryFile() as file:
        log = Path(file.name)
        client.on_cell_error = functools.partial(_raise_unless_of_other_model, log)
        try:
            await client.async_execute(env=_kernel_environment(log, root))
        except Exception as error:  # of a cell, or of the kernel; reported at the end
            if asyncio.current_task().cancelling():  # Ctrl-C, not a dead kernel
                raise asyncio.CancelledError from None
            execution["failure"] = _describe_failure(
                error, notebook, client.code_cells_executed
            )
        execution["reads"] = keys.files_read(log, root, before)
        execution["asked"] = {
            each: settings[each] for each in keys.variables_asked_for(log)
        }
    models = keys.DEFAULTS | keys.other_models()
    execution["models"] = {
        each: models[each] for each in execution["asked"] if each in models
    }
    execution["seconds"] = time.monotonic() - start
    notebook.metadata["lmbook"] = nbformat.from_dict(execution)
    return notebook


def _describe_failure(error: Exception, notebook: NotebookNode, begun: int) -> dict:
    """Describe how the execution of a notebook failed.

    Parameters
    ----------
    error : Exception
        What nbclient raised: of a cell, or of the kernel.
    notebook : NotebookNode
        With the outputs so far.
    begun : int
        How many code cells were begun; the last of them failed.

    Returns
    -------
    dict of str to str
        ``what``: a line that names the cell; ``error``: the cell's code and the traceback.
    """
    name, text = type(error).__name__, str(error)
    if not begun:
        return {"what": f"its kernel did not start ({name})", "error": text}
    cell = code_cells(notebook)[begun - 1]
    if isinstance(error, CellExecutionError):
        name, text = (
            error.ename,
            COLOUR.sub("", "\n".join(error_outputs(cell)[0].traceback)),
        )
    return {"what": f"cell {begun} failed ({name})", "error": f"{cell.source}\n\n{text}"}


async def _execute_all(names: list[str], root: Path, timeout: int) -> None:
    """Execute chapters, as many at a time as there are processors, and store each.

    For each a line is printed, when it is done.

    Parameters
    ----------
    names : list of str
        The chapters', in the order in which they are begun.
    root : Path
        The book's folder.
    timeout : int
        Seconds that a cell may take.
    """

    def refuse_signal_handler(*_):
        """Raise what an event loop without signals raises, so that nbclient sets none."""
        raise RuntimeError

    # In the main thread nbclient takes Ctrl-C for itself, stops one kernel and goes on.
    asyncio.get_running_loop().add_signal_handler = refuse_signal_handler
    free_processors = asyncio.Semaphore(cpu_count())
    before = keys.hash_watched_files(root)

    async def execute_and_store(name: str) -> None:
        """Execute a chapter when a processor is free, store it, and print a line."""
        async with free_processors:
            notebook = await _execute_chapter(name, root, before, timeout)
        path = store_path(name, root)
        write_whole(path, nbformat.writes(notebook).encode())
        _print_line(
            name, notebook, "FAILED" if notebook.metadata.lmbook.failure else "executed"
        )

    async with asyncio.TaskGroup() as group:
        for name in names:
            group.create_task(execute_and_store(name))


def _print_line(name: str, notebook: NotebookNode, outcome: str) -> None:
    """Print a line about a chapter: its name, the seconds that it took, and a word.

    Parameters
    ----------
    name : str
        The chapter's.
    notebook : NotebookNode
        As executed; ``metadata.lmbook.seconds`` says how long that took.
    outcome : str
        A word for the end of the line, such as "executed" or "FAILED".
    """
    print(f"{name:24} {notebook.metadata.lmbook.seconds:6.1f} s  {outcome}", flush=True)


def execute_chapters(
    root: Path = ROOT, timeout: int = TIMEOUT, only: str | None = None
) -> dict[str, dict]:
    """Execute the chapters whose stored outputs are stale or not whole, and store them.

    For each chapter a line is printed. Stored notebooks of chapters that there are no more
    are removed.

    Parameters
    ----------
    root : Path
        The book's folder, which holds ``chapters`` and ``data``.
    timeout : int
        Seconds that a cell may take.
    only : str, optional
        The name of the one chapter to be executed. Default: all.

    Returns
    -------
    dict of str to dict
        Name of each chapter that failed → its problem, a dict of str: ``what``, a line that
        says where, and ``error``, the text of the error, "" if there is none.

    Raises
    ------
    LookupError
        If no chapter of the name ``only`` has code.
    """
    if only is not None:
        require_chapter(only, root)
    names = chapter_names(root)  # the longest first: it is done last
    _remove_other_files(names, root)
    wanted = names if only is None else [only]
    todo = [name for name in wanted if _find_problem(name, root)]
    for name in sorted({*wanted} - {*todo}):
        _print_line(name, load_stored_notebook(name, root), "from cache")
    for name in todo:  # nothing old is left, however this run ends
        store_path(name, root).unlink(missing_ok=True)
    asyncio.run(_execute_all(todo, root, timeout))
    problems = {name: _find_problem(name, root) for name in sorted(todo)}
    return {name: problem for name, problem in problems.items() if problem}


def _remove_other_files(names: list[str], root: Path) -> None:
    """Remove from the folder of executed notebooks all but those of some chapters.

    The folder is made if it is not there. ``names`` : the chapters'; ``root`` : the book's
    folder.
    """
    folder = store_path("x", root).parent  # of whatever chapter
    folder.mkdir(parents=True, exist_ok=True)
    own = {store_path(name, root) for name in names}
    for path in folder.rglob("*"):
        if path.is_file() and path not in own:
            path.unlink()


def _find_problem(name: str, root: Path) -> dict | None:
    """Return why a chapter's stored outputs cannot be used as they are; None if they can.

    Reasons are that it was not executed, that something changed since (its code, the
    software, a file that it read, or an environment variable that it asked for), or that a
    cell, or its kernel, failed.

    Parameters
    ----------
    name : str
        The chapter's.
    root : Path
        The book's folder.

    Returns
    -------
    dict of str to str, or None
        ``what``, a line that says the reason; ``error``, the text of the error with which
        it failed, "" if it did not.
    """
    return restore_outputs(page_notebook(page_path(name, root), name), name, root)


def print_failures(failures: dict[str, dict]) -> None:
    """Print the chapters that failed, each with its error; nothing if there are none.

    ``failures`` : name of a chapter → dict with ``what`` went wrong, a line, and the
    ``error``, a text, as `execute_chapters` returns them.
    """
    for name, failure in failures.items():
        print(f"\n--- {name}: {failure['what']}\n{failure['error']}")
    if failures:
        print(f"\nFAILED: {', '.join(failures)}", flush=True)
