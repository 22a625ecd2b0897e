"""What does a small model make of positions and offsets that no training has shown?

What varies: the scheme of positions, of six, and the reach of relative ones; the base of
rotary positions and the length of the training texts; the steps; how many positions back
the character stands that the model has to name.

Rivals: NTK-aware scaling, which is a larger base for all pairs of dimensions; all pairs
slowed; only those slowed that completed a turn in training; one pair alone.

Null: a guess from the frequencies of the characters.

Statistic: the loss of naming the character three positions back, in nats, over the last
quarter of texts four times as long as in training. The interval is that of NTK-aware
scaling less slowing the pairs that have not completed a turn, from the lowest to the
highest over models whose first such pair is clearly one (`summary`).
"""

import math

import numpy as np
import torch

from lmcourse.lengths import (
    BUCKETS,
    SHORT,
    losses_by_position,
    near_mask,
    sonnet_ids,
    train_position_model,
)
from lmcourse.positions import frequencies, relative_buckets, rotate
from studies.harness import count, grid, paired

CHAPTER = "positional-encoding"
CLAIM = (
    "Most small rotary models name the character three back in texts four times longer "
    "than any in training, once their slow frequencies are slowed"
)
RIVAL = "NTK-aware scaling: a larger base, which slows all frequencies"
NULL = "a guess from the frequencies of the characters"
TIMES = 4  # how much longer the texts are than in training
D_HEAD = 12
PAIRS = D_HEAD // 2  # pairs of dimensions that rotate together
SETTINGS = {
    "seeds": [0, 1, 2, 3, 4],
    "steps": 400,
    "longer": {"steps": 4000, "seeds": [0, 1, 2], "schemes": ["rotary", "ALiBi"]},
    "seven back": [100, 1_000, 10_000, 100_000],  # bases
    "reaches": [24, 64, 128],
    "bases": [[base, 32] for base in (100, 300, 1_000, 3_000, 10_000, 30_000, 100_000)]
    + [[base, 16] for base in (100, 300, 10_000)],  # base, length of training texts
}
PLAIN = ("none", "sinusoidal", "learned", "ALiBi")


def plan(small):
    """Return the settings of all runs: every kind of model from every seed.

    There are five seeds and 400 steps; in the group "longer" three and 4,000.

    Parameters
    ----------
    small : bool
        Whether to return three of them, with two steps.

    Returns
    -------
    list of dict
        The arguments of each run: ``group``, what varies; ``seed``; ``steps`` of training.
        "schemes" and "longer": ``scheme``, the kind of positions, such as "ALiBi". "reach":
        ``reach`` of relative positions, from which all distances share a bucket. "bases":
        ``base`` of rotary positions, and ``length`` of the training texts in characters.
        "seven back": ``base``, and ``back``, how many positions back the character stands
        that the model is asked for.
    """
    longer = SETTINGS["longer"]
    steps = SETTINGS["steps"]
    kinds = grid(group="schemes", scheme=PLAIN)
    kinds += grid(group="reach", reach=SETTINGS["reaches"])
    kinds += [
        {"group": "bases", "base": base, "length": length}
        for base, length in SETTINGS["bases"]
    ]
    kinds += grid(group="seven back", base=SETTINGS["seven back"], back=7)
    settings = [
        kind | {"steps": steps, "seed": seed}
        for kind in kinds
        for seed in SETTINGS["seeds"]
    ]
    if small:
        return [settings[index] | {"steps": 2} for index in (5, 20, 35)]
    return settings + grid(
        group="longer",
        scheme=longer["schemes"],
        steps=longer["steps"],
        seed=longer["seeds"],
    )


