"""``python -m lmcourse.train``: train a small GPT from the command line.

Several processes, with the same options: ``torchrun --nproc-per-node 2 -m lmcourse.train``.
"""

import argparse
import json
import math
import sys
from contextlib import suppress
from pathlib import Path

import torch

from lmcourse.data import load_corpus
from lmcourse.gpt import checkpoint
from lmcourse.gpt.model import GPT
from lmcourse.gpt.recipes import IDEAS, PRESETS, check_names, recipe
from lmcourse.gpt.trainer import Diverged, Trainer, split
from lmcourse.tokenization import CharTokenizer

__all__ = ["main", "prepare"]


def prepare(text, preset="fast", without=(), device=None, **changes):
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
    if not text.strip():
        raise ValueError("the corpus is empty")
    tokenizer = CharTokenizer(text)
    model, training = recipe(preset, tokenizer.vocab_size, without, **changes)
    parts = split(torch.tensor(tokenizer.encode(text)), model.context)
    torch.manual_seed(training.seed)
    return tokenizer, Trainer(GPT(model), *parts, training, device)


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
    parser.add_argument("--out", type=Path, required=True, help="folder of the checkpoints")
    parser.add_argument("--steps", type=int)
    parser.add_argument("--evaluate-every", type=int, help="steps between checkpoints")
    parser.add_argument("--target-loss", type=_loss, help="stop at this validation loss")
    parser.add_argument("--seed", type=int)
    parser.add_argument("--device", help="cpu, cuda or mps")
    parser.add_argument("--export", type=Path, help="folder for the finished model alone")
    parser.add_argument("--resume", action="store_true", help="go on where --out stands")
    return parser.parse_args(arguments)


def open_run(options, text):
    """Return the tokenizer and the trainer, new or resumed."""
    names = ("steps", "evaluate_every", "seed")
    given = {name: getattr(options, name) for name in names}
    changes = {name: value for name, value in given.items() if value is not None}
    changes = dict(options.set) | changes
    check_names(changes)
    tokenizer, trainer = prepare(
        text, options.preset, options.without, options.device, **changes
    )
    found = checkpoint.latest(options.out)
    trainer.accelerator.wait_for_everyone()  # to look, before the first of them saves
    if found and not options.resume:
        raise ValueError(f"{found} is there already: add --resume, or choose another --out")
    if found:
        checkpoint.restore(found, trainer, checkpoint.fingerprint(text))
    return tokenizer, trainer


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


def export(options, trainer, tokenizer, corpus):
    """Write the finished model, with how it was trained, to a folder of its own."""
    record = {
        "corpus": options.corpus,
        "torch": torch.__version__,
        "threads": torch.get_num_threads(),
        **summary(trainer),
        **checkpoint.describe(trainer, tokenizer.alphabet, corpus),
    }
    checkpoint.save_model(options.export, trainer.bare, record)


def main(arguments=None):
    """Train; return the exit status."""
    options = parse(arguments)
    try:
        if options.export:  # better now than after the training
            checkpoint.check_target(options.export, options.out)
        text = load_corpus(options.corpus)
        tokenizer, trainer = open_run(options, text)
        corpus = checkpoint.fingerprint(text)

        def save(trainer):
            if trainer.accelerator.is_main_process:
                checkpoint.save(options.out, trainer, tokenizer.alphabet, corpus)

        trainer.run(options.target_loss, on_estimate=save)
        if trainer.accelerator.is_main_process:
            print(json.dumps(summary(trainer, options.target_loss)), flush=True)
            if options.export:
                export(options, trainer, tokenizer, corpus)
    except KeyboardInterrupt:
        kept = checkpoint.latest(options.out)
        left = f"{kept} is whole: add --resume" if kept else "nothing was saved"
        print(f"stopped; {left}", file=sys.stderr)
        return 130  # as a shell has it of what Ctrl-C ended
    except Diverged as error:
        kept = checkpoint.latest(options.out)
        left = f"the last good checkpoint is {kept}" if kept else "nothing was saved"
        print(f"error: {error}; {left}", file=sys.stderr)
        return 1
    except (OSError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    finally:
        with suppress(NameError):  # several processes say goodbye to each other
            trainer.accelerator.end_training()
    return 0


if __name__ == "__main__":
    sys.exit(main())
