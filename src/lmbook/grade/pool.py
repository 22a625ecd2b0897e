"""The judge's processes: many submissions at a time, and an end of all with the judge.

They are spawned, and import what they run by its name: it cannot stand in the package's
``__main__``, which they do not import.
"""

import os
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from functools import partial
from multiprocessing import active_children, get_context, parent_process
from pathlib import Path

from joblib import cpu_count

from lmbook.grade.marks import rows_not_graded, sandbox_ended

JUDGE_DIED = "judging it ended the judge's own process: it may have handed in far too much"
_AT_WORK = threading.Lock()  # which a process of the pool holds while it grades


def _interrupt_idle(*_) -> None:
    """Handle SIGINT in a process of the pool that waits for a submission.

    It ignores the signal from then on, by which `_grade_unless_interrupted` knows that it
    is to begin nothing any more. ``*_`` : the signal's number and the frame, unused.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _interrupt_busy(*_) -> None:
    """Handle SIGINT in a process of the pool that grades: raise KeyboardInterrupt.

    Further signals are ignored, so that the sandboxes can be closed. ``*_`` : the signal's
    number and the frame, unused.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    raise KeyboardInterrupt


def _begin_process() -> None:
    """Make a process of the pool deaf to SIGINT while it waits; end it with the judge."""
    signal.signal(signal.SIGINT, _interrupt_idle)
    threading.Thread(target=_end_with_judge, daemon=True).start()


def _end_with_judge() -> None:
    """Wait until the judge's process has ended; then end this one of the pool, too.

    It would wait for more submissions for ever, since it holds the other end of the queue
    itself. What it grades is interrupted first, so that the sandboxes are closed.
    """
    parent_process().join()
    signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
    with _AT_WORK:
        os._exit(1)


def _grade_unless_interrupted(how, path: Path) -> list[dict]:
    """Grade one submission in a process of the pool, and return its rows.

    Parameters
    ----------
    how : callable
        Called with the path; grades the notebook and returns the rows.
    path : Path
        The notebook.

    Returns
    -------
    list of dict
        What ``how`` returns: a row of the table of marks for each task, column → text.

    Raises
    ------
    KeyboardInterrupt
        If the process gets SIGINT while it grades, or has got it before.
    """
    with _AT_WORK:
        if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
            raise KeyboardInterrupt
        signal.signal(signal.SIGINT, _interrupt_busy)
        rows = how(path)
        signal.signal(signal.SIGINT, _interrupt_idle)
        return rows


@contextmanager
def _judges(count: int) -> Iterator[ProcessPoolExecutor]:
    """Make a pool of processes, which end with this one, and soon if it is interrupted.

    Ctrl-C in a terminal reaches them all, `kill -INT` this process alone: so the interrupt
    is sent on to each of them, what is queued is cancelled, and the error is raised again.
    Left to itself, the pool would grade all that is queued.

    Parameters
    ----------
    count : int
        How many processes.

    Yields
    ------
    ProcessPoolExecutor
        Its processes are new ones ("spawn"), each of which begins with `_begin_process`.
    """
    with ProcessPoolExecutor(count, get_context("spawn"), _begin_process) as pool:
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

    Submissions are graded in a pool, with a process for each processor. If one of these
    processes dies, the submissions that were not done are graded again, each in a pool of
    its own, so that the one that is to blame costs nobody but its author: if the process
    dies again, its one row says "not graded". It has no task, since a file that is too much
    to read would end this process, too. Also graded again, once, is a submission whose
    sandbox ended by itself (`lmbook.grade.marks.sandbox_ended`): the machine may have been
    short of memory, which others took. It is graded as if for the first time. Nothing of
    what it did before is left, and it cannot know that it was run before: whoever ends a
    sandbox gains what handing in the same notebook twice would gain.

    Parameters
    ----------
    paths : list of Path
        The notebooks, all below one folder.
    how : callable
        From a path to its rows: a `functools.partial` of
        `lmbook.grade.marks.grade_submission`, with the named argument ``folder``.

    Yields
    ------
    list of dict
        The rows of one submission, one for each task, or one without a task. Each has
        texts by column: "submission" (the path below the folder), "task", "verdict",
        "diagnosis" and "judged" ("apart" or "together"); some may be missing. Where the
        sandbox ended by itself again, they also have ``ended``, True.
    """
    left = dict.fromkeys(paths)
    judge = partial(_grade_unless_interrupted, how)
    with _judges(min(cpu_count(), len(paths))) as pool:
        try:
            futures = {pool.submit(judge, path): path for path in paths}
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
                rows = rows_not_graded([], JUDGE_DIED)
                yield [{"submission": name, **row} for row in rows]
