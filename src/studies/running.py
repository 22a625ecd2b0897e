"""Running a study: what is finished is kept, one runs at a time, all are stored alike.

A finished run is a file of ``runs/studies/NAME``, with its setting, its outcome, its
seconds and what it rests on (`studies.depends`). It counts as long as that is as it was.
Nothing that removes a built site removes runs.
"""

import fcntl
import json
import math
import os
import platform
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from importlib import import_module, metadata
from itertools import groupby
from pathlib import Path
from types import ModuleType

import torch
from joblib import Parallel, delayed
from threadpoolctl import threadpool_info, threadpool_limits
from tqdm import tqdm

from lmcourse.data import corpora_folder
from lmcourse.files import write_whole
from studies import depends
from studies.harness import digest

ROOT = Path(__file__).parents[2]
THREADS = 1  # of a run: small models are fastest so, and the record is true
# What libraries read when they are loaded, which may be in the middle of a run.
THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
TIMES = {"seconds", "wall"}  # keys of outcomes that differ from run to run
TOLERANCE = 1e-3  # relative: outcomes are stored rounded


def name_of(study: ModuleType) -> str:
    """Return a study's name: its module's, with hyphens."""
    return study.__name__.rpartition(".")[2].replace("_", "-")


def versions() -> dict[str, str]:
    """Return what a run's numbers may depend on."""
    found = {name: metadata.version(name) for name in ("torch", "numpy")}
    return {"python": platform.python_version()} | found


def runs_folder() -> Path:
    """Return where finished runs are kept: outside of what a build makes."""
    return ROOT / "runs" / "studies"


def runs_of(study: ModuleType) -> Path:
    """Return the folder of a study's finished runs.

    With other code or other versions it is another one; what is claimed of the runs is no
    part of it.
    """
    made_by = [depends.modules_of(study), versions()]
    return runs_folder() / name_of(study) / digest(made_by)


def checkpoint(name: str) -> Path:
    """Return the file of weights that the course comes with."""
    return corpora_folder() / "checkpoints" / f"{name}.safetensors"


def stored_at(study: ModuleType) -> Path:
    """Return the file of a study's results."""
    return corpora_folder() / "studies" / f"{name_of(study)}.json"


@contextmanager
def lock(name: str) -> Iterator[None]:
    """Let one study run at a time: two would take each other's time.

    Raises
    ------
    BlockingIOError
        If another one runs, saying which.
    """
    path = runs_folder() / "lock"
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            message = f"{file.read()} is running: wait until it ends, or stop it"
            raise BlockingIOError(message) from None
        file.truncate(0)
        file.write(f"python -m studies {name} (process {os.getpid()})")
        file.flush()
        yield


# --- running --------------------------------------------------------------------------


def outcomes(
    study: ModuleType, plan: Sequence[dict], folder: Path, processes: int = 1
) -> list[dict]:
    """Run what is not finished yet.

    Parameters
    ----------
    study : module
    plan : sequence of dict
        A setting for each run. What stands in a row of one group may run at the same time.
    folder : Path
        A file for each finished run, and what weights the study leaves for later runs.
    processes : int
        How many run at a time.

    Returns
    -------
    list of dict
        Of each run ``setting``, ``outcome``, ``seconds``, ``threads``, and ``data``, the
        files of data that it read, each with its hash.
    """
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"{digest(setting)}.json" for setting in plan]
    missing = [
        (setting, path)
        for setting, path in zip(plan, paths, strict=True)
        if not _is_finished(path)
    ]
    done = {"total": len(plan), "initial": len(plan) - len(missing)}
    with tqdm(desc=name_of(study), unit="run", **done) as bar:
        finish = delayed(partial(_finish, study.__name__, folder))
        pool = Parallel(processes, return_as="generator")
        for _, runs in groupby(missing, key=lambda run: run[0]["group"]):
            for _ in pool(map(finish, runs)):
                bar.update()
    return [json.loads(path.read_text(encoding="utf-8")) for path in paths]


def _is_finished(path: Path) -> bool:
    """Say whether a run is finished, and the data that it read are as they were."""
    if not path.is_file():
        return False
    data = json.loads(path.read_text(encoding="utf-8"))["data"]
    folder = corpora_folder()
    return all(depends.file_hash(folder / name) == old for name, old in data.items())


def _finish(study: str, folder: Path, run: tuple[dict, Path]) -> None:
    """Make one run of a study, and keep what it found.

    It ignores what a reader has chosen: ``LMCOURSE_…`` is not set meanwhile.
    """
    setting, path = run
    module = import_module(study)
    with _own_environment(), threadpool_limits(THREADS):
        torch.set_num_threads(THREADS)
        start = time.perf_counter()
        with depends.recording(corpora_folder()) as data:
            outcome = module.run(folder, **setting)
        seconds = round(time.perf_counter() - start, 1)
        threads = max(pool["num_threads"] for pool in threadpool_info())
    found = {"setting": setting, "seconds": seconds, "threads": threads, "data": data}
    write(path, found | {"outcome": outcome})


@contextmanager
def _own_environment() -> Iterator[None]:
    """Take the reader's choices out of the environment, and put them back.

    Meanwhile libraries that are loaded begin with as many threads as a run has.
    """
    before = dict(os.environ)
    chosen = {name for name in before if name.startswith("LMCOURSE_")}
    chosen.discard("LMCOURSE_CACHE")  # where downloads lie, which changes no result
    for name in chosen:
        del os.environ[name]
    os.environ.update(dict.fromkeys(THREAD_VARIABLES, str(THREADS)))
    try:
        yield
    finally:
        for name in THREAD_VARIABLES:
            os.environ.pop(name, None)
        changed = (*chosen, *THREAD_VARIABLES)
        os.environ.update({name: before[name] for name in changed if name in before})


