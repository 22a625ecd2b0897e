"""Checks for the chapter *tokenization*; the oracles are the ``tokenizers`` library's."""

import json
import re
from bisect import bisect_left
from contextlib import suppress
from functools import cache, partial, reduce
from itertools import accumulate, pairwise
from types import SimpleNamespace

import tokenizers

from lmcourse.data import load_poems, load_sonnets
from lmcourse.exercises import Case, Faults, Wrong, exercise, judge, predict, run
from lmcourse.exercises.answers import number, strings, unpack
from lmcourse.tokenization import merge_pair

# Compare with the cut that the toy language's merges make.
predict(
    "tokenization.fall",
    a="all is in two of the words, but was it ever made? See what t was joined to.",
    b=None,
    c="that would need fall as a symbol; the merges make only what was counted.",
    d="every letter of it is known, so nothing is unknown.",
)


# A word, and merges in the order in which they were learned: "a+b ab+ab" joins a and b,
# then ab and ab.
CUT = [
    ("abcz", "a+b b+c a+bc c+z"),
    ("abcde", "b+c c+d a+b d+e"),
    ("fatter_", "a+l t+al tal+l a+s e+r f+as er+_ fas+t"),
    ("tallest_", "a+l t+al tal+l a+s e+r f+as er+_ fas+t tall+_"),
    ("taller_", "a+l t+al tal+l a+s e+r f+as er+_ fas+t tall+er_"),
    ("abab", "a+b ab+ab"),
    ("aaa", "a+a"),
    ("tal", "t+a a+l"),
    ("x", "a+b"),
    ("", "a+b"),
]


def _library_cut(word: str, merges: list) -> list[str]:
    """Cut a word into symbols by BPE, as the `tokenizers` library does.

    ``word`` : str; ``merges`` : list of (str, str), pairs of symbols to join, the first
    learned first. Returns the symbols, a list of str.
    """
    symbols = list(word)
    for left, right in merges:
        symbols += [left, right, left + right]
    vocab = {symbol: n for n, symbol in enumerate(dict.fromkeys(symbols))}
    tokens = tokenizers.models.BPE(vocab, merges).tokenize(word)
    return [token.value for token in tokens]


def _longest_first(word: str, ranks: dict) -> tuple:
    """Split a word as WordPiece does: from the left, the longest known symbol each time.

    Parameters
    ----------
    word : str
    ranks : dict of (str, str) to int
        The merges of a BPE: pair of symbols → its place in the order of learning, which is
        not used. Known are the pairs joined to one symbol, and single letters.

    Returns
    -------
    tuple of str
        The symbols; joined they are the word.
    """
    known = {left + right for left, right in ranks}
    symbols = []
    while word:
        size = len(word)
        while size > 1 and word[:size] not in known:
            size -= 1
        symbols.append(word[:size])
        word = word[size:]
    return tuple(symbols)


def _by_rule(word: str, ranks: dict, choose, joins: int = 99) -> tuple:
    """Split a word by merges, of which a rule says the next.

    Parameters
    ----------
    word : str
    ranks : dict of (str, str) to int
        Each merge's pair of symbols, and its place in the order of learning.
    choose : callable
        Takes a list of pairs and the keyword ``key``, as `min` and `max` do, and returns
        the pair to join, wherever it stands.
    joins : int
        How many merges are made at the most.

    Returns
    -------
    tuple of str
        The symbols when no pair in ``ranks`` is left, or after so many merges.
    """
    symbols = tuple(word)
    for _ in range(joins):
        pairs = [pair for pair in pairwise(symbols) if pair in ranks]
        if not pairs:
            break
        symbols = merge_pair(symbols, choose(pairs, key=ranks.get))
    return symbols


def _in_text(word: str, ranks: dict) -> tuple:
    """Join pair after pair by `str.replace`, a known mistake, in the order of learning.

    ``word`` : str; ``ranks`` : dict of (str, str) to int, each pair of symbols → its place
    in that order. Returns the symbols, a tuple of str. `_replaced` may join the end of a
    longer symbol.
    """
    return reduce(_replaced, sorted(ranks, key=ranks.get), tuple(word))


