"""Time and memory of attention against length: ours, PyTorch's, and a fused kernel.

One process a method, lengths rising, so that each peak belongs to its length. On the CPU:
there the peak of a process is what the operating system says it is.
"""

import argparse

from lmbook.bench import report
from lmcourse.costs import LENGTHS, compare_attention

__all__ = ["main"]


def main(argv):
    """Print the table; succeed if the fused kernel is leaner at the greatest length."""
    parser = argparse.ArgumentParser(prog="python -m lmbook.bench attention")
    parser.add_argument("--lengths", type=int, nargs="+", default=LENGTHS)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args(argv)
    rows = compare_attention(options.lengths, options.repeats)
    last = {row["method"]: row for row in rows if row["tokens"] == options.lengths[-1]}
    summary = {
        "benchmark": "attention",
        "tokens": options.lengths[-1],
        "memory_ours_over_fused": last["ours"]["peak_mib"] / last["fused"]["peak_mib"],
        "time_ours_over_fused": last["ours"]["seconds"] / last["fused"]["seconds"],
    }
    report(rows, summary)
    return 0 if summary["memory_ours_over_fused"] > 1 else 1
