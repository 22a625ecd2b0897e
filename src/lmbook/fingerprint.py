"""Whether anything changed since the last build that ended well.

Only what can be known before torch and Sphinx are imported, which takes seconds: the
contents of all files that a build reads or leaves, what is installed, and what the reader
set. One hash of it all stands in ``_build/fingerprint``.
"""

import os
import platform
import sys
from importlib.util import find_spec
from pathlib import Path

from lmbook.execute.keys import ROOT, build_folder, digest, hashes, installed
from lmbook.publish.addresses import repository

__all__ = ["forget", "inputs", "keep", "unchanged"]

BOOK = ("chapters", "data", "_config.yml", "_toc.yml")
OURS = ("data", "pyproject.toml", "requirements.txt", "README.md", "LICENSE")


def inputs(root: Path) -> str:
    """Hash all that a build of the book in a folder depends on."""
    packages = [Path(find_spec(name).origin).parent for name in ("lmcourse", "lmbook")]
    paths = [*(root / name for name in BOOK), *(ROOT / name for name in OURS), *packages]
    variables = {k: v for k, v in os.environ.items() if k.startswith("LMCOURSE_")}
    models = [Path(v).expanduser().absolute() for v in filter(None, variables.values())]
    files = [hashes(path, root) for path in (*paths, *models)]
    machine = [platform.platform(), sorted(map(str, Path("/dev").glob("nvidia*")))]
    software = [repository(), installed(), sys.version]
    return digest([str(root.resolve()), files, variables, software, machine])


def _state(root: Path, inputs: str) -> str:
    """Hash inputs with what was made of them."""
    folder = build_folder(root)
    return digest([inputs, *(hashes(folder / n, folder) for n in ("executed", "html"))])


def unchanged(root: Path, inputs: str) -> bool:
    """Say whether the last build ended well, of these inputs, and all it left is there."""
    kept = build_folder(root) / "fingerprint"
    return kept.is_file() and kept.read_text() == _state(root, inputs)


def forget(root: Path) -> None:
    """Begin a build: until it ends well, none did."""
    (build_folder(root) / "fingerprint").unlink(missing_ok=True)


def keep(root: Path, inputs: str) -> None:
    """Note that a build ended well; ``inputs`` are those that it began with."""
    (build_folder(root) / "fingerprint").write_text(_state(root, inputs))
