"""Sentences with a pronoun, and what heads of a BERT give to their nouns."""

import re
from collections import Counter

import pytest
import torch

from lmcourse import pronouns
from lmcourse.attention import attention
from lmcourse.models import load_bert
from lmcourse.pronouns import (
    Sentence,
    crossings,
    drawn_sentences,
    encode_attention,
    head_parts,
    noun_shares,
    stops,
    twin_sentences,
    word_positions,
    word_shares,
)
from near import near

LAYER, HEAD = 2, 5


@pytest.fixture(scope="module")
def bert():
    return load_bert(device="cpu", attn_implementation="eager")


def alone(bert, text):
    """Return a sentence's tokens and weights, read by itself: (layers, heads, …)."""
    tokenizer, model = bert
    encoded = tokenizer(text, return_tensors="pt")
    with torch.no_grad():
        weights = model(**encoded, output_attentions=True).attentions
    return encoded.tokens(), torch.cat(weights)


@pytest.mark.parametrize(
    "sentences",
    [twin_sentences(), crossings("tired"), drawn_sentences(3), stops(["king", "lamp"])],
    ids=["twins", "crossings", "drawn", "stops"],
)
def test_every_noun_stands_before_the_pronoun_once(sentences):
    assert len({sentence.text for sentence in sentences}) == len(sentences)
    for sentence in sentences:
        words = re.findall(r"\w+", sentence.text)
        pronoun = "He" if "He" in words and "it" not in words else "it"
        assert words.count(pronoun) == 1
        assert all(words.count(noun) == 1 for noun in sentence.nouns)
        first = sentence.nouns[:2]
        assert max(map(words.index, first)) < words.index(pronoun)


def test_twins_differ_in_one_word():
    sentences = twin_sentences()
    for one, other in zip(sentences[::2], sentences[1::2], strict=True):
        pairs = zip(one.text.split(), other.text.split(), strict=True)
        assert sum(a != b for a, b in pairs) == 1
        assert one.nouns == other.nouns


def test_in_half_of_the_crossings_the_animal_stands_first():
    sentences = crossings("wide")
    assert {s.nouns for s in sentences} == {
        (animal, place) for animal in pronouns.ANIMALS for place in pronouns.PLACES
    }
    first = Counter(s.text.index(s.nouns[0]) < s.text.index(s.nouns[1]) for s in sentences)
    assert first[True] == first[False]
    assert all(s.text.endswith("too wide.") for s in sentences)


def test_drawn_sentences_depend_on_the_seed_alone():
    assert drawn_sentences(1) == drawn_sentences(1)
    assert drawn_sentences(1) != drawn_sentences(2)
    kinds = Counter(sentence.frame for sentence in drawn_sentences(1, each=4))
    assert set(kinds.values()) == {4}
    assert len(kinds) == len(pronouns.FRAMES)


def test_lists_of_words_do_not_overlap():
    lists = [pronouns.SAID_OF_ANIMALS, pronouns.SAID_OF_PLACES, pronouns.SAID_OF_BOTH]
    for words in ([*lists[0], *lists[1], *lists[2]], pronouns.PERSONS + pronouns.THINGS):
        assert len(set(words)) == len(words)


def test_shares_of_nouns_are_those_of_each_sentence_alone(bert):
    sentences = [
        Sentence("The plumber left the lamp because it was old.", ("plumber", "lamp")),
        Sentence("A dog and the sun: it!", ("dog", "sun")),
    ]
    shares = noun_shares(*bert, sentences)
    assert shares.shape[:2] == (2, 2)
    tokens, weights = alone(bert, sentences[0].text)
    positions = range(tokens.index("the") + 1, tokens.index("left"))
    assert len(positions) > 1  # the noun has several tokens
    it = tokens.index("it")
    near(shares[0, 0], weights[:, :, it, list(positions)].sum(-1), slack=10)
    near(shares[0, 1], weights[:, :, it, tokens.index("lamp")], slack=10)
    tokens, weights = alone(bert, sentences[1].text)
    near(shares[1, 0], weights[:, :, tokens.index("it"), tokens.index("dog")], slack=10)


def test_words_give_to_both_nouns_what_the_weights_say(bert):
    sentence = Sentence("The dog didn't see the lamp, as it was dark.", ("dog", "lamp"), 7)
    table = word_shares(*bert, [sentence], LAYER, HEAD)
    tokens, weights = alone(bert, sentence.text)
    both = [tokens.index("dog"), tokens.index("lamp")]
    assert "dog" not in set(table.word)
    assert set(table.frame) == {7}
    for word in ("see", "it", "dark"):
        want = weights[LAYER, HEAD, tokens.index(word), both].sum().item()
        assert table.share[table.word == word].item() == pytest.approx(
            want, rel=1e-4, abs=1e-4
        )
    assert (table.word == "the").sum() == 2


def test_a_head_s_parts_give_its_weights(bert):
    text = "The dog was here."
    query, key, value = head_parts(*bert, text, LAYER, HEAD)
    _, weights = alone(bert, text)
    ours = attention(query, key, value)[1]
    near(ours.float(), weights[LAYER, HEAD], slack=10)


def test_a_missing_word_is_told(bert):
    batch, _ = encode_attention(*bert, ["The dog."])
    with pytest.raises(ValueError, match="no word 'cat' in"):
        word_positions(batch, 0, "The dog.", "cat")
    assert word_positions(batch, 0, "The dog.", "dog") == [2]
