"""Log which files a kernel reads, and the Python processes that it starts.

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


def log_reads(log: str, folders: tuple[str, ...], data: tuple[str, ...]) -> None:
    """Append the path of each file that is read below some folders to a log, once.

    From then on it does so for the rest of the process: it adds a hook to Python's audit
    events, and puts a function in the place of `os.stat`, which raises none.

    Parameters
    ----------
    log : str
        The path of the log, a text with a path on each line; it is made if it is not there.
    folders : tuple of str
        Files below them are logged when they are opened for reading. Each ends in a slash.
    data : tuple of str
        Below these, files that are looked for are logged as well, whether they exist or
        not, and folders that are listed, whose names then end in a slash. Each ends in a
        slash here, too.
    """
    descriptor = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    seen = set()

    def append_once(path, below, ending=""):
        """Append a path to the log, once, if it lies in one of the folders ``below``.

        ``path`` may also be a file descriptor, which is ignored. ``ending`` follows the
        path: "/" for a folder that was listed.
        """
        if not isinstance(path, (str, bytes, os.PathLike)):
            return
        path = os.path.realpath(os.fsdecode(path))
        if f"{path}{os.sep}".startswith(below) and path + ending not in seen:
            seen.add(path + ending)
            os.write(descriptor, f"{path}{ending}\n".encode())

    def audit(event, arguments):
        """Log the files opened for reading and the folders of data that are listed.

        Python calls it with the name of each audit event, ``event``, and its ``arguments``,
        a tuple.
        """
        if event == "open":
            flags = arguments[2]
            if flags is None or not flags & (os.O_WRONLY | os.O_RDWR):
                append_once(arguments[0], folders)
        elif event in ("os.listdir", "os.scandir"):
            append_once(arguments[0] or ".", data, "/")

    def stat(path, *arguments, **options):
        """Log that a file of data is looked for, then do what `os.stat` does.

        ``path``, ``arguments``, ``options`` : as `os.stat` takes them.
        """
        append_once(path, data)
        return original(path, *arguments, **options)

    original = os.stat  # which raises no audit event
    os.stat = stat
    sys.addaudithook(audit)


def log_variables(log: str, names: set[str]) -> None:
    """Append the name of each environment variable that is asked for to a log, once.

    From then on that is so for the rest of the process: two methods of the class of
    `os.environ` are replaced by ones that log before they do what they did. These are
    ``get``, by which `lmcourse` asks, and ``in`` (``__contains__``). A copy of the whole
    environment (tqdm makes one) asks for none.

    Parameters
    ----------
    log : str
        The path of the log, a text with a name on each line; it is made if it is not there.
    names : set of str
        The variables to watch, set or not; emptied as they are logged.
    """
    descriptor = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    environment = type(os.environ)

    def logging(method):
        """Return a method of `os.environ` that first logs the variable, if it is watched.

        ``method`` : callable from the environment, the variable's name and maybe a default.
        """

        def log_and_call(self, key, *arguments, **options):
            """Log a variable of ``names`` and take it out of them, then call the method.

            ``self`` : `os.environ`; ``key`` : str, the variable's name; ``arguments`` and
            ``options``, such as a default, are handed on.
            """
            if key in names:
                names.discard(key)
                os.write(descriptor, f"{key}\n".encode())
            return method(self, key, *arguments, **options)

        return log_and_call

    environment.get = logging(environment.get)
    environment.__contains__ = logging(environment.__contains__)


def audit_safetensors() -> None:
    """Have each file that safetensors opens in Rust raise Python's audit event "open".

    For that a function is put in the place of `safetensors.safe_open`, if safetensors is
    installed; the hook of `log_reads` then sees the file.
    """
    try:
        import safetensors
    except ImportError:
        return
    original = safetensors.safe_open

    def safe_open(filename, *arguments, **options):
        """Raise the audit event "open", then do what `safetensors.safe_open` does.

        ``filename`` : path; ``arguments`` and ``options`` are handed on.
        """
        sys.audit("open", filename, None, os.O_RDONLY)
        return original(filename, *arguments, **options)

    safetensors.safe_open = safe_open


def run_other_sitecustomize() -> None:
    """Run the module ``sitecustomize`` that Python would have run without this one.

    It is the first on `sys.path` outside this file's folder; there may be none.
    """
    here = os.path.dirname(os.path.abspath(__file__))
    others = [path for path in sys.path if os.path.abspath(path) != here]
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", others)
    if spec and spec.loader:
        spec.loader.exec_module(importlib.util.module_from_spec(spec))


if "LMBOOK_READS" in os.environ:
    watched = os.environ["LMBOOK_WATCHED"].split(os.pathsep)
    data = os.environ["LMBOOK_DATA"].split(os.pathsep)
    log_reads(
        os.environ["LMBOOK_READS"],
        tuple(f"{folder}{os.sep}" for folder in watched),
        tuple(f"{folder}{os.sep}" for folder in data),
    )
    log_variables(os.environ["LMBOOK_READS"], set(os.environ["LMBOOK_VARIABLES"].split()))
    audit_safetensors()
run_other_sitecustomize()
