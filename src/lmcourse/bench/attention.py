"""Time and memory of attention against length: ours, PyTorch's, and a fused kernel.

One process a method, lengths rising, so that each peak belongs to its length. On the CPU:
there the peak of a process is what the operating system says it is.
"""

import argparse
import time

import torch
from torch import nn
from torch.nn import functional as F

from lmcourse import bench
from lmcourse.attention import MultiHeadAttention

__all__ = ["METHODS", "compare", "main", "prepare"]

D_MODEL, HEADS, LENGTHS = 256, 4, (512, 1024, 2048, 4096)


def ours(layer, x):
    """Our module, which forms the weights."""
    return layer(x)[0]


def fused(layer, x):
    """Our projections around a kernel that never holds all the weights at once."""
    query, key, value = (layer.split(f(x)) for f in (layer.query, layer.key, layer.value))
    output = F.scaled_dot_product_attention(query, key, value)
    return layer.output(output.transpose(-3, -2).flatten(-2))


def torch_module(layer, x):
    """`nn.MultiheadAttention`, asked for its weights as it is by default."""
    return layer(x, x, x)[0]


METHODS = {"ours": ours, "nn.MultiheadAttention": torch_module, "fused": fused}


def prepare(method, lengths, repeats):
    """Return what `bench.isolated` measures: rows of tokens, seconds and peak_mib."""
    torch.manual_seed(0)
    if method == "nn.MultiheadAttention":
        layer = nn.MultiheadAttention(D_MODEL, HEADS, batch_first=True).eval()
    else:
        layer = MultiHeadAttention(D_MODEL, HEADS).eval()
    inputs = {tokens: torch.randn(1, tokens, D_MODEL) for tokens in lengths}

    @torch.no_grad()
    def measured():
        METHODS[method](layer, inputs[lengths[0]][:, :16])  # the first call sets things up
        bench.forget_peak()
        start, rows = bench.peak_mib(), []
        for tokens in lengths:
            often = range(repeats * lengths[-1] // tokens)  # short runs are noisier
            seconds = min(_seconds(method, layer, inputs[tokens]) for _ in often)
            peak = bench.peak_mib() - start
            rows.append(
                {"method": method, "tokens": tokens, "seconds": seconds, "peak_mib": peak}
            )
        return rows

    return measured


def _seconds(method, layer, x):
    start = time.perf_counter()
    METHODS[method](layer, x)
    return time.perf_counter() - start


def compare(lengths=LENGTHS, repeats=3):
    """Measure every method at every length, each method in a process of its own.

    Parameters
    ----------
    lengths : sequence of int
        Rising.
    repeats : int
        The fastest of so many runs is kept, of more where the text is shorter.

    Returns
    -------
    list of dict
        ``method``, ``tokens``, ``seconds`` and ``peak_mib``, the rise of the process's
        peak memory above what it held before the first length.

    Raises
    ------
    ValueError
        If the lengths do not rise: a peak would belong to an earlier length.
    """
    lengths = list(lengths)
    if lengths != sorted(set(lengths)):
        raise ValueError(f"the lengths must rise: {lengths}")
    return [
        row
        for method in METHODS
        for row in bench.isolated(prepare, method, lengths, repeats)["result"]
    ]


def main(argv):
    """Print the table; succeed if the fused kernel is leaner at the greatest length."""
    parser = argparse.ArgumentParser(prog="python -m lmcourse.bench attention")
    parser.add_argument("--lengths", type=int, nargs="+", default=LENGTHS)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args(argv)
    rows = compare(options.lengths, options.repeats)
    last = {row["method"]: row for row in rows if row["tokens"] == options.lengths[-1]}
    summary = {
        "benchmark": "attention",
        "tokens": options.lengths[-1],
        "memory_ours_over_fused": last["ours"]["peak_mib"] / last["fused"]["peak_mib"],
        "time_ours_over_fused": last["ours"]["seconds"] / last["fused"]["seconds"],
    }
    bench.report(rows, summary)
    return 0 if summary["memory_ours_over_fused"] > 1 else 1
