"""What does a small model miss that never had a part of its blocks?

Varied: the part that is lacking from the beginning, the number of blocks and the size of
the first weights (PyTorch's own, and Xavier's). All learn at the same rate, lower the
deeper they are; where they learned least, other rates are tried, and four blocks of all
kinds learn for ten times the steps. Without norms there is none at the end either. Rivals:
one constant factor in the place of the norms; for the paths, depth alone: models without
paths in which each token sees only itself. Null: models with the part and without it end
at the same loss. Statistic: the loss on held-out sonnets by seed, and how different the
tokens of a window are; the interval is that of how much more four blocks without paths
lose than four whose tokens see only themselves.
"""

from studies.harness import alike, count, grid, paired
from studies.transformer_block import shown

CHAPTER = "transformer-block"
CLAIM = (
    "Four blocks without paths lose more, in every run, than the same four blocks in which "
    "each token sees only itself"
)
RIVAL = "the same blocks without paths, each token seeing only itself"
NULL = "models with the part and without it end at the same loss"
SETTINGS = {
    "seeds": [0, 1, 2],
    "layers": [1, 2, 4, 8, 12],
    "weights": ["PyTorch's", "Xavier"],
    "steps": 100,
    "rate": 6e-3,  # over the root of the number of blocks
    "other": {"rates": [3e-4, 1e-3, 1e-2], "norms": 8, "paths": 4},
    "longer": 1000,
}


def plan(small):
    """All kinds, depths and first weights; or two steps of a few."""
    kinds, other = [*shown.LACKING], SETTINGS["other"]
    same = {"seed": SETTINGS["seeds"], "steps": SETTINGS["steps"]}
    sizes = {"weights": SETTINGS["weights"], "layers": SETTINGS["layers"]}
    runs = grid(group="grid", off=kinds, **sizes, **same)
    runs = [each for each in runs if each["weights"] == "Xavier" or "," not in each["off"]]
    worst = {"paths": "PyTorch's", "norms": "Xavier"}
    four = {"weights": worst["paths"], "layers": other["paths"]}
    single = [off for off in kinds if "," not in off]
    runs += grid(group="longer", off=single, **four, **same | {"steps": SETTINGS["longer"]})
    runs = [each | {"rate": SETTINGS["rate"] / each["layers"] ** 0.5} for each in runs]
    for off in ("norms", "paths"):
        sizes = {"weights": worst[off], "layers": other[off]}
        runs += grid(group="other", off=off, **sizes, rate=other["rates"], **same)
    return [each | {"steps": 2} for each in runs[::40]] if small else runs


def run(_folder, group, off, weights, layers, seed, steps, rate):
    """Train one model; return its loss and how different its tokens are at the end."""
    kind = shown.LACKING[off]
    found = shown.train_without(kind, layers, weights, rate, seed, steps)
    kept = {"off": off, "weights": weights, "layers": layers, "seed": seed, "rate": rate}
    return kept | dict(zip(("loss", "spread"), map(finite, found), strict=True))


def finite(number):
    """Round; none for what is no number any more."""
    return float(f"{number:.4g}") if abs(number) < 1e9 else None


def losses(results, off, layers):
    """Return the losses of models with Xavier's first weights, by seed."""
    rows = alike(results["grid"], off=off, layers=layers, weights="Xavier")
    return [each["loss"] for each in rows]


def summary(results):
    """Compare four blocks without paths with those whose tokens see only themselves."""
    cut, alone = (losses(results, off, 4) for off in ("paths", "paths, other tokens"))
    if not (cut and alone):  # a short run
        cut = alone = [0.0]
    rows = [each for group in results.values() for each in group]
    return count(rows) | paired(cut, alone, min(cut) > max(alone))
