"""Keep the execution cache honest: a change in ``src`` or ``data`` makes pages stale.

jupyter-cache keys an executed page on its cells alone. Here each page gets a second key,
of everything else that it runs on: the modules of this package that it imports (and that
these import), the corpora, the pinned requirements and the chosen model and device. A
page whose key changed loses its cached outputs and is read again.
"""

import ast
import hashlib
import json
import os
from pathlib import Path

import jupytext
import torch
from jupyter_cache import get_cache

__all__ = ["page_key", "setup"]

PACKAGE = Path(__file__).parents[1] / "lmcourse"
ROOT = PACKAGE.parents[1]


def imported_modules(source: str) -> set[str]:
    """Return the names that Python source imports, ``a.b`` for ``from a import b``.

    Lines that are IPython's own (``%``, ``!``) are passed over.
    """
    plain = "\n".join(
        "" if line.lstrip()[:1] in "%!" else line for line in source.split("\n")
    )
    found: set[str] = set()
    for node in ast.walk(ast.parse(plain)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def package_files(modules: set[str], package: Path = PACKAGE) -> set[Path]:
    """Return the package's files behind some modules, and behind what these import."""
    todo, files = set(modules), set()
    while todo:
        parts = todo.pop().split(".")
        if parts[0] != package.name:
            continue
        path = package.joinpath(*parts[1:])
        for file in (path.with_suffix(".py"), path / "__init__.py"):
            if file.is_file() and file not in files:
                files.add(file)
                todo |= imported_modules(file.read_text(encoding="utf-8"))
    return files


def page_key(path: Path, root: Path = ROOT, package: Path = PACKAGE) -> str:
    """Hash all that a page runs on besides its own cells.

    Parameters
    ----------
    path : Path
        The chapter, as MyST.
    root : Path
        The folder of ``data`` and ``requirements.txt``.
    package : Path
        The folder of this package.
    """
    cells = jupytext.read(path, fmt="md:myst").cells
    modules: set[str] = {package.name}
    for cell in cells:
        if cell.cell_type == "code":
            modules |= imported_modules(cell.source)
    # The checks of a chapter's exercises are imported by name, when first asked for.
    modules.add(f"{package.name}.exercises.{path.stem.replace('-', '_')}")
    files = package_files(modules, package)
    files |= {file for file in (root / "data").rglob("*") if file.is_file()}
    files.add(root / "requirements.txt")
    digest = hashlib.sha256()
    for file in sorted(files):
        content = hashlib.sha256(file.read_bytes()).hexdigest()
        digest.update(f"{file.name} {content}\n".encode())
    chosen = [os.environ.get(name, "") for name in ("LMCOURSE_BERT", "LMCOURSE_DEVICE")]
    digest.update(json.dumps([*chosen, torch.cuda.is_available()]).encode())
    return digest.hexdigest()


def forget(cache_path: Path, pages: set[Path]) -> None:
    """Drop the cached outputs of some pages."""
    cache = get_cache(cache_path)
    for record in cache.list_cache_records():
        if Path(record.uri) in pages:
            cache.remove_cache(record.pk)


def _outdated(app, env, added, changed, removed):
    """Forget outputs made under another key; tell Sphinx to read those pages again.

    Two memories, because a build may be cut short: a file beside the cache says under
    which key its outputs were made, Sphinx's environment under which a page was read.
    """
    if app.config.nb_execution_mode != "cache":
        return []
    cache_path = Path(env.mystnb_config.execution_cache_path)
    memory = cache_path / "page-keys.json"
    executed = json.loads(memory.read_text()) if memory.is_file() else {}
    pages = {name: Path(env.doc2path(name)) for name in env.found_docs}
    pages = {name: path for name, path in pages.items() if path.suffix == ".md"}
    keys = {name: page_key(path) for name, path in pages.items()}
    stale = {pages[name] for name in keys if executed.get(name) != keys[name]}
    if cache_path.is_dir() and stale:
        forget(cache_path, stale)
    cache_path.mkdir(parents=True, exist_ok=True)
    memory.write_text(json.dumps(keys, indent=1))
    read = getattr(env, "lmcourse_keys", {})
    env.lmcourse_keys = keys
    return [name for name in keys if read.get(name) != keys[name]]


def setup(app) -> None:
    """Connect to Sphinx."""
    app.connect("env-get-outdated", _outdated)
