"""Do two processes that share each batch train as one does, and how much faster?

Varied: one process or two, in turn, on three seeds. Rival: each process draws its own
batch, as another seed would. Null: nothing is shared, and losses differ as seeds do.
Statistic: the largest difference of two runs' validation losses, estimated six times;
seconds on the wall, of training alone, which mean something only where nothing else runs.
"""

import os
import subprocess
import sys

from lmcourse import train
from lmcourse.data import load_corpus
from lmcourse.weights import read_record
from studies.harness import count, grid, verdict

CHAPTER = "scaling"
CLAIM = "Two processes that share each batch have the losses of one, within 1e-4 nats"
RIVAL = "another seed: a process that draws a batch of its own"
NULL = "losses differ as those of two seeds do"
SEEDS = [0, 1, 2]
SETTINGS = {"steps": 240, "batch": 24}
SIZES = {"layers": 2, "heads": 4, "d_model": 64}


def plan(small):
    """One process and two from each seed; or one seed, few steps."""
    seeds, steps = (SEEDS[:1], 4) if small else (SEEDS, SETTINGS["steps"])
    return grid(group="runs", seed=seeds, processes=(1, 2), steps=steps)


def run(folder, group, seed, processes, steps):
    """Return the validation losses of a run, and the seconds of its training."""
    load_corpus("sonnets")  # what the processes train on, so that it is in the record
    path = folder / f"{seed}-{processes}.safetensors"
    path.unlink(missing_ok=True)
    fields = SIZES | {"batch": SETTINGS["batch"], "seed": seed, "warmup": 2}
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    command += ["--nproc-per-node", processes, "-m", train.__name__]
    command += ["--preset", "classic", "--out", path]
    command += ["--steps", steps, "--evaluate-every", max(2, steps // 6)]
    for name, value in fields.items():
        command += ["--set", f"{name}={value}"]
    alone = os.environ | {"LMCOURSE_DEVICE": "cpu", "OMP_NUM_THREADS": "1"}
    subprocess.run([*map(str, command)], check=True, capture_output=True, env=alone)
    progress = read_record(path)["progress"]
    losses = [each["val_loss"] for each in progress["history"]]
    found = {"seed": seed, "processes": processes, "losses": losses}
    return found | {"seconds": round(progress["seconds"], 2)}


def apart(one, other):
    """Return the largest difference of two runs' losses."""
    return max(abs(a - b) for a, b in zip(one["losses"], other["losses"], strict=True))


def summary(results):
    """Compare two processes with one, seed by seed, and with the next seed."""
    runs = {(each["seed"], each["processes"]): each for each in results["runs"]}
    gaps = [apart(runs[seed, 1], runs[seed, 2]) for seed, n in runs if n == 2]
    ends = [float(f"{end:.2g}") for end in (min(gaps), max(gaps))]
    return count(results["runs"]) | {"interval": ends, "verdict": verdict(max(gaps) < 1e-4)}
