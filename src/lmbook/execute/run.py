"""Execute the chapters side by side, before anything is built of them.

`execute_chapters` brings ``_build/executed/NAME.ipynb`` up to date: one notebook a chapter,
found by its name alone, with the key of what it ran on and the hashes of what it read
(`lmbook.execute.keys`). A chapter is executed again if any of it changed, or if it failed.

A finding is about the default model. With another one it may fail: its AssertionError is
kept as the cell's output, and the chapter goes on. It is a proof that the chapter places
(`lmbook.execute.placed`), or a cell tagged ``proof`` and ``finding``.
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
from lmbook.execute.placed import is_placed, place_proofs
from lmbook.execute.verdicts import COLOUR, brief, code_cells, errors, is_finding
from lmbook.pages.course import read_page

TIMEOUT = 600  # seconds a cell
_CODE_CELL = re.compile(r"^ {0,3}(?:`{3,}|~{3,})\{code-cell\}", re.MULTILINE)
WATCH = Path(__file__).parent / "watch"
THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")


def page_notebook(path: Path, name: str | None = None) -> NotebookNode:
    """Read a chapter as the build does, a cell for each proof that it places.

    Parameters
    ----------
    path : Path
    name : str, optional
        The chapter's name, if it lies in a folder below ``chapters``.
    """
    notebook = read_myst_markdown_notebook(read_page(path), path=str(path))
    return place_proofs(notebook, name or path.stem)


def chapters(root: Path = ROOT) -> list[Path]:
    """Return the chapters that have code, in alphabetical order.

    Raises
    ------
    CourseError
        If one is not UTF-8.
    """
    pages = sorted((root / "chapters").rglob("*.md"))
    return [page for page in pages if _CODE_CELL.search(read_page(page, root))]


def page_name(path: Path, root: Path = ROOT) -> str:
    """Return a chapter's name: its path below ``chapters``, without the suffix."""
    return path.relative_to(root / "chapters").with_suffix("").as_posix()


def page_path(name: str, root: Path = ROOT) -> Path:
    """Return the file of a chapter."""
    return root / "chapters" / f"{name}.md"


# --- the store ------------------------------------------------------------------------


def store_path(name: str, root: Path) -> Path:
    """Return where a chapter's executed notebook is kept."""
    return keys.build_folder(root) / "executed" / f"{name}.ipynb"


def stored(name: str, root: Path = ROOT) -> NotebookNode | None:
    """Return the executed notebook that is stored under a chapter's name, or None.

    It may be one of older sources (`fill`).
    """
    try:
        notebook = nbformat.read(store_path(name, root), as_version=4)
    except (OSError, ValueError, nbformat.ValidationError):
        return None
    return notebook if "lmbook" in notebook.metadata else None


def fill(notebook: NotebookNode, name: str, root: Path = ROOT) -> dict | None:
    """Give a chapter, as it is read now, the outputs that the store has for it.

    Parameters
    ----------
    notebook : NotebookNode
        As `page_notebook` returns it; changed in place.
    name : str
        The chapter's.
    root : Path
        The folder of the book.

    Returns
    -------
    dict or None
        What is wrong, None if nothing: ``what`` in a line, and ``error``, the text of an
        error that a cell raised. Nothing that is not of the present sources is filled in.
    """
    found = stored(name, root)
    if found is None:
        return {"what": "it was not executed", "error": ""}
    about, now = found.metadata.lmbook, keys.snapshot(root) | keys.setting_hashes()
    before = {**about.reads, **about.asked}
    same = all(now.get(each) == old for each, old in before.items())
    if not same or about.key != keys.key(notebook):
        return {"what": "it changed since it was executed", "error": ""}
    for cell, old in zip(code_cells(notebook), code_cells(found), strict=True):
        cell.outputs, cell.execution_count = old.outputs, old.execution_count
    notebook.metadata["lmbook_models"] = about.models
    if "language_info" in found.metadata:
        notebook.metadata["language_info"] = found.metadata.language_info
    return about.failure


