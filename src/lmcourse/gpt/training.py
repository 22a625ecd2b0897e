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
from functools import partial
from typing import Annotated, Literal

import torch
import torch.nn.functional as F
from accelerate import Accelerator
from pydantic import ConfigDict, Field
from tqdm.auto import tqdm
from typing_extensions import TypedDict  # pydantic takes no other before Python 3.12

from lmcourse.models import pick_device
from lmcourse.optimizers import Muon
from lmcourse.settings import LARGEST, Number, Rate, Size, Whole, settings


class Diverged(RuntimeError):
    """A loss is infinite, or no number any more."""


@settings
class TrainingConfig:
    """How a model is trained.

    Parameters
    ----------
    steps : int
    batch : int
        Windows a step, over all processes.
    optimizer : {"adamw", "muon"}
        With ``"muon"`` the matrices of the blocks are trained by
        `lmcourse.optimizers.Muon`, all else by AdamW.
    learning_rate, muon_learning_rate : float
        The highest that AdamW reaches, and the highest that Muon reaches.
    warmup : int
        Steps in which the learning rates rise from zero; fewer than ``steps``.
    min_learning_rate : float
        Where the cosine ends, as a share of the highest learning rate.
    weight_decay : float
        AdamW's, on matrices and tables only.
    clip : float
        Gradients longer than this, over all weights together, are shortened to it.
    evaluate_every : int
        Steps between two estimates (and checkpoints).
    validation_windows : int
        How many, evenly spaced and always the same.
    seed : int
        From -10**12 to 10**12: a step's own seed has to be one that PyTorch takes.

    Raises
    ------
    ValueError
        If a field is unknown or wrong, or two do not fit each other; in one line.
    """

    steps: Size = 2000
    batch: Size = 12
    optimizer: Literal["adamw", "muon"] = "adamw"
    learning_rate: Rate = 1e-3
    muon_learning_rate: Rate = 0.02
    warmup: Annotated[Whole, Field(ge=0, le=LARGEST)] = 100
    min_learning_rate: Annotated[Number, Field(ge=0, le=1)] = 0.1
    weight_decay: Annotated[Number, Field(ge=0, le=1e30)] = 0.1
    clip: Rate = 1.0
    evaluate_every: Size = 100
    validation_windows: Size = 400
    seed: Annotated[Whole, Field(ge=-(10**12), le=10**12)] = 0

    def __post_init__(self):
        """Raise a ValueError if the warmup is as long as the training, or longer."""
        if self.warmup >= self.steps:
            raise ValueError(
                f"a warmup of {self.warmup} steps must be shorter than the run of "
                f"{self.steps}, or its learning rate is never reached"
            )


def schedule(step, config):
    """Return the share of the highest learning rate at a step: warm-up, then a cosine.

    Parameters
    ----------
    step : int
        From 0; beyond the last step the share stays at its lowest.
    config : TrainingConfig
        Used are ``steps``, how many there are; ``warmup``, in how many of them the rate
        rises; and ``min_learning_rate``, the share at which the cosine ends.

    Returns
    -------
    float
        From 0 to 1.
    """
    if step < config.warmup:
        return (step + 1) / config.warmup
    done = (step - config.warmup) / (config.steps - config.warmup)
    cosine = (1 + math.cos(math.pi * min(done, 1))) / 2  # from 1 to 0
    return config.min_learning_rate + (1 - config.min_learning_rate) * cosine


def make_optimizers(model, config):
    """Return the optimizers of a GPT; the default "lr" of each is its highest.

    Parameters
    ----------
    model : GPT
    config : TrainingConfig
        Used are ``optimizer`` ("adamw" or "muon"), ``learning_rate`` and ``weight_decay``
        of AdamW (which decays matrices and tables only), and ``muon_learning_rate``.

    Returns
    -------
    list of Optimizer
        AdamW; with ``config.optimizer`` "muon" first a Muon for the blocks' matrices.
    """
    hidden = []
    others = []
    for name, weight in model.named_parameters():
        in_block = name.startswith("blocks.") and weight.ndim == 2
        if in_block and config.optimizer == "muon":
            hidden.append(weight)
        else:
            others.append(weight)
    matrices = [weight for weight in others if weight.ndim == 2]
    vectors = [weight for weight in others if weight.ndim < 2]
    groups = [
        {"params": matrices, "weight_decay": config.weight_decay},
        {"params": vectors, "weight_decay": 0.0},
    ]
    adamw = torch.optim.AdamW(
        groups, lr=config.learning_rate, betas=(0.9, 0.99), fused=True
    )
    if not hidden:
        return [adamw]
    return [Muon(hidden, lr=config.muon_learning_rate), adamw]


