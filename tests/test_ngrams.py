"""N-gram models against a plain recount with dictionaries."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lmcourse.ngrams import NgramModel

texts = st.lists(st.integers(0, 4), min_size=5, max_size=60)


def recount(ids, vocab_size, context, token):
    """P(token | context), term by term as Witten and Bell write it."""
    lower = 1 / vocab_size if not context else recount(ids, vocab_size, context[1:], token)
    size = len(context) + 1
    grams = Counter(tuple(ids[i : i + size]) for i in range(len(ids) - size + 1))
    followed = {gram[-1]: n for gram, n in grams.items() if gram[:-1] == tuple(context)}
    if not followed:
        return lower
    kinds = len(followed)
    return (followed.get(token, 0) + kinds * lower) / (sum(followed.values()) + kinds)


@settings(max_examples=40, deadline=None)
@given(texts, texts, st.integers(1, 5))
def test_it_equals_a_plain_recount(ids, other, order):
    model = NgramModel(ids, order, 6)  # token 5 never occurs
    found = model.probabilities(other)
    for place, token in enumerate(other):
        context = other[max(place - order + 1, 0) : place]
        assert found[place] == pytest.approx(recount(ids, 6, context, token), rel=1e-12)


@settings(max_examples=40, deadline=None)
@given(texts, st.lists(st.integers(0, 5), max_size=7), st.integers(1, 5))
def test_each_distribution_sums_to_one_and_leaves_nothing_out(ids, context, order):
    following = NgramModel(ids, order, 6).following(context)
    assert following.shape == (6,)
    assert following.sum() == pytest.approx(1, rel=1e-12)
    assert (following > 0).all()
    recent = context[max(len(context) - order + 1, 0) :]
    expected = [recount(ids, 6, recent, token) for token in range(6)]
    np.testing.assert_allclose(following, expected, rtol=1e-12)


def test_a_worked_example():
    # "abracadabra" as a=0 b=1 c=2 d=3 r=4: after a came b, c, d, b.
    ids = [0, 1, 4, 0, 2, 0, 3, 0, 1, 4, 0]
    one = (2 + 5 * 0.2) / (11 + 5)  # of eleven letters two are b; five kinds
    assert NgramModel(ids, 2, 5).following([0])[1] == pytest.approx((2 + 3 * one) / (4 + 3))


def test_the_loss_is_the_mean_surprise():
    ids = [0, 1, 4, 0, 2, 0, 3, 0, 1, 4, 0]
    model = NgramModel(ids, 3, 5)
    surprise = [
        -np.log(model.following(ids[:place])[ids[place]]) for place in range(len(ids))
    ]
    assert model.loss(ids) == pytest.approx(np.mean(surprise), rel=1e-12)


def test_samples_follow_what_was_counted():
    model = NgramModel([0, 1, 2] * 500, 3, 3)
    text = model.sample([0, 1], 60, np.random.default_rng(0))
    assert len(text) == 60
    assert sum(a == (b + 1) % 3 for a, b in zip(text[1:], text, strict=False)) > 50
    again = model.sample([0, 1], 60, np.random.default_rng(0))
    assert text == again
    assert model.sample([], 0, np.random.default_rng(0)) == []


@pytest.mark.parametrize(
    ("ids", "order", "vocab_size", "told"),
    [
        ([0, 1], 0, 3, "at least 1"),
        ([0, 1], 3, 3, "no 3-gram"),
        ([], 1, 3, "no 1-gram"),
        ([0, 3], 1, 3, "ID 3 is not in a vocabulary of 3"),
        ([0, -1], 1, 3, "ID -1"),
        ([0.5, 1.0], 1, 3, "whole numbers"),
        ([[0, 1], [1, 0]], 1, 3, "flat"),
        ([0, 1] * 20, 12, 50, "64 bits"),
    ],
)
def test_what_cannot_be_counted_is_refused(ids, order, vocab_size, told):
    with pytest.raises(ValueError, match=told):
        NgramModel(ids, order, vocab_size)


def test_a_text_is_checked_too():
    with pytest.raises(ValueError, match="ID 9"):
        NgramModel([0, 1, 2], 2, 3).loss([0, 9])
