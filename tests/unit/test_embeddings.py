"""Word vectors, against loops, scikit-learn, LAPACK and an example worked by hand."""

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.stats import special_ortho_group
from sklearn.decomposition import PCA
from sklearn.metrics.pairwise import cosine_similarity
from sklearn.neighbors import NearestNeighbors

from lmcourse import data, embeddings
from studies.embeddings.embeddings import mean_cosine

texts_of_words = st.lists(st.lists(st.sampled_from("abcde"), max_size=7), min_size=1)


@pytest.fixture(scope="module")
def vectors():
    return np.random.default_rng(1).standard_normal((23, 7)) + 0.5


@pytest.fixture(scope="module")
def corpus():
    poems = data.load_poems()
    return poems.text[poems.series == 1890].tolist()


def test_unit_vectors(vectors):
    stack = np.stack([vectors, 3 * vectors])  # (2, words, d_model)
    got = embeddings.unit(stack)
    np.testing.assert_allclose((got**2).sum(-1), np.ones((2, 23)), rtol=1e-12)
    np.testing.assert_allclose(got[0] @ got[1].T, cosine_similarity(vectors), atol=1e-12)
    assert (embeddings.unit(np.zeros((2, 3))) == 0).all()


def test_neighbours_are_those_of_scikit_learn(vectors):
    judge = NearestNeighbors(n_neighbors=6, metric="cosine").fit(vectors)
    distance, nearest = judge.kneighbors(vectors)
    for row in range(len(vectors)):
        got, cosine = embeddings.neighbours(vectors, row, 5)
        np.testing.assert_array_equal(got, nearest[row][nearest[row] != row])
        np.testing.assert_allclose(cosine, 1 - distance[row, 1:], atol=1e-12)


def test_neighbours_ignore_length_and_break_ties_by_row():
    vectors = np.array([[1.0, 0], [1, 1], [8, 8], [0, 1], [5, 0]])
    got, cosine = embeddings.neighbours(vectors, 0, 4)
    assert got.tolist() == [4, 1, 2, 3]
    np.testing.assert_allclose(cosine, [1, 0.5**0.5, 0.5**0.5, 0], atol=1e-12)
    for row, twin in [(0, 4), (4, 0)]:  # neither is its own neighbour
        assert embeddings.neighbours(vectors, row, 1)[0].tolist() == [twin]


def test_mean_cosine_is_that_of_all_pairs_and_0_with_a_vector_of_zeros(vectors):
    some = np.concatenate([vectors, np.zeros((2, vectors.shape[1]))])
    for rows in (vectors, some, some[-3:], np.zeros((3, 2)), np.array([[2.0, 0], [-1, 0]])):
        pairs = cosine_similarity(rows)[np.triu_indices(len(rows), 1)]
        assert mean_cosine(rows) == pytest.approx(pairs.mean(), abs=1e-12)
    with pytest.raises(ValueError, match="two vectors"):
        mean_cosine(vectors[:1])


def test_principal_components_are_those_of_scikit_learn(vectors):
    judge = PCA(n_components=3, svd_solver="full").fit(vectors)
    points, share = embeddings.principal_components(vectors, 3)
    np.testing.assert_allclose(np.abs(points), np.abs(judge.transform(vectors)), atol=1e-9)
    np.testing.assert_allclose(share, judge.explained_variance_ratio_, rtol=1e-9)
    largest = np.abs(points).argmax(axis=0)
    assert (points[largest, range(3)] > 0).all()


def test_signs_do_not_depend_on_the_input(vectors):
    flipped = vectors * np.where(np.arange(7) % 2, -1, 1)
    want = embeddings.fix_signs(vectors)
    np.testing.assert_array_equal(embeddings.fix_signs(flipped), want)
    np.testing.assert_array_equal(np.abs(want), np.abs(vectors))


