"""What a study's results rest on, and whether it is still as it was.

- **Code**: the modules of `lmcourse` and `studies` that a study imports, and those that
  they import. Each has a hash of its program, without comments, docstrings and what a
  study claims.
- **Files of data**: those that its runs opened, corpora and weights, each with its hash.

They are recorded while a study runs (`recording`) and stored with its results as
``rests_on``. `stale` compares a record with what is there now.
"""

import ast
import hashlib
import importlib.util
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).parents[2]
PACKAGES = ("lmcourse", "studies")
CLAIMS = ("CLAIM", "RIVAL", "NULL")  # words of a study, of which no result depends


# --- code -----------------------------------------------------------------------------


def code_hash(source: str) -> str:
    """Return a hash of a program: of what it does, not of what it says."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list) and body and _is_docstring(body[0]):
            body[0] = ast.Pass()
    tree.body = [node for node in tree.body if not _is_claim(node)]
    return hashlib.sha256(ast.dump(tree).encode()).hexdigest()


def _is_docstring(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _is_claim(node: ast.AST) -> bool:
    if not isinstance(node, ast.Assign):
        return False
    return ast.unparse(node.targets[0]) in CLAIMS


@cache
def module_path(name: str) -> Path | None:
    """Return the file of a module of ours by its dotted name, None if there is none."""
    if name.partition(".")[0] not in PACKAGES:
        return None
    try:
        spec = importlib.util.find_spec(name)
    except (ImportError, AttributeError):  # its parent is a module, or there is none
        return None
    return Path(spec.origin) if spec and spec.origin else None


def imports(source: str, package: str) -> Iterator[str]:
    """Yield the dotted names of what a program may import.

    Parameters
    ----------
    source : str
    package : str
        In which it stands, for relative imports.
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
    """Return the modules that a study's results rest on: name → hash of its code."""
    found: dict[str, str] = {}
    waiting = [study.__name__]
    while waiting:
        name = waiting.pop()
        path = module_path(name)
        if path is None or name in found or not path.is_file():
            continue
        source = path.read_text(encoding="utf-8")
        found[name] = code_hash(source)
        package = name if path.name == "__init__.py" else name.rpartition(".")[0]
        waiting += imports(source, package)
        while package:  # importing a module runs the packages that it stands in
            waiting.append(package)
            package = package.rpartition(".")[0]
    return dict(sorted(found.items()))


# --- data -----------------------------------------------------------------------------

_opened: set[str] = set()
_watched: list[Path] = []


def file_hash(path: Path) -> str | None:
    """Return the SHA-256 of a file, None if it is not there."""
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else None


def _watch(event: str, arguments: tuple) -> None:
    """Note a file of data that is opened for reading."""
    if event != "open" or not isinstance(arguments[0], (str, bytes, os.PathLike)):
        return
    flags = arguments[2]
    if flags is not None and flags & (os.O_WRONLY | os.O_RDWR):
        return
    path = Path(os.path.realpath(os.fsdecode(arguments[0])))
    if any(path.is_relative_to(folder) for folder in _watched):
        _opened.add(str(path))


def _announce_weights() -> None:
    """Let safetensors, which opens files beside Python, tell which."""
    import safetensors

    original = safetensors.safe_open

    def safe_open(filename, *arguments, **options):
        sys.audit("open", os.fspath(filename), None, os.O_RDONLY)
        return original(filename, *arguments, **options)

    safetensors.safe_open = safe_open
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] in PACKAGES and hasattr(module, "safe_open"):
            module.safe_open = safe_open


@contextmanager
def recording(data: Path) -> Iterator[dict[str, str | None]]:
    """Record which files of data are read meanwhile, or were in an earlier recording.

    Functions that keep what they have read (`functools.cache`) open no file again, and a
    later run rests on it all the same. So a process should run one study.

    Parameters
    ----------
    data : Path
        The folder of corpora, checkpoints and stored studies.

    Yields
    ------
    dict of str to str
        Path, below ``data`` → SHA-256; filled in at the end.
    """
    if not _watched:
        sys.addaudithook(_watch)  # which cannot be taken away again
        _announce_weights()
    folder, files = data.resolve(), {}
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
    """Return what a record rests on and is not as it was: modules, and files of data.

    Parameters
    ----------
    record : dict
        ``modules`` and ``data``, as they are stored.
    study : module
    data : Path
        The folder of data.
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
