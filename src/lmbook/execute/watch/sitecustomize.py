"""Note which files a kernel reads, and the Python processes that it starts.

Python runs a module of this name when it starts; `lmbook.execute.run` puts this folder on a
kernel's path. Each file below ``LMBOOK_WATCHED`` that is opened for reading becomes a line
of the file ``LMBOOK_READS``. Compiled modules are read here, too: their names tell which.
So does each file below ``LMBOOK_DATA`` that is looked for, whether it is there or not; each
folder there that is listed, its name ending in a slash; and each of the variables
``LMBOOK_VARIABLES`` that is asked for, by its name.

A module of this name that the system has is run as well.
"""

import importlib.machinery
import importlib.util
import os
import sys


def watch(log: str, folders: tuple[str, ...], data: tuple[str, ...]) -> None:
    """Append the paths of what is read below some folders to a log, once each.

    Parameters
    ----------
    log : str
        The path of the log.
    folders : tuple of str
        Files below them are noted when they are opened for reading. Each ends in a slash.
    data : tuple of str
        Below these it is also noted which file is looked for, and which folder is listed.
    """
    descriptor = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    seen = set()

    def note(path, below, ending=""):
        """Write a path down once, if it lies below one of the folders ``below``.

        ``ending`` is put behind it: "/" for a folder that was listed.
        """
        if not isinstance(path, (str, bytes, os.PathLike)):
            return
        path = os.path.realpath(os.fsdecode(path))
        if f"{path}{os.sep}".startswith(below) and path + ending not in seen:
            seen.add(path + ending)
            os.write(descriptor, f"{path}{ending}\n".encode())

    def hook(event, arguments):
        """Note which file is opened to be read, and which folder of data is listed."""
        if event == "open":
            flags = arguments[2]
            if flags is None or not flags & (os.O_WRONLY | os.O_RDWR):
                note(arguments[0], folders)
        elif event in ("os.listdir", "os.scandir"):
            note(arguments[0] or ".", data, "/")

    def stat(path, *arguments, **options):
        """Note a look for a file of data, then look."""
        note(path, data)
        return original(path, *arguments, **options)

    original = os.stat  # no event tells of it
    os.stat = stat
    sys.addaudithook(hook)


def watch_variables(log: str, names: set[str]) -> None:
    """Append the names of variables to a log when one asks for them, set or not.

    ``log`` is its path; ``names`` are those to watch, and each is noted once. One asks by
    ``get``, as `lmcourse` does, or ``in``. Whoever copies the whole environment (tqdm does)
    does not ask for one.
    """
    descriptor = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    kind = type(os.environ)

    def recording(method):
        """Return a dict's method that also notes which variable is asked for."""

        def ask(self, key, *default):
            """Note the first question for a variable, then answer it."""
            if key in names:
                names.discard(key)
                os.write(descriptor, f"{key}\n".encode())
            return method(self, key, *default)

        return ask

    kind.get, kind.__contains__ = recording(kind.get), recording(kind.__contains__)


def announce_weights() -> None:
    """Let safetensors, which opens files beside Python, say which."""
    try:
        import safetensors
    except ImportError:
        return
    original = safetensors.safe_open

    def safe_open(filename, *arguments, **options):
        """Announce a safetensors file as opened: its library opens it outside Python."""
        sys.audit("open", filename, None, os.O_RDONLY)
        return original(filename, *arguments, **options)

    safetensors.safe_open = safe_open


def run_shadowed() -> None:
    """Run the module of this name that would have been run without this one."""
    here = os.path.dirname(os.path.abspath(__file__))
    others = [path for path in sys.path if os.path.abspath(path) != here]
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", others)
    if spec and spec.loader:
        spec.loader.exec_module(importlib.util.module_from_spec(spec))


if "LMBOOK_READS" in os.environ:
    watched = os.environ["LMBOOK_WATCHED"].split(os.pathsep)
    data = os.environ["LMBOOK_DATA"].split(os.pathsep)
    watch(
        os.environ["LMBOOK_READS"],
        tuple(f"{folder}{os.sep}" for folder in watched),
        tuple(f"{folder}{os.sep}" for folder in data),
    )
    watch_variables(os.environ["LMBOOK_READS"], set(os.environ["LMBOOK_VARIABLES"].split()))
    announce_weights()
run_shadowed()
