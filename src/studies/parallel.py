"""Do two processes that share each batch train as one does, and how much faster at most?

Varied: one process or two, on three seeds; and the windows of a step. Rival: each process
draws its own batch, as another seed would. Null: nothing is shared, and losses differ as
seeds do. Statistic: the largest difference of two runs' validation losses, estimated every
ten steps; processor seconds a step, the median of many, which what else the machine does
changes little. Seconds on the wall are not here: they need a machine of one's own.
"""

import os
import statistics
import subprocess
import sys
import time

from lmcourse.data import load_corpus
from lmcourse.train import new_run
from lmcourse.weights import read_record
from studies.harness import count, verdict

CHAPTER = "scaling"
CLAIM = "Two processes that share each batch have the losses of one, within 1e-4 nats"
RIVAL = "another seed: a process that draws a batch of its own"
NULL = "losses differ as those of two seeds do"
SEEDS, BATCHES = [0, 1, 2], [32, 16, 8, 4]
SETTINGS = {"steps": 60, "batch": 24, "batches": BATCHES, "timed": 25}
SIZES = {"layers": 2, "heads": 4, "d_model": 64}


def plan(small):
    """One process and two from each seed, then the batches; or one seed, two steps."""
    seeds, steps = (SEEDS[:1], 4) if small else (SEEDS, SETTINGS["steps"])
    runs = [{"seed": s, "processes": n, "steps": steps} for s in seeds for n in (1, 2)]
    timed = {
        "group": "work",
        "batches": BATCHES,
        "timed": 2 if small else SETTINGS["timed"],
    }
    return [{"group": "runs"} | each for each in runs] + [timed]


def run(folder, group, **setting):
    """Train in processes of their own, or time steps."""
    return work(**setting) if group == "work" else trained(folder, **setting)


def trained(folder, seed, processes, steps):
    """Return the validation losses of a run."""
    path = folder / f"{seed}-{processes}.safetensors"
    path.unlink(missing_ok=True)
    fields = SIZES | {"batch": SETTINGS["batch"], "seed": seed, "warmup": 2}
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    command += [
        "--nproc-per-node",
        processes,
        "-m",
        "lmcourse.train",
        "--preset",
        "classic",
    ]
    command += ["--out", path, "--steps", steps, "--evaluate-every", max(2, steps // 6)]
    for name, value in fields.items():
        command += ["--set", f"{name}={value}"]
    alone = os.environ | {"LMCOURSE_DEVICE": "cpu", "OMP_NUM_THREADS": "1"}
    subprocess.run([*map(str, command)], check=True, capture_output=True, env=alone)
    losses = [each["val_loss"] for each in read_record(path)["progress"]["history"]]
    return {"seed": seed, "processes": processes, "losses": losses}


def work(batches, timed):
    """Return the processor seconds of a step, by the windows in it."""
    text = load_corpus("sonnets")
    how = SIZES | {"device": "cpu", "steps": 10**4}
    trainers = {n: new_run(text, "classic", batch=n, **how)[1] for n in batches}
    seconds = {n: [] for n in batches}
    for turn in range(timed + 2):
        for n, trainer in trainers.items():
            start = time.process_time()
            trainer.step()
            seconds[n] += [time.process_time() - start] * (turn > 1)
    return [{"batch": n, "work": statistics.median(each)} for n, each in seconds.items()]


def apart(one, other):
    """Return the largest difference of two runs' losses."""
    return max(abs(a - b) for a, b in zip(one["losses"], other["losses"], strict=True))


def summary(results):
    """Compare two processes with one, seed by seed, and with the next seed."""
    runs = {(each["seed"], each["processes"]): each for each in results["runs"]}
    gaps = [apart(runs[seed, 1], runs[seed, 2]) for seed, n in runs if n == 2]
    ends = [float(f"{end:.2g}") for end in (min(gaps), max(gaps))]
    return count(results["runs"]) | {"interval": ends, "verdict": verdict(max(gaps) < 1e-4)}
