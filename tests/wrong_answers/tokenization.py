"""What goes wrong in the exercises of *tokenization*, diagnosis → answer."""

from collections import Counter
from itertools import pairwise

import torch


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


WRONG = {
    "most_frequent_pair": {
        "the pair alone": pair_with_the_count,
        "each word was counted once": pair_of_words_counted_once,
        "counts twice": pair_once_a_word,
        "one word into the next": pair_across_words,
        "first in the alphabet": pair_last_on_a_tie,
        "is not the most frequent pair": pair_least_frequent,
    },
    "apply_merge": {
        "only the first place": merge_first_only,
        "from left to right": merge_from_the_right,
        "joins only one neighbour": merge_with_overlap,
        "last symbol": merge_without_the_last,
        "has changed": merge_in_place,
        "a list of strings": merge_to_a_string,
        "strings only": lambda symbols, pair: [1],
        "the strings differ": lambda symbols, pair: list(symbols),
    },
    "segment_word": {
        "WordPiece's way": segment_longest,
        "only the first place": segment_first_place_only,
        "last learned to the first": segment_backwards,
    },
    "longest_match": {
        "shortest piece": lambda w, v: match(w, v, order=iter),
        "with ##": lambda w, v: match(w, v, mark=""),
        "belongs to the piece": lambda w, v: match(w, v, shown=False),
        "the whole word": lambda w, v: match(w, v, whole=False),
    },
    "pad_batch": {
        "two things": lambda b, p: padded(b, p)[0],
        "before the tokens": lambda b, p: padded(b, p, left=True),
        "not with 0": pad_with_zero,
        "cut to the shortest": lambda b, p: padded(b, p, size=min),
        "upside down": lambda b, p: padded(b, p, kept=0),
        "padding's ID": lambda b, p: padded(b, p, mask=lambda i: int(i != p)),
        "the ID 0": lambda b, p: padded(b, p, mask=lambda i: int(i != 0)),
        "every place is 1": lambda b, p: padded(b, p, mask=lambda i: 1),
    },
    "stream": {
        "cut in two": lambda t: [b.decode(errors="replace") for b in t],
        "thrown away": lambda t: [b.decode(errors="ignore") for b in t],
        "until the end": lambda t: [""] * (len(t) - 1) + [b"".join(t).decode()],
        "what is new": lambda t: [
            b"".join(t[: n + 1]).decode(errors="ignore") for n in range(len(t))
        ],
    },
}


def padded_tensors(batch, pad_id):
    ids, mask = padded(batch, pad_id)
    return torch.tensor(ids), torch.tensor(mask)


RIGHT = {
    "pad_batch": [padded_tensors],
    "longest_match": [lambda word, vocab: tuple(match(word, vocab))],
}
