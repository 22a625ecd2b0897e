"""``python -m lmcourse.train``: train a small GPT from the command line.

Several processes, with the same options: ``torchrun --nproc-per-node 2 -m lmcourse.train``.
"""

# PyTorch is imported where it is used: help and errors come before it.
import argparse
import json
import sys
from contextlib import suppress
from pathlib import Path

from lmcourse.data import POEMS, load_corpus, load_texts, train_val_test_split
from lmcourse.gpt.recipes import IDEAS, PRESETS, recipe
from lmcourse.gpt.settings import Diverged, require
from lmcourse.tokenization import CharTokenizer

NOTHING = "nothing was saved"


def _plan(text, preset, without, changes):
    """Return the tokenizer of a text and both configurations, checked."""
    if not text.strip():
        raise ValueError("the corpus is empty")
    tokenizer = CharTokenizer(text)
    return tokenizer, *recipe(preset, tokenizer.vocab_size, without, **changes)


def new_run(text, preset="fast", without=(), device=None, parts=None, **changes):
    """Return a tokenizer made of a text, and a trainer of a new model on it.

    Parameters
    ----------
    text : str
        The whole corpus: its characters are the vocabulary.
    preset, without, **changes
        As `lmcourse.gpt.recipes.recipe`.
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
    import torch

    from lmcourse.gpt.ngrams import make_model
    from lmcourse.gpt.trainer import Trainer, check_room, split

    tokenizer, model, training = _plan(text, preset, without, changes)

    def encoded(text):
        return torch.from_numpy(tokenizer.encode_array(text))

    if parts is None:
        halves = split(encoded(text), model.context)
    else:
        halves = encoded(parts.training), encoded(parts.validation)
        check_room(*halves, model.context)
    torch.manual_seed(training.seed)
    return tokenizer, Trainer(make_model(model), *halves, training, device)


def _setting(text):
    """Read ``name=value``, the value as JSON or else as a word."""
    name, equals, value = text.partition("=")
    if not equals:
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=VALUE")
    with suppress(ValueError, RecursionError):
        value = json.loads(value)
    return name, value


def parse(arguments):
    """Read the command line."""
    parser = argparse.ArgumentParser("python -m lmcourse.train", description=__doc__)
    add, file = parser.add_argument, "a .safetensors file"
    corpora = "sonnets, poems, tinyshakespeare or a text file"
    field = "another value for a field of GPTConfig or TrainingConfig: --set dropout=0.2"
    again = {"action": "append", "default": []}
    add("--corpus", default="sonnets", help=corpora)
    add("--preset", choices=PRESETS, default="fast")
    add("--without", choices=IDEAS, **again, help="an idea of the preset to do without")
    add("--set", metavar="NAME=VALUE", type=_setting, **again, help=field)
    add("--out", type=Path, required=True, help=f"the checkpoint, {file}")
    add("--steps", type=int)
    add("--evaluate-every", type=int, help="steps between checkpoints")
    add("--target-loss", type=float, help="stop at this validation loss")
    add("--seed", type=int)
    add("--device", help="cpu, cuda or mps")
    add("--threads", type=int, default=1, help="of a CPU; 1 suits small models")
    add("--export", type=Path, help=f"the finished model alone, {file}")
    add("--resume", action="store_true", help="go on where --out stands, if it is there")
    return parser.parse_args(arguments)


def check(options):
    """Return the text and the settings that were changed, before anything slow.

    Raises
    ------
    OSError, ValueError
        If the corpus cannot be had, a setting is wrong, or a file is in the way.
    """
    given = {name: getattr(options, name) for name in ("steps", "evaluate_every", "seed")}
    changes = {name: value for name, value in given.items() if value is not None}
    changes = dict(options.set) | changes
    require(options, "a whole number from 1 to 10**8", "threads")
    if options.target_loss is not None:
        require(options, "a finite number above 0", "target_loss")
    for path in filter(None, (options.out, options.export)):
        if path.suffix != ".safetensors" or path.is_dir():
            raise ValueError(f"{path} is no name of a .safetensors file")
    if options.export and options.export.resolve() == options.out.resolve():
        raise ValueError(f"{options.export} is the checkpoint: export to another file")
    if options.out.exists() and not options.resume:
        raise ValueError(
            f"{options.out} is there already: add --resume, or choose another --out"
        )
    text = load_corpus(options.corpus)
    _plan(text, options.preset, options.without, changes)
    return text, changes


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
    parts = (
        train_val_test_split(load_texts(options.corpus))
        if options.corpus in POEMS
        else None
    )
    tokenizer, trainer = new_run(text, *how, parts, **changes)
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
    out = options.out
    try:
        train(options, *check(options))
    except KeyboardInterrupt:
        kept = f"{out} is whole: add --resume" if out.exists() else NOTHING
        print(f"stopped; {kept}", file=sys.stderr)
        return 130  # as a shell has it of what Ctrl-C ended
    except Diverged as error:
        kept = f"the last good checkpoint is {out}" if out.exists() else NOTHING
        print(f"error: {error}; {kept}", file=sys.stderr)
        return 1
    except (OSError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
