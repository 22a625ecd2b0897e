"""What ``make test`` leaves out: ``make steady``, every week and before a release.

Parts, of which ``--only PART …`` chooses:

- ``settings``: every notebook compared under nine settings. Seeds of the noise of rounding
  (``jitter``; `make test` has seed 1), numbers of threads, and libraries told to use fewer
  instructions stand for computers that are not at hand.
- ``swap``: the whole book on another BERT and another GPT.
- ``mutants``: small wrong changes of the mechanisms, which the tests must notice.
- ``fuzz``: 2,000 damaged files of each kind.
- ``looks``: every page in both themes and widths, every notebook by the wheel alone; of
  tasks that train every wrong answer, and short runs of the studies that are long.
- ``nulls``: every finding on its page, and in the world where it must fail.
- ``machinery``: the tests of these tools.

Other options are pytest's, for parts that are about pages: with ``-k mini-gpt`` the
settings and looks of one page are run, and nothing else. Whatever becomes of one part, the
others are run; the exit status is 1 if any failed.
"""

import argparse
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
    *({"JITTER": str(seed), "OMP_NUM_THREADS": "1"} for seed in range(2, 6)),
    PLAIN,
    *(PLAIN | MANY | {"OMP_NUM_THREADS": threads} for threads in ("2", "4")),
    PLAIN | {"ATEN_CPU_CAPABILITY": "default"},
    PLAIN | {"ONEDNN_MAX_CPU_ISA": "AVX2", "MKL_CBWR": "COMPATIBLE"},
]
WORKERS = str((os.cpu_count() or 1) + 1)  # one of them often waits for a browser
PYTEST = ("-m", "pytest", "-q", "-n", WORKERS)
SWAP = "tests/machinery/test_swap.py"
NULLS = "tests/pages/test_nulls.py"
LOOKED_AT = ("tests/unit", "tests/pages", "tests/site", f"--deselect={NULLS}")
PARTS = {
    "settings": (*PYTEST, "tests/pages/notebooks"),
    "swap": ("-m", "pytest", "-q", SWAP),
    "mutants": ("tests/machinery/mutants.py",),
    "fuzz": ("tests/machinery/fuzz.py",),
    "looks": (*PYTEST, "-m", "steady", *LOOKED_AT),
    "nulls": (*PYTEST, NULLS),
    "machinery": (*PYTEST, "tests/machinery", f"--deselect={SWAP}"),
}
OF_PAGES = ("settings", "looks", "nulls")
NO_TESTS = 5  # pytest's status: options may choose none of a part's


def succeeds(part: str, options: list[str], setting: dict[str, str]) -> bool:
    """Run a part in a setting, say how it went, return whether well.

    Of what it printed the last line is shown, and all of it only if it failed.
    """
    named = " ".join(f"{name}={value}" for name, value in setting.items())
    start = time.monotonic()
    done = subprocess.run(
        [sys.executable, *PARTS[part], *options],
        cwd=ROOT, env=os.environ | setting, capture_output=True, text=True,
    )  # fmt: skip
    well = done.returncode in ((0, NO_TESTS) if options else (0,))
    last_line = done.stdout.strip().rpartition("\n")[2]
    verdict = f"{'passed' if well else 'failed'} {time.monotonic() - start:6.0f} s"
    print(f"{verdict}  {part:9} {named}: {last_line}", flush=True)
    if not well:
        print(done.stdout + done.stderr, flush=True)
    return well


def main(arguments: list[str] | None = None) -> int:
    """Run all parts, or those asked for; return 0 if all passed, else 1."""
    how = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=how)
    parser.add_argument("--only", nargs="+", choices=PARTS, metavar="PART")
    known, options = parser.parse_known_args(arguments)
    passed = []
    parts = known.only or (OF_PAGES if options else PARTS)
    for part in parts:
        settings = SETTINGS if part == "settings" else [{"OMP_NUM_THREADS": "1"}]
        for setting in settings:
            passed.append(succeeds(part, options if part in OF_PAGES else [], setting))
    print(f"{sum(passed)} of {len(passed)} runs passed")
    return int(not all(passed))


if __name__ == "__main__":
    sys.exit(main())
