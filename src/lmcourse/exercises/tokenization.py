"""Checks for the chapter *tokenization*; the oracles are the ``tokenizers`` library's."""

import json
import re
from bisect import bisect_left
from functools import cache
from itertools import accumulate, pairwise

import tokenizers

from lmcourse.data import load_poems, load_sonnets
from lmcourse.exercises import Wrong, exercise, expect, predict, run
from lmcourse.exercises.answers import diagnose, number, strings, type_name

# Compare with the cut that the toy language's merges make.
predict(
    "tokenization.fall",
    a="all is in two of the words, but was it ever made? See what t was joined to.",
    b=None,
    c="that would need fall as a symbol; the merges make only what was counted.",
    d="every letter of it is known, so nothing is unknown.",
)


def _replaced(symbols: tuple, pair: tuple) -> tuple:
    """Join as the five lines of the exercise do."""
    return tuple(" ".join(symbols).replace(" ".join(pair), "".join(pair)).split())


def _library_merge(symbols: tuple, pair: tuple) -> list[str]:
    """Join a pair as the library does, each symbol standing for a single letter."""
    letters = {s: chr(0x4E00 + n) for n, s in enumerate(dict.fromkeys([*symbols, *pair]))}
    left, right = (letters[symbol] for symbol in pair)
    known = [*letters.values(), left + right]
    model = tokenizers.models.BPE({s: n for n, s in enumerate(known)}, [(left, right)])
    written = {letter: symbol for symbol, letter in letters.items()}
    written[left + right] = "".join(pair)
    tokens = model.tokenize("".join(letters[symbol] for symbol in symbols))
    return [written[token.value] for token in tokens]


@exercise("tokenization.joined_by_replace", kind="spot the bug")
def joined_by_replace(answer):
    """Join what the reader found both ways."""
    if not isinstance(answer, (list, tuple)) or len(answer) != 2:
        raise Wrong(
            f"give (symbols, pair), two tuples of strings; this is a {type_name(answer)}."
        )
    symbols, pair = (tuple(strings(part)) for part in answer)
    if len(pair) != 2:
        raise Wrong(f"a pair is two symbols; {pair} is {len(pair)}.")
    if any(len(symbol.split()) != 1 or " " in symbol for symbol in (*symbols, *pair)):
        raise Wrong("use symbols without spaces, none of them empty: words have none.")
    right, shown = tuple(_library_merge(symbols, pair)), _replaced(symbols, pair)
    if right == shown:
        raise Wrong(
            f"for {symbols} and {pair} both give {shown}. Find symbols in which the pair's "
            "letters and the space stand next to each other, but the pair does not."
        )


# Compare with GPT-2's own vocabulary.
predict(
    "tokenization.magikarp",
    a="gold and fish are common, too, and not joined. What counts is how often the "
    "whole stood in the text that the merges were learned from.",
    b="rare in books; but the merges were learned from the web.",
    c="single letters are left only where no merge fits.",
    d=None,
)


def _longest_text(data: bytes) -> str:
    """Return the text of the longest beginning that is UTF-8."""
    for end in range(len(data), -1, -1):
        try:
            return data[:end].decode()
        except UnicodeDecodeError:
            continue
    return ""


STREAM = [b"caf", b"\xc3", b"\xa9 ", b"\xf0\x9f", b"\xa6", b"\x8b!"]


@exercise("tokenization.stream")
def stream(answer):
    """Compare with what more each further piece completes."""
    shown = ["", *map(_longest_text, accumulate(STREAM))]
    want = [after[len(before) :] for before, after in pairwise(shown)]
    mistakes = {
        "a character cut in two was replaced by \ufffd; keep its bytes until the rest "
        "arrives.": [piece.decode(errors="replace") for piece in STREAM],
        "bytes were thrown away, and with them a character.": [
            piece.decode(errors="ignore") for piece in STREAM
        ],
        "everything was kept until the end; show what is complete.": (
            [""] * (len(STREAM) - 1) + shown[-1:]
        ),
        "all of the text was returned each time; return what is new.": shown[1:],
    }
    expect(answer, [STREAM], want, mistakes)
    mixed = [b"a \xf0\x9f", b"\xa6\x8b"]  # one token ends a character and begins another
    kept = "a whole character was kept back, for another in the same token was not."
    expect(answer, [mixed], ["a ", "\U0001f98b"], {kept: ["", "a \U0001f98b"]})


BY_GRAMMAR = {"recordless", "overtakelessness", "unlovely", "crumbless", "brooding"}
JUDGED = {
    "nightingale": "two of its pieces are words; but what does the bird do at night? And "
    "is -ing- an ending here?",
    "unsifted": "one cut is right; all of them have to be.",
    **dict.fromkeys(
        ["feathered", "lonesome", "degreeless"], "one of its pieces ends inside the stem."
    ),
}


@exercise("tokenization.seams", kind="judge")
def seams(answer):
    """Compare with the course's own judgement, word by word."""
    chosen = dict.fromkeys(word.strip().lower() for word in strings(answer))
    if not chosen:
        raise Wrong("the list is empty: which of the ten would a grammar cut so?")
    for word in chosen:
        if word not in BY_GRAMMAR and word not in JUDGED:
            raise Wrong(f"{word!r} is not among the ten.")
    for word in chosen:
        if word in JUDGED:
            raise Wrong(f"look again at {word}: {JUDGED[word]}")
    if missing := len(BY_GRAMMAR - chosen.keys()):
        raise Wrong(
            f"all that you chose is right, and {missing} more of the ten would be. A seam "
            "may stay uncut; only what is cut must be a seam."
        )


