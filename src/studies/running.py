"""Running a study: finished runs are kept, one study runs at a time, all are stored alike.

A finished run is a file in ``runs/studies/NAME``, with its setting, its outcome, its
seconds and what it rests on (`studies.depends`). It is used again as long as that has
not changed. Nothing that removes a built site removes runs.
"""

import fcntl
import json
import math
import os
import platform
import time
from collections.abc import Iterable, Iterator, Sequence
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
ROUNDED = 1e-4  # absolute: most are stored with four digits
# Studies of which this process has made runs: the name, and the folder of data.
_ran: set[tuple[str, Path]] = set()


def name_of(study: ModuleType) -> str:
    """Return a study's name: that of its module, with hyphens, such as "beyond-text"."""
    return study.__name__.rpartition(".")[2].replace("_", "-")


def versions() -> dict[str, str]:
    """Return the versions that results may depend on: of Python, torch and numpy."""
    libraries = {name: metadata.version(name) for name in ("torch", "numpy")}
    return {"python": platform.python_version()} | libraries


def runs_folder() -> Path:
    """Return the folder in which finished runs are kept, outside of what a build makes."""
    return ROOT / "runs" / "studies"


def runs_of(study: ModuleType) -> Path:
    """Return the folder of a study's finished runs; ``study`` is its module.

    It is another one as soon as the study's code, its modules or the versions of libraries
    change; the study's claim may change.
    """
    made_by = [depends.modules_of(study), versions()]
    return runs_folder() / name_of(study) / digest(made_by)


def checkpoint(name: str) -> Path:
    """Return the path of weights that come with the course, by their name."""
    return corpora_folder() / "checkpoints" / f"{name}.safetensors"


def stored_at(study: ModuleType) -> Path:
    """Return the path of what is stored of a study, ``NAME.json``.

    Of one that has a claim these are its results, in ``data/studies``; of one that only
    makes weights it is their record, beside them in ``data/checkpoints``.
    """
    folder = "studies" if hasattr(study, "CLAIM") else "checkpoints"
    return corpora_folder() / folder / f"{name_of(study)}.json"


@contextmanager
def lock(name: str) -> Iterator[None]:
    """Hold the lock of studies inside a ``with``, so that they do not slow each other.

    Parameters
    ----------
    name : str
        Of the study that wants to run.

    Raises
    ------
    BlockingIOError
        If another one runs; the message says which.
    """
    path = runs_folder() / "lock"
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a+") as file:  # not "w": who runs now has written its name there
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


class NotAlone(RuntimeError):
    """This process has run another study, so nobody knows what this one reads."""


def need_own_process(study: ModuleType) -> None:
    """Refuse to run a study for its record if this process has run another.

    What the other one has read would be in this one's record (`depends.recording`): a file
    that both read may be kept in memory, and is not opened again.

    Parameters
    ----------
    study : module

    Raises
    ------
    NotAlone
        If so, with the data that are at hand now; the message names the other study, and
        says what to do.
    """
    name = name_of(study)
    folder = corpora_folder().resolve()
    others = sorted({ran for ran, data in _ran if data == folder} - {name})
    if others:
        raise NotAlone(
            f"this process has run {', '.join(others)}: what that read would be in the "
            f"record of {name}. Run each study in a process of its own: "
            f"`python -m studies {name} …`"
        )


# --- running --------------------------------------------------------------------------


def outcomes(
    study: ModuleType, plan: Sequence[dict], folder: Path, processes: int = 1
) -> list[dict]:
    """Make the runs of a plan that are not finished yet, and return all outcomes.

    Parameters
    ----------
    study : module
        Its ``run`` makes a run.
    plan : sequence of dict
        A setting for each run: ``group``, the kind of run, and the other arguments of the
        study's ``run``. Neighbours of the same group may run at the same time.
    folder : Path
        Holds a file for each finished run, and weights that the study saves for later
        runs.
    processes : int
        How many run at a time.

    Returns
    -------
    list of dict
        One for each run, in the order of the plan: ``setting``; ``outcome``; ``seconds``;
        ``threads``, how many it computed with; ``data``, the path of each file of data that
        it read → its hash.
    """
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"{digest(setting)}.json" for setting in plan]
    missing = [
        (setting, path)
        for setting, path in zip(plan, paths, strict=True)
        if not _is_finished(path)
    ]
    if missing:
        _ran.add((name_of(study), corpora_folder().resolve()))
    done = {"total": len(plan), "initial": len(plan) - len(missing)}
    with tqdm(desc=name_of(study), unit="run", **done) as bar:
        finish = delayed(partial(_finish, study.__name__, folder))
        pool = Parallel(processes, return_as="generator")
        for _, runs in groupby(missing, key=lambda run: run[0]["group"]):
            for _ in pool(map(finish, runs)):
                bar.update()
    return [json.loads(path.read_text(encoding="utf-8")) for path in paths]


