"""The exercises of *tokenization*: each known mistake is recognised and named."""

from collections import Counter
from itertools import pairwise

import pytest
import torch

from lmcourse import exercises

CHAPTER = "tokenization"


def tally(pairs):
    counts = Counter()
    for pair, n in pairs:
        counts[pair] += n
    return min(counts, key=lambda p: (-counts[p], p))


def pair_with_the_count(corpus):
    return "ab", 3


def pair_of_words_counted_once(corpus):
    return tally((p, 1) for s in corpus for p in pairwise(s))


def pair_once_a_word(corpus):
    return tally((p, n) for s, n in corpus.items() for p in set(pairwise(s)))


def pair_across_words(corpus):
    return tally((p, 1) for p in pairwise(c for s, n in corpus.items() for c in s * n))


def pair_last_on_a_tie(corpus):
    counts = Counter()
    for s, n in corpus.items():
        for p in pairwise(s):
            counts[p] += n
    return max(counts, key=lambda p: (counts[p], p))


def pair_least_frequent(corpus):
    counts = Counter()
    for s, n in corpus.items():
        for p in pairwise(s):
            counts[p] += n
    return min(counts, key=lambda p: (counts[p], p))


def merge_first_only(symbols, pair):
    for i, both in enumerate(pairwise(symbols)):
        if both == pair:
            return [*symbols[:i], "".join(pair), *symbols[i + 2 :]]
    return list(symbols)


def merge_from_the_right(symbols, pair):
    symbols, i = list(symbols), len(symbols) - 2
    while i >= 0:
        if tuple(symbols[i : i + 2]) == pair:
            symbols[i : i + 2] = ["".join(pair)]
            i -= 1
        i -= 1
    return symbols


def merge_with_overlap(symbols, pair):
    joined = ["".join(p) if p == pair else p[0] for p in pairwise(symbols)]
    return joined + symbols[-1:]


def merge_without_the_last(symbols, pair):
    got, i = [], 0
    while i < len(symbols) - 1:
        both = (symbols[i], symbols[i + 1]) == pair
        got.append(symbols[i] + symbols[i + 1] if both else symbols[i])
        i += 1 + both
    return got


def merge_in_place(symbols, pair):
    i = 0
    while i < len(symbols) - 1:
        if (symbols[i], symbols[i + 1]) == pair:
            symbols[i : i + 2] = ["".join(pair)]
        i += 1
    return symbols


def merge_to_a_string(symbols, pair):
    return " ".join(symbols)


def segment_longest(word, merges):
    known = {*word, *("".join(p) for p in merges)}
    got = []
    while word:
        end = next(e for e in range(len(word), 0, -1) if word[:e] in known)
        got.append(word[:end])
        word = word[end:]
    return got


def segment_first_place_only(word, merges):
    symbols = list(word)
    for pair in merges:
        symbols = merge_first_only(symbols, pair)
    return symbols


def segment_backwards(word, merges):
    symbols = list(word)
    for pair in reversed(merges):
        merge_in_place(symbols, pair)
    return symbols


def match(word, vocab, order=reversed, mark="##", whole=True, shown=True):
    got, start = [], 0
    while start < len(word):
        for end in order(range(start + 1, len(word) + 1)):
            piece = (mark if start else "") + word[start:end]
            if piece in vocab:
                break
        else:
            return ["[UNK]"] if whole else [*got, "[UNK]"]
        got.append(piece if shown else piece.removeprefix("##"))
        start = end
    return got


def padded(batch, pad_id, *, left=False, kept=1, mask=None, size=max):
    size = size(map(len, batch))
    ids = [
        [pad_id] * (size - len(row)) * left
        + row[:size]
        + [pad_id] * (size - len(row)) * (not left)
        for row in batch
    ]
    full = [[kept] * len(row) + [1 - kept] * (size - len(row)) for row in batch]
    return ids, [[mask(i) for i in row] for row in ids] if mask else full


def pad_with_zero(batch, pad_id):
    return padded(batch, 0)[0], padded(batch, pad_id)[1]


