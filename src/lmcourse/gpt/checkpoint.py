"""Checkpoints that are whole or absent, whenever the process dies.

A checkpoint is one safetensors file: the weights under ``model.``, what the optimizers
keep of them under ``optimizer.``, and the record of the run as JSON in the metadata. It is
written beside its place, flushed to disk and renamed; until then the one before it stays.
A finished model is such a file without an optimizer. When read, a file is believed in
nothing: what it claims is checked before anything is allocated or overwritten.
"""

import errno
import hashlib
import json
import os
from contextlib import suppress
from dataclasses import asdict
from itertools import product
from pathlib import Path

import torch
from safetensors.torch import save as to_bytes

from lmcourse.data import corpora_folder
from lmcourse.gpt.gpt2 import load_gpt2
from lmcourse.gpt.ngrams import make_model
from lmcourse.gpt.optimizers import KEPT
from lmcourse.gpt.settings import GPTConfig
from lmcourse.gpt.trainer import Progress
from lmcourse.models import pick_device
from lmcourse.tokenization import CharTokenizer
from lmcourse.weights import parse_json, read_header, read_weights

_FULL = {errno.ENOSPC, errno.EFBIG, getattr(errno, "EDQUOT", None)}  # Windows lacks one
_PARTS = {"model": dict, "training": dict, "progress": dict, "alphabet": str}


def fingerprint(text):
    """Return the SHA-256 of a corpus, by which a resumed run knows it again."""
    return hashlib.sha256(text.encode()).hexdigest()


def describe(trainer, alphabet, corpus):
    """Return the record of a run; parameters as `save`."""
    return {
        "model": asdict(trainer.bare.config),
        "training": asdict(trainer.config),
        "alphabet": alphabet,
        "corpus_sha256": corpus,
        "progress": asdict(trainer.progress),
        "threads": torch.get_num_threads(),
        "torch": torch.__version__,
    }


def save(path, trainer, alphabet, corpus):
    """Write the trainer's state, in the place of the checkpoint before it.

    Parameters
    ----------
    path : path
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
    kept = {
        name: optimizer.state[weight][key]
        for optimizer, _, weight, key, name in _kept(trainer)
        if weight in optimizer.state  # once a step is taken
    }
    save_model(path, trainer.bare, describe(trainer, alphabet, corpus), kept)


def save_model(path, model, record, kept=()):
    """Write a model: its weights and a record of how it came about.

    The file is written beside its place, flushed, and given the path's name.

    Parameters
    ----------
    path : path
        What is there is replaced when all is written.
    model : GPT
    record : dict
        `describe`, and what else is worth keeping.
    kept : dict of str to Tensor, optional
        What the optimizers keep; a finished model has none.

    Raises
    ------
    OSError
        If it cannot be written; what was there is whole still.
    """
    path = Path(path).resolve()  # a link stays one
    beside = path.with_name(f".{path.name}.unfinished")
    tensors = _weights(model) | dict(kept)
    tensors = {name: x.detach().cpu().contiguous() for name, x in tensors.items()}
    content = to_bytes(tensors, {"record": json.dumps(record, allow_nan=False)})
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with beside.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
        _flush_names(path.parent)
    except OSError as error:
        parts = [f"{path} could not be written: {error}"]
        parts += ["what was there before is whole"] * path.is_file()
        parts += ["free some space"] * (error.errno in _FULL)
        raise OSError("; ".join(parts)) from error
    finally:
        if beside.exists():
            beside.unlink()


def _weights(model):
    return {f"model.{name}": tensor for name, tensor in model.state_dict().items()}


def _flush_names(folder):
    """Flush which files a folder has, where a system (unlike Windows) can do so."""
    with suppress(OSError):
        number = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(number)
        finally:
            os.close(number)


def read_record(path):
    """Return the shapes of a file's tensors and its record; ValueError if it has none."""
    shapes, metadata = read_header(path)
    record = parse_json(metadata.get("record", ""), f"the record in {path}")
    for part, kind in _PARTS.items():
        if not isinstance(record.get(part), kind):
            raise ValueError(f"the record in {path} has no {part!r}")
    return shapes, record


def _make(path, kind, record):
    """Make a dataclass of a part of the record; ValueError if it does not fit."""
    try:
        return kind(**record)
    except (TypeError, ValueError) as error:
        raise ValueError(f"the record in {path} cannot be right: {error}") from error


