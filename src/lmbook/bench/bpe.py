"""Train BPE on a text: incremental pair counts, recount-everything, ``tokenizers``.

All rows learn byte-level merges from the same text, cut by GPT-2's pattern, with the same
tie-break, and must learn the same ones. Each runs in a process of its own.

- ``naive``: the chapter's first form, which after every merge recounts all pairs of all
  distinct pieces, each weighted with its frequency (Sennrich et al. 2016, algorithm 1).
- ``incremental``: `lmcourse.tokenization.train_bpe`.
- ``tokenizers``: the library's Rust trainer.

Each row's time is all of it: to cut the text, to count the pieces and to learn.
"""

import json
import os
from collections import Counter
from collections.abc import Callable

import tokenizers

from lmbook.bench import report
from lmbook.bench.measure import isolated
from lmcourse.data import load_corpus
from lmcourse.tokenization import pre_tokenize, train_bpe
from studies.tokenization.shown import naive_train_bpe

MERGES, REPEAT = 256, 3  # of which the fastest counts


def library_train_bpe(text: str, merges: int) -> list[tuple[str, str]]:
    """Learn merges with the ``tokenizers`` library.

    Parameters
    ----------
    text : str
    merges : int
        How many.

    Returns
    -------
    list of (str, str)
        The pairs of tokens that are merged, in the order of learning. Each byte of a token
        is one of the characters that GPT-2 writes bytes in: "Ġ" is a space.
    """
    byte_level = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE())
    tokenizer.pre_tokenizer = byte_level
    options = {"initial_alphabet": byte_level.alphabet(), "show_progress": False}
    trainer = tokenizers.trainers.BpeTrainer(vocab_size=256 + merges, **options)
    tokenizer.train_from_iterator([text], trainer)
    return [tuple(pair) for pair in json.loads(tokenizer.to_str())["model"]["merges"]]


def _timed_function(method: str, text: str, merges: int) -> Callable[[], list]:
    """Return the function that is timed, by the name of a method.

    Parameters
    ----------
    method : str
        "naive" recounts all pairs after every merge, "incremental" is the course's
        `train_bpe`, "tokenizers" the library's trainer.
    text : str
        What is cut into pieces and learned from.
    merges : int
        How many are learned.

    Returns
    -------
    callable
        Without arguments: cuts and learns, and returns the merges, a list of pairs of
        tokens in the order of learning.
    """
    return {
        "naive": lambda: naive_train_bpe(Counter(pre_tokenize(text)).items(), merges),
        "incremental": lambda: train_bpe(Counter(pre_tokenize(text)), merges),
        "tokenizers": lambda: library_train_bpe(text, merges),
    }[method]


def main(corpus: str = "sonnets") -> int:
    """Learn `MERGES` merges of BPE from a text in three ways, and print how long each took.

    Of each way, the fastest of `REPEAT` runs counts, with its seconds and its peak memory.

    Parameters
    ----------
    corpus : str
        "sonnets", the name of another corpus, or the path of a UTF-8 file.

    Returns
    -------
    int
        The exit status: 1 if the three learn different merges, else 0.
    """
    text = load_corpus(corpus)
    best = {}
    os.environ["TOKENIZERS_PARALLELISM"] = "true"  # the library as it comes
    for method in ["naive", "incremental", "tokenizers"]:
        runs = [isolated(_timed_function, method, text, MERGES) for _ in range(REPEAT)]
        best[method] = min(runs, key=lambda run: run["seconds"])
    same = len({tuple(run["result"]) for run in best.values()}) == 1
    naive, ours, library = (run["seconds"] for run in best.values())
    summary = {
        "benchmark": "bpe",
        "merges": MERGES,
        "same_merges": same,
        "naive_over_incremental": round(naive / ours, 2),
        "incremental_over_tokenizers": round(ours / library, 2),
    }
    rows = [
        {"trainer": method, "seconds": run["seconds"], "peak MiB": run["peak_mib"]}
        for method, run in best.items()
    ]
    report(rows, summary)
    return 0 if same else 1
