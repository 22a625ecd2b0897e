"""Where does the norm belong, and what is a warm-up for?

What varies: the norm before attention and feed-forward network (pre-norm) or after each
addition (post-norm); a warm-up or none; the learning rate. Twelve blocks learn to write
eight digits backwards.

Rivals: a lower learning rate without a warm-up.

Null: the same loss wherever the norm is.

Statistic: the loss on 256 other rows of digits, in nats a digit, by seed. The interval is
that of post-norm's loss less pre-norm's, at the highest learning rate, both without a
warm-up.
"""

import torch
import torch.nn.functional as F
from torch import nn
from torch.optim.lr_scheduler import LambdaLR

from lmcourse.training_loop import train_model
from lmcourse.transformer import Embed, Stack
from studies.harness import alike, count, grid, paired

CHAPTER = "transformer-block"
CLAIM = (
    "Without a warm-up and at a high learning rate, twelve post-norm blocks end with a "
    "higher loss than twelve pre-norm blocks"
)
RIVAL = "the learning rate: a third of it, without a warm-up, helps post-norm as well"
NULL = "the same loss wherever the norm is"
SETTINGS = {
    "seeds": [0, 1, 2],
    "rates": [3e-4, 1e-3, 3e-3],
    "warmups": [0, 50],
    "sizes": {"layers": 12, "d_model": 32, "heads": 4, "d_ff": 128},
    "steps": 200,
}


def plan(small):
    """Return the settings of all runs: every norm, warm-up, learning rate and seed.

    Parameters
    ----------
    small : bool
        Whether to return every twelfth of them, with two steps.

    Returns
    -------
    list of dict
        The arguments of each run: ``group``, which is "order"; ``norm_first``, whether the
        norm comes first in each half of a block; ``warmup``, in how many steps the learning
        rate rises; ``rate``, the learning rate; ``seed``; ``steps`` of training.
    """
    settings = grid(
        group="order",
        norm_first=(True, False),
        warmup=SETTINGS["warmups"],
        rate=SETTINGS["rates"],
        seed=SETTINGS["seeds"],
        steps=2 if small else SETTINGS["steps"],
    )
    return settings[:: 12 if small else 1]


def run(_folder, group, norm_first, warmup, rate, seed, steps):
    """Train twelve blocks of width 32 to write eight digits backwards.

    A step reads 32 rows of random digits.

    Parameters
    ----------
    _folder : Path
        Unused: no weights are saved.
    group : {"order"}
        The only kind of run; unused.
    norm_first : bool
        Whether the norm comes first in each half of a block. If not, there is no norm after
        the last block either.
    warmup : int
        The steps in which the learning rate rises from zero; then it stays.
    rate : float
        The learning rate.
    seed : int
        Of the first weights, and of all that is drawn.
    steps : int
        How many steps of training.

    Returns
    -------
    dict
        The settings ``norm_first``, ``warmup``, ``rate``, ``seed``; ``loss``, in nats a
        digit, on 256 rows that are not for training.
    """
    torch.manual_seed(seed)
    sizes = SETTINGS["sizes"]
    d_model = sizes["d_model"]
    stack = Stack(**sizes, norm=nn.LayerNorm, norm_first=norm_first)
    for matrix in stack.parameters():
        if matrix.dim() > 1:
            nn.init.xavier_uniform_(matrix)
    if not norm_first:
        stack.norm = nn.Identity()
    model = nn.ModuleList([Embed(10, d_model), stack, nn.Linear(d_model, 10)])
    optimizer = torch.optim.Adam(model.parameters(), rate, fused=True)

    def loss_of(digits):
        """Return the mean loss of writing digits backwards, in nats a digit.

        ``digits`` : int64 Tensor (batch, 8), 0 to 9.
        """
        embed, stack, output = model
        states, _ = stack(embed(digits))
        return F.cross_entropy(output(states).mT, digits.flip(1))

    test_digits = torch.randint(10, (256, 8))

    def share_at(step):
        """Return the share of the learning rate at a step: it rises, and stays.

        ``step`` : int, from 0.
        """
        return min(1, (step + 1) / max(1, warmup))

    train_model(
        model,
        lambda step: loss_of(torch.randint(10, (32, 8))),
        steps,
        [optimizer],
        [LambdaLR(optimizer, share_at)],
    )
    with torch.no_grad():
        loss = round(float(loss_of(test_digits)), 4)
    row = {"norm_first": norm_first, "warmup": warmup, "rate": rate, "seed": seed}
    return row | {"loss": loss}


def losses_of(results, norm_first, warmup, rate):
    """Return the losses of one kind of training.

    Parameters
    ----------
    results : dict of str to list of dict
        Group → outcomes of its runs. Those of "order", in the order of seeds, have the
        three settings below as keys, and ``loss``.
    norm_first : bool
        Whether the norm comes first in each half of a block.
    warmup : int
        Steps in which the learning rate rises.
    rate : float
        The learning rate.

    Returns
    -------
    list of float
        The loss of each model on other rows, in nats a digit, in the order of the seeds;
        empty if there is none.
    """
    kind = {"norm_first": norm_first, "warmup": warmup, "rate": rate}
    return [row["loss"] for row in alike(results["order"], **kind)]


def summary(results):
    """Compare post-norm and pre-norm at the highest learning rate, seed by seed.

    Parameters
    ----------
    results : dict of str to list of dict
        Group → outcomes of its runs. Those of "order", in the order of seeds:
        ``norm_first``, True for pre-norm; ``warmup``, in steps, 0 for none; ``rate``, the
        learning rate; ``seed``; ``loss``, in nats a digit.

    Returns
    -------
    dict
        ``n``, the number of outcomes, and their ``seeds``; ``interval``, [lowest, highest]
        over seeds of post-norm's loss less pre-norm's, both without a warm-up at the
        highest rate; ``verdict``, "holds" or "not so": whether post-norm has a higher loss
        there, with every seed, than pre-norm, than post-norm with a warm-up, and than
        post-norm at a third of the learning rate.
    """
    _, lower, highest = SETTINGS["rates"]
    post_norm = losses_of(results, False, 0, highest)
    pre_norm = losses_of(results, True, 0, highest)
    with_warmup = losses_of(results, False, 50, highest)
    lower_rate = losses_of(results, False, 0, lower)
    if not all((post_norm, pre_norm, with_warmup, lower_rate)):  # a short run
        post_norm = pre_norm = with_warmup = lower_rate = [0.0]
    holds = min(post_norm) > max(*pre_norm, *with_warmup, *lower_rate)
    return count(results["order"]) | paired(post_norm, pre_norm, holds)
