"""What a chapter's outputs depend on, as hashes.

Two parts. The key is known before a chapter runs: its code, Python and the installed
packages. What it read while it ran (modules of the course, files of ``data``) and which of
the reader's variables it asked for (a model, a device) is recorded by
``watch/sitecustomize.py``, since no look at the code tells it.

Nothing heavy is imported here: a build that has nothing to do ends in a second.
"""

import functools
import hashlib
import json
import os
import re
import sys
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).parents[3]
PACKAGE = Path(find_spec("lmcourse").origin).parent
# The models that a reader may choose, and what stands in their place.
DEFAULTS = {
    "LMCOURSE_BERT": "the built-in all-MiniLM-L6-v2",
    "LMCOURSE_GPT": "the built-in GPT",
    "LMCOURSE_TALKER": "the built-in SmolLM2-135M-Instruct",
}
FOLDERS = ("LMCOURSE_BERT",)  # a folder alone; the others may be a file
VARIABLES = (*DEFAULTS, "LMCOURSE_DEVICE")


def build_folder(root: Path) -> Path:
    """Return the folder of site and store: ``_build``, or as ``LMBOOK_BUILD`` says."""
    return root / (os.environ.get("LMBOOK_BUILD") or "_build")


def digest(thing: object) -> str:
    """Return the SHA-256 of something that JSON can hold."""
    return hashlib.sha256(json.dumps(thing, sort_keys=True).encode()).hexdigest()


def write_whole(path: Path, content: bytes) -> None:
    """Write a file, whole or not at all."""
    part = path.with_name(f".{path.name}.part")
    part.write_bytes(content)
    part.replace(path)


def hashes(folder: Path, base: Path) -> dict[str, str]:
    """Return path, relative to ``base`` → SHA-256 of the files below a folder.

    If the folder is a file, of that.
    """
    files = (path for path in [folder, *folder.rglob("*")] if path.is_file())
    return {
        os.path.relpath(path, base): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in files
        if "__pycache__" not in path.parts
    }


@functools.cache
def installed() -> list[str]:
    """Return name and version of each installed package but those of this checkout."""
    found = {f"{each.name}=={each.version}" for each in metadata.distributions()}
    return sorted(n for n in found if not n.startswith(("lmcourse==", "lmbook==")))


# --- what the reader set ----------------------------------------------------------------


def settings() -> dict[str, str]:
    """Return the variables that are set; paths are absolute, for kernels run elsewhere.

    Raises
    ------
    FileNotFoundError
        If the folder of a model is none.
    """
    from lmcourse.models import resolve_checkpoint

    found = {name: os.environ[name] for name in VARIABLES if os.environ.get(name)}
    for name in found.keys() & DEFAULTS.keys():
        found[name] = resolve_checkpoint(found[name], file=name not in FOLDERS)
    return found


def setting_hashes() -> dict[str, str | None]:
    """Return variable → a hash of its value and the files there, None if it is not set."""
    found = dict.fromkeys(VARIABLES)
    for name, value in settings().items():
        files = hashes(Path(value), Path(value)) if os.path.isabs(value) else {}
        found[name] = digest([value, files])
    return found


def other_models() -> dict[str, str]:
    """Return variable → name for each model that is not the default one.

    The name is a path's last part, or the name on the hub.
    """
    from lmcourse.models import default_checkpoint

    found = {}
    for name, value in settings().items():
        if name in DEFAULTS and value not in ("sonnets", str(default_checkpoint())):
            short = Path(value).name.removesuffix(".safetensors")
            found[name] = short if os.path.isabs(value) else value
    return found


# --- what a chapter is made of ----------------------------------------------------------


def key(notebook) -> str:
    """Hash a chapter's code and all that it runs on but what it reads and asks for.

    ``notebook`` : NotebookNode, the chapter as `page_notebook` returns it.
    """
    import torch

    cells = (cell for cell in notebook.cells if cell.cell_type == "code")
    code = [(cell.source, list(cell.metadata.get("tags", []))) for cell in cells]
    accelerator = str(torch.accelerator.current_accelerator(check_available=True))
    own = hashes(Path(__file__).parent, Path(__file__).parent)  # what runs the cells
    return digest([code, accelerator, sys.version, installed(), own])


def course_modules() -> list[Path]:
    """Return the modules of `lmcourse`, for what may depend on any of them."""
    return sorted(PACKAGE.rglob("*.py"))


def watched(root: Path) -> list[Path]:
    """Return the folders whose files, once read, become part of what a chapter rests on.

    `lmcourse`, ``data`` and ``src/studies`` of the book in ``root`` and of this repository,
    and the book's ``chapters``: resolved and sorted.
    """
    folders = [PACKAGE]
    for base in (root, ROOT):  # a book that is not this one may have proofs of its own
        folders += [base / "data", base / "src" / "studies"]
    folders.append(root / "chapters")
    return sorted({folder.resolve() for folder in folders})


def data_folders(root: Path) -> list[Path]:
    """Return the folders ``data`` of the book in ``root`` and of this repository, sorted.

    Of what lies in them it is also noted when a chapter looks for a file, whether it is
    there or not, or lists a folder: another file there could change its outputs.
    """
    return sorted({(base / "data").resolve() for base in (root, ROOT)})


def snapshot(root: Path) -> dict[str, str]:
    """Return path, relative to ``root`` → SHA-256 of all files that are watched.

    A folder of data, its path ending in a slash, has a hash of the names in it.
    """
    base, found = root.resolve(), {}
    for folder in watched(root):
        found |= hashes(folder, base)
    for folder in data_folders(root):
        for inside in [folder, *filter(Path.is_dir, folder.rglob("*"))]:
            if inside.is_dir():
                found[f"{os.path.relpath(inside, base)}/"] = digest(
                    sorted(os.listdir(inside))
                )
    return found


def asked(log: Path) -> list[str]:
    """Return which of `VARIABLES` a chapter asked for, by its log."""
    lines = log.read_text(encoding="utf-8").split("\n")
    return [name for name in VARIABLES if name in lines]


def reads(log: Path, root: Path, before: dict[str, str]) -> dict[str, str | None]:
    """Return what a chapter read → its hash before it ran, None if it was not there.

    Parameters
    ----------
    log : Path
        As ``watch/sitecustomize.py`` wrote it.
    root : Path
    before : dict
        From `snapshot`. If a file changed since, the chapter may have read either form,
        and the hash of the old one makes it stale.
    """
    compiled = re.compile(r"__pycache__.([^.]+)\.[^/\\]+$")
    lines = {*log.read_text(encoding="utf-8").split("\n")} - {"", *VARIABLES}
    paths = {compiled.sub(r"\1.py", line) for line in lines}
    base = root.resolve()
    relative = sorted(
        os.path.relpath(path, base) + "/" * path.endswith("/") for path in paths
    )
    return {path: before.get(path) for path in relative}