def take_step(optimizers, share):
    """Change the weights once, at a share of the highest learning rates.

    Parameters
    ----------
    optimizers : list of Optimizer
        Each keeps its highest learning rate as ``defaults["lr"]``; gradients are dropped
        afterwards.
    share : float
        From 0 to 1.
    """
    for optimizer in optimizers:
        for group in optimizer.param_groups:
            group["lr"] = optimizer.defaults["lr"] * share
        optimizer.step()
        optimizer.zero_grad()


def split(ids):
    """Divide a corpus: its last tenth is for validation.

    It is for one running text of which no test part is needed, such as tinyshakespeare, and
    for short trainings that are only watched. Losses that are reported of poems rest on
    `lmcourse.data.train_val_test_split`, since the last tenth of a collection may be about
    something else than the rest; those of a reader's own text on
    `lmcourse.own_text.parts_of`.

    ``ids`` : integer Tensor or array (tokens,). Returns the training and the validation
    part, views of it; the validation part is the shorter one by rounding.
    """
    cut = len(ids) - len(ids) // 10
    return ids[:cut], ids[cut:]


def cut_windows(ids, starts, context):
    """Cut windows and what follows each of their tokens.

    Parameters
    ----------
    ids : integer Tensor of shape (tokens,)
    starts : int64 Tensor of shape (batch,)
        Positions of the first token of each window.
    context : int
        Tokens of a window.

    Returns
    -------
    inputs, targets : int64 Tensor of shape (batch, context)
        ``targets`` are ``inputs`` one token further on.
    """
    positions = starts[:, None] + torch.arange(context + 1)  # (batch, context + 1)
    windows = ids[positions].long()  # a corpus is kept in fewer bytes
    return windows[:, :-1], windows[:, 1:]


def make_accelerator(device=None):
    """Return an Accelerator for a device: bfloat16 on GPUs that have it, else float32.

    Parameters
    ----------
    device : str or torch.device, optional
        Where to compute. Default: ``LMCOURSE_DEVICE``, else the best of CUDA, MPS and CPU.

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
    chosen = accelerator.device
    if device.type != chosen.type or device.index not in (None, chosen.index or 0):
        raise ValueError(
            f"cannot train on device {str(device)!r}: Accelerate chooses {str(chosen)!r}. "
            "Use 'cpu', 'cuda' or 'mps', and the same throughout a process"
        )
    return accelerator


class Estimate(TypedDict):
    """An entry of a run's history."""

    __pydantic_config__ = ConfigDict(extra="forbid")
    step: Whole
    train_loss: Number | None  # nats a token, the mean since the last entry
    val_loss: Number  # nats a token
    seconds: Number  # of training until then


