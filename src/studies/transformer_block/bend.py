"""Is it the bend that makes the feed-forward networks worth having?

What varies: four blocks with feed-forward networks; the same without the activation, so
that each network is a straight line of as many parameters; and the same without networks.
Each kind trains at three learning rates, and the best one counts.

Rivals: no networks at all; the straight line has the size of a network and is tuned alike.

Null: without the bend the networks are worth as much as with it.

Statistic: the loss on held-out sonnets in nats a character, by seed, at the learning rate
with the lowest mean. The interval is that of the loss without the bend less that without
networks.
"""

import numpy as np

from studies.harness import alike, count, grid, paired
from studies.transformer_block.models import train_without

CHAPTER = "transformer-block"
CLAIM = (
    "Feed-forward networks without their bend are worth nothing: tuned alike, four blocks "
    "without any learn more in 1,000 steps"
)
RIVAL = "no networks at all, and networks with a bend; the learning rate of each is tuned"
NULL = "the networks are worth as much without the bend"
KINDS = {"all": (), "no bend": ("bend",), "no network": ("feed-forward",)}
SETTINGS = {"seeds": [0, 1, 2], "rates": [1e-3, 3e-3, 1e-2], "layers": 4, "steps": 1000}


def plan(small):
    """Return the settings of all runs.

    Parameters
    ----------
    small : bool
        Whether to return every ninth of them, with two steps.

    Returns
    -------
    list of dict
        The arguments of each run: ``group``, which is "runs"; ``seed``; ``rate``, the
        learning rate; ``kind``, what the blocks have of their networks, "all", "no bend" or
        "no network"; ``steps`` of training.
    """
    settings = grid(
        group="runs",
        seed=SETTINGS["seeds"],
        rate=SETTINGS["rates"],
        kind=[*KINDS],
        steps=2 if small else SETTINGS["steps"],
    )
    return settings[:: 9 if small else 1]


def run(_folder, group, seed, rate, kind, steps):
    """Train four blocks with feed-forward networks, without their bend, or without them.

    Parameters
    ----------
    _folder : Path
        Unused: no weights are saved.
    group : {"runs"}
        The only kind of run; unused.
    seed : int
        Of the first weights, and of all that is drawn.
    rate : float
        The learning rate.
    kind : {"all", "no bend", "no network"}
        What the blocks have of their feed-forward networks: "no bend" is without the
        activation.
    steps : int
        How many steps of training.

    Returns
    -------
    dict
        The settings ``kind``, ``rate``, ``seed``; ``loss`` on held-out sonnets, in nats a
        character.
    """
    layers = SETTINGS["layers"]
    loss, _ = train_without(KINDS[kind], layers, "PyTorch's", rate, seed, steps)
    return {"kind": kind, "rate": rate, "seed": seed, "loss": round(loss, 4)}


def best_losses(results, kind):
    """Return a kind of blocks' losses at its best learning rate, in the order of the seeds.

    Parameters
    ----------
    results : dict of str to list of dict
        Group → outcomes of its runs. Those of "runs", in the order of seeds: ``kind``;
        ``rate``, the learning rate; ``loss``, in nats a character.
    kind : {"all", "no bend", "no network"}
        What the blocks have of their feed-forward networks.

    Returns
    -------
    list of float
        Of the rate with the lowest mean loss; empty if there are none.
    """
    by_rate = [
        [row["loss"] for row in alike(results["runs"], kind=kind, rate=rate)]
        for rate in SETTINGS["rates"]
    ]
    return min(filter(None, by_rate), key=np.mean, default=[])


def summary(results):
    """Compare feed-forward networks with and without their activation, seed by seed.

    The activation is called the bend here: without it, "no bend", a network of two linear
    layers is a straight line. "no network": blocks of attention alone.

    Parameters
    ----------
    results : dict of str to list of dict
        Group → outcomes of its runs. Those of "runs", in the order of seeds: ``kind``,
        "all", "no bend" or "no network"; ``rate``, the learning rate; ``seed``; ``loss``,
        in nats a character.

    Returns
    -------
    dict
        ``n``, the number of outcomes, and their ``seeds``. At the best rate of each kind:
        ``interval``, [lowest, highest] over seeds of the loss without the bend less that
        without networks; ``verdict``, "holds" or "not so": whether, with every seed, the
        loss is highest without the bend and lowest with it.
    """
    whole, straight, none = (best_losses(results, kind) for kind in KINDS)
    if not len(whole) == len(straight) == len(none) == len(SETTINGS["seeds"]):
        # A short run lacks some.
        whole = straight = none = [0.0]
    losses = zip(whole, none, straight, strict=True)
    holds = all(bent < gone < line for bent, gone, line in losses)
    return count(results["runs"]) | paired(straight, none, holds)
