"""The tables of n-grams: who shares a row, and what they add."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lmcourse.gpt.model import ngram_rows
from test_gpt_model import BATCH, TOKENS, close, gpt, some_ids


@settings(deadline=None, max_examples=100)
@given(
    ids=st.lists(
        st.lists(st.integers(0, 3), min_size=6, max_size=6), min_size=1, max_size=4
    ),
    order=st.integers(2, 3),
    tokens=st.integers(1, 6),
)
def test_ngrams_share_a_row_only_if_equal(ids, order, tokens):
    """With rows enough; where nothing stands before, that too is part of the n-gram."""
    rows = ngram_rows(torch.tensor(ids)[:, :tokens], order, 2**61)
    seen = {}
    for i, window in enumerate(ids):
        for j in range(tokens):
            ngram = tuple(
                window[k] if k >= 0 else None for k in range(j - order + 1, j + 1)
            )
            seen.setdefault(ngram, set()).add(rows[i, j].item())
    assert all(len(found) == 1 for found in seen.values())
    assert len(set.union(*seen.values())) == len(seen)


@settings(deadline=None, max_examples=50)
@given(
    ids=st.lists(st.integers(0, 50_000), min_size=4, max_size=12),
    order=st.integers(2, 6),
    rows=st.integers(1, 7000),
)
def test_rows_are_in_the_table(ids, order, rows):
    got = ngram_rows(torch.tensor([ids, ids]), order, rows)
    assert got.shape == (2, len(ids))
    assert 0 <= got.min() <= got.max() < rows
    assert torch.equal(got[0], got[1])


def test_few_rows_are_used_evenly():
    pairs = torch.cartesian_prod(torch.arange(60), torch.arange(60))
    counts = ngram_rows(pairs, 2, 64)[:, 1].bincount(minlength=64)
    assert counts.min() > 0
    assert counts.max() < 3 * 3600 / 64


@pytest.mark.parametrize("positions", ["learned", "rotary"])
def test_each_table_adds_a_vector(positions):
    model, ids = gpt(positions=positions, ngrams=(13, 17)), some_ids()
    got = model.embed(ids)
    for i in range(BATCH):
        for j in range(TOKENS):
            want = model.tokens.weight[ids[i, j]]
            if positions == "learned":
                want = want + model.positions.weight[j]
            for table, order, rows in zip(model.ngrams, (2, 3), (13, 17), strict=True):
                want = want + table.weight[ngram_rows(ids[i : i + 1], order, rows)[0, j]]
            close(got[i, j], want)
