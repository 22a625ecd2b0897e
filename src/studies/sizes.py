"""What does a small GPT gain by its width, its depth, its heads, its shape?

Varied: one size at a time, and the shape at about as many parameters; one seed. Rival: that
it is the number of parameters, and not which size it comes from. Null: all end at one loss.
Statistic: the validation loss after the same number of steps, and its span along each axis.
With one seed there is no interval: read trends from it, not rankings of neighbours.
"""

from functools import cache

import torch

from lmcourse.data import load_corpus, load_texts, train_val_test_split
from lmcourse.gpt.generation import generate
from lmcourse.train import new_run
from studies.harness import count, verdict

CHAPTER = "mini-gpt"
CLAIM = (
    "At the same number of steps wider models end lower; but widths differ most in size, "
    "and shapes of one size end within a third of that"
)
RIVAL = "what counts is the number of parameters, whichever size they come from"
NULL = "all sizes end at one loss"
BASE = {"layers": 4, "heads": 4, "d_model": 64, "steps": 300, "evaluate_every": 25}
BASE |= {"optimizer": "muon", "learning_rate": 1e-2, "dropout": 0.1}
SETTINGS = {"corpus": "sonnets", "base": BASE, "device": "cpu", "threads": 1}
AXES = {"d_model": (16, 32, 64, 128), "heads": (1, 2, 4, 8), "layers": (1, 2, 4, 6)}
# Layers and width of models of about the same number of parameters.
AXES["shape"] = ((1, 64), (2, 44), (3, 36), (4, 32))
PROMPT = "\nShall I compare "


def plan(small):
    """All values; or the two ends of each axis, for two steps."""
    few = {"steps": 2, "warmup": 1, "evaluate_every": 2, "validation_windows": 4}
    return [
        {"group": "runs", "axis": axis, "value": value, "changes": few if small else {}}
        for axis, values in AXES.items()
        for value in (values[:: len(values) - 1] if small else values)
    ]


def settings_at(axis, value):
    """Return the settings of the run that has a value on an axis."""
    if axis == "shape":
        return BASE | dict(zip(("layers", "d_model"), value, strict=True))
    return BASE | {axis: value}


def run(folder, group, axis, value, changes):
    """Train a model; return its sizes, estimates, time and a sample."""
    settings = tuple((settings_at(axis, value) | changes).items())
    return {"axis": axis, "value": value, "seed": 0} | trained(settings)


@cache
def trained(settings):
    """Train a model; the base is on several axes."""
    corpus = SETTINGS["corpus"]
    parts = train_val_test_split(load_texts(corpus))
    how = dict(settings) | {"parts": parts, "device": SETTINGS["device"]}
    tokenizer, trainer = new_run(load_corpus(corpus), "classic", **how)
    history = trainer.run(quiet=True)
    prompt, draw = (
        torch.tensor([tokenizer.encode(PROMPT)]),
        torch.Generator().manual_seed(0),
    )
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


def summary(results):
    """Compare the spans of loss and of size along the axes."""
    axes = {axis: [] for axis in AXES}
    for each in results["runs"]:
        axes[each["axis"]].append((each["parameters"], each["history"][-1]["val_loss"]))
    losses = {axis: [loss for _, loss in sorted(rows)] for axis, rows in axes.items()}
    span = {axis: max(each) - min(each) for axis, each in losses.items()}
    falling = losses["d_model"] == sorted(losses["d_model"], reverse=True)
    holds = falling and span["d_model"] > 3 * span["shape"]
    return count(results["runs"]) | {"interval": None, "verdict": verdict(holds)}
