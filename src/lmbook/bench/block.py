"""Small models of characters, trained with and without the parts of a block.

Writes ``data/sweeps/transformer-block.json``, which the chapter *transformer-block* draws:
blocks without a part from the beginning, few and many; with and without dropout; and, on a
task of digits, with the norm before or after each step, with and without a warm-up. Three
seeds of each; on the CPU.
"""

import argparse
import json

import torch
import torch.nn.functional as F
from torch import nn
from tqdm import tqdm

from lmbook.bench import report
from lmcourse.attention import causal_mask
from lmcourse.data import corpora_folder, load_texts, train_val_test_split
from lmcourse.models import one_thread
from lmcourse.tokenization import CharTokenizer
from lmcourse.transformer import Embed, Stack

__all__ = ["Reader", "main", "run", "stored_at"]

SEEDS = (0, 1, 2)
BASE = {"layers": 4, "d_model": 48, "steps": 400, "learning_rate": 3e-3}
CONTEXT, BATCH, HEADS, EVERY = 32, 16, 4, 25
PARTS = ("nothing", "norms", "attention", "feed_forward", "residuals")
SETTINGS = {
    "parts": [{"off": part} for part in PARTS],
    "deep": [
        {"off": part, "layers": 12, "steps": 150, "xavier": True}
        for part in ("nothing", "norms")
    ],
    "dropout": [{"dropout": p, "sonnets_read": 16, "steps": 1200} for p in (0.0, 0.2)],
    "warmup": [
        {"norm_first": first, "warmup": steps, "layers": 12, "d_model": 32, "steps": 200}
        for first in (True, False)
        for steps in (0, 50)
    ],
}


class Nothing(nn.Module):
    """Takes the place of a step: its update is zero."""

    def forward(self, x, **looking):
        """Return zeros, and no weights where weights are expected."""
        return (0 * x, None) if looking else 0 * x


class Reader(nn.Module):
    """Embedding, blocks that may lack the part ``off``, and an output layer."""

    def __init__(self, vocab_size, layers, d_model, off="nothing", xavier=False, **options):
        super().__init__()
        self.embed = Embed(vocab_size, d_model)
        self.stack = Stack(layers, d_model, HEADS, 2 * d_model, **options)
        self.output = nn.Linear(d_model, vocab_size)
        for block in self.stack.blocks:
            if off == "norms":
                block.norm_1 = block.norm_2 = nn.Identity()
            elif off == "residuals":
                block.after = lambda x, update, norm: update
            elif off != "nothing":
                setattr(block, off, Nothing())
        for matrix in self.stack.parameters():
            if matrix.dim() > 1 and xavier:
                nn.init.xavier_uniform_(matrix)

    def forward(self, ids, targets, mask=None):
        """Return the mean cross-entropy, in nats, of targets (batch, tokens)."""
        x, _ = self.stack(self.embed(ids), mask=mask)
        return F.cross_entropy(self.output(x).mT, targets)


def sonnets(count=None):
    """Return a function that draws inputs and targets, the held-out ones, and a mask."""
    parts = train_val_test_split(load_texts("sonnets"))
    tokenizer = CharTokenizer(parts.training + parts.validation)
    text = "\n\n".join(parts.training.split("\n\n")[:count])
    ids, held = (torch.tensor(tokenizer.encode(t)) for t in (text, parts.validation))
    held = held.unfold(0, CONTEXT + 1, 2 * CONTEXT)

    def draw():
        starts = torch.randint(len(ids) - CONTEXT, (BATCH, 1))
        windows = ids[starts + torch.arange(CONTEXT + 1)]
        return windows[:, :-1], windows[:, 1:]

    return tokenizer.vocab_size, draw, (held[:, :-1], held[:, 1:]), causal_mask(CONTEXT)


def mirror():
    """Return the same for a task that makes its own data: eight digits, read backwards."""

    def draw(batch=32):
        digits = torch.randint(10, (batch, 8))
        return digits, digits.flip(1)

    return 10, draw, draw(256), None


def run(
    seed, layers, d_model, steps, learning_rate, warmup=None, sonnets_read=None, **options
) -> dict:
    """Train one model; return its losses in training and on what is held out.

    Parameters
    ----------
    seed, layers, d_model, steps, learning_rate
    warmup : int, optional
        Steps in which the learning rate rises from zero; then it stays. If it is given,
        the task is `mirror`, and first weights are Xavier's; else it is the sonnets.
    sonnets_read : int, optional
        How many to train on; all by default.
    **options
        Of `Reader`.
    """
    torch.manual_seed(seed)
    task = sonnets(sonnets_read) if warmup is None else mirror()
    vocab_size, draw, held, mask = task
    options = options | {"xavier": True} if warmup is not None else options
    model = Reader(vocab_size, layers, d_model, **options)
    optimizer = torch.optim.Adam(model.parameters(), learning_rate)
    rise = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: min(1, (step + 1) / max(1, warmup or 0))
    )
    history = []
    for step in range(steps + 1):
        loss = model(*draw(), mask)
        if step % EVERY == 0:
            model.eval()
            with torch.no_grad():
                found = model(*held, mask).item()
            history.append([step, round(loss.item(), 4), round(found, 4)])
            model.train()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        rise.step()
    return {"seed": seed, **options, "warmup": warmup, "history": history}


def stored_at():
    """Return where the runs are kept."""
    return corpora_folder() / "sweeps" / "transformer-block.json"


def main(arguments) -> int:
    """Train all, or one group of them; print their last losses and keep them."""
    parser = argparse.ArgumentParser(prog="lmbook.bench block", description=__doc__)
    parser.add_argument("--only", choices=[*SETTINGS], nargs="+", default=[*SETTINGS])
    groups = parser.parse_args(arguments).only
    one_thread()
    found = json.loads(stored_at().read_text()) if stored_at().is_file() else {}
    for group in groups:
        runs = [(s, seed) for s in SETTINGS[group] for seed in SEEDS]
        found[group] = [run(seed, **BASE | s) for s, seed in tqdm(runs, desc=group)]
    stored_at().write_text(json.dumps(found, indent=None) + "\n")
    for group in groups:
        kinds = {"seed", "history"}
        report(
            [
                {
                    "group": group,
                    "model": ", ".join(f"{k} {v}" for k, v in r.items() if k not in kinds),
                    "loss": r["history"][-1][2],
                }
                for r in found[group]
            ],
            {},
        )
    return 0
