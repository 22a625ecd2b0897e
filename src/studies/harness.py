"""What studies are made of: plans, finished runs, and the record of what they show.

Words that every study uses; how a study is run and stored is in `studies.running`.

- A **setting** is a dict, one for each run: ``group``, the name of the kind of run, and the
  other arguments of the study's ``run``. A **plan** is the list of all settings.
- An **outcome** is what ``run`` returned: a dict of numbers, texts and lists; a list of
  such dicts; or None, if the run only left files for later runs.
- **Results**, the argument of a study's ``summary``, are all outcomes by group:
  ``{"tuning": [outcome, …], "runs": [outcome, …]}``. The outcomes of a group are in the
  order of the plan; where ``run`` returned a list, its dicts stand in it one by one; a
  group whose runs returned None is missing. A small plan may lack groups, too.

>>> settings = grid(group="runs", rate=(0.1, 0.2), seed=(1, 2))  # four runs
>>> settings[1]
{'group': 'runs', 'rate': 0.1, 'seed': 2}
"""

import hashlib
import json
from collections.abc import Sequence
from itertools import product
from pathlib import Path

import pandas as pd


def digest(thing: object) -> str:
    """Return a short hash of something that JSON can hold: 16 hexadecimal digits."""
    return hashlib.sha256(json.dumps(thing, sort_keys=True).encode()).hexdigest()[:16]


def grid(**values) -> list[dict]:
    """Return a setting for each combination of some values.

    Parameters
    ----------
    **values
        By the name of an argument of the study's ``run``. Lists, tuples and ranges hold
        the values to combine; anything else is the same in all settings.

    Returns
    -------
    list of dict
        The last argument changes fastest.
    """
    varied = [v if isinstance(v, list | tuple | range) else [v] for v in values.values()]
    return [dict(zip(values, each, strict=True)) for each in product(*varied)]


def finished(folder: Path, group: str) -> list[dict]:
    """Return the outcomes of the finished runs of a group.

    Parameters
    ----------
    folder : Path
        The folder that `run` is given, which holds a JSON file for each finished run.
    group : str
        Its name, such as "tuning".

    Returns
    -------
    list of dict
        In no particular order.
    """
    done = [json.loads(path.read_text(encoding="utf-8")) for path in folder.glob("*.json")]
    return [each["outcome"] for each in done if each["setting"]["group"] == group]


def alike(rows: Sequence[dict], **values) -> list[dict]:
    """Return the rows, settings or outcomes, that have some values, in their order.

    ``rows`` : sequence of dict; ``values`` : by key. Rows that lack a key are left out.
    """
    return [row for row in rows if values.items() <= row.items()]


def best_tuned(folder: Path, **values) -> dict:
    """Return the outcome of the group "tuning" with the lowest ``validation`` loss.

    Parameters
    ----------
    folder : Path
        Holds the study's finished runs.
    **values
        Only outcomes that have these values of these keys are compared.

    Returns
    -------
    dict
        The outcome as a whole: ``validation`` and what the study stores beside it.

    Raises
    ------
    ValueError
        If no such run is finished.
    """
    return min(
        alike(finished(folder, "tuning"), **values), key=lambda row: row["validation"]
    )


def best_rate(folder: Path, **values) -> float:
    """Return the tuned learning rate with the lowest mean validation loss over its seeds.

    Parameters
    ----------
    folder : Path
        Holds a JSON file for each finished run of the study.
    **values
        Only outcomes of the group "tuning" that have these values of these keys are
        compared. Each has ``rate``, a learning rate, and ``validation``, a loss.
    """
    rows = alike(finished(folder, "tuning"), **values)
    return float(pd.DataFrame(rows).groupby("rate").validation.mean().idxmin())


def count(runs: Sequence[dict]) -> dict:
    """Return a dict: ``n``, how many outcomes there are; ``seeds``, their different seeds.

    ``runs`` : outcomes, each a dict with ``seed``.
    """
    return {"n": len(runs), "seeds": sorted({run["seed"] for run in runs})}


def verdict(holds: bool) -> str:
    """Return a claim's verdict in the words of the page *Findings*: "holds" or "not so"."""
    return "holds" if holds else "not so"


def paired(ones: Sequence[float], others: Sequence[float], holds: bool) -> dict:
    """Return the part of a summary that compares two sequences, pair by pair.

    Parameters
    ----------
    ones, others : sequence of float
        What is compared: a number for each seed, or each model, in the same order.
    holds : bool
        Whether the study's claim holds.

    Returns
    -------
    dict
        ``interval``, the lowest and the highest difference ``one - other``, since so few
        seeds allow no finer estimate; and ``verdict``, "holds" or "not so".
    """
    gaps = [float(one - other) for one, other in zip(ones, others, strict=True)]
    return {
        "interval": [round(min(gaps), 4), round(max(gaps), 4)],
        "verdict": verdict(holds),
    }
