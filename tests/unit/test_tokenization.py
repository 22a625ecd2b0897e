"""Tokenizers against the ``tokenizers`` library, a naive trainer and cases by hand."""

import json
import random
from collections import Counter
from itertools import pairwise

import pytest
import tokenizers
from hypothesis import given, settings
from hypothesis import strategies as st

from lmbook.bench import bpe as bench_bpe
from lmcourse.data import load_corpus
from lmcourse.tokenization import (
    CL100K_PATTERN,
    BPETokenizer,
    CharTokenizer,
    byte_characters,
    merge_pair,
    pre_tokenize,
    segment,
    train_bpe,
)
from lmcourse.wordpiece import bert_words
from studies.tokenization.shown import naive_train_bpe

TOY = {"fast_": 4, "faster_": 3, "tall_": 5, "taller_": 4}
quick = settings(max_examples=60)
# Two libraries may know two versions of Unicode, so characters of no version are left out;
# four control characters are white space to Python only.
assigned = st.text(
    st.characters(
        exclude_categories=["Cs", "Cn", "Co"], exclude_characters="\x1c\x1d\x1e\x1f"
    )
)
few_letters = st.text("ab ", max_size=40) | st.text("abc d'", max_size=60)


def library(text, merges):
    """Train the library's byte-level BPE, as GPT-2's."""
    byte_level = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE())
    tokenizer.pre_tokenizer = byte_level
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=256 + merges, initial_alphabet=byte_level.alphabet(), show_progress=False
    )
    tokenizer.train_from_iterator([text], trainer)
    return tokenizer


def merges_of(tokenizer):
    return [tuple(pair) for pair in json.loads(tokenizer.to_str())["model"]["merges"]]


# ------------------------------------------------------------------------- characters


@quick
@given(st.text(min_size=1))
def test_characters_come_back(text):
    tokenizer = CharTokenizer(text)
    ids = tokenizer.encode(text)
    assert len(ids) == len(text)
    assert tokenizer.vocab_size == len(set(text))
    assert set(ids) == set(range(tokenizer.vocab_size))
    assert tokenizer.decode(ids) == text
    assert CharTokenizer(tokenizer.alphabet).encode(text) == ids


@pytest.mark.parametrize(
    ("size", "dtype"), [(128, "int8"), (129, "int16"), (2**15, "int16"), (40000, "int32")]
)
def test_an_array_of_ids_is_small_and_the_same(size, dtype):
    text = "".join(map(chr, range(0x20000, 0x20000 + size)))
    ids = CharTokenizer(text).encode_array(text)
    assert ids.dtype == dtype
    assert ids.tolist() == [*range(size)]


def test_characters_are_in_order_and_an_unknown_one_is_named():
    tokenizer = CharTokenizer("badcab")
    assert tokenizer.alphabet == "abcd"
    assert tokenizer.encode("dab") == [3, 0, 1]
    for strange in ("x", "A", "\U0001f98b"):
        with pytest.raises(ValueError, match=f"'{strange}' is not among the 4"):
            tokenizer.encode("ab" + strange)
    with pytest.raises(ValueError, match="empty"):
        CharTokenizer("")


# -------------------------------------------------------------------------------- BPE


def test_toy_corpus_by_hand():
    learned = "a+l t+al tal+l a+s e+r f+as er+_ fas+t tall+_ tall+er_ fast+_ fast+er_"
    assert " ".join(map("+".join, train_bpe(TOY, 99))) == learned
    assert train_bpe({"aaaa": 2}, 99) == [("a", "a"), ("aa", "aa")]  # nothing is left
    assert train_bpe({"abc": 0}, 9) == train_bpe({}, 9) == train_bpe(TOY, 0) == []
    ranks = {pair: rank for rank, pair in enumerate(train_bpe(TOY, 9))}
    assert segment("tallest_", ranks) == ("tall", "e", "s", "t", "_")
    assert segment("fatter_", ranks) == ("f", "a", "t", "t", "er_")
    assert (segment("", ranks), segment("x", ranks)) == ((), ("x",))


@quick
@given(few_letters | assigned)
def test_same_merges_as_naive_and_as_the_library(text):
    words = pre_tokenize(text)
    got = train_bpe(Counter(words), 40)
    assert got == naive_train_bpe([(word, 1) for word in words], 40)
    assert got == merges_of(library(text, 40))


def merge_first_learned(word, ranks):
    """Cut a word as Sennrich et al. (2016) say it: one pair after another."""
    symbols = tuple(word)
    while known := [pair for pair in pairwise(symbols) if pair in ranks]:
        symbols = merge_pair(symbols, min(known, key=ranks.__getitem__))
    return symbols


@st.composite
def ranks_and_words(draw):
    """Return any merges of which each can be made, and a word of their letters."""
    symbols = ["a", "b", "c"]
    ranks = {}
    for _ in range(draw(st.integers(0, 9))):
        pair = draw(st.sampled_from(symbols)), draw(st.sampled_from(symbols))
        if pair not in ranks:
            ranks[pair] = len(ranks)
            symbols.append("".join(pair))
    return ranks, draw(st.text("abc", max_size=30))


