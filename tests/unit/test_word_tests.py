"""What word vectors are tried on, against loops and cases made by hand."""

import numpy as np
import pytest

from lmcourse import word_tests
from lmcourse.word_tests import (
    fourth_words,
    load_analogies,
    questions,
    shared_neighbours,
    shuffled_texts,
    spelling_vectors,
)
from studies.embeddings.proofs import interval_of_pairs


def test_pairs_are_of_two_different_words_and_each_stands_once():
    for kind, pairs in load_analogies().items():
        assert all(len(pair) == 2 and pair[0] != pair[1] for pair in pairs), kind
        assert len(set(pairs)) == len(pairs), kind
    assert ("man", "woman") in load_analogies()["families"]
    assert ("athens", "greece") in load_analogies()["capitals"]


def test_a_damaged_file_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr(word_tests, "corpora_folder", lambda: tmp_path)
    for content in (None, "[families]\nman woman\n"):
        if content:
            (tmp_path / "analogies.txt").write_text(content)
        with pytest.raises(ValueError, match=r"analogies\.txt is missing or not"):
            load_analogies()


def test_each_pair_is_asked_with_each_other_that_is_known():
    words = ["a", "b", "c", "d", "e"]
    asked = questions([("a", "b"), ("c", "d"), ("a", "e"), ("c", "unknown")], words)
    spelled = ["".join(words[i] for i in row) for row in asked]
    assert sorted(spelled) == ["abcd", "aecd", "cdab", "cdae"]  # a b a e has three words
    assert questions([("a", "unknown")], words).shape == (0, 4)


def test_the_fourth_word_is_that_of_a_loop():
    rng = np.random.default_rng(0)
    vectors = rng.standard_normal((30, 4)) * rng.uniform(0.2, 5, (30, 1))
    units = [v / np.sqrt(v @ v) for v in vectors]
    asked = np.array([rng.choice(30, 4, replace=False) for _ in range(20)])
    for weights in ((-1, 1, 1), (0, 0, 1), (0, 1, 1)):
        best = []
        for a, b, c, _ in asked:
            target = sum(w * units[i] for w, i in zip(weights, (a, b, c), strict=True))
            rest = [i for i in range(30) if i not in (a, b, c)]
            best.append(max(rest, key=lambda i: units[i] @ target))
        assert fourth_words(vectors, asked, weights).tolist() == best
    by_default = fourth_words(vectors, asked)
    assert by_default.tolist() == fourth_words(vectors, asked, (-1, 1, 1)).tolist()


def test_shared_neighbours_are_counted_word_by_word():
    line = np.array([[1, 0], [1, 0.1], [1, 0.3], [0, 1]])
    other = np.array([[1, 0], [0, 1], [1, 0.3], [1, 0.1]])
    np.testing.assert_array_equal(shared_neighbours(line, line, 2), np.ones(4))
    # nearest: of the first 1, 0, 1, 2; of the second 3, 2, 3, 0
    np.testing.assert_array_equal(shared_neighbours(line, other, 1), [0, 0, 0, 0])
    assert shared_neighbours(line, other, 3).tolist() == [1, 1, 1, 1]


def test_spelling_knows_letters_and_ends():
    vectors = spelling_vectors(["bee", "bees", "moon"])
    # bee: <b be ee e> <be bee ee>; bees has five of them and es s> ees es>
    assert vectors.sum(axis=1).tolist() == [7, 9, 9]
    assert vectors[0] @ vectors[1] == 5
    assert vectors[0] @ vectors[2] == 0


@pytest.mark.parametrize("across", [False, True])
def test_shuffled_texts_keep_lengths_and_words(across):
    texts = [list("abcdef"), list("ghij"), list("klmnopqrstu")]
    mixed = shuffled_texts(texts, 0, across)
    assert list(map(len, mixed)) == list(map(len, texts))
    assert sorted("".join(map("".join, mixed))) == sorted("".join(map("".join, texts)))
    stays = [sorted(a) == sorted(b) for a, b in zip(texts, mixed, strict=True)]
    assert all(stays) != across
    assert mixed != texts
    assert mixed == shuffled_texts(texts, 0, across) != shuffled_texts(texts, 1, across)


def test_pairs_of_a_table_are_drawn_for_its_rows_and_columns_alike():
    """Two pairs are drawn as (0, 0), (1, 1), or both: the means are 0, 4 and 5."""
    table = np.array([[0.0, 8.0], [8.0, 4.0]])
    assert interval_of_pairs(table) == (0, 5)
