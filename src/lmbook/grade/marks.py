"""The table of marks: each submission run and judged, each task in a row."""

import base64
import csv
import json
import os
import pickle
import re
from argparse import Namespace
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import pandas as pd

from lmbook.grade.as_json import Failed
from lmbook.grade.inside import KERNEL_NOT_BEGUN, START_SECONDS
from lmbook.grade.judge import NEED_ANSWER, WaitingKernel, judge
from lmbook.grade.sandbox import Ended, Sandbox, Stopped
from lmcourse import exercises
from lmcourse.files import write_whole

_TASK_NAME = re.compile(r"""["']([a-z0-9-]+)\.(\w+)["']""")  # what may be a task
LARGEST_NOTEBOOK = 2**28  # bytes of a notebook
KERNEL_TRIES = 3  # of starting a kernel
NO_ANSWER = pickle.dumps(None)
FORMULA_STARTS = ("=", "+", "-", "@")  # by which a spreadsheet knows one
COLUMNS = ("submission", "task", "verdict", "diagnosis", "judged")
WHAT_TO_DO = (
    "Grade it again when more memory is free; if it ends again, look at what the notebook "
    "does to its own processes"
)


@dataclass
class RecordedAnswer:
    """What the recorder kept of an answer.

    Attributes
    ----------
    pickle : bytes or None
        The answer itself.
    why : str
        Why there is no pickle.
    waits : bool
        Whether a copy of the kernel waits with it.
    """

    pickle: bytes | None = None
    why: str = ""
    waits: bool = False


@dataclass
class Outcome:
    """What came of running a submission.

    Attributes
    ----------
    tasks : list of str
        Those of all chapters that it has a check of.
    answers : dict of str to RecordedAnswer
        By task.
    problems : str
        Which cells failed.
    """

    tasks: list[str] = field(default_factory=list)
    answers: dict[str, RecordedAnswer] = field(default_factory=dict)
    problems: str = ""


def grade_submission(path: Path, folder: Path, limits: Namespace) -> list[dict]:
    """Run and judge a submission; return its rows of the table.

    Parameters
    ----------
    path : Path
        The notebook.
    folder : Path
        That of all submissions, from which paths are told.
    limits : Namespace
        What it may use, the options of the command: ``cell``, the seconds for a cell, and
        for all calls of one answer; ``seconds``, for the whole notebook; ``memory``, in
        GiB; ``unsafe``, whether it is not shut in.

    Returns
    -------
    list of dict
        A row for each task of the chapters that the notebook has checks of, one row if
        there are none. Columns, some of which may be missing, → str: "submission", the path
        below the folder; "task", such as "attention.heads"; "verdict", which is "right",
        "wrong", "not tried", "not handed in" or "not graded"; "diagnosis", a sentence;
        "judged", "apart" or "together". Where a sandbox ended by itself, the row of that
        answer, or all rows, have ``ended``, True.
    """
    code: list[str] = []
    try:
        code = read_code(path)
        rows = _grade_in_sandbox(code, limits)
    except Ended as error:
        reason = f"it was not run to its end: {error}. {WHAT_TO_DO}"
        rows = [{**row, "ended": True} for row in rows_not_graded(tasks_in(code), reason)]
    except (Stopped, Failed) as error:
        rows = rows_not_graded(tasks_in(code), f"it was not run to its end: {error}")
    except Exception as error:  # whatever was handed in, the others are to be judged
        reason = f"{type(error).__name__}: {error}"[:300]
        rows = rows_not_graded(tasks_in(code), f"it cannot be read: {reason}")
    return [{"submission": str(path.relative_to(folder)), **row} for row in rows]


def sandbox_ended(rows: list[dict]) -> bool:
    """Return whether a sandbox ended by itself when a submission was graded.

    ``rows`` : the submission's, as `grade_submission` returns them; one has ``ended``,
    True, if that was so.
    """
    return any(row.get("ended") for row in rows)