def _from_the_right(word: str, ranks: dict) -> tuple:
    """Split a word by merges, but join a pair's occurrences from right to left.

    As in BPE, the pair learned first is joined first, until none is left.

    ``word`` : str; ``ranks`` : dict of (str, str) to int, pairs of symbols → their place in
    the order of learning. Returns the symbols, a tuple of str.
    """
    mirrored = {(right[::-1], left[::-1]): n for (left, right), n in ranks.items()}
    symbols = _by_rule(word[::-1], mirrored, min)
    return tuple(symbol[::-1] for symbol in reversed(symbols))


@exercise("tokenization.segment")
def segment():
    """Check a reader's cut of a word by learned merges.

    The answer is a function of a word and `ranks`, a dict from a pair of symbols to its
    place in the order of learning. It returns a list of symbols. Oracle: the cuts of the
    `tokenizers` library, for the words of `CUT`: pairs of a word and its merges in that
    order, such as ("abab", "a+b ab+ab").

    Yields
    ------
    Case
        Arguments, the right result, and the results that known mistakes give.
    """
    for word, learned in CUT:
        merges = [tuple(pair.split("+")) for pair in learned.split()]
        ranks = {pair: rank for rank, pair in enumerate(merges)}
        ranks = {pair: ranks[pair] for pair in [*merges[-1:], *merges[:-1]]}  # unsorted
        mistakes = {
            "the pair learned last was joined first; begin with the one learned first.": (
                _by_rule(word, ranks, max)
            ),
            "the first pair from the left that fits was joined; ask which was learned "
            "first.": _by_rule(word, ranks, lambda pairs, key: pairs[0]),
            "the longest symbol that fits was taken, as WordPiece does; BPE joins.": (
                _longest_first(word, ranks)
            ),
            "nothing was joined.": tuple(word),
            "`replace` joined the end of a longer symbol, as if it were the pair's left "
            "one; compare whole symbols.": _in_text(word, ranks),
            "a pair was joined from the right; in aaa the first two come together.": (
                _from_the_right(word, ranks)
            ),
            "the pairs were joined as the dict has them; ask its numbers which was "
            "learned first.": reduce(merge_pair, ranks, tuple(word)),
        }
        for n in (1, 2, 3):
            words = f"joining stopped after step {n}; go on as long as a pair fits."
            mistakes[words] = _by_rule(word, ranks, min, n)
        want = _library_cut(word, merges)
        mistakes = {words: list(cut) for words, cut in mistakes.items()}
        yield Case([word, ranks], want, mistakes)


def _replaced(symbols: tuple, pair: tuple) -> tuple:
    """Join a pair by `str.replace` on symbols between spaces: the exercise's bug.

    ``symbols`` : tuple of str; ``pair`` : (str, str). Returns the symbols, a tuple of str.
    The end of a longer symbol is taken for the pair's first: ("ab", "c") and ("b", "c")
    give ("abc",).
    """
    return tuple(" ".join(symbols).replace(" ".join(pair), "".join(pair)).split())


def _library_merge(symbols: tuple, pair: tuple) -> list[str]:
    """Join a pair of symbols as the `tokenizers` library does.

    Each symbol stands for a single letter there (a Chinese one), so that the library cannot
    cut it.

    ``symbols`` : tuple of str; ``pair`` : (str, str). Returns the symbols after the merge,
    a list of str.
    """
    letters = {s: chr(0x4E00 + n) for n, s in enumerate(dict.fromkeys([*symbols, *pair]))}
    left, right = (letters[symbol] for symbol in pair)
    known = [*letters.values(), left + right]
    model = tokenizers.models.BPE({s: n for n, s in enumerate(known)}, [(left, right)])
    written = {letter: symbol for symbol, letter in letters.items()}
    written[left + right] = "".join(pair)
    tokens = model.tokenize("".join(letters[symbol] for symbol in symbols))
    return [written[token.value] for token in tokens]


def _symbols_and_pair(answer):
    """Return the symbols and the pair of an answer.

    Parameters
    ----------
    answer : sequence
        What the reader hands in: (symbols, pair), two tuples of str.

    Returns
    -------
    SimpleNamespace
        ``symbols``, ``pair``, and ``count``, the length of the pair.

    Raises
    ------
    Unfit
        If it is anything else.
    """
    parts = unpack(answer, 2, "(symbols, pair), two tuples of strings")
    symbols, pair = (tuple(strings(part)) for part in parts)
    return SimpleNamespace(symbols=symbols, pair=pair, count=len(pair))


