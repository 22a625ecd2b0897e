"""Checks for the chapter *tokenization*; the oracles are the ``tokenizers`` library's."""

from collections import Counter
from itertools import accumulate, pairwise

import tokenizers
import torch
from torch.nn.utils.rnn import pad_sequence

from lmcourse.exercises import Wrong, compare, exercise, expect, run
from lmcourse.exercises.answers import several, strings


def _library_first_merge(corpus: dict) -> tuple[str, str]:
    """Return the two letters that the library joins first."""
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE())
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
    words = ["".join(symbols) for symbols, n in corpus.items() for _ in range(n)]
    alphabet = sorted(set("".join(words)))
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=len(alphabet) + 1, initial_alphabet=alphabet, show_progress=False
    )
    tokenizer.train_from_iterator(words, trainer)
    return tuple(max(tokenizer.get_vocab().items(), key=lambda item: item[1])[0])


def _tally(pairs) -> tuple[str, str]:
    """Return the heaviest pair of (pair, weight), on a tie the alphabetically first."""
    totals = Counter()
    for pair, weight in pairs:
        totals[pair] += weight
    return min(totals, key=lambda pair: (-totals[pair], pair))


PAIR_CASES = {
    "words that occur often": {"cab": 1, "cad": 1, "dub": 5},
    "a pair twice in a word": {"banana": 2, "bad": 1},
    "a tie": {"zb": 2, "az": 2, "by": 2},
    "short words": {"ab": 3, "ba": 2, "cb": 1},
}


@exercise("tokenization.most_frequent_pair")
def most_frequent_pair(answer):
    """Compare with the first merge that the library learns."""
    for case, words in PAIR_CASES.items():
        corpus = {tuple(word): n for word, n in words.items()}
        got = run(answer, corpus)
        if not (isinstance(got, tuple) and [type(s) for s in got] == [str, str]):
            raise Wrong("return the pair alone, a tuple of two symbols.")
        if got == _library_first_merge(corpus):
            continue
        inside = [(p, n) for symbols, n in corpus.items() for p in pairwise(symbols)]
        once = [(p, n) for symbols, n in corpus.items() for p in set(pairwise(symbols))]
        run_on = pairwise(s for symbols, n in corpus.items() for s in symbols * n)
        best = max(sum(n for p, n in inside if p == pair) for pair, _ in inside)
        tied = sum(n for p, n in inside if p == got) == best
        mistakes = {
            "each word was counted once; count it as often as it occurs": _tally(
                (pair, 1) for pair, _ in inside
            ),
            "a pair that stands twice in a word counts twice": _tally(once),
            "a pair never reaches from one word into the next": _tally(
                (pair, 1) for pair in run_on
            ),
            "on a tie, take the pair that comes first in the alphabet": tied and got,
            "that is not the most frequent pair": got,
        }
        diagnosis = next(text for text, wrong in mistakes.items() if got == wrong)
        raise Wrong(f"{diagnosis} (case: {case}). For {corpus} you gave {got}.")


def _library_bpe(word: str, merges: list[tuple[str, str]]) -> list[str]:
    symbols = {*word, *(s for pair in merges for s in (*pair, "".join(pair)))}
    vocab = {symbol: i for i, symbol in enumerate(sorted(symbols))}
    return [token.value for token in tokenizers.models.BPE(vocab, merges).tokenize(word)]


def _join(symbols, pair, most=99, step=1) -> list[str]:
    """Join a pair at so many places, from the left or, with step -1, from the right."""
    symbols, joined = list(symbols)[::step], []
    while symbols:
        both = tuple(symbols[:2][::step]) == pair and most > 0
        most -= both
        joined.append("".join(pair) if both else symbols[0])
        del symbols[: 1 + both]
    return joined[::step]


MERGE_CASES = [
    ("banana", "an"),
    ("aaaaa", "aa"),
    ("tall", "ll"),
    ("x", "xx"),
    ("cab", "ba"),
]


@exercise("tokenization.apply_merge")
def apply_merge(answer):
    """Compare with the library's model of a single merge."""
    for word, letters in MERGE_CASES:
        symbols, pair = list(word), tuple(letters)
        got = strings(run(answer, symbols, pair, keep=True))
        if symbols != list(word):
            raise Wrong("the list you were given has changed; build a new one.")
        if len("".join(got)) > len(word):
            raise Wrong(
                f"a symbol joins only one neighbour: {word!r} became {got}, where one was "
                "used twice. After a match, go on behind it."
            )
        if "".join(got) != word:
            raise Wrong(
                f"a merge loses no character, but {word!r} became {got}. Is the last "
                "symbol kept when nothing follows it?"
            )
        mistakes = {
            "only the first place was merged; merge every one.": _join(word, pair, 1),
            "merge from left to right.": _join(word, pair, step=-1),
        }
        expect(answer, [symbols, pair], _library_bpe(word, [pair]), mistakes)


