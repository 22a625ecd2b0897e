"""In how many directions does a training change each matrix of a model?

What varies: all weights of the model of the sonnets are trained on Dickinson, from three
seeds. Of the change of each of its 16 matrices only some directions are kept: the
strongest ones, by the singular values; everything else of the model is as it was before.

Rivals: as many directions drawn at random.

Null: the numbers of each change are shuffled within their matrix, which keeps their sizes,
and its strongest directions are kept; a shuffle for each seed.

Statistic: the loss on Dickinson's test poems, in nats a character. The gain is how much
lower it is than before the training. The interval is that of the gain of eight strongest
directions less half the gain of the whole change, over poems drawn again.
"""

import copy

import numpy as np
import torch

from lmcourse import fine_tuning as teaching
from lmcourse.numbers import bootstrap_interval
from studies.fine_tuning.fine_tuning import load_material, training_texts
from studies.harness import count, grid, verdict

CHAPTER = "fine-tuning"
CLAIM = (
    "The eight strongest directions of the change of each matrix, of 128, hold more than "
    "half of what a training of all weights teaches a GPT about a new poet"
)
RIVAL = "as many random directions of the same changes"
NULL = "the numbers of each change shuffled within their matrix"
AFTER = ("sonnets",)
SETTINGS = {"seeds": [0, 1, 2], "rate": 3e-3, "steps": 100}
SETTINGS |= {"ranks": [1, 2, 4, 8, 16, 32, 64, 128]}
KINDS = ("strongest", "random", "shuffled")


def plan(small):
    """Return the settings of all runs, one for each seed.

    Parameters
    ----------
    small : bool
        Whether it is one short run instead.

    Returns
    -------
    list of dict
        The arguments of each run: ``group``, which is "runs"; ``seed``; ``steps`` of
        training; of a small plan also ``ranks``, how many directions are kept. There are
        three seeds and a hundred steps.
    """
    if small:
        return [{"group": "runs", "seed": 0, "steps": 2, "ranks": [1, 128]}]
    return grid(group="runs", seed=SETTINGS["seeds"], steps=SETTINGS["steps"])


def matrices(model):
    """Return the matrices of a GPT's blocks, four a block: a dict, name → Parameter.

    ``model`` : GPT.
    """
    return {
        name: weight
        for name, weight in model.named_parameters()
        if name.startswith("blocks.") and weight.ndim == 2
    }


def strongest(change, rank):
    """Return the best approximation of a matrix of a lower rank.

    Parameters
    ----------
    change : Tensor of shape (out_features, in_features)
    rank : int
        How many of its singular directions are kept.

    Returns
    -------
    Tensor of shape (out_features, in_features)
    """
    left, values, right = torch.linalg.svd(change, full_matrices=False)
    return (left[:, :rank] * values[:rank]) @ right[:rank]


def part_of_change(change, kind, rank, generator):
    """Return what is kept of the change of one matrix.

    Parameters
    ----------
    change : Tensor of shape (out_features, in_features)
    kind : {"strongest", "random", "shuffled"}
        "strongest" keeps the singular directions with the largest singular values;
        "random", what the change does to inputs in random directions; "shuffled", the
        strongest directions of the change after its numbers were shuffled.
    rank : int
        How many directions are kept.
    generator : torch.Generator
        Of what is drawn; unused by "strongest".

    Returns
    -------
    Tensor of shape (out_features, in_features)
    """
    if kind == "strongest":
        return strongest(change, rank)
    if kind == "shuffled":
        order = torch.randperm(change.numel(), generator=generator)
        return strongest(change.flatten()[order].view_as(change), rank)
    drawn = torch.randn(change.shape[1], rank, generator=generator)
    directions, _ = torch.linalg.qr(drawn)  # (in_features, rank)
    return change @ directions @ directions.T


def energy(matrix, ranks):
    """Return which share of the sum of a matrix's squares its strongest directions hold.

    Parameters
    ----------
    matrix : Tensor of two dimensions
    ranks : list of int
        How many directions, the strongest first.

    Returns
    -------
    list of float
        One for each rank, from 0 to 1.
    """
    squares = torch.linalg.svdvals(matrix).square()
    return [(squares[:rank].sum() / squares.sum()).item() for rank in ranks]


