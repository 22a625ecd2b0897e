"""Checks for the chapter *tokenization*; the oracles are the ``tokenizers`` library's."""

from itertools import pairwise

import tokenizers
import torch
from torch.nn.utils.rnn import pad_sequence

from lmcourse.exercises import Wrong, compare, exercise, run

__all__: list[str] = []


def _strings(got: object, name: str) -> list[str]:
    """Return the answer as a list of str, or say what is expected."""
    if isinstance(got, str) or not isinstance(got, (list, tuple)):
        raise Wrong(f"{name} should return a list of strings, not {got!r}.")
    if not all(isinstance(symbol, str) for symbol in got):
        raise Wrong(f"{name} should return strings only; yours returned {got!r}.")
    return list(got)


def _expect(got: list[str], want: list[str], case: str, mistakes: dict[str, list]) -> None:
    """Compare strings; recognise a mistake, else show the case and the answer given."""
    if got == want:
        return
    for diagnosis, wrong in mistakes.items():
        if got == wrong:
            raise Wrong(f"{diagnosis} Look at {case}: yours gave {got}.")
    raise Wrong(f"{case} should not give {got}.")


# ---------------------------------------------------------------- most_frequent_pair


def _library_first_merge(corpus: dict) -> tuple[str, str]:
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE())
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
    words = ["".join(symbols) for symbols, n in corpus.items() for _ in range(n)]
    alphabet = sorted(set("".join(words)))
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=len(alphabet) + 1, initial_alphabet=alphabet, show_progress=False
    )
    tokenizer.train_from_iterator(words, trainer)
    merged = max(tokenizer.get_vocab().items(), key=lambda item: item[1])[0]
    return merged[0], merged[1]


def _tally(pairs) -> tuple[str, str]:
    """Return the heaviest pair of (pair, weight), on a tie the alphabetically first."""
    totals: dict[tuple[str, str], int] = {}
    for pair, weight in pairs:
        totals[pair] = totals.get(pair, 0) + weight
    return min(totals, key=lambda pair: (-totals[pair], pair))


PAIR_CASES = [
    ({tuple("cab"): 1, tuple("cad"): 1, tuple("dub"): 5}, "words that occur often"),
    ({tuple("banana"): 2, tuple("bad"): 1}, "a pair twice in a word"),
    ({tuple("zb"): 2, tuple("az"): 2, tuple("by"): 2}, "a tie"),
    ({tuple("ab"): 3, tuple("ba"): 2, tuple("cb"): 1}, "short words"),
]


@exercise("tokenization.most_frequent_pair")
def most_frequent_pair(answer):
    for corpus, case in PAIR_CASES:
        got = run(answer, dict(corpus))
        if not (isinstance(got, tuple) and [type(s) for s in got] == [str, str]):
            raise Wrong(f"return the pair alone, a tuple of two symbols; yours is {got!r}.")
        want = _library_first_merge(corpus)
        if got == want:
            continue
        _explain_pair(got, corpus, case)


def _explain_pair(got: tuple, corpus: dict, case: str) -> None:
    inside = [(p, n) for symbols, n in corpus.items() for p in pairwise(symbols)]
    once = [(p, n) for symbols, n in corpus.items() for p in set(pairwise(symbols))]
    run_on = [s for symbols, n in corpus.items() for s in symbols * n]
    totals = {pair: sum(n for p, n in inside if p == pair) for pair, _ in inside}
    diagnoses = {
        "each word was counted once; count it as often as it occurs.": _tally(
            (pair, 1) for pair, _ in inside
        ),
        "a pair that stands twice in a word counts twice.": _tally(once),
        "a pair never reaches from one word into the next.": _tally(
            (pair, 1) for pair in pairwise(run_on)
        ),
    }
    for diagnosis, wrong in diagnoses.items():
        if got == wrong:
            raise Wrong(f"{diagnosis} (case: {case})")
    if totals.get(got) == max(totals.values()):
        raise Wrong("on a tie, take the pair that comes first in the alphabet.")
    raise Wrong(f"{got} is not the most frequent pair of {corpus} (case: {case}).")


# ----------------------------------------------------------------- apply_merge, segment


def _library_bpe(word: str, merges: list[tuple[str, str]]) -> list[str]:
    symbols = {*word, *(s for pair in merges for s in (*pair, "".join(pair)))}
    vocab = {symbol: i for i, symbol in enumerate(sorted(symbols))}
    model = tokenizers.models.BPE(vocab, merges)
    return [token.value for token in model.tokenize(word)]


def _join_first(symbols: list[str], pair: tuple[str, str]) -> list[str]:
    for i, neighbours in enumerate(pairwise(symbols)):
        if neighbours == pair:
            return [*symbols[:i], "".join(pair), *symbols[i + 2 :]]
    return symbols


def _join_from_the_right(symbols: list[str], pair: tuple[str, str]) -> list[str]:
    symbols, i = list(symbols), len(symbols) - 2
    while i >= 0:
        if tuple(symbols[i : i + 2]) == pair:
            symbols[i : i + 2] = ["".join(pair)]
            i -= 1
        i -= 1
    return symbols


MERGE_CASES = [
    ("banana", "an"),
    ("aaaaa", "aa"),
    ("tall", "ll"),
    ("x", "xx"),
    ("cab", "ba"),
]