def _joined_both_ways(answer):
    """Join the pair that a reader found, as the library does and as the exercise does.

    Parameters
    ----------
    answer : sequence
        What the reader hands in: the symbols of a word, and a pair of them. Anything else
        is `Unfit`.

    Returns
    -------
    SimpleNamespace
        ``symbols``, ``pair`` and ``count``, the length of the pair; ``right`` and
        ``shown``: tuples of str, the symbols after the library's merge and after that of
        the exercise's code, which joins by `str.replace`.
    """
    seen = _symbols_and_pair(answer)
    seen.right = tuple(_library_merge(seen.symbols, seen.pair))
    seen.shown = _replaced(seen.symbols, seen.pair)
    return seen


@exercise("tokenization.joined_by_replace", kind="spot the bug")
def joined_by_replace():
    """Check a case in which joining by `str.replace` goes wrong.

    The answer is (symbols, pair): the symbols of a word, a tuple of str, and two of them to
    be joined. Oracle: the pair is joined as the `tokenizers` library does, and by the
    exercise's code with `str.replace`; the results must differ.

    Yields
    ------
    Faults
        What is measured of the answer, and how known mistakes show in it.
    """
    handed_in = {
        "a pair is two symbols; {pair} is {count}.": lambda seen: seen.count != 2,
        "use symbols without spaces, none of them empty: words have none.": (
            lambda seen: any(each.split() != [each] for each in (*seen.symbols, *seen.pair))
        ),
    }
    yield Faults(_symbols_and_pair, handed_in)
    same = (
        "for {symbols} and {pair} both give {shown}. Find symbols in which the pair's "
        "letters and the space are next to each other, but the pair is not."
    )
    yield Faults(_joined_both_ways, {same: lambda seen: seen.right == seen.shown})


# Compare with GPT-2's own vocabulary.
predict(
    "tokenization.magikarp",
    a="its words are common, but that does not decide. What counts is how often the "
    "whole name occurred in the text that the merges were learned from.",
    b="the name is rare in books, but the merges were learned from the web.",
    c="single letters are left only where no merge fits.",
    d=None,
)


def _longest_text(data: bytes) -> str:
    """Return the text of the longest beginning of some bytes that is UTF-8, a str.

    ``data`` : bytes, which may end inside a character.
    """
    for end in range(len(data), -1, -1):
        try:
            return data[:end].decode()
        except UnicodeDecodeError:
            continue
    return ""


GPT2S = [b" \xf0\x9f", b"\xa6", b"\x8b"]  # its tokens for a space and a butterfly
# The text "café 🦋!" in pieces: bytes of a character are in two or three of them.
STREAM = [b"caf", b"\xc3", b"\xa9 ", b"\xf0\x9f", b"\xa6", b"\x8b!"]


@exercise("tokenization.stream")
def stream():
    """Check a reader's function that shows text while its tokens arrive.

    The answer is a function of tokens, a list of bytes, which returns what each of them
    completes, a list of str. Oracle: the text that is whole after each token, less what was
    shown before. `STREAM` and `GPT2S` are such lists, with characters that are cut in two:
    "café 🦋!" and GPT-2's tokens of a space and a butterfly.

    Yields
    ------
    Case
        What the answer is called with, the right result, and known mistakes: what the
        reader is told → the result that the mistake gives. Instead of a UnicodeDecodeError
        the first tells what is wrong. The last calls the answer by `_after_broken_text`;
        whatever is wrong there (``instead`` has the key "", which is in any message), the
        reader is told that the function remembers an earlier text.
    """
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
        'a token that shows nothing yet has its "", too.': [text for text in want if text],
        "each byte was taken for a character.": [x.decode("latin-1") for x in STREAM],
    }
    inside = (
        "a token may end inside a character, and its bytes alone are no text; keep them "
        "until the rest arrives."
    )
    yield Case([STREAM], want, mistakes, instead={"UnicodeDecodeError": inside})
    mixed = [b"a \xf0\x9f", b"\xa6\x8b"]  # one token ends a character and begins another
    diagnosis = "a whole character was kept back, for another in the same token was not."
    yield Case([mixed], ["a ", "\U0001f98b"], {diagnosis: ["", "a \U0001f98b"]})
    yield Case([GPT2S], [" ", "", "\U0001f98b"], {diagnosis: ["", "", " \U0001f98b"]})
    remembers = (
        "after a text that broke off inside a character the next one is wrong; start "
        "afresh at each call."
    )
    yield Case([], want, ask=_after_broken_text, instead={"": remembers})  # whatever it is


