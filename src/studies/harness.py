"""Running a study: what is finished is kept, one runs at a time, all are stored alike."""

import ast
import fcntl
import hashlib
import inspect
import json
import os
import platform
import shutil
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from importlib import import_module, metadata
from itertools import groupby, product
from pathlib import Path
from types import ModuleType

import pandas as pd
from joblib import Parallel, delayed
from tqdm import tqdm

from lmcourse.data import corpora_folder
from lmcourse.models import one_thread
from studies.chapter import definitions_code, page

ROOT = Path(__file__).parents[2]


def name_of(study: ModuleType) -> str:
    """Return a study's name: its module's, with hyphens."""
    return study.__name__.rpartition(".")[2].replace("_", "-")


def versions() -> dict[str, str]:
    """Return what a run's numbers may depend on."""
    found = {name: metadata.version(name) for name in ("torch", "numpy")}
    return {"python": platform.python_version()} | found


def digest(thing: object) -> str:
    """Return a short hash of something that JSON can hold."""
    return hashlib.sha256(json.dumps(thing, sort_keys=True).encode()).hexdigest()[:16]


def _studies_folder() -> Path:
    """Return where unfinished studies are kept: below ``_build``, or ``LMBOOK_BUILD``."""
    return ROOT / (os.environ.get("LMBOOK_BUILD") or "_build") / "studies"


def _code(study: ModuleType) -> str:
    """Return a study's code, without what it says: comments, and its own first words."""
    code = ast.parse(inspect.getsource(study))
    said = ("CLAIM", "RIVAL", "NULL")
    for each in code.body[:]:
        if isinstance(each, ast.Assign) and ast.unparse(each.targets[0]) in said:
            code.body.remove(each)
    return ast.dump(code).replace(repr(study.__doc__), "")


def work_at(study: ModuleType) -> Path:
    """Return the folder of a study's finished runs.

    With another code (its own, or its chapter's if it runs that), other versions or other
    weights to begin from it is another one; what is claimed of the runs is no part of it.
    """
    made_by = [_code(study), versions()]
    if any(thing is page for thing in vars(study).values()):
        made_by.append(definitions_code(study.CHAPTER))
    for name in getattr(study, "READS", ()):
        made_by.append(hashlib.sha256(_checkpoint(name).read_bytes()).hexdigest())
    return _studies_folder() / name_of(study) / digest(made_by)


def _checkpoint(name: str) -> Path:
    return corpora_folder() / "checkpoints" / f"{name}.safetensors"


@contextmanager
def lock(name: str) -> Iterator[None]:
    """Let one study run at a time: two would take each other's time.

    Raises
    ------
    BlockingIOError
        If another one runs, saying which.
    """
    path = _studies_folder() / "lock"
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            told = f"{file.read()} is running: wait until it ends, or stop it"
            raise BlockingIOError(told) from None
        file.truncate(0)
        file.write(f"python -m studies {name} (process {os.getpid()})")
        file.flush()
        yield


def grid(**what) -> list[dict]:
    """Return a run for each combination of what varies: lists, tuples and ranges.

    The last of them changes fastest; anything else is the same in all runs.
    """
    varied = [v if isinstance(v, list | tuple | range) else [v] for v in what.values()]
    return [dict(zip(what, each, strict=True)) for each in product(*varied)]


def outcomes(
    study: ModuleType, plan: Sequence[dict], folder: Path, processes: int = 1
) -> list[dict]:
    """Run what is not finished yet; return ``setting``, ``seconds``, ``outcome`` of all.

    Parameters
    ----------
    study : module
    plan : sequence of dict
        What stands in a row of one group may run at the same time.
    folder : Path
        A file for each finished run, and what weights the study leaves for later runs.
    processes : int
        How many run at a time.
    """
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"{digest(setting)}.json" for setting in plan]
    missing = [(s, path) for s, path in zip(plan, paths, strict=True) if not path.is_file()]
    kept = {"total": len(plan), "initial": len(plan) - len(missing)}
    with tqdm(desc=name_of(study), unit="run", **kept) as bar:
        finish = delayed(partial(_finish, study.__name__, folder))
        pool = Parallel(processes, return_as="generator")
        for _, runs in groupby(missing, key=lambda run: run[0]["group"]):
            for _ in pool(map(finish, runs)):
                bar.update()
    return [json.loads(path.read_text(encoding="utf-8")) for path in paths]


