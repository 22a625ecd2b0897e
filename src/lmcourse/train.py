"""``python -m lmcourse.train``: train a small GPT from the command line.

Several processes, with the same options: ``torchrun --nproc-per-node 2 -m lmcourse.train``.
"""

import argparse
import json
import sys
from contextlib import nullcontext, suppress
from dataclasses import fields

import torch

from lmcourse.arguments import path_argument
from lmcourse.data import POEMS, fingerprint, load_corpus, load_texts, train_val_test_split
from lmcourse.files import locked
from lmcourse.gpt import checkpoints
from lmcourse.gpt.model import GPT, GPTConfig
from lmcourse.gpt.training import Diverged, Trainer, TrainingConfig, split
from lmcourse.tokenization import CharTokenizer
from lmcourse.weights import read_record, save_model

# What `fast` changes, one idea at a time: each can be left out, to see what it is worth.
IDEAS = {
    "ngrams": {"ngrams": (4096, 6144)},  # a table does what layers would learn slowly
    "rotary": {"positions": "rotary"},
    "small": {"layers": 2, "heads": 2, "d_model": 64},
    "muon": {"optimizer": "muon"},
    "high_lr": {"learning_rate": 2e-2, "warmup": 10},  # tables of vectors bear large steps
    "batch": {"batch": 24},
    "short": {"steps": 200},
}
PRESETS = {"classic": (), "fast": tuple(IDEAS)}


def recipe(preset, vocab_size, without=(), /, **changes):
    """Return the configurations of a model and of its training.

    Parameters
    ----------
    preset : {"classic", "fast"}
        ``"classic"`` is what both have as defaults; ``"fast"`` changes that by seven ideas.
    vocab_size : int
    without : iterable of str
        Ideas that ``fast`` shall do without: "ngrams" (tables of n-grams), "rotary"
        (positions), "small" (a smaller model), "muon" (the optimizer), "high_lr", "batch"
        (a larger one), "short" (200 steps).
    **changes
        Sizes of the model and settings of the training to set otherwise (fields of
        `GPTConfig` and `TrainingConfig`).

    Returns
    -------
    model : GPTConfig
    training : TrainingConfig

    Raises
    ------
    ValueError
        If there is no such preset, no such idea in it, no such field, or a value is wrong.
    """
    if preset not in PRESETS or set(without) - set(PRESETS[preset]):
        raise ValueError(f"no {preset!r} without {without}; ideas by preset: {PRESETS}")
    chosen = {}
    for idea in PRESETS[preset]:
        if idea not in without:
            chosen |= IDEAS[idea]
    chosen |= changes
    names = [field.name for field in fields(GPTConfig)]
    sizes = {name: chosen.pop(name) for name in names if name in chosen}
    return GPTConfig(vocab_size, **sizes), TrainingConfig(**chosen)


def new_run(text, preset="fast", without=(), device=None, parts=None, **changes):
    """Return a tokenizer made of a text, and a trainer of a new model on it.

    Parameters
    ----------
    text : str
        The whole corpus: its characters are the vocabulary.
    preset : str
        "classic" or "fast": which sizes and settings to begin with.
    without : collection of str
        Ideas of "fast" to leave out: "ngrams", "rotary", "small", "muon", "high_lr",
        "batch", "short" (`IDEAS` has the settings that each changes).
    device : str, optional
        Where to compute. Default: ``LMCOURSE_DEVICE``, else the best of CUDA, MPS and CPU.
    parts : lmcourse.data.Parts, optional
        What to train and to estimate on, its ``training`` and ``validation``, str each; by
        default the text up to its last tenth, and that tenth.
    **changes
        Sizes of the model and settings of the training with other values (fields of
        `GPTConfig` and `TrainingConfig`).

    Returns
    -------
    tokenizer : CharTokenizer
    trainer : Trainer
        No step is taken yet.

    Raises
    ------
    ValueError
        If the text is empty or too short, or a setting is wrong.
    """
    tokenizer = CharTokenizer(text)
    model_config, training_config = recipe(preset, tokenizer.vocab_size, without, **changes)

    def encode(text):
        """Return the tokens of a ``text`` (str) as an int Tensor (tokens,)."""
        return torch.from_numpy(tokenizer.encode_array(text))

    if parts is None:
        training, validation = split(encode(text))
    else:
        training = encode(parts.training)
        validation = encode(parts.validation)
    torch.manual_seed(training_config.seed)
    return tokenizer, Trainer(
        GPT(model_config), training, validation, training_config, device
    )


