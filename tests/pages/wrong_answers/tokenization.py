"""What goes wrong in the exercises of *tokenization*, diagnosis → answer."""

import codecs
from functools import reduce
from itertools import pairwise

from lmcourse.tokenization import merge_pair


def by_hand(word, ranks):
    """Learn the order from the ranks, and make one pass over it."""
    symbols = list(word)
    for left, right in sorted(ranks, key=ranks.get):
        i = 0
        while i < len(symbols) - 1:
            if (symbols[i], symbols[i + 1]) == (left, right):
                symbols[i : i + 2] = [left + right]
            i += 1
    return tuple(symbols)


def from_the_left(word, ranks):
    symbols = list(word)
    while indices := [i for i, pair in enumerate(pairwise(symbols)) if pair in ranks]:
        symbols[indices[0] : indices[0] + 2] = [
            "".join(symbols[indices[0] : indices[0] + 2])
        ]
    return tuple(symbols)


def three_joins(word, ranks):
    symbols = list(word)
    for _ in range(3):
        candidates = [(ranks[p], i) for i, p in enumerate(pairwise(symbols)) if p in ranks]
        if candidates:
            i = min(candidates)[1]
            symbols[i : i + 2] = [symbols[i] + symbols[i + 1]]
    return symbols


def complete(tokens):
    """Show what is whole, the longest beginning that can be decoded."""
    shown, got, data = [], "", b""
    for token in tokens:
        data += token
        ends = [end for end in range(len(data) + 1) if _decodes(data[:end])]
        shown.append(data[: ends[-1]].decode()[len(got) :])
        got += shown[-1]
    return shown


def _decodes(data):
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def all_or_nothing(tokens):
    """Hold everything back until the buffer is text."""
    shown, data = [], b""
    for token in tokens:
        data += token
        shown.append(data.decode() if _decodes(data) else "")
        data = data if not _decodes(data) else b""
    return shown


def by_replace(word, ranks):
    """Write the symbols with spaces, and let `str.replace` join."""
    written = " ".join(word)
    for pair in sorted(ranks, key=ranks.get):
        written = written.replace(" ".join(pair), "".join(pair))
    return tuple(written.split())


def from_the_right(word, ranks):
    """Always join the pair learned first, of several the last one in the word."""
    symbols = list(word)
    while candidates := [
        (ranks[p], -i) for i, p in enumerate(pairwise(symbols)) if p in ranks
    ]:
        i = -min(candidates)[1]
        symbols[i : i + 2] = [symbols[i] + symbols[i + 1]]
    return tuple(symbols)


DECODER = codecs.getincrementaldecoder("utf-8")()  # one for all calls


def made_once(tokens):
    return [DECODER.decode(token) for token in tokens]


WRONG = {
    "joined_by_replace": {
        "both give": [
            (("t", "a", "l", "l"), ("a", "l")),
            (["a", "a", "a"], ["a", "a"]),
            (("x",), ("a", "l")),
            ((), ("a", "l")),
        ],
        "two tuples of strings": [("a", "b", "c"), "ab", 7],
        "a list of strings is expected": [("ta l", "a l"), (("a", "b"), "ab")],
        "a pair is two": (("a", "b"), ("a", "b", "c")),
        "without spaces": [
            (("t a", "l"), ("a", "l")),
            (("a", ""), ("a", "l")),
            (("a\u00a0", "b"), ("a", "b")),
        ],
    },
    "segment": {
        "ask which was learned first": from_the_left,
        "stopped after step 3": three_joins,
        "as the dict has them": lambda word, ranks: reduce(merge_pair, ranks, tuple(word)),
        "nothing was joined": lambda word, ranks: tuple(word),
        "compare whole symbols": by_replace,
        "joined from the right": from_the_right,
    },
    "stream": {
        "a whole character was kept back": all_or_nothing,
        "may end inside a character": lambda tokens: [token.decode() for token in tokens],
        "afresh at each call": made_once,
        "shows nothing yet": lambda tokens: [*codecs.iterdecode(tokens, "utf-8")],
        "taken for a character": lambda tokens: [t.decode("latin-1") for t in tokens],
    },
    "vocabulary": {
        "256 bytes": (1664, 1.5),
        "for the Sonnets": (768, 1.5),
        "from the poems themselves": (1152, 1.5),
        "count words with": (1792, 1.5),
        "steps of 128": (1919, 1.5),
        "whole number": [(1920.5, 1.5), (1920.9, 1.5)],
        "still cost more": (1280, 1.5),
        "not the smallest": (2048, 1.5),
        "sonnet by sonnet": (1920, 1.617),
        "not what the Sonnets cost": [(1920, 2.19), (1920, 1.5)],
        "a size, and what": 1920,
    },
}

RIGHT = {
    "stream": [complete],
    "joined_by_replace": [
        (("a", "ll", "y"), ("a", "l")),
        [["ta", "l"], ["a", "l"]],
        (("x", "a", "lx"), ("a", "l")),
    ],
    "segment": [by_hand],
    "vocabulary": [(1920.0, 1.634), [1920, 1.63]],
}

NONSENSE = {
    "joined_by_replace": [
        (("q", "z"), ("x", "v")),
        (("", ""), ("", "")),
        (("l", "a", "t"), ("l", "a")),
    ]
}

TYPED = {"vocabulary": [(1920, 2.19), (1920, 1.5), (2048, 1.6)]}
