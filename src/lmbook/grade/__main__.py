"""``python -m lmbook.grade SUBMISSIONS``: run readers' notebooks and judge them.

Every notebook below the folder is run in a sandbox; what it handed in is judged by the
course's checks (`lmbook.grade.judge`). The table is ``grades.csv`` and ``grades.html``, a
row for each task of the chapters that a notebook has checks of.
"""

import argparse
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from multiprocessing import get_context
from pathlib import Path

from joblib import cpu_count

from lmbook.grade.marks import (
    Table,
    grade_submission,
    read_code,
    rows_not_graded,
    sandbox_ended,
    tasks_in,
)
from lmbook.grade.sandbox import why_no_sandbox

JUDGE_DIED = "judging it ended the judge's own process: it may have handed in far too much"


def grade_all(paths: list[Path], how) -> Iterator[list[dict]]:
    """Yield the rows of each submission as they come.

    If a process of the judge dies, those that were not done are graded again, each by
    itself, so that the one that is to blame costs nobody but its author. So is one whose
    sandbox ended by itself, once: the machine may have been short of memory, which others
    took. It is graded as if for the first time. Nothing of what it did before is left, and
    it cannot know that it was run before: whoever ends a sandbox gains what handing in the
    same notebook twice would gain.

    Parameters
    ----------
    paths : list of Path
        The notebooks, all below one folder.
    how : callable
        From a path to its rows, dicts column → text: a `functools.partial` of
        `lmbook.grade.marks.grade_submission`, with the named argument ``folder``.

    Yields
    ------
    list of dict
        The rows of one submission.
    """
    left = dict.fromkeys(paths)
    spawn = get_context("spawn")
    with ProcessPoolExecutor(min(cpu_count(), len(paths)), spawn) as pool:
        futures = {pool.submit(how, path): path for path in paths}
        try:
            for future in as_completed(futures):
                rows = future.result()
                if not sandbox_ended(rows):
                    yield rows
                    del left[futures[future]]
        except BrokenProcessPool:
            pass
    for path in left:
        with ProcessPoolExecutor(1, spawn) as pool:
            try:
                yield pool.submit(how, path).result()
            except BrokenProcessPool:
                name = str(path.relative_to(how.keywords["folder"]))
                rows = rows_not_graded(tasks_in(read_code(path)), JUDGE_DIED)
                yield [{"submission": name, **row} for row in rows]


def main() -> int:
    """Grade all notebooks below a folder; the status is 2 where that would not be safe."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("submissions", type=Path)
    parser.add_argument("--cell", type=float, default=120, help="seconds of a cell")
    parser.add_argument("--seconds", type=float, default=900, help="of a notebook")
    parser.add_argument("--memory", type=float, default=4, help="GiB of a submission")
    parser.add_argument("--unsafe", action="store_true", help="run it with your rights")
    limits = parser.parse_args()
    folder = limits.submissions.resolve()
    if not limits.unsafe and (reason := why_no_sandbox()):
        print(f"Submissions cannot be shut in here: {reason}.")
        print("On a machine that you can lose, --unsafe runs them with your own rights.")
        return 2
    paths = sorted(
        path
        for path in folder.rglob("*")
        if path.suffix.lower() == ".ipynb" and ".ipynb_checkpoints" not in path.parts
    )
    if not paths:
        parser.error(f"there is no notebook below {folder}")
    try:
        table = Table(folder)
    except OSError as error:
        print(f"The marks cannot be written: {error}. Nothing was run.")
        return 2
    with table:
        try:
            for rows in grade_all(
                paths, partial(grade_submission, folder=folder, limits=limits)
            ):
                table.add(rows)
        except KeyboardInterrupt:
            done = len({row["submission"] for row in table.rows})
            print(f"\nstopped: {done} of {len(paths)} notebooks are in the table")
            return 130
    right = sum(row["verdict"] == "right" for row in table.rows)
    print(f"{len(paths)} notebooks, {right} right answers: {folder / 'grades.html'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
