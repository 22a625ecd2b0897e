"""Train BPE on a text: incremental pair counts, recount-everything, ``tokenizers``.

All rows learn byte-level merges from the same text, cut by GPT-2's pattern, with the same
tie-break, and must learn the same ones. Each runs in a process of its own.

- ``naive``: the chapter's first form, which after every merge recounts all pairs of all
  distinct pieces, each weighted with its frequency (Sennrich et al. 2016, algorithm 1).
- ``incremental``: `lmcourse.tokenization.train_bpe`.
- ``cutting``: cuts the text and counts the pieces, which the two rows above are given.
- ``tokenizers``: the library's Rust trainer, which does its own cutting; so it is compared
  with the sum of ``cutting`` and ``incremental``.
"""

import json
import os
from collections import Counter
from collections.abc import Callable

import tokenizers

from lmbook.bench import report
from lmcourse.data import load_corpus
from lmcourse.measure import isolated
from lmcourse.tokenization import pre_tokenize, train_bpe
from studies.chapter import page

MERGES, REPEAT = 256, 3  # of which the fastest counts


def library_train_bpe(text: str, merges: int) -> list[tuple[str, str]]:
    """Learn the merges with the ``tokenizers`` library."""
    byte_level = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE())
    tokenizer.pre_tokenizer = byte_level
    options = {"initial_alphabet": byte_level.alphabet(), "show_progress": False}
    trainer = tokenizers.trainers.BpeTrainer(vocab_size=256 + merges, **options)
    tokenizer.train_from_iterator([text], trainer)
    return [tuple(pair) for pair in json.loads(tokenizer.to_str())["model"]["merges"]]


def _prepare(method: str, text: str, merges: int) -> Callable[[], list]:
    """Prepare what is not timed; return what is."""
    words = Counter(pre_tokenize(text))
    return {
        "naive": lambda: page("tokenization").naive_train_bpe(words.items(), merges),
        "incremental": lambda: train_bpe(words, merges),
        "cutting": lambda: len(Counter(pre_tokenize(text))),
        "tokenizers": lambda: library_train_bpe(text, merges),
    }[method]


def main(corpus: str = "sonnets") -> int:
    """Run the benchmark on the sonnets or a UTF-8 file; 1 if the merges differ."""
    text, best = load_corpus(corpus), {}
    os.environ["TOKENIZERS_PARALLELISM"] = "true"  # the library as it comes
    for method in ["naive", "incremental", "cutting", "tokenizers"]:
        runs = [isolated(_prepare, method, text, MERGES) for _ in range(REPEAT)]
        best[method] = min(runs, key=lambda run: run["seconds"])
    trainers = best.keys() - {"cutting"}
    same = len({tuple(best[method]["result"]) for method in trainers}) == 1
    seconds = {method: run["seconds"] for method, run in best.items()}
    ours = seconds["incremental"] + seconds["cutting"]
    summary = {
        "benchmark": "bpe",
        "merges": MERGES,
        "same_merges": same,
        "naive_over_incremental": round(seconds["naive"] / seconds["incremental"], 2),
        "cutting_and_incremental_over_tokenizers": round(ours / seconds["tokenizers"], 2),
    }
    rows = [
        {"trainer": method, "seconds": run["seconds"], "peak MiB": run["peak_mib"]}
        for method, run in best.items()
    ]
    report(rows, summary)
    return 0 if same else 1
