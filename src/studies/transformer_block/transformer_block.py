"""What does a small model lack that never had a part of its blocks?

What varies: the part that is missing from the beginning, the number of blocks, and the size
of the first weights (PyTorch's own, and Xavier's). All models train at the same learning
rate, lower the deeper they are. Where they learned least, other rates are tried; and four
blocks of all kinds train for ten times the steps. Without norms there is none after the
last block either.

Rivals: one constant factor in the place of the norms. For residual paths, depth alone:
models without paths in which each token attends only to itself.

Null: models with and without the part end at the same loss.

Statistic: the loss on held-out sonnets in nats a character, by seed, and how different the
tokens of a window are. The interval is that of the loss of four blocks without paths less
that of four whose tokens attend only to themselves.
"""

from studies.harness import alike, count, grid, paired
from studies.transformer_block import shown

CHAPTER = "transformer-block"
CLAIM = (
    "Without residual paths, four blocks have a lower loss if each token attends only to "
    "itself"
)
RIVAL = "depth alone: the same blocks without paths, each token attending only to itself"
NULL = "models with and without the part end at the same loss"
SETTINGS = {
    "seeds": [0, 1, 2],
    "layers": [1, 2, 4, 8, 12],
    "weights": ["PyTorch's", "Xavier"],
    "steps": 100,
    "rate": 6e-3,  # over the root of the number of blocks
    "other": {"rates": [3e-4, 1e-3, 1e-2], "norms": 8, "paths": 4},  # and layers
    "longer": 1000,
}


def plan(small):
    """Return the settings of all runs.

    Parameters
    ----------
    small : bool
        Whether to return every fortieth of them, with two steps.

    Returns
    -------
    list of dict
        The arguments of `run`. "grid": every missing part, depth and first weights, two
        missing parts with Xavier's weights alone. "longer": four blocks, ten times the
        steps. "other": further learning rates for models without norms or without paths.
    """
    kinds = [*shown.LACKING]
    single = [off for off in kinds if "," not in off]
    seeds = SETTINGS["seeds"]
    settings = grid(
        group="grid",
        off=kinds,
        weights=SETTINGS["weights"],
        layers=SETTINGS["layers"],
        seed=seeds,
        steps=SETTINGS["steps"],
    )
    settings = [
        each for each in settings if each["weights"] == "Xavier" or each["off"] in single
    ]
    other = SETTINGS["other"]
    settings += grid(
        group="longer",
        off=single,
        weights="PyTorch's",
        layers=other["paths"],
        seed=seeds,
        steps=SETTINGS["longer"],
    )
    settings = [
        each | {"rate": SETTINGS["rate"] / each["layers"] ** 0.5} for each in settings
    ]
    for off, weights in (("norms", "Xavier"), ("paths", "PyTorch's")):  # learned least
        settings += grid(
            group="other",
            off=off,
            weights=weights,
            layers=other[off],
            rate=other["rates"],
            seed=seeds,
            steps=SETTINGS["steps"],
        )
    return [each | {"steps": 2} for each in settings[::40]] if small else settings


def run(_folder, group, off, weights, layers, seed, steps, rate):
    """Train one model that lacks a part of its blocks.

    Parameters
    ----------
    group : {"grid", "longer", "other"}
    off : str
        A key of `shown.LACKING`: what is missing.
    weights : {"PyTorch's", "Xavier"}
        The first weights.
    layers, seed, steps : int
    rate : float
        The learning rate.

    Returns
    -------
    dict
        ``off``, ``weights``, ``layers``, ``seed``, ``rate``; ``loss`` and ``spread``, what
        `shown.train_without` returns, None for a number that has grown beyond a billion.
    """
    missing = shown.LACKING[off]
    loss, spread = shown.train_without(missing, layers, weights, rate, seed, steps)
    row = {"off": off, "weights": weights, "layers": layers, "seed": seed, "rate": rate}
    return row | {"loss": round_finite(loss), "spread": round_finite(spread)}


def round_finite(number):
    """Round a float to four digits; return None if it is above a billion, or NaN."""
    return float(f"{number:.4g}") if abs(number) < 1e9 else None


def losses_of(results, off, layers):
    """Return the losses of models with Xavier's first weights.

    Parameters
    ----------
    results : dict of str to list of dict
        Group → outcomes of its runs.
    off : str
        The part that the blocks lack, a key of `shown.LACKING`: "nothing", "attention",
        "paths", "paths, other tokens", …
    layers : int
        How many blocks the models have.

    Returns
    -------
    list of float
        The validation loss of each model, in nats a character, in the order of the seeds;
        empty if there is none.
    """
    rows = alike(results["grid"], off=off, layers=layers, weights="Xavier")
    return [row["loss"] for row in rows]


def summary(results):
    """Compare four blocks without paths with those whose tokens attend to themselves.

    Parameters
    ----------
    results : dict of str to list of dict
        Group → outcomes of its runs (`studies.harness`).

    Returns
    -------
    dict
        ``n``, ``seeds``; ``interval``, of the difference of their losses; ``verdict``:
        whether every model without paths has a higher loss than every one whose tokens
        attend only to themselves.
    """
    without_paths = losses_of(results, "paths", 4)
    attending_to_self = losses_of(results, "paths, other tokens", 4)
    if not (without_paths and attending_to_self):  # a short run
        without_paths = attending_to_self = [0.0]
    rows = [row for group in results.values() for row in group]
    holds = min(without_paths) > max(attending_to_self)
    return count(rows) | paired(without_paths, attending_to_self, holds)
