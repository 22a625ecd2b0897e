"""``python -m lmcourse.gpt.sweep``: models that differ in one size, and their curves.

Writes ``data/sweeps/mini-gpt.json``: what was run, and of each run the estimates, the time
and a sample. The chapter *mini-gpt* draws it.
"""

import json

import torch
from tqdm import tqdm

from lmcourse.data import corpora_folder, load_corpus, load_texts, train_val_test_split
from lmcourse.gpt.generation import generate
from lmcourse.models import pick_device
from lmcourse.train import new_run

AXES = {"d_model": (16, 32, 64, 128), "heads": (1, 2, 4, 8), "layers": (1, 2, 4, 6)}
# Layers and width of models of about the same number of parameters.
AXES["shape"] = ((1, 64), (2, 44), (3, 36), (4, 32))
BASE = {"layers": 4, "heads": 4, "d_model": 64, "steps": 300, "evaluate_every": 25}
BASE |= {"optimizer": "muon", "learning_rate": 1e-2, "dropout": 0.1}
CORPUS = "sonnets"
PROMPT = "\nShall I compare "


def stored_at(name="mini-gpt"):
    """Return where a sweep is kept."""
    return corpora_folder() / "sweeps" / f"{name}.json"


def settings_at(axis, value):
    """Return the settings of the run that has a value on an axis."""
    if axis == "shape":
        return BASE | dict(zip(("layers", "d_model"), value, strict=True))
    return BASE | {axis: value}


def run(text, parts, settings):
    """Train a model.

    Parameters
    ----------
    text : str
    parts : lmcourse.data.Parts
    settings : dict
        As `BASE`.

    Returns
    -------
    dict
        ``parameters``, ``seconds``, ``history`` and a ``sample``.
    """
    tokenizer, trainer = new_run(text, "classic", parts=parts, **settings)
    history = trainer.run(quiet=True)
    prompt = torch.tensor([tokenizer.encode(PROMPT)], device=trainer.accelerator.device)
    draw = torch.Generator().manual_seed(0)
    written = generate(trainer.bare, prompt, 160, temperature=0.8, generator=draw)
    return {
        "parameters": trainer.bare.parameters_count,
        "seconds": round(trainer.progress.seconds, 2),
        "history": [
            {name: value and round(value, 4) for name, value in entry.items()}
            for entry in history
        ],
        "sample": tokenizer.decode(written[0].tolist()),
    }


def load_sweep(name="mini-gpt"):
    """Return a stored sweep: ``record`` (how it was made) and ``runs``.

    Each run is that of `run`, with the ``axis`` on which it differs from `BASE`, and the
    ``value`` there. The sweep ``ideas`` is `lmbook.bench.ideas`'s.

    Raises
    ------
    FileNotFoundError
        If it is missing, saying how to make it.
    """
    path = stored_at(name)
    if not path.is_file():
        raise FileNotFoundError(f"{path} is missing: make it with `make models`")
    return json.loads(path.read_text(encoding="utf-8"))


def main():
    """Run the whole sweep and store it."""
    text, parts, path = (
        load_corpus(CORPUS),
        train_val_test_split(load_texts(CORPUS)),
        stored_at(),
    )
    path.parent.mkdir(parents=True, exist_ok=True)  # before the training
    torch.set_num_threads(1)  # models this small are not worth sharing out
    pairs = [(axis, value) for axis, values in AXES.items() for value in values]
    runs, trained = [], {}
    for axis, value in tqdm(pairs, unit="model"):
        settings = settings_at(axis, value)
        key = tuple(settings.values())
        if key not in trained:  # the base model is on several axes
            trained[key] = run(text, parts, settings)
        runs.append({"axis": axis, "value": value} | trained[key])
    record = {
        "corpus": CORPUS,
        "base": BASE,
        "device": str(pick_device()),
        "threads": torch.get_num_threads(),
        "torch": torch.__version__,
        "seconds": round(sum(run["seconds"] for run in trained.values()), 1),
    }
    stored = json.dumps({"record": record, "runs": runs}, indent=1, ensure_ascii=False)
    path.write_text(stored + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
