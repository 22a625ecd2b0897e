"""What does an encoder–decoder learn that was shown dates in three styles?

Varied: the style that is read, of eight; the first weights and the order of what was shown,
over five seeds. Rivals: that it learned to read dates, or three patterns. Null: styles that
it never saw are read as well as the three. Statistic: the share of 500 held-out days read
right; the interval is that of the worst of the three styles less the better of the two that
turn the order round, by seed. Stored too: where each looks, what goes wrong when a part of
the source is hidden, what it writes for odd dates; of the first one what it writes for six
days in all styles, with probabilities and cross-attention. Task, model and training are the
chapter's.
"""

import datetime

import torch
from safetensors.torch import load_model, save_model

from studies.chapter import page as read_page
from studies.harness import count, paired

CHAPTER = "encoder-decoder"
CLAIM = (
    "An encoder–decoder reads held-out days in the three styles that it was shown, fails "
    "where the order is turned round, and in between depends on the seed"
)
RIVAL = "it has learned to read dates, in whatever style"
NULL = "styles that were never shown are read as well as the three that were"
SETTINGS = {"seeds": [0, 1, 2, 3, 4], "steps": 400}
DAYS = ["1886-05-15", "1830-12-10", "1861-03-01", "1899-09-09", "1912-11-30", "1984-06-21"]
PROBES = ["February 31, 1886", "15 May 1750", "15 May 2050", "15 Mai 1886", "1 Sept 1886"]


def page():
    """Return the chapter's definitions."""
    return read_page(CHAPTER)


def days():
    """Return the days that are shown."""
    return [datetime.date.fromisoformat(day) for day in DAYS]


def plan(small):
    """Five models; or one of three steps. The answers of the first come last."""
    seeds = SETTINGS["seeds"][: 1 if small else None]
    how = {"steps": 3, "asked": 10} if small else {"steps": SETTINGS["steps"], "asked": 500}
    runs = [{"group": "runs", "seed": seed} | how for seed in seeds]
    return [*runs, {"group": "states", "seed": seeds[0]}]


def run(folder, group, seed, steps=0, asked=0):
    """Train a model, or ask a trained one."""
    model, path = page().new_model(seed), folder / f"model-{seed}.safetensors"
    if group == "states":
        load_model(model, path)
        return states(model.eval())
    held_out, known = page().split_days(days())
    losses = page().train(model, page().drawing(known, seed), steps)
    save_model(model, path)
    looks, hidden = page().tables(model.eval(), held_out[: asked // 5])
    kinds = range(len(page().styles(known[0])))
    return {
        "seed": seed,
        "losses": [round(loss, 4) for loss in losses[::10]],
        "right": [page().read_right(model, held_out[:asked], kind) for kind in kinds],
        "looks": looks.round(3).to_numpy().tolist(),
        "hidden": hidden.round(3).to_numpy().tolist(),
        "probes": dict(zip(PROBES, page().write(model, PROBES), strict=True)),
    }


def states(model):
    """Return the `state` of the shown days, (styles, days)."""
    every = zip(*map(page().styles, days()), strict=True)  # (styles, days)
    return [
        [state(model, text, day) for text, day in zip(row, DAYS, strict=True)]
        for row in every
    ]


@torch.no_grad()
def state(model, source, wanted):
    """Return what a model writes, its likeliest characters and where it looks, in per cent.

    For each character written, and the end mark, ``probs`` has three pairs, and ``looks``
    is (heads, sources).
    """
    written = page().write(model, [source])[0]
    memory, mask = model.encode(page().ids([source]))
    logits, weights = model.decode(page().ids(["<" + written]), memory, mask)
    top = logits[0].softmax(-1).topk(3)  # (targets, 3)
    probs = [
        [[page().CHARACTERS[i], round(100 * p)] for p, i in zip(*row, strict=True)]
        for row in zip(top.values.tolist(), top.indices.tolist(), strict=True)
    ]
    looks = (100 * weights[-1][0]).round().int()  # (heads, targets, sources)
    found = {"source": source, "wanted": wanted, "written": written, "probs": probs}
    return found | {"looks": looks.transpose(0, 1).tolist()}


def summary(results):
    """Compare what was shown with what was turned round."""
    rights = [[right[0] for right in each["right"]] for each in results["runs"]]
    shown = [min(row[:3]) for row in rights]
    turned = [max(row[6:]) for row in rights]
    spread = max(max(style) - min(style) for style in list(zip(*rights, strict=True))[3:6])
    holds = min(shown) > 0.95 and max(turned) < 0.2 < spread
    return count(results["runs"]) | paired(shown, turned, holds)