def _after_broken_text(answer):
    """Return what an answer shows for `STREAM` after a text that ended inside a character.

    An answer that keeps the bytes of an unfinished character from one call to the next, as
    in a global variable, puts them before the second text. What it does with the first
    text, even an error, is ignored; an error with the second is `Wrong`.

    ``answer`` : the reader's callable, from a list of bytes to what is shown, a list of
    str.
    """
    with suppress(Wrong):
        run(answer, [b"caf\xc3"])
    return run(answer, STREAM)


judge(
    "tokenization.seams",
    a="two of its pieces are words; but what does the bird do at night? And is -ing- an "
    "ending here?",
    b="two of its pieces end inside the stem.",
    c=None,
    d="one cut is right; all of them have to be.",
)


LEAST = 2.2  # tokens per word, which the poems are to stay below
SIZES = range(256, 4097, 128)  # of vocabularies that a reader may try, in tokens


@cache
def _trained(text: str) -> tuple[dict[str, int], list]:
    """Return vocabulary and merges that the library learns, of at most 4096 tokens.

    That is the largest of `SIZES`, the sizes of vocabularies that a reader may try.

    Parameters
    ----------
    text : str
        What they are learned from.

    Returns
    -------
    vocab : dict of str to int
        Symbol → id; the 256 bytes come first.
    merges : list of (str, str)
        In the order of learning.
    """
    byte_level = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    library = tokenizers.Tokenizer(tokenizers.models.BPE())
    library.pre_tokenizer = byte_level
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=SIZES[-1], initial_alphabet=byte_level.alphabet(), show_progress=False
    )
    library.train_from_iterator([text], trainer)
    model = json.loads(library.to_str())["model"]
    return model["vocab"], [tuple(pair) for pair in model["merges"]]


def _cost(train_on: str, size: int, *texts: str) -> int:
    """Return how many tokens some texts are cut into with a vocabulary of a size.

    Parameters
    ----------
    train_on : str
        The text that the merges are learned from.
    size : int
        Tokens of the vocabulary, from 256 to 4096 (`SIZES[-1]`; more changes nothing): the
        256 bytes, and what the first ``size - 256`` merges make.
    *texts : str
        What is cut.

    Returns
    -------
    int
        Of all texts together.
    """
    vocab, merges = _trained(train_on)
    known = {symbol: n for symbol, n in vocab.items() if n < size}
    library = tokenizers.Tokenizer(tokenizers.models.BPE(known, merges[: size - 256]))
    library.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    return sum(len(encoded.ids) for encoded in library.encode_batch(texts))


@cache
def _smallest(train_on: str, test_on: str, words: int) -> int:
    """Return the smallest vocabulary that cuts a text into fewer than 2.2 tokens a word.

    Parameters
    ----------
    train_on, test_on : str
        The text that the merges are learned from, and the text that is cut.
    words : int
        How many words the second has; the tokens are to be fewer than `LEAST`, 2.2, times
        that.

    Returns
    -------
    int
        Its number of tokens, one of `SIZES`: 256, 384, … 4096.
    """

    def enough(size: int) -> bool:
        """Return whether a vocabulary of ``size`` tokens cuts the text into few enough."""
        return _cost(train_on, size, test_on) < LEAST * words

    return SIZES[bisect_left(SIZES, True, key=enough)]


def _words(text: str) -> int:
    """Count the words of a text as the page does: letters, perhaps with apostrophes inside.

    ``text`` : str; "'t is" in it is one word, as "'tis" is. Returns an int.
    """
    return len(re.findall(r"[a-z]+(?:'[a-z]+)*", re.sub(r"\B't ", "'t", text.lower())))


@cache
def _texts():
    """Return Shakespeare's sonnets and Dickinson's poems, each as one str.

    Single poems are separated by an empty line.
    """
    return tuple("\n\n".join(load().text) for load in (load_sonnets, load_poems))