def _grade_in_sandbox(code: list[str], limits: Namespace) -> list[dict]:
    """Run and judge a submission.

    Where its kernel did not begin, it is tried again in a new sandbox: `KERNEL_TRIES` times
    in all.

    Parameters
    ----------
    code : list of str
        Its cells.
    limits : Namespace
        ``cell`` and ``seconds``: how long a cell and the whole may take; ``memory``, in
        GiB; ``unsafe``, whether it is not shut in.

    Returns
    -------
    list of dict
        A row for each task: ``task``, ``verdict``, ``diagnosis``; of an answer also
        ``judged``, and maybe ``ended`` (`grade_submission`).

    Raises
    ------
    Stopped
        If running it took too long or too much memory, or its process ended.
    Failed
        If there was an error in the sandbox, such as a kernel that never began.
    """
    for left in reversed(range(KERNEL_TRIES)):
        with Sandbox(limits.memory, limits.unsafe) as box:
            try:
                run = _run_submission(code, box, limits)
            except Failed as error:
                if KERNEL_NOT_BEGUN in str(error) and left:
                    continue
                raise
            return _judge_answers(code, run, box, limits)
    raise AssertionError("the last try returns or raises")


def rows_not_graded(tasks: list[str], reason: str) -> list[dict]:
    """Return the rows of a submission that could not be graded.

    Parameters
    ----------
    tasks : list of str
        A row for each; one without a task if there are none.
    reason : str
        Why, a sentence.

    Returns
    -------
    list of dict
        Rows with ``task``; ``verdict``, "not graded"; and ``diagnosis``, the reason.
    """
    return [
        {"task": task, "verdict": "not graded", "diagnosis": reason}
        for task in tasks or [""]
    ]


def read_code(path: Path) -> list[str]:
    """Return the sources of a notebook's code cells.

    ``path`` : of the file, in Jupyter's format or an older one, whose cells lie in
    "worksheets".

    Raises
    ------
    ValueError
        If it is no notebook, or is far too large.
    """
    if path.stat().st_size > LARGEST_NOTEBOOK:
        raise ValueError(
            f"it is larger than {LARGEST_NOTEBOOK // 2**20} MB: clear its outputs"
        )
    notebook = json.loads(path.read_text(encoding="utf-8-sig"))
    if not isinstance(notebook, dict):
        raise ValueError("it is no notebook: hand in the file that Jupyter saved, .ipynb")
    sheets = notebook.get("worksheets", [notebook])  # of an older format
    cells = [cell for sheet in sheets for cell in sheet.get("cells", [])]
    sources = [
        cell.get("source", cell.get("input", ""))
        for cell in cells
        if cell.get("cell_type") == "code"
    ]
    return ["".join(source) for source in sources]


def tasks_in(code: list[str], also: list[str] = ()) -> list[str]:
    """Return the tasks of all chapters of which a submission names a task.

    Named is a task by a string in the code, such as "attention.heads". However a check is
    called, its task is named in the notebook or was recorded.

    Parameters
    ----------
    code : list of str
        The cells of a notebook.
    also : list of str
        Names that were recorded while it ran.

    Returns
    -------
    list of str
        Names of all tasks of these chapters, handed in or not.
    """
    named = [".".join(parts) for parts in _TASK_NAME.findall("\n".join(code))]
    chapters: dict[str, list[str]] = {}
    for name in [*named, *also]:
        chapter = name.partition(".")[0]
        with suppress(ValueError):  # no chapter of ours
            if name in (tasks := exercises.names(chapter)):
                chapters[chapter] = tasks
    return [task for tasks in chapters.values() for task in tasks]


def _run_submission(code: list[str], box: Sandbox, limits: Namespace) -> Outcome:
    """Run a submission in a sandbox, and return what came of it.

    Parameters
    ----------
    code : list of str
        Its cells.
    box : Sandbox
        One that has started, and got no request yet.
    limits : Namespace
        ``cell`` and ``seconds``: how long a cell and the whole may take, in seconds.

    Returns
    -------
    Outcome
        ``tasks``, the names of the tasks that will have a row; ``answers``, task →
        `RecordedAnswer`, what was kept of the answer that was given to its check;
        ``problems``, str, which cells failed, "" if none did.

    Raises
    ------
    Stopped
        If it took too long or too much memory, or its process ended.
    Failed
        If there was an error in the sandbox, such as a kernel that did not begin.
    """
    box.begin("begin", code)
    request = "run", limits.cell, limits.seconds
    recorded, problems = box.ask(*request, seconds=limits.seconds + START_SECONDS)
    answers: dict[str, RecordedAnswer] = {}
    for name, kind, content in recorded:
        each = answers.setdefault(bytes.fromhex(name).decode(), RecordedAnswer())
        if kind == "socket":
            each.waits = True
        elif kind == "why":
            each.why = base64.b64decode(content).decode(errors="replace")
        else:
            each.pickle = base64.b64decode(content)
    return Outcome(tasks_in(code, [*answers]), answers, "; ".join(map(str, problems)))


