"""The words of a text as BERT sees them, before WordPiece cuts them into pieces."""

from functools import cache

from tokenizers import normalizers, pre_tokenizers

_split = pre_tokenizers.BertPreTokenizer().pre_tokenize_str
_normalizer = cache(normalizers.BertNormalizer)


def bert_words(text: str, *, lowercase: bool = True) -> list[str]:
    """Split a text into words as BERT does before WordPiece (Devlin et al. 2019).

    Control characters go; an uncased model's text is lower-cased and stripped of its
    accents; each punctuation mark and each Chinese character is a word of its own. This
    is the ``tokenizers`` library's own: which characters are marks depends on the version
    of Unicode, and a model's words must not depend on that of Python.

    ``lowercase`` : bool, whether the model is uncased.

    Raises
    ------
    TypeError
        If text is no str.
    ValueError
        If there is half a surrogate pair in it, which is no character.
    """
    text = _normalizer(lowercase=lowercase).normalize_str(text)
    return [word for word, _ in _split(text)]
