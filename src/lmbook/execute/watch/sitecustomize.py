"""Note which files a kernel reads, and the Python processes that it starts.

Python runs a module of this name when it starts; `lmbook.execute.run` puts this folder on a
kernel's path. Each file below ``LMBOOK_WATCHED`` that is opened for reading becomes a line
of the file ``LMBOOK_READS``. Compiled modules are read here, too: their names tell which.
So does each of the variables ``LMBOOK_VARIABLES`` that is asked for, by its name.
"""

import os
import sys


def watch(log: str, folders: tuple[str, ...]) -> None:
    """Append the paths of what is read below some folders to a log, once each."""
    descriptor = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    seen = set()

    def hook(event, arguments):
        if event != "open" or not isinstance(arguments[0], (str, bytes, os.PathLike)):
            return
        flags = arguments[2]
        if flags is not None and flags & (os.O_WRONLY | os.O_RDWR):
            return
        path = os.path.realpath(os.fsdecode(arguments[0]))
        if path.startswith(folders) and path not in seen:
            seen.add(path)
            os.write(descriptor, f"{path}\n".encode())

    sys.addaudithook(hook)


def watch_variables(log: str, names: set[str]) -> None:
    """Append the names of variables to a log when one asks for them, set or not.

    By ``get``, as `lmcourse` does, or ``in``. Whoever copies the whole environment (tqdm
    does) does not ask for one.
    """
    descriptor = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    kind = type(os.environ)

    def recording(method):
        def ask(self, key, *default):
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
        sys.audit("open", filename, None, os.O_RDONLY)
        return original(filename, *arguments, **options)

    safetensors.safe_open = safe_open


if "LMBOOK_READS" in os.environ:
    watched = os.environ["LMBOOK_WATCHED"].split(os.pathsep)
    watch(os.environ["LMBOOK_READS"], tuple(f"{folder}{os.sep}" for folder in watched))
    watch_variables(os.environ["LMBOOK_READS"], set(os.environ["LMBOOK_VARIABLES"].split()))
    announce_weights()