def executed(name: str, root: Path = ROOT) -> NotebookNode:
    """Return a chapter with the outputs of the last execution.

    Raises
    ------
    LookupError
        If it was not executed, or failed, or is not what was executed.
    """
    notebook = page_notebook(page_path(name, root), name)
    wrong = fill(notebook, name, root)
    if wrong:
        raise LookupError(f"{name} cannot be used: {wrong['what']}. Run `make html`.")
    return notebook


# --- the stage ------------------------------------------------------------------------


def _environment(log: Path, root: Path) -> dict[str, str]:
    """Return the environment of a kernel: one thread, and its reads are noted.

    ``log`` is the file in which ``watch/sitecustomize.py`` notes them.
    """
    path = [str(WATCH), *filter(None, [os.environ.get("PYTHONPATH")])]
    noted = {
        "PYTHONPATH": os.pathsep.join(path),
        "LMBOOK_READS": str(log),
        "LMBOOK_STUDIES": str(root / "src" / "studies"),
        "LMBOOK_WATCHED": os.pathsep.join(map(str, keys.watched(root))),
        "LMBOOK_DATA": os.pathsep.join(map(str, keys.data_folders(root))),
        "LMBOOK_VARIABLES": " ".join(keys.VARIABLES),
    }
    return os.environ | keys.settings() | dict.fromkeys(THREADS, "1") | noted


def _raise_or_note(log: Path, cell: NotebookNode, execute_reply: dict, **_) -> None:
    """Raise a cell's error, unless it is a finding that does not hold of another model.

    Parameters
    ----------
    log : Path
        What the kernel has read and asked for so far.
    cell : NotebookNode
        With the error among its outputs; a finding's is made short, in place.
    execute_reply : dict
        The kernel's, as nbclient hands it to ``on_cell_error``.

    Raises
    ------
    CellExecutionError
    """
    (error,) = errors(cell)
    another = keys.other_models().keys() & keys.asked(log)
    of_finding = error.ename == ("NotSo" if is_placed(cell) else "AssertionError")
    if not (is_finding(cell) and of_finding and another):
        raise CellExecutionError.from_cell_and_msg(cell, execute_reply["content"])
    error.traceback = brief(error)


async def _execute(name: str, root: Path, before: dict, timeout: int) -> NotebookNode:
    """Execute one chapter; a failure is noted in the notebook, not raised.

    Parameters
    ----------
    name : str
    root : Path
    before : dict
        The hashes of what it may read, as `keys.snapshot` returns them.
    timeout : int
        Seconds that a cell may take.

    Returns
    -------
    NotebookNode
        With outputs. Its metadata has ``lmbook``, a dict: ``key``; ``failure``, None or
        what `_failure` returns; ``reads``, path → hash; ``asked``, variable → hash of its
        value; ``models``, variable → name; ``seconds``.
    """
    notebook = page_notebook(page_path(name, root), name)
    about = {"key": keys.key(notebook), "failure": None}
    settings = keys.setting_hashes()
    client = NotebookClient(
        notebook,
        allow_errors=True,  # the hook below says which
        timeout=timeout,
        startup_timeout=TIMEOUT,
        kernel_name="python3",
        extra_arguments=["--log-level=ERROR"],
        resources={"metadata": {"path": str(page_path(name, root).parent)}},
    )
    start = time.monotonic()
    with tempfile.NamedTemporaryFile() as file:
        log = Path(file.name)
        client.on_cell_error = functools.partial(_raise_or_note, log)
        try:
            await client.async_execute(env=_environment(log, root))
        except Exception as error:  # of a cell, or of the kernel; reported at the end
            if asyncio.current_task().cancelling():  # Ctrl-C, not a dead kernel
                raise asyncio.CancelledError from None
            about["failure"] = _failure(error, notebook, client.code_cells_executed)
        about["reads"] = keys.reads(log, root, before)
        about["asked"] = {each: settings[each] for each in keys.asked(log)}
    models = keys.DEFAULTS | keys.other_models()
    about["models"] = {each: models[each] for each in about["asked"] if each in models}
    about["seconds"] = time.monotonic() - start
    notebook.metadata["lmbook"] = nbformat.from_dict(about)
    return notebook


