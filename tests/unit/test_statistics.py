"""Statistics that proofs and studies share, against scikit-learn and by hand."""

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import roc_auc_score

from studies.measures import auc, extremes


@pytest.mark.parametrize("seed", range(3))
def test_auc_is_that_of_scikit_learn_also_with_ties(seed):
    rng = np.random.default_rng(seed)
    positives = rng.integers(2, 9, 40)
    negatives = rng.integers(0, 7, 25)
    truth = np.repeat([1, 0], [40, 25])
    want = roc_auc_score(truth, np.concatenate([positives, negatives]))
    assert auc(positives, negatives) == pytest.approx(want, abs=1e-12)


@pytest.mark.parametrize("kind", [list, np.array, pd.Series])
def test_extremes_are_the_lowest_and_the_highest_as_floats_of_python(kind):
    low, high = extremes(kind([2, -1, 3, 0]))
    assert (low, high) == (-1.0, 3.0)
    assert type(low) is type(high) is float
