"""What does it cost to teach a trained model something new, and what does it forget?

Varied: the method (all weights, last layer, LoRA, prefix, prompt), its size, three learning
rates, three seeds, with equal work; Shakespeare's windows in each batch (replay); labels,
of a BERT that is trained as a whole. Rivals: that whatever learns more forgets more; that
the method matters more than its learning rate. Null: at one rate all weights and the last
layer forget alike. Statistic: losses on validation and test poems of both poets; the
interval is that of all weights' loss on Shakespeare less the last layer's, at the rate
0.003, by seed. ``marker.safetensors`` has adapters that follow the chapter's markers.
Methods and training are the chapter's.
"""

from functools import cache

import numpy as np
import torch

from lmcourse.adapters import save_adapters
from lmcourse.data import load_poems, load_sonnets
from lmcourse.gpt.checkpoints import load_gpt
from lmcourse.models import default_checkpoint, load_bert
from studies.chapter import page as read_page
from studies.harness import count, paired, verdict

CHAPTER = "fine-tuning"
CLAIM = (
    "At one learning rate and for equal work the last layer learns as much of Dickinson as "
    "all weights, and forgets less of Shakespeare"
)
RIVAL = "whatever learns more of the new poet forgets more of the old one"
NULL = "all weights and the last layer lose the same on the old poet"
CHECKPOINTS, READS = ("marker",), ("sonnets",)
MARKER = {"rank": 16, "steps": 700, "rate": 1e-2, "batch": 16}
SETTINGS = {"budget": 100, "seeds": 3, "prompt": "\nThe sun ", "labels": [8, 24, 96]}
SETTINGS |= {"bert_rate": 1e-4, "marker": MARKER}
SEEDS, BUDGET = range(SETTINGS["seeds"]), SETTINGS["budget"]
SIZES = {"all weights": (0,), "last layer": (0,), "LoRA": (2, 8, 32)}
SIZES |= {"prefix": (8,), "prompt": (8,)}
RATES = {"all weights": (1e-3, 3e-3, 1e-2), "last layer": (1e-3, 3e-3, 1e-2)}
RATES |= {"LoRA": (3e-3, 1e-2, 3e-2), "prefix": (3e-2, 1e-1, 3e-1)}
RATES |= {"prompt": (3e-2, 1e-1, 3e-1)}
REPLAYED, MOMENTS = (2, 4), (0, 5, 20, 50, BUDGET)  # windows of 8; steps


def page():
    """Return the chapter's definitions."""
    return read_page(CHAPTER)


@cache
def material():
    """Return the tokenizer, the model and the poems of both poets."""
    tokenizer, model, _ = load_gpt("sonnets")
    return tokenizer, model, page().read_poets(tokenizer)


def plan(small):
    """The whole grid; or three methods, for two steps, a marker and one BERT."""
    grid = [
        (method, size, rate, seed, 0)
        for method, sizes in SIZES.items()
        for size in sizes
        for rate in RATES[method]
        for seed in SEEDS
    ]
    grid += [("all weights", 0, 3e-3, seed, n) for n in REPLAYED for seed in SEEDS]
    if small:
        grid = [(name, SIZES[name][0], 3e-3, 1, 0) for name in list(SIZES)[:3]]
    names = ("method", "size", "rate", "seed", "replayed")
    runs = [{"group": "runs"} | dict(zip(names, kind, strict=True)) for kind in grid]
    runs = [each | {"budget": 2 if small else BUDGET} for each in runs]
    runs.append({"group": "marker", "steps": 1 if small else MARKER["steps"]})
    sizes, seeds = SETTINGS["labels"][: 1 if small else None], [0] if small else SEEDS
    return runs + [
        {"group": task, "size": size, "seed": seed, "steps": 1 if small else 40}
        for task in ("poet", "section")[: 1 if small else None]
        for size in sizes
        for seed in seeds
    ]


def run(folder, group, **setting):
    """Do what a group does."""
    if group == "runs":
        return teach(**setting)
    if group == "marker":
        return save_adapters(folder / "marker.safetensors", steer(**setting))
    return classify(*page().labelled_texts(load_sonnets(), load_poems())[group], **setting)


def losses(model, poets):
    """Return the mean loss on both poets' validation and test poems."""
    return {
        f"{poet} {part}": round(float(page().poem_losses(model, poems[part]).mean()), 4)
        for poet, poems in poets.items()
        for part in ("validation", "test")
    }


def teach(method, size, rate, seed, replayed, budget):
    """Teach a copy of the model Dickinson; return what is kept of it."""
    tokenizer, base, poets = material()
    model = page().adapted(base, method, size, seed)
    steps = page().steps_within(budget, model, base)
    texts = {poet: torch.cat(poems["training"]) for poet, poems in poets.items()}
    draws = [page().windows(texts["Dickinson"], page().BATCH - replayed)]
    draws += [page().windows(texts["Shakespeare"], replayed)] * bool(replayed)
    moments = []

    def watch(step, model):
        if seed == 0 and method == "all weights" and step in MOMENTS:
            moments.append({"step": step} | losses(model, poets))
            moments[-1]["text"] = page().write(model, tokenizer, SETTINGS["prompt"])

    page().tune(model, page().mixed(*draws), steps, rate, seed, watch)
    watch(steps, model)
    found = {"method": method, "size": size, "rate": rate, "seed": seed, "steps": steps}
    found |= {"replayed": replayed, "parameters": page().adapters.trainable(model)}
    found |= losses(model, poets)
    if seed == 0:
        found["text"] = page().write(model, tokenizer, SETTINGS["prompt"])
    return found | ({"moments": moments} if moments else {})


def steer(steps):
    """Teach a copy of the model to follow the chapter's markers, by LoRA; return it."""
    tokenizer, base, poets = material()
    draws = [
        page().behind(
            tokenizer.encode(page().MARKS[poet]),
            torch.cat(poems["training"]),
            MARKER["batch"] // len(poets),
        )
        for poet, poems in poets.items()
    ]
    model = page().adapted(base, "LoRA", MARKER["rank"])
    return page().tune(model, page().mixed(*draws), steps, MARKER["rate"])


def classify(texts, labels, size, seed, steps):
    """Train all of the default BERT on few labels; return its hits on held-out texts."""
    tokenizer, bert = load_bert(default_checkpoint())
    places = np.arange(len(texts))
    held_out = places[np.isin(places % 10, (4, 9))]
    codes = np.unique(labels, return_inverse=True)[1]
    few = page().labelled(labels, np.setdiff1d(places, held_out), size, seed)
    args = (bert, tokenizer, texts, codes, few, SETTINGS["bert_rate"], seed, steps)
    say = page().train_everything(*args)
    hits = say([texts[i] for i in held_out]) == codes[held_out]
    return {"size": size, "seed": seed, "hits": hits.astype(int).tolist()}


def summary(results):
    """Compare all weights with the last layer, at one rate."""
    runs = [row for row in results["runs"] if not row["replayed"] and row["rate"] == 3e-3]
    methods = [
        [row for row in runs if row["method"] == name]
        for name in ("all weights", "last layer")
    ]
    new, old = (
        paired(*([row[f"{poet} validation"] for row in rows] for rows in methods), True)
        for poet in ("Dickinson", "Shakespeare")
    )
    holds = old["interval"][0] > 0.03 and max(map(abs, new["interval"])) < 0.01
    return count(results["runs"]) | old | {"verdict": verdict(holds)}
