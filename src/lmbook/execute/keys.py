"""Hash what a chapter's outputs depend on.

There are two parts. The key is known before a chapter runs: its code, Python and the
installed packages. What it read while it ran (modules of the course, files of ``data``) and
which of the reader's variables it asked for (a model, a device) is recorded by
``watch/sitecustomize.py``, since the code alone does not tell.

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
    """Return the folder in which builds lie, with the site and the executed notebooks.

    It is ``_build`` in the book's folder ``root``, or what the environment variable
    ``LMBOOK_BUILD`` names there; ``~`` in it is the home folder.
    """
    named = os.environ.get("LMBOOK_BUILD") or "_build"
    return root / os.path.expanduser(named)


def hash_json(value: object) -> str:
    """Return the SHA-256, in hexadecimal, of a value that JSON can represent.

    ``value`` may nest lists, dicts, strings, numbers, booleans and None.
    """
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


def hash_files(folder: Path, base: Path) -> dict[str, str]:
    """Hash all files below a folder, those in ``__pycache__`` left out.

    Parameters
    ----------
    folder : Path
        It may also be a single file, or not exist.
    base : Path
        What the paths in the result are relative to.

    Returns
    -------
    dict of str to str
        Path → SHA-256 in hexadecimal.
    """
    files = (path for path in [folder, *folder.rglob("*")] if path.is_file())
    return {
        os.path.relpath(path, base): _hash_file(path)
        for path in files
        if "__pycache__" not in path.parts
    }


def _hash_file(path: Path) -> str:
    """Return a file's SHA-256 in hexadecimal; a model's file may be larger than memory."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@functools.cache
def installed_packages() -> list[str]:
    """Return "name==version" of each installed package, sorted; found out once.

    `lmcourse` and `lmbook`, the packages of this repository, are left out.
    """
    own = ("lmcourse==", "lmbook==")
    packages = {f"{each.name}=={each.version}" for each in metadata.distributions()}
    return sorted(package for package in packages if not package.startswith(own))


# --- what the reader set ----------------------------------------------------------------


def reader_settings() -> dict[str, str]:
    """Return those of the environment variables `VARIABLES` that are set.

    Returns
    -------
    dict of str to str
        Name → value. The path of a model is made absolute, since kernels run in another
        folder.

    Raises
    ------
    FileNotFoundError
        If a variable names a model's folder that does not exist.
    """
    from lmcourse.models import resolve_checkpoint

    values = {name: os.environ[name] for name in VARIABLES if os.environ.get(name)}
    for name in values.keys() & DEFAULTS.keys():
        values[name] = resolve_checkpoint(values[name], file=name not in FOLDERS)
    return values


def hash_reader_settings() -> dict[str, str | None]:
    """Hash what the reader set, with the files of the models that it names.

    Returns
    -------
    dict of str to (str or None)
        Name of each environment variable of `VARIABLES` (those of models, and of the
        device) → SHA-256 in hexadecimal of its value and, if that is a path, of the files
        there; None if it is not set.
    """
    hashes = dict.fromkeys(VARIABLES)
    for name, value in reader_settings().items():
        files = hash_files(Path(value), Path(value)) if os.path.isabs(value) else {}
        hashes[name] = hash_json([value, files])
    return hashes


def other_models() -> dict[str, str]:
    """Return the models that the reader chose in place of the default ones.

    Returns
    -------
    dict of str to str
        Environment variable, such as LMCOURSE_BERT → a short name of the model: the last
        part of its path, or its name on the hub. Only of those that are set to another
        model than the default one.
    """
    from lmcourse.models import default_checkpoint

    names = {}
    for variable, value in reader_settings().items():
        if variable in DEFAULTS and value not in ("sonnets", str(default_checkpoint())):
            short = Path(value).name.removesuffix(".safetensors")
            names[variable] = short if os.path.isabs(value) else value
    return names


# --- what a chapter is made of ----------------------------------------------------------


