"""What a study's results rest on, and whether it has changed.

- **Code**: the modules of `lmcourse` and `studies` that a study imports, and those that
  they import. Each has a hash of its program, without comments, docstrings, names of local
  variables, the texts of a study's claim and its place in the order. So has a file beside
  a module that it names.
- **Files of data**: those that its runs opened, corpora and weights, each with its hash.

Both are stored with the results as ``rests_on``; the files are recorded while a study runs
(`recording`). `changed` compares such a record with what there is now.
"""

import ast
import hashlib
import importlib.util
import json
import os
import sys
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from types import ModuleType

from studies.program import program_text

ROOT = Path(__file__).parents[2]
PACKAGES = ("lmcourse", "studies")
# What no result depends on: the texts of a study, and which studies go before it. The
# weights that it reads are recorded by their hash.
CLAIMS = ("CLAIM", "RIVAL", "NULL", "AFTER")


# --- code -----------------------------------------------------------------------------


@cache
def code_hash(source: str) -> str:
    """Return the SHA-256 of what a program does (`program_text`), 64 hexadecimal digits.

    Parameters
    ----------
    source : str
        The program. What a study assigns to ``CLAIM``, ``RIVAL``, ``NULL`` and ``AFTER``,
        each in a statement of its own, does not count.
    """
    tree = ast.parse(source)
    tree.body = [node for node in tree.body if not _is_claim(node)]
    return hashlib.sha256(program_text(tree).encode()).hexdigest()


def _is_claim(node: ast.AST) -> bool:
    """Return whether a statement assigns to a name in `CLAIMS`, such as ``CLAIM``.

    ``node`` : a statement of a module; `CLAIMS` are the names of a study's texts, and of
    its place in the order of studies.
    """
    if not isinstance(node, ast.Assign):
        return False
    return ast.unparse(node.targets[0]) in CLAIMS


@cache
def module_path(name: str) -> Path | None:
    """Return the file of a module of `lmcourse` or `studies`, by its dotted name, or None.

    None also if there is no such module, or if it has no file.
    """
    if name.partition(".")[0] not in PACKAGES:
        return None
    try:
        spec = importlib.util.find_spec(name)
    except (ImportError, AttributeError):  # its parent is a module, or there is none
        return None
    return Path(spec.origin) if spec and spec.origin else None


def imports(source: str, package: str) -> Iterator[str]:
    """Find the modules that a program imports.

    Parameters
    ----------
    source : str
        The program.
    package : str
        The dotted name of its package, for relative imports.

    Yields
    ------
    str
        Dotted names: of modules, and of what is imported from them, which may be modules.
    """
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                base = importlib.util.resolve_name("." * node.level + base, package)
            yield base
            yield from (f"{base}.{alias.name}" for alias in node.names)


def modules_of(study: ModuleType) -> dict[str, str]:
    """Return the modules that a study's results rest on.

    Parameters
    ----------
    study : module

    Returns
    -------
    dict of str to str
        Dotted name → SHA-256 of its program (`code_hash`), sorted by name: the study, what
        it imports of `lmcourse` and `studies`, what these import, and the packages in which
        they are. Also ``package.file.toml`` → hash of what it says (`toml_hash`), for each
        TOML file beside one of these modules that the module names.
    """
    hashes: dict[str, str] = {}
    waiting = [study.__name__]
    while waiting:
        name = waiting.pop()
        path = module_path(name)
        if path is None or name in hashes or not path.is_file():
            continue
        source = path.read_text(encoding="utf-8")
        hashes[name] = code_hash(source)
        package = name if path.name == "__init__.py" else name.rpartition(".")[0]
        for file in _named_beside(source, path.parent):
            hashes[f"{package}.{file.name}"] = toml_hash(file.read_text(encoding="utf-8"))
        waiting += imports(source, package)
        while package:  # importing a module runs the packages that it is in
            waiting.append(package)
            package = package.rpartition(".")[0]
    return dict(sorted(hashes.items()))


def _named_beside(source: str, folder: Path) -> list[Path]:
    """Return the TOML files beside a program whose names are string constants in it.

    ``source`` : str, the program; ``folder`` : Path, the folder in which it is.
    """
    files = [path for path in folder.glob("*.toml") if path.name in source]
    if not files:
        return []
    nodes = (node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Constant))
    texts = {node.value for node in nodes}
    return [path for path in files if path.name in texts]


