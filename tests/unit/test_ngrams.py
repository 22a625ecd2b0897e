"""N-gram models against a plain recount with dictionaries."""

from collections import Counter
from functools import lru_cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lmcourse.ngrams import NgramModel, discounts

texts = st.lists(st.integers(0, 4), min_size=5, max_size=60)
orders = st.integers(1, 5)


def occurring(ids, size):
    return Counter(tuple(ids[i : i + size]) for i in range(len(ids) - size + 1))


@lru_cache(maxsize=64)
def counted(ids, size, order):
    """What modified Kneser–Ney counts: occurrences, or different tokens before."""
    if size == order:
        return occurring(ids, size)
    before = {}
    for first, *rest in occurring(ids, size + 1):
        before.setdefault(tuple(rest), set()).add(first)
    return {gram: len(tokens) for gram, tokens in before.items()}


@lru_cache(maxsize=64)
def taken(ids, size, order):
    """What is taken from counts of 0, 1, 2 and 3+, as Chen and Goodman have it (26)."""
    n = Counter(counted(ids, size, order).values())
    n1, n2, n3, n4 = n[1], n[2], n[3], n[4]
    amounts = [0, 0.5, 1, 1.5]  # where the text is too short to tell
    if n1 and n2:
        y = n1 / (n1 + 2 * n2)
        amounts[1] = 1 - 2 * y * n2 / n1
        if n3 and 2 - 3 * y * n3 / n2 > 0:
            amounts[2] = 2 - 3 * y * n3 / n2
        if n3 and n4 and 3 - 4 * y * n4 / n3 > 0:
            amounts[3] = 3 - 4 * y * n4 / n3
    return amounts


def recount(ids, vocab_size, order, context, token):
    """P(token | context), term by term."""
    context = tuple(context)
    lower = 1 / vocab_size
    if context:
        lower = recount(ids, vocab_size, order, context[1:], token)
    size = len(context) + 1
    after = {
        gram[-1]: n for gram, n in counted(ids, size, order).items() if gram[:-1] == context
    }
    if not after:
        return lower
    less = taken(ids, size, order)
    own = max(after.get(token, 0) - less[min(after.get(token, 0), 3)], 0)
    left = sum(less[min(n, 3)] for n in after.values())
    return (own + left * lower) / sum(after.values())


def recounted(ids, vocab_size, order, other):
    """P of each token of another text after those before it."""
    contexts = [other[max(i - order + 1, 0) : i] for i in range(len(other))]
    pairs = zip(contexts, other, strict=True)
    return [recount(tuple(ids), vocab_size, order, *pair) for pair in pairs]


@settings(max_examples=60)
@given(texts, texts, orders)
def test_it_equals_a_plain_recount(ids, other, order):
    probs = NgramModel(ids, order, 6).probabilities(other)  # token 5 never occurs
    np.testing.assert_allclose(probs, recounted(ids, 6, order, other), rtol=1e-12)


@settings(max_examples=60)
@given(texts, st.lists(st.integers(0, 5), max_size=7), orders)
def test_each_distribution_sums_to_one_and_leaves_nothing_out(ids, context, order):
    """After contexts that were seen and that were not: token 5 never was."""
    following = NgramModel(ids, order, 6).next_probs(context)
    assert following.shape == (6,)
    assert following.sum() == pytest.approx(1, rel=1e-12)
    assert (following > 0).all()
    recent = context[max(len(context) - order + 1, 0) :]
    expected = [recount(tuple(ids), 6, order, recent, token) for token in range(6)]
    np.testing.assert_allclose(following, expected, rtol=1e-12)


@pytest.mark.parametrize(
    ("often", "want"),
    [
        ([0, 10, 5, 2], [0.5, 1, 1.5]),  # nothing occurs once: no Y
        ([40, 0, 5, 2], [0.5, 1, 1.5]),  # nor without what occurs twice
        ([40, 10, 5, 2], [2 / 3, 1, 29 / 15]),
        ([40, 10, 0, 2], [2 / 3, 1, 1.5]),
        ([40, 10, 5, 0], [2 / 3, 1, 1.5]),
        ([4, 1, 4, 6], [2 / 3, 1, 1.5]),  # 2 - 3 Y 4 is below 0, and 3 - 4 Y 6/4, too
    ],
)
def test_half_of_a_count_is_taken_where_its_neighbours_do_not_tell(often, want):
    counts = np.repeat([1, 2, 3, 4], often)
    np.testing.assert_allclose(discounts(counts), want, rtol=1e-12)


def test_samples_follow_what_was_counted():
    model = NgramModel([0, 1, 2] * 500, 3, 3)
    text = model.sample([0, 1], 60, np.random.default_rng(0))
    assert len(text) == 60
    assert sum(a == (b + 1) % 3 for a, b in zip(text[1:], text, strict=False)) > 50
    again = model.sample([0, 1], 60, np.random.default_rng(0))
    assert text == again
    assert model.sample([], 0, np.random.default_rng(0)) == []


@pytest.mark.parametrize(
    ("ids", "order", "vocab_size", "message"),
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
def test_what_cannot_be_counted_is_refused(ids, order, vocab_size, message):
    with pytest.raises(ValueError, match=message):
        NgramModel(ids, order, vocab_size)


def test_a_text_with_an_unknown_id_has_no_loss():
    with pytest.raises(ValueError, match="ID 9"):
        NgramModel([0, 1, 2], 2, 3).loss([0, 9])
