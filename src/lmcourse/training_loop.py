"""The training loop of the course's small models.

The loop draws nothing and knows no model: what a step is trained on is the business of the
function that it is given. `lmcourse.gpt.training.Trainer` adds what a GPT needs besides
(devices, several processes, checkpoints) and takes its steps in the same order.
"""

import torch
from torch import nn
from torch.optim.lr_scheduler import LambdaLR, OneCycleLR


def train_model(
    model, loss_at, steps, optimizers, schedulers=(), max_norm=None, report=None
):
    """Train a model: a loss, its gradients, a step of each optimizer, again and again.

    Parameters
    ----------
    model : nn.Module
        It is in training mode meanwhile, and in evaluation mode afterwards.
    loss_at : callable
        Given the number of the step, from 0, it draws a batch and returns the loss, a
        Tensor with one number.
    steps : int
    optimizers : list of torch.optim.Optimizer
        Together they hold the parameters that are trained.
    schedulers : list of torch.optim.lr_scheduler.LRScheduler
        Moved on after each step.
    max_norm : float, optional
        Gradients longer than this, over all parameters together, are shortened to it.
    report : callable, optional
        Called after each step with the number of steps taken and the loss, a float.

    Returns
    -------
    list of float
        The loss of each step, before its weights were changed.
    """
    losses = []
    model.train()
    for step in range(steps):
        loss = loss_at(step)
        for optimizer in optimizers:
            optimizer.zero_grad()
        loss.backward()
        if max_norm is not None:
            nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        for optimizer in optimizers:
            optimizer.step()
        for scheduler in schedulers:
            scheduler.step()
        losses.append(loss.item())
        if report is not None:
            report(step + 1, losses[-1])
    model.eval()
    return losses


def train_scheduled(model, loss_at, steps, learning_rate, share_at, max_norm=None):
    """Train by AdamW, at a share of the highest learning rate that a function gives.

    Parameters
    ----------
    model : nn.Module
    loss_at : callable
        From the number of a step, from 0, to a loss to differentiate.
    steps : int
    learning_rate : float
        The highest.
    share_at : callable
        From the number of a step to the share of ``learning_rate`` that it takes.
    max_norm : float, optional
        Gradients longer than this, over all parameters together, are shortened to it.

    Returns
    -------
    list of float
        The loss of each step.
    """
    optimizer = torch.optim.AdamW(model.parameters(), learning_rate, fused=True)
    scheduler = LambdaLR(optimizer, share_at)
    return train_model(model, loss_at, steps, [optimizer], [scheduler], max_norm)


def train_one_cycle(model, loss_at, steps, learning_rate, weight_decay=0.01):
    """Train by AdamW with one cycle of the learning rate (Smith and Topin 2018).

    The learning rate rises for three tenths of the steps and falls to nearly zero.

    Parameters
    ----------
    model : nn.Module
    loss_at : callable
        From the number of a step, from 0, to a loss to differentiate.
    steps : int
    learning_rate : float
        The highest.
    weight_decay : float

    Returns
    -------
    list of float
        The loss of each step.
    """
    optimizer = torch.optim.AdamW(
        model.parameters(), learning_rate, weight_decay=weight_decay, fused=True
    )
    scheduler = OneCycleLR(optimizer, learning_rate, total_steps=steps)
    return train_model(model, loss_at, steps, [optimizer], [scheduler])