def _size_and_cost(answer):
    """Return the size and the cost of an answer, and the size that is right.

    Parameters
    ----------
    answer : sequence of two numbers
        The reader's: how many tokens the vocabulary has, and how many tokens a word of the
        Sonnets is cut into with it.

    Returns
    -------
    SimpleNamespace
        ``size`` and ``cost``, the reader's, floats; ``want``, the right size, an int: the
        smallest learned from the Sonnets that cuts the poems into fewer than 2.2 tokens a
        word. Functions without arguments that return the size to which a known mistake
        leads: ``for_sonnets`` (enough for the Sonnets), ``from_poems`` (learned from the
        poems) and ``at_white_space`` (words counted at white space).

    Raises
    ------
    Unfit
        If the answer is no two numbers.
    """
    what = "a size, and what a word of the Sonnets costs: (size, cost)"
    size, cost = map(number, unpack(answer, 2, what))
    sonnets, poems = _texts()
    return SimpleNamespace(
        size=size,
        cost=cost,
        want=_smallest(sonnets, poems, _words(poems)),
        for_sonnets=partial(_smallest, sonnets, sonnets, _words(sonnets)),
        from_poems=partial(_smallest, poems, poems, _words(poems)),
        at_white_space=partial(_smallest, sonnets, poems, len(poems.split())),
    )


def _is(name):
    """Return a function that tells whether an answer is wrong by a known mistake.

    Parameters
    ----------
    name : str
        The attribute of what was seen that is called, without arguments, for the size that
        the mistake gives: "for_sonnets", "from_poems" or "at_white_space".

    Returns
    -------
    callable
        From what was seen, with the answer's ``size`` and the right one, ``want``, to bool.
    """
    return lambda seen: seen.size != seen.want and seen.size == getattr(seen, name)()


def _cost_again(answer):
    """Return size and cost of an answer, what is right, and what the Sonnets cost.

    Parameters
    ----------
    answer : sequence of two numbers
        The reader's: how many tokens the vocabulary has, and how many tokens a word of the
        Sonnets is cut into with it.

    Returns
    -------
    SimpleNamespace
        ``size`` and ``cost``, the reader's; ``want``, the right size. Tokens a word of the
        Sonnets with that size: ``whole``, cut as one text, and ``apart``, each Sonnet by
        itself. Functions without arguments that return the size to which a known mistake
        leads: ``for_sonnets``, ``from_poems`` and ``at_white_space``.
    """
    seen = _size_and_cost(answer)
    sonnets, _ = _texts()
    count = _words(sonnets)
    seen.whole = _cost(sonnets, seen.want, sonnets) / count
    seen.apart = _cost(sonnets, seen.want, *load_sonnets().text) / count
    return seen


def _far(seen):
    """Return whether an answer's cost is not what the Sonnets cost, to 0.006.

    ``seen`` : SimpleNamespace with ``cost``, the answer's, and ``whole``, the right one:
    tokens a word of the Sonnets, floats.
    """
    return abs(seen.cost - seen.whole) > 0.006


@exercise("tokenization.vocabulary", kind="experiment")
def vocabulary():
    """Check the smallest vocabulary with which poems cost less than a limit, and a cost.

    The answer is (size, cost): how many tokens the vocabulary has, learned from the
    Sonnets, so that Dickinson's poems are cut into fewer than 2.2 tokens a word (`LEAST`);
    and how many tokens a word of the Sonnets costs with it. Sizes are the multiples of 128
    from 256 to 4096 (`SIZES`). Oracle: the library's BPE, trained on the Sonnets.

    Yields
    ------
    Faults
        What is measured of the answer, and how known mistakes show in it.
    """
    sizes = {
        "that is the number of merges; the 256 bytes are in the vocabulary, too.": (
            lambda seen: seen.size == seen.want - 256
        ),
        "that is enough for the Sonnets, which the merges were learned from; the poems "
        "are the test.": _is("for_sonnets"),
        "you learned from the poems themselves; learn from the Sonnets.": _is("from_poems"),
        "a vocabulary has a whole number of pieces.": lambda seen: seen.size % 1,
        "try steps of 128, from 256 on.": lambda seen: seen.size not in SIZES,
        "that is not enough; if you measured, cut the poems as one text, joined by empty "
        "lines, and count words with `words_of`: poem by poem, or with words cut at white "
        "space, the numbers differ.": _is("at_white_space"),
        "with that many the poems still cost more.": lambda seen: seen.size < seen.want,
        "that is enough, but not the smallest.": lambda seen: seen.size > seen.want,
    }
    yield Faults(_size_and_cost, sizes)
    faults = {
        "you cut sonnet by sonnet, without the empty lines between them; join the Sonnets "
        "by empty lines.": (
            lambda seen: _far(seen) and abs(seen.cost - seen.apart) < 0.006
        ),
        "{cost:.3f} tokens a word is not what the Sonnets cost with that size.": _far,
    }
    yield Faults(_cost_again, faults)