def _setting(text):
    """Return name and value of a setting.

    ``text`` : str, ``name=value``; the value is read as JSON, or else stays a str.
    """
    name, _, value = text.partition("=")
    with suppress(ValueError):
        value = json.loads(value)
    return name, value


def parse(arguments):
    """Read the command line.

    Parameters
    ----------
    arguments : list of str, optional
        Default: those of the process.

    Returns
    -------
    argparse.Namespace
        ``corpus``, "sonnets", "poems", "tinyshakespeare" or a path, str; ``preset``, "fast"
        or "classic"; ``without``, list of str; ``set``, list of (name of a field, value);
        ``out``, Path; ``steps``, ``evaluate_every``, ``target_loss`` and ``device``, None
        if not given; ``threads``, int; ``export``, Path or None; ``resume``, bool.

    Raises
    ------
    SystemExit
        If an option is unknown, lacks its value or has a wrong one, or after ``--help``.
    """
    parser = argparse.ArgumentParser("python -m lmcourse.train", description=__doc__)
    parser.add_argument(
        "--corpus", default="sonnets", help="or poems, tinyshakespeare, a text file"
    )
    parser.add_argument("--preset", choices=PRESETS, default="fast")
    parser.add_argument(
        "--without",
        choices=IDEAS,
        action="append",
        default=[],
        help="an idea of the preset to do without; may be given again",
    )
    parser.add_argument(
        "--set",
        metavar="NAME=VALUE",
        type=_setting,
        action="append",
        default=[],
        help="another value for a field of GPTConfig or TrainingConfig, such as "
        "--set dropout=0.2; may be given again",
    )
    parser.add_argument(
        "--out", type=path_argument, required=True, help="the checkpoint, one file"
    )
    parser.add_argument("--steps", type=int)
    parser.add_argument("--evaluate-every", type=int, help="steps between checkpoints")
    parser.add_argument("--target-loss", type=float, help="stop at this validation loss")
    parser.add_argument("--device", help="cpu, cuda or mps")
    parser.add_argument(
        "--threads", type=int, default=1, help="of a CPU; 1 suits small models"
    )
    parser.add_argument(
        "--export", type=path_argument, help="the finished model alone, one file"
    )
    parser.add_argument(
        "--resume", action="store_true", help="go on where --out stands, if it is there"
    )
    return parser.parse_args(arguments)


def check(options):
    """Raise ValueError if an option is wrong or a file is in the way.

    With ``resume`` a file may be there, if it is a checkpoint or model of the course. One
    that cannot be read is an OSError.

    Parameters
    ----------
    options : argparse.Namespace
        ``set``, list of (name of a field, value); ``threads``, int; ``out`` and ``export``,
        paths, the second perhaps None; ``resume``, bool.
    """
    names = [field.name for field in (*fields(GPTConfig), *fields(TrainingConfig))]
    names.remove("vocab_size")  # it is that of the corpus
    for name, _ in options.set:
        if name not in names:
            raise ValueError(
                f"--set {name}: there is no such field, but {', '.join(names)}"
            )
    if options.threads < 1:
        raise ValueError(f"{options.threads} threads cannot compute: 1 or more, please")
    if options.export and options.export.resolve() == options.out.resolve():
        raise ValueError(f"{options.export} is the checkpoint: export to another file")
    for path in filter(None, (options.out, options.export)):
        if path.is_dir():
            raise ValueError(
                f"{path} is a folder: name a file in it, such as {path / 'run.safetensors'}"
            )
        if path.exists() and not options.resume:
            raise ValueError(f"{path} is there already: add --resume, or name another file")
        if path.exists():
            read_record(path)  # a file of another kind is not replaced


