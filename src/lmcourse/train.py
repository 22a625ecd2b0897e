"""``python -m lmcourse.train``: train a small GPT from the command line.

Several processes, with the same options: ``torchrun --nproc-per-node 2 -m lmcourse.train``.
"""

# PyTorch is imported where it is used: help and errors come before it.
import argparse
import json
import math
import sys
from contextlib import suppress
from pathlib import Path

from lmcourse.gpt.recipes import IDEAS, PRESETS, check_names, recipe
from lmcourse.gpt.settings import Diverged
from lmcourse.tokenization import CharTokenizer

__all__ = ["main", "new_run"]


def _plan(text, preset, without, changes):
    """Return the tokenizer of a text and both configurations, checked."""
    if not text.strip():
        raise ValueError("the corpus is empty")
    tokenizer = CharTokenizer(text)
    return tokenizer, *recipe(preset, tokenizer.vocab_size, without, **changes)


def new_run(text, preset="fast", without=(), device=None, **changes):
    """Return a tokenizer made of a text, and a trainer of a new model on it.

    Parameters
    ----------
    text : str
    preset, without, **changes
        As `lmcourse.gpt.recipes.recipe`.
    device : str, optional

    Returns
    -------
    tokenizer : CharTokenizer
    trainer : Trainer

    Raises
    ------
    ValueError
        If the text is empty or too short, or a setting is wrong.
    """
    import torch

    from lmcourse.gpt.ngrams import make_model
    from lmcourse.gpt.trainer import Trainer, split

    tokenizer, model, training = _plan(text, preset, without, changes)
    parts = split(torch.tensor(tokenizer.encode(text)), model.context)
    torch.manual_seed(training.seed)
    return tokenizer, Trainer(make_model(model), *parts, training, device)


def _setting(text):
    """Read ``name=value``, the value as JSON or else as a word."""
    name, equals, value = text.partition("=")
    if not equals:
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=VALUE")
    with suppress(ValueError):
        value = json.loads(value)
    return name, value


def _loss(text):
    """Read a loss that can be reached: finite and above zero."""
    with suppress(ValueError):
        if 0 < float(text) < math.inf:
            return float(text)
    raise argparse.ArgumentTypeError(f"{text!r} is not a number above 0")


def _threads(text):
    """Read a number of threads."""
    if text.isdecimal() and 1 <= int(text) <= 1024:
        return int(text)
    raise argparse.ArgumentTypeError(f"{text!r} is not a number of threads")


def parse(arguments):
    """Read the command line."""
    parser = argparse.ArgumentParser("python -m lmcourse.train", description=__doc__)
    parser.add_argument(
        "--corpus", default="sonnets", help="sonnets, poems, tinyshakespeare or a text file"
    )
    parser.add_argument("--preset", choices=PRESETS, default="fast")
    parser.add_argument("--without", choices=IDEAS, action="append", default=[])
    parser.add_argument(
        "--set",
        metavar="NAME=VALUE",
        type=_setting,
        action="append",
        default=[],
        help="another value for a field of GPTConfig or TrainingConfig: --set dropout=0.2",
    )
    file = "a .safetensors file"
    parser.add_argument("--out", type=Path, required=True, help=f"the checkpoint, {file}")
    parser.add_argument("--steps", type=int)
    parser.add_argument("--evaluate-every", type=int, help="steps between checkpoints")
    parser.add_argument("--target-loss", type=_loss, help="stop at this validation loss")
    parser.add_argument("--seed", type=int)
    parser.add_argument("--device", help="cpu, cuda or mps")
    parser.add_argument(
        "--threads", type=_threads, default=1, help="of a CPU; 1 suits small models"
    )
    parser.add_argument("--export", type=Path, help=f"the finished model alone, {file}")
    parser.add_argument("--resume", action="store_true", help="go on where --out stands")
    return parser.parse_args(arguments)


def check(options):
    """Return the text and the settings that were changed, before anything slow.

    Raises
    ------
    OSError, ValueError
        If the corpus cannot be had, a setting is wrong, or a file is in the way.
    """
    names = ("steps", "evaluate_every", "seed")
    given = {name: getattr(options, name) for name in names}
    changes = {name: value for name, value in given.items() if value is not None}
    changes = dict(options.set) | changes
    check_names(changes)
    for path in filter(None, (options.out, options.export)):
        if path.suffix != ".safetensors" or path.is_dir():
            raise ValueError(f"{path} is no name of a .safetensors file")
    if options.export and options.export.resolve() == options.out.resolve():
        raise ValueError(f"{options.export} is the checkpoint: export to another file")
    if options.out.exists() and not options.resume:
        raise ValueError(
            f"{options.out} is there already: add --resume, or choose another --out"
        )
    from lmcourse.data import load_corpus

    text = load_corpus(options.corpus)
    _plan(text, options.preset, options.without, changes)
    return text, changes


def summary(trainer, target=None):
    """Return what the last line of output says."""
    progress = trainer.progress
    best = {
        "val_loss": progress.history[-1]["val_loss"],
        "train_seconds": progress.seconds,
        "steps": progress.step,
        "parameters": trainer.bare.parameters_count,
        "tokens_per_second": trainer.tokens_per_second,
        "device": str(trainer.accelerator.device),
        "processes": trainer.accelerator.num_processes,
    }
    return best if target is None else best | {"reached": best["val_loss"] <= target}


def train(options, text, changes):
    """Train as the options say, from the start or from the checkpoint."""
    import torch

    from lmcourse.gpt import checkpoint

    torch.set_num_threads(options.threads)
    corpus, resumed = checkpoint.fingerprint(text), options.out.exists()
    if options.export and options.export.exists():
        try:
            checkpoint.read_record(options.export)
        except ValueError as error:
            raise ValueError(f"{options.export} is no model to replace: {error}") from None
    how = options.preset, options.without, options.device
    tokenizer, trainer = new_run(text, *how, **changes)
    try:
        if resumed:
            checkpoint.restore(options.out, trainer, corpus)

        def save(trainer):
            if trainer.accelerator.is_main_process:
                checkpoint.save(options.out, trainer, tokenizer.alphabet, corpus)

        trainer.run(options.target_loss, on_estimate=save)
        if trainer.accelerator.is_main_process:
            said = summary(trainer, options.target_loss)
            print(json.dumps(said), flush=True)
            if options.export:
                record = checkpoint.describe(trainer, tokenizer.alphabet, corpus)
                record |= {"corpus": options.corpus} | said
                checkpoint.save_model(options.export, trainer.bare, record)
    finally:  # several processes say goodbye to each other
        trainer.accelerator.end_training()


def main(arguments=None):
    """Train; return the exit status."""
    options = parse(arguments)
    try:
        train(options, *check(options))
    except (Diverged, KeyboardInterrupt, OSError, ValueError) as error:
        stopped = isinstance(error, KeyboardInterrupt)
        said = "stopped" if stopped else f"error: {error}"
        if stopped or isinstance(error, Diverged):
            kept = options.out.exists()
            said += (
                f"; {options.out} is whole: add --resume" if kept else "; nothing was saved"
            )
        print(said, file=sys.stderr)
        return 130 if stopped else 1  # 130: as a shell has it of what Ctrl-C ended
    return 0


if __name__ == "__main__":
    sys.exit(main())
