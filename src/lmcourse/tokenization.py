"""Tokenizers: characters, and byte-level BPE as in GPT-2.

The chapter *tokenization* writes all of this in steps, from a trainer that recounts every
pair after every merge to the one here, which counts again only where a merge changed
something; both learn the same merges in the same order.
"""

import heapq
import operator
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from itertools import pairwise

import numpy as np
import regex

# GPT-2's pre-tokenisation (Radford et al. 2019, encoder.py): English contractions, then
# runs of letters, of digits or of anything else, each with the one space before it.
GPT2_PATTERN = regex.compile(
    r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
)

# That of GPT-4's vocabulary, cl100k (tiktoken, openai_public.py, cl100k_base): any one sign
# may open a word, digits stand in threes, and the ends of lines join the signs before them.
CL100K_PATTERN = regex.compile(
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+"
    r"| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s"
)


def _require_text(text: object) -> None:
    """Raise a TypeError if ``text`` is no str; of bytes it says how to decode them."""
    if not isinstance(text, str):
        hint = "; decode it first: .decode('utf-8')" if isinstance(text, bytes) else ""
        raise TypeError(f"text must be a str, not {type(text).__name__}{hint}")


def require_whole_characters(text: str, name: str = "text") -> None:
    """Refuse half a surrogate pair, which is no character and has no UTF-8.

    Python makes such strings from damaged JSON, and file names that are no UTF-8.

    Parameters
    ----------
    text : str
    name : str
        What the error calls it.

    Raises
    ------
    ValueError
        It names the text and the position.
    """
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ValueError(
            f"{name} holds half a surrogate pair at position {error.start}, which is no "
            f"character: {text[error.start]!r}"
        ) from None


def _require_ids(ids: Iterable[int], vocab_size: int) -> list[int]:
    """Return IDs as a list of int; a ValueError if one is not in the vocabulary.

    ``ids`` : list, array or Tensor of whole numbers; ``vocab_size`` : int.
    """
    ids = [operator.index(token_id) for token_id in ids]
    if wrong := [token_id for token_id in ids if not 0 <= token_id < vocab_size]:
        raise ValueError(f"there is no ID {wrong[0]}: the last one is {vocab_size - 1}")
    return ids


class CharTokenizer:
    """One token a character.

    Parameters
    ----------
    text : str
        Its distinct characters, sorted, are the vocabulary. Kept as `alphabet`, which
        makes the same tokenizer again.

    Raises
    ------
    TypeError
        If text is no str.
    ValueError
        If it is empty.
    """

    def __init__(self, text: str):
        _require_text(text)
        if not text:
            raise ValueError("an empty text has no characters to make a vocabulary of")
        self.alphabet = "".join(sorted(set(text)))
        self._ids = {character: i for i, character in enumerate(self.alphabet)}

    @property
    def vocab_size(self) -> int:
        """How many different IDs there are."""
        return len(self.alphabet)

    def encode(self, text: str) -> list[int]:
        """Return one ID for each character of a text; ValueError names an unknown one."""
        return self.encode_array(text).tolist()

    def encode_array(self, text: str) -> np.ndarray:
        """Return the IDs of a long text as an array, 1 or 2 bytes an ID instead of 8.

        Parameters
        ----------
        text : str

        Returns
        -------
        int8, int16 or int32 array of shape (characters,)
            The smallest type that holds every ID.

        Raises
        ------
        ValueError
            If a character is not in the vocabulary.
        """
        _require_text(text)
        ids = map(self._ids.__getitem__, text)
        try:
            return np.fromiter(ids, np.min_scalar_type(-self.vocab_size), len(text))
        except KeyError as error:
            raise ValueError(
                f"the character {error.args[0]!r} is not among the {self.vocab_size} of "
                "this vocabulary"
            ) from None

    def decode(self, ids: Iterable[int]) -> str:
        """Return the text of the IDs; ValueError names an ID that does not exist."""
        return "".join(self.alphabet[i] for i in _require_ids(ids, self.vocab_size))


def merge_pair(symbols, pair):
    """Join a pair of symbols wherever it stands, from left to right, without overlap.

    Parameters
    ----------
    symbols : sequence of str
        Those of a word or a text, in their order.
    pair : (str, str)

    Returns
    -------
    tuple of str
        The symbols, each occurrence of the pair replaced by one.
    """
    merged, i = [], 0
    while i < len(symbols):
        size = 2 if tuple(symbols[i : i + 2]) == pair else 1
        merged.append("".join(symbols[i : i + size]))
        i += size
    return tuple(merged)


