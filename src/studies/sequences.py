"""How far back does the gradient of a recurrent network reach?

Varied: the kind of network, an RNN and an LSTM of as many numbers, three seeds each,
trained on the Sonnets. Rivals: that the gates of an LSTM keep what an RNN loses; that
training opens them whatever the seed. Null: both lose it alike. Statistic: the gradient of
the last loss by the token vector so many places back, as a share of that at 0, median over
windows; the interval is that of the LSTM's power of ten less the RNN's, 50 tokens back, by
seed. The first LSTM, trained for longer, is kept as ``lstm.safetensors``.
"""

import json
import math

import torch
import torch.nn.functional as F
from safetensors.torch import save_file
from torch import nn

from lmcourse.data import load_corpus, load_texts, train_val_test_split
from lmcourse.tokenization import CharTokenizer
from studies.harness import count, paired

CHAPTER = "sequences"
CLAIM = (
    "Trained, two of three LSTMs keep more than a hundred-thousandth of the gradient over "
    "fifty tokens, all RNNs less than a ten-millionth; one LSTM is no better than that"
)
RIVAL = "an LSTM's gates keep the gradient whatever the seed"
NULL = "an RNN and an LSTM of as many numbers lose the gradient alike"
SETTINGS = {"seeds": [0, 1, 2], "steps": 800, "long": 4000}
CHECKPOINTS = ("lstm",)
WIDTH = {"LSTM": 128, "RNN": 258}  # as many numbers in both
D_IN, BATCH, TOKENS, DROPOUT = 32, 32, 96, 0.2
LEARNING_RATE = {"LSTM": 5e-3, "RNN": 2e-3}
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


def plan(small):
    """One long training and six; or each kind once, for two steps."""
    seeds = SETTINGS["seeds"][: 1 if small else None]
    steps, long = (2, 2) if small else (SETTINGS["steps"], SETTINGS["long"])
    return [{"group": "long", "kind": "LSTM", "seed": 0, "steps": long}] + [
        {"group": "runs", "kind": kind, "seed": seed, "steps": steps}
        for kind in WIDTH
        for seed in seeds
    ]


def run(folder, group, kind, seed, steps):
    """Train a network; return its loss on the validation text, nats a character."""
    model, loss = train(kind, seed, steps)
    if group == "long":
        save(model, folder / "lstm.safetensors")
        return {"steps": steps, "loss": round(loss, 4)}
    numbers = sum(weight.numel() for weight in model.parameters())
    back = [float(f"{x:.3g}") for x in reach(model, corpus()[2])]
    found = {"kind": kind, "seed": seed, "numbers": numbers, "loss": round(loss, 4)}
    return found | {"reach": back}


def train(kind, seed, steps):
    """Return a trained network and its loss."""
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
        return model, F.cross_entropy(
            model(validation[None, :-1])[0], validation[1:]
        ).item()


def reach(model, ids):
    """Return the gradient of the last loss by each token's vector, by distance."""
    windows = ids[: len(ids) // (2 * FAR) * 2 * FAR].view(-1, 2 * FAR)
    x = model.tokens(windows[:, :-1]).detach().requires_grad_()
    states, _ = model.core(x)
    loss = F.cross_entropy(model.output(states[:, -1]), windows[:, -1], reduction="sum")
    (gradient,) = torch.autograd.grad(loss, x)  # (windows, tokens, d_in)
    lengths = gradient.norm(dim=-1).flip(1)[:, : FAR + 1]
    return (lengths / lengths[:, :1]).median(0).values.tolist()


def save(model, path):
    """Keep an LSTM under the names of `lmcourse.recurrent.CharLSTM`, as float16."""
    parts = {"weight_ih_l0": "read.weight", "weight_hh_l0": "carry.weight"}
    parts |= {"bias_ih_l0": "read.bias", "bias_hh_l0": "carry.bias"}
    state = {name: weight.half() for name, weight in model.state_dict().items()}
    state |= {f"lstm.{new}": state.pop(f"core.{old}") for old, new in parts.items()}
    save_file(state, path, {"config": json.dumps({"alphabet": corpus()[0].alphabet})})


def summary(results):
    """Compare what is left of the gradient fifty tokens back."""
    left = {
        kind: [each["reach"][50] for each in results["runs"] if each["kind"] == kind]
        for kind in WIDTH
    }
    ours = sorted(left["LSTM"])
    holds = ours[len(ours) // 2] > 1e-5 > 1e-7 > max(left["RNN"]) and ours[0] < 1e-6
    powers = ([math.log10(max(x, 1e-30)) for x in left[kind]] for kind in WIDTH)
    return count(results["runs"]) | paired(*powers, holds)
