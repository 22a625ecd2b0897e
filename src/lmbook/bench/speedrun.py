"""The speedrun: how soon does a small Transformer know Shakespeare's letters this well?

``speedrun CORPUS`` runs nanoGPT's recipe for a CPU, the same cut short, each idea of
`studies.scaling.speedrun` alone on a small model, added up, and left out of the whole, and
prints medians of three seeds; ``--only whole`` and ``--seeds 1`` do less. ``speedrun --with
mine.py`` judges an entry: a file that defines

    def train(training, tuning, vocab_size, seed):
        ...
        return model

The rules. ``training`` and ``tuning`` are 1-D integer tensors of characters, by number: the
first nine tenths of the text, and the first half of the last. ``model`` is a
``torch.nn.Module`` of at most 800,000 parameters and buffers; it maps ids (batch, 64) to
logits (batch, 64, vocab_size), and no logit depends on a later token. What it knows it
learns between the call and the return, from what it is given, in this process, and holds in
those numbers. The clock runs all that time: compiling, and making tables, count. The judge
alone sees the second half of the last tenth: the mean loss on 400 fixed windows of it, the
median of three seeds, must be at most 1.909 nats. It prints how many times sooner that was
than nanoGPT's recipe on the same machine, on the number of threads that is fastest for that
recipe; all else has the whole's fastest number, unless an entry chooses. A table with a row
for pairs of characters or more is told, and its record stands apart.
"""

import argparse
import os
import runpy
import sys
import time
from statistics import median

import torch

from lmbook.bench import report
from lmcourse.arguments import path_argument
from studies.scaling.speedrun import SETTINGS, WAYS, Refused, entry_of, judge

TRIAL_STEPS = 100  # steps in which numbers of threads are compared


def load_entry(path):
    """Run a Python file, and return the function ``train`` that it defines.

    Parameters
    ----------
    path : Path

    Returns
    -------
    callable
        ``train(training, tuning, vocab_size, seed)``, which returns a model.

    Raises
    ------
    Refused
        If the file cannot be run, or has no such function.
    """
    try:
        entry = runpy.run_path(str(path)).get("train")
    except Exception as error:
        raise Refused(f"{path} cannot be run: {type(error).__name__}: {error}") from error
    if not callable(entry):
        raise Refused(f"{path} defines no train(training, tuning, vocab_size, seed)")
    return entry


def fastest_threads(way, corpus):
    """Return the number of PyTorch's threads on which a way to train is the fastest.

    By the clock. It tries 1, 2, 4, … up to the number of processors; PyTorch is left with
    the last of them.

    Parameters
    ----------
    way : str
        A recipe of `studies.scaling.speedrun.WAYS`, such as "reference" (nanoGPT's), with
        which a small Transformer is trained for `TRIAL_STEPS` steps.
    corpus : str
        The name of a corpus, or a path.
    """
    counts = [2**i for i in range((os.cpu_count() or 1).bit_length())]
    seconds = {}
    for count in counts:
        torch.set_num_threads(count)
        seconds[count] = judge(entry_of(way, TRIAL_STEPS)[0], corpus, seed=0)["wall"]
    return min(seconds, key=seconds.get)


def run_entries(entries, corpus, seeds, threads):
    """Run each entry with each seed; entries take turns, so that all see the same load.

    After each run a line with its outcome goes to the standard error.

    Parameters
    ----------
    entries : dict of str to (callable, int or None)
        Name of an entry → its function ``train(training, tuning, vocab_size, seed)``, which
        returns a model, and how many tokens it reads while it trains, if that is known. The
        names are those of recipes in `studies.scaling.speedrun.WAYS`, among them
        "reference", nanoGPT's, and perhaps the path of a reader's entry, which alone must
        keep the limit on parameters.
    corpus : str
        The name of a corpus, or a path.
    seeds : int
        How many, from 0.
    threads : dict of str to int
        How many threads of PyTorch: for the entry "reference", and, as "whole", for all
        others.

    Returns
    -------
    dict of str to list of dict
        Name of an entry → its outcomes, one a seed: ``parameters``, how many, buffers
        counted; ``loss`` on the test text and ``tuning``, that on the tuning text, in nats
        a character; ``wall``, seconds by the clock, and ``seconds``, seconds of the
        processor, that the training took; ``tokens`` that it read, or None.
    """
    outcomes = {name: [] for name in entries}
    for seed in range(seeds):
        for name, (entry, tokens) in entries.items():
            torch.set_num_threads(threads["reference" if name == "reference" else "whole"])
            most = SETTINGS["parameters"] if name not in WAYS else float("inf")
            outcome = judge(entry, corpus, seed, most)
            outcomes[name].append(outcome | {"tokens": tokens})
            print(f"{time.strftime('%X')} {name}, seed {seed}: {outcome}", file=sys.stderr)
    return outcomes