def train_bpe(words, merges):
    """Learn BPE merges, with incremental pair counts.

    The most frequent pair is merged; among equally frequent ones that whose left symbol
    is older, then whose right symbol is: first the characters in the order of their code
    points, then merged symbols in the order of their making. It is the rule of the
    ``tokenizers`` library.

    Parameters
    ----------
    words : mapping of str to int
        How often each word occurs; its characters are the symbols to begin with.
    merges : int
        How many to learn; fewer are returned if nothing is left to merge.

    Returns
    -------
    list of (str, str)
        In the order in which they were learned.

    Notes
    -----
    Sennrich, Haddow and Birch (2016), algorithm 1. A merge visits only the words that
    hold the pair, and there counts again only its neighbours. The queue may hold
    outdated counts: an entry is believed only if it agrees with `counts`.
    """
    age = {symbol: i for i, symbol in enumerate(sorted(set("".join(words))))}
    corpus = [(list(word), frequency) for word, frequency in words.items()]
    counts, where = Counter(), defaultdict(set)  # of each pair; the words that hold it
    for n, (symbols, frequency) in enumerate(corpus):
        for pair in pairwise(symbols):
            counts[pair] += frequency
            where[pair].add(n)
    learned = []
    queue = []

    def enqueue(pairs):
        """Put pairs into the queue, the most frequent first, ties by the symbols' age."""
        for left, right in pairs:
            if count := counts[left, right]:
                entry = (-count, age[left], age[right], (left, right))
                heapq.heappush(queue, entry)

    enqueue(list(counts))
    while queue and len(learned) < merges:
        count, *_, best = heapq.heappop(queue)
        if -count != counts[best]:  # outdated: counted again since
            enqueue([best])
            continue
        learned.append(best)
        age.setdefault("".join(best), len(age))
        grown = set()
        for n in where.pop(best):
            for pair in merge_in_word(*corpus[n], best, counts):
                where[pair].add(n)
                grown.add(pair)
        counts[best] = 0
        enqueue(grown)
    return learned


def merge_in_word(symbols, frequency, pair, counts):
    """Merge a pair wherever it stands in a word.

    Parameters
    ----------
    symbols : list of str
        The word; changed in place.
    frequency : int
        How often the word occurs.
    pair : (str, str)
        Neighbouring symbols that become one.
    counts : Counter of (str, str)
        How often each pair occurs in all words. The neighbours of ``pair`` are counted
        again here; the count of ``pair`` itself is the caller's business.

    Returns
    -------
    list of (str, str)
        The pairs that the merge made, one for each place.
    """
    left, right = pair
    joined, new, i = sys.intern(left + right), [], 0
    while i < len(symbols) - 1:
        if symbols[i] == left and symbols[i + 1] == right:
            symbols[i : i + 2] = [joined]
            if i > 0:
                before = symbols[i - 1]
                counts[before, left] -= frequency
                new.append((before, joined))
                counts[new[-1]] += frequency
            if i + 1 < len(symbols):
                after = symbols[i + 1]
                counts[right, after] -= frequency
                new.append((joined, after))
                counts[new[-1]] += frequency
        i += 1
    return new


def segment(word, ranks):
    """Split a word into symbols: merge the pair learned first, as long as one is there.

    Parameters
    ----------
    word : str
        Its characters are the symbols to begin with.
    ranks : mapping of (str, str) to int
        Pair → when it was learned.

    Returns
    -------
    tuple of str

    Notes
    -----
    The time grows with n log n for n characters: a queue holds the pairs that can be
    merged, the one learned first in front, and a merge looks at its two neighbours only.
    Every occurrence of a pair is merged, from left to right, before the pairs that come
    about by that are considered.
    """
    chain = _Chain(word)
    queue: list[tuple[int, int]] = []  # rank of a pair, position of its left symbol

    def enqueue(left: int) -> None:
        """Put the pair that begins at symbol ``left`` into the queue, if it has a rank."""
        rank = ranks.get(chain.pair(left))
        if rank is not None:
            heapq.heappush(queue, (rank, left))

    for left in range(len(word)):
        enqueue(left)
    while queue:
        rank = queue[0][0]
        joined = []
        while queue and queue[0][0] == rank:
            _, left = heapq.heappop(queue)
            if ranks.get(chain.pair(left)) == rank:  # else one of the two was joined
                chain.join(left)
                joined.append(left)
        for left in joined:
            enqueue(chain.before[left])
            enqueue(left)
    return tuple(symbol for symbol in chain.symbols if symbol)


class _Chain:
    """The symbols of a word, of which two neighbours can be joined in constant time.

    Attributes
    ----------
    symbols : list of str
        A joined symbol stands where its left part stood, the right part becomes "".
    before, after : list of int
        The positions of each symbol's neighbours; -1 and the word's length at its ends.
    """

    def __init__(self, word: str):
        self.symbols = list(word)
        self.before = list(range(-1, len(word) - 1))
        self.after = list(range(1, len(word) + 1))

    def pair(self, left: int) -> tuple[str, str] | None:
        """Return the symbol at position ``left`` and the next one; None if one is missing.

        A position whose symbol was joined to the one before has none.
        """
        if left < 0 or not self.symbols[left] or self.after[left] == len(self.symbols):
            return None
        return self.symbols[left], self.symbols[self.after[left]]

    def join(self, left: int) -> None:
        """Join the symbol at position ``left`` with the next one, which must be there."""
        right = self.after[left]
        self.symbols[left] += self.symbols[right]
        self.symbols[right] = ""
        self.after[left] = self.after[right]
        if self.after[left] < len(self.symbols):
            self.before[self.after[left]] = left


