"""Run a study, or all: ``python -m studies [NAME] [--write]``.

Without ``--write`` a small part of it runs, to see that it works: few and short runs, which
are printed, and nothing is stored. With it all of it runs, and ``data/studies/NAME.json``
and its weights in ``data/checkpoints`` are replaced. Stopped, it goes on where it was:
finished runs are kept below ``runs/studies`` as long as what they rest on is as it was.

``--stale`` lists the stored studies that rest on something that has changed since, and on
what. Run them again; or, if the change cannot have changed a result, say why:
``python -m studies NAME --still-holds "REASON"``. That makes the first run again and
refuses if its outcome is not the stored one; ``--uncompared`` leaves this out, and the
record says so.
"""

import argparse
import importlib
import json
import pkgutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType

import studies
from studies import running

TOOLS = ("proofs", "findings", "nulls")


def every() -> dict[str, ModuleType]:
    """Return name → module of all studies, those that need another's weights last.

    A study is a module with a ``plan``, in a chapter's folder.
    """
    found = []
    for chapter in pkgutil.iter_modules(studies.__path__):
        if not chapter.ispkg:
            continue
        package = importlib.import_module(f"studies.{chapter.name}")
        for module in pkgutil.iter_modules(package.__path__):
            if module.name not in TOOLS:
                found.append(importlib.import_module(f"{package.__name__}.{module.name}"))
    found = [module for module in found if hasattr(module, "plan")]
    found.sort(key=lambda study: (len(getattr(study, "AFTER", ())), running.name_of(study)))
    return {running.name_of(study): study for study in found}


def try_out(study: ModuleType) -> None:
    """Run a small part of a study, and print each run and the sum of them."""
    with tempfile.TemporaryDirectory() as folder:
        done = running.outcomes(study, study.plan(small=True), Path(folder))
    for each in done:
        print(json.dumps(each["setting"]), f"{each['seconds']} s", _brief(each["outcome"]))
    if hasattr(study, "CLAIM"):
        found = running.document(study, done)
        print(
            json.dumps({key: found[key] for key in ("n", "seeds", "interval", "verdict")})
        )
    whole = len(study.plan(small=False))
    print(
        f"a small part ({whole} runs with --write): its verdict says nothing of the claim"
    )


def _brief(outcome: object) -> str:
    """Return the numbers of an outcome that are no lists."""
    rows = outcome if isinstance(outcome, dict) else {}
    return json.dumps({k: v for k, v in rows.items() if isinstance(v, int | float)})


def write(study: ModuleType, processes: int) -> None:
    """Run all of a study that is not done yet, and store it."""
    folder = running.runs_of(study)
    plan = study.plan(small=False)
    done = running.outcomes(study, plan, folder, processes)
    for path in running.store(study, done, folder):
        print(f"wrote {path}")


def list_stale(known: dict[str, ModuleType]) -> int:
    """Print the stored studies that rest on something that has changed; 1 if any does."""
    found = {name: running.stale(study) for name, study in known.items()}
    found = {name: changed for name, changed in found.items() if changed}
    for name, changed in found.items():
        print(f"{name:22}{', '.join(changed)}")
    if not found:
        print("No stored study is stale.")
    return int(bool(found))


def main(arguments: list[str] | None = None) -> int:
    """Return the exit status."""
    known = every()
    parser = argparse.ArgumentParser("python -m studies", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("name", nargs="?", choices=known, help="default: all")
    parser.add_argument("--write", action="store_true", help="run all of it, and store it")
    parser.add_argument("--processes", type=int, default=1, help="how many runs at a time")
    parser.add_argument("--list", action="store_true", help="list the studies")
    parser.add_argument("--stale", action="store_true", help="list what has to run again")
    parser.add_argument("--still-holds", metavar="REASON", help="renew a study's record")
    parser.add_argument(
        "--uncompared", action="store_true", help="without a run made again"
    )
    asked = parser.parse_args(arguments)
    chosen = {asked.name: known[asked.name]} if asked.name else known
    if asked.list:
        for name, study in known.items():
            print(f"{name:22}{study.__doc__.partition(chr(10))[0]}")
        return 0
    if asked.stale:
        return list_stale(chosen)
    if not asked.name:
        return run_each(known, sys.argv[1:] if arguments is None else arguments)
    study = known[asked.name]
    try:
        with running.lock(asked.name):
            if not asked.still_holds:
                if asked.write:
                    write(study, asked.processes)
                else:
                    try_out(study)
            elif hasattr(study, "CLAIM"):
                path = running.renew(study, asked.still_holds, not asked.uncompared)
                print(f"wrote {path}")
    except (BlockingIOError, running.Differs) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def run_each(names: Iterable[str], options: list[str]) -> int:
    """Run studies one after the other, each in a process of its own.

    What one has read and keeps in memory, the next would not be seen to open.

    Returns
    -------
    int
        0 if all went well; else the status of the first that did not, after which no other
        was begun.
    """
    for name in names:
        command = [sys.executable, "-m", "studies", name, *options]
        status = subprocess.run(command, check=False).returncode
        if status:
            return status
    return 0


if __name__ == "__main__":
    sys.exit(main())
