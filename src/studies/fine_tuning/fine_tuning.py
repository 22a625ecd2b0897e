"""What is forgotten because the text is new, and what because training begins anew?

Varied: whose poems a model of Shakespeare's reads on, Dickinson's or again his own; three
learning rates, five seeds; the method (all weights, last layer, LoRA, prefix), each at
three rates, and at two between them with one seed or, if they matter, five, for equal work;
some of Shakespeare's windows in each batch (replay). Rivals: the restart alone, another
optimizer and a raised rate, on the old text (three seeds for a method at its best rate);
for a method, all weights at their best rate and at the next lower. Null: the old text with
another seed. Statistic: losses of held-out poems, seeds averaged; an interval is over poems
drawn again. Rates are chosen on Dickinson's validation poems, by the first seed. `letters`
has what the model expected at each letter of two pieces. ``marker.safetensors`` has
adapters that follow the chapter's markers, `samples` what is written behind them, and
without a marker after the same steps of LoRA on Dickinson alone. `labels`: the held-out
poems that are told right from few labelled ones, of a hundred draws; by a decoder's states,
an untrained one's, a bag of words, one of letters and pairs of letters, a ruler.
"""

from functools import cache

import numpy as np
import torch

from lmcourse import adapters
from lmcourse.adapters import load_adapters, merge, remove, save_adapters
from lmcourse.gpt.checkpoints import load_gpt
from lmcourse.gpt.model import GPT
from studies.fine_tuning import shown
from studies.harness import alike, count, grid, verdict

CHAPTER = "fine-tuning"
CLAIM = (
    "A hundred steps of Dickinson raise the loss on Shakespeare more than a hundred steps "
    "of Shakespeare, at each of three learning rates"
)
RIVAL = "the restart alone: the same steps, rate and fresh optimizer on Shakespeare"
NULL = "one seed on Shakespeare's own poems less another"
CHECKPOINTS, AFTER = ("marker",), ("sonnets",)
MARKER = {"rank": 16, "steps": 700, "rate": 1e-2, "batch": 16}
SIZES = (8, 24, 96)  # labels
SETTINGS = {"budget": 100, "seeds": 5, "size": 8, "marker": MARKER, "labels": SIZES}
SEEDS, BUDGET = range(SETTINGS["seeds"]), SETTINGS["budget"]
RATES = {"all weights": (1e-3, 3e-3, 1e-2), "last layer": (3e-3, 1e-2, 3e-2)}
RATES |= {"LoRA": (3e-3, 1e-2, 3e-2), "prefix": (1e-1, 3e-1, 1.0)}
BETWEEN = {"all weights": (1.7e-3, 5.5e-3), "last layer": (5.5e-3, 1.7e-2)}
BETWEEN |= {"LoRA": (5.5e-3, 1.7e-2), "prefix": (1.7e-1, 5.5e-1)}
AGAIN = {"all weights": (1.7e-3,), "last layer": (5.5e-3,), "LoRA": (1.7e-2,)}
RESTARTS = AGAIN | {"last layer": (3e-3, 5.5e-3, 1e-2), "prefix": (3e-1,)}
MOMENTS, SEEN = (0, 5, 10, 20, 40, 70, BUDGET), (0, 5, 20, 50, BUDGET)  # steps
PIECES = {
    "Dickinson": "Not knowing when the dawn will come\nI open every door;\n"
    "Or has it feathers like a bird,\nOr billows like a shore?",
    "Shakespeare": "Not marble, nor the gilded monuments\n"
    "Of princes, shall outlive this powerful rhyme;",
}
SETTINGS |= {"pieces": PIECES}


@cache
def material():
    """Return the tokenizer, the model and the poems of both poets."""
    tokenizer, model, _ = load_gpt("sonnets")
    return tokenizer, model, shown.read_poets(tokenizer)


def lessons():
    """Return each run that teaches; ``replayed`` are Shakespeare's windows in a batch."""

    def at(rates, fed="Dickinson", seeds=SEEDS, replayed=0):
        how = {"fed": fed, "seed": seeds, "replayed": replayed}
        return [x for m, some in rates.items() for x in grid(method=m, rate=some, **how)]

    every = at(RATES) + at({"all weights": RATES["all weights"]}, "Shakespeare")
    every += at(RESTARTS, "Shakespeare", range(3)) + at({"all weights": 3e-3}, replayed=2)
    return every + at(BETWEEN, seeds=0) + at(AGAIN, seeds=SEEDS[1:])


