"""The Sonnets GPT taught Dickinson in five ways, and BERT taught to tell poems apart.

Writes ``data/sweeps/fine-tuning.json``, which the chapter *fine-tuning* shows: losses on
both poets by method, size, learning rate and seed, at equal compute; the same with replay;
what is written on the way; and what a BERT that was trained as a whole says of held-out
texts, from few labels. ``data/checkpoints/marker.safetensors`` has adapters that follow the
chapter's markers. All with the chapter's own code, read from it.
"""

import argparse
import json

import numpy as np
import torch

from lmbook.bench import report
from lmbook.bench.dates import chapter
from lmcourse.adapters import save_adapters
from lmcourse.data import corpora_folder, load_poems, load_sonnets
from lmcourse.gpt.checkpoints import load_gpt
from lmcourse.models import default_checkpoint, load_bert, one_thread

__all__ = ["main", "marker_at", "stored_at"]

SEEDS, BUDGET = range(3), 100  # of steps in which all weights are trained
SIZES = {"all weights": (0,), "last layer": (0,), "LoRA": (2, 8, 32)}
SIZES |= {"prefix": (8,), "prompt": (8,)}
RATES = {"all weights": (1e-3, 3e-3, 1e-2), "last layer": (1e-3, 3e-3, 1e-2)}
RATES |= {"LoRA": (3e-3, 1e-2, 3e-2), "prefix": (3e-2, 1e-1, 3e-1)}
RATES |= {"prompt": (3e-2, 1e-1, 3e-1)}
REPLAYED, MOMENTS = (2, 4), (0, 5, 20, 50, BUDGET)  # windows of 8; steps
LABELS, BERT_RATE = (8, 24, 96), 1e-4
PROMPT = "\nThe sun "
MARKER = {"rank": 16, "steps": 700, "rate": 1e-2, "batch": 16}


def material():
    """Return the tokenizer, the model and the poems of both poets."""
    tokenizer, model, _ = load_gpt("sonnets")
    return tokenizer, model, chapter("fine-tuning").read_poets(tokenizer)


def losses(model, poets):
    """Return the mean loss on both poets' validation and test poems."""
    page = chapter("fine-tuning")
    return {
        f"{poet} {part}": round(float(page.poem_losses(model, poems[part]).mean()), 4)
        for poet, poems in poets.items()
        for part in ("validation", "test")
    }


def run(given, method, size, rate, seed, replayed=0, budget=BUDGET):
    """Teach a copy of the model Dickinson; return what is kept of it, and the model."""
    tokenizer, base, poets = given
    page = chapter("fine-tuning")
    model = page.adapted(base, method, size, seed)
    steps = page.steps_within(budget, model, base)
    texts = {poet: torch.cat(poems["training"]) for poet, poems in poets.items()}
    draws = [page.windows(texts["Dickinson"], page.BATCH - replayed)]
    draws += [page.windows(texts["Shakespeare"], replayed)] * bool(replayed)
    moments = []

    def watch(step, model):
        if seed == 0 and method == "all weights" and step in MOMENTS:
            moments.append({"step": step} | losses(model, poets))
            moments[-1]["text"] = page.write(model, tokenizer, PROMPT)

    page.tune(model, page.mixed(*draws), steps, rate, seed, watch)
    watch(steps, model)
    found = {"method": method, "size": size, "rate": rate, "seed": seed, "steps": steps}
    found |= {"replayed": replayed, "parameters": page.adapters.trainable(model)}
    found |= losses(model, poets)
    if seed == 0:
        found["text"] = page.write(model, tokenizer, PROMPT)
    return found | ({"moments": moments} if moments else {}), model


def teach_all(given):
    """Run the whole grid, and replay at the middle rate."""
    grid = [
        (method, size, rate, seed, 0)
        for method, sizes in SIZES.items()
        for size in sizes
        for rate in RATES[method]
        for seed in SEEDS
    ]
    middle = RATES["all weights"][1]
    grid += [("all weights", 0, middle, s, n) for n in REPLAYED for s in SEEDS]
    return [run(given, *settings)[0] for settings in grid]


def steer(given, steps=MARKER["steps"]):
    """Teach a copy of the model to follow the chapter's markers, by LoRA; return it."""
    tokenizer, base, poets = given
    page = chapter("fine-tuning")
    draws = [
        page.behind(
            tokenizer.encode(page.MARKS[poet]),
            torch.cat(poems["training"]),
            MARKER["batch"] // len(poets),
        )
        for poet, poems in poets.items()
    ]
    model = page.adapted(base, "LoRA", MARKER["rank"])
    return page.tune(model, page.mixed(*draws), steps, MARKER["rate"])


def classify(texts, labels, sizes=LABELS, steps=40):
    """Train all of the default BERT on few labels; return its hits on held-out texts."""
    page = chapter("fine-tuning")
    tokenizer, bert = load_bert(default_checkpoint())
    places = np.arange(len(texts))
    held_out = places[np.isin(places % 10, (4, 9))]
    codes = np.unique(labels, return_inverse=True)[1]
    rows = np.setdiff1d(places, held_out)
    found = []
    for size in sizes:
        for seed in SEEDS:
            few = page.labelled(labels, rows, size, seed)
            args = (bert, tokenizer, texts, codes, few, BERT_RATE, seed, steps)
            say = page.train_everything(*args)
            hits = say([texts[i] for i in held_out]) == codes[held_out]
            found.append({"size": size, "seed": seed, "hits": hits.astype(int).tolist()})
    return found


def tasks():
    """Return texts and labels: which poet, and which of Dickinson's sections."""
    page = chapter("fine-tuning")
    return page.labelled_texts(load_sonnets(), load_poems())


def stored_at():
    """Return where the runs are kept."""
    return corpora_folder() / "sweeps" / "fine-tuning.json"


def marker_at():
    """Return where the adapters are kept that follow the markers."""
    return corpora_folder() / "checkpoints" / "marker.safetensors"


def store(given):
    """Run all of it, and keep it."""
    runs = teach_all(given)
    save_adapters(marker_at(), steer(given))
    whole = {name: classify(*task) for name, task in tasks().items()}
    record = {"budget": BUDGET, "seeds": len(SEEDS), "prompt": PROMPT, "labels": LABELS}
    record |= {"bert_rate": BERT_RATE, "marker": MARKER, "torch": torch.__version__}
    kept = {"record": record, "runs": runs, "everything": whole}
    stored = json.dumps(kept, indent=1, ensure_ascii=False)
    stored_at().write_text(stored + "\n", encoding="utf-8")
    return runs


def main(arguments) -> int:
    """Print the losses on validation poems: of all runs, or of five that are very short."""
    parser = argparse.ArgumentParser(prog="lmbook.bench tuning", description=__doc__)
    parser.add_argument("--store", action="store_true", help="run all, and keep it")
    options = parser.parse_args(arguments)
    one_thread()
    given = material()
    if options.store:
        runs = store(given)
    else:
        first = [(name, SIZES[name][0], RATES[name][0], 1) for name in SIZES]
        runs = [run(given, *settings, budget=2)[0] for settings in first]
    shown = ("method", "size", "rate", "seed", "replayed", "Dickinson validation")
    shown += ("Shakespeare validation",)
    report([{name: run[name] for name in shown} for run in runs], {"runs": len(runs)})
    return 0