@exercise("tokenization.apply_merge")
def apply_merge(answer):
    for word, letters in MERGE_CASES:
        symbols, pair = list(word), (letters[0], letters[1])
        got = _strings(run(answer, symbols, pair, keep=True), "apply_merge")
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
        start = list(word)
        mistakes = {
            "only the first place was merged; merge every one.": _join_first(start, pair),
            "merge from left to right.": _join_from_the_right(start, pair),
        }
        _expect(got, _library_bpe(word, [pair]), f"{word!r} and {pair}", mistakes)


def _greedy(word: str, merges: list[tuple[str, str]]) -> list[str]:
    known = {*word, *("".join(pair) for pair in merges)}
    symbols = []
    while word:
        size = next(size for size in range(len(word), 0, -1) if word[:size] in known)
        symbols.append(word[:size])
        word = word[size:]
    return symbols


def _in_turn(word: str, merges, join) -> list[str]:
    symbols = list(word)
    for pair in merges:
        symbols = join(symbols, pair)
    return symbols


def _join_all(symbols: list[str], pair: tuple[str, str]) -> list[str]:
    while (joined := _join_first(symbols, pair)) != symbols:
        symbols = joined
    return symbols


SEGMENT_CASES = [
    ("abc", [("b", "c"), ("a", "b"), ("ab", "c")]),
    ("cacao", [("c", "a"), ("ca", "o")]),
    ("lowlow", [("l", "o"), ("lo", "w")]),
    ("xyz", [("a", "b")]),
]


@exercise("tokenization.segment_word")
def segment_word(answer):
    for word, merges in SEGMENT_CASES:
        got = _strings(run(answer, word, list(merges)), "segment_word")
        backwards = _in_turn(word, reversed(merges), _join_all)
        mistakes = {
            "this takes the longest known symbol each time, which is WordPiece's way; BPE "
            "repeats its merges in the order learned.": _greedy(word, merges),
            "only the first place of each merge was joined.": _in_turn(
                word, merges, _join_first
            ),
            "the merges were applied from the last learned to the first.": backwards,
        }
        _expect(got, _library_bpe(word, merges), f"{word!r} with {merges}", mistakes)


# -------------------------------------------------------------------------- WordPiece


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
        for end in reversed(ends) if longest else ends:
            if before + word[start:end] in vocab:
                break
        else:
            return ["[UNK]"] if whole else [*pieces, "[UNK]"]
        pieces.append(before + word[start:end])
        start = end
    return pieces


def _unmarked(word: str, vocab: set[str]) -> list[str]:
    return [piece.removeprefix("##") for piece in _match(word, vocab)]


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
    for word, vocab in PIECE_CASES:
        got = _strings(run(answer, word, set(vocab)), "longest_match")
        mistakes = {
            "the shortest piece was taken; take the longest.": _match(
                word, vocab, longest=False
            ),
            "a piece that does not begin the word is looked up, and returned, with ## "
            "before it.": _match(word, vocab, mark=""),
            "the ## belongs to the piece: return it too.": _unmarked(word, vocab),
            "where nothing fits, the whole word is [UNK], not its rest.": _match(
                word, vocab, whole=False
            ),
        }
        want = _library_wordpiece(word, vocab)
        _expect(got, want, f"{word!r} with {sorted(vocab)}", mistakes)


# ------------------------------------------------------------------ pad_batch, stream


@exercise("tokenization.pad_batch")
def pad_batch(answer):
    batch, pad_id = [[5, 9, 2, 7], [3], [7, 0, 4]], 7
    got = run(answer, [list(ids) for ids in batch], pad_id)
    if not isinstance(got, tuple) or len(got) != 2:
        raise Wrong("return two things: the IDs and the mask.")
    ids, mask = got
    rows = [torch.tensor(row) for row in batch]
    ones = [torch.ones(len(row), dtype=torch.long) for row in batch]
    want = pad_sequence(rows, batch_first=True, padding_value=pad_id)
    flipped = pad_sequence([row.flip(0) for row in rows], True, pad_id).flip(1)
    compare(
        ids,
        want,
        {
            "the padding stands before the tokens; BERT's stands behind them.": flipped,
            "pad with pad_id, not with 0.": pad_sequence(rows, batch_first=True),
            "the rows were cut to the shortest; fill them up to the longest.": [
                row[:1] for row in batch
            ],
        },
    )
    kept = pad_sequence(ones, batch_first=True)
    compare(
        mask,
        kept,
        {
            "the mask is upside down: 1 is a token, 0 is padding.": 1 - kept,
            "the mask was read off the IDs: a true token may have the padding's ID. Use "
            "the lengths.": (want != pad_id).long(),
            "the mask was read off the IDs: a true token may have the ID 0. Use the "
            "lengths.": (want != 0).long(),
            "every place is 1; padding must be 0.": torch.ones_like(kept),
        },
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
    got = _strings(run(answer, list(STREAM)), "stream")
    shown = [_longest_text(b"".join(STREAM[:n])) for n in range(len(STREAM) + 1)]
    want = [after[len(before) :] for before, after in pairwise(shown)]
    whole = b"".join(STREAM).decode()
    mistakes = {
        "a character cut in two was replaced by \ufffd; keep its bytes until the rest "
        "arrives.": [piece.decode(errors="replace") for piece in STREAM],
        "bytes were thrown away, and with them a character.": [
            piece.decode(errors="ignore") for piece in STREAM
        ],
        "everything was kept until the end; show what is complete.": [
            *[""] * (len(STREAM) - 1),
            whole,
        ],
        "all of the text was returned each time; return what is new.": shown[1:],
    }
    _expect(got, want, f"{STREAM}", mistakes)
