"""One line as four tokenizers cut it; on the site, any line that the reader types."""

import base64
import html
import unicodedata
from collections.abc import Mapping, Sequence

import numpy as np

from lmcourse.numbers import plural
from lmcourse.tokenization import BYTES, BPETokenizer
from lmcourse.views.view import View

ROWS = {
    "characters": "characters",
    "ours": "our BPE",
    "gpt2": "GPT-2's BPE",
    "bert": "BERT's WordPiece",
}
SIGNS = {" ": "·", "\n": "⏎", "\t": "⇥"}  # so that they can be seen
# What --d-1-fill to --d-5-fill are in the light.
FILLS = ["#cfe3f1", "#fadcc6", "#cdebdd", "#f0dae8", "#e9d9cc"]


def merge_pairs(merges: Sequence[tuple[str, str]]) -> bytes:
    """Return the IDs of left and right for each merge, 2 bytes each: for the page.

    ``merges`` : those of a BPE, in the order in which they were learned: the two symbols
    that are joined. The least significant byte comes first.
    """
    vocab = BPETokenizer(merges).vocab
    pairs = [[vocab[symbol] for symbol in pair] for pair in merges]
    return np.array(pairs, "<u2").tobytes()


def tokenizer(text, *, characters, bpe, gpt2, bert, others=None, untrained=None) -> View:
    """Show a line in characters and in the tokens of our BPE, of GPT-2 and of BERT.

    On the site the reader types a line, replays our merges one by one, sees IDs, and
    compares what a line costs in other languages. Notebooks and paper show `text`.

    Parameters
    ----------
    text : str
        The line to begin with.
    characters : CharTokenizer
    bpe, gpt2 : BPETokenizer
        Ours, and ``BPETokenizer(load_gpt2_vocabulary()[0])``.
    bert : PreTrainedTokenizerFast
        A BERT's.
    others : mapping of str to str, optional
        Language → the same sentence in it, to choose from; ``"English"`` is what the
        others are compared with.
    untrained : BPETokenizer, optional
        Ours, learned from a text in which there is nothing to learn. With it comes a switch
        that puts it in our BPE's place.

    Returns
    -------
    View
        Its alternative text says how many tokens there are.
    """
    known = set(characters.alphabet)
    tokens = bert.tokenize(text)
    ids = [characters.encode(c)[0] if c in known else None for c in text]
    rows = {
        "characters": [[i, c] for i, c in zip(ids, text, strict=True)],
        "ours": [[i, bpe.symbols[i]] for i in bpe.encode(text)],
        "gpt2": [[i, gpt2.symbols[i]] for i in gpt2.encode(text)],
        "bert": [[bert.convert_tokens_to_ids(token), token] for token in tokens],
    }
    data = {
        "text": text,
        "others": dict(others or {}),
        "rows": rows,
        "alphabet": characters.alphabet,
        "merges": base64.b64encode(merge_pairs(bpe.merges)).decode(),
    }
    if untrained is not None:
        data["untrained"] = base64.b64encode(merge_pairs(untrained.merges)).decode()
    counts = ", ".join(f"{len(rows[key])} in {name}" for key, name in ROWS.items())
    alt = f"How many tokens “{text}” is: {counts}."
    stores = ["gpt2-merges", "bert-pieces"]
    stored = _stored(text, rows)
    return View("tokenizer-view", data, stored, alt=alt, stores=stores)


# --- the stored state: `tokenizer-view.js` makes the same ------------------------------


def _visible(character: str) -> str:
    """Return a character so that it can be seen.

    A space, line break or tab becomes a sign ("·", "⏎", "⇥"); a mark that combines stands
    on "◌"; another separator, a control or an unassigned character becomes its code point,
    such as "U+200B"; all others stay.
    """
    kind = unicodedata.category(character)[0]
    if character in SIGNS:
        return SIGNS[character]
    if kind == "M":
        return f"◌{character}"
    return f"U+{ord(character):04X}" if kind in "CZ" else character


def shown(row: str, piece: str) -> str:
    """Return a token's text so that it can be seen.

    Parameters
    ----------
    row : str
        Which tokenizer's it is: "ours", "gpt2", "bert" or "characters". "ours" and "gpt2"
        write bytes as characters: these are decoded, and a token that is only part of a
        character is shown as its bytes.
    piece : str
        The token's text. Marks that combine stay with the character before; spaces and the
        like become signs, such as "·".
    """
    if row in ("ours", "gpt2"):
        content = piece.translate(BYTES).encode("latin-1")
        try:
            piece = content.decode()
        except UnicodeDecodeError:
            return " ".join("·" if byte == 32 else f"{byte:02X}" for byte in content)
    marks = [unicodedata.category(c)[0] == "M" or c == "\u200d" for c in piece]
    joined = zip(piece, [False, *marks[1:]], strict=True)
    return "".join(c if follows else _visible(c) for c, follows in joined)


def _row(key: str, tokens: list[list], length: int) -> str:
    """Return a line cut into the tokens of one vocabulary, as HTML.

    Above it stands its name and how many tokens there are, how many characters each has,
    and how many are unknown. A token's colour depends on its id.

    ``key`` : of the vocabulary: "characters", "ours", "gpt2" or "bert"; ``tokens`` : a pair
    of id (None if unknown) and piece each; ``length`` : characters of the line.
    """
    boxes = []
    for token_id, piece in tokens:
        colour = 0 if token_id is None else token_id % len(FILLS)
        boxes.append(
            f'<span class="lmc-piece" style="background: var(--d-{colour + 1}-fill, '
            f"{FILLS[colour]}); border: 1px solid; border-radius: 4px; margin: 1px; "
            'padding: 0 3px; display: inline-block; unicode-bidi: isolate">'
            f"{html.escape(shown(key, piece))}</span>"
        )
    unknown = sum(i is None or piece == "[UNK]" for i, piece in tokens)
    count = f"{len(tokens):,} {plural(len(tokens), 'token')}"
    if tokens:
        count += f", {length / len(tokens):.1f} characters each"
    if unknown:
        count += f", {unknown:,} unknown"
    return (
        f'<p class="lmc-name"><b>{ROWS[key]}</b>: {count}</p>\n'
        f'<p class="lmc-pieces">{"".join(boxes)}</p>'
    )


def _stored(text: str, rows: Mapping[str, list]) -> str:
    """Return what is shown without scripts, as HTML: a line, and it in several tokens.

    ``text`` : the line; ``rows`` : key of a vocabulary ("characters", "ours", "gpt2" or
    "bert") → its tokens of the line, pairs of id (None if unknown) and piece.
    """
    line = f'<p class="lmc-line">{html.escape(text)}</p>'
    return "\n".join([line, *(_row(*row, len(text)) for row in rows.items())])
