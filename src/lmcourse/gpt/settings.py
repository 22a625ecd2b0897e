"""The sizes of a GPT and the settings of its training: no PyTorch, so errors are quick."""

import sys
from dataclasses import dataclass


class Diverged(RuntimeError):
    """The loss is no longer a number."""


def is_whole(value):
    """Say whether a value is an int; True is none."""
    return isinstance(value, int) and not isinstance(value, bool)


def is_finite(value):
    """Say whether a value is a number that a float can be."""
    is_number = is_whole(value) or isinstance(value, float)
    return is_number and abs(value) <= sys.float_info.max


def is_size(value):
    """Say whether a value can be a size: PyTorch counts with the product of two."""
    return is_whole(value) and 1 <= value <= 10**8


KINDS = {
    "a whole number from 1 to 10**8": is_size,
    "a whole number from 0": lambda x: is_whole(x) and x >= 0,
    "a whole number from -10**12 to 10**12": lambda x: is_whole(x) and abs(x) <= 10**12,
    "a finite number above 0": lambda x: is_finite(x) and x > 0,
    "a finite number from 0": lambda x: is_finite(x) and x >= 0,
    "a finite number from 0 to 1": lambda x: is_finite(x) and 0 <= x <= 1,
    "a finite number from 0, below 1": lambda x: is_finite(x) and 0 <= x < 1,
    "a list of whole numbers from 1": lambda x: (
        isinstance(x, tuple | list) and all(map(is_size, x))
    ),
    "'adamw' or 'muon'": lambda x: x in ("adamw", "muon"),
    "'learned' or 'rotary'": lambda x: x in ("learned", "rotary"),
}


def require(config, kind, *names):
    """Raise ValueError unless the named fields are of one of the `KINDS`."""
    for name in names:
        value = getattr(config, name)
        if not KINDS[kind](value):
            raise ValueError(f"{name} must be {kind}, not {value!r}")


@dataclass(frozen=True)
class GPTConfig:
    """The sizes of a GPT.

    Parameters
    ----------
    vocab_size : int
    context : int
        How many tokens it sees at most.
    layers, heads, d_model : int
        ``heads`` must divide ``d_model``; the hidden layer is ``4 * d_model`` wide.
    dropout : float
        Share of the activations zeroed in training, below 1.
    positions : {"learned", "rotary"}
        A vector for each position, added; or queries and keys turned (Su et al. 2021).
    ngrams : tuple of int
        Rows of the tables of `lmcourse.gpt.ngrams`, for pairs of tokens, then for
        triples, and so on. Empty: none, and the model is a `lmcourse.gpt.model.GPT`.

    Raises
    ------
    ValueError
        If a size is no number or not positive, or two do not fit each other.
    """

    vocab_size: int
    context: int = 64
    layers: int = 4
    heads: int = 4
    d_model: int = 128
    dropout: float = 0.0
    positions: str = "learned"
    ngrams: tuple[int, ...] = ()

    def __post_init__(self):
        sizes = "vocab_size", "context", "layers", "heads", "d_model"
        require(self, "a whole number from 1 to 10**8", *sizes)
        require(self, "a finite number from 0, below 1", "dropout")
        require(self, "'learned' or 'rotary'", "positions")
        require(self, "a list of whole numbers from 1", "ngrams")
        if self.d_model % self.heads:
            raise ValueError(f"{self.heads} heads do not divide d_model = {self.d_model}")
        if self.positions == "rotary" and self.d_model // self.heads % 2:
            raise ValueError("rotary positions turn pairs: d_model / heads must be even")
        object.__setattr__(self, "ngrams", tuple(self.ngrams))  # JSON has a list


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
        `lmcourse.gpt.optimizers.Muon`, all else by AdamW.
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
        counts = "steps", "batch", "evaluate_every", "validation_windows"
        rates = "learning_rate", "muon_learning_rate", "clip"
        require(self, "a whole number from 1 to 10**8", *counts)
        require(self, "a whole number from 0", "warmup")
        require(self, "a finite number above 0", *rates)
        require(self, "a finite number from 0", "weight_decay")
        require(self, "a finite number from 0 to 1", "final")
        require(self, "a whole number from -10**12 to 10**12", "seed")
        require(self, "'adamw' or 'muon'", "optimizer")
        if self.warmup >= self.steps:
            raise ValueError(
                f"a warmup of {self.warmup} steps must be shorter than the run of "
                f"{self.steps}, or its learning rate is never reached"
            )
