"""What each idea of the fast recipe is worth, and what a warm-up is worth, over seeds.

- ``ways``: the classic recipe, the fast one, and the fast one without each of its ideas, on
  the Sonnets: steps and seconds until the validation loss is at most a target. Seconds are
  those in which the processor worked for this process, so that what else the machine does
  counts little; estimates are not counted.
- ``beginnings``: the loss of each of the first batches of the model that the chapter
  *mini-gpt* builds, with a warm-up and without one.

``--store`` writes ``data/sweeps/ideas.json``, which the chapter shows.
"""

import argparse
import json
import time

import torch

from lmbook.bench import report
from lmcourse.data import load_corpus, load_texts, train_val_test_split
from lmcourse.gpt.sweep import stored_at
from lmcourse.train import IDEAS, new_run

__all__ = ["beginning", "main", "until"]

WAYS = {"classic": ("classic", ()), "fast": ("fast", ())}
WAYS |= {f"without {idea}": ("fast", (idea,)) for idea in IDEAS}
CORPUS, EVERY, WARMUPS, FIRST = "sonnets", 10, (40, 1), 40
CHAPTER = {"layers": 2, "heads": 4, "d_model": 64, "batch": 24, "learning_rate": 1e-2}
FIXED = {"device": "cpu", "validation_windows": 100}


def until(text, parts, way, seed, target, most):
    """Train in a way until a validation loss is reached, or for so many steps.

    Returns
    -------
    dict
        ``way``, ``seed``, ``parameters``, ``steps``, ``seconds``, ``loss``, ``reached``.
    """
    preset, without = WAYS[way]
    _, trainer = new_run(text, preset, without, parts=parts, seed=seed, **FIXED)
    seconds, loss, most = 0.0, float("inf"), min(most, trainer.config.steps)
    while loss > target and trainer.progress.step < most:
        start = time.process_time()
        for _ in range(min(EVERY, most - trainer.progress.step)):
            trainer.step()
        seconds += time.process_time() - start
        loss = trainer.estimate()
    found = {"parameters": trainer.bare.parameters_count, "steps": trainer.progress.step}
    found |= {"seconds": round(seconds, 2), "loss": round(loss, 4)}
    return {"way": way, "seed": seed} | found | {"reached": loss <= target}


def beginning(text, parts, warmup, seed):
    """Return the loss of each of the first batches, the learning rate rising so long."""
    settings = CHAPTER | FIXED | {"warmup": warmup, "seed": seed}
    _, trainer = new_run(text, "classic", parts=parts, **settings)
    losses = [round(trainer.step(), 4) for _ in range(FIRST)]
    return {"warmup": warmup, "seed": seed, "losses": losses}


def main(arguments=None):
    """Run both studies; return the exit status."""
    parser = argparse.ArgumentParser("python -m lmbook.bench ideas", description=__doc__)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--target", type=float, default=1.85)
    parser.add_argument("--steps", type=int, default=2000, help="at most")
    parser.add_argument("--store", action="store_true")
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    how = load_corpus(CORPUS), train_val_test_split(load_texts(CORPUS))
    seeds, limits = range(options.seeds), (options.target, options.steps)
    runs = [until(*how, way, seed, *limits) for seed in seeds for way in WAYS]
    starts = [beginning(*how, warmup, seed) for warmup in WARMUPS for seed in range(5)]
    record = {"corpus": CORPUS, "target": options.target, "most": options.steps}
    record |= {"chapter": CHAPTER, "threads": 1, "torch": torch.__version__}
    if options.store:
        stored = {"record": record, "ways": runs, "beginnings": starts}
        stored_at("ideas").write_text(json.dumps(stored, indent=1) + "\n", encoding="utf-8")
    report(runs, {"benchmark": "ideas"} | record)
    return 0