def execution_key(notebook) -> str:
    """Hash all that is known, before a chapter runs, of what its outputs depend on.

    That is the code and tags of its cells, the accelerator, the version of Python, the
    installed packages, and the files of `lmbook.execute`, byte by byte: another comment
    there makes another key. What the chapter reads while it runs is recorded then
    (`files_read`, `variables_asked_for`).

    Parameters
    ----------
    notebook : NotebookNode
        The chapter, with the cells that run its proofs; of its code cells ``source`` and
        tags count.

    Returns
    -------
    str
        A SHA-256 in hexadecimal.
    """
    import torch

    cells = (cell for cell in notebook.cells if cell.cell_type == "code")
    code = [(cell.source, list(cell.metadata.get("tags", []))) for cell in cells]
    accelerator = str(torch.accelerator.current_accelerator(check_available=True))
    own = hash_files(Path(__file__).parent, Path(__file__).parent)  # what runs the cells
    return hash_json([code, accelerator, sys.version, installed_packages(), own])


def course_modules() -> list[Path]:
    """Return the paths of all Python files of the package `lmcourse`, sorted."""
    return sorted(PACKAGE.rglob("*.py"))


def watched_folders(root: Path) -> list[Path]:
    """Return the folders in which each file that a chapter reads is recorded.

    These are `lmcourse`, ``data`` and ``src/studies`` of the book in ``root`` and of this
    repository, and the book's ``chapters``: resolved and sorted.
    """
    folders = [PACKAGE]
    for base in (root, ROOT):  # a book that is not this one may have proofs of its own
        folders += [base / "data", base / "src" / "studies"]
    folders.append(root / "chapters")
    return sorted({folder.resolve() for folder in folders})


def data_folders(root: Path) -> list[Path]:
    """Return the folders ``data`` of the book in ``root`` and of this repository, sorted.

    In these folders it is also recorded that a chapter looks for a file, whether it exists
    or not, or lists a folder: a new file there could change the chapter's outputs.
    """
    return sorted({(base / "data").resolve() for base in (root, ROOT)})


def hash_watched_files(root: Path) -> dict[str, str]:
    """Hash all that a chapter may read: `lmcourse`, studies, chapters and data.

    These are the files in `watched_folders`, and what lies in each of `data_folders`.

    Parameters
    ----------
    root : Path
        The book's folder.

    Returns
    -------
    dict of str to str
        Path relative to ``root`` → SHA-256 in hexadecimal. The path of a folder of data
        ends in a slash; hashed are the names of what lies in it.
    """
    base = root.resolve()
    hashes = {}
    for folder in watched_folders(root):
        hashes |= hash_files(folder, base)
    for folder in data_folders(root):
        for inside in [folder, *folder.rglob("*")]:
            if inside.is_dir():
                names = sorted(os.listdir(inside))
                hashes[f"{os.path.relpath(inside, base)}/"] = hash_json(names)
    return hashes


def variables_asked_for(log: Path) -> list[str]:
    """Return those of the environment variables `VARIABLES` that a chapter asked for.

    ``log`` is the file that ``watch/sitecustomize.py`` wrote while the chapter ran: a name
    of a variable, or a path that was read, looked for or listed, on each line.
    """
    lines = log.read_text(encoding="utf-8").split("\n")
    return [name for name in VARIABLES if name in lines]


def files_read(log: Path, root: Path, before: dict[str, str]) -> dict[str, str | None]:
    """Return the files that a chapter read, with their hashes from before it ran.

    Parameters
    ----------
    log : Path
        The file that ``watch/sitecustomize.py`` wrote while the chapter ran: on each line a
        path that was read or looked for, with a slash at its end if a folder was listed, or
        the name of an environment variable. A compiled module stands for its source.
    root : Path
        The book's folder.
    before : dict of str to str
        What `hash_watched_files` returned before the chapter ran. If a file changed since,
        the chapter may have read either version; the hash of the old one makes it stale.

    Returns
    -------
    dict of str to (str or None)
        Path relative to ``root``, with a slash at the end if it is a folder → SHA-256 in
        hexadecimal, None if there was no such file.
    """
    compiled_module = re.compile(r"__pycache__.([^.]+)\.[^/\\]+$")
    lines = {*log.read_text(encoding="utf-8").split("\n")} - {"", *VARIABLES}
    base = root.resolve()
    paths = set()
    for line in lines:
        path = os.path.relpath(compiled_module.sub(r"\1.py", line), base)
        paths.add(f"{path}/" if line.endswith("/") else path)
    return {path: before.get(path) for path in sorted(paths)}
