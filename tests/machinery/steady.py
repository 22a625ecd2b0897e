"""Compare the notebooks under many conditions: ``python tests/machinery/steady.py``.

Seeds of the noise of rounding (``jitter``), numbers of threads, and libraries told to use
fewer instructions stand for computers that are not at hand. Each setting is run, whatever
became of the others; the exit status is 1 if any failed. Options are pytest's: with
``-k mini-gpt`` one chapter is run.
"""

import os
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parents[2]
PLAIN = {"JITTER": "off", "OMP_NUM_THREADS": "1"}
# As many threads as asked for, also where there are fewer cores; they wait asleep.
MANY = {"MKL_DYNAMIC": "FALSE", "OMP_WAIT_POLICY": "PASSIVE"}
SETTINGS = [
    *({"JITTER": str(seed), "OMP_NUM_THREADS": "1"} for seed in range(1, 6)),
    PLAIN,
    *(PLAIN | MANY | {"OMP_NUM_THREADS": threads} for threads in ("2", "4")),
    PLAIN | {"ATEN_CPU_CAPABILITY": "default"},
    PLAIN | {"ONEDNN_MAX_CPU_ISA": "AVX2", "MKL_CBWR": "COMPATIBLE"},
]
PYTEST = [sys.executable, "-m", "pytest", "-q", "-n", "2", "--dist", "loadscope"]


def run(setting: dict[str, str], command: list[str]) -> bool:
    """Run a command in a setting of the environment, say how it went, return whether well.

    What the command printed is shown only if it failed.
    """
    named = " ".join(f"{name}={value}" for name, value in setting.items())
    start = time.monotonic()
    done = subprocess.run(
        command, cwd=ROOT, env=os.environ | setting, capture_output=True, text=True
    )
    verdict = "failed" if done.returncode else "passed"
    print(f"{verdict}  {time.monotonic() - start:5.0f} s  {named}", flush=True)
    if done.returncode:
        print(done.stdout + done.stderr, flush=True)
    return not done.returncode


def main(settings: list[dict[str, str]], command: list[str]) -> int:
    """Run a command in every setting; return 0 if it passed in all, else 1."""
    failed = len(settings) - sum([run(setting, command) for setting in settings])
    print(f"{failed} of {len(settings)} settings failed" if failed else "steady")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main(SETTINGS, [*PYTEST, "tests/pages/notebooks", *sys.argv[1:]]))
