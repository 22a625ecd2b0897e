"""What does a small GPT gain by width, heads, depth, shape? And what of little text?

Varied: one size of the page's model at a time, and its shape at about as many parameters;
each at the learning rate with the lowest validation loss of seed 0, then from three other
seeds; and with a thirtieth of the text, with and without dropout, at two rates. Rivals:
that only the number of parameters counts; that dropout lowers the best loss of a run.
Null: all sizes end within what seeds differ by. Statistic: the validation loss after equal
steps; the interval is of the narrowest model's loss less the widest's, by seed.
"""

from functools import cache
from itertools import pairwise

import torch

from lmcourse.data import load_corpus, load_texts, train_val_test_split
from lmcourse.gpt.generation import generate
from lmcourse.gpt.training import estimate
from lmcourse.train import new_run
from studies.harness import alike, best_tuned, count, grid, paired

CHAPTER = "mini-gpt"
CLAIM = "After 1,000 steps each wider model leads the narrower, on each of three seeds"
RIVAL = "a model of another shape with about as many parameters"
NULL = "all widths end within what seeds differ by"
BASE = {"layers": 2, "heads": 4, "d_model": 64, "steps": 1000, "batch": 24, "warmup": 40}
BASE |= {"weight_decay": 0.01, "evaluate_every": 100, "validation_windows": 150}
SPREAD, RATES, SEEDS, SHARE = 0.05, (3e-3, 1e-2, 3e-2), (1, 2, 3), 30
SETTINGS = {"base": BASE, "spread": SPREAD, "rates": RATES, "share": SHARE}
AXES = {"d_model": (16, 32, 64, 128), "heads": (1, 2, 4, 8), "layers": (1, 2, 3, 4)}
# Layers and width of models of about the same number of parameters.
AXES["shape"] = ([1, 88], [2, 64], [3, 52], [4, 44])
PROMPT = "\nShall I "


def plan(small):
    """All values; or the two ends of each axis, for two steps."""
    few = {"steps": 2, "warmup": 1, "validation_windows": 4} if small else {}
    short = {"steps": 300, "evaluate_every": 25} | few
    seeds = SEEDS[: 1 if small else 3]
    models = [
        {"axis": axis, "value": value, "changes": few}
        for axis, values in AXES.items()
        for value in (values[:: len(values) - 1] if small else values)
    ]
    tuned = [each | {"rate": r} for r in RATES[: 1 if small else 3] for each in models]
    texts = grid(dropout=(0.0, 0.3), rate=RATES[:2], seed=seeds, changes=short)
    runs = [each | {"seed": seed} for seed in seeds for each in models]
    groups = {"tuning": tuned, "runs": runs, "little": texts}
    return [{"group": name} | each for name, group in groups.items() for each in group]


def settings_at(axis, value):
    """Return the sizes of the model that has a value on an axis."""
    shape = axis == "shape"
    return BASE | ({"layers": value[0], "d_model": value[1]} if shape else {axis: value})


def run(folder, group, **setting):
    """Train one model."""
    return {"tuning": tuning, "runs": final, "little": little}[group](folder, **setting)


def tuning(folder, axis, value, changes, rate):
    """Return the validation loss of seed 0."""
    how = settings_at(axis, value) | changes | {"learning_rate": rate, "seed": 0}
    loss = trained(tuple(how.items()))["history"][-1][1]
    return {"axis": axis, "value": value, "rate": rate, "validation": loss}


def final(folder, axis, value, changes, seed):
    """Train at the rate that was the best of seed 0."""
    rate = best_tuned(folder, axis=axis, value=value)["rate"]
    how = settings_at(axis, value) | changes | {"learning_rate": rate, "seed": seed}
    found = {"axis": axis, "value": value, "rate": rate, "seed": seed}
    return found | trained(tuple(how.items()))


def new(settings, share=1):
    """Return a tokenizer and a trainer, on a share of the training text."""
    parts = train_val_test_split(load_texts("sonnets"))
    parts = parts._replace(training=parts.training[: len(parts.training) // share])
    how = settings | {"parts": parts, "device": "cpu"}
    tokenizer, trainer = new_run(load_corpus("sonnets"), "classic", **how)
    with torch.no_grad():
        for weight in trainer.gpt.parameters():
            weight.mul_(SPREAD / 0.02 if weight.ndim == 2 else 1)
    return tokenizer, trainer


@cache
def trained(settings):
    """Train a model; the base is on several axes."""
    tokenizer, trainer = new(dict(settings))
    history = trainer.run(quiet=True)
    start = torch.tensor([tokenizer.encode(PROMPT)])
    draw = torch.Generator().manual_seed(0)
    ids = generate(trainer.gpt.eval(), start, 160, 0.8, draw, cached=False)
    return {
        "parameters": trainer.gpt.parameters_count,
        "seconds": round(trainer.progress.seconds, 1),
        "history": [[x["step"], round(x["val_loss"], 4)] for x in history],
        "sample": tokenizer.decode(ids[0].tolist()),
    }


def little(folder, dropout, rate, seed, changes):
    """Train on little text; estimate the loss on it, too."""
    how = BASE | {"dropout": dropout, "learning_rate": rate, "seed": seed} | changes
    _, trainer = new(how, SHARE)
    rows = []

    def watch(trainer):
        own = estimate(trainer.gpt.eval(), trainer.training, trainer.context, 50)
        last = trainer.history[-1]
        rows.append([last["step"], round(own, 4), round(last["val_loss"], 4)])

    trainer.run(on_estimate=watch, quiet=True)
    return {"dropout": dropout, "rate": rate, "seed": seed, "history": rows}


def summary(results):
    """Compare the widths, seed by seed."""
    runs = alike(results["runs"], axis="d_model")
    widths = (alike(runs, value=width) for width in AXES["d_model"])
    losses = [[each["history"][-1][1] for each in rows] for rows in widths if rows]
    pairs = [zip(*both, strict=True) for both in pairwise(losses)]
    holds = all(narrow > wide for pair in pairs for narrow, wide in pair)
    return count(runs) | paired(losses[0], losses[-1], holds)
