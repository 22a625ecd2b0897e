"""What is forgotten because the text is new, and what because training begins anew?

Varied: whose poems a model of Shakespeare's reads on, Dickinson's or again his own; three
learning rates, five seeds; the method (all weights, last layer, LoRA, prefix), each at
three rates, for equal work; some of Shakespeare's windows in each batch (replay). Rivals:
the restart alone, a fresh optimizer and a raised rate, on the old text; for a method, all
weights at the best of their rates. Null: the old text with another seed. Statistic: losses
of held-out poems, five seeds averaged; an interval is over poems drawn again. Rates are
chosen on Dickinson's validation poems. `letters` has what the model expected at each letter
of two pieces. ``marker.safetensors`` has adapters that follow the chapter's markers,
`samples` what is written behind them. `labels`: the held-out poems that are told right from
few labelled ones, of a hundred draws; by a decoder's states, an untrained one's, a bag of
words, a ruler.
"""

from functools import cache

import numpy as np
import torch

from lmcourse.adapters import load_adapters, remove, save_adapters
from lmcourse.gpt.checkpoints import load_gpt
from lmcourse.gpt.model import GPT
from studies.chapter import page as read_page
from studies.harness import count, verdict

CHAPTER = "fine-tuning"
CLAIM = (
    "A hundred steps of Dickinson raise the loss on Shakespeare more than a hundred steps "
    "of Shakespeare, at each of three learning rates"
)
RIVAL = "the restart alone: the same steps, rate and fresh optimizer on Shakespeare"
NULL = "one seed on Shakespeare's own poems less another"
CHECKPOINTS, READS = ("marker",), ("sonnets",)
MARKER = {"rank": 16, "steps": 700, "rate": 1e-2, "batch": 16}
SIZES = (8, 24, 96)  # labels
SETTINGS = {"budget": 100, "seeds": 5, "size": 8, "marker": MARKER, "labels": SIZES}
SEEDS, BUDGET = range(SETTINGS["seeds"]), SETTINGS["budget"]
RATES = {"all weights": (1e-3, 3e-3, 1e-2), "last layer": (3e-3, 1e-2, 3e-2)}
RATES |= {"LoRA": (3e-3, 1e-2, 3e-2), "prefix": (1e-1, 3e-1, 1.0)}
MOMENTS, SEEN = (0, 5, 10, 20, 40, 70, BUDGET), (0, 5, 20, 50, BUDGET)  # steps
PIECES = {
    "Dickinson": "Not knowing when the dawn will come\nI open every door;\n"
    "Or has it feathers like a bird,\nOr billows like a shore?",
    "Shakespeare": "Not marble, nor the gilded monuments\n"
    "Of princes, shall outlive this powerful rhyme;",
}
SETTINGS |= {"pieces": PIECES}


def page():
    """Return the chapter's definitions."""
    return read_page(CHAPTER)


@cache
def material():
    """Return the tokenizer, the model and the poems of both poets."""
    tokenizer, model, _ = load_gpt("sonnets")
    return tokenizer, model, page().read_poets(tokenizer)


def plan(small):
    """The whole grid; or some of it, for two steps."""
    grid = [
        (method, poet, rate, seed, 0)
        for method, rates in RATES.items()
        for poet in (
            ["Shakespeare", "Dickinson"] if method == "all weights" else ["Dickinson"]
        )
        for rate in rates
        for seed in SEEDS
    ]
    grid += [("all weights", "Dickinson", 3e-3, seed, 2) for seed in SEEDS]
    grid = [each for each in grid if not small or each[2:4] == (3e-3, 1)]
    names = ("method", "fed", "rate", "seed", "replayed")
    steps = 2 if small else BUDGET
    runs = [{"group": "runs"} | dict(zip(names, each, strict=True)) for each in grid]
    runs = [each | {"budget": steps} for each in runs]
    pairs = {"all weights": 3e-3, "LoRA": 1e-2}
    runs += [
        {"group": "letters", "method": m, "rate": r, "budget": steps}
        for m, r in pairs.items()
    ]
    runs.append({"group": "marker", "steps": 1 if small else MARKER["steps"]})
    runs.append({"group": "samples", "count": 2 if small else 48, "budget": steps})
    draws = 1 if small else 100
    return runs + [{"group": "labels", "length": n, "draws": draws} for n in (64, 20)]


def run(folder, group, **setting):
    """Do what a group does."""
    if group == "marker":
        return save_adapters(folder / "marker.safetensors", steer(**setting))
    if group == "samples":
        return write_all(folder / "marker.safetensors", **setting)
    return {"runs": teach, "letters": letters, "labels": labels}[group](**setting)


def prepared(method, budget, seed=0):
    """Return a model with a method's parts, the steps of a budget, both poets' texts."""
    _, base, poets = material()
    model = page().adapted(base, method, SETTINGS["size"], seed)
    texts = {poet: torch.cat(poems["training"]) for poet, poems in poets.items()}
    return model, page().steps_within(budget, model, base), texts