def _is_finished(path: Path) -> bool:
    """Return whether a run's file exists, and nothing that the run read has changed since.

    ``path`` : of the run's JSON file.
    """
    if not path.is_file():
        return False
    data = json.loads(path.read_text(encoding="utf-8"))["data"]
    folder = corpora_folder()
    return all(depends.file_hash(folder / name) == old for name, old in data.items())


def _finish(study: str, folder: Path, run: tuple[dict, Path]) -> None:
    """Make one run of a study, and write its file.

    A reader's own choices of models are ignored: no variable ``LMCOURSE_…`` is set. The
    file is JSON with ``setting``; ``outcome``, what the study's ``run`` returned;
    ``seconds``; ``threads``, how many it computed with; ``data``, path of each file that it
    read → its hash.

    Parameters
    ----------
    study : str
        The dotted name of its module.
    folder : Path
        Where the study's finished runs are.
    run : (dict, Path)
        The setting (the arguments of the study's ``run``), and the file to write.
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
    finished = {"setting": setting, "seconds": seconds, "threads": threads, "data": data}
    write(path, finished | {"outcome": outcome})


@contextmanager
def _own_environment() -> Iterator[None]:
    """Remove variables ``LMCOURSE_…`` from the environment inside a ``with``; restore them.

    ``LMCOURSE_CACHE`` stays. Inside, `THREAD_VARIABLES`, such as ``OMP_NUM_THREADS``, are
    set to `THREADS`, the number of threads of a run: libraries read them when they are
    loaded.
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
    """Return what is stored of a study.

    Parameters
    ----------
    study : module
        Read are ``CLAIM``, ``RIVAL``, ``NULL``, ``SETTINGS`` and ``summary``, if it has a
        claim.
    done : sequence of dict
        All of its runs: ``setting``, a dict with ``group``; ``outcome``, a dict, a list of
        dict or None; ``seconds``; ``threads``; ``data``, path of each file that was read →
        its hash.

    Returns
    -------
    dict
        ``claim``, ``rival``, ``null``; ``n``, ``seeds``, ``interval``, ``verdict`` of the
        study's summary; ``command``, ``versions``, ``seconds``; ``rests_on``, the hashes of
        code and data on which the results rest; ``settings``; ``results``, group → outcomes
        (`studies.harness`). Of a study that only makes weights, without what its claim,
        summary and settings give.
    """
    results: dict[str, list] = {}
    for each in done:
        outcome = each["outcome"]
        rows = results.setdefault(each["setting"]["group"], [])
        rows += outcome if isinstance(outcome, list) else [outcome]
    results = {group: rows for group, rows in results.items() if rows != [None]}
    header = {
        "command": f"python -m studies {name_of(study)} --write",
        "versions": versions(),
        "seconds": round(sum(each["seconds"] for each in done), 1),
        "rests_on": rests_on(study, done),
    }
    if not hasattr(study, "CLAIM"):
        return header | {"results": results}
    claim = {"claim": study.CLAIM, "rival": study.RIVAL, "null": study.NULL}
    claim |= study.summary(results)
    return claim | header | {"settings": study.SETTINGS, "results": results}


def rests_on(study: ModuleType, done: Sequence[dict]) -> dict:
    """Return the record of what the results of some runs rest on.

    Parameters
    ----------
    study : module
    done : sequence of dict
        Of each run ``data``, path of a file that it read → its hash, and ``threads``, with
        how many it computed.

    Returns
    -------
    dict
        ``modules``: dotted name → hash of its code. ``data``: path of a file → its hash.
        ``threads``: the different numbers of threads, sorted.
    """
    data: dict[str, str] = {}
    for each in done:
        data |= each["data"]
    threads = sorted({each["threads"] for each in done})
    modules = depends.modules_of(study)
    return {"modules": modules, "data": dict(sorted(data.items())), "threads": threads}


def store(study: ModuleType, done: Sequence[dict], folder: Path) -> list[Path]:
    """Write a study's results, or the record of its weights, and its weights to ``data``.

    Parameters
    ----------
    study : module
        ``CHECKPOINTS``, if it has them, are the names of its weights.
    done : sequence of dict
        All of its runs: ``setting``, ``outcome``, ``seconds``, ``threads`` and ``data``,
        path of each file that was read → its hash.
    folder : Path
        In which the runs saved weights, as ``NAME.safetensors``.

    Returns
    -------
    list of Path
        The files that were written.
    """
    paths = []
    for name in getattr(study, "CHECKPOINTS", ()):
        paths.append(checkpoint(name))
        write_whole(paths[-1], (folder / paths[-1].name).read_bytes())
    paths.append(stored_at(study))
    write(paths[-1], document(study, done))
    return paths


class Differs(ValueError):
    """A repeated run has another outcome than the stored one."""


