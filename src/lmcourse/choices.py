"""A checkpoint that a reader names: a folder of theirs, or a repository on the hub."""

import os
import re
from pathlib import Path

__all__ = ["chosen"]

# ./x ../x /x ~/x a\b C:x a/b/c: no name on the hub looks like this.
_PATH = re.compile(r"[.~/]|.*\\|[A-Za-z]:|.*/.*/")


def chosen(name: str | os.PathLike, *, file: bool = False) -> str:
    """Tell a folder from a name on the hub.

    A relative folder is one seen from where the program runs. Pages run in ``chapters/``:
    whoever starts them from elsewhere hands them the absolute path that this returns.

    Parameters
    ----------
    name : str or path
        What exists is a folder. So is a path object, what begins with ``./``, ``../``,
        ``/``, ``~`` or a drive's letter, and what has a backslash or more than one slash;
        it must exist. Anything else is a name on the hub.
    file : bool
        Whether a file may stand in a folder's place.

    Returns
    -------
    str
        The absolute path of a folder (or file), or the name as it was.

    Raises
    ------
    FileNotFoundError
        If what looks like a folder is none, naming the absolute path that was tried.
    """
    folder = Path(name).expanduser().absolute()
    if folder.is_dir() or (file and folder.is_file()):
        return str(folder)
    if (
        folder.exists()
        or isinstance(name, os.PathLike)
        or _PATH.match(name.partition("@")[0])
    ):
        raise FileNotFoundError(f"{os.fspath(name)!r} is no folder: {folder} was tried")
    return name