def _failure(error: Exception, notebook: NotebookNode, begun: int) -> dict:
    """Say what went wrong in which cell.

    Parameters
    ----------
    error : Exception
    notebook : NotebookNode
    begun : int
        How many code cells were begun.

    Returns
    -------
    dict
        ``what``, in a line; ``error``, the code of the cell and the traceback.
    """
    name, text = type(error).__name__, str(error)
    if not begun:
        return {"what": f"its kernel did not start ({name})", "error": text}
    cell = code_cells(notebook)[begun - 1]
    if isinstance(error, CellExecutionError):
        name, text = error.ename, COLOUR.sub("", "\n".join(errors(cell)[0].traceback))
    return {"what": f"cell {begun} failed ({name})", "error": f"{cell.source}\n\n{text}"}


async def _execute_all(names: list[str], root: Path, timeout: int) -> None:
    """Execute chapters, as many at a time as there are processors, and store each.

    ``timeout`` is how many seconds a cell may take.
    """

    def refuse(*_):
        """Refuse, as event loops do that know no signals, so that nbclient takes none."""
        raise RuntimeError

    # In the main thread nbclient takes Ctrl-C for itself, stops one kernel and goes on.
    asyncio.get_running_loop().add_signal_handler = refuse
    gate, before = asyncio.Semaphore(cpu_count()), keys.snapshot(root)

    async def one(name: str) -> None:
        """Execute a chapter when it is its turn, store it, and print a line."""
        async with gate:
            notebook = await _execute(name, root, before, timeout)
        path = store_path(name, root)
        path.parent.mkdir(parents=True, exist_ok=True)
        keys.write_whole(path, nbformat.writes(notebook).encode())
        _say(name, notebook, "FAILED" if notebook.metadata.lmbook.failure else "executed")

    async with asyncio.TaskGroup() as group:
        for name in names:
            group.create_task(one(name))


def _say(name: str, notebook: NotebookNode, how: str) -> None:
    """Print a page's name, how long its execution took, and ``how`` it ended."""
    print(f"{name:24} {notebook.metadata.lmbook.seconds:6.1f} s  {how}", flush=True)


def execute_chapters(
    root: Path = ROOT, timeout: int = TIMEOUT, only: str | None = None
) -> dict[str, dict]:
    """Bring the store up to date, printing a line a chapter.

    Parameters
    ----------
    root : Path
        The folder of ``chapters`` and ``data``.
    timeout : int
        Seconds that a cell may take.
    only : str, optional
        The name of the one chapter to be executed.

    Returns
    -------
    dict
        Chapters that failed → what is wrong, as from `fill`.

    Raises
    ------
    LookupError
        If no chapter of the name ``only`` has code.
    """
    pages = sorted(chapters(root), key=lambda path: -path.stat().st_size)
    names = [page_name(path, root) for path in pages]  # the longest first: it is done last
    if only is not None and only not in names:
        raise LookupError(f"there is no chapters/{only}.md with code in it")
    _remove_others(names, root)
    wanted = names if only is None else [only]
    todo = [name for name in wanted if _wrong(name, root)]
    for name in sorted({*wanted} - {*todo}):
        _say(name, stored(name, root), "from cache")
    for name in todo:  # nothing old is left, however this run ends
        store_path(name, root).unlink(missing_ok=True)
    asyncio.run(_execute_all(todo, root, timeout))
    return {name: wrong for name in sorted(todo) if (wrong := _wrong(name, root))}


def _remove_others(names: list[str], root: Path) -> None:
    """Remove from the store what belongs to no chapter."""
    folder = store_path("x", root).parent
    folder.mkdir(parents=True, exist_ok=True)
    own = {store_path(name, root) for name in names}
    for path in folder.rglob("*"):
        if path.is_file() and path not in own:
            path.unlink()


def _wrong(name: str, root: Path) -> dict | None:
    """Return what is wrong with a chapter's stored outputs, None if nothing is (`fill`)."""
    return fill(page_notebook(page_path(name, root), name), name, root)


def report(failures: dict[str, dict]) -> None:
    """Print what failed: chapter → what is wrong, as `execute_chapters` returns it."""
    for name, failure in failures.items():
        print(f"\n--- {name}: {failure['what']}\n{failure['error']}")
    if failures:
        print(f"\nFAILED: {', '.join(failures)}", flush=True)