def _judge_answers(
    code: list[str], run: Outcome, ran: Sandbox, limits: Namespace
) -> list[dict]:
    """Judge what a submission handed in, and return a row for each task.

    Parameters
    ----------
    code : list of str
        Its cells.
    run : Outcome
        What came of running it: ``tasks``, names; ``answers``, task → `RecordedAnswer`,
        what was kept of its answer; ``problems``, which cells failed, a str.
    ran : Sandbox
        In which it was run, and where copies of its kernel may wait.
    limits : Namespace
        ``cell`` and ``seconds``, for a cell and for all; ``memory``, in GiB; ``unsafe``,
        whether it is not shut in.

    Returns
    -------
    list of dict
        ``task``; ``verdict``, "right", "wrong", "not tried", "not handed in" or "not
        graded"; ``diagnosis``, a sentence. Of an answer also ``judged``: "together" if its
        check ran beside the answer's own code (`lmbook.grade.judge.NEED_ANSWER`), else
        "apart"; and maybe ``ended``, True, if a sandbox ended by itself.

    Notes
    -----
    Answers are judged in a sandbox of their own, one after the other. Where that was
    stopped, the next answer has a new one.
    """
    if not run.tasks:
        reason = "it checks no task of this book"
        return rows_not_graded([], "; ".join(filter(None, (reason, run.problems))))
    rows = []
    box = None
    with ExitStack() as boxes:
        for task in run.tasks:
            answer = run.answers.get(task)
            if answer is None:
                row = {"task": task, "verdict": "not handed in", "diagnosis": run.problems}
                rows.append(row)
                continue
            if answer.pickle and (box is None or box.stopped or task in NEED_ANSWER):
                boxes.close()
                box = boxes.enter_context(Sandbox(limits.memory, limits.unsafe))
                chapter = task.partition(".")[0] if task in NEED_ANSWER else ""
                box.begin("prepare", code, chapter)
            how = "together" if task in NEED_ANSWER else "apart"
            rows.append(
                {
                    "task": task,
                    **_judge_answer(task, answer, box, ran, limits),
                    "judged": how,
                }
            )
    return rows


def _judge_answer(
    task: str, answer: RecordedAnswer, box: Sandbox, ran: Sandbox, limits: Namespace
) -> dict:
    """Return the verdict on an answer, and its diagnosis.

    Its pickle is opened first, in a process in which the notebook has not run. If it is not
    right there, it may rest on what its notebook did before: then the copy of the kernel
    that waits with it is asked, and counts if it is right, or if there was no pickle that
    could be judged. That is not done for a task of `lmbook.grade.judge.NEED_ANSWER`.

    Parameters
    ----------
    task : str
        Its name, such as "attention.heads".
    answer : RecordedAnswer
        ``pickle``, the answer, or None; ``why`` there is none; ``waits``, whether a copy of
        the kernel waits with it.
    box : Sandbox
        For the pickle; other answers of the submission may have been judged in it.
    ran : Sandbox
        In which the submission was run.
    limits : Namespace
        ``cell`` and ``seconds``, for a cell and for all; ``memory``, in GiB; ``unsafe``,
        whether it is not shut in.

    Returns
    -------
    dict
        ``verdict``: "right", "wrong", "not tried" or "not graded"; ``diagnosis``, a
        sentence; ``ended``, True, only if a sandbox ended by itself.
    """
    reason = f"the answer could not be taken out of the notebook: {answer.why}"
    first = {"verdict": "not graded", "diagnosis": reason}
    if answer.pickle:
        first = _verdict_cells(task, answer.pickle, box, limits.cell)
    can_ask_again = answer.waits and task not in NEED_ANSWER and not ran.stopped
    if first["verdict"] in ("right", "not tried") or not can_ask_again:
        return first
    stem = task.encode().hex()
    second = _verdict_cells(task, NO_ANSWER, WaitingKernel(ran, stem), limits.cell)
    if second["verdict"] == "right" or first["verdict"] == "not graded":
        return second
    return first


