"""The table of marks: each submission run and judged, each task in a row."""

import base64
import pickle
import re
from argparse import Namespace
from contextlib import ExitStack, suppress
from pathlib import Path

import nbformat
import pandas as pd

from lmbook.grade.judge import TOGETHER, judge
from lmbook.grade.sandbox import Sandbox, Stopped
from lmbook.grade.wire import Failed
from lmcourse import exercises

CALL = re.compile(r"""\bcheck\(\s*["']([\w-]+)\.\w+["']""")
LARGEST = 2**25  # bytes of a notebook
START = 60  # seconds that the program in a sandbox may take to begin
NOTHING = pickle.dumps(None)
FORMULA = ("=", "+", "-", "@")  # by which a spreadsheet knows one


def grade(path: Path, folder: Path, limits: Namespace) -> list[dict]:
    """Run and judge a submission; return its rows of the table.

    ``limits`` is what it may use, the options of the command: seconds for a ``cell`` and
    for all, GiB of ``memory``, and whether it is ``unsafe``, not shut in.
    """
    who = str(path.relative_to(folder))
    try:
        tasks, code = read(path)
        with Sandbox(limits.memory, limits.unsafe) as box:
            request = "run", code, limits.cell, limits.seconds
            found, problems = box.ask(*request, seconds=limits.seconds + START)
        answers = {bytes.fromhex(name).decode(): base64.b64decode(b) for name, b in found}
        rows = _judged(tasks, answers, "; ".join(map(str, problems)), limits)
    except (Stopped, Failed) as error:
        said = f"it was not run to its end: {error}"
        rows = [{"task": t, "verdict": "not graded", "diagnosis": said} for t in tasks]
    except Exception as error:  # whatever was handed in, the others are to be judged
        said = f"it cannot be read: {type(error).__name__}"
        rows = [{"task": "", "verdict": "not graded", "diagnosis": said}]
    return [{"submission": who, **row} for row in rows]


def read(path: Path) -> tuple[list[str], list[str]]:
    """Return the tasks of the chapters that a notebook has checks of, and its code cells.

    Raises
    ------
    ValueError
        If it has no task of ours, or is far too large.
    """
    if path.stat().st_size > LARGEST:
        raise ValueError("it is too large")
    cells = nbformat.read(path, as_version=4).cells
    code = [cell.source for cell in cells if cell.cell_type == "code"]
    tasks = []
    for chapter in dict.fromkeys(CALL.findall("\n".join(code))):
        with suppress(ValueError):  # no chapter of ours
            tasks += exercises.names(chapter)
    if not tasks:
        raise ValueError("it checks no task of this book")
    return tasks, code


def _judged(tasks: list[str], answers: dict, problems: str, limits: Namespace) -> list:
    """Return a row for each task; where a sandbox was stopped, the next has a new one."""
    rows, box = [], None
    with ExitStack() as boxes:
        for task in tasks:
            if task not in answers:
                row = {"task": task, "verdict": "not handed in", "diagnosis": problems}
                rows.append(row)
                continue
            if box is None or box.stopped or task in TOGETHER:
                boxes.close()
                box = boxes.enter_context(Sandbox(limits.memory, limits.unsafe))
                box.ask("load", NOTHING, seconds=START)
            how = "together" if task in TOGETHER else "apart"
            said = _verdict(task, answers[task], box, limits.cell)
            rows.append({"task": task, **said, "judged": how})
    return rows


def _verdict(task: str, answer: bytes, box: Sandbox, seconds: float) -> dict[str, str]:
    try:
        verdict = judge(task, answer, box, seconds)
    except Exception as error:  # whatever was handed in, the others are to be judged
        kind = "" if isinstance(error, (Stopped, Failed)) else f"{type(error).__name__}: "
        return {"verdict": "wrong", "diagnosis": f"it could not be checked: {kind}{error}"}
    said = ("right" if verdict.ok else "wrong") if verdict.tried else "not tried"
    return {"verdict": said, "diagnosis": verdict.message}


def clean(text: str) -> str:
    """Return text on one line, which no spreadsheet takes for a formula."""
    text = "".join(c if c.isprintable() else " " for c in str(text))
    return f"'{text}" if text.startswith(FORMULA) else text


def write(rows: list[dict], folder: Path) -> None:
    """Write the table as CSV and as HTML, in which what is not ours is escaped."""
    columns = ["submission", "task", "verdict", "diagnosis", "judged"]
    table = pd.DataFrame(rows, columns=columns).fillna("").map(clean)
    table.to_csv(folder / "grades.csv", index=False)
    with pd.option_context("display.max_colwidth", None):
        body = table.to_html(index=False, escape=True, border=0)
    head = '<!doctype html><html lang="en"><meta charset="utf-8"><title>Grades</title>'
    head += "<style>td { vertical-align: top; padding-right: 1em }</style>"
    (folder / "grades.html").write_text(f"{head}{body}</html>\n", encoding="utf-8")