def toml_hash(text: str) -> str:
    """Return the SHA-256 of what a TOML text says, without comments, layout and order."""
    canonical = json.dumps(tomllib.loads(text), sort_keys=True, default=str)
    return hashlib.sha256(canonical.encode()).hexdigest()


# --- data -----------------------------------------------------------------------------

_opened: set[str] = set()
_watched: list[Path] = []


def file_hash(path: Path) -> str | None:
    """Return the SHA-256 of a file; None if there is no such file."""
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else None


def _watch(event: str, arguments: tuple) -> None:
    """Record a file of data that is opened for reading: an audit hook of `sys`.

    The file's path is added to the set ``_opened`` if it lies in a folder of ``_watched``.

    Parameters
    ----------
    event : str
        Others than "open" are ignored.
    arguments : tuple
        Of "open": the path, the mode, the flags (an int, or None).
    """
    if event != "open" or not isinstance(arguments[0], (str, bytes, os.PathLike)):
        return
    flags = arguments[2]
    if flags is not None and flags & (os.O_WRONLY | os.O_RDWR):
        return
    path = Path(os.path.realpath(os.fsdecode(arguments[0])))
    if any(path.is_relative_to(folder) for folder in _watched):
        _opened.add(str(path))


def _announce_weights() -> None:
    """Make safetensors, which opens files without Python, raise the audit event "open".

    Its function ``safe_open`` is replaced by one that does, in the library and in each
    loaded module of `lmcourse` and `studies` that has imported it.
    """
    import safetensors

    original = safetensors.safe_open

    def safe_open(filename, *arguments, **options):
        """Raise the audit event "open", then return what `safetensors.safe_open` returns.

        ``filename`` : str or path; ``arguments`` and ``options`` are handed on.
        """
        sys.audit("open", os.fspath(filename), None, os.O_RDONLY)
        return original(filename, *arguments, **options)

    safetensors.safe_open = safe_open
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] in PACKAGES and hasattr(module, "safe_open"):
            module.safe_open = safe_open


@contextmanager
def recording(data: Path) -> Iterator[dict[str, str | None]]:
    """Record which files of data are read inside a ``with``, or were in an earlier one.

    Python tells an audit hook of each file that it opens, and the hook keeps the path;
    `_announce_weights` sees to it that the hook is told of files of weights, too. Those of
    earlier recordings count because a cached function (`functools.cache`) does not open its
    file again. So a process stores one study only (`studies.running.need_own_process`).

    Parameters
    ----------
    data : Path
        The folder of corpora, checkpoints and stored studies.

    Yields
    ------
    dict of str to str or None
        Path below ``data`` → SHA-256 of the file; None if it is there no longer. Empty
        until the ``with`` ends.
    """
    if not _watched:
        sys.addaudithook(_watch)  # it cannot be removed again
        _announce_weights()
    folder = data.resolve()
    files = {}
    _watched[:] = [folder]
    try:
        yield files
    finally:
        for path in map(Path, sorted(_opened)):
            if path.is_relative_to(folder):
                files[path.relative_to(folder).as_posix()] = file_hash(path)
        _watched[:] = [Path(os.devnull)]


# --- the comparison -------------------------------------------------------------------


def changed(record: dict, study: ModuleType, data: Path) -> list[str]:
    """Return what has changed since a record was made.

    Parameters
    ----------
    record : dict
        As they were: ``modules``, dotted name → hash of its program, and ``data``, path
        below the folder → SHA-256 of the file.
    study : module
        The study that rests on them.
    data : Path
        The folder of data.

    Returns
    -------
    list of str
        Dotted names of modules that have changed, are new or gone; then paths of files,
        beginning with "data/".
    """
    now = modules_of(study)
    names = sorted(record["modules"].keys() | now.keys())
    modules = [name for name in names if record["modules"].get(name) != now.get(name)]
    files = [
        f"data/{path}"
        for path, old in record["data"].items()
        if file_hash(data / path) != old
    ]
    return modules + files