def _in_turn(word: str, merges, most=99) -> list[str]:
    symbols = list(word)
    for pair in merges:
        symbols = _join(symbols, pair, most)
    return symbols


SEGMENT_CASES = [
    ("abc", [("b", "c"), ("a", "b"), ("ab", "c")]),
    ("cacao", [("c", "a"), ("ca", "o")]),
    ("lowlow", [("l", "o"), ("lo", "w")]),
    ("xyz", [("a", "b")]),
]


@exercise("tokenization.segment_word")
def segment_word(answer):
    """Compare with the library's BPE."""
    for word, merges in SEGMENT_CASES:
        mistakes = {
            "this takes the longest known symbol each time, which is WordPiece's way; BPE "
            "repeats its merges in the order learned.": _match(
                word, {*word, *map("".join, merges)}, mark=""
            ),
            "only the first place of each merge was joined.": _in_turn(word, merges, 1),
            "the merges were applied from the last learned to the first.": _in_turn(
                word, reversed(merges)
            ),
        }
        expect(answer, [word, merges], _library_bpe(word, merges), mistakes)


def _library_wordpiece(word: str, vocab: set[str]) -> list[str]:
    ids = {piece: i for i, piece in enumerate(sorted({"[UNK]", *vocab}))}
    model = tokenizers.models.WordPiece(ids, unk_token="[UNK]")
    return [token.value for token in model.tokenize(word)]


def _match(word: str, vocab: set[str], *, longest=True, mark="##", whole=True) -> list[str]:
    """Match from the left, with the mistakes that the check looks for."""
    pieces, start = [], 0
    while start < len(word):
        before = mark if start else ""
        ends = range(start + 1, len(word) + 1)
        fits = [end for end in ends if before + word[start:end] in vocab]
        if not fits:
            return ["[UNK]"] if whole else [*pieces, "[UNK]"]
        end = max(fits) if longest else min(fits)
        pieces.append(before + word[start:end])
        start = end
    return pieces


PIECE_CASES = [
    ("feathers", {"f", "feat", "feather", "##her", "##s", "##eathers", "##ers"}),
    ("unsung", {"un", "unsung", "##s", "##sung"}),
    ("tallest", {"tall", "##e", "##est", "est", "##st"}),
    ("tallness", {"tall", "##n", "##ne"}),
    ("zephyr", {"z", "##ep"}),
    ("xylem", {"##xylem", "y"}),
]


@exercise("tokenization.longest_match")
def longest_match(answer):
    """Compare with the library's WordPiece."""
    for word, vocab in PIECE_CASES:
        mistakes = {
            "the shortest piece was taken; take the longest.": _match(
                word, vocab, longest=False
            ),
            "a piece that does not begin the word is looked up, and returned, with ## "
            "before it.": _match(word, vocab, mark=""),
            "the ## belongs to the piece: return it too.": [
                piece.removeprefix("##") for piece in _match(word, vocab)
            ],
            "where nothing fits, the whole word is [UNK], not its rest.": _match(
                word, vocab, whole=False
            ),
        }
        expect(answer, [word, vocab], _library_wordpiece(word, vocab), mistakes)


@exercise("tokenization.pad_batch")
def pad_batch(answer):
    """Compare with PyTorch's `pad_sequence`."""
    batch, pad_id = [[5, 9, 2, 7], [3], [7, 0, 4]], 7
    ids, mask = several(run(answer, batch, pad_id), 2, "two things: the IDs and the mask")
    rows = [torch.tensor(row) for row in batch]
    want = pad_sequence(rows, batch_first=True, padding_value=pad_id)
    kept = pad_sequence([torch.ones_like(row) for row in rows], batch_first=True)
    wrong_ids = {
        "the padding stands before the tokens; BERT's stands behind them.": pad_sequence(
            rows, True, pad_id, padding_side="left"
        ),
        "pad with pad_id, not with 0.": pad_sequence(rows, batch_first=True),
        "the rows were cut to the shortest; fill them up to the longest.": [[5], [3], [7]],
    }
    wrong_masks = {
        "the mask is upside down: 1 is a token, 0 is padding.": 1 - kept,
        "the mask was read off the IDs: a true token may have the padding's ID. Use the "
        "lengths.": (want != pad_id).long(),
        "the mask was read off the IDs: a true token may have the ID 0. Use the lengths.": (
            (want != 0).long()
        ),
        "every place is 1; padding must be 0.": torch.ones_like(kept),
    }
    compare(ids, want, wrong_ids)
    compare(mask, kept, wrong_masks)


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