def _finish(study: str, folder: Path, run: tuple[dict, Path]) -> None:
    """Make one run of a study, and keep what it found."""
    one_thread()
    setting, path = run
    start = time.perf_counter()
    outcome = import_module(study).run(folder, **setting)
    seconds = round(time.perf_counter() - start, 1)
    _write(path, {"setting": setting, "seconds": seconds, "outcome": outcome})


def finished(folder: Path, group: str) -> list[dict]:
    """Return the outcomes of the finished runs of a group."""
    done = [json.loads(path.read_text(encoding="utf-8")) for path in folder.glob("*.json")]
    return [each["outcome"] for each in done if each["setting"]["group"] == group]


def alike(rows: Sequence[dict], **like) -> list[dict]:
    """Return the rows that have these values."""
    return [row for row in rows if like.items() <= row.items()]


def best_tuned(folder: Path, **like) -> dict:
    """Return the finished run of the group "tuning" with the lowest validation loss.

    Of those whose outcome has these values.
    """
    mine = alike(finished(folder, "tuning"), **like)
    return min(mine, key=lambda each: each["validation"])


def best_rate(folder: Path, **like) -> float:
    """Return the tuned rate whose mean validation loss over its seeds is the lowest."""
    mine = alike(finished(folder, "tuning"), **like)
    return float(pd.DataFrame(mine).groupby("rate").validation.mean().idxmin())


def document(study: ModuleType, done: Sequence[dict]) -> dict:
    """Return what is stored of a study whose runs are done."""
    results: dict[str, list] = {}
    for each in done:
        outcome, rows = each["outcome"], results.setdefault(each["setting"]["group"], [])
        rows += outcome if isinstance(outcome, list) else [outcome]
    results = {group: rows for group, rows in results.items() if rows != [None]}
    found = {"claim": study.CLAIM, "rival": study.RIVAL, "null": study.NULL}
    found |= study.summary(results)
    found |= {"command": f"python -m studies {name_of(study)} --write"}
    found |= {"versions": versions()}
    found |= {"seconds": round(sum(each["seconds"] for each in done), 1)}
    return found | {"settings": study.SETTINGS, "results": results}


def store(study: ModuleType, done: Sequence[dict], folder: Path) -> list[Path]:
    """Write a study to ``data``; return the files."""
    paths = []
    for name in getattr(study, "CHECKPOINTS", ()):
        paths.append(_checkpoint(name))
        beside = paths[-1].with_suffix(".new")
        shutil.copyfile(folder / paths[-1].name, beside)
        beside.replace(paths[-1])
    if hasattr(study, "CLAIM"):
        paths.append(corpora_folder() / "studies" / f"{name_of(study)}.json")
        _write(paths[-1], document(study, done))
    return paths


def _write(path: Path, found: dict) -> None:
    """Write a dict as JSON, a line for each key; the file is whole or as it was."""
    lines = (
        f"{json.dumps(key)}: {json.dumps(value, ensure_ascii=False)}"
        for key, value in found.items()
    )
    beside = path.with_suffix(".new")
    beside.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
    beside.replace(path)


def count(runs: Sequence[dict]) -> dict:
    """Return ``n``, how many runs there are, and their ``seeds``."""
    return {"n": len(runs), "seeds": sorted({run["seed"] for run in runs})}


def verdict(holds: bool) -> str:
    """Return a claim's verdict, in the words of the page *Findings*."""
    return "holds" if holds else "not so"


def paired(ones: Sequence[float], others: Sequence[float], holds: bool) -> dict:
    """Return ``interval`` and ``verdict`` of differences, seed by seed.

    The interval is from the lowest to the highest of them: with so few seeds more would
    be a pretence.
    """
    gaps = [float(one - other) for one, other in zip(ones, others, strict=True)]
    return {
        "interval": [round(min(gaps), 4), round(max(gaps), 4)],
        "verdict": verdict(holds),
    }
