"""Checkpoints that are whole or absent, whenever the process dies.

A checkpoint is a folder with ``model.safetensors``, ``optimizer.safetensors`` and
``training.json``. It is written under another name, flushed to disk and renamed when
complete; only then does the one before it go.
"""

import errno
import hashlib
import json
import os
import re
import shutil
import tempfile
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

from safetensors import SafetensorError
from safetensors.torch import load, save_file

from lmcourse.data import corpora_folder
from lmcourse.gpt.model import GPT, GPTConfig
from lmcourse.gpt.trainer import Progress
from lmcourse.models import pick_device
from lmcourse.tokenization import CharTokenizer

__all__ = [
    "check_target",
    "describe",
    "fingerprint",
    "latest",
    "load_gpt",
    "restore",
    "save",
    "save_model",
]

MODEL_FILES = ("model.safetensors", "training.json")
_STEP = re.compile(r"step-(\d{7,})")
_OURS = re.compile(_STEP.pattern + r"(\.tmp-\w+)?")  # and what a death left behind
_FULL = {errno.ENOSPC, errno.EFBIG, getattr(errno, "EDQUOT", None)}  # Windows lacks one
_PARTS = {"model": dict, "training": dict, "progress": dict, "alphabet": str}


def fingerprint(text):
    """Return the SHA-256 of a corpus, by which a resumed run knows it again."""
    return hashlib.sha256(text.encode()).hexdigest()


def latest(folder):
    """Return the newest whole checkpoint below a folder, or None."""
    found = [path for path in Path(folder).glob("step-*") if _STEP.fullmatch(path.name)]
    return max(found, key=lambda path: int(path.name[5:]), default=None)


def save(folder, trainer, alphabet, corpus):
    """Write the trainer's state below a folder, then remove the checkpoint before it.

    Parameters
    ----------
    folder : path
    trainer : Trainer
    alphabet : str
        Of the tokenizer.
    corpus : str
        Its `fingerprint`.

    Raises
    ------
    OSError
        If it cannot be written (a full disk); the checkpoint before it is still there.
    """
    target = Path(folder) / f"step-{trainer.progress.step:07d}"
    model, optimizer = trainer.bare.state_dict(), _flatten(trainer.optimizers)
    record = describe(trainer, alphabet, corpus)
    try:
        _write(target, record, {"model": _cpu(model), "optimizer": optimizer})
    except (OSError, SafetensorError) as error:
        raise OSError(_unwritten(f"checkpoint {target}", error, latest(folder))) from error
    for path in Path(folder).glob("step-*"):
        if path.name != target.name and _OURS.fullmatch(path.name):
            shutil.rmtree(path, ignore_errors=True)  # if it stays, the next save tries


def describe(trainer, alphabet, corpus):
    """Return what ``training.json`` says of a run; parameters as `save`."""
    return {
        "model": asdict(trainer.bare.config),
        "training": asdict(trainer.config),
        "alphabet": alphabet,
        "corpus_sha256": corpus,
        "progress": asdict(trainer.progress),
    }


def save_model(folder, model, record):
    """Write a finished model: its weights and a record of how it came about.

    Parameters
    ----------
    folder : path
        As `check_target`. What is there is replaced when all is written.
    model : GPT
    record : dict
        `describe`, and what else is worth keeping.

    Raises
    ------
    OSError
        If it cannot be written; what was there is whole still, if nothing newer is.
    ValueError
        As `check_target`.
    """
    target = Path(folder).resolve()
    check_target(target)
    try:
        _write(target, record, {"model": _cpu(model.state_dict())})
    except (OSError, SafetensorError) as error:
        raise OSError(_unwritten(f"model {target}", error)) from error


def check_target(folder, run=None):
    """Raise ValueError where writing a model would cost something else.

    Parameters
    ----------
    folder : path
        Has to be absent, or empty, or hold the two files of a model and no more.
    run : path, optional
        A folder of checkpoints, which it may neither be, nor lie in, nor have in it.
    """
    target = Path(folder).resolve()
    if target.exists():
        if not target.is_dir():
            raise ValueError(f"{folder} is there already, and is no folder")
        for path in sorted(target.iterdir()):
            if path.name not in MODEL_FILES or not path.is_file():
                raise ValueError(
                    f"{folder} holds {path.name}, which a model written there would "
                    "replace: choose another folder"
                )
    if run is not None:
        run = Path(run).resolve()
        if target.is_relative_to(run) or run.is_relative_to(target):
            raise ValueError(
                f"{folder} and the folder of the run's checkpoints, {run}, are one or lie "
                "one in the other: choose another folder"
            )


def _write(target, record, tensors):
    """Write a folder beside the target, flush it, and give it the target's name."""
    target.parent.mkdir(parents=True, exist_ok=True)
    work = Path(tempfile.mkdtemp(prefix=f"{target.name}.tmp-", dir=target.parent))
    building, replaced = work / "new", work / "old"
    try:
        building.mkdir()
        for name, state in tensors.items():
            save_file(state, building / f"{name}.safetensors")
        text = json.dumps(record, indent=1, ensure_ascii=False) + "\n"
        (building / "training.json").write_text(text, encoding="utf-8")
        for path in building.iterdir():
            with path.open("rb+") as file:  # Windows flushes only what may be written
                os.fsync(file.fileno())
        _flush_names(building)
        if target.exists():  # out of the way first: a folder can't replace another
            target.rename(replaced)
        building.rename(target)
        _flush_names(target.parent)
    except (OSError, SafetensorError, KeyboardInterrupt):
        if not target.exists():
            with suppress(OSError):  # where there was none, there is none to put back
                replaced.rename(target)
        if target.exists() or not replaced.exists():  # else it is all that is left
            shutil.rmtree(work, ignore_errors=True)
        raise
    shutil.rmtree(work, ignore_errors=True)


