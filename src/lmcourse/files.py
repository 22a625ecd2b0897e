"""Writing files so that they are whole or as they were.

Everything that the course stores goes through `write_whole`: checkpoints, adapters,
results of studies. A process that is killed, or a disk that is full, leaves the file that
was there before.
"""

import os
from contextlib import contextmanager, suppress
from pathlib import Path


def write_whole(path, content):
    """Write a file beside its place, flush it, and only then give it the path's name.

    Parameters
    ----------
    path : path
        ``~`` is the home folder. Missing folders are made; a symbolic link stays one, and
        the file it points to is replaced.
    content : bytes or str
        Text is written as UTF-8.

    Raises
    ------
    OSError
        If it cannot be written (a full disk, a folder that is read-only); a file that was
        there before is still whole.
    """
    path = Path(path).expanduser().resolve()
    if isinstance(content, str):
        content = content.encode()
    unfinished = path.with_name(f".{path.name}.unfinished")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with unfinished.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        unfinished.replace(path)
    except OSError as error:
        note = "; what was there before is whole" if path.is_file() else ""
        raise OSError(f"{path} could not be written: {error}{note}") from error
    finally:
        unfinished.unlink(missing_ok=True)


@contextmanager
def locked(path):
    """Let one process at a time work towards a file, inside a ``with``.

    Where the system has no such locks (Windows) nothing is locked.

    Parameters
    ----------
    path : path
        The file; the lock is a hidden file beside it, gone afterwards.

    Raises
    ------
    OSError
        If another process holds the lock; it says so.
    """
    try:
        import fcntl
    except ImportError:  # Windows
        yield
        return
    path = Path(path).expanduser().resolve()
    lock = path.with_name(f".{path.name}.lock")
    path.parent.mkdir(parents=True, exist_ok=True)
    with lock.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise BlockingIOError(
                f"another process is writing {path}: wait until it ends, or name "
                "another file"
            ) from None
        try:
            yield
        finally:
            with suppress(OSError):
                lock.unlink()
