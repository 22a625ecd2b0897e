"""Which neighbours does a poem keep in a BERT, and which word decides its section?

Varied: the layers whose weights learned nothing (all, or the last alone, on what the
trained ones hand it), shuffled or drawn at their size, five seeds each. Statistic: the
share of a poem's ten nearest that a layer keeps; the interval is that of the last layer,
untrained alone less trained, widest over ways and seeds, poems drawn again. Rival: an
untrained last layer on the same input. Null: neighbours drawn at random.

Then every word of every third poem is struck out by itself, and all other poems are asked
in which section it would be: with the vectors of the last layer, and with static ones.
"""

import itertools
import re
from functools import cache

import numpy as np
import torch

from lmcourse.data import load_poems
from lmcourse.models import load_bert
from lmcourse.pooling import kept, pool_layers, untrained
from lmcourse.probe import ask, predict
from studies.harness import count, grid, verdict

CHAPTER = "dickinson-layers"
CLAIM = (
    "The last layer keeps fewer of a poem's ten nearest neighbours than it does with "
    "untrained weights"
)
RIVAL = "the last layer alone untrained, on the input of the trained one"
NULL = "neighbours drawn at random: ten in 305 are kept"
SETTINGS = {"seeds": [0, 1, 2, 3, 4], "count": 10, "draws": 1000, "every": 3, "close": 8}
KNOWN = (
    "Hope is the thing",
    "Essential oils",
    "My life closed twice",
    "Portraits are to daily",
    "The daisy follows soft",
    "Except to heaven",
    "Because I could not",
    "A narrow fellow",
    "I'm nobody",
    "To make a prairie",
)


@cache
def printed(count=None):
    """Return the poems, the model, its levels and what each says of their sections."""
    poems, (tokenizer, model) = load_poems()[:count], load_bert()
    levels = pool_layers(poems.text.tolist(), tokenizer, model).levels
    return poems, tokenizer, model, levels, [predict(x, poems.section) for x in levels]


def plan(small):
    """Two ways to unlearn, in all layers or the last, and the poems; or one, of few."""
    ways = {"way": ("dealt", "drawn"), "where": ("all", "last")}
    runs = grid(group="beside", seed=SETTINGS["seeds"], **ways)
    runs = runs[1:2] if small else runs
    runs = [{"group": "beside", "way": "trained", "where": "all", "seed": 0}, *runs]
    every = 17 * SETTINGS["every"]
    first = range(0, 1 if small else len(load_poems()), 1 if small else every)
    strikes = [{"group": "words", "first": i, "end": i + first.step} for i in first]
    if small:
        return [run | {"poems": 120} for run in (*runs, *strikes)]
    return [*runs, *strikes, {"group": "close"}]


def run(folder, group, **setting):
    """Do what a group does."""
    return {"beside": beside, "words": words, "close": close}[group](**setting)


def beside(way, where, seed, poems=None):
    """Return what each layer keeps, and of the last one each poem's neighbours kept."""
    texts, tokenizer, model, levels, _ = printed(poems)
    depth = len(levels) - 2
    if way != "trained":
        layers = range(depth) if where == "all" else [depth - 1]
        other = untrained(model, seed, way == "dealt", layers)
        levels = pool_layers(texts.text.tolist(), tokenizer, other).levels
    pairs = itertools.pairwise(levels[1:])
    steps = [kept(*pair, SETTINGS["count"]) for pair in pairs]
    found = {"way": way, "where": where, "seed": seed}
    found |= {"steps": [round(step.mean().item(), 4) for step in steps]}
    return found | {"last": (SETTINGS["count"] * steps[-1]).round().int().tolist()}


def struck(poem, count=None):
    """Return a poem's words, and of all levels its vectors without each of them."""
    poems, tokenizer, model, _, _ = printed(count)
    text = poems.text[poem]
    places = list(re.finditer(r"[\w'-]+", text))
    versions = [text[: at.start()] + text[at.end() :] for at in places]
    return [at[0] for at in places], pool_layers(versions, tokenizer, model).levels


def answers(poem, level, versions, count=None):
    """Return what all other poems say of versions of one: hundredths."""
    poems, _, _, levels, shelves = printed(count)
    penalty = shelves[level].penalty[poem].item()
    said = ask(levels[level], poems.section, poem, versions, penalty)
    return (100 * said).round().int()


def words(first, end, poems=None):
    """Return of each poem its section's lead without each word, at top and bottom."""
    texts, *_, shelves = printed(poems)
    rows = []
    for poem in range(first, min(end, len(texts)), SETTINGS["every"]):
        names, vectors = struck(poem, poems)
        row = {"poem": poem, "words": len(names)}
        for name, level in (("static", 0), ("top", len(vectors) - 1)):
            said = answers(poem, level, vectors[level], poems)
            shelf = shelves[level].support[poem].argmax()
            others = said.clone()
            others[:, shelf] = -(10**6)
            row[name] = (said[:, shelf] - others.max(dim=1).values).tolist()
        rows.append(row)
    return rows


def close():
    """Return all that is said, level by level, of a few poems without each word.

    Those of `KNOWN`, and of those that the last step takes to another shelf the eight
    that it leads there most clearly.
    """
    poems, *_, shelves = printed()
    top, below = (shelf.support for shelf in (shelves[-1], shelves[-2]))
    ends = top.topk(2).values
    moved = top.argmax(dim=1) != below.argmax(dim=1)
    lead = torch.where(moved, ends[:, 0] - ends[:, 1], -1)
    starts = poems.text.str.startswith
    chosen = [int(np.flatnonzero(starts(start))[0]) for start in KNOWN]
    clear = lead.topk(len(KNOWN) + SETTINGS["close"]).indices.tolist()
    chosen += [i for i in clear if i not in chosen][: SETTINGS["close"]]
    rows = []
    for poem in chosen:
        names, vectors = struck(poem)
        said = [answers(poem, i, x).tolist() for i, x in enumerate(vectors)]
        rows.append({"poem": poem, "words": names, "said": said})
    return rows


def summary(results):
    """Tell the widest interval of the last step, untrained alone less trained."""
    rows = results["beside"]
    trained = np.array(next(r["last"] for r in rows if r["way"] == "trained"))
    alone = [r for r in rows if r["where"] == "last"]
    rng = np.random.default_rng(0)
    drawn = rng.integers(len(trained), size=(SETTINGS["draws"], len(trained)))
    ends = []
    for row in alone:
        gap = (np.array(row["last"]) - trained) / SETTINGS["count"]
        ends.append(np.quantile(gap[drawn].mean(axis=1), [0.025, 0.975]))
    low, high = np.min(ends, axis=0)[0], np.max(ends, axis=0)[1]
    found = count(alone) | {"n": len(trained), "verdict": verdict(low > 0)}
    return found | {"interval": [round(float(low), 4), round(float(high), 4)]}
