"""What the page's WordPiece is made of: a BERT's pieces, and the classes of characters
that its words are cut by. `static/play/tokenizers.js` reads it.
"""

import json
from collections.abc import Sequence
from itertools import pairwise

import tokenizers

BETWEEN = "<->"  # which no normalizer changes
PARTS = ["BertNormalizer", "BertPreTokenizer", "WordPiece"]
# Every character that there is, or may come to be; half a surrogate pair is none.
CHARACTERS = [chr(code) for code in range(0x110000) if not 0xD800 <= code < 0xE000]


def _ranges(member: Sequence[bool]) -> list[int]:
    """Return the code points of some characters as ranges: [first, last, first, last, …].

    The last belongs to its range. ``member`` : a bool for each of `CHARACTERS`, which are
    all characters of Unicode, whether it is one of them.
    """
    codes = [ord(c) for c, yes in zip(CHARACTERS, member, strict=True) if yes]
    ends = [a for a, b in pairwise([-2, *codes, -2]) if b != a + 1][1:]
    starts = [b for a, b in pairwise([-2, *codes]) if b != a + 1]
    return [code for both in zip(starts, ends, strict=True) for code in both]


def _character_classes(settings: dict) -> dict[str, list[int]]:
    """Return the characters that a BERT's words are cut by, as the library knows them.

    Its tables are of several versions of Unicode, and a browser's are of others: so each
    character is tried.

    Parameters
    ----------
    settings : dict
        The library's for a BertNormalizer: ``clean_text``, ``handle_chinese_chars``,
        ``strip_accents`` and ``lowercase``, each a bool.

    Returns
    -------
    dict of str to list of int
        Code points as ranges, [first, last, first, last, …], of characters that are
        ``removed`` from a text; of ``ideographs``, around which spaces are put; of
        ``marks``, accents that are removed; and of ``punctuation``, each a word of its own.
        Of the first three there are none if their setting is off.
    """
    options = ("clean_text", "handle_chinese_chars", "strip_accents", "lowercase")

    def normalized_by(option: str) -> list[str]:
        """Return what each of `CHARACTERS` becomes if one option is as the settings say.

        The other options of the normalizer are off.
        """
        chosen = dict.fromkeys(options, False) | {option: settings[option]}
        normalizer = tokenizers.normalizers.BertNormalizer(**chosen)
        return normalizer.normalize_str(BETWEEN.join(CHARACTERS)).split(BETWEEN)

    split = tokenizers.pre_tokenizers.BertPreTokenizer().pre_tokenize_str
    words = split("aa".join(CHARACTERS))  # a sign stands alone there, others do not
    signs = {start // 3 for _, (start, end) in words if end == start + 1}
    return {
        "removed": _ranges([text == "" for text in normalized_by("clean_text")]),
        "ideographs": _ranges(
            [len(text) == 3 for text in normalized_by("handle_chinese_chars")]
        ),
        "marks": _ranges([text == "" for text in normalized_by("strip_accents")]),
        "punctuation": _ranges([index in signs for index in range(len(CHARACTERS))]),
    }


def wordpiece(tokenizer) -> dict:
    """Return all that a BERT's tokenizer is made of, for the page's own WordPiece.

    Parameters
    ----------
    tokenizer : PreTrainedTokenizerFast
        As `lmcourse.models.load_bert` returns it.

    Returns
    -------
    dict
        JSON-ready. ``vocab``, the tokens in the order of their IDs; ``special``, those
        that are found in a text as they stand, such as "[MASK]"; ``unknown``, the token for
        a word that is not known; ``prefix`` of tokens inside a word, "##"; ``longest``, the
        most characters of a word that is cut; ``lowercase``, whether letters are made
        small; ``accents``, whether they are kept; ``tables``, name of a class of characters
        → code points, [first, last, first, last, …] (`_character_classes`).

    Raises
    ------
    ValueError
        If the tokenizer is not made of the parts of BERT's (`PARTS`).
    """
    description = json.loads(tokenizer.backend_tokenizer.to_str())
    parts = [
        (description[n] or {}).get("type") for n in ("normalizer", "pre_tokenizer", "model")
    ]
    if parts != PARTS:
        raise ValueError(f"a BERT's tokenizer is made of {PARTS}, this one of {parts}")
    settings, model = description["normalizer"], description["model"]
    if settings["strip_accents"] is None:
        settings["strip_accents"] = settings["lowercase"]
    vocab = tokenizer.get_vocab()
    return {
        "vocab": sorted(vocab, key=vocab.get),
        "special": [token["content"] for token in description["added_tokens"]],
        "unknown": model["unk_token"],
        "prefix": model["continuing_subword_prefix"],
        "longest": model["max_input_chars_per_word"],
        "lowercase": settings["lowercase"],
        "accents": not settings["strip_accents"],
        "tables": _character_classes(settings),
    }