def _verdict_cells(
    task: str, answer: bytes, box: Sandbox | WaitingKernel, seconds: float
) -> dict:
    """Judge one answer, and catch whatever is raised.

    Parameters
    ----------
    task : str
        Its name, such as "attention.heads".
    answer : bytes
        As a pickle; in a `WaitingKernel`, which has the answer, it is not used.
    box : Sandbox or WaitingKernel
        Where the answer is opened and its functions are called.
    seconds : float
        For all calls of the answer together.

    Returns
    -------
    dict
        ``verdict``: "right", "wrong", "not tried" or "not graded"; ``diagnosis``, a
        sentence; ``ended``, True, only if the sandbox ended by itself.
    """
    try:
        verdict = judge(task, answer, box, seconds)
    except Stopped as error:
        row = {"verdict": "wrong", "diagnosis": f"it could not be checked: {error}"}
        return {**row, "ended": True} if isinstance(error, Ended) else row
    except Exception as error:  # whatever was handed in, the others are to be judged
        kind = "" if isinstance(error, Failed) else f"{type(error).__name__}: "
        reason = f"it could not be loaded: {kind}{error}"
        return {"verdict": "not graded", "diagnosis": reason}
    word = "right" if verdict.ok else "wrong"
    if not verdict.tried:
        word = "not tried"
    return {"verdict": word, "diagnosis": verdict.message}


# --- the table --------------------------------------------------------------------------


def clean_cell(text: str) -> str:
    """Return text for a cell of a table: on one line, and never taken for a formula.

    An apostrophe is put before text that begins with one of =, +, - and @, by which a
    spreadsheet knows a formula.
    """
    text = "".join(c if c.isprintable() else " " for c in str(text))
    return f"'{text}" if text.startswith(FORMULA_STARTS) else text


class Table:
    """The table of marks, which is written row by row: what is done is never lost.

    While it grows it is ``grades.part.csv``; at its end, however that comes, it is
    ``grades.csv`` and ``grades.html``.

    Parameters
    ----------
    folder : Path
        Where the files are written.

    Attributes
    ----------
    rows : list of dict
        Those written so far, column (of `COLUMNS`) → text.

    Raises
    ------
    OSError
        If nothing can be written there.
    """

    def __init__(self, folder: Path):
        self.folder = folder
        self.part = folder / "grades.part.csv"
        self.rows: list[dict] = []
        for name in ("grades.csv", "grades.html"):
            if (folder / name).exists():
                with (folder / name).open("a"):  # it may be open elsewhere
                    pass
        with _rights_of(folder / "grades.csv"):
            self._file = self.part.open("w", newline="", encoding="utf-8")
        self._writer = csv.DictWriter(self._file, COLUMNS, restval="")
        self._writer.writeheader()

    def __enter__(self):
        """Return the table; at the end of the ``with`` it is written."""
        return self

    def add(self, rows: list[dict]) -> None:
        """Write the rows of a submission to ``grades.part.csv``, and keep them for the end.

        ``rows`` : list of dict, column → text, as `grade_submission` returns them. Each
        text is cleaned (`clean_cell`). A column of `COLUMNS` that a row lacks stays empty;
        other keys are left out.
        """
        cleaned = [{key: clean_cell(row.get(key, "")) for key in COLUMNS} for row in rows]
        self.rows += cleaned
        self._writer.writerows(cleaned)
        self._file.flush()

    def __exit__(self, *_):
        """Write the table as ``grades.csv`` and ``grades.html``, sorted by submission.

        The file ``grades.part.csv``, to which each row was written as it came, is removed.
        """
        self._file.close()
        self.rows.sort(key=lambda row: row["submission"])
        table = pd.DataFrame(self.rows, columns=list(COLUMNS))
        path = self.folder / "grades.csv"
        with _rights_of(path):
            write_whole(path, table.to_csv(index=False))
        with pd.option_context("display.max_colwidth", None):
            body = table.to_html(index=False, escape=True, border=0)
        head = '<!doctype html><html lang="en"><meta charset="utf-8"><title>Grades</title>'
        head += "<style>td { vertical-align: top; padding-right: 1em }</style>"
        path = self.folder / "grades.html"
        with _rights_of(path):
            write_whole(path, f"{head}{body}</html>\n")
        self.part.unlink()


@contextmanager
def _rights_of(path: Path) -> Iterator[None]:
    """Give files that are made inside a ``with`` the rights of an earlier file at ``path``.

    So marks that others could not read are never to be read by them. If there is no such
    file, new ones have the rights that they always have.
    """
    if not path.is_file():
        yield
        return
    earlier = os.umask(0o666 & ~path.stat().st_mode)
    try:
        yield
    finally:
        os.umask(earlier)