def renew(study: ModuleType, reason: str, compared: bool = True) -> Path:
    """Renew the record of a stored study without making all of its runs again.

    The first run of its plan is repeated and compared with its stored outcome, and the runs
    of the small plan are made, to see what they read. The stored results stay, and in the
    record what they read. Its ``renewals`` get an entry: the ``reason``, and which run was
    ``compared``.

    Parameters
    ----------
    study : module
        Its ``plan`` lists settings, its ``run`` makes one of them.
    reason : str
        Why its results still hold: what changed, and how one knows.
    compared : bool
        False if no run can be repeated, for instance because its corpus is not at hand;
        then the record says so (``"compared": null``).

    Returns
    -------
    Path
        The file that was written.

    Raises
    ------
    Differs
        If the run has another outcome; nothing is written then.
    FileNotFoundError
        If nothing is stored yet.
    NotAlone
        If this process has run another study.
    """
    need_own_process(study)
    path = stored_at(study)
    if not path.is_file():
        command = f"python -m studies {name_of(study)} --write"
        raise FileNotFoundError(f"{path} is missing: make it with `{command}`")
    document = json.loads(path.read_text(encoding="utf-8"))
    old = document.pop("rests_on", {})
    first = study.plan(small=False)[0]
    done = []
    if compared:
        done += outcomes(study, [first], runs_of(study) / "compared")
        _compare(done[0], document["results"])
    done += outcomes(study, study.plan(small=True), runs_of(study) / "small")
    record = rests_on(study, done)
    # The runs made now do not show all that the stored ones read, nor their threads.
    record["data"] = _still_there(old.get("data", {})) | record["data"]
    record["threads"] = old.get("threads")
    renewal = {"reason": reason, "compared": first if compared else None}
    record["renewals"] = [*old.get("renewals", []), renewal]
    # Before the settings, or the results of weights, as in a new document.
    items = list(document.items())
    index = list(document).index("settings" if "settings" in document else "results")
    write(path, dict([*items[:index], ("rests_on", record), *items[index:]]))
    return path


def _still_there(files: Iterable[str]) -> dict[str, str]:
    """Return the SHA-256 of those files that there are: path below ``data`` → hash."""
    folder = corpora_folder()
    return {
        path: depends.file_hash(folder / path)
        for path in files
        if (folder / path).is_file()
    }


def _compare(first: dict, results: dict[str, list]) -> None:
    """Compare the first run of a plan with the stored outcomes of its group.

    Parameters
    ----------
    first : dict
        The run: its ``setting``, with the ``group``, and its ``outcome``, a dict or a list
        of dict.
    results : dict of str to list of dict
        Group → stored outcomes, in the order of the plan.

    Raises
    ------
    Differs
        If it has another outcome; the message says where.
    """
    group = first["setting"]["group"]
    outcome = first["outcome"]
    rows = outcome if isinstance(outcome, list) else [outcome]
    stored = results.get(group, [])[: len(rows)]
    differing = list(differences(rows, stored, group))
    if differing:
        raise Differs(
            f"The run {json.dumps(first['setting'])} has another outcome than the stored "
            f"one: {'; '.join(differing[:5])}. Run the study again, with --write."
        )


def differences(one: object, other: object, place: str = "") -> Iterator[str]:
    """Find where two things that JSON can hold differ.

    Parameters
    ----------
    one, other : object
        ``other`` is the stored one.
    place : str
        The path to both, for the message.

    Yields
    ------
    str
        A path like "runs[0].loss", and both values. Values of the keys in `TIMES`, which
        are seconds, may differ; numbers by a thousandth of their size (`TOLERANCE`), or by
        no more than 0.0001 (`ROUNDED`).
    """
    numbers = (int, float)
    if isinstance(one, dict) and isinstance(other, dict):
        for key in sorted((one.keys() | other.keys()) - TIMES):
            yield from differences(one.get(key), other.get(key), f"{place}.{key}")
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        for index, (here, there) in enumerate(zip(one, other, strict=True)):
            yield from differences(here, there, f"{place}[{index}]")
    elif isinstance(one, numbers) and isinstance(other, numbers):
        if not math.isclose(one, other, rel_tol=TOLERANCE, abs_tol=ROUNDED):
            yield f"{place}: {one}, stored is {other}"
    elif one != other:
        yield f"{place}: {str(one)[:60]}, stored is {str(other)[:60]}"


def stale(study: ModuleType) -> list[str]:
    """Return what has changed since a study, or the weights that it makes, were stored.

    Parameters
    ----------
    study : module

    Returns
    -------
    list of str
        Dotted names of modules, and paths of files of data; empty if nothing has changed;
        ``["no record"]`` if it is unknown what the results rest on.
    """
    path = stored_at(study)
    document = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    if "rests_on" not in document:
        return ["no record"]
    return depends.changed(document["rests_on"], study, corpora_folder())


def write(path: Path, document: dict) -> None:
    """Write a dict to a file as JSON, a line for each key, in one atomic step."""
    lines = (
        f"{json.dumps(key)}: {json.dumps(value, ensure_ascii=False)}"
        for key, value in document.items()
    )
    write_whole(path, "{\n" + ",\n".join(lines) + "\n}\n")
