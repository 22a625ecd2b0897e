"""``python -m lmcourse.train``: train a small GPT from the command line.

Several processes, with the same options: ``torchrun --nproc-per-node 2 -m lmcourse.train``.
"""

import argparse
import json
import sys
from contextlib import suppress
from dataclasses import fields
from pathlib import Path

import torch

from lmcourse.data import POEMS, fingerprint, load_corpus, load_texts, train_val_test_split
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
        ``"classic"`` is what both have as defaults.
    vocab_size : int
    without : iterable of str
        Names from `IDEAS` that ``fast`` shall do without.
    **changes
        Fields of `GPTConfig` and `TrainingConfig` to set otherwise.

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
    settings = {}
    for idea in PRESETS[preset]:
        settings |= {} if idea in without else IDEAS[idea]
    settings |= changes
    sizes = [x.name for x in fields(GPTConfig)]
    model = {name: settings.pop(name) for name in sizes if name in settings}
    try:
        return GPTConfig(vocab_size, **model), TrainingConfig(**settings)
    except TypeError as error:  # names the field that is not there, or given twice
        raise ValueError(f"a setting is wrong: {error}") from error


def new_run(text, preset="fast", without=(), device=None, parts=None, **changes):
    """Return a tokenizer made of a text, and a trainer of a new model on it.

    Parameters
    ----------
    text : str
        The whole corpus: its characters are the vocabulary.
    preset, without, **changes
        As `recipe`.
    device : str, optional
    parts : lmcourse.data.Parts, optional
        What to train and to estimate on; by default the text up to its last tenth, and
        that.

    Returns
    -------
    tokenizer : CharTokenizer
    trainer : Trainer

    Raises
    ------
    ValueError
        If the text is empty or too short, or a setting is wrong.
    """
    tokenizer = CharTokenizer(text)
    model, training = recipe(preset, tokenizer.vocab_size, without, **changes)

    def encoded(text):
        return torch.from_numpy(tokenizer.encode_array(text))

    halves = split(encoded(text)) if parts is None else map(encoded, parts[:2])
    torch.manual_seed(training.seed)
    return tokenizer, Trainer(GPT(model), *halves, training, device)


def _setting(text):
    """Read ``name=value``, the value as JSON or else as a word."""
    name, _, value = text.partition("=")
    with suppress(ValueError):
        value = json.loads(value)
    return name, value


def parse(arguments):
    """Read the command line."""
    parser = argparse.ArgumentParser("python -m lmcourse.train", description=__doc__)
    add = parser.add_argument
    field = "another value for a field of GPTConfig or TrainingConfig: --set dropout=0.2"
    again = {"action": "append", "default": []}
    add("--corpus", default="sonnets", help="or poems, tinyshakespeare, a text file")
    add("--preset", choices=PRESETS, default="fast")
    add("--without", choices=IDEAS, **again, help="an idea of the preset to do without")
    add("--set", metavar="NAME=VALUE", type=_setting, **again, help=field)
    add("--out", type=Path, required=True, help="the checkpoint, one file")
    add("--steps", type=int)
    add("--evaluate-every", type=int, help="steps between checkpoints")
    add("--target-loss", type=float, help="stop at this validation loss")
    add("--device", help="cpu, cuda or mps")
    add("--threads", type=int, default=1, help="of a CPU; 1 suits small models")
    add("--export", type=Path, help="the finished model alone, one file")
    add("--resume", action="store_true", help="go on where --out stands, if it is there")
    return parser.parse_args(arguments)


def check(options):
    """Raise ValueError if an option is wrong or a file is in the way."""
    if options.threads < 1:
        raise ValueError(f"{options.threads} threads cannot compute: 1 or more, please")
    if options.export and options.export.resolve() == options.out.resolve():
        raise ValueError(f"{options.export} is the checkpoint: export to another file")
    for path in filter(None, (options.out, options.export)):
        if path.exists() and not options.resume:
            raise ValueError(f"{path} is there already: add --resume, or name another file")
        if path.exists():
            read_record(path)  # a file of another kind is not replaced


def summary(trainer, target=None):
    """Return what the last line of output says."""
    loss = trainer.history[-1]["val_loss"]
    reached = {} if target is None else {"reached": loss <= target}
    return {
        "val_loss": loss,
        "train_seconds": trainer.progress.seconds,
        "steps": trainer.progress.step,
        "parameters": trainer.bare.parameters_count,
        "tokens_per_second": trainer.tokens_per_second,
        "device": str(trainer.accelerator.device),
        "processes": trainer.accelerator.num_processes,
        **reached,
    }


def train(options):
    """Train as the options say, from the start or from the checkpoint."""
    check(options)
    torch.set_num_threads(options.threads)
    named = {"steps": options.steps, "evaluate_every": options.evaluate_every}
    changes = dict(options.set) | {k: v for k, v in named.items() if v is not None}
    text, parts = load_corpus(options.corpus), None
    if options.corpus in POEMS:
        parts = train_val_test_split(load_texts(options.corpus))
    corpus, resumed = fingerprint(text), options.out.exists()
    how = options.preset, options.without, options.device, parts
    tokenizer, trainer = new_run(text, *how, **changes)

    def save(trainer):
        if trainer.accelerator.is_main_process:
            checkpoints.save(options.out, trainer, tokenizer.alphabet, corpus)

    try:
        if resumed:
            checkpoints.restore(options.out, trainer, corpus)
        trainer.run(options.target_loss, on_estimate=save)
        if trainer.accelerator.is_main_process:
            result = summary(trainer, options.target_loss)
            print(json.dumps(result), flush=True)
            if options.export:
                record = checkpoints.describe(trainer, tokenizer.alphabet, corpus)
                record |= {"corpus": options.corpus} | result
                save_model(options.export, trainer.bare, record)
    finally:
        trainer.accelerator.end_training()  # leaves the group of processes


def main(arguments=None):
    """Train; return the exit status."""
    options = parse(arguments)
    try:
        train(options)
    except KeyboardInterrupt:
        whole = f"{options.out} is whole: add --resume"
        kept = whole if options.out.exists() else "nothing was saved"
        print(f"stopped; {kept}", file=sys.stderr)
        return 130  # as a shell has it of what Ctrl-C ended
    except (Diverged, OSError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
