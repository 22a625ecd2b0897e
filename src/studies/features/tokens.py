"""Windows of two poets' texts for SmolLM2, and what is true at each of their tokens."""

import torch

from lmcourse.data import load_texts

WINDOW = 64  # tokens
WINDOWS = (200, 70)  # to learn from, and to judge by
TOKEN_MARKS = (  # keys of stored results; what each marks exactly, `token_marks` says
    "begins a word",
    "a line’s end",
    "begins with a capital",
    "punctuation",
    "after a comma",
    "after “the”",
    "a line’s first word",
    "far into a line",
    "a pronoun",
    "the word before is a pronoun",
    "the line so far has a comma",
    "the text so far asks something",
    "in a sonnet",
)
PRONOUNS = {"i", "me", "my", "mine", "we", "us", "our", "thou", "thee", "thy", "thine"}
PRONOUNS |= {"he", "him", "his", "she", "her", "it", "its", "they", "them", "their", "you"}


def token_marks(pieces, is_sonnet):
    """Return marks of each token, found from that token and those before it in the window.

    "Begins a word" marks only tokens that start with a space, so a line's first word is not
    marked. A line begins at the start of the window, even if that is in the middle of a
    line of the poem, and after each token with a newline. "A line's first word" marks the
    first token of a line and no other, though the word may go on; "far into a line" marks
    tokens with six or more tokens of their line before them; "the line so far has a comma",
    those with a comma in one of these. "After a comma", "after the" and "the word before is
    a pronoun" go by the token before, which must be that and nothing else. Pronouns are
    those of `PRONOUNS`, such as "thee".

    Parameters
    ----------
    pieces : list of str
        The text of each token of a window, in order; a leading space and a newline belong
        to a token's text.
    is_sonnet : bool
        Whether Shakespeare wrote it.

    Returns
    -------
    bool Tensor of shape (tokens, properties)
        A column for each of `TOKEN_MARKS`, in their order.
    """
    rows = []
    line = []
    has_asked = False
    last = ""
    for piece in pieces:
        word = piece.strip().lower()
        has_asked = has_asked or "?" in piece
        rows.append(
            [
                piece.startswith(" ") and bool(word),
                "\n" in piece,
                piece.strip()[:1].isupper(),
                bool(word) and not any(c.isalnum() for c in word),
                last == ",",
                last == "the",
                not line and "\n" not in piece,
                len(line) >= 6,
                word in PRONOUNS,
                last in PRONOUNS,
                any("," in each for each in line),
                has_asked,
                is_sonnet,
            ]
        )
        line = [] if "\n" in piece else [*line, piece]
        last = word
    return torch.tensor(rows)


def token_windows(tokenizer, part):
    """Return windows of poems and sonnets in turn, and the marks of their tokens.

    Parameters
    ----------
    tokenizer : PreTrainedTokenizerFast
        SmolLM2's.
    part : {0, 1}
        To learn from (no text whose number ends in 4 or 9), or to judge by (those).

    Returns
    -------
    windows : int64 Tensor of shape (windows, 64)
        Windows that follow one another through each text and do not overlap; the last 1 to
        64 tokens of a text are not used. A sonnet's and a poem's take turns, the first 100
        of each poet, or 35 to judge by.
    marks : bool Tensor of shape (windows, 64, properties)
        What is true at each token: a column for each of `TOKEN_MARKS`, in their order.
    """
    by_poet = []
    for name in ("sonnets", "poems"):
        rows = []
        for number, text in enumerate(load_texts(name)):
            if (number % 5 == 4) != bool(part):
                continue
            ids = tokenizer(text).input_ids
            for start in range(0, len(ids) - WINDOW, WINDOW):
                part_ids = ids[start : start + WINDOW]
                tokens = [tokenizer.decode([each]) for each in part_ids]
                rows.append((part_ids, token_marks(tokens, name == "sonnets")))
        by_poet.append(rows[: WINDOWS[part] // 2])
    rows = [row for both in zip(*by_poet, strict=True) for row in both]
    return torch.tensor([ids for ids, _ in rows]), torch.stack([each for _, each in rows])
