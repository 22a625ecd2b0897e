"""``python -m lmcourse.gpt.sweep``: models that differ in one size, and their curves.

Writes ``data/sweeps/mini-gpt.json``: what was run, and of each run the estimates, the time
and a sample. The chapter *mini-gpt* draws it.
"""

import argparse
import json
import sys
from pathlib import Path

import torch
from tqdm import tqdm

from lmcourse.data import corpora_folder, load_corpus
from lmcourse.gpt.generation import generate
from lmcourse.models import pick_device
from lmcourse.train import new_run

__all__ = ["AXES", "BASE", "load_sweep", "main", "run"]

AXES = {"d_model": (16, 32, 64, 128), "heads": (1, 2, 4, 8), "layers": (1, 2, 4, 6)}
BASE = {"layers": 4, "heads": 4, "d_model": 64, "steps": 600, "evaluate_every": 50}
BASE |= {"optimizer": "muon", "learning_rate": 1e-2, "dropout": 0.1}
PROMPT = "\nShall I compare "


def run(text, axis, value, **changes):
    """Train the base model with one size changed.

    Parameters
    ----------
    text : str
    axis : {"d_model", "heads", "layers"}
    value : int
    **changes
        Other fields than `BASE` has.

    Returns
    -------
    dict
        ``axis``, ``value``, ``parameters``, ``seconds``, ``history`` and a ``sample``.
    """
    tokenizer, trainer = new_run(text, "classic", **{**BASE, **changes, axis: value})
    history = trainer.run(quiet=True)
    prompt = torch.tensor([tokenizer.encode(PROMPT)], device=trainer.accelerator.device)
    draw = torch.Generator().manual_seed(0)
    written = generate(trainer.bare, prompt, 160, temperature=0.8, generator=draw)
    return {
        "axis": axis,
        "value": value,
        "parameters": trainer.bare.parameters_count,
        "seconds": round(trainer.progress.seconds, 2),
        "history": [
            {name: value and round(value, 4) for name, value in entry.items()}
            for entry in history
        ],
        "sample": tokenizer.decode(written[0].tolist()),
    }


def load_sweep():
    """Return the stored sweep: ``record`` (how it was made) and ``runs``, as from `run`.

    Raises
    ------
    FileNotFoundError
        If it is missing, saying how to make it.
    """
    path = corpora_folder() / "sweeps" / "mini-gpt.json"
    if not path.is_file():
        raise FileNotFoundError(f"{path} is missing: make it with `make models`")
    return json.loads(path.read_text(encoding="utf-8"))


def main(arguments=None):
    """Run the whole sweep; return the exit status."""
    parser = argparse.ArgumentParser("python -m lmcourse.gpt.sweep", description=__doc__)
    parser.add_argument("--corpus", default="sonnets")
    path = corpora_folder() / "sweeps" / "mini-gpt.json"
    parser.add_argument("--out", type=Path, default=path)
    options = parser.parse_args(arguments)
    try:
        text = load_corpus(options.corpus)
        options.out.parent.mkdir(parents=True, exist_ok=True)  # before the training
    except (OSError, ValueError) as error:
        parser.error(str(error))
    torch.set_num_threads(1)  # models this small are not worth sharing out
    pairs = [(axis, value) for axis, values in AXES.items() for value in values]
    runs, trained = [], {}
    for axis, value in tqdm(pairs, unit="model"):
        sizes = tuple((BASE | {axis: value}).items())
        if sizes not in trained:  # the base model is on every axis
            trained[sizes] = run(text, axis, value)
        runs.append(trained[sizes] | {"axis": axis, "value": value})
    record = {
        "corpus": options.corpus,
        "base": BASE,
        "device": str(pick_device()),
        "threads": torch.get_num_threads(),
        "torch": torch.__version__,
        "seconds": round(sum(run["seconds"] for run in trained.values()), 1),
    }
    text = json.dumps({"record": record, "runs": runs}, indent=1, ensure_ascii=False)
    options.out.write_text(text + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
