"""What studies are made of: plans, finished runs, and words for what was found.

How a study is run and stored is in `studies.running`. There, and here:

- a **setting** is a dict: a run's ``group``, and what the study's ``run`` is given;
- an **outcome** is what ``run`` returned: a dict, a list of such, or None;
- **results**, which a study's ``summary`` is given, are group → list of the outcomes of its
  runs in the order of the plan, lists laid end to end.
"""

import hashlib
import json
from collections.abc import Sequence
from itertools import product
from pathlib import Path

import pandas as pd


def digest(thing: object) -> str:
    """Return a short hash of something that JSON can hold."""
    return hashlib.sha256(json.dumps(thing, sort_keys=True).encode()).hexdigest()[:16]


def grid(**what) -> list[dict]:
    """Return a run for each combination of what varies: lists, tuples and ranges.

    The last of them changes fastest; anything else is the same in all runs.
    """
    varied = [v if isinstance(v, list | tuple | range) else [v] for v in what.values()]
    return [dict(zip(what, each, strict=True)) for each in product(*varied)]


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
