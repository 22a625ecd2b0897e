"""How many steps of a training cost as much arithmetic as those of another one."""

import torch
from torch.utils.flop_counter import FlopCounterMode

from lmcourse.fine_tuning import BATCH, CONTEXT, device_of


def step_flops(model):
    """Return the floating-point operations of a training step of a `GPT`, an int.

    The step is on one batch of 8 windows of 64 tokens (`BATCH`, `CONTEXT`). PyTorch counts
    none for the scores and means of a fused attention on the CPU; of a prefix, whose
    attention is not fused, it counts them. So a prefix gets 136 steps where by all
    operations it would get 147.

    Parameters
    ----------
    model : GPT
        With or without adapters; its gradients are dropped afterwards.
    """
    inputs = torch.zeros(BATCH, CONTEXT, dtype=torch.long, device=device_of(model))
    with FlopCounterMode(display=False) as counter:
        model(inputs).sum().backward()
    model.zero_grad()
    return counter.get_total_flops()


def steps_within(budget, model, full):
    """Return how many steps of a model cost as much as ``budget`` steps of another, full.

    Parameters
    ----------
    budget : int
        Steps of ``full`` that may be spent.
    model, full : GPT
        One that a cheaper method trains, and the one all of whose weights are trained.

    Returns
    -------
    int
    """
    return round(budget * step_flops(full) / step_flops(model))