def losses_by_group(model, length, **options):
    """Return the losses of both questions on long texts, by groups of eight positions.

    The first positions of a text, which have nothing so far back, are left out.

    Parameters
    ----------
    model : lmcourse.lengths.PositionModel
        A small model of characters that answers two questions at each position: which
        character is next, and which one stood some positions back.
    length : int
        Of the training texts, in characters; those read are four times as long.
    **options
        For the model's attention, in place of its own: ``mask``, bool (tokens, tokens),
        True where a query sees a key; ``rotate``, a function that turns queries and keys.

    Returns
    -------
    list of list of float
        Of shape (2, groups), in nats: for the next character, and for the one that stood
        some positions back.
    """
    losses = losses_by_position(model, TIMES * length, **options)  # (2, tokens)
    means = losses.view(2, -1, 8).nanmean(-1)
    return [[round(loss, 4) for loss in row] for row in means.tolist()]


def flatten_far_buckets(model):
    """Give all distances beyond those of training the bias of the last one in training.

    Parameters
    ----------
    model : lmcourse.lengths.PositionModel
        With relative positions: ``relative`` is its table of biases, (32 buckets, heads);
        a bucket holds one distance back or several, the last one all from ``reach`` on.
        Training texts had 32 characters. The table is changed.

    Returns
    -------
    PositionModel
        The same.
    """
    last = relative_buckets(SHORT, BUCKETS, model.reach).max()
    with torch.no_grad():
        model.relative[last:] = model.relative[last].clone()
    return model


def slowed_frequencies(base, length):
    """Return the frequencies of a rotary model in each way of reading longer texts.

    Parameters
    ----------
    base : float
        Of rotary positions.
    length : int
        Of the training texts, in characters. A pair is new if it did not complete a turn
        over it.

    Returns
    -------
    dict of str to Tensor of shape (6,)
        In radians a position, of each pair of dimensions, the fastest first. Slowed by four
        are: ``none``; ``all``; the ``new`` pairs; the ``old`` ones, which are all others;
        ``new but the first``; one pair, "0" to "5". ``NTK-aware``: the frequencies of a
        larger base, with which the slowest pair, too, turns four times slower.
    """
    speeds = frequencies(D_HEAD, base)
    pair = torch.arange(PAIRS)
    new = 2 * math.pi / speeds > length
    chosen = {
        "none": pair < 0,
        "all": pair >= 0,
        "new": new,
        "old": ~new,
        "new but the first": new & (pair != new.int().argmax()),
    }
    for index in range(PAIRS):
        chosen[str(index)] = pair == index
    ways = {
        name: torch.where(mask, speeds / TIMES, speeds) for name, mask in chosen.items()
    }
    larger_base = base * TIMES ** (D_HEAD / (D_HEAD - 2))
    return ways | {"NTK-aware": frequencies(D_HEAD, larger_base)}


def run(folder, group, steps, seed, scheme="rotary", base=10_000, length=SHORT, **options):
    """Train one model on short texts; return its losses on long ones.

    Parameters
    ----------
    folder : Path
        Unused: no weights are saved.
    group : {"schemes", "reach", "bases", "seven back", "longer"}
        What varies: the scheme; the reach of relative positions; the base of rotary ones,
        with the length; the base, asked for the character seven positions back; the number
        of steps.
    steps, seed : int
        Of the training.
    scheme : str
        Of positions: "none", "sinusoidal", "learned", "rotary", "ALiBi" or "relative"; the
        group "reach" takes "relative".
    base : float
        Of rotary positions: pair i turns by base^(-2i / d_head) radians a position.
    length : int
        Characters of a training text; those read are four times as long.
    **options
        ``reach``, of relative positions: the distance from which all share a bucket.
        ``back``: how many positions back the character stands that the model is asked for.

    Returns
    -------
    dict
        The settings ``scheme``, ``reach``, ``base``, ``length``, ``steps``, ``seed``;
        ``loss``, two lists of losses by groups of eight positions, in nats: of the next
        character, and of the one that stands ``back`` positions back; and ``ways``, a dict:
        a change of the model → the second of these lists with that change:

        - ``near keys``: each query attends to its nearest ``length`` keys only,
        - ``last price``, with relative positions: distances beyond those of training have
          the bias of the last one,
        - in the groups "bases" and "seven back", by which pairs of dimensions turn four
          times slower: ``none``, ``all``, the ``new`` ones, which did not complete a turn
          in training, the ``old`` ones, ``new but the first``, or one pair, "0" to "5";
          and ``NTK-aware``, where a larger base slows the pairs.
    """
    scheme = "relative" if group == "reach" else scheme
    model = train_position_model(scheme, steps, seed, length, base=base, **options)
    row = {"scheme": scheme, "reach": model.reach, "base": base, "length": length}
    row |= {"steps": steps, "seed": seed, "loss": losses_by_group(model, length)}

    def loss_back(**changes):
        """Return the losses of naming the character some positions back, in nats.

        The result is a list of float, one for each group of eight positions. ``changes`` :
        what attention is given in place of its own: ``rotate``, a function that turns
        queries and keys, or ``mask``, bool (tokens, tokens).
        """
        _, back = losses_by_group(model, length, **changes)
        return back

    ways = {"near keys": loss_back(mask=near_mask(TIMES * length, length))}
    if scheme == "relative":
        flatten_far_buckets(model)
        ways["last price"] = loss_back()
    if group in ("bases", "seven back"):
        for name, speeds in slowed_frequencies(base, length).items():
            ways[name] = loss_back(rotate=lambda x, speeds=speeds: rotate(x, speeds=speeds))
    return row | {"ways": ways}