def summary(trainer, target=None):
    """Return what the last line of output says.

    Parameters
    ----------
    trainer : Trainer
        With one estimate at least in its ``history``.
    target : float, optional
        The validation loss at which to stop.

    Returns
    -------
    dict
        ``val_loss``, the last validation loss in nats a token; ``train_seconds``; ``steps``
        taken; ``parameters``, how many the model has; ``tokens_per_second``; ``device``, a
        str; ``processes``, how many; and, only if there is a target, ``reached``, a bool.
    """
    loss = trainer.history[-1]["val_loss"]
    result = {
        "val_loss": loss,
        "train_seconds": trainer.progress.seconds,
        "steps": trainer.progress.step,
        "parameters": trainer.gpt.parameters_count,
        "tokens_per_second": trainer.tokens_per_second,
        "device": str(trainer.accelerator.device),
        "processes": trainer.accelerator.num_processes,
    }
    if target is not None:
        result["reached"] = loss <= target
    return result


def train(options):
    """Train as the options say, from the start or, if there is one, from the checkpoint.

    A checkpoint is written to ``out`` after each estimate; at the end a line of JSON with
    the result is printed (`summary`), and the finished model is written to ``export``, if
    that is given. Errors are raised: Diverged, OSError, ValueError.

    Parameters
    ----------
    options : argparse.Namespace
        The options of ``python -m lmcourse.train``: ``corpus``, ``preset``, ``without``,
        ``set`` (list of name and value), ``out``, ``steps``, ``evaluate_every``,
        ``target_loss``, ``device``, ``threads``, ``export`` and ``resume``.
    """
    check(options)
    torch.set_num_threads(options.threads)
    changes = dict(options.set)
    if options.steps is not None:
        changes["steps"] = options.steps
    if options.evaluate_every is not None:
        changes["evaluate_every"] = options.evaluate_every
    text = load_corpus(options.corpus)
    parts = None
    if options.corpus in POEMS:
        parts = train_val_test_split(load_texts(options.corpus))
    corpus = fingerprint(text)
    tokenizer, trainer = new_run(
        text, options.preset, options.without, options.device, parts, **changes
    )
    is_main = trainer.accelerator.is_main_process

    def save(trainer):
        """Write a checkpoint of a `Trainer`, in the main process only.

        ``trainer`` holds model, optimizers and progress.
        """
        if is_main:
            checkpoints.save(options.out, trainer, tokenizer.alphabet, corpus)

    try:
        with locked(options.out) if is_main else nullcontext():
            if options.out.exists():
                checkpoints.restore(options.out, trainer, corpus)
            trainer.run(options.target_loss, on_estimate=save)
        if is_main:
            result = summary(trainer, options.target_loss)
            print(json.dumps(result), flush=True)
            if options.export:
                record = checkpoints.describe(trainer, tokenizer.alphabet, corpus)
                record |= {"corpus": options.corpus} | result
                save_model(options.export, trainer.gpt, record)
    finally:
        trainer.accelerator.end_training()  # leaves the group of processes


def main(arguments=None):
    """Train; return the exit status.

    Parameters
    ----------
    arguments : list of str, optional
        Default: those of the process.

    Returns
    -------
    int
        0; 1 after an error, 130 after Ctrl-C, as a shell has it.
    """
    options = parse(arguments)
    try:
        train(options)
    except KeyboardInterrupt:
        saved = "nothing was saved"
        if options.out.exists():
            saved = f"{options.out} is whole: add --resume"
        print(f"stopped; {saved}", file=sys.stderr)
        return 130
    except (Diverged, OSError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except (MemoryError, RuntimeError) as error:
        if not is_out_of_memory(error):
            raise
        message = "there is not enough memory: lower batch, context, d_model or ngrams"
        print(f"error: {message}", file=sys.stderr)
        return 1
    return 0


def is_out_of_memory(error):
    """Return whether PyTorch or Python raises such an error for too little memory.

    Parameters
    ----------
    error : Exception

    Returns
    -------
    bool
    """
    if isinstance(error, MemoryError | torch.OutOfMemoryError):
        return True
    # PyTorch has no class for the memory of a processor; "overflow" is said of a size that
    # does not fit in 64 bits.
    words = ("not enough memory", "can't allocate memory", "overflow")
    return any(word in str(error) for word in words)


if __name__ == "__main__":
    sys.exit(main())
