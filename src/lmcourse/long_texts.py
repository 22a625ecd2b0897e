"""Small models on texts four times longer than those of their training: what was found.

The runs are those of the study *positional-encoding* (`lmcourse.data.stored`), of models of
`lmcourse.lengths`. A loss is that of naming the character three positions back, in nats.
`slowed` and `angles_met` are the ways to read on with a rotary model.
"""

import math

import numpy as np
import torch

from lmcourse import lengths, positions
from lmcourse.lengths import LONG, SHORT

D_HEAD = lengths.D_MODEL // lengths.HEADS
REACHES = (24, 64, 128)
BASES = (100, 1_000, 10_000, 100_000)
SCHEMES = ("none", "sinusoidal", "learned", "rotary", "ALiBi")


def guess_loss():
    """Return the loss of a guess from the frequencies of the characters, in nats.

    It is the entropy of the characters of the first nine tenths of the Sonnets, a float.
    """
    training, _, _ = lengths.sonnet_ids()
    shares = torch.bincount(training).double() / len(training)
    return -(shares * shares.clamp(min=1e-9).log()).sum().item()


def runs_by_scheme(results):
    """Return runs of the study *positional-encoding*, by the scheme of positions.

    A run is a small model, trained for 400 steps on texts of 32 characters.

    Parameters
    ----------
    results : dict of str to list of dict
        Of that study: the groups ``schemes``, ``reach`` and ``bases``. Each run has
        ``scheme``, "none", "sinusoidal", "learned", "rotary", "ALiBi" or "relative";
        ``reach``, the distance from which relative positions share a number; ``base``, of
        rotary frequencies; ``length``, characters of a training text.

    Returns
    -------
    dict of str to list of dict
        Scheme ("relative" three times: "relative, reach 24", 64 and 128) → runs, one a
        seed. Rotary ones have base 10,000.
    """
    runs = {
        name: [run for run in results["schemes"] if run["scheme"] == name]
        for name in SCHEMES
    }
    runs["rotary"] = rotary_runs(results, 10_000)
    for reach in REACHES:
        runs[f"relative, reach {reach}"] = [
            run for run in results["reach"] if run["reach"] == reach
        ]
    return runs


def rotary_runs(results, base):
    """Return the runs of rotary models with a base, trained on texts of 32 characters.

    Parameters
    ----------
    results : dict of str to list of dict
        Of the study *positional-encoding*: group → outcomes of its runs. Those of "bases"
        have ``base``, of the rotary frequencies, and ``length``, the characters of a
        training text; of them those with ``length`` 32 (`SHORT`) are returned as they are.
    base : number
        Of the rotary positions' frequencies.

    Returns
    -------
    list of dict
    """
    return [
        run for run in results["bases"] if (run["base"], run["length"]) == (base, SHORT)
    ]


def curve(run, way=None):
    """Return the loss of naming the character three back, by groups of eight positions.

    Parameters
    ----------
    run : dict
        A run of the study *positional-encoding*, of a model trained on texts of 16 or 32
        characters: ``loss``, two lists of float, the loss of the next character and that of
        naming the character three back, each by groups of eight positions of a text four
        times as long; ``ways``, a dict, name of a way to read on beyond the trained length
        → a list like the second.
    way : str, optional
        A key of ``run["ways"]``: "near keys" (each query sees as many of the last keys as
        in training), or, of a rotary model, which pairs are slowed: "none", "all", "new",
        "old", …. Default: the model as it is.

    Returns
    -------
    float array of shape (groups,)
        In nats; 16 groups after a training on texts of 32 characters.
    """
    return np.array(run["ways"][way] if way else run["loss"][1])


