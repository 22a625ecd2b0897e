"""What the view *tokenizer* shows before any script runs."""

import base64

import bs4
import pytest

from lmcourse import views
from lmcourse.models import load_bert
from lmcourse.tokenization import BPETokenizer, CharTokenizer
from lmcourse.views.tokenizer import merge_pairs, shown

MERGES = [("t", "h"), ("th", "e"), ("Ġ", "the"), ("<", "/")]


@pytest.fixture(scope="module")
def bert():
    return load_bert(device="cpu")[0]


def view_of(text, bert, **options):
    bpe = BPETokenizer(MERGES)
    tokenizers = {"characters": CharTokenizer("eht xyz<"), "bpe": bpe, "gpt2": bpe}
    return views.tokenizer(text, **tokenizers, bert=bert, **options)


@pytest.mark.parametrize(
    ("row", "piece", "wanted"),
    [
        ("ours", "Ġthe", "·the"),
        ("ours", "Ċ", "⏎"),
        ("gpt2", "âĢ", "E2 80"),
        ("gpt2", "ĠðŁ", "· F0 9F"),
        ("bert", "##the", "##the"),
        ("bert", "âĢ", "âĢ"),
        ("characters", "\u0301", "◌\u0301"),
        ("characters", "\u200b", "U+200B"),
        ("gpt2", "eÌģ", "e\u0301"),
    ],
)
def test_pieces_can_be_seen(row, piece, wanted):
    assert shown(row, piece) == wanted


def test_the_stored_state_has_every_token_and_no_markup_of_the_text(bert):
    text = "the <b>the</script>"
    view = view_of(text, bert)
    page = bs4.BeautifulSoup(view.stored, "html.parser")
    assert not page.find("script")
    assert page.find("p").text == text
    rows = [
        [token.text for token in row.select(".lmc-piece")]
        for row in page.select(".lmc-pieces")
    ]
    assert rows[0] == list(text.replace(" ", "·"))
    assert rows[1] == rows[2]
    assert rows[1][:5] == ["the", "·", "<", "b", ">"]
    assert "</" in rows[1]
    assert rows[3] == bert.tokenize(text)
    summaries = [name.text for name in page.select(".lmc-name")]
    assert summaries[0] == "characters: 19 tokens, 1.0 characters each, 9 unknown"
    assert summaries[3].startswith(f"BERT's WordPiece: {len(rows[3])} tokens, ")
    assert f"{len(rows[1])} in our BPE" in view.alt
    ids = [i for i, _ in view.data["rows"]["characters"]]
    assert ids[:5] == [*CharTokenizer("eht xyz<").encode("the <")]
    assert None in ids


def test_merges_are_pairs_of_ids(bert):
    vocab = BPETokenizer(MERGES).vocab
    content = base64.b64decode(view_of("the", bert).data["merges"])
    assert content == merge_pairs(MERGES)
    ids = [int.from_bytes(content[i : i + 2], "little") for i in range(0, len(content), 2)]
    assert ids == [vocab[symbol] for pair in MERGES for symbol in pair]


def test_an_empty_line_has_no_tokens(bert):
    assert "characters</b>: 0 tokens</p>" in view_of("", bert).stored


def test_a_switch_comes_with_merges_that_learned_nothing(bert):
    assert "untrained" not in view_of("the", bert).data
    untrained = BPETokenizer(MERGES[:1])
    content = view_of("the", bert, untrained=untrained).data["untrained"]
    assert base64.b64decode(content) == merge_pairs(MERGES[:1])
