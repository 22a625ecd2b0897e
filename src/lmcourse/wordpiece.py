"""WordPiece as in BERT: words first, then the longest known pieces of each."""

import unicodedata

import regex

__all__ = ["bert_words", "wordpiece"]

_CJK = (
    "\u4e00-\u9fff\u3400-\u4dbf\uf900-\ufaff\U00020000-\U0002a6df\U0002a700-\U0002b73f"
    "\U0002b740-\U0002b81f\U0002b820-\U0002ceaf\U0002f800-\U0002fa1f"
)
_PUNCTUATION = r"\p{P}$+<=>^`|~"
_BERT_WORD = regex.compile(rf"[{_CJK}{_PUNCTUATION}]|[^\s{_CJK}{_PUNCTUATION}]+")


def bert_words(text: str, *, lowercase: bool = True) -> list[str]:
    """Split a text into words as BERT does before WordPiece (Devlin et al. 2019).

    Control characters go; an uncased model's text is lower-cased and stripped of its
    accents; each punctuation mark and each Chinese character is a word of its own.

    Raises
    ------
    TypeError
        If text is no str.
    """
    if not isinstance(text, str):
        raise TypeError(f"text must be a str, not {type(text).__name__}")
    category = unicodedata.category
    text = "".join(
        c for c in text if c in "\t\n\r" or (category(c)[0] != "C" and c != "\ufffd")
    )
    if lowercase:
        letters = (c for c in unicodedata.normalize("NFD", text) if category(c) != "Mn")
        text = "".join(c.lower() for c in letters)
    return _BERT_WORD.findall(text)


def wordpiece(word, vocab, *, unknown="[UNK]", max_characters=100):
    """Split a word into the longest pieces of the vocabulary, from left to right.

    Parameters
    ----------
    word : str
    vocab : container of str
        Pieces that do not begin a word are written with ``##`` before them.
    unknown : str
        What the whole word becomes if any rest of it begins with no piece.
    max_characters : int
        A longer word is unknown.

    Returns
    -------
    list of str
    """
    if len(word) > max_characters:
        return [unknown]
    pieces, start = [], 0
    while start < len(word):
        mark = "##" if start else ""
        ends = range(len(word), start, -1)
        end = next((end for end in ends if mark + word[start:end] in vocab), None)
        if end is None:
            return [unknown]
        pieces.append(mark + word[start:end])
        start = end
    return pieces