def far_loss(run, way=None):
    """Return the mean loss over the last quarter of a text four times the trained length.

    Parameters
    ----------
    run : dict
        A run of the study *positional-encoding*: ``loss``, whose second list is the loss of
        naming the character three back, by groups of eight positions; ``ways``, a dict,
        name of a way to read on beyond the trained length → a list like it.
    way : str, optional
        A key of ``run["ways"]``, such as "none" or "near keys". Default: the model as it
        is.

    Returns
    -------
    float
        Of naming the character three back, in nats.
    """
    losses = curve(run, way)
    return losses[-len(losses) // 4 :].mean()


def near_loss(run, way=None):
    """Return the mean loss over the first quarter of a long text: a trained length.

    Parameters
    ----------
    run : dict
        A run of the study *positional-encoding*: ``loss``, whose second list is the loss of
        naming the character three back, by groups of eight positions; ``ways``, a dict,
        name of a way to read on beyond the trained length → a list like it.
    way : str, optional
        A key of ``run["ways"]``, such as "none" or "near keys". Default: the model as it
        is.

    Returns
    -------
    float
        Of naming the character three back, in nats.
    """
    losses = curve(run, way)
    return losses[: len(losses) // 4].mean()


def untrained_losses(scheme, change=None, **options):
    """Return how well a model with random weights names the character three back.

    Parameters
    ----------
    scheme : str
        Of positions: "none", "sinusoidal", "learned", "rotary", "ALiBi" or "relative".
    change : Tensor of shape (6,), optional
        Frequencies of the six pairs of a rotary model, in radians a position, in place of
        its own.
    **options
        ``base``, of rotary frequencies; ``reach``, of relative positions, the distance from
        which all share a bucket.

    Returns
    -------
    float array of shape (16,)
        The mean loss in nats on held-out texts of 128 characters, by groups of eight
        positions.
    """
    torch.manual_seed(0)
    model = lengths.PositionModel(scheme, **options)
    ways = {}
    if change is not None:
        ways["rotate"] = lambda x: positions.rotate(x, speeds=change)
    losses = lengths.losses_by_position(model, **ways)[1]  # (tokens,)
    return losses.view(-1, 8).nanmean(-1).numpy()


def slowed(base, repair):
    """Return the frequencies of six rotary pairs, slowed for a text four times as long.

    Parameters
    ----------
    base : float
        Of the rotary frequencies: pair i turns by base^(-2i / d_head) radians a position.
    repair : str
        "nothing", "all pairs", "pairs that came round", "pairs that did not", or "larger
        base", which is NTK-aware scaling. Pairs are slowed to a quarter. A pair has come
        round if its wavelength is at most 32 characters (`SHORT`), the length of the
        training texts.

    Returns
    -------
    float64 Tensor of shape (6,)
        In radians a position.
    """
    usual = positions.frequencies(D_HEAD, base)
    if repair == "larger base":
        return positions.frequencies(D_HEAD, base * 4 ** (D_HEAD / (D_HEAD - 2)))
    new = 2 * math.pi / usual > SHORT  # has not come round in training
    chosen = {
        "nothing": new & ~new,
        "all pairs": new | ~new,
        "pairs that came round": ~new,
        "pairs that did not": new,
    }
    return torch.where(chosen[repair], usual / 4, usual)


def angles_met(base, repair):
    """Return which angles of a long text each pair has shown in training.

    Parameters
    ----------
    base : float
        Of the rotary frequencies: pair i turns by base^(-2i / 12) radians a position.
    repair : str
        Which pairs are slowed: "nothing", "all pairs", "pairs that came round", "pairs that
        did not", or "larger base".

    Returns
    -------
    bool Tensor of shape (6, 128)
        By pair and position of a text of 128 characters: True where the slowed pair has an
        angle that the pair, not slowed, had among the first 32 positions, or where it came
        round there, so that it had them all.
    """
    usual = positions.frequencies(D_HEAD, base)
    angle = (slowed(base, repair)[:, None] * torch.arange(LONG)) % (2 * math.pi)
    widest = usual[:, None] * SHORT
    return (angle < widest) | (widest >= 2 * math.pi)
