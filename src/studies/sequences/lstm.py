"""The LSTM of the Sonnets, ``lstm.safetensors``: it predicts the next character.

No question, no rivals: it makes the model that the chapter *sequences* looks into.
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
D_IN, D_MODEL, BATCH, TOKENS, DROPOUT = 32, 128, 32, 96, 0.2
LEARNING_RATE = 5e-3


class Network(nn.Module):
    """A table of token vectors, PyTorch's own LSTM, an output layer."""

    def __init__(self, vocab_size):
        super().__init__()
        self.tokens = nn.Embedding(vocab_size, D_IN)
        self.core = nn.LSTM(D_IN, D_MODEL, batch_first=True)
        self.output = nn.Linear(D_MODEL, vocab_size)
        self.drop = nn.Dropout(DROPOUT)

    def forward(self, ids):
        states, _ = self.core(self.drop(self.tokens(ids)))
        return self.output(self.drop(states))  # (batch, tokens, vocab_size)


def corpus():
    """Return the characters' tokenizer, and the ids of training and validation text."""
    tokenizer = CharTokenizer(load_corpus("sonnets"))
    parts = train_val_test_split(load_texts("sonnets"))
    return tokenizer, *(torch.tensor(tokenizer.encode(part)) for part in parts[:2])


def plan(small):
    """One training; or two steps of it."""
    return [{"group": "training"} | SETTINGS | ({"steps": 2} if small else {})]


def run(folder, group, seed, steps):
    """Train the network and keep it; return its loss on the validation text."""
    model, loss = train_lstm(seed, steps)
    save(model, folder / "lstm.safetensors")
    return {"seed": seed, "steps": steps, "loss": round(loss, 4)}


def train_lstm(seed, steps):
    """Return a trained network and its loss on the validation text, in nats."""
    tokenizer, training, validation = corpus()
    torch.manual_seed(seed)
    model = Network(tokenizer.vocab_size)
    optimizer = torch.optim.AdamW(model.parameters(), LEARNING_RATE, weight_decay=0.01)

    def loss_at(step):
        starts = torch.randint(len(training) - TOKENS - 1, (BATCH,))
        windows = training[starts[:, None] + torch.arange(TOKENS + 1)]
        logits = model(windows[:, :-1])
        return F.cross_entropy(logits.flatten(0, 1), windows[:, 1:].flatten())

    def share_at(step):
        """Half a cosine, after a warm-up."""
        return min(1, (step + 1) / 50) * (1 + math.cos(math.pi * step / steps)) / 2

    schedulers = [LambdaLR(optimizer, share_at)]
    train_model(model, loss_at, steps, [optimizer], schedulers, max_norm=1.0)
    with torch.no_grad():
        logits = model(validation[None, :-1])[0]
        return model, F.cross_entropy(logits, validation[1:]).item()


def save(model, path):
    """Keep an LSTM under the names of `lmcourse.recurrent.CharLSTM`, as float16."""
    parts = {"weight_ih_l0": "read.weight", "weight_hh_l0": "carry.weight"}
    parts |= {"bias_ih_l0": "read.bias", "bias_hh_l0": "carry.bias"}
    state = {name: weight.half() for name, weight in model.state_dict().items()}
    state |= {f"lstm.{new}": state.pop(f"core.{old}") for old, new in parts.items()}
    tensors = {f"model.{name}": weight for name, weight in state.items()}
    save_tensors(path, tensors, {"alphabet": corpus()[0].alphabet})
