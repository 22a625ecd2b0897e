"""Note which files a kernel reads, and the Python processes that it starts.

Python runs a module of this name when it starts; `lmbook.execute` puts this folder on a
kernel's path. Each file below ``LMBOOK_WATCHED`` that is opened for reading becomes a line
of the file ``LMBOOK_READS``. Compiled modules are read here, too: their names tell which.
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
    announce_weights()