def byte_characters():
    """Return 256 printable characters; the one at index b stands for the byte b.

    A byte whose Latin-1 character can be seen keeps it; the others take the characters
    from U+0100 on, in order, so that a space (32) becomes Ġ (Radford et al. 2019).
    """
    seen = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    stand_ins = iter(range(0x100, 0x200))
    return "".join(chr(b if b in seen else next(stand_ins)) for b in range(256))


_BYTE_CHARACTERS = byte_characters()
BYTES = {ord(character): b for b, character in enumerate(_BYTE_CHARACTERS)}


def pre_tokenize(text: str, pattern: regex.Pattern = GPT2_PATTERN) -> list[str]:
    """Cut a text by a pattern, GPT-2's or another, then write bytes as characters.

    "I am" becomes "I", "Ġam": each byte of the UTF-8 is written as one printable character
    (`byte_characters`), a space as Ġ.

    Raises
    ------
    TypeError
        If text is no str.
    UnicodeEncodeError
        If it holds half of a surrogate pair, which is no text.
    """
    _require_text(text)
    chunks = pattern.findall(text)
    written = {
        chunk: chunk.encode().decode("latin-1").translate(_BYTE_CHARACTERS)
        for chunk in set(chunks)
    }
    return [written[chunk] for chunk in chunks]


class BPETokenizer:
    """Byte-level BPE as in GPT-2: every text can be encoded, and comes back unchanged.

    Parameters
    ----------
    merges : sequence of (str, str)
        In the order in which they were learned. IDs 0 to 255 are the bytes, in the order
        of their characters; then comes one ID a merge.
    pattern : regex.Pattern
        Cuts a text before anything is merged.

    Raises
    ------
    ValueError
        If a merge joins symbols that neither are bytes nor were made by one before it.
    """

    def __init__(
        self, merges: Sequence[tuple[str, str]], pattern: regex.Pattern = GPT2_PATTERN
    ):
        self.merges = [(left, right) for left, right in merges]
        self.pattern = pattern
        self.vocab = {symbol: i for i, symbol in enumerate(sorted(_BYTE_CHARACTERS))}
        self.ranks: dict[tuple[str, str], int] = {}
        for rank, (left, right) in enumerate(self.merges):
            if left not in self.vocab or right not in self.vocab:
                raise ValueError(f"merge {rank}, {(left, right)!r}, comes too early")
            self.ranks.setdefault((left, right), rank)
            self.vocab.setdefault(left + right, len(self.vocab))
        self.symbols = list(self.vocab)
        self._cache: dict[str, list[int]] = {}

    @classmethod
    def train(
        cls, text: str, vocab_size: int, pattern: regex.Pattern = GPT2_PATTERN
    ) -> "BPETokenizer":
        """Return a tokenizer with vocab_size - 256 merges of a text, or as many as it has.

        ``pattern`` cuts the text into words; no merge goes beyond one.

        Raises
        ------
        TypeError
            If text is no str.
        ValueError
            If vocab_size is less than the 256 bytes.
        """
        if vocab_size < 256:
            raise ValueError(
                f"vocab_size is {vocab_size}, but the alphabet alone has 256 bytes"
            )
        words = Counter(pre_tokenize(text, pattern))
        return cls(train_bpe(words, vocab_size - 256), pattern)

    @property
    def vocab_size(self) -> int:
        """How many different IDs there are."""
        return len(self.vocab)

    def encode(self, text: str) -> list[int]:
        """Return the IDs of a text; TypeError if it is no str."""
        ids = []
        for piece in pre_tokenize(text, self.pattern):
            if piece not in self._cache:
                symbols = segment(piece, self.ranks)
                self._cache[piece] = [self.vocab[symbol] for symbol in symbols]
            ids += self._cache[piece]
        return ids

    def decode_bytes(self, ids: Iterable[int]) -> bytes:
        """Return the bytes of the IDs; ValueError names an ID that does not exist."""
        joined = "".join(self.symbols[i] for i in _require_ids(ids, self.vocab_size))
        return joined.translate(BYTES).encode("latin-1")

    def decode(self, ids: Iterable[int]) -> str:
        """Return the text of the IDs; bytes that are no UTF-8 become U+FFFD."""
        return self.decode_bytes(ids).decode("utf-8", errors="replace")