def medians(by_entry):
    """Return a row of medians for each entry, and how many times sooner it was.

    Sooner than "reference", nanoGPT's recipe, with the same seed.

    Parameters
    ----------
    by_entry : dict of str to list of dict
        Name of an entry, "reference" among them → an outcome for each seed: ``wall``,
        seconds by the clock, and ``seconds``, seconds of the processor, that the training
        took; ``tokens`` that it read, perhaps None; ``parameters``, how many, buffers
        counted; ``loss`` on the test text, in nats a character.

    Returns
    -------
    list of dict
        Of each entry ``way``, its name; ``wall``, ``seconds``, ``tokens``, ``parameters``
        and ``loss``, the medians over seeds, of which ``tokens`` is None if it is not known
        for every seed; ``times sooner, wall`` and ``times sooner, seconds``, the medians of
        how many times as long "reference" took; ``reached``, whether the median loss is the
        target or below.
    """
    rows = []
    for name, outcomes in by_entry.items():
        row = {"way": name}
        for key in ("wall", "seconds", "tokens", "parameters", "loss"):
            values = [outcome[key] for outcome in outcomes]
            row[key] = None if None in values else median(values)
        for key in ("wall", "seconds"):
            pairs = zip(by_entry["reference"], outcomes, strict=True)
            row[f"times sooner, {key}"] = median(
                reference[key] / outcome[key] for reference, outcome in pairs
            )
        rows.append(row | {"reached": row["loss"] <= SETTINGS["target"]})
    return rows


def main(*arguments):
    """Time trainings of a small Transformer; print a table and one line of JSON.

    The table has a row of medians for nanoGPT's recipe and for each other way, or entry,
    that is asked for (`medians`).

    Parameters
    ----------
    *arguments : str
        What stands behind ``python -m lmbook.bench speedrun``: the name or path of a
        corpus, ``--with FILE`` (an entry to be judged), ``--seeds N``, ``--only WAY``.

    Returns
    -------
    int
        The exit status: 1 if the entry, or the corpus, is refused.
    """
    parser = argparse.ArgumentParser("python -m lmbook.bench speedrun", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("corpus", nargs="?", default=SETTINGS["corpus"])
    parser.add_argument(
        "--with", dest="entry", type=path_argument, metavar="FILE", help="judge an entry"
    )
    parser.add_argument("--seeds", type=int, default=3, help="how many (default 3)")
    parser.add_argument("--only", choices=WAYS, action="append", help="some of the ways")
    asked = parser.parse_args(arguments)
    names = asked.only or (["record"] if asked.entry else WAYS)
    try:
        names = dict.fromkeys(["reference", *names])
        entries = {name: entry_of(name) for name in names}
        if asked.entry:
            entries[str(asked.entry)] = load_entry(asked.entry), None
        threads = {
            way: fastest_threads(way, asked.corpus) for way in ("reference", "whole")
        }
        rows = medians(run_entries(entries, asked.corpus, asked.seeds, threads))
    except (OSError, ValueError) as error:
        print(f"refused: {error}", file=sys.stderr)
        return 1
    last = {k: v for k, v in rows[-1].items() if v is not None}
    report(rows, {"benchmark": "speedrun", "threads": threads, **last})
    return 0
