"""Do two processes that share each batch train as one does, and how much faster?

What varies: one process or two, in turn, on three seeds.

Rivals: each process draws its own batch, as another seed would.

Null: nothing is shared, and losses differ as those of two seeds do.

Statistic: the largest difference of two runs' validation losses, estimated six times, in
nats. Also seconds of training on the wall clock, which mean something only where nothing
else runs.
"""

import os
import subprocess
import sys

from lmcourse import train
from lmcourse.data import load_corpus
from lmcourse.weights import read_record
from studies.harness import count, grid, verdict

CHAPTER = "scaling"
CLAIM = "Two processes that share each batch reach the losses of one, within 0.0001 nats"
RIVAL = "each process draws batches of its own, as another seed would"
NULL = "the losses differ as those of two seeds do"
SEEDS = [0, 1, 2]
SETTINGS = {"steps": 240, "batch": 24}
SIZES = {"layers": 2, "heads": 4, "d_model": 64}


def plan(small):
    """Return the settings of all runs: one process and two from each seed.

    Parameters
    ----------
    small : bool
        Whether to return those of one seed, with four steps.

    Returns
    -------
    list of dict
        The arguments of each run: ``group``, which is "runs"; ``seed``; ``processes``, one
        or two that share each batch; ``steps`` of training.
    """
    seeds = SEEDS[:1] if small else SEEDS
    steps = 4 if small else SETTINGS["steps"]
    return grid(group="runs", seed=seeds, processes=(1, 2), steps=steps)


def run(folder, group, seed, processes, steps):
    """Train one model on the Sonnets in one process or in two.

    It is a GPT of two blocks and width 64, trained by ``lmcourse.train`` on the CPU, each
    process on one thread, with 24 windows a batch; `torch.distributed.run` starts them.

    Parameters
    ----------
    folder : Path
        Where the checkpoint is saved, as ``SEED-PROCESSES.safetensors``; an old one is
        deleted first.
    group : {"runs"}
        The only kind of run; unused.
    seed : int
        Of the first weights, and of all that is drawn.
    processes : {1, 2}
        How many share each batch.
    steps : int
        How many steps of training.

    Returns
    -------
    dict
        The settings ``seed``, ``processes``; ``losses``, a list of the validation losses
        while it trained, in nats a character; ``seconds`` of the training, on the clock.

    Raises
    ------
    subprocess.CalledProcessError
        If the training fails.
    """
    load_corpus("sonnets")  # the processes train on it, so it belongs into the record
    path = folder / f"{seed}-{processes}.safetensors"
    path.unlink(missing_ok=True)
    fields = SIZES | {"batch": SETTINGS["batch"], "seed": seed, "warmup": 2}
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    command += ["--nproc-per-node", processes, "-m", train.__name__]
    command += ["--preset", "classic", "--out", path]
    command += ["--steps", steps, "--evaluate-every", max(2, steps // 6)]
    for name, value in fields.items():
        command += ["--set", f"{name}={value}"]
    environment = os.environ | {"LMCOURSE_DEVICE": "cpu", "OMP_NUM_THREADS": "1"}
    subprocess.run([*map(str, command)], check=True, capture_output=True, env=environment)
    progress = read_record(path)["progress"]
    losses = [each["val_loss"] for each in progress["history"]]
    row = {"seed": seed, "processes": processes, "losses": losses}
    return row | {"seconds": round(progress["seconds"], 2)}


def largest_difference(one, other):
    """Return the largest difference of the ``losses`` of two trainings, a float.

    ``one``, ``other`` : dicts; their ``losses`` are lists in nats a character, estimated at
    the same steps.
    """
    return max(abs(a - b) for a, b in zip(one["losses"], other["losses"], strict=True))


def summary(results):
    """Compare two processes with one, seed by seed.

    Parameters
    ----------
    results : dict of str to list of dict
        Group → outcomes of its runs. Those of "runs": ``seed``; ``processes``, 1 or 2;
        ``losses``, list of validation losses at the same steps, in nats a character.

    Returns
    -------
    dict
        ``n``, the number of outcomes, and their ``seeds``; ``interval``, [lowest, highest]
        over seeds of the largest difference of the losses, in nats; ``verdict``, "holds" or
        "not so": whether all are below 0.0001 nats.
    """
    runs = {(run["seed"], run["processes"]): run for run in results["runs"]}
    gaps = [
        largest_difference(runs[seed, 1], runs[seed, 2])
        for seed, processes in runs
        if processes == 2
    ]
    interval = [float(f"{gap:.2g}") for gap in (min(gaps), max(gaps))]
    holds = max(gaps) < 1e-4
    return count(results["runs"]) | {"interval": interval, "verdict": verdict(holds)}
