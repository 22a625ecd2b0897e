"""Run a study, or all: ``python -m studies [NAME] [--write]``.

Without ``--write`` a few short runs are made and printed, to see that the study works;
nothing is stored. With ``--write`` all runs are made, and ``data/studies/NAME.json``
and the study's weights in ``data/checkpoints`` are replaced. A study that was stopped
goes on where it was: finished runs are kept in ``runs/studies`` until something changes
that they rest on.

``--stale`` lists the stored studies and weights that rest on something that has changed
since, and on what. Run them again; or, if the change cannot have changed a result, say why:
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


def load_studies() -> dict[str, ModuleType]:
    """Import all studies: the modules in the packages of `studies` that have a ``plan``.

    Modules of the names in `TOOLS` (proofs and what helps them) are not imported.

    Returns
    -------
    dict of str to module
        By name, such as "beyond-text": the module's own name, with hyphens. First those
        that need no weights of another study, then those that need one, two and so on (as
        many as their ``AFTER`` names); each time by the alphabet.
    """
    modules = []
    for chapter in pkgutil.iter_modules(studies.__path__):
        if not chapter.ispkg:
            continue
        package = importlib.import_module(f"studies.{chapter.name}")
        for module in pkgutil.iter_modules(package.__path__):
            if module.name not in TOOLS:
                modules.append(importlib.import_module(f"{package.__name__}.{module.name}"))
    with_plan = [module for module in modules if hasattr(module, "plan")]
    with_plan.sort(
        key=lambda study: (len(getattr(study, "AFTER", ())), running.name_of(study))
    )
    return {running.name_of(study): study for study in with_plan}


def try_out(study: ModuleType) -> None:
    """Make the few short runs of a study's small plan; print each, and their summary.

    Of each run its setting, seconds and the single numbers of its outcome are printed. What
    the runs write lies in a temporary folder, which is removed.

    Parameters
    ----------
    study : module
        Its ``plan(small)`` returns a list of settings, a dict for each run; ``run`` makes
        one run. A study with a ``CLAIM`` also has ``summary``, of which ``n``, ``seeds``,
        ``interval`` and ``verdict`` are printed.
    """
    with tempfile.TemporaryDirectory() as folder:
        done = running.outcomes(study, study.plan(small=True), Path(folder))
    for each in done:
        print(json.dumps(each["setting"]), f"{each['seconds']} s", _brief(each["outcome"]))
    if hasattr(study, "CLAIM"):
        document = running.document(study, done)
        summary = {key: document[key] for key in ("n", "seeds", "interval", "verdict")}
        print(json.dumps(summary))
    whole = len(study.plan(small=False))
    print(
        f"a small part ({whole} runs with --write): its verdict says nothing of the claim"
    )


def _brief(outcome: object) -> str:
    """Return the single numbers of an outcome as JSON, without its lists and texts.

    ``outcome`` : dict; of anything else nothing is left, "{}".
    """
    values = outcome if isinstance(outcome, dict) else {}
    return json.dumps({k: v for k, v in values.items() if isinstance(v, int | float)})


def write(study: ModuleType, processes: int) -> None:
    """Make all runs of a study that are not finished yet; store its results and weights.

    The path of each file that is written to ``data`` is printed.

    Parameters
    ----------
    study : module
        Its ``plan(small)`` returns a list of settings, a dict for each run.
    processes : int
        How many runs are made at a time.

    Raises
    ------
    studies.running.NotAlone
        If this process has run another study.
    """
    running.need_own_process(study)
    folder = running.runs_of(study)
    plan = study.plan(small=False)
    done = running.outcomes(study, plan, folder, processes)
    for path in running.store(study, done, folder):
        print(f"wrote {path}")


def list_stale(known: dict[str, ModuleType]) -> int:
    """Print the stored studies and weights that rest on what has changed, and on what.

    Parameters
    ----------
    known : dict of str to module
        Studies by name, such as "beyond-text".

    Returns
    -------
    int
        The exit status: 1 if any study is stale, else 0.
    """
    stale = {name: running.stale(study) for name, study in known.items()}
    stale = {name: changed for name, changed in stale.items() if changed}
    for name, changed in stale.items():
        print(f"{name:22}{', '.join(changed)}")
    if not stale:
        print("No stored study is stale.")
    return int(bool(stale))


def main(arguments: list[str] | None = None) -> int:
    """Do what the command line asks for, and return the exit status.

    It lists the studies (``--list``), those whose stored results are out of date
    (``--stale``), renews the record of one without running it (``--still-holds REASON``),
    runs one or all and stores the results (``--write``), or makes a few short runs of it
    (no option). Only one study runs at a time; if another does, that is an error.

    Parameters
    ----------
    arguments : list of str, optional
        What follows ``python -m studies``, such as ``["beyond-text", "--write"]``. Default:
        those of this process.

    Returns
    -------
    int
        0 if all went well, 1 if the study can't run, or if ``--stale`` names any; without a
        name that of the first study that failed.
    """
    known = load_studies()
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
    options = parser.parse_args(arguments)
    chosen = {options.name: known[options.name]} if options.name else known
    if options.list:
        for name, study in known.items():
            print(f"{name:22}{study.__doc__.partition(chr(10))[0]}")
        return 0
    if options.stale:
        return list_stale(chosen)
    if not options.name:
        return run_each(known, sys.argv[1:] if arguments is None else arguments)
    study = known[options.name]
    try:
        with running.lock(options.name):
            if options.still_holds:
                path = running.renew(study, options.still_holds, not options.uncompared)
                print(f"wrote {path}")
            elif options.write:
                write(study, options.processes)
            else:
                try_out(study)
    except (
        BlockingIOError,
        FileNotFoundError,
        running.Differs,
        running.NotAlone,
    ) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def run_each(names: Iterable[str], options: list[str]) -> int:
    """Run studies one after the other, each in a process of its own.

    In one process a file that a study keeps in memory would not be opened by the next, and
    would be missing from its record.

    Parameters
    ----------
    names : iterable of str
        Of studies, such as "beyond-text".
    options : list of str
        Further arguments of the command, the same for each study.

    Returns
    -------
    int
        0 if all went well; else the exit status of the first that failed, after which no
        other is begun.
    """
    for name in names:
        command = [sys.executable, "-m", "studies", name, *options]
        status = subprocess.run(command, check=False).returncode
        if status:
            return status
    return 0


if __name__ == "__main__":
    sys.exit(main())
