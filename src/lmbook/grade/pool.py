"""The judge's processes: many submissions at a time, and an end of all by an interrupt.

They are spawned, and import what they run by its name: it cannot stand in the package's
``__main__``, which they do not import.
"""

import os
import signal
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from functools import partial
from multiprocessing import active_children, get_context
from pathlib import Path

from joblib import cpu_count

from lmbook.grade.marks import read_code, rows_not_graded, sandbox_ended, tasks_in

JUDGE_DIED = "judging it ended the judge's own process: it may have handed in far too much"


def _interrupt_idle(*_) -> None:
    """Handle SIGINT in a judge's process that waits: it begins nothing any more."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _interrupt_busy(*_) -> None:
    """Handle SIGINT in a judge's process that grades: it stops, and tidies up in peace."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    raise KeyboardInterrupt


def _grade_unless_interrupted(how, path: Path) -> list[dict]:
    """Return the rows of a submission, in a process of the judge.

    ``how`` : from a path to its rows. Raises KeyboardInterrupt if the process gets SIGINT,
    or has got it before.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        raise KeyboardInterrupt
    signal.signal(signal.SIGINT, _interrupt_busy)
    rows = how(path)
    signal.signal(signal.SIGINT, _interrupt_idle)
    return rows


@contextmanager
def _judges(count: int) -> Iterator[ProcessPoolExecutor]:
    """Make a pool of ``count`` processes, which an interrupt of this one ends soon.

    Ctrl-C in a terminal reaches them all, `kill -INT` this process alone. Left to itself,
    the pool would grade all that is queued.
    """
    spawn = get_context("spawn")
    when_idle = (signal.SIGINT, _interrupt_idle)
    with ProcessPoolExecutor(count, spawn, signal.signal, when_idle) as pool:
        try:
            yield pool
        except (KeyboardInterrupt, GeneratorExit):
            for process in active_children():
                with suppress(ProcessLookupError):
                    os.kill(process.pid, signal.SIGINT)
            pool.shutdown(cancel_futures=True)
            raise


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
    judge = partial(_grade_unless_interrupted, how)
    with _judges(min(cpu_count(), len(paths))) as pool:
        futures = {pool.submit(judge, path): path for path in paths}
        try:
            for future in as_completed(futures):
                rows = future.result()
                if not sandbox_ended(rows):
                    yield rows
                    del left[futures[future]]
        except BrokenProcessPool:
            pass
    for path in left:
        with _judges(1) as pool:
            try:
                yield pool.submit(judge, path).result()
            except BrokenProcessPool:
                name = str(path.relative_to(how.keywords["folder"]))
                rows = rows_not_graded(tasks_in(read_code(path)), JUDGE_DIED)
                yield [{"submission": name, **row} for row in rows]