def plan(small):
    """The whole grid; or some of it, for two steps."""
    chosen, budget = lessons(), {"budget": 2 if small else BUDGET}
    if small:
        chosen = alike(chosen, rate=3e-3, seed=1)
        chosen = [row for row in chosen if row["method"] != "last layer"]
    runs = [{"group": "runs"} | each | budget for each in chosen]
    for method, rate in (("all weights", 3e-3), ("LoRA", 1e-2))[small:]:
        runs.append({"group": "letters", "method": method, "rate": rate} | budget)
    taught = 1 if small else MARKER["steps"]
    runs += [{"group": group, "steps": taught} for group in ("marker", "plain")]
    runs.append({"group": "samples", "count": 2 if small else 192})
    draws = 1 if small else 100
    lengths, few = ((20,), {"every": 2, "untrained": 1}) if small else ((64, 20), {})
    runs += [{"group": "labels", "length": n, "draws": draws} | few for n in lengths]
    runs.append({"group": "labels", "length": 20, "draws": draws, "pairs": True})
    return runs


def run(folder, group, **setting):
    """Do what a group does."""
    if group in ("marker", "plain"):
        model = steer(marked=group == "marker", **setting)
        return save_adapters(folder / f"{group}.safetensors", model)
    if group == "samples":
        return write_all(folder, **setting)
    return {"runs": teach, "letters": letters, "labels": labels}[group](**setting)


def prepared(method, budget, seed=0):
    """Return a model with a method's parts, the steps of a budget, both poets' texts."""
    _, base, poets = material()
    model = shown.adapted(base, method, SETTINGS["size"], seed)
    texts = {poet: torch.cat(poems["training"]) for poet, poems in poets.items()}
    return model, shown.steps_within(budget, model, base), texts


def teach(method, fed, rate, seed, replayed, budget):
    """Teach a copy of the model; return its loss on each held-out poem of both."""
    poets, curve = material()[2], {}
    model, steps, texts = prepared(method, budget, seed)
    draws = [shown.windows(texts[fed], shown.BATCH - replayed)]
    draws += [shown.windows(texts["Shakespeare"], replayed)] * bool(replayed)

    def watch(step, model):
        if method == "all weights" and not replayed and step in MOMENTS:
            found = shown.poem_losses(model, poets["Shakespeare"]["validation"])
            curve[step] = round(float(found.mean()), 4)

    shown.tune(model, shown.mixed(*draws), steps, rate, seed, watch)
    watch(steps, model)
    found = {"method": method, "fed": fed, "rate": rate, "seed": seed, "replayed": replayed}
    found |= {"steps": steps, "parameters": adapters.trainable(model)}
    for poet, poems in poets.items():
        for part in ("validation", "test"):
            each = shown.poem_losses(model, poems[part])
            found[f"{poet} {part}"] = np.round(each, 4).tolist()
    return found | {"curve": curve}


def letters(method, rate, budget):
    """Return what a model expects at each letter of two pieces while it is taught."""
    poets, rows = material()[2], []
    model, steps, texts = prepared(method, budget)
    share = steps / budget  # LoRA's steps are cheaper: more of them are equal work

    def watch(step, model):
        if step in [round(share * each) for each in SEEN]:
            row = {"method": method, "rate": rate, "step": step}
            row["work"] = round(step / share)
            for poet, piece in PIECES.items():
                row[poet] = expected(model, piece)
                found = shown.poem_losses(model, poets[poet]["validation"])
                row[f"{poet} validation"] = round(float(found.mean()), 4)
            rows.append(row)

    shown.tune(model, shown.windows(texts["Dickinson"]), steps, rate, 0, watch)
    watch(steps, model)
    if method == "LoRA":
        watch(0, remove(model))  # taken away
    return {"method": method, "rate": rate, "rows": rows}