def test_overlap_of_the_same_of_turned_and_of_unrelated_spaces(vectors):
    turn = special_ortho_group.rvs(7, random_state=3)
    assert embeddings.neighbour_overlap(vectors, vectors, 4) == 1
    assert embeddings.neighbour_overlap(vectors, 2 * vectors @ turn, 4) == 1
    rng = np.random.default_rng(5)
    one, other = rng.standard_normal((400, 6)), rng.standard_normal((400, 9))
    # 4,000 places, each shared with probability 10/399.
    got = embeddings.neighbour_overlap(one, other, 10)
    assert got == pytest.approx(10 / 399, abs=0.015)
    assert embeddings.neighbour_overlap(one, other, 399) == 1
    with pytest.raises(ValueError, match="23 and 22 rows"):
        embeddings.neighbour_overlap(vectors, vectors[1:], 4)
    with pytest.raises(ValueError, match="23 neighbours"):
        embeddings.neighbour_overlap(vectors, vectors, 23)


def test_words():
    text = "Afterwards — day!\nO’er the bees’ to-day, 'tis né, 1862 NE'ER."
    want = ["afterwards", "day", "o'er", "the", "bees", "to", "day", "tis", "né", "ne'er"]
    assert embeddings.words(text) == want
    assert embeddings.words(" 12 -- ") == []


def looped(texts, window):
    """Count the ordered pairs of words at most ``window`` positions apart, one by one."""
    pairs = Counter()
    for text in texts:
        for i, word in enumerate(text):
            for j, other in enumerate(text):
                if i != j and abs(i - j) <= window:
                    pairs[word, other] += 1
    return pairs


@given(texts_of_words, st.integers(1, 4), st.sampled_from(["abcde", "ace", "e"]))
@settings(max_examples=60)
def test_counts_are_those_of_a_loop(texts, window, known):
    got = embeddings.cooccurrence(texts, list(known), window).toarray()
    pairs = looped(texts, window)
    want = [[pairs[word, other] for other in known] for word in known]
    np.testing.assert_array_equal(got, want)


def test_ppmi_of_an_example_worked_by_hand():
    counts = np.array([[0, 2, 1, 0], [2, 0, 4, 0], [1, 4, 0, 9]])  # 23 pairs in all
    got = embeddings.ppmi(sparse.csr_array(counts.astype(float))).toarray()
    ratio = [
        [0, 2 * 23 / (3 * 6), 1 * 23 / (3 * 5), 0],
        [2 * 23 / (6 * 3), 0, 4 * 23 / (6 * 5), 0],
        [0, 4 * 23 / (14 * 6), 0, 9 * 23 / (14 * 9)],  # 1 * 23 / (14 * 3) is below chance
    ]
    want = [[math.log(r) if r else 0 for r in row] for row in ratio]
    np.testing.assert_allclose(got, want, rtol=1e-12)


def test_word_vectors_are_those_of_a_dense_decomposition(corpus):
    split = [embeddings.words(text) for text in corpus]
    names, got = embeddings.word_vectors(split, 9, window=3, min_count=4)
    counted = Counter(word for text in split for word in text)
    often = [word for word in counted if counted[word] >= 4]
    assert names == sorted(often, key=lambda word: (-counted[word], word))
    pairs = looped(split, 3)
    counts = np.array([[pairs[a, b] for b in names] for a in names], dtype=float)
    contexts = counts.sum(0) ** 0.75
    with np.errstate(divide="ignore"):
        ratio = counts / counts.sum(1, keepdims=True) / (contexts / contexts.sum())
        matrix = np.maximum(np.log(ratio), 0)
    left, sizes, _ = np.linalg.svd(matrix)
    want = left[:, :9] * np.sqrt(sizes[:9])
    want *= np.sign(want[np.abs(want).argmax(0), range(9)])
    np.testing.assert_allclose(got, want, atol=1e-8)
    again = embeddings.word_vectors(corpus, 9, window=3, min_count=4)  # of texts
    assert again[0] == names
    np.testing.assert_array_equal(again[1], got)


def test_refusals(corpus):
    with pytest.raises(ValueError, match="window of 0"):
        embeddings.word_vectors(corpus, 5, window=0)
    with pytest.raises(ValueError, match="with 3 words"):
        embeddings.word_vectors(["one two three"], 3)
    with pytest.raises(ValueError, match="d_model is 0"):
        embeddings.word_vectors(corpus, 0)
    with pytest.raises(ValueError, match="with 0 words"):
        embeddings.word_vectors([], 2)
