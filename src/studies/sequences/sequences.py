"""Who wrote it? Counting beside six small networks, on the same passages.

Varied: how a passage is read (six networks; counting, as a bag and in runs), what its
tokens are (forty characters, eight words), and whether they stand in order. Rivals:
counting, of the order that tells most of the inner validation passages; the mean of the
token vectors; the plain mean of an LSTM's states; the best network, ten times as long.
Rate and steps are chosen for each by the same rule, on a fifth of the poems learned from,
then three seeds train on all of them. Null: the same with every passage's tokens shuffled.
Statistic: the share of test passages told right; intervals of paired differences are over
poems drawn again, that which is stored of counting less the window, on characters.
"""

import numpy as np

from studies.harness import verdict
from studies.sequences import shown

CHAPTER = "sequences"
CLAIM = (
    "Of passages of forty characters counting runs tells more right than any of six small "
    "networks, and all that can use the order lose when it is taken away"
)
RIVAL = "counting runs of characters, smoothed"
NULL = "the same passages, each one's tokens shuffled"
LSTMS = ["LSTM, last", "LSTM, mean", "LSTM, attention"]
NETWORKS = ["bag", "window", *LSTMS, "self-attention"]
COUNTS = ["bag of counts", "counts"]
ORDERS = {"character": [1, 2, 3, 4, 5, 6], "word": [1, 2, 3]}
SETTINGS = {"seeds": [0, 1, 2], "rates": [3e-3, 1e-2, 3e-2], "steps": [400, 1600, 4000]}
SETTINGS["longer"] = {"steps": 40_000, "rate": 3e-2}  # the window again, ten times as long


def plan(small):
    """Every way to read, of both units, in order and shuffled; or two of them, briefly."""
    steps = [2] if small else SETTINGS["steps"]
    runs = [
        {"group": unit, "kind": kind, "shuffled": mixed, "steps": steps}
        for unit in ORDERS
        for kind in (["counts", "window"] if small else [*COUNTS, *NETWORKS])
        for mixed in (False, True)
        if not (mixed and kind.startswith("bag"))  # a bag has no order to lose
    ]
    long = {"kind": "window", "shuffled": False, "rate": SETTINGS["longer"]["rate"]}
    long |= {"steps": [2] if small else [SETTINGS["longer"]["steps"]]}
    return [{"group": "sizes"}, *runs, {"group": "longer"} | long]


def run(_folder, group, kind="", shuffled=False, steps=(), rate=None):
    """Choose order, or rate and steps; return what each seed tells right, poem by poem."""
    if group == "sizes":
        return sizes()
    unit = "character" if group == "longer" else group
    ids, labels, poems, tested = shown.passages(unit)
    seeds = SETTINGS["seeds"]
    mix = shown.shuffled if shuffled else lambda ids, seed: ids
    tries = [(s, r) for s in steps for r in ([rate] if rate else SETTINGS["rates"])]
    if "counts" in kind:
        tries = [(order,) for order in ([1] if "bag" in kind else ORDERS[unit])]
    inner = np.isin(poems[~tested] % 10, (0, 1))
    own = mix(ids, len(seeds))[~tested], labels[~tested], ~inner
    found = [tell(kind, *own, each, 9).mean() for each in tries] if len(tries) > 1 else [1]
    best, rows = tries[int(np.argmax(found))], []
    names = ("order",) if "counts" in kind else ("steps", "rate")
    for seed in seeds:
        right = tell(kind, mix(ids, seed), labels, ~tested, best, seed)
        row = {"kind": kind, "shuffled": shuffled, "seed": seed}
        row |= dict(zip(names, best, strict=True))
        of = poems[tested]
        per_poem = [int(right[of == poem].sum()) for poem in np.unique(of)]
        rows.append(row | {"share": round(float(right.mean()), 4), "right": per_poem})
    return rows


def tell(kind, ids, labels, learned, choice, seed):
    """Return which of the passages not learned from are told right."""
    if "counts" in kind:
        return shown.count_poets(*choice, ids, labels, learned)
    return shown.train_poet(kind, ids, labels, learned, *choice, seed)


def sizes():
    """Return how many test passages each poem has, by unit, in the order of `right`."""
    found = {}
    for unit in ORDERS:
        _, _, poems, tested = shown.passages(unit)
        found[unit] = np.unique(poems[tested], return_counts=True)[1].tolist()
    return found


def gap(results, one, other):
    """Return the interval of a difference between two (kind, shuffled), on characters."""
    counts, each = np.array(results["sizes"][0]["character"]), []
    for chosen in (one, other):
        rows = [r for r in results["character"] if (r["kind"], r["shuffled"]) == chosen]
        each.append(np.mean([row["right"] for row in rows], axis=0) / counts)
    poems = np.repeat(np.arange(len(counts)), counts)
    return shown.interval(np.repeat(each[0] - each[1], counts), poems)


def summary(results):
    """Compare counting with each network, and each in order with itself shuffled."""
    known = {row["kind"] for row in results["character"]}
    ways = [kind for kind in NETWORKS if kind in known]
    ahead = {kind: gap(results, ("counts", False), (kind, False)) for kind in ways}
    reads = [kind for kind in ("counts", *ways) if kind != "bag"]
    gains = [gap(results, (kind, False), (kind, True)) for kind in reads]
    holds = all(low > 0 for low, _ in (*ahead.values(), *gains))
    told = {"n": sum(results["sizes"][0]["character"]), "seeds": SETTINGS["seeds"]}
    told |= {"interval": np.round(ahead["window"], 4).tolist(), "verdict": verdict(holds)}
    return told
