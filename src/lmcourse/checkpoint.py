"""Checkpoints that are whole or absent, whenever the process dies.

A checkpoint is a folder with ``model.safetensors``, ``optimizer.safetensors`` and
``training.json``. It is written under another name, flushed to disk and renamed when
complete; only then does the one before it go.
"""

import hashlib
import json
import os
import re
import shutil
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

from safetensors import SafetensorError
from safetensors.torch import load, save_file

from lmcourse.data import corpora_folder
from lmcourse.gpt import GPT, GPTConfig
from lmcourse.models import pick_device
from lmcourse.tokenization import CharTokenizer
from lmcourse.training import Progress

__all__ = ["describe", "fingerprint", "latest", "load_gpt", "restore", "save", "save_model"]

_STEP = re.compile(r"step-(\d{7,})")
_OURS = re.compile(_STEP.pattern + r"(\.tmp|\.old)?")  # and what a death left behind
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
    _write(target, record, {"model": _cpu(model), "optimizer": optimizer})
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
    """Write a finished model: its weights and a record of how it came about."""
    _write(Path(folder), record, {"model": _cpu(model.state_dict())})


def _write(target, record, tensors):
    """Write files beside the target, flush them, and give the folder its name."""
    building = target.with_name(target.name + ".tmp")
    replaced = target.with_name(target.name + ".old")
    try:
        shutil.rmtree(building, ignore_errors=True)
        building.mkdir(parents=True)
        for name, state in tensors.items():
            save_file(state, building / f"{name}.safetensors")
        text = json.dumps(record, indent=1, ensure_ascii=False) + "\n"
        (building / "training.json").write_text(text, encoding="utf-8")
        for path in building.iterdir():
            with path.open("rb+") as file:  # Windows flushes only what may be written
                os.fsync(file.fileno())
        if target.exists():  # out of the way first: a folder can't replace another
            shutil.rmtree(replaced, ignore_errors=True)
            target.rename(replaced)
        building.rename(target)
        shutil.rmtree(replaced, ignore_errors=True)
    except (OSError, SafetensorError) as error:
        shutil.rmtree(building, ignore_errors=True)
        if not target.exists():
            with suppress(OSError):  # where there was none, there is none to put back
                replaced.rename(target)
        kept = latest(target.parent)
        raise OSError(
            f"the checkpoint {target} could not be written: {error}. "
            + (
                f"{kept} is whole; free some space and resume"
                if kept
                else "Free some space"
            )
        ) from error


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
            path = Path(folder) / "training.json"
            raise ValueError(
                f"the checkpoint file {path} cannot be read: no {part!r} in it"
            )
    return record


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
    trainer.progress = Progress(**record["progress"])


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
    model = GPT(GPTConfig(**record["model"]))
    model.load_state_dict(_read_weights(folder, model))
    tokenizer = CharTokenizer(record["alphabet"])
    return tokenizer, model.eval().to(pick_device(device)), record
