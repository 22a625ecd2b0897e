"""The LSTM of the Sonnets, ``lstm.safetensors``: it predicts the next character.

No question and no rivals: it makes the model that the chapter *sequences* looks into.
"""

import math

import torch
import torch.nn.functional as F
from torch import nn
from torch.optim.lr_scheduler import LambdaLR

from lmcourse.data import load_corpus, load_texts, train_val_test_split
from lmcourse.tokenization import CharTokenizer
from lmcourse.training_loop import train_model
from lmcourse.weights import save_tensors

CHAPTER = "sequences"
SETTINGS = {"seed": 0, "steps": 4000}
CHECKPOINTS = ("lstm",)
D_IN = 32  # width of the token vectors
D_MODEL = 128  # width of the LSTM's state
BATCH = 32
TOKENS = 96  # of a window
DROPOUT = 0.2  # share of numbers that are dropped in training
LEARNING_RATE = 5e-3


class Network(nn.Module):
    """A table of vectors of 32, PyTorch's own LSTM of width 128, and an output layer.

    In training a fifth of the vectors' numbers and of the states' is dropped.

    Parameters
    ----------
    vocab_size : int
        How many characters.
    """

    def __init__(self, vocab_size):
        """Draw the first weights."""
        super().__init__()
        self.tokens = nn.Embedding(vocab_size, D_IN)
        self.core = nn.LSTM(D_IN, D_MODEL, batch_first=True)
        self.output = nn.Linear(D_MODEL, vocab_size)
        self.drop = nn.Dropout(DROPOUT)

    def forward(self, ids):
        """Return logits (batch, tokens, vocab_size) of what follows ids (batch, tokens).

        ``ids`` : int64 Tensor. The logits at a position are of the next character.
        """
        states, _ = self.core(self.drop(self.tokens(ids)))
        return self.output(self.drop(states))


def load_ids():
    """Load the Sonnets as ids of characters.

    Returns
    -------
    tokenizer : CharTokenizer
    training, validation : int64 Tensor of shape (characters,)
        Eight of each ten sonnets, and one, joined; the tenth, for tests, is left out.
    """
    tokenizer = CharTokenizer(load_corpus("sonnets"))
    training, validation, _ = train_val_test_split(load_texts("sonnets"))
    return tokenizer, *(
        torch.tensor(tokenizer.encode(text)) for text in (training, validation)
    )


def plan(small):
    """Return the setting of the one run, a training of 4,000 steps.

    Parameters
    ----------
    small : bool
        Whether it has two steps instead.

    Returns
    -------
    list of dict
        The arguments of each run: ``group``, which is "training"; ``seed``; ``steps`` of
        training.
    """
    return [{"group": "training"} | SETTINGS | ({"steps": 2} if small else {})]


def run(folder, group, seed, steps):
    """Train the network and save it.

    Parameters
    ----------
    folder : Path
        Where ``lstm.safetensors`` is written: the weights as float16, and the alphabet.
    group : {"training"}
        The only kind of run; unused.
    seed : int
        Of the first weights, and of all that is drawn.
    steps : int
        How many steps of training.

    Returns
    -------
    dict
        The settings ``seed``, ``steps``; ``loss``, on the validation text, in nats a
        character.
    """
    model, loss = train_lstm(seed, steps)
    save(model, folder / "lstm.safetensors")
    return {"seed": seed, "steps": steps, "loss": round(loss, 4)}


def train_lstm(seed, steps):
    """Train the network on random windows of the training text.

    Parameters
    ----------
    seed : int
        Of the first weights, and of all that is drawn.
    steps : int
        How many steps of training.

    Returns
    -------
    model : Network
        In evaluation mode.
    loss : float
        On the validation text, in nats a character.
    """
    tokenizer, training, validation = load_ids()
    torch.manual_seed(seed)
    model = Network(tokenizer.vocab_size)
    train_on_windows(model, training, steps, LEARNING_RATE)
    with torch.no_grad():
        logits = model(validation[None, :-1])[0]
        return model, F.cross_entropy(logits, validation[1:]).item()


def train_on_windows(model, training, steps, learning_rate):
    """Train a network on random windows of a text, with AdamW; then switch to evaluation.

    A step reads 32 windows of 96 characters.

    Parameters
    ----------
    model : Network
        Trained in place.
    training : int64 Tensor of shape (characters,)
        The text.
    steps : int
        How many steps of training.
    learning_rate : float
        The highest: the rate rises over 50 steps, and falls along half a cosine.
    """
    optimizer = torch.optim.AdamW(model.parameters(), learning_rate, weight_decay=0.01)

    def loss_at(_step):
        """Return the mean loss of a batch of random windows, nats a character, a Tensor ().

        ``_step`` is not used: every batch is new.
        """
        starts = torch.randint(len(training) - TOKENS - 1, (BATCH,))
        windows = training[starts[:, None] + torch.arange(TOKENS + 1)]
        logits = model(windows[:, :-1])
        return F.cross_entropy(logits.flatten(0, 1), windows[:, 1:].flatten())

    def share_at(step):
        """Return the share of the learning rate at a step: half a cosine, after a warm-up.

        ``step`` : int, from 0.
        """
        return min(1, (step + 1) / 50) * (1 + math.cos(math.pi * step / steps)) / 2

    schedulers = [LambdaLR(optimizer, share_at)]
    train_model(model, loss_at, steps, [optimizer], schedulers, max_norm=1.0)


def save(model, path):
    """Save a network under the names of `lmcourse.recurrent.CharLSTM`, as float16.

    Parameters
    ----------
    model : Network
        Its weights are saved in half precision, with the alphabet beside them.
    path : Path
        Of the file to write.
    """
    parts = {"weight_ih_l0": "read.weight", "weight_hh_l0": "carry.weight"}
    parts |= {"bias_ih_l0": "read.bias", "bias_hh_l0": "carry.bias"}
    state = {name: weight.half() for name, weight in model.state_dict().items()}
    for old, new in parts.items():
        state[f"lstm.{new}"] = state.pop(f"core.{old}")
    tensors = {f"model.{name}": weight for name, weight in state.items()}
    tokenizer, _, _ = load_ids()
    save_tensors(path, tensors, {"alphabet": tokenizer.alphabet})
