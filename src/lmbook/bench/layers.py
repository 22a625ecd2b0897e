"""`lmcourse.pooling` against the usual way, on all the poems.

The usual way pads every text to the model's window, runs all of them in one batch that
returns every hidden state, and takes a cosine at a time in a Python loop. Each way runs in
a process of its own, so that each peak of memory is its own. On the CPU.
"""

import argparse

import torch

from lmbook.bench import report
from lmcourse.costs import MODELS, WAYS, prepare_pooling
from lmcourse.measure import isolated

__all__ = ["compare", "main"]


def compare(name, poems):
    """Measure both ways on one model; return the table's rows and the summary."""
    measured = {way: isolated(prepare_pooling, way, name, poems) for way in WAYS}
    rows = [
        {
            "model": name,
            "way": way,
            "poems": len(row["result"][0][0]),
            "seconds": row["seconds"],
            "peak_mib": row["peak_mib"],
            "before_mib": row["start_mib"],
        }
        for way, row in measured.items()
    ]
    slow, fast = measured["usual"], measured["engine"]
    difference = max(
        float(abs(a - b).max()) for a, b in zip(slow["result"], fast["result"], strict=True)
    )
    summary = {
        "times_faster": round(slow["seconds"] / fast["seconds"], 2),
        "memory_share": round(fast["peak_mib"] / slow["peak_mib"], 3),
        "difference": difference,
    }
    return rows, summary


def main(argv=None) -> int:
    """Print the table and one line of JSON; return 1 if the results differ."""
    parser = argparse.ArgumentParser(prog="python -m lmbook.bench layers")
    parser.add_argument("--poems", type=int, help="only the first so many")
    parser.add_argument("--models", nargs="+", choices=MODELS, default=MODELS)
    options = parser.parse_args(argv)
    rows, summary = [], {"benchmark": "layers", "threads": torch.get_num_threads()}
    for name in options.models:
        measured, summary[name] = compare(name, options.poems)
        rows += measured
    report(rows, summary)
    return int(any(summary[name]["difference"] > 1e-5 for name in options.models))