@partial(settings, frozen=False)
class Progress:
    """Where a run stands; what a checkpoint keeps of it beside the tensors.

    Parameters
    ----------
    step : int
        How many steps were taken.
    seconds : float
        Of training, without evaluation.
    history : list of dict
        The estimates so far: ``step``; ``train_loss``, the mean since the last one, or
        None, and ``val_loss``, in nats a token; ``seconds`` of training until then.
    """

    step: Annotated[Whole, Field(ge=0, le=LARGEST)] = 0
    seconds: Annotated[Number, Field(ge=0, le=1e12)] = 0.0
    history: list[Estimate] = Field(default_factory=list)

    def __post_init__(self):
        """Raise a ValueError if steps were made and no loss was estimated."""
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
        Where to compute. Default: ``LMCOURSE_DEVICE``, else the best of CUDA, MPS and CPU.

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
        self.config = config
        self.context = model.config.context
        if min(len(training), len(validation)) <= self.context:
            raise ValueError(
                f"{len(training)} tokens to train and {len(validation)} to validate on: "
                f"each needs more than the context of {self.context}: take a longer "
                "text or a shorter context"
            )
        self.training = training
        self.validation = validation
        self.model = self.accelerator.prepare(model)
        self.optimizers = make_optimizers(self.gpt, config)
        self.progress = Progress()
        self.losses = []  # of the steps since the last estimate

    @property
    def gpt(self):
        """The GPT, without what several processes wrap around it."""
        return self.accelerator.unwrap_model(self.model)

    @property
    def history(self):
        """The estimates so far, a list of dict, the first of them before the first step.

        Each has ``step``; ``train_loss``, the mean since the last one, or None, and
        ``val_loss``, in nats a token; ``seconds`` of training until then.
        """
        return self.progress.history

    @property
    def tokens_per_second(self):
        """Tokens trained on in a second, over all processes; 0 before the first step."""
        if not self.progress.seconds:
            return 0.0
        tokens = self.progress.step * self.config.batch * self.context
        return tokens / self.progress.seconds

    def sample_batch(self, step):
        """Return this process's part of a step's windows: inputs and targets.

        Parameters
        ----------
        step : int
            From 0; it decides the windows.

        Returns
        -------
        inputs, targets : int64 Tensor of shape (batch / processes, context)
        """
        seed = self.config.seed * 1_000_003 + step
        # For dropout: another seed for each step of each process.
        torch.manual_seed(seed + self.accelerator.process_index * self.config.steps)
        generator = torch.Generator().manual_seed(seed)
        last = len(self.training) - self.context
        starts = torch.randint(last, (self.config.batch,), generator=generator)
        part = self.config.batch // self.accelerator.num_processes
        first = self.accelerator.process_index * part
        own_starts = starts[first : first + part]
        inputs, targets = cut_windows(self.training, own_starts, self.context)
        device = self.accelerator.device
        return inputs.to(device), targets.to(device)

    def step(self):
        """Take one training step; return its mean loss over all processes, nats a token.

        Raises
        ------
        Diverged
            If the loss is not finite; the weights are as they were before the step.
        """
        start = time.perf_counter()
        self.model.train()
        inputs, targets = self.sample_batch(self.progress.step)
        loss = cross_entropy(self.model(inputs), targets)
        mean_loss = self.accelerator.reduce(loss.detach(), "mean").item()
        if not math.isfinite(mean_loss):
            raise Diverged(f"the loss is {mean_loss} at step {self.progress.step}")
        self.accelerator.backward(loss)
        self.accelerator.clip_grad_norm_(self.model.parameters(), self.config.clip)
        take_step(self.optimizers, schedule(self.progress.step, self.config))
        self.losses.append(mean_loss)
        self.progress.step += 1
        self.progress.seconds += time.perf_counter() - start
        return mean_loss

    def estimate(self):
        """Return the loss on the fixed validation windows, in nats a token."""
        count = self.config.validation_windows
        with self.accelerator.autocast():
            return estimate(self.gpt.eval(), self.validation, self.context, count)

    def evaluate(self):
        """Append an estimate to the history and return it.

        Returns
        -------
        dict
            ``step``; ``train_loss``, the mean since the last estimate, or None;
            ``val_loss``; both in nats a token; ``seconds`` of training so far.

        Raises
        ------
        Diverged
            If the validation loss is not finite.
        """
        loss = self.estimate()
        if not math.isfinite(loss):
            raise Diverged(f"the validation loss is {loss} at step {self.progress.step}")
        train_loss = None
        if self.losses:
            train_loss = sum(self.losses) / len(self.losses)
            self.losses = []
        entry = {
            "step": self.progress.step,
            "train_loss": train_loss,
            "val_loss": loss,
            "seconds": self.progress.seconds,
        }
        self.history.append(entry)
        return entry

    def run(self, target=None, on_estimate=None, quiet=False):
        """Train to the last step, or until an estimate reaches a target.

        Parameters
        ----------
        target : float, optional
            Stop once the validation loss, in nats a token, is at most this.
        on_estimate : callable, optional
            Called with the trainer after each estimate: to save, to sample, to plot.
        quiet : bool
            Whether to leave the progress bar out.

        Returns
        -------
        list of dict
            The history: estimates with ``step``, ``train_loss``, ``val_loss``, ``seconds``.

        Raises
        ------
        Diverged
            If a loss is not finite, naming the step.
        """
        hidden = quiet or not self.accelerator.is_main_process
        first = self.progress.step
        steps = self.config.steps
        with tqdm(total=steps, initial=first, disable=hidden, unit="step") as bar:
            while True:
                step = self.progress.step
                due = step % self.config.evaluate_every == 0 or step >= steps
                done_before = self.history and self.history[-1]["step"] == step
                if due and not done_before:
                    self.evaluate()
                    if on_estimate is not None:
                        on_estimate(self)
                reached = target is not None and self.history[-1]["val_loss"] <= target
                if step >= steps or reached:
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
        A module: ids (batch, context) to logits (batch, context, vocab_size). In the mode
        in which it is, on the device of its parameters.
    validation : integer Tensor of shape (tokens,)
        The text as ids, longer than a window.
    context, count : int
        Tokens a window, and windows (fewer if the text is too short for as many).

    Returns
    -------
    float
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
    """Return the mean loss, in nats a token.

    Parameters
    ----------
    logits : Tensor of shape (batch, tokens, vocab_size)
    targets : int64 Tensor of shape (batch, tokens)
        The token that is right at each position.

    Returns
    -------
    Tensor of shape ()
    """
    return F.cross_entropy(logits.flatten(0, 1), targets.flatten())
