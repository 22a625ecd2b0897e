"""Run a study, or all: ``python -m studies [NAME] [--write]``.

Without ``--write`` a small part of it runs, to see that it works: few and short runs, which
are printed, and nothing is stored. With it all of it runs, and ``data/studies/NAME.json``
and its weights in ``data/checkpoints`` are replaced. Stopped, it goes on where it was:
finished runs are kept below ``_build/studies``, until that is removed or the study's code
changes.
"""

import argparse
import importlib
import json
import pkgutil
import sys
import tempfile
from pathlib import Path

import studies
from studies import harness

TOOLS = ("__main__", "chapter", "findings", "harness", "nulls")


def every() -> dict:
    """Return name → module of all studies, those that need another's weights last.

    A package without a ``plan`` holds a chapter's proofs alone.
    """
    names = [module.name for module in pkgutil.iter_modules(studies.__path__)]
    found = [importlib.import_module(f"studies.{n}") for n in names if n not in TOOLS]
    found = [study for study in found if hasattr(study, "plan")]
    found.sort(key=lambda study: len(getattr(study, "READS", ())))
    return {harness.name_of(study): study for study in found}


def try_out(study) -> None:
    """Run a small part of a study, and print each run and the sum of them."""
    with tempfile.TemporaryDirectory() as folder:
        done = harness.outcomes(study, study.plan(small=True), Path(folder))
    for each in done:
        print(json.dumps(each["setting"]), f"{each['seconds']} s", _brief(each["outcome"]))
    if hasattr(study, "CLAIM"):
        told = harness.document(study, done)
        print(json.dumps({key: told[key] for key in ("n", "seeds", "interval", "verdict")}))
    whole = len(study.plan(small=False))
    print(
        f"a small part ({whole} runs with --write): its verdict says nothing of the claim"
    )


def _brief(outcome) -> str:
    """Return the numbers of an outcome that are no lists."""
    rows = outcome if isinstance(outcome, dict) else {}
    return json.dumps({k: v for k, v in rows.items() if isinstance(v, int | float)})


def write(study, processes: int) -> None:
    """Run all of a study that is not done yet, and store it."""
    folder = harness.work_at(study)
    plan = study.plan(small=False)
    done = harness.outcomes(study, plan, folder, processes)
    for path in harness.store(study, done, folder):
        print(f"wrote {path}")


def main(arguments=None) -> int:
    """Return the exit status."""
    known = every()
    parser = argparse.ArgumentParser("python -m studies", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("name", nargs="?", choices=known, help="default: all")
    parser.add_argument("--write", action="store_true", help="run all of it, and store it")
    parser.add_argument("--processes", type=int, default=1, help="how many runs at a time")
    parser.add_argument("--list", action="store_true", help="list the studies")
    asked = parser.parse_args(arguments)
    if asked.list:
        for name, study in known.items():
            print(f"{name:22}{study.__doc__.partition(chr(10))[0]}")
        return 0
    for name in [asked.name] if asked.name else known:
        try:
            with harness.lock(name):
                if asked.write:
                    write(known[name], asked.processes)
                else:
                    try_out(known[name])
        except BlockingIOError as error:
            print(error, file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
