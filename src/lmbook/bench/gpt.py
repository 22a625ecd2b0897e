"""Time to a validation loss: a plain GPT-2, our classic recipe and our fast one.

(a) A ``transformers`` GPT-2 of the classic size in a plain PyTorch loop with the textbook
recipe, (b) the same recipe by `lmcourse.gpt.trainer`, (c) the fast preset. Each in a
process of its own, for its own peak of memory; they train by turns, so that whatever
else the machine does slows all three.
"""

import argparse
import multiprocessing
import sys
import time

import torch
from transformers import GPT2Config, GPT2LMHeadModel
from transformers.utils import logging

from lmbook.bench import report
from lmcourse.data import load_corpus
from lmcourse.gpt.optimizers import rate
from lmcourse.gpt.recipes import IDEAS, recipe
from lmcourse.gpt.trainer import cross_entropy, estimate, split, windows
from lmcourse.measure import forget_peak, peak_mib
from lmcourse.tokenization import CharTokenizer
from lmcourse.train import prepare

__all__ = ["Ours", "Plain", "crossing", "main"]

TURN = 1.5  # seconds of training before the next contender's turn
TARGET = 1.886  # nats a character: what the textbook recipe reaches on tiny Shakespeare


class Logits(torch.nn.Module):
    """A ``transformers`` model that returns its logits alone."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, ids):
        return self.model(ids).logits


class Plain:
    """A GPT-2 of ``transformers``, AdamW and a loop as many write it."""

    def __init__(self, text, every):
        logging.set_verbosity_error()
        tokenizer = CharTokenizer(text)
        model, self.config = recipe("classic", tokenizer.vocab_size, evaluate_every=every)
        self.context = model.context
        self.parts = split(torch.tensor(tokenizer.encode(text)), model.context)
        torch.manual_seed(0)
        theirs = GPT2Config(
            vocab_size=model.vocab_size,
            n_positions=model.context,
            n_embd=model.d_model,
            n_layer=model.layers,
            n_head=model.heads,
            resid_pdrop=0.0,
            embd_pdrop=0.0,
            attn_pdrop=0.0,
            use_cache=False,
        )
        self.model = Logits(GPT2LMHeadModel(theirs))
        self.optimizer = torch.optim.AdamW(
            self.model.parameters(), lr=1e-3, betas=(0.9, 0.99), weight_decay=0.1
        )
        self.steps_done, self.seconds, self.history = 0, 0.0, []

    @property
    def parameters(self):
        return sum(weight.numel() for weight in self.model.parameters())

    def step(self):
        start = time.perf_counter()
        for group in self.optimizer.param_groups:
            group["lr"] = self.config.learning_rate * rate(self.steps_done, self.config)
        starts = torch.randint(len(self.parts[0]) - self.context, (self.config.batch,))
        inputs, targets = windows(self.parts[0], starts, self.context)
        loss = cross_entropy(self.model(inputs), targets)
        self.optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.config.clip)
        self.optimizer.step()
        self.seconds += time.perf_counter() - start
        self.steps_done += 1

    def evaluate(self):
        loss = estimate(self.model, self.parts[1], self.context, self.config.windows)
        entry = {"step": self.steps_done, "val_loss": loss, "seconds": self.seconds}
        self.history.append(entry)


class Ours:
    """A preset of `lmcourse.gpt.recipes`, trained by `lmcourse.gpt.trainer`."""

    def __init__(self, text, preset, every, without=()):
        _, self.trainer = prepare(text, preset, without, "cpu", evaluate_every=every)
        self.config, self.history = self.trainer.config, self.trainer.history
        self.parameters = self.trainer.bare.parameters_count
        self.context = self.trainer.context

    @property
    def steps_done(self):
        return self.trainer.progress.step

    @property
    def seconds(self):
        return self.trainer.progress.seconds

    def step(self):
        self.trainer.step()

    def evaluate(self):
        self.trainer.evaluate()


def _arrived(contender, target):
    """Say whether there is nothing left to do."""
    at_end = contender.steps_done >= contender.config.steps
    return at_end or (target is not None and contender.history[-1]["val_loss"] <= target)


def _child(connection, threads, target, way, *arguments):
    """Train by turns, one for each message; between two, an estimate at least."""
    torch.set_num_threads(threads)
    contender = way(*arguments)
    contender.evaluate()
    forget_peak()
    connection.send("ready")
    while connection.recv():
        until = contender.seconds + TURN
        while contender.seconds < until and not _arrived(contender, target):
            for _ in range(contender.config.evaluate_every):
                if contender.steps_done < contender.config.steps:
                    contender.step()
            contender.evaluate()
        connection.send((_arrived(contender, target), contender.history))
    tokens = contender.steps_done * contender.config.batch * contender.context
    connection.send(
        {
            "parameters": contender.parameters,
            "ms_a_step": 1e3 * contender.seconds / contender.steps_done,
            "tokens_a_second": tokens / contender.seconds,
            "peak_mib": peak_mib(),
        }
    )


def crossing(history, target):
    """Return the first (step, seconds) with a loss at most the target, or None."""
    for entry in history:
        if entry["val_loss"] <= target:
            return entry["step"], entry["seconds"]
    return None


def _receive(name, connection):
    """Wait for what a process says."""
    try:
        return connection.recv()
    except (EOFError, OSError):
        raise RuntimeError(f"the process that trains {name!r} died") from None


def compete(ways, threads, target):
    """Train every contender by turns until it is done or has reached the target.

    Parameters
    ----------
    ways : dict of str to tuple
        Name → class and arguments, as `Plain` or `Ours`.
    threads : int
    target : float or None

    Returns
    -------
    rows, histories : dict
        What was measured of each, and its estimates.

    Raises
    ------
    RuntimeError
        If a process dies.
    """
    context = multiprocessing.get_context("spawn")
    running = {}
    for name, way in ways.items():
        here, there = context.Pipe()
        arguments = (there, threads, target, *way)
        context.Process(target=_child, args=arguments, daemon=True).start()
        there.close()
        running[name] = here
    for name, connection in running.items():
        _receive(name, connection)  # ready
    histories, rows = {}, {}
    while running:
        for name, connection in list(running.items()):
            connection.send(True)
            done, histories[name] = _receive(name, connection)
            if done:
                connection.send(False)
                rows[name] = _receive(name, connection)
                del running[name]
    return rows, histories


def arrivals(histories, measured, target):
    """Return a row for each way: when it reached the target, or how far it came."""
    rows = []
    for name, history in histories.items():
        last = history[-1]
        found = crossing(history, target)
        step, seconds = found or (last["step"], last["seconds"])
        row = {"way": name, "reached": bool(found), "steps": step}
        row |= {"seconds": seconds, "val_loss": last["val_loss"]}
        rows.append(row | measured[name])
    return rows


def main(arguments=None):
    """Run the comparison; return the exit status."""
    parser = argparse.ArgumentParser("python -m lmbook.bench gpt", description=__doc__)
    parser.add_argument("--corpus", default="sonnets")
    parser.add_argument("--target", type=float, help="default: 1.886; the sonnets: plain's")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--without", choices=IDEAS, action="append", default=[])
    options = parser.parse_args(arguments)
    try:
        text = load_corpus(options.corpus)
    except (OSError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    target = options.target or (None if options.corpus in ("sonnets", "poems") else TARGET)
    ways = {
        "plain": (Plain, text, 50),
        "classic": (Ours, text, "classic", 50),
        "fast": (Ours, text, "fast", 10, tuple(options.without)),
    }
    measured, histories = compete(ways, options.threads, target)
    if target is None:  # what plain reaches at its best
        target = min(entry["val_loss"] for entry in histories["plain"])
    rows = arrivals(histories, measured, target)
    seconds = {row["way"]: row["seconds"] for row in rows}
    summary = {
        "benchmark": "gpt",
        "corpus": options.corpus,
        "target": target,
        "threads": options.threads,
        # Who does not arrive has its whole time counted: the ratio is then a lower bound.
        "plain_arrived": rows[0]["reached"],
        "fast_times_sooner": seconds["plain"] / seconds["fast"]
        if rows[2]["reached"]
        else None,
        "classic_step_ratio": rows[0]["ms_a_step"] / rows[1]["ms_a_step"],
    }
    report(rows, summary)
    return 0
