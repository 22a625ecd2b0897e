"""Checkpoints that are whole or absent, whenever the process dies.

A checkpoint is one safetensors file (`lmcourse.weights.save_model`): the weights under
``model.``, what the optimizers keep of them under ``optimizer.``, and the record of the run
as JSON in the metadata. A finished model is such a file without an optimizer.
"""

import os
from dataclasses import asdict
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
STATE_KEYS = {Muon: ("average",), torch.optim.AdamW: ("exp_avg", "exp_avg_sq", "step")}


def describe(trainer, alphabet, corpus):
    """Return the record that is saved with a checkpoint.

    Parameters
    ----------
    trainer : Trainer
        With the GPT, ``gpt``, the TrainingConfig, ``config``, and the Progress.
    alphabet : str
        Of the tokenizer.
    corpus : str
        The fingerprint of the text (`lmcourse.data.fingerprint`), its SHA-256.

    Returns
    -------
    dict
        ``model`` and ``training``, the fields of both configurations; ``alphabet``;
        ``corpus_sha256``; ``progress``, the fields of the trainer's progress; ``threads``;
        ``torch``, its version.
    """
    return {
        "model": asdict(trainer.gpt.config),
        "training": asdict(trainer.config),
        "alphabet": alphabet,
        "corpus_sha256": corpus,
        "progress": asdict(trainer.progress),
        "threads": torch.get_num_threads(),
        "torch": torch.__version__,
    }


def save(path, trainer, alphabet, corpus):
    """Write the trainer's state to a safetensors file, in the place of the one before it.

    It holds the weights under ``model.``, what the optimizers keep of each under
    ``optimizer.``, and a record (`describe`) as JSON in the metadata.

    Parameters
    ----------
    path : path
    trainer : Trainer
        With the GPT, ``gpt``, the TrainingConfig, ``config``, the ``progress`` and the
        ``optimizers``.
    alphabet : str
        Of the tokenizer.
    corpus : str
        The fingerprint of the text (`lmcourse.data.fingerprint`), its SHA-256.

    Raises
    ------
    OSError
        If it cannot be written (a full disk); the checkpoint before it is still there.
    """
    optimizer_state = {
        name: state[weight][key]
        for state, weight, key, name in _optimizer_state(trainer)
        if weight in state  # once a step is taken
    }
    record = describe(trainer, alphabet, corpus)
    save_model(path, trainer.gpt, record, optimizer_state)


def restore(path, trainer, corpus):
    """Bring a trainer to where a checkpoint was written: weights, optimizers and progress.

    Parameters
    ----------
    path : path
    trainer : Trainer
        New, with the configurations of the run it resumes.
    corpus : str
        The text's fingerprint, its SHA-256 (`lmcourse.data.fingerprint`).

    Raises
    ------
    OSError, ValueError
        If the checkpoint cannot be read, is damaged, or from another configuration or
        corpus; the trainer is as it was.
    """
    record = read_record(path)
    if record.get("corpus_sha256") != corpus:  # it decides the vocabulary: the first to ask
        raise ValueError(f"{path} was trained on another corpus than the one given")
    for part, config in (("model", trainer.gpt.config), ("training", trainer.config)):
        _check_same_settings(path, record, part, config)
    progress = _make(path, record, "progress", Progress)
    weights = trainer.gpt.state_dict()
    shapes = {f"model.{name}": weight.shape for name, weight in weights.items()}
    optimizer_state = list(_optimizer_state(trainer)) if progress.step else []
    for _, weight, key, name in optimizer_state:
        shapes[name] = () if key == "step" else weight.shape
    tensors = read_weights(path, shapes)
    for _, _, key, name in optimizer_state:
        if key == "step" and tensors[name] != progress.step:
            raise ValueError(
                f"{path}: {name} is not the step {progress.step} of its record"
            )
    # Everything is checked: from here on the trainer changes.
    trainer.gpt.load_state_dict({name: tensors[f"model.{name}"] for name in weights})
    for state, weight, key, name in optimizer_state:
        state[weight][key] = tensors[name].to(weight.device)
    trainer.progress = progress