@torch.no_grad()
def expected(model, piece, guesses=2):
    """Return, for each letter, its share in hundredths, and the likeliest in its place."""
    tokenizer, base, _ = material()
    ids = torch.tensor(tokenizer.encode("\n\n" + piece))
    found, room = [], base.config.context
    for place in range(2, len(ids)):
        before = ids[max(0, place - room) : place]
        shares = 100 * model.eval()(before[None])[0, -1].softmax(-1)  # (vocab_size,)
        top = shares.topk(guesses)
        pairs = zip(top.indices.tolist(), top.values.tolist(), strict=True)
        likeliest = [[tokenizer.decode([i]), round(share, 1)] for i, share in pairs]
        found.append([round(shares[ids[place]].item(), 2), likeliest])
    return found


def steer(steps, marked):
    """Teach by LoRA to follow the chapter's markers, or Dickinson alone without any."""
    tokenizer, base, poets = material()
    texts = {poet: torch.cat(poems["training"]) for poet, poems in poets.items()}
    ids = {poet: tokenizer.encode(mark) for poet, mark in shown.MARKS.items()}
    share = MARKER["batch"] // len(poets)
    draws = [shown.behind(ids[poet], text, share) for poet, text in texts.items()]
    if not marked:
        draws = [shown.windows(texts["Dickinson"], MARKER["batch"])]
    model = shown.adapted(base, "LoRA", MARKER["rank"])
    return shown.tune(model, shown.mixed(*draws), steps, MARKER["rate"])


def write_all(folder, count):
    """Return texts behind both markers; without one, after Dickinson alone, and before."""
    tokenizer, base, _ = material()
    own = {mark.strip(): ("marker", mark) for mark in shown.MARKS.values()}
    own |= {"Dickinson alone, no marker": ("plain", "\n"), "before, no marker": ("", "\n")}
    found = {}
    for name, (file, mark) in own.items():
        model = base
        if file:
            light = shown.adapted(base, "LoRA", MARKER["rank"])
            model = merge(load_adapters(folder / f"{file}.safetensors", light))
        ids = tokenizer.encode(mark)
        found[name] = shown.write_behind(model, tokenizer, ids, batch=count)
    return found


def labels(length, draws, pairs=False, every=1, untrained=3):
    """Return which held-out poems each reader tells right, the mean of draws of labels."""
    tokenizer, model, _ = material()
    table, config, rows = shown.cut_poems(length)[::every], model.config, []

    def tell(reader, layer, *readings, **kind):
        cases = [(x, draw) for x in readings for draw in range(draws)]
        for size in SIZES:
            told = [shown.told_right(x, table, size, draw, **kind) for x, draw in cases]
            row = {"length": length, "reader": reader, "layer": layer, "size": size}
            rows.append(row | {"hits": np.mean(told, axis=0).round(3).tolist()})

    texts = [" ".join(lines) for lines in table.lines]
    if pairs:
        tell("pairs of letters", 0, texts, analyzer="char", ngram_range=(1, 2))
        return rows
    tell("bag of words", 0, texts)
    tell("ruler", 0, np.array([[np.mean([*map(len, lines)])] for lines in table.lines]))
    others = []
    for seed in range(untrained):
        torch.manual_seed(seed)
        others.append(GPT(config).eval())
    for last, name in {True: "last state", False: "mean state"}.items():
        own, *rest = (
            shown.readings(each, tokenizer, table, last) for each in (model, *others)
        )
        for layer in range(len(own)) if length == 20 else [config.layers]:
            tell(name, layer, own[layer])
            tell(f"{name}, untrained", layer, *(each[layer] for each in rest))
    return rows


def summary(results):
    """Compare the two texts at each rate, over held-out sonnets."""
    rng, lows, middle = np.random.default_rng(0), [], (0, 0)
    for rate in RATES["all weights"]:
        each = []
        for fed in ("Dickinson", "Shakespeare"):
            kind = {"method": "all weights", "fed": fed, "rate": rate, "replayed": 0}
            rows = alike(results["runs"], **kind)
            costs = [[*r["Shakespeare validation"], *r["Shakespeare test"]] for r in rows]
            each.append(np.mean(costs, axis=0))
        gap = each[0] - each[1]  # (sonnets,)
        if not gap.ndim:
            continue
        drawn = gap[rng.integers(len(gap), size=(5000, len(gap)))].mean(1)
        found = np.quantile(drawn, [0.025, 0.975]).round(4).tolist()
        lows.append(found[0])
        middle = found if rate == 3e-3 else middle
    holds = min(lows) > 0
    return count(results["runs"]) | {"interval": middle, "verdict": verdict(holds)}
