"""One training loop, for the page, the command line and several processes.

Devices, processes and mixed precision are Accelerate's; what is taught is here: batches,
optimizers and the schedule of their learning rates, clipping, and a loss estimated on
windows that never change. Every step draws from a seed of its own, so that a run that was
interrupted goes on as if it had not been, and several processes see what one would.
Dropout is the exception: each process draws masks for its own part of a batch, so several
do not drop what one would.
"""

import math
import time
from dataclasses import dataclass, field

import torch
import torch.nn.functional as F
from accelerate import Accelerator
from tqdm.auto import tqdm

from lmcourse.gpt.model import LARGEST, check_numbers
from lmcourse.models import pick_device
from lmcourse.optimizers import Muon


class Diverged(RuntimeError):
    """The loss is no longer a number."""


@dataclass(frozen=True)
class TrainingConfig:
    """How a model is trained.

    Parameters
    ----------
    steps : int
    batch : int
        Windows a step, over all processes.
    optimizer : {"adamw", "muon"}
        With ``"muon"`` the matrices of the blocks are moved by
        `lmcourse.optimizers.Muon`, all else by AdamW.
    learning_rate, muon_learning_rate : float
        The highest of AdamW and of Muon.
    warmup : int
        Steps in which the learning rates rise from zero; fewer than ``steps``.
    final : float
        The share of the highest learning rate at which the cosine ends.
    weight_decay : float
        AdamW's, on matrices and tables only.
    clip : float
        The gradient is shortened to this norm.
    evaluate_every : int
        Steps between two estimates (and checkpoints).
    validation_windows : int
        How many, evenly spaced and always the same.
    seed : int
        From -10**12 to 10**12: a step's own seed has to be one that PyTorch takes.

    Raises
    ------
    ValueError
        If a setting is no number or out of its range, or the optimizer unknown.
    """

    steps: int = 2000
    batch: int = 12
    optimizer: str = "adamw"
    learning_rate: float = 1e-3
    muon_learning_rate: float = 0.02
    warmup: int = 100
    final: float = 0.1
    weight_decay: float = 0.1
    clip: float = 1.0
    evaluate_every: int = 100
    validation_windows: int = 400
    seed: int = 0

    def __post_init__(self):
        check_numbers(self, 1, LARGEST, "steps", "batch", "evaluate_every")
        check_numbers(self, 1, LARGEST, "validation_windows")
        check_numbers(self, 0, LARGEST, "warmup")
        check_numbers(self, 1e-12, 1e30, "learning_rate", "muon_learning_rate", "clip")
        check_numbers(self, 0.0, 1e30, "weight_decay")
        check_numbers(self, 0.0, 1.0, "final")
        check_numbers(self, -(10**12), 10**12, "seed")
        if self.optimizer not in ("adamw", "muon"):
            raise ValueError(f"optimizer must be adamw or muon, not {self.optimizer!r}")
        if self.warmup >= self.steps:
            raise ValueError(
                f"a warmup of {self.warmup} steps must be shorter than the run of "
                f"{self.steps}, or its learning rate is never reached"
            )


def schedule(step, config):
    """Return the share of the highest learning rate at a step: warm-up, then a cosine."""
    if step < config.warmup:
        return (step + 1) / config.warmup
    done = (step - config.warmup) / (config.steps - config.warmup)  # from 0 to 1
    return config.final + (1 - config.final) * (1 + math.cos(math.pi * min(done, 1))) / 2


def make_optimizers(model, config):
    """Return the optimizers of a GPT; the default "lr" of each is its highest.

    Parameters
    ----------
    model : GPT
    config : TrainingConfig

    Returns
    -------
    list of Optimizer
    """
    hidden, rest = [], []
    for name, w in model.named_parameters():
        is_hidden = name.startswith("blocks.") and w.ndim == 2
        (hidden if is_hidden and config.optimizer == "muon" else rest).append(w)
    groups = [
        {"params": [w for w in rest if w.ndim == 2], "weight_decay": config.weight_decay},
        {"params": [w for w in rest if w.ndim < 2], "weight_decay": 0.0},
    ]
    options = {"lr": config.learning_rate, "betas": (0.9, 0.99), "fused": True}
    optimizers = [Muon(hidden, lr=config.muon_learning_rate)] if hidden else []
    optimizers.append(torch.optim.AdamW(groups, **options))
    return optimizers


