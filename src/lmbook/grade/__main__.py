"""``python -m lmbook.grade SUBMISSIONS``: run readers' notebooks and judge them.

Every notebook below the folder is run in a sandbox; what it handed in is judged by the
course's checks (`lmbook.grade.judge`). The table is ``grades.csv`` and ``grades.html``, a
row for each task of the chapters that a notebook has checks of.
"""

import argparse
import sys
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path

from joblib import cpu_count

from lmbook.grade.marks import grade, write
from lmbook.grade.sandbox import why_not


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
    if not limits.unsafe and (reason := why_not()):
        print(f"Submissions cannot be shut in here: {reason}.")
        print("On a machine that you can lose, --unsafe runs them with your own rights.")
        return 2
    found = folder.rglob("*.ipynb")
    paths = sorted(path for path in found if ".ipynb_checkpoints" not in path.parts)
    if not paths:
        parser.error(f"there is no notebook below {folder}")
    with ProcessPoolExecutor(min(cpu_count(), len(paths)), get_context("spawn")) as pool:
        found = list(pool.map(partial(grade, folder=folder, limits=limits), paths))
    write([row for rows in found for row in rows], folder)
    right = sum(row["verdict"] == "right" for rows in found for row in rows)
    print(f"{len(paths)} notebooks, {right} right answers: {folder / 'grades.html'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