def teach(method, fed, rate, seed, replayed, budget):
    """Teach a copy of the model; return its loss on each held-out poem of both."""
    poets, curve = material()[2], {}
    model, steps, texts = prepared(method, budget, seed)
    draws = [page().windows(texts[fed], page().BATCH - replayed)]
    draws += [page().windows(texts["Shakespeare"], replayed)] * bool(replayed)

    def watch(step, model):
        if method == "all weights" and not replayed and step in MOMENTS:
            found = page().poem_losses(model, poets["Shakespeare"]["validation"])
            curve[step] = round(float(found.mean()), 4)

    page().tune(model, page().mixed(*draws), steps, rate, seed, watch)
    watch(steps, model)
    found = {"method": method, "fed": fed, "rate": rate, "seed": seed, "replayed": replayed}
    found |= {"steps": steps, "parameters": page().adapters.trainable(model)}
    for poet, poems in poets.items():
        for part in ("validation", "test"):
            each = page().poem_losses(model, poems[part])
            found[f"{poet} {part}"] = np.round(each, 4).tolist()
    return found | {"curve": curve}


def letters(method, rate, budget):
    """Return what a model expects at each letter of two pieces while it is taught."""
    poets, rows = material()[2], []
    model, steps, texts = prepared(method, budget)
    share = steps / budget  # LoRA's steps are cheaper: more of them are equal work

    def watch(step, model):
        if step in [round(share * each) for each in SEEN]:
            row = {
                "method": method,
                "rate": rate,
                "step": step,
                "work": round(step / share),
            }
            for poet, piece in PIECES.items():
                row[poet] = expected(model, piece)
                found = page().poem_losses(model, poets[poet]["validation"])
                row[f"{poet} validation"] = round(float(found.mean()), 4)
            rows.append(row)

    page().tune(model, page().windows(texts["Dickinson"]), steps, rate, 0, watch)
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
        likeliest = [
            [tokenizer.decode([i]), round(share, 1)]
            for i, share in zip(top.indices.tolist(), top.values.tolist(), strict=True)
        ]
        found.append([round(shares[ids[place]].item(), 2), likeliest])
    return found


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


def write_all(path, count, budget):
    """Return texts behind both markers, and without, before and after Dickinson."""
    tokenizer, base, _ = material()
    model = load_adapters(path, page().adapted(base, "LoRA", MARKER["rank"]))
    found = {}
    for mark in page().MARKS.values():
        ids = tokenizer.encode(mark)
        found[mark.strip()] = page().write_behind(model, tokenizer, ids, batch=count)
    taught, steps, texts = prepared("all weights", budget)
    page().tune(taught, page().windows(texts["Dickinson"]), steps, 3e-3)
    start = torch.tensor([tokenizer.encode("\n")] * count)
    for name, each in {
        "after Dickinson, no marker": taught,
        "before, no marker": base,
    }.items():
        draw = torch.Generator().manual_seed(0)
        more = page().generate(each.eval(), start, 120, 1.0, draw, cached=False)
        found[name] = [tokenizer.decode(row) for row in more.tolist()]
    return found


def labels(length, draws):
    """Return which held-out poems each reader tells right, the mean of draws of labels."""
    tokenizer, model, _ = material()
    table, config, rows = page().cut_poems(length), model.config, []

    def tell(reader, layer, *readings):
        for size in SIZES:
            told = [
                page().told_right(x, table, size, d) for x in readings for d in range(draws)
            ]
            hits = np.mean(told, axis=0).round(3).tolist()
            rows.append(
                {"length": length, "reader": reader, "layer": layer}
                | {"size": size, "hits": hits}
            )

    tell("bag of words", 0, [" ".join(lines) for lines in table.lines])
    tell("ruler", 0, np.array([[np.mean([*map(len, lines)])] for lines in table.lines]))
    others = []
    for seed in range(3):
        torch.manual_seed(seed)
        others.append(GPT(config).eval())
    for last, name in {True: "last state", False: "mean state"}.items():
        own, *rest = (
            page().readings(each, tokenizer, table, last) for each in (model, *others)
        )
        for layer in range(len(own)) if length == 20 else [config.layers]:
            tell(name, layer, own[layer])
            tell(f"{name}, untrained", layer, *(each[layer] for each in rest))
    return rows


def summary(results):
    """Compare the two texts at each rate, over held-out sonnets."""
    rng, lows, middle = np.random.default_rng(0), [], (0, 0)
    for rate in RATES["all weights"]:
        each = {
            fed: np.mean(
                [
                    row["Shakespeare validation"] + row["Shakespeare test"]
                    for row in results["runs"]
                    if (row["method"], row["fed"], row["rate"], row["replayed"])
                    == ("all weights", fed, rate, 0)
                ],
                axis=0,
            )
            for fed in ("Dickinson", "Shakespeare")
        }
        gap = each["Dickinson"] - each["Shakespeare"]  # (sonnets,)
        if not gap.ndim:
            continue
        drawn = gap[rng.integers(len(gap), size=(5000, len(gap)))].mean(1)
        found = np.quantile(drawn, [0.025, 0.975]).round(4).tolist()
        lows.append(found[0])
        middle = found if rate == 3e-3 else middle
    holds = min(lows) > 0
    return count(results["runs"]) | {"interval": middle, "verdict": verdict(holds)}
