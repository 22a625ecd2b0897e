"""Verbs and nouns in pairs of sentences: positions, directions, and what is told apart."""

import numpy as np
import pytest

from lmcourse.models import load_bert
from lmcourse.verbs_and_nouns import (
    before_direction,
    encode_pairs,
    joined,
    pairs,
    told_apart,
    verb_direction,
    words_before,
)


@pytest.fixture(scope="module")
def bert():
    return load_bert(device="cpu")


def test_a_vector_is_that_of_its_own_occurrence(bert):
    """The fifth pair, filled with "fight", in the order in which the noun comes first."""
    tokenizer, model = bert
    pair, order, word = 4, 1, 1
    vectors = encode_pairs(tokenizer, model, ["dance", "fight"])["after layer 1"]
    assert vectors.shape[:4] == (2, len(pairs()), 2, 2)  # (uses, pairs, orders, words)
    text = joined(pairs()[pair], "fight")[order]
    noun_first = (
        "Nobody liked her fight that evening, and Nobody made her fight that evening."
    )
    assert text == noun_first
    batch = tokenizer(text, return_tensors="pt")
    states = model(**batch, output_hidden_states=True).hidden_states[2][0].detach().numpy()
    noun, verb = (i for i, token in enumerate(batch.tokens()) if token == "fight")
    for use, position in ((0, verb), (1, noun)):
        direction = states[position] / np.linalg.norm(states[position])
        vector = vectors[use, pair, order, word]
        np.testing.assert_allclose(vector, direction, atol=1e-5)


def test_words_before_are_added_up_with_less_weight_further_back(bert):
    tokenizer, model = bert
    vectors = words_before(tokenizer, model, ["dance"], 0.5)
    table = model.get_input_embeddings().weight.detach().numpy().astype(float)
    they, let, her = table[tokenizer.convert_tokens_to_ids(["they", "let", "her"])]
    by_hand = her / 2 + let / 4 + they / 8  # They let her dance again
    np.testing.assert_allclose(
        vectors[0, 0, 0, 0], by_hand / np.linalg.norm(by_hand), atol=1e-9
    )


@pytest.mark.parametrize("word", ["dooryardless", "her"])
def test_a_word_in_pieces_or_of_the_sentences_is_refused_by_name(bert, word):
    with pytest.raises(ValueError, match=f"'{word}' cannot stand .*Take another word"):
        encode_pairs(*bert, ["dance", word])


def test_a_use_that_is_in_the_vectors_is_found_and_noise_is_not():
    rng = np.random.default_rng(0)
    taught, tried = (rng.standard_normal((2, 12, 2, n, 6)) for n in (5, 4))
    noise = told_apart(taught, tried)
    assert noise.shape == (12, 4)
    assert 0.2 < noise.mean() < 0.8
    for each in (taught, tried):
        each[0, ..., 0] += 20
    assert (told_apart(taught, tried) == 1).all()
    tried = tried[::-1]
    assert (told_apart(taught, tried) == 0).all()
    same = np.broadcast_to(tried[:1], tried.shape)
    assert (told_apart(taught, same) == 0.5).all()


def test_a_pair_is_not_judged_by_itself():
    """One pair alone has the opposite sign: its own vectors must not save it."""
    taught = np.zeros((2, 4, 2, 3, 2))
    taught[0, :3, ..., 0] = 1
    taught[0, 3, ..., 0] = -50
    assert (told_apart(taught, taught)[3] == 0).all()


def test_the_middle_is_between_verbs_and_nouns(bert):
    vectors = np.random.default_rng(1).standard_normal((2, 5, 2, 3, 4))
    direction, middle = verb_direction(vectors)
    verb, noun = vectors.mean(axis=(1, 2, 3)) @ direction
    assert verb - middle == pytest.approx(middle - noun)
    assert verb > noun
    assert np.linalg.norm(direction) == pytest.approx(1)
    tokenizer, model = bert
    direction, middle = before_direction(tokenizer, model)
    table = model.get_input_embeddings().weight.detach().numpy()
    to, the = table[tokenizer.convert_tokens_to_ids(["to", "the"])]
    assert (
        to @ direction / np.linalg.norm(to) > middle > the @ direction / np.linalg.norm(the)
    )


def test_means_that_differ_by_rounding_errors_have_no_direction():
    """Else the direction would be another on every processor."""
    rng = np.random.default_rng(3)
    verbs = rng.normal(size=(2, 3, 4, 6))  # (pairs, orders, words, d_model)
    direction, middle = verb_direction(np.stack([verbs, verbs * (1 + 1e-7)]))
    assert not direction.any()
    assert middle == 0
    direction, _ = verb_direction(np.stack([verbs, 2 * verbs]))
    np.testing.assert_allclose(np.linalg.norm(direction), 1)
