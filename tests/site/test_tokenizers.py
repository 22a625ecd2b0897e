"""The page's tokenizers in a real browser, against the ``tokenizers`` library.

2,000 lines: both corpora, other scripts, and what is sent to break things.
"""

import base64
import json
import random
import unicodedata

import pytest
import tokenizers

from lmbook.play import vocabularies
from lmcourse.data import load_corpus
from lmcourse.models import load_bert, load_gpt2_vocabulary
from lmcourse.tokenization import BPETokenizer, CharTokenizer
from lmcourse.views.tokenizer import merge_pairs

pytestmark = [pytest.mark.browser, pytest.mark.slow]

LINES = 2000
BY_HAND = [
    "",
    " ",
    "\t",
    "a",
    "  two  spaces ",
    "\u00a0no\u00a0break",
    "tab\tand\r\nline\n\n",
    "don't DON'T we'll 'tis",
    "1830 1,830 3.14159 ½ ² Ⅷ ٣٤",
    "</script><b>&amp;",
    "[CLS] in [MASK]s [UNK][SEP] [cls]",
    "[[PAD]]",
    "<|endoftext|>",
    "#hash ##ery",
    "Ünïcödé e\u0301 é ﬁ ﬀ ŉ İstanbul ΑΣ Σ ẞß",
    "\u0301\u0301lone marks o\u0301x xo\u0301",
    "日本語のテキスト，漢字。",
    "人人生而自由",
    "모든 인간은 \u1112\u1161\u11ab",
    "豈 \uf9fe",
    "كل الناس أحرار",
    "בְּרֵאשִׁית בָּרָא",
    "\u202eright to left\u202c",
    "हिन्दी नुक़्ता",
    "ไทย",
    "👍🏽 👩‍👩‍👧‍👦 🏳️‍🌈 🇪🇺 🦋🦋",
    "a\u200db\u200cc\ufeffd\u00ade \x00\x01a\x7fb\x85c\u2028d",
    "\ufffd\ufffe\uffff",
    "\ud7ff\ue000\U000f0000\U0010ffff \U0001f98b\u0300\U00011938",
    "x" * 100,
    "x" * 101,
    "é" * 101,
    "feather" * 300,
    "ab" * 2500,
    "-" * 300,
    "🦋" * 60,
    "!\ufeff! .\x85. \ufeff a",
    "x\x85\x85 \x85y \u3000\u3000z",
    "a\x0bb\x0cc\x1cd\x1de\x1ff",
    "\u180e\u200b\u2060\u3000\u205f",
    "\u0897\u07fd\u1abf!",
    "“quotes” – — … ‘it’s’",
    "e.g.,i.e.;(x)[y]{z}",
    "$5 €6 50% a+b=c a_b @x `q` ~^|",
]


def hostile(count: int, letters: list[str], seed: int) -> list[str]:
    """Return lines of arbitrary characters, most of them from one part of Unicode."""
    rng = random.Random(seed)
    lines = []
    for _ in range(count):
        start, width = rng.randrange(len(letters)), rng.choice([20, 200, 2000, 200000])
        near = letters[start : start + width]
        usual = " \n\t'.-aeiosT1"
        length = rng.randrange(1, 40)
        picked = [rng.choice(usual if rng.random() < 0.3 else near) for _ in range(length)]
        lines.append("".join(picked))
    return lines


@pytest.fixture(scope="module")
def lines():
    """Half of both poets, half of everything else that has a name in Unicode."""
    rng = random.Random(0)
    both = (load_corpus("poems") + load_corpus("sonnets")).splitlines(keepends=True)
    every = map(chr, range(0x110000))
    known = [c for c in every if unicodedata.category(c) not in ("Cn", "Co", "Cs")]
    poets = rng.sample(both, LINES // 2)
    return poets + BY_HAND + hostile(LINES // 2 - len(BY_HAND), known, 2)


def in_page(lab, code: str, argument, lines):
    """Return what a tokenizer of the page makes of each line: its IDs."""
    ids_json = lab.evaluate(
        """async ([code, argument, lines]) => {
          const play = await import("/play/tokenizers.js");
          const make = new Function("play", "argument", `return ${code}`);
          const tokenizer = make(play, argument);
          const ids = (line) => tokenizer.encode(line).map((token) => token.id);
          return JSON.stringify(lines.map(ids));
        }""",
        [code, argument, lines],
    )
    return json.loads(ids_json)


BYTES = "Uint8Array.from(atob(argument), (letter) => letter.charCodeAt(0))"
BPE = f"new play.ByteBPE(new Uint16Array({BYTES}.buffer))"
WORDPIECE = "new play.WordPiece(argument)"


def same(lines, all_ids, encode):
    """Compare with what the library cuts of each line."""
    for line, ids in zip(lines, all_ids, strict=True):
        assert ids == encode(line, add_special_tokens=False).ids, line


def library(merges):
    """Return the library's byte-level BPE with these merges."""
    vocab = BPETokenizer(merges).vocab
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE(vocab, merges))
    byte_level = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.pre_tokenizer = byte_level
    return tokenizer


def test_byte_level_bpe_is_the_library_s(lab, lines):
    merges, _ = load_gpt2_vocabulary()
    pairs = base64.b64encode(merge_pairs(merges)).decode()
    all_ids = in_page(lab, BPE, pairs, lines)
    same(lines, all_ids, library(merges).encode)


def test_wordpiece_is_bert_s(lab, lines):
    tokenizer, _ = load_bert(device="cpu")
    library = tokenizer.backend_tokenizer
    library.no_truncation()
    library.no_padding()
    all_ids = in_page(lab, WORDPIECE, vocabularies.wordpiece(tokenizer), lines)
    same(lines, all_ids, library.encode)


def test_characters_are_those_of_the_course(lab, lines):
    tokenizer = CharTokenizer(load_corpus("poems") + load_corpus("sonnets"))
    all_ids = in_page(lab, "new play.Characters(argument)", tokenizer.alphabet, lines)
    ids = {character: i for i, character in enumerate(tokenizer.alphabet)}
    for line, tokens in zip(lines, all_ids, strict=True):
        assert tokens == [ids.get(c) for c in line]