def _check_same_settings(path, record, part, config):
    """Raise ValueError if a run was trained with other settings than those given.

    Parameters
    ----------
    path : path
        The checkpoint's, for the message.
    record : dict
        Its record: a key, such as "model" → the fields of a configuration, a dict.
    part : str
        The key of the record under which settings of this kind stand: "model" or
        "training".
    config : dataclass
        The settings given: a GPTConfig or a TrainingConfig.
    """
    stored = asdict(_make(path, record, part, type(config)))
    for name, value in asdict(config).items():
        if stored[name] != value:
            raise ValueError(
                f"{path} was trained with {name} = {stored[name]!r}, not {value!r}: "
                "resume with the same settings, or train to another file"
            )


def _make(path, record, part, kind):
    """Make the settings, or the progress, that stand under a key of a checkpoint's record.

    Parameters
    ----------
    path : path
        The checkpoint's, for the message.
    record : dict
        Its record: key → the fields, a dict.
    part : str
        The key: "model", "training" or "progress".
    kind : type
        What is made of the fields: GPTConfig, TrainingConfig or Progress.

    Returns
    -------
    GPTConfig, TrainingConfig or Progress
        Of the kind that was asked for.

    Raises
    ------
    ValueError
        If the key is missing, or what stands there does not fit.
    """
    try:
        return kind(**record[part])
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ValueError(f"the record in {path} has a wrong {part!r}: {error}") from error


def _optimizer_state(trainer):
    """Yield what the optimizers keep of each weight.

    Parameters
    ----------
    trainer : Trainer
        With the optimizers and the GPT.

    Yields
    ------
    state : dict
        The optimizer's: weight → key → Tensor. Before the first step it lacks the weight.
    weight : Parameter
    key : str
        As the optimizer calls it: "exp_avg", "exp_avg_sq" or "step" of AdamW, "average" of
        Muon. A step is one number, the others have the shape of the weight.
    name : str
        Of the tensor in a checkpoint, such as "optimizer.tokens.weight.exp_avg".
    """
    names = {weight: name for name, weight in trainer.gpt.named_parameters()}
    for optimizer in trainer.optimizers:
        for group in optimizer.param_groups:
            for weight in group["params"]:
                for key in STATE_KEYS[type(optimizer)]:
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
        Where to compute. Default: ``LMCOURSE_DEVICE``, else the best of CUDA, MPS and CPU.

    Returns
    -------
    tokenizer : CharTokenizer or lmcourse.gpt.gpt2.WrappedTokenizer
        Both have ``encode``, ``decode`` and ``vocab_size``.
    model : GPT
        In evaluation mode.
    record : dict
        Its ``name`` and ``model``, the fields of its GPTConfig. Of one of ours how it was
        trained, as `describe` has it; of a GPT-2 its ``folder``.

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
    """Load a GPT from a checkpoint of the course's own form.

    Parameters
    ----------
    path : path
    device : str or torch.device, optional
        Where to compute. Default: ``LMCOURSE_DEVICE``, else the best of CUDA, MPS and CPU.

    Returns
    -------
    tokenizer : CharTokenizer
    model : GPT
        In evaluation mode, on the device.
    record : dict
        ``name``, that of the file without its ending; ``model``, the fields of the
        GPTConfig; ``alphabet``; and what else the file's record says of the training.

    Raises
    ------
    OSError
        If the file cannot be opened.
    ValueError
        If it is damaged, its record or its weights do not fit, or the device cannot be
        used.
    """
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
        config.layers + len(config.ngrams) + config.previous_tokens,
        spare=lambda name: name.startswith("optimizer."),
    )
    record["name"] = path.stem
    return CharTokenizer(alphabet), model.to(pick_device(device)), record