MISTAKES = [
    ("most_frequent_pair", pair_with_the_count, "the pair alone"),
    ("most_frequent_pair", pair_of_words_counted_once, "each word was counted once"),
    ("most_frequent_pair", pair_once_a_word, "counts twice"),
    ("most_frequent_pair", pair_across_words, "one word into the next"),
    ("most_frequent_pair", pair_last_on_a_tie, "first in the alphabet"),
    ("most_frequent_pair", pair_least_frequent, "is not the most frequent pair"),
    ("apply_merge", merge_first_only, "only the first place"),
    ("apply_merge", merge_from_the_right, "from left to right"),
    ("apply_merge", merge_with_overlap, "joins only one neighbour"),
    ("apply_merge", merge_without_the_last, "last symbol"),
    ("apply_merge", merge_in_place, "has changed"),
    ("apply_merge", merge_to_a_string, "a list of strings"),
    ("apply_merge", lambda symbols, pair: [1], "strings only"),
    ("apply_merge", lambda symbols, pair: list(symbols), "should not give"),
    ("segment_word", segment_longest, "WordPiece's way"),
    ("segment_word", segment_first_place_only, "only the first place"),
    ("segment_word", segment_backwards, "last learned to the first"),
    ("longest_match", lambda w, v: match(w, v, order=iter), "shortest piece"),
    ("longest_match", lambda w, v: match(w, v, mark=""), "with ##"),
    ("longest_match", lambda w, v: match(w, v, shown=False), "belongs to the piece"),
    ("longest_match", lambda w, v: match(w, v, whole=False), "the whole word"),
    ("pad_batch", lambda b, p: padded(b, p)[0], "two things"),
    ("pad_batch", lambda b, p: padded(b, p, left=True), "before the tokens"),
    ("pad_batch", pad_with_zero, "not with 0"),
    ("pad_batch", lambda b, p: padded(b, p, size=min), "cut to the shortest"),
    ("pad_batch", lambda b, p: padded(b, p, kept=0), "upside down"),
    ("pad_batch", lambda b, p: padded(b, p, mask=lambda i: int(i != p)), "padding's ID"),
    ("pad_batch", lambda b, p: padded(b, p, mask=lambda i: int(i != 0)), "the ID 0"),
    ("pad_batch", lambda b, p: padded(b, p, mask=lambda i: 1), "every place is 1"),
    ("stream", lambda t: [b.decode(errors="replace") for b in t], "cut in two"),
    ("stream", lambda t: [b.decode(errors="ignore") for b in t], "thrown away"),
    ("stream", lambda t: [""] * (len(t) - 1) + [b"".join(t).decode()], "until the end"),
    (
        "stream",
        lambda t: [b"".join(t[: n + 1]).decode(errors="ignore") for n in range(len(t))],
        "what is new",
    ),
]


@pytest.mark.parametrize(
    ("name", "answer", "diagnosis"), MISTAKES, ids=[f"{m[0]}: {m[2]}" for m in MISTAKES]
)
def test_each_mistake_has_its_diagnosis(name, answer, diagnosis):
    verdict = exercises.check(f"{CHAPTER}.{name}", answer)
    assert not verdict.ok
    assert diagnosis in verdict.message


@pytest.mark.parametrize("name", exercises.names(CHAPTER))
def test_an_error_and_a_wrong_type_are_explained(name):
    def broken(*args):
        raise IndexError("out of range")

    verdict = exercises.check(name, broken)
    assert "IndexError: out of range" in verdict.message
    assert not exercises.check(name, lambda *args: 3).ok
    assert "pass the function itself" in exercises.check(name, 3).message


def test_tensors_and_tuples_are_welcome():
    def as_tensors(batch, pad_id):
        ids, mask = padded(batch, pad_id)
        return torch.tensor(ids), torch.tensor(mask)

    assert exercises.check("tokenization.pad_batch", as_tensors)
    assert exercises.check("tokenization.longest_match", lambda w, v: tuple(match(w, v)))