def move(optimizers, share):
    """Take a step at this share of the highest learning rates; drop the gradients."""
    for optimizer in optimizers:
        for group in optimizer.param_groups:
            group["lr"] = optimizer.defaults["lr"] * share
        optimizer.step()
        optimizer.zero_grad()


def split(ids):
    """Keep the last tenth of a corpus, an integer Tensor (tokens,), for validation."""
    cut = len(ids) - len(ids) // 10
    return ids[:cut], ids[cut:]


def cut_windows(ids, starts, context):
    """Cut windows and what follows each of their tokens.

    Parameters
    ----------
    ids : integer Tensor of shape (tokens,)
    starts : int64 Tensor of shape (batch,)

    Returns
    -------
    inputs, targets : int64 Tensor of shape (batch, context)
        ``targets`` are ``inputs`` one token further on.
    """
    places = starts[:, None] + torch.arange(context + 1)  # (batch, context + 1)
    cut = ids[places].long()  # a corpus is kept in fewer bytes
    return cut[:, :-1], cut[:, 1:]


def make_accelerator(device=None):
    """Return an Accelerator for a device: bfloat16 on GPUs that have it, else float32.

    Raises
    ------
    ValueError
        If the device cannot be used, or Accelerate would train on another.
    """
    device = pick_device(device)
    has_bfloat16 = device.type == "cuda" and torch.cuda.is_bf16_supported()
    accelerator = Accelerator(
        cpu=device.type == "cpu", mixed_precision="bf16" if has_bfloat16 else "no"
    )
    found = accelerator.device
    if device.type != found.type or device.index not in (None, found.index or 0):
        raise ValueError(
            f"cannot train on device {str(device)!r}: Accelerate chooses {str(found)!r}. "
            "Use 'cpu', 'cuda' or 'mps', and the same throughout a process"
        )
    return accelerator


ENTRY = {"step", "train_loss", "val_loss", "seconds"}


@dataclass
class Progress:
    """Where a run stands; what a checkpoint keeps of it beside the tensors."""

    step: int = 0
    seconds: float = 0.0  # of training, without evaluation
    history: list = field(default_factory=list)

    def __post_init__(self):
        check_numbers(self, 0, LARGEST, "step")
        check_numbers(self, 0.0, 1e12, "seconds")
        for entry in self.history:
            numbers = [x for key, x in entry.items() if (key, x) != ("train_loss", None)]
            known = all(type(x) in (int, float) and abs(x) <= 1e300 for x in numbers)
            if entry.keys() != ENTRY or not known:
                raise ValueError(f"{entry!r} is no entry of a history")
        if self.step and not self.history:
            raise ValueError("a run with steps has estimates, too")


