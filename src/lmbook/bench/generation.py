"""Writing with and without a cache of keys and values, by length.

From one token to each length, the likeliest token every time, both ways by turns, so that
whatever else the machine does slows both; the fastest of several turns is kept. On the CPU
with one thread, in float32: the course's own GPT up to its context, and a larger one with
random weights and a context of 512. The memory of the cache is measured and computed.
"""

import argparse
import time

import torch

from lmbook.bench import report
from lmcourse.gpt.checkpoints import load_gpt
from lmcourse.gpt.generation import Cache, cache_bytes, generate
from lmcourse.gpt.model import GPT, GPTConfig

__all__ = ["main", "measure"]

LARGER = GPTConfig(vocab_size=65, context=512, layers=4, heads=4, d_model=128)
WAYS = {"uncached": False, "cached": True}
FASTER = 5  # times, at the full context of the larger one


def larger() -> GPT:
    """Return the larger model, always the same; its weights say different things."""
    torch.manual_seed(0)
    model = GPT(LARGER).eval()
    with torch.no_grad():
        for name, weight in model.named_parameters():
            weight.mul_(1 if "norm" in name else 4)
    return model


@torch.no_grad()
def measure(model: GPT, length: int, turns: int) -> dict:
    """Write up to a length both ways; return the times, the ratio, and the memory."""
    start, seconds, texts = torch.zeros(1, 1, dtype=torch.long), {}, {}
    for _ in range(turns):
        for way, cached in WAYS.items():
            before = time.perf_counter()
            texts[way] = generate(model, start, length - 1, temperature=0, cached=cached)
            took = time.perf_counter() - before
            seconds[way] = min(took, seconds.get(way, took))
    cache = Cache(model)
    model(texts["cached"], cache)
    return {
        "length": length,
        **{f"{way}_s": took for way, took in seconds.items()},
        "times_faster": seconds["uncached"] / seconds["cached"],
        "same_text": torch.equal(texts["uncached"], texts["cached"]),
        "cache_bytes": cache.nbytes,
        "by_formula": cache_bytes(model.config, length),
    }


def main(argv=None) -> int:
    """Print the table and one line of JSON; return 1 if it is not as it should be."""
    parser = argparse.ArgumentParser(prog="python -m lmbook.bench generation")
    parser.add_argument("--turns", type=int, default=3, help="of which the fastest counts")
    turns = parser.parse_args(argv).turns
    torch.set_num_threads(1)
    rows = []
    for name, model in {
        "sonnets": load_gpt("sonnets", "cpu")[1],
        "larger": larger(),
    }.items():
        context = model.config.context
        lengths = [context // part for part in (8, 4, 2, 1)]
        rows += [{"model": name} | measure(model, length, turns) for length in lengths]
    summary = {"benchmark": "generation", "threads": 1, "turns": turns}
    faster = {row["model"]: round(row["times_faster"], 2) for row in rows}  # the longest
    report(rows, summary | {"times_faster": faster})
    right = all(r["same_text"] and r["cache_bytes"] == r["by_formula"] for r in rows)
    return int(not right or faster["larger"] < FASTER)
