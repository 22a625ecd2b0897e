"""How the weights are moved: the settings of a run, its optimizers and their rates."""

import math
from dataclasses import dataclass

import torch

from lmcourse.gpt.muon import Muon
from lmcourse.gpt.settings import check_least, check_positive, check_types

__all__ = ["TrainingConfig", "make_optimizers", "rate"]

LARGEST_SEED = 10**12  # a step's own seed has to be one that PyTorch takes


@dataclass(frozen=True)
class TrainingConfig:
    """How a model is trained.

    Parameters
    ----------
    steps : int
    batch : int
        Windows a step, over all processes.
    optimizer : {"adamw", "muon"}
        With ``"muon"`` the matrices of the blocks are moved by `lmcourse.gpt.muon.Muon`,
        all else by AdamW.
    learning_rate, matrix_rate : float
        The highest of AdamW and of Muon.
    warmup : int
        Steps in which the rates rise from zero.
    final : float
        The share of the highest rate at which the cosine ends.
    weight_decay : float
        AdamW's, on matrices and tables only.
    clip : float
        The gradient is shortened to this norm.
    evaluate_every : int
        Steps between two estimates (and checkpoints).
    windows : int
        Validation windows, evenly spaced and always the same.
    seed : int
        From -10**12 to 10**12.

    Raises
    ------
    ValueError
        If a setting is no number or out of its range, or the optimizer unknown.
    """

    steps: int = 2000
    batch: int = 12
    optimizer: str = "adamw"
    learning_rate: float = 1e-3
    matrix_rate: float = 0.02
    warmup: int = 100
    final: float = 0.1
    weight_decay: float = 0.1
    clip: float = 1.0
    evaluate_every: int = 100
    windows: int = 400
    seed: int = 0

    def __post_init__(self):
        check_types(self)
        check_least(self, 1, "steps", "batch", "evaluate_every", "windows")
        check_least(self, 0, "warmup", "weight_decay")
        check_positive(self, "learning_rate", "clip")
        if self.optimizer not in ("adamw", "muon"):
            raise ValueError(f"optimizer {self.optimizer!r} is not 'adamw' or 'muon'")
        if self.optimizer == "muon":
            check_positive(self, "matrix_rate")
        if not 0 <= self.final <= 1:
            raise ValueError(f"final {self.final} is not a share, from 0 to 1")
        if abs(self.seed) > LARGEST_SEED:
            raise ValueError(f"seed {self.seed} is not between -10**12 and 10**12")


def rate(step, config):
    """Return the share of the highest learning rate at a step: warm-up, then a cosine."""
    if step < config.warmup:
        return (step + 1) / config.warmup
    done = (step - config.warmup) / max(1, config.steps - config.warmup)  # from 0 to 1
    return config.final + (1 - config.final) * (1 + math.cos(math.pi * min(done, 1))) / 2


def make_optimizers(model, config):
    """Return the optimizers of a GPT, each with the highest rate of its groups as "peak".

    Parameters
    ----------
    model : GPT
    config : TrainingConfig

    Returns
    -------
    list of Optimizer
    """
    named = list(model.named_parameters())
    hidden = [w for name, w in named if name.startswith("blocks.") and w.ndim == 2]
    optimizers = []
    if config.optimizer == "muon":
        optimizers.append(Muon(hidden, lr=config.matrix_rate))
    else:
        hidden = []
    moved = {id(weight) for weight in hidden}
    rest = [weight for _, weight in named if id(weight) not in moved]
    groups = [
        {"params": [w for w in rest if w.ndim == 2], "weight_decay": config.weight_decay},
        {"params": [w for w in rest if w.ndim < 2], "weight_decay": 0.0},
    ]
    fused = all(weight.device.type in ("cpu", "cuda") for weight in rest)
    options = {"lr": config.learning_rate, "betas": (0.9, 0.99), "fused": fused}
    optimizers.append(torch.optim.AdamW(groups, **options))
    for optimizer in optimizers:
        for group in optimizer.param_groups:
            group["peak"] = group["lr"]
    return optimizers