@settings(max_examples=400)
@given(ranks_and_words())
def test_a_word_is_cut_as_by_one_pair_after_another(case):
    ranks, word = case
    assert segment(word, ranks) == merge_first_learned(word, ranks)


@quick
@given(few_letters, few_letters)
def test_a_text_is_cut_as_by_the_library(text, other):
    theirs = library(text, 40)
    ranks = {pair: rank for rank, pair in enumerate(merges_of(theirs))}
    for piece in pre_tokenize(other):
        tokens = theirs.model.tokenize(piece)
        assert segment(piece, ranks) == tuple(token.value for token in tokens)


class Counted(dict):
    """Ranks that count how often they are asked."""

    asked = 0

    def get(self, *args):
        self.asked += 1
        return super().get(*args)


def test_a_long_word_takes_few_questions_a_character():
    """Without spaces (Chinese, DNA) a whole text is one word."""
    text = "".join(random.Random(0).choices("abcd", k=4000))
    theirs = library(text[:400], 200)
    ranks = Counted({pair: rank for rank, pair in enumerate(merges_of(theirs))})
    symbols = segment(text, ranks)
    assert symbols == tuple(token.value for token in theirs.model.tokenize(text))
    assert ranks.asked < 20 * len(text)


@pytest.fixture(scope="module")
def trained():
    return BPETokenizer.train(load_corpus("poems"), 700)


@settings(max_examples=300)
@given(st.text())
def test_any_text_comes_back(trained, text):
    ids = trained.encode(text)
    assert trained.decode(ids) == text
    assert trained.decode_bytes(ids) == text.encode()
    assert all(0 <= token_id < trained.vocab_size for token_id in ids)
    assert len(ids) <= len(text.encode())
    assert "".join(CL100K_PATTERN.findall(text)) == text


def test_bytes_have_gpt2s_characters(trained):
    # Radford et al. 2019, encoder.py: the known corners of the published table.
    characters = byte_characters()
    known = [0, 10, 32, 33, 65, 126, 127, 160, 173, 255]
    assert "".join(characters[b] for b in known) == "ĀĊĠ!A~ġłŃÿ"
    half = trained.vocab[characters["é".encode()[0]]]
    assert trained.decode([half]) == "\ufffd"


@pytest.mark.parametrize("wrong", [b"bytes", None, ["list"]])
def test_what_is_no_text_is_refused(trained, wrong):
    takers = [trained.encode, CharTokenizer, CharTokenizer("abc").encode]
    for take in takers:
        with pytest.raises(TypeError, match=f"a str, not {type(wrong).__name__}"):
            take(wrong)


def test_half_a_surrogate_pair_is_no_text(trained):
    for take in (trained.encode, bert_words):
        with pytest.raises(UnicodeEncodeError):
            take("half a pair: \ud83d")


def test_ids_that_do_not_exist_are_named():
    for tokenizer in (BPETokenizer([]), CharTokenizer("abc")):
        last = tokenizer.vocab_size - 1
        for wrong in (last + 1, -1):
            with pytest.raises(ValueError, match=f"no ID {wrong}: .* is {last}"):
                tokenizer.decode([0, wrong])
        with pytest.raises(TypeError):
            tokenizer.decode([0.5])


def test_the_smallest_vocabulary_is_the_bytes():
    bytes_only = BPETokenizer.train("text", 256)
    assert bytes_only.vocab_size == 256
    assert len(bytes_only.encode("Ünï")) == len("Ünï".encode())
    assert BPETokenizer.train("ab ab", 1000).vocab_size < 300
    with pytest.raises(ValueError, match=r"vocab_size is 255.*256 bytes"):
        BPETokenizer.train("text", 255)
    with pytest.raises(ValueError, match="merge 1"):
        BPETokenizer([("a", "b"), ("abc", "d")])


# -------------------------------------------------------------------------- WordPiece


def test_case_is_kept_where_the_model_keeps_it():
    assert bert_words("Ångström’s İ", lowercase=False) == ["Ångström", "’", "s", "İ"]
    assert bert_words("Ångström’s") == ["angstrom", "’", "s"]


# ---------------------------------------------------------------------- the benchmark


def test_the_benchmark_finds_the_same_merges(tmp_path, capsys, monkeypatch):
    path = tmp_path / "text.txt"
    path.write_text("Hope is the thing with feathers", encoding="utf-8")

    def measured(prepare, *given):
        return {"result": prepare(*given)(), "seconds": 1.0, "peak_mib": 1.0}

    monkeypatch.setattr(bench_bpe, "isolated", measured)
    assert bench_bpe.main(str(path)) == 0
    assert json.loads(capsys.readouterr().out.splitlines()[-1])["same_merges"]