def guess_loss():
    """Return the mean loss of a guess from the frequencies of the characters, in nats.

    A float: the entropy of the characters of the training sonnets.
    """
    training, _, _ = sonnet_ids()
    share = torch.bincount(training).double() / len(training)
    return -(share * share.clamp(min=1e-9).log()).sum().item()


def summary(results):
    """Compare the ways of reading longer texts, model by model.

    A pair of dimensions is new if it did not complete a turn in training. A model is clear
    if its first new pair has a wavelength of more than 1.3 training lengths; otherwise it
    is at the edge. All losses are over the last quarter of the texts.

    Parameters
    ----------
    results : dict of str to list of dict
        Group → outcomes of its runs. Those of "bases" are one rotary model each: ``base``;
        ``length`` of its training texts, in characters; ``seed``; ``ways``, dict, change of
        the model ("new" pairs slowed, "NTK-aware", one pair "0" to "5") → its losses on
        texts four times as long, in nats, a list by groups of eight positions.

    Returns
    -------
    dict
        ``n``, the number of outcomes, and their ``seeds``. ``interval``, [lowest, highest]
        over clear models, or over those at the edge if none is clear: the loss with
        NTK-aware scaling less that with the new pairs slowed. ``verdict``, "holds" if three
        things are true, otherwise "not so". With the new pairs slowed, each clear model has
        a loss below a nat. With one pair slowed, the loss of each clear model is lowest if
        it is the first new one. With the new pairs slowed, each model at the edge has a
        higher loss than all clear ones.
    """
    runs = results["bases"]
    clear = []
    edge = []
    for outcome in runs:
        losses = {  # with each change of the model
            way: np.mean(by_group[-len(by_group) // TIMES :])
            for way, by_group in outcome["ways"].items()
        }
        wavelengths = 2 * math.pi / frequencies(D_HEAD, outcome["base"]) / outcome["length"]
        first_new = int((wavelengths > 1).int().argmax())
        best_single = min(range(PAIRS), key=lambda pair: losses[str(pair)])
        losses["first is best"] = first_new == best_single
        if wavelengths[first_new] > 1.3:
            clear.append(losses)
        else:
            edge.append(losses)
    holds = all(model["new"] < 1 and model["first is best"] for model in clear)
    holds = holds and all(
        worse["new"] > better["new"] for worse in edge for better in clear
    )
    compared = clear or edge  # a short run may have no clear one
    aware = [model["NTK-aware"] for model in compared]
    new = [model["new"] for model in compared]
    return count(runs) | paired(aware, new, holds)