def run(_folder, group, seed, steps, ranks=tuple(SETTINGS["ranks"])):
    """Train all weights on Dickinson, and try parts of what has changed.

    Parameters
    ----------
    _folder : Path
        Unused: no weights are saved.
    group : {"runs"}
        The only kind of run; unused.
    seed : int
        Of the training, and of what is drawn.
    steps : int
        How many steps of training; the highest learning rate is 0.003.
    ranks : list of int
        Numbers of directions that are kept, each in a try of its own; of the kinds "random"
        and "shuffled" only every third of these numbers is tried.

    Returns
    -------
    dict
        The setting ``seed``; ``before`` and ``all``: the loss on each of Dickinson's test
        poems, in nats a character, before the training and after it; ``energy`` and
        ``energy_before``: for each rank the share (0 to 1) of the squared size in the
        strongest directions, of the changes and of the matrices before, the mean of the
        matrices; ``rows``, a list of dict: ``kind``, one of `KINDS`: "strongest", "random"
        or "shuffled"; ``rank``; and ``losses``, on each test poem.
    """
    _, base, poets = load_material()
    poems = poets["Dickinson"]["test"]
    model = copy.deepcopy(base)
    draw = teaching.windows(training_texts()["Dickinson"])
    teaching.fine_tune(model, draw, steps, SETTINGS["rate"], seed)
    before = matrices(base)
    changes = {
        name: (weight - before[name]).detach() for name, weight in matrices(model).items()
    }
    generator = torch.Generator().manual_seed(seed)
    rows = []
    for kind in KINDS:
        tried_ranks = ranks if kind == "strongest" else ranks[::3]
        for rank in tried_ranks:
            tried = copy.deepcopy(base)
            for name, weight in matrices(tried).items():
                weight.data += part_of_change(changes[name], kind, rank, generator)
            losses = np.round(teaching.poem_losses(tried, poems), 4).tolist()
            rows.append({"kind": kind, "rank": rank, "losses": losses})
    own = [energy(weight.detach(), ranks) for weight in before.values()]
    changed = [energy(change, ranks) for change in changes.values()]
    return {
        "seed": seed,
        "before": np.round(teaching.poem_losses(base, poems), 4).tolist(),
        "all": np.round(teaching.poem_losses(model, poems), 4).tolist(),
        "energy": np.mean(changed, axis=0).round(3).tolist(),
        "energy_before": np.mean(own, axis=0).round(3).tolist(),
        "rows": rows,
    }


def summary(results):
    """Compare eight directions of each change with the whole of it, over poems.

    Parameters
    ----------
    results : dict of str to list of dict
        Group → outcomes of its runs. Those of "runs", one a seed: ``seed``; ``before``, the
        loss on each test poem before the training, a list in nats a character; ``rows``,
        list of dict: ``kind``, of which "strongest" counts; ``rank``, how many directions
        of each change are kept; ``losses``, such a list with them.

    Returns
    -------
    dict
        ``n``, the number of outcomes, and their ``seeds``; ``interval``, [low, high], 95 %
        of the gain of the eight strongest directions less half the gain of the whole
        change, mean of the seeds, in nats a character, poems drawn again; ``verdict``,
        "holds" or "not so": whether it is above zero. Where no run has eight directions,
        the fewest there are count.
    """
    gaps = []
    for outcome in results["runs"]:
        rows = {
            row["rank"]: np.array(row["losses"])
            for row in outcome["rows"]
            if row["kind"] == "strongest"
        }
        before = np.array(outcome["before"])
        some = before - rows.get(8, rows[min(rows)])
        gaps.append(some - (before - rows[max(rows)]) / 2)
    low, high = bootstrap_interval(np.mean(gaps, axis=0))
    interval = [round(low, 4), round(high, 4)]
    return count(results["runs"]) | {"interval": interval, "verdict": verdict(low > 0)}
