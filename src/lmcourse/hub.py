"""Checkpoints by name: a local folder, or a repository on the Hugging Face hub."""

import os
import re
from contextlib import contextmanager
from pathlib import Path

from lmcourse.weights import read_json

# What is fetched of a repository: no pickle, no code.
FILES = [
    "config.json",
    "model.safetensors",
    "tokenizer.json",
    "vocab.txt",
    "vocab.json",
    "merges.txt",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
]
FALLBACK = (
    "unset LMCOURSE_BERT, LMCOURSE_GPT or LMCOURSE_TALKER (and pass no checkpoint) to use "
    "our own"
)

# ./x ../x /x ~/x a\b C:x a/b/c: no name on the hub looks like this.
_PATH = re.compile(r"[.~/]|.*\\|[A-Za-z]:|.*/.*/")


def resolve_checkpoint(name: str | os.PathLike, *, file: bool = False) -> str:
    """Return the path of a folder, or the name of a checkpoint on the hub.

    A relative folder is one seen from where the program runs. Pages run in ``chapters/``:
    whoever starts them from elsewhere hands them the absolute path that this returns.

    Parameters
    ----------
    name : str or path
        What exists is a folder. So is a path object, what begins with ``./``, ``../``,
        ``/``, ``~`` or a drive's letter, and what has a backslash or more than one slash;
        it must exist. Anything else is a name on the hub.
    file : bool
        Whether a file may stand in a folder's place.

    Returns
    -------
    str
        The absolute path of a folder (or file), or the name as it was.

    Raises
    ------
    FileNotFoundError
        If what looks like a folder is none, naming the absolute path that was tried.
    """
    folder = Path(name).expanduser().absolute()
    if folder.is_dir() or (file and folder.is_file()):
        return str(folder)
    is_path = isinstance(name, os.PathLike) or _PATH.match(name.partition("@")[0])
    if folder.exists() or is_path:
        raise FileNotFoundError(f"{os.fspath(name)!r} is no folder: {folder} was tried")
    return name


def checkpoint_folder(name: str | os.PathLike) -> Path:
    """Return the folder of a checkpoint, fetched from the hub if it is a name there.

    Fetched are the configuration, ``model.safetensors`` and the files of the tokenizer; no
    pickle and no code.

    Parameters
    ----------
    name : str or path
        A folder, or the name of a repository on the hub; ``name@revision`` for one state of
        it.

    Raises
    ------
    OSError
        If there is no such folder, and the hub does not give it.
    """
    name = resolve_checkpoint(name)
    if Path(name).is_dir():
        return Path(name)
    from huggingface_hub import snapshot_download

    repository, _, revision = name.partition("@")
    try:
        folder = snapshot_download(
            repository, revision=revision or None, allow_patterns=FILES
        )
    except (OSError, ValueError) as error:
        raise OSError(
            f"{name!r} could not be loaded: there is no folder {Path(name).absolute()}, "
            f"and the hub does not give it: {error}\nCheck the name and the network, or "
            f"{FALLBACK}."
        ) from error
    return Path(folder)


def read_config(path, architecture, make):
    """Return the configuration that a checkpoint's ``config.json`` describes.

    Parameters
    ----------
    path : path
    architecture : dict of str to object
        The value that each of these entries must have. ``model_type`` must be in the file;
        the others may be missing.
    make : callable
        From the entries of the file, a dict, to the configuration. Whatever it raises
        becomes a ValueError that names the file.

    Returns
    -------
    object
        What ``make`` returned.

    Raises
    ------
    OSError, ValueError
        If the file cannot be read, or describes another architecture or a model that
        cannot be made.
    """
    entries = {"model_type": None} | read_json(path)
    for name, value in architecture.items():
        if entries.get(name, value) != value:
            raise ValueError(
                f"{path}: {name} is {entries[name]!r}, not {value!r}; these chapters take "
                f"a {architecture['model_type']} apart. Name one, or {FALLBACK}."
            )
    try:
        return make(entries)
    except Exception as error:  # of many kinds, for one wrong value each
        kind = architecture["model_type"]
        raise ValueError(f"{path} describes no {kind}: {error!r}") from error


@contextmanager
def silent_transformers():
    """Keep progress bars and reports off a page, inside a ``with``."""
    from transformers.utils import logging  # slow to import

    verbosity = logging.get_verbosity()
    had_bars = logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(verbosity)
        if had_bars:
            logging.enable_progress_bar()