def _fewest(lengths: list[int], room: int) -> int:
    """Return the least number of windows, every way of cutting tried."""
    best = [0]  # for the first n stanzas
    for n in range(1, len(lengths) + 1):
        starts = [k for k in range(n) if k == n - 1 or sum(lengths[k:n]) <= room]
        best.append(1 + min(best[k] for k in starts))
    return best[-1]


PACKED = {
    "several to a window": ([30, 20, 40, 25, 10, 60], 102),
    "exactly full": ([50, 50, 40, 60, 60, 40], 102),
    "two places are taken": ([50, 51, 20], 102),
    "one too long": ([20, 150, 30, 30], 102),
    "the first too long": ([150, 30, 30], 102),
    "small ones later": ([60, 60, 30, 30], 102),
    "no text": ([], 102),
}


def _windows(value: object) -> list[list[int]]:
    if not isinstance(value, (list, tuple)) or not all(
        isinstance(window, (list, tuple)) for window in value
    ):
        raise Wrong("return a list of windows, each a list of stanza numbers.")
    return [[int(number(stanza)) for stanza in window] for window in value]


def _faults(windows: list[list[int]], lengths: list[int], context: int) -> dict[str, bool]:
    """Return diagnosis → whether the windows have it; the first that they have counts."""
    numbers, order = [*range(len(lengths))], [stanza for w in windows for stanza in w]
    forgotten = order == numbers[: len(order)] != numbers
    whole = windows if order == numbers else []
    sizes = [sum(lengths[stanza] for stanza in w) for w in whole if len(w) > 1]
    return {
        "the last window was forgotten": forgotten,
        "the windows hold the stanzas' numbers, 0, 1, 2, …, not their lengths": (
            order == lengths != numbers
        ),
        "every stanza once, in the order of the text": order != numbers,
        "there is an empty window": not all(windows),
        "a window has no room for [CLS] and [SEP], which take two places of it": any(
            context - 2 < size <= context for size in sizes
        ),
        "a window holds more than the model takes": any(size > context for size in sizes),
        "fewer windows would do; one may be filled to its last place": (
            len(windows) > _fewest(lengths, context - 2)
        ),
    }


@exercise("tokenization.pack")
def pack(answer):
    """Look at the windows: whole, in order, none too long, as few as possible."""
    for case, (lengths, context) in PACKED.items():
        got = _windows(run(answer, lengths, context))
        example = f" (case: {case}). For {lengths} and {context} you gave {got}."
        faults = _faults(got, lengths, context)
        diagnose({text + example: found for text, found in faults.items()})


LEAST = 2.2  # tokens per word, which the poems are to stay below
SIZES = range(256, 4097, 128)


@cache
def _trained(text: str) -> tuple[dict[str, int], list]:
    """Return the vocabulary and the merges of the largest size, the library's."""
    byte_level = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    library = tokenizers.Tokenizer(tokenizers.models.BPE())
    library.pre_tokenizer = byte_level
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=SIZES[-1], initial_alphabet=byte_level.alphabet(), show_progress=False
    )
    library.train_from_iterator([text], trainer)
    model = json.loads(library.to_str())["model"]
    return model["vocab"], [tuple(pair) for pair in model["merges"]]


@cache
def _smallest(train_on: str, test_on: str, words: int) -> int:
    """Return the smallest size that does; a smaller one has the first of the merges."""
    vocab, merges = _trained(train_on)

    def enough(size: int) -> bool:
        known = {symbol: n for symbol, n in vocab.items() if n < size}
        library = tokenizers.Tokenizer(tokenizers.models.BPE(known, merges[: size - 256]))
        library.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
        return len(library.encode(test_on).ids) < LEAST * words

    return SIZES[bisect_left(SIZES, True, key=enough)]


def _words(text: str) -> int:
    """Count words as the page does."""
    return len(re.findall(r"[a-z]+(?:'[a-z]+)*", re.sub(r"\B't ", "'t", text.lower())))


@exercise("tokenization.vocabulary", kind="experiment")
def vocabulary(answer):
    """Train the library's BPE on the Sonnets, and compare the size."""
    got = int(number(answer))
    sonnets, poems = ("\n\n".join(x().text) for x in (load_sonnets, load_poems))
    want = _smallest(sonnets, poems, _words(poems))
    if got == want:
        return None
    return {
        "that is the number of merges; the 256 bytes are in the vocabulary, too.": got
        == want - 256,
        "that is enough for the Sonnets, which the merges were learned from; the "
        "poems are the test.": got == _smallest(sonnets, sonnets, _words(sonnets)),
        "you learned from the poems themselves; learn from the Sonnets.": got
        == _smallest(poems, poems, _words(poems)),
        "count words with `words_of`; cut at white space there are others.": got
        == _smallest(sonnets, poems, len(poems.split())),
        "try steps of 128, from 256 on.": got not in SIZES,
        "with that many the poems still cost more.": got < want,
        "that is enough, but not the smallest.": got > want,
    }