class Trainer:
    """A model in training.

    Parameters
    ----------
    model : GPT
    training, validation : integer Tensor of shape (tokens,)
        From `split`.
    config : TrainingConfig
    device : str, optional
        Default as `lmcourse.models.pick_device`.

    Attributes
    ----------
    history : list of dict
        One estimate each: ``step``, ``train_loss`` (mean since the last one; none at step
        0), ``val_loss`` (nats a token), ``seconds`` of training until then.

    Raises
    ------
    ValueError
        If the batch cannot be shared out evenly among the processes, or a part has no room
        for a window and the token after it.
    """

    def __init__(self, model, training, validation, config, device=None):
        self.accelerator = make_accelerator(device)
        processes = self.accelerator.num_processes
        if config.batch % processes:
            raise ValueError(
                f"a batch of {config.batch} windows cannot be shared evenly by {processes} "
                "processes"
            )
        self.config, self.context = config, model.config.context
        if min(len(training), len(validation)) <= self.context:
            raise ValueError(
                f"{len(training)} tokens to train and {len(validation)} to validate on: "
                f"each needs more than the context of {self.context}: take a longer "
                "text or a shorter context"
            )
        self.training, self.validation = training, validation
        self.model = self.accelerator.prepare(model)
        self.optimizers = make_optimizers(self.bare, config)
        self.progress, self.losses = Progress(), []

    @property
    def bare(self):
        """The GPT, without what several processes wrap around it."""
        return self.accelerator.unwrap_model(self.model)

    @property
    def history(self):
        """The estimates so far."""
        return self.progress.history

    @property
    def tokens_per_second(self):
        """Of training, over all processes."""
        tokens = self.progress.step * self.config.batch * self.context
        return tokens / self.progress.seconds if self.progress.seconds else 0.0

    def draw(self, step):
        """Return this process's part of a step's windows: inputs and targets."""
        seed = self.config.seed * 1_000_003 + step
        # For dropout: another seed for each step of each process.
        torch.manual_seed(seed + self.accelerator.process_index * self.config.steps)
        generator = torch.Generator().manual_seed(seed)
        last = len(self.training) - self.context
        starts = torch.randint(last, (self.config.batch,), generator=generator)
        part = self.config.batch // self.accelerator.num_processes
        mine = starts[self.accelerator.process_index * part :][:part]
        inputs, targets = cut_windows(self.training, mine, self.context)
        device = self.accelerator.device
        return inputs.to(device), targets.to(device)  # (batch / processes, context)

    def step(self):
        """Take one training step and return its loss over all processes.

        Raises
        ------
        Diverged
            If the loss is not finite; the weights are as they were before the step.
        """
        start = time.perf_counter()
        self.model.train()
        inputs, targets = self.draw(self.progress.step)
        loss = cross_entropy(self.model(inputs), targets)
        mean = self.accelerator.reduce(loss.detach(), "mean").item()
        if not math.isfinite(mean):
            raise Diverged(f"the loss is {mean} at step {self.progress.step}")
        self.accelerator.backward(loss)
        self.accelerator.clip_grad_norm_(self.model.parameters(), self.config.clip)
        move(self.optimizers, schedule(self.progress.step, self.config))
        self.losses.append(mean)
        self.progress.step += 1
        self.progress.seconds += time.perf_counter() - start
        return mean

    def estimate(self):
        """Return the loss on the fixed validation windows, in nats a token."""
        count = self.config.validation_windows
        with self.accelerator.autocast():
            return estimate(self.bare.eval(), self.validation, self.context, count)

    def evaluate(self):
        """Append an estimate to the history and return it.

        Raises
        ------
        Diverged
            If it is not finite.
        """
        loss = self.estimate()
        if not math.isfinite(loss):
            raise Diverged(f"the validation loss is {loss} at step {self.progress.step}")
        mean = sum(self.losses) / len(self.losses) if self.losses else None
        self.losses = []
        entry = {"step": self.progress.step, "train_loss": mean, "val_loss": loss}
        self.history.append(entry | {"seconds": self.progress.seconds})
        return self.history[-1]

    def run(self, target=None, on_estimate=None, quiet=False):
        """Train to the last step, or until an estimate reaches a target.

        Parameters
        ----------
        target : float, optional
            Stop once the validation loss is at most this.
        on_estimate : callable, optional
            Called with the trainer after each estimate: to save, to sample, to plot.
        quiet : bool
            Whether to show no progress bar.

        Returns
        -------
        list of dict
            The history.

        Raises
        ------
        Diverged
            If a loss is not finite, naming the step.
        """
        hidden = quiet or not self.accelerator.is_main_process
        first, steps = self.progress.step, self.config.steps
        with tqdm(total=steps, initial=first, disable=hidden, unit="step") as bar:
            while True:
                here = self.progress.step
                due = here % self.config.evaluate_every == 0 or here >= steps
                if due and (not self.history or self.history[-1]["step"] < here):
                    self.evaluate()
                    if on_estimate is not None:
                        on_estimate(self)
                reached = target is not None and self.history[-1]["val_loss"] <= target
                if here >= steps or reached:
                    return self.history
                loss = self.step()
                bar.update()
                speed = f"{self.tokens_per_second:,.0f} tokens/s"
                bar.set_postfix_str(f"loss {loss:.3f}, {speed}", refresh=False)


@torch.no_grad()
def estimate(model, validation, context, count):
    """Return the mean loss on evenly spaced windows, always the same, in nats a token.

    Parameters
    ----------
    model : callable
        Ids (batch, context) to logits (batch, context, vocab_size), with parameters.
    validation : integer Tensor of shape (tokens,)
    context, count : int
        Tokens a window, and windows (fewer if the text is too short for as many).
    """
    device = next(model.parameters()).device
    last = len(validation) - context - 1
    count = min(count, last + 1)
    starts = torch.linspace(0, last, count, dtype=torch.float64).long()
    total = 0.0
    for part in starts.split(100):  # to bound memory
        inputs, targets = cut_windows(validation, part, context)
        logits = model(inputs.to(device)).float()
        total += len(part) * cross_entropy(logits, targets.to(device)).item()
    return total / count


def cross_entropy(logits, targets):
    """Return the mean loss of (batch, tokens, vocab_size) on (batch, tokens), in nats."""
    return F.cross_entropy(logits.flatten(0, 1), targets.flatten())
