"""``python -m lmbook.grade SUBMISSIONS``: run readers' notebooks and judge them.

Every notebook below the folder is run in a sandbox; what it handed in is judged by the
course's checks (`lmbook.grade.judge`). The table is ``grades.csv`` and ``grades.html``, a
row for each task of the chapters that a notebook has checks of.
"""

import argparse
import sys
from functools import partial

from lmbook.grade.marks import Table, grade_submission
from lmbook.grade.pool import grade_all
from lmbook.grade.sandbox import why_no_sandbox
from lmcourse.arguments import path_argument


def main() -> int:
    """Grade all notebooks below a folder, as the command line says, and write the table.

    The arguments are read from ``sys.argv``. The table is ``grades.csv`` and
    ``grades.html`` in the folder.

    Returns
    -------
    int
        The exit status: 0 if all were graded; 2 if nothing was run, because submissions
        cannot be shut in here or the table cannot be written; 130 after Ctrl-C, with what
        was done in the table. Without any notebook, argparse ends the program with 2.
    """
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("submissions", type=path_argument)
    clock = "by the clock: give more on a slow or busy machine"
    parser.add_argument(
        "--cell",
        type=float,
        default=600,
        help=f"seconds of a cell, and of an answer's calls together, {clock} (%(default)s)",
    )
    parser.add_argument(
        "--seconds",
        type=float,
        default=3600,
        help=f"seconds of a notebook, {clock} (%(default)s)",
    )
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
