"""Checkpoints that are whole or absent, whenever the process dies.

A checkpoint is one safetensors file (`lmcourse.weights.save_model`): the weights under
``model.``, what the optimizers keep of them under ``optimizer.``, and the record of the run
as JSON in the metadata. A finished model is such a file without an optimizer.
"""

import os
from dataclasses import asdict
from itertools import product
from pathlib import Path

import torch

from lmcourse.data import corpora_folder
from lmcourse.gpt.model import GPT, GPTConfig
from lmcourse.gpt.training import Progress
from lmcourse.models import pick_device
from lmcourse.optimizers import Muon
from lmcourse.tokenization import CharTokenizer
from lmcourse.weights import load_model, read_record, read_weights, save_model

# What an optimizer keeps of each weight: of the weight's own shape, or one number.
KEPT = {Muon: ("average",), torch.optim.AdamW: ("exp_avg", "exp_avg_sq", "step")}


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
        Its `lmcourse.data.fingerprint`.

    Raises
    ------
    OSError
        If it cannot be written (a full disk); the checkpoint before it is still there.
    """
    kept = {
        name: state[weight][key]
        for state, weight, key, name in _kept(trainer)
        if weight in state  # once a step is taken
    }
    save_model(path, trainer.bare, describe(trainer, alphabet, corpus), kept)


def restore(path, trainer, corpus):
    """Bring a trainer to where a checkpoint was written.

    Parameters
    ----------
    path : path
    trainer : Trainer
        New, with the configurations of the run it resumes.
    corpus : str
        The corpus's fingerprint.

    Raises
    ------
    OSError, ValueError
        If the checkpoint cannot be read, is damaged, or from another configuration or
        corpus; the trainer is as it was.
    """
    record = read_record(path)
    for part, here in (("model", trainer.bare.config), ("training", trainer.config)):
        there = asdict(_make(path, record, part, type(here)))
        for name, value in asdict(here).items():
            if there[name] != value:
                raise ValueError(
                    f"{path} was trained with {name} = {there[name]!r}, not {value!r}: "
                    "resume with the same settings, or train to another file"
                )
    if record.get("corpus_sha256") != corpus:
        raise ValueError(f"{path} was trained on another corpus than the one given")
    progress = _make(path, record, "progress", Progress)
    weights = trainer.bare.state_dict()
    expected = {f"model.{name}": weight.shape for name, weight in weights.items()}
    kept = list(_kept(trainer)) if progress.step else []
    for _, weight, key, name in kept:
        expected[name] = () if key == "step" else weight.shape
    tensors = read_weights(path, expected)
    for _, _, key, name in kept:
        if key == "step" and tensors[name] != progress.step:
            raise ValueError(
                f"{path}: {name} is not the step {progress.step} of its record"
            )
    trainer.bare.load_state_dict({name: tensors[f"model.{name}"] for name in weights})
    for state, weight, key, name in kept:
        state[weight][key] = tensors[name].to(weight.device)
    trainer.progress = progress


def _make(path, record, part, kind):
    """Make a dataclass of a part of a record; ValueError if it does not fit."""
    try:
        return kind(**record[part])
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ValueError(f"the record in {path} has a wrong {part!r}: {error}") from error


def _kept(trainer):
    """Yield what the optimizers keep: (their state, weight, key, name in a file)."""
    names = {weight: name for name, weight in trainer.bare.named_parameters()}
    for optimizer in trainer.optimizers:
        for group in optimizer.param_groups:
            for weight, key in product(group["params"], KEPT[type(optimizer)]):
                yield optimizer.state, weight, key, f"optimizer.{names[weight]}.{key}"


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
        path = corpora_folder() / "checkpoints" / "sonnets.safetensors"
    file = Path(path).expanduser()
    if file.is_file() or file.suffix == ".safetensors":
        return _load_own(file, device)
    from lmcourse.gpt.gpt2 import load_gpt2  # brings transformers, which ours does not need

    return load_gpt2(path, device)


def _load_own(path, device):
    """Load a GPT from a file of ours; as `load_gpt`."""
    record = read_record(path)
    config = _make(path, record, "model", GPTConfig)
    alphabet = record.get("alphabet")
    if not isinstance(alphabet, str) or len({*alphabet}) != config.vocab_size:
        raise ValueError(
            f"the record in {path} cannot be right: {alphabet!r} is no alphabet of "
            f"vocab_size = {config.vocab_size} characters"
        )
    model = load_model(
        path,
        lambda: GPT(config),
        config.layers + len(config.ngrams),
        spare=lambda name: name.startswith("optimizer."),
    )
    record["name"] = path.stem
    return CharTokenizer(alphabet), model.to(pick_device(device)), record
