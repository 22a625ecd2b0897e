"""One training loop, for the page, the command line and several processes.

Devices, processes and mixed precision are Accelerate's; what is taught is here: batches,
clipping, and a loss estimated on windows that never change. The settings of a run are
`lmcourse.gpt.settings`'s, its optimizers and their schedule `lmcourse.gpt.optimizers`'s.
Every step draws from a seed of its own, so that a run that was interrupted goes on as if
it had not been, and several processes see what one would. Dropout is the exception: each
process draws masks for its own part of a batch, so several do not drop what one would.
"""

import math
import time
from dataclasses import dataclass, field

import torch
import torch.nn.functional as F
from accelerate import Accelerator
from tqdm.auto import tqdm

from lmcourse.gpt.optimizers import make_optimizers, schedule
from lmcourse.gpt.settings import Diverged, is_finite, require
from lmcourse.models import pick_device


def split(ids, context, validation_share=0.1):
    """Keep the last part of a corpus for validation.

    Parameters
    ----------
    ids : integer Tensor of shape (tokens,)
    context : int
    validation_share : float

    Returns
    -------
    training, validation : Tensor, views of ``ids``

    Raises
    ------
    ValueError
        If a part has no room for a window and the token after it.
    """
    cut = len(ids) - int(len(ids) * validation_share)
    training, validation = ids[:cut], ids[cut:]
    check_room(training, validation, context)
    return training, validation


def check_room(training, validation, context):
    """Raise ValueError if a part has no room for a window and the token after it."""
    if min(len(training), len(validation)) <= context:
        raise ValueError(
            f"a corpus of {len(training) + len(validation)} tokens leaves "
            f"{len(training)} to train and {len(validation)} to validate on, but each part "
            f"needs more than the context of {context}: take a longer text or a shorter "
            "context"
        )


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
        require(self, "a whole number from 0", "step")
        require(self, "a finite number from 0", "seconds")
        self.history = [dict(entry) for entry in self.history]
        for entry in self.history:
            first = {"train_loss": 0.0} if entry.get("train_loss") is None else {}
            if entry.keys() != ENTRY or not all(map(is_finite, (entry | first).values())):
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
        If the batch cannot be shared out evenly among the processes.
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
        share = schedule(self.progress.step, self.config)  # of the highest learning rate
        for optimizer in self.optimizers:
            for group in optimizer.param_groups:
                group["lr"] = optimizer.defaults["lr"] * share
            optimizer.step()
            optimizer.zero_grad()
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
def estimate(model, validation, context, count, chunk=100):
    """Return the mean loss on evenly spaced windows, always the same, in nats a token.

    Parameters
    ----------
    model : callable
        Ids (batch, context) to logits (batch, context, vocab_size), with parameters.
    validation : integer Tensor of shape (tokens,)
    context, count : int
        Tokens a window, and windows (fewer if the text is too short for as many).
    chunk : int
        Windows at a time, to bound memory.
    """
    device = next(model.parameters()).device
    last = len(validation) - context - 1
    count = min(count, last + 1)
    starts = torch.linspace(0, last, count, dtype=torch.float64).long()
    total = 0.0
    for part in starts.split(chunk):
        inputs, targets = cut_windows(validation, part, context)
        logits = model(inputs.to(device)).float()
        total += len(part) * cross_entropy(logits, targets.to(device)).item()
    return total / count


def cross_entropy(logits, targets):
    """Return the mean loss of (batch, tokens, vocab_size) on (batch, tokens), in nats."""
    return F.cross_entropy(logits.flatten(0, 1), targets.flatten())