def _flush_names(folder):
    """Flush which files a folder has, where a system (unlike Windows) can do so."""
    try:
        number = os.open(folder, os.O_RDONLY)
    except OSError:
        return
    try:
        os.fsync(number)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.EBADF):  # not for folders, it says
            raise
    finally:
        os.close(number)


def _unwritten(what, error, kept=None):
    """Say what could not be written, what is left, and what may help."""
    full = isinstance(error, SafetensorError) or error.errno in _FULL
    parts = [f"the {what} could not be written: {error}"]
    if kept:
        parts.append(f"{kept} is whole")
    if full or kept:
        parts.append(" and ".join(["free some space"] * full + ["resume"] * bool(kept)))
    return "; ".join(parts)


def _cpu(state):
    return {name: tensor.detach().cpu().contiguous() for name, tensor in state.items()}


def _flatten(optimizers):
    """Name every tensor of the optimizers' states ``optimizer.parameter.key``."""
    return {
        f"{number}.{index}.{key}": tensor.detach().cpu().contiguous()
        for number, optimizer in enumerate(optimizers)
        for index, state in optimizer.state_dict()["state"].items()
        for key, tensor in state.items()
    }


def _read(folder, name):
    """Read a part of a checkpoint; ValueError says which file is missing or damaged."""
    path = Path(folder) / name
    try:
        if name.endswith(".json"):
            return json.loads(path.read_text(encoding="utf-8"))
        return load(path.read_bytes())  # not mapped: the file will be removed
    except (OSError, ValueError, SafetensorError) as error:
        raise ValueError(f"the checkpoint file {path} cannot be read: {error}") from error


def _read_record(folder):
    """Read ``training.json``; ValueError if it is no record of a run."""
    record = _read(folder, "training.json")
    for part, kind in _PARTS.items():
        if not isinstance(record, dict) or not isinstance(record.get(part), kind):
            raise _unreadable(folder, f"no {part!r} in it")
    return record


def _unreadable(folder, why):
    path = Path(folder) / "training.json"
    return ValueError(f"the checkpoint file {path} cannot be read: {why}")


def _make(folder, kind, record):
    """Make a dataclass of a part of the record; ValueError if it does not fit."""
    try:
        return kind(**record)
    except (TypeError, ValueError) as error:
        raise _unreadable(folder, error) from error


def _read_weights(folder, model):
    """Read a model's weights; ValueError if they are not of this one."""
    weights, own = _read(folder, "model.safetensors"), model.state_dict()
    shapes = [{name: x.shape for name, x in state.items()} for state in (weights, own)]
    if shapes[0] != shapes[1]:
        path = Path(folder) / "model.safetensors"
        raise ValueError(f"the checkpoint file {path} cannot be read: not of this model")
    return weights


def restore(folder, trainer, corpus):
    """Bring a trainer to where a checkpoint was written.

    Parameters
    ----------
    folder : path
        From `latest`.
    trainer : Trainer
        New, with the configurations of the run it resumes.
    corpus : str
        The corpus's `fingerprint`.

    Raises
    ------
    ValueError
        If the checkpoint is damaged, or from another configuration or corpus.
    """
    record = _read_record(folder)
    here = {
        "model": json.loads(json.dumps(asdict(trainer.bare.config))),
        "training": asdict(trainer.config),
    }
    for part, chosen in here.items():
        for name, value in chosen.items():
            if record[part].get(name) != value:
                raise ValueError(
                    f"{folder} was trained with {name} = {record[part].get(name)!r}, not "
                    f"{value!r}: resume with the same settings, or train in another folder"
                )
    if record.get("corpus_sha256") != corpus:
        raise ValueError(f"{folder} was trained on another corpus than the one given")
    progress = _make(folder, Progress, record["progress"])
    weights = _read_weights(folder, trainer.bare)
    flat = _read(folder, "optimizer.safetensors")
    trainer.bare.load_state_dict(weights)
    for number, optimizer in enumerate(trainer.optimizers):
        state = {}
        for name, tensor in flat.items():
            owner, index, key = name.split(".")
            if int(owner) == number:
                state.setdefault(int(index), {})[key] = tensor
        groups = optimizer.state_dict()["param_groups"]
        optimizer.load_state_dict({"state": state, "param_groups": groups})
    trainer.progress = progress


def load_gpt(folder="sonnets", device=None):
    """Load a trained GPT and its tokenizer.

    Parameters
    ----------
    folder : path or {"sonnets"}
        A run's folder, one of its checkpoints, or the model that comes with the course.
    device : str, optional
        Default as `lmcourse.models.pick_device`.

    Returns
    -------
    tokenizer : CharTokenizer
    model : GPT
        In evaluation mode.
    record : dict
        How it was trained.

    Raises
    ------
    ValueError
        If there is no checkpoint, or it is damaged.
    """
    if folder == "sonnets":
        folder = corpora_folder() / "checkpoints" / "sonnets"
    folder = latest(folder) or folder
    record = _read_record(folder)
    config, alphabet = _make(folder, GPTConfig, record["model"]), record["alphabet"]
    if len(alphabet) != config.vocab_size:
        raise _unreadable(
            folder, f"{len(alphabet)} characters, but vocab_size = {config.vocab_size}"
        )
    tokenizer = CharTokenizer(alphabet)
    if tokenizer.alphabet != alphabet:
        raise _unreadable(folder, "the alphabet is not in order, or has a letter twice")
    model = GPT(config)
    model.load_state_dict(_read_weights(folder, model))
    return tokenizer, model.eval().to(pick_device(device)), record
