"""Train BPE on a text: incremental pair counts, recount-everything, ``tokenizers``.

All four rows cut the same text by GPT-2's pattern into the same pieces, learn byte-level
merges with the same tie-break, and must learn the same ones; each row is timed from the
text to its merges, in a process of its own.

- ``naive``: after every merge, recounts all pairs of all pieces of the text, each piece
  as often as it stands there (Karpathy's minbpe, ``RegexTokenizer``).
- ``naive, distinct``: keeps each distinct piece once, with its frequency, and recounts
  those (Sennrich et al. 2016, algorithm 1).
- ``incremental``: `lmcourse.tokenization.train_bpe`.
- ``tokenizers``: the library's Rust trainer.
"""

import argparse
import json
import os
from collections import Counter
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from pathlib import Path

import tokenizers

from lmcourse import bench
from lmcourse.tokenization import merge_pair, pre_tokenize, train_bpe

__all__ = ["count_pairs", "main", "naive_train_bpe"]


def count_pairs(corpus):
    """Count neighbouring symbols, each word as often as it occurs."""
    counts = Counter()
    for symbols, frequency in corpus:
        for pair in pairwise(symbols):
            counts[pair] += frequency
    return counts


def naive_train_bpe(words, merges):
    """Learn BPE merges by recounting all pairs after each; the tie-break is `train_bpe`'s.

    Parameters
    ----------
    words : iterable of (str, int)
        Words and how often each occurs. A word may come several times.
    merges : int
        How many to learn; fewer are returned if nothing is left to merge.
    """
    corpus = [(tuple(word), frequency) for word, frequency in words]
    characters = sorted({symbol for symbols, _ in corpus for symbol in symbols})
    age = {symbol: i for i, symbol in enumerate(characters)}
    learned = []
    for _ in range(merges):
        counts = count_pairs(corpus)
        if not counts:
            break
        best = min(counts, key=lambda p: (-counts[p], age[p[0]], age[p[1]]))
        learned.append(best)
        age.setdefault(best[0] + best[1], len(age))
        corpus = [(merge_pair(symbols, best), count) for symbols, count in corpus]
    return learned


def library_train_bpe(text: str, merges: int) -> list[tuple[str, str]]:
    """Learn the merges with the ``tokenizers`` library."""
    byte_level = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE())
    tokenizer.pre_tokenizer = byte_level
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=256 + merges,
        initial_alphabet=byte_level.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator([text], trainer)
    return [tuple(pair) for pair in json.loads(tokenizer.to_str())["model"]["merges"]]


def _prepare(method: str, path: str, merges: int) -> Callable[[], list]:
    text = Path(path).read_text(encoding="utf-8")
    return {
        "naive": lambda: naive_train_bpe(((p, 1) for p in pre_tokenize(text)), merges),
        "naive, distinct": lambda: naive_train_bpe(
            Counter(pre_tokenize(text)).items(), merges
        ),
        "incremental": lambda: train_bpe(Counter(pre_tokenize(text)), merges),
        "tokenizers": partial(library_train_bpe, text, merges),
    }[method]


def main(argv: list[str]) -> int:
    """Run the benchmark; 1 if the rows learned different merges."""
    parser = argparse.ArgumentParser(prog="python -m lmcourse.bench bpe")
    parser.add_argument("path", help="a UTF-8 text, such as tiny Shakespeare")
    parser.add_argument("--merges", type=int, default=256)
    parser.add_argument("--repeat", type=int, default=3, help="best of, for fast rows")
    options = parser.parse_args(argv)
    os.environ["TOKENIZERS_PARALLELISM"] = "true"  # the library as it comes
    repeats = {"naive": 1, "naive, distinct": 1}
    best = {}
    for method in ("naive", "naive, distinct", "incremental", "tokenizers"):
        runs = [
            bench.isolated(_prepare, method, options.path, options.merges)
            for _ in range(repeats.get(method, options.repeat))
        ]
        best[method] = min(runs, key=lambda run: run["seconds"])
    same = all(run["result"] == best["naive"]["result"] for run in best.values())
    _report(best, options, same)
    return 0 if same else 1


def _report(best: dict, options: argparse.Namespace, same: bool) -> None:
    seconds = {method: run["seconds"] for method, run in best.items()}
    rows = [
        {
            "trainer": method,
            "seconds": run["seconds"],
            "times faster than naive": seconds["naive"] / run["seconds"],
            "peak MiB": run["peak_mib"],
        }
        for method, run in best.items()
    ]
    ours = seconds["incremental"]
    bench.report(
        rows,
        {
            "benchmark": "bpe",
            "file": Path(options.path).name,
            "merges": options.merges,
            "same_merges": same,
            "seconds": {method: round(value, 4) for method, value in seconds.items()},
            "naive_over_incremental": round(seconds["naive"] / ours, 2),
            "naive_distinct_over_incremental": round(seconds["naive, distinct"] / ours, 2),
            "incremental_over_tokenizers": round(ours / seconds["tokenizers"], 2),
        },
    )