# --- storing --------------------------------------------------------------------------


def document(study: ModuleType, done: Sequence[dict]) -> dict:
    """Return what is stored of a study whose runs are done."""
    results: dict[str, list] = {}
    for each in done:
        outcome, rows = each["outcome"], results.setdefault(each["setting"]["group"], [])
        rows += outcome if isinstance(outcome, list) else [outcome]
    results = {group: rows for group, rows in results.items() if rows != [None]}
    return {
        "claim": study.CLAIM,
        "rival": study.RIVAL,
        "null": study.NULL,
        **study.summary(results),
        "command": f"python -m studies {name_of(study)} --write",
        "versions": versions(),
        "seconds": round(sum(each["seconds"] for each in done), 1),
        "rests_on": rests_on(study, done),
        "settings": study.SETTINGS,
        "results": results,
    }


def rests_on(study: ModuleType, done: Sequence[dict]) -> dict:
    """Return the record of what runs rest on: modules, files of data, threads."""
    data: dict[str, str] = {}
    for each in done:
        data |= each["data"]
    threads = sorted({each["threads"] for each in done})
    modules = depends.modules_of(study)
    return {"modules": modules, "data": dict(sorted(data.items())), "threads": threads}


def store(study: ModuleType, done: Sequence[dict], folder: Path) -> list[Path]:
    """Write a study to ``data``; return the files."""
    paths = []
    for name in getattr(study, "CHECKPOINTS", ()):
        paths.append(checkpoint(name))
        write_whole(paths[-1], (folder / paths[-1].name).read_bytes())
    if hasattr(study, "CLAIM"):
        paths.append(stored_at(study))
        write(paths[-1], document(study, done))
    return paths


class Differs(ValueError):
    """A run that was made again has another outcome than the one that is stored."""


def renew(study: ModuleType, reason: str, compared: bool = True) -> Path:
    """Renew the record of a stored study whose results were not all made again.

    The first run of its plan is made again and held against what is stored of it, and a
    small part of the study runs, to see what it reads. The stored results are left alone;
    the record says why it was renewed, and which run was compared.

    Parameters
    ----------
    study : module
    reason : str
        Why its results still hold: what changed, and how that was seen.
    compared : bool
        False if no run can be compared, for instance since its corpus is not at hand: then
        the record says so (``"compared": null``).

    Returns
    -------
    Path
        The file that was written.

    Raises
    ------
    Differs
        If the run has another outcome; nothing is written then.
    """
    path = stored_at(study)
    found = json.loads(path.read_text(encoding="utf-8"))
    old = found.pop("rests_on", {})
    first = study.plan(small=False)[0]
    done = []
    if compared:
        done += outcomes(study, [first], runs_of(study) / "compared")
        _compare(done[0], found["results"])
    done += outcomes(study, study.plan(small=True), runs_of(study) / "small")
    record = rests_on(study, done)
    # The runs of today say nothing of the threads of those that are stored.
    record["threads"] = old.get("threads")
    record |= {"renewed": reason, "compared": first if compared else None}
    # In the place where it stands in a new document.
    items = list(found.items())
    at = [key for key, _ in items].index("settings")
    write(path, dict([*items[:at], ("rests_on", record), *items[at:]]))
    return path


def _compare(first: dict, results: dict[str, list]) -> None:
    """Hold the first run of a plan against the stored outcomes of its group.

    Raises
    ------
    Differs
        If it has another outcome, saying where.
    """
    group, outcome = first["setting"]["group"], first["outcome"]
    rows = outcome if isinstance(outcome, list) else [outcome]
    stored = results.get(group, [])[: len(rows)]
    places = list(differences(rows, stored, group))
    if places:
        raise Differs(
            f"The run {json.dumps(first['setting'])} has another outcome than the stored "
            f"one: {'; '.join(places[:5])}. Run the study again, with --write."
        )


def differences(one: object, other: object, place: str = "") -> Iterator[str]:
    """Yield where two things that JSON can hold differ, and how.

    Seconds may differ, and numbers by `TOLERANCE`, relative.
    """
    numbers = (int, float)
    if isinstance(one, dict) and isinstance(other, dict):
        for key in sorted((one.keys() | other.keys()) - TIMES):
            yield from differences(one.get(key), other.get(key), f"{place}.{key}")
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        for at, (here, there) in enumerate(zip(one, other, strict=True)):
            yield from differences(here, there, f"{place}[{at}]")
    elif isinstance(one, numbers) and isinstance(other, numbers):
        if not math.isclose(one, other, rel_tol=TOLERANCE, abs_tol=TOLERANCE):
            yield f"{place}: {one}, stored is {other}"
    elif one != other:
        yield f"{place}: {str(one)[:60]}, stored is {str(other)[:60]}"


def stale(study: ModuleType) -> list[str]:
    """Return what a stored study rests on and is not as it was; [] if all is.

    A study without a record is of unknown code: ``["no record"]``.
    """
    if not hasattr(study, "CLAIM"):
        return []
    found = json.loads(stored_at(study).read_text(encoding="utf-8"))
    if "rests_on" not in found:
        return ["no record"]
    return depends.changed(found["rests_on"], study, corpora_folder())


def write(path: Path, found: dict) -> None:
    """Write a dict as JSON, a line for each key; the file is whole or as it was."""
    lines = (
        f"{json.dumps(key)}: {json.dumps(value, ensure_ascii=False)}"
        for key, value in found.items()
    )
    write_whole(path, "{\n" + ",\n".join(lines) + "\n}\n")
