"""Recurrent networks that read the Sonnets: three RNNs, three LSTMs, of equal size.

Writes ``data/sweeps/sequences.json``, which the chapter *sequences* shows: of each network
its loss on held-out sonnets and the gradient that reaches back, by distance; and
``data/checkpoints/lstm.safetensors``, the first LSTM, trained for longer. On the CPU.
"""

import argparse
import json
import math

import torch
import torch.nn.functional as F
from safetensors.torch import save_file
from torch import nn

from lmbook.bench import report
from lmcourse.data import corpora_folder, load_corpus, load_texts, train_val_test_split
from lmcourse.models import one_thread
from lmcourse.recurrent import CharLSTM, stored_at
from lmcourse.tokenization import CharTokenizer

__all__ = ["main", "reach", "run"]

SEEDS = range(3)
WIDTH = {"LSTM": 128, "RNN": 258}  # as many numbers in both
D_IN, BATCH, TOKENS, DROPOUT = 32, 32, 96, 0.2
STEPS, LONG, LEARNING_RATE = 800, 4000, {"LSTM": 5e-3, "RNN": 2e-3}
FAR = 64


class Network(nn.Module):
    """A table of token vectors, PyTorch's own recurrent layer, an output layer."""

    def __init__(self, kind, vocab_size):
        super().__init__()
        width = WIDTH[kind]
        self.tokens = nn.Embedding(vocab_size, D_IN)
        self.core = getattr(nn, kind)(D_IN, width, batch_first=True)
        self.output = nn.Linear(width, vocab_size)
        self.drop = nn.Dropout(DROPOUT)

    def forward(self, ids):
        states, _ = self.core(self.drop(self.tokens(ids)))
        return self.output(self.drop(states))  # (batch, tokens, vocab_size)


def corpus():
    """Return the characters' tokenizer, and the ids of training and validation text."""
    tokenizer = CharTokenizer(load_corpus("sonnets"))
    parts = train_val_test_split(load_texts("sonnets"))
    return tokenizer, *(torch.tensor(tokenizer.encode(part)) for part in parts[:2])


def run(kind, seed, steps):
    """Train a network; return it and its loss on the validation text, nats a character."""
    tokenizer, training, validation = corpus()
    torch.manual_seed(seed)
    model, peak = Network(kind, tokenizer.vocab_size), LEARNING_RATE[kind]
    optimizer = torch.optim.AdamW(model.parameters(), weight_decay=0.01)
    for step in range(steps):
        rate = peak * min(1, (step + 1) / 50) * (1 + math.cos(math.pi * step / steps)) / 2
        optimizer.param_groups[0]["lr"] = rate
        starts = torch.randint(len(training) - TOKENS - 1, (BATCH,))
        windows = training[starts[:, None] + torch.arange(TOKENS + 1)]
        logits = model(windows[:, :-1])
        loss = F.cross_entropy(logits.flatten(0, 1), windows[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1)
        optimizer.step()
    model.eval()
    with torch.no_grad():
        loss = F.cross_entropy(model(validation[None, :-1])[0], validation[1:])
    return model, loss.item()


def reach(model, ids):
    """Return the gradient of the last loss by each token's vector, by distance.

    Returns
    -------
    list of float
        Its median length over windows, for distance 0 to `FAR`, as a share of that at 0.
    """
    windows = ids[: len(ids) // (2 * FAR) * 2 * FAR].view(-1, 2 * FAR)
    x = model.tokens(windows[:, :-1]).detach().requires_grad_()
    states, _ = model.core(x)
    loss = F.cross_entropy(model.output(states[:, -1]), windows[:, -1], reduction="sum")
    (gradient,) = torch.autograd.grad(loss, x)  # (windows, tokens, d_in)
    lengths = gradient.norm(dim=-1).flip(1)[:, : FAR + 1]
    return (lengths / lengths[:, :1]).median(0).values.tolist()


def store(model):
    """Keep an LSTM under the names of `lmcourse.recurrent.CharLSTM`, as float16."""
    tokenizer, *_ = corpus()
    names = {"weight_ih_l0": "read.weight", "weight_hh_l0": "carry.weight"}
    names |= {"bias_ih_l0": "read.bias", "bias_hh_l0": "carry.bias"}
    state = model.state_dict()
    for old, new in names.items():
        state[f"lstm.{new}"] = state.pop(f"core.{old}")
    made = CharLSTM(tokenizer.vocab_size, D_IN, WIDTH["LSTM"])
    made.load_state_dict(state)
    metadata = {"config": json.dumps({"alphabet": tokenizer.alphabet})}
    save_file({name: x.half() for name, x in state.items()}, stored_at(), metadata)


def main(arguments) -> int:
    """Train all, print their losses, keep what the chapter shows."""
    parser = argparse.ArgumentParser(prog="lmbook.bench sequences", description=__doc__)
    parser.parse_args(arguments)
    one_thread()
    _, _, validation = corpus()
    model, loss = run("LSTM", 0, LONG)
    store(model)
    runs, best = [], round(loss, 4)
    for kind in WIDTH:
        for seed in SEEDS:
            model, loss = run(kind, seed, STEPS)
            numbers = sum(weight.numel() for weight in model.parameters())
            back = [float(f"{x:.3g}") for x in reach(model, validation)]
            row = {"kind": kind, "seed": seed, "numbers": numbers, "loss": round(loss, 4)}
            runs.append(row | {"reach": back})
    kept = {"steps": STEPS, "long": LONG, "runs": runs, "loss": best}
    path = corpora_folder() / "sweeps" / "sequences.json"
    path.write_text(json.dumps(kept) + "\n", encoding="utf-8")
    shown = [{k: v for k, v in row.items() if k != "reach"} for row in runs]
    report(shown, {"steps": STEPS, f"loss after {LONG}": best})
    return 0