def restore(path, trainer, corpus):
    """Bring a trainer to where a checkpoint was written.

    Parameters
    ----------
    path : path
    trainer : Trainer
        New, with the configurations of the run it resumes.
    corpus : str
        The corpus's `fingerprint`.

    Raises
    ------
    OSError, ValueError
        If the checkpoint cannot be read, is damaged, or from another configuration or
        corpus; the trainer is as it was.
    """
    _, record = read_record(path)
    here = {"model": asdict(trainer.bare.config), "training": asdict(trainer.config)}
    for part, chosen in json.loads(json.dumps(here)).items():
        for name, value in chosen.items():
            if record[part].get(name) != value:
                raise ValueError(
                    f"{path} was trained with {name} = {record[part].get(name)!r}, not "
                    f"{value!r}: resume with the same settings, or train to another file"
                )
    if record.get("corpus_sha256") != corpus:
        raise ValueError(f"{path} was trained on another corpus than the one given")
    progress = _make(path, Progress, record["progress"])
    expected = {name: tensor.shape for name, tensor in _weights(trainer.bare).items()}
    kept = list(_kept(trainer)) if progress.step else []
    for *_, weight, key, name in kept:
        expected[name] = () if key == "step" else weight.shape
    tensors, states = read_weights(path, expected), {}
    for optimizer, index, _, key, name in kept:
        states.setdefault(optimizer, {}).setdefault(index, {})[key] = tensors.pop(name)
        if key == "step" and states[optimizer][index][key] != progress.step:
            raise ValueError(
                f"{path}: {name} is not the step {progress.step} of its record"
            )
    trainer.bare.load_state_dict(
        {name.removeprefix("model."): tensor for name, tensor in tensors.items()}
    )
    for optimizer, state in states.items():
        groups = optimizer.state_dict()["param_groups"]
        optimizer.load_state_dict({"state": state, "param_groups": groups})
    trainer.progress = progress


def _kept(trainer):
    """Yield what the optimizers keep: (optimizer, index, weight, key, name in a file)."""
    names = {weight: name for name, weight in trainer.bare.named_parameters()}
    for optimizer in trainer.optimizers:
        weights = [weight for group in optimizer.param_groups for weight in group["params"]]
        for (index, weight), key in product(enumerate(weights), KEPT[type(optimizer)]):
            yield optimizer, index, weight, key, f"optimizer.{names[weight]}.{key}"


def load_gpt(path=None, device=None):
    """Load a trained GPT and its tokenizer.

    Parameters
    ----------
    path : path or str, optional
        ``"sonnets"``: the model that comes with the course. A file: a checkpoint or a
        finished model of ours. A folder, or a name on the Hugging Face hub: a GPT-2 of
        ``transformers`` (`lmcourse.gpt.gpt2.load_gpt2`). Default ``LMCOURSE_GPT``, else
        ``"sonnets"``.
    device : str, optional
        Default as `lmcourse.models.pick_device`.

    Returns
    -------
    tokenizer : CharTokenizer or lmcourse.gpt.gpt2.Pieces
        Both have ``encode``, ``decode`` and ``vocab_size``.
    model : GPT
        In evaluation mode.
    record : dict
        Its ``name``, and how it was trained, if that is known.

    Raises
    ------
    OSError, ValueError
        If there is no such file or checkpoint, or it is damaged, or something else.
    """
    path = path or os.environ.get("LMCOURSE_GPT") or "sonnets"
    if path == "sonnets":
        return _load_own(corpora_folder() / "checkpoints" / "sonnets.safetensors", device)
    file = Path(path).expanduser()
    if file.is_file() or file.suffix == ".safetensors":
        return _load_own(file, device)
    return load_gpt2(path, device)


def _load_own(path, device):
    """Load a GPT from a file of ours; as `load_gpt`."""
    shapes, record = read_record(path)
    config, alphabet = _make(path, GPTConfig, record["model"]), record["alphabet"]
    if len(alphabet) != config.vocab_size or alphabet != "".join(sorted(set(alphabet))):
        raise ValueError(
            f"the record in {path} cannot be right: {len(alphabet)} characters, but "
            f"vocab_size = {config.vocab_size}, or the alphabet is not in order"
        )
    if config.layers + len(config.ngrams) > len(shapes):  # before they are built
        raise ValueError(f"{path} has fewer tensors than its record has layers")
    with torch.device("meta"):  # shapes only
        expected = {name: x.shape for name, x in _weights(make_model(config)).items()}
    strange = [n for n in shapes if n not in expected and not n.startswith("optimizer.")]
    if strange:
        raise ValueError(f"{path} holds what is no part of the model: {strange[0]}")
    tensors = read_weights(path, expected, others=True)
    if read_record(path)[1] != record:  # a run has written its next checkpoint meanwhile
        return _load_own(path, device)
    model = make_model(config)
    model.load_state_dict({name.removeprefix("model."): tensors[name] for name in expected})
    record["name"] = path.stem
    return CharTokenizer(alphabet), model.eval().to(pick_device(device)), record
