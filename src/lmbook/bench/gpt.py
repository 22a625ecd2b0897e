"""Time to a validation loss: a plain GPT-2, our classic recipe and our fast one.

(a) A ``transformers`` GPT-2 of the classic size in a plain PyTorch loop with the textbook
recipe, (b) the same recipe by `lmcourse.gpt.trainer`, (c) the fast preset. Each in a
process of its own, for its own peak of memory; they train by turns, so that whatever
else the machine does slows all three. Before that, our trainer alone and beside a process
that keeps a core busy (``--busy``: only that).
"""

import argparse
import multiprocessing
import subprocess
import sys
import time

import torch
from transformers.utils import logging

from lmbook.bench import report
from lmcourse.data import load_corpus
from lmcourse.gpt.convert import to_transformers
from lmcourse.gpt.optimizers import schedule
from lmcourse.gpt.recipes import IDEAS
from lmcourse.gpt.trainer import Trainer, cross_entropy, cut_windows
from lmcourse.measure import peak_mib, reset_peak
from lmcourse.train import new_run

__all__ = ["beside", "crossing", "main", "ours", "plain"]

TURN = 1.5  # seconds of training before the next contender's turn
TARGET = 1.886  # nats a character: what the textbook recipe reaches on tiny Shakespeare
BUSY = "while True: pass"


class Theirs(torch.nn.Module):
    """A GPT of ours as a ``transformers`` model that returns its logits alone."""

    def __init__(self, model):
        super().__init__()
        self.config, self.model = model.config, to_transformers(model)
        self.model.config.use_cache = False

    @property
    def parameters_count(self):
        return self.model.num_parameters()

    def forward(self, ids):
        return self.model(ids).logits


class Plain(Trainer):
    """AdamW and a step as many write it."""

    def step(self):
        start = time.perf_counter()
        self.model.train()
        (optimizer,) = self.optimizers
        share = schedule(self.progress.step, self.config)
        for group in optimizer.param_groups:
            group["lr"] = self.config.learning_rate * share
        starts = torch.randint(len(self.training) - self.context, (self.config.batch,))
        inputs, targets = cut_windows(self.training, starts, self.context)
        loss = cross_entropy(self.model(inputs), targets)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.config.clip)
        optimizer.step()
        self.progress.seconds += time.perf_counter() - start
        self.progress.step += 1


def ours(text, preset, every, without=()):
    """Return our trainer with a preset of `lmcourse.gpt.recipes`."""
    return new_run(text, preset, without, "cpu", evaluate_every=every)[1]


def plain(text, every):
    """Return the trainer of a GPT-2 of ``transformers``."""
    logging.set_verbosity_error()
    classic = ours(text, "classic", every)
    model, parts = Theirs(classic.bare), (classic.training, classic.validation)
    trainer = Plain(model, *parts, classic.config, "cpu")
    adamw = torch.optim.AdamW(model.parameters(), betas=(0.9, 0.99), weight_decay=0.1)
    trainer.optimizers = [adamw]
    return trainer


def _arrived(trainer, target):
    """Say whether there is nothing left to do."""
    at_end = trainer.progress.step >= trainer.config.steps
    return at_end or (target is not None and trainer.history[-1]["val_loss"] <= target)


def _child(connection, threads, target, way, *arguments):
    """Train by turns, one for each message; between two, an estimate at least."""
    torch.set_num_threads(threads)
    trainer = way(*arguments)
    trainer.evaluate()
    reset_peak()
    connection.send("ready")
    progress, config = trainer.progress, trainer.config
    while connection.recv():
        until = progress.seconds + TURN
        while progress.seconds < until and not _arrived(trainer, target):
            for _ in range(min(config.evaluate_every, config.steps - progress.step)):
                trainer.step()
            trainer.evaluate()
        connection.send((_arrived(trainer, target), trainer.history))
    connection.send(
        {
            "parameters": trainer.bare.parameters_count,
            "ms_a_step": 1e3 * progress.seconds / progress.step,
            "tokens_a_second": trainer.tokens_per_second,
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
        Name → function and arguments, as `plain` or `ours`.
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


def _speed(trainer, seconds):
    """Train for so long, one step at least; return the tokens a second."""
    trainer.progress.step, trainer.progress.seconds = 0, 0.0
    while trainer.progress.seconds < seconds:
        trainer.step()
    return trainer.tokens_per_second


def beside(text, threads, seconds=3.0):
    """Measure our trainer alone and beside a process that never rests: a row."""
    torch.set_num_threads(threads)
    trainer = ours(text, "fast", 100)
    trainer.step()  # the first is slow
    alone = _speed(trainer, seconds)
    other = subprocess.Popen([sys.executable, "-c", BUSY])
    try:
        busy = _speed(trainer, seconds)
    finally:
        other.kill()
        other.wait()
    speeds = {"tokens_a_second": alone, "beside_busy": busy}
    return {"threads": threads, **speeds, "times_slower": alone / busy}


def _options(arguments):
    """Read the command line."""
    parser = argparse.ArgumentParser("python -m lmbook.bench gpt", description=__doc__)
    parser.add_argument("--corpus", default="sonnets")
    parser.add_argument("--target", type=float, help="default: 1.886; the sonnets: plain's")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--without", choices=IDEAS, action="append", default=[])
    parser.add_argument("--busy", action="store_true", help="only beside a busy process")
    return parser.parse_args(arguments)


def _race(options, text):
    """Let the three compete, and report when each reached the target."""
    target = options.target or (None if options.corpus in ("sonnets", "poems") else TARGET)
    ways = {
        "plain": (plain, text, 50),
        "classic": (ours, text, "classic", 50),
        "fast": (ours, text, "fast", 10, tuple(options.without)),
    }
    measured, histories = compete(ways, options.threads, target)
    if target is None:  # what plain reaches at its best
        target = min(entry["val_loss"] for entry in histories["plain"])
    rows = arrivals(histories, measured, target)
    sooner = rows[0]["seconds"] / rows[2]["seconds"]
    summary = {"benchmark": "gpt", "corpus": options.corpus, "target": target}
    summary |= {
        "threads": options.threads,
        # Who does not arrive has its whole time counted: the ratio is then a lower bound.
        "plain_arrived": rows[0]["reached"],
        "fast_times_sooner": sooner if rows[2]["reached"] else None,
        "classic_step_ratio": rows[0]["ms_a_step"] / rows[1]["ms_a_step"],
    }
    report(rows, summary)


def main(arguments=None):
    """Run the comparisons; return the exit status."""
    options = _options(arguments)
    try:
        text = load_corpus(options.corpus)
    except (OSError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    rows = [beside(text, threads) for threads in sorted({1, 2, options.threads})]
    slower = {row["threads"]: row["times_slower"] for row in rows}
    report(rows, {"benchmark": "gpt beside a busy process", "times_slower": slower})
    if not options.busy:
        _race(options, text)
    return 0
