"""Predictions that never saw their own answer, against refitting."""

import numpy as np
import pytest
import torch
from sklearn.kernel_ridge import KernelRidge
from torch.nn import functional as F

from lmcourse import probe

TEXTS, LABELS = 40, 3


@pytest.fixture(scope="module")
def vectors():
    return torch.randn(TEXTS, 12, generator=torch.Generator().manual_seed(0))


@pytest.fixture(scope="module")
def labels(vectors):
    noise = torch.randn(TEXTS, generator=torch.Generator().manual_seed(1))
    return np.array(["a", "b", "c"])[
        torch.bucketize(vectors[:, 0] + noise, torch.tensor([-0.5, 0.9]))
    ]


def truth(labels):
    return F.one_hot(torch.tensor(np.unique(labels, return_inverse=True)[1])).double()


def refitted(kernel, y, penalty, out, asked):
    """What scikit-learn says of one text when some are left out."""
    rest = np.setdiff1d(np.arange(len(kernel)), out)
    ridge = KernelRidge(alpha=penalty, kernel="precomputed")
    ridge.fit(kernel[np.ix_(rest, rest)], y[rest])
    return ridge.predict(kernel[asked, rest][None])[0]


@pytest.mark.parametrize("penalty", [0.01, 1.0, 100.0])
def test_leaving_out_one_and_two_equals_refitting(vectors, labels, penalty):
    kernel, y = probe.gram(vectors), truth(labels)
    one, two = probe.leave_out(probe.smoothers(kernel, [penalty])[0], y)
    kernel, y = kernel.numpy(), y.numpy()
    for i, j in ((0, 1), (7, 30), (39, 2)):
        np.testing.assert_allclose(one[j], refitted(kernel, y, penalty, [j], j), atol=1e-9)
        np.testing.assert_allclose(
            two[i, j], refitted(kernel, y, penalty, [i, j], j), atol=1e-9
        )


def test_the_penalty_is_chosen_by_the_others_alone(vectors, labels):
    """Each text's choice and support, done slowly; its own label changes neither."""
    kernel, y = probe.gram(vectors).numpy(), truth(labels).numpy()
    penalties = (0.1, 1.0, 10.0)
    predicted = probe.predict(vectors, labels, penalties)
    for i in (0, 5, 23):
        others = [j for j in range(TEXTS) if j != i]
        errors = [
            sum(((refitted(kernel, y, p, [i, j], j) - y[j]) ** 2).sum() for j in others)
            for p in penalties
        ]
        best = penalties[int(np.argmin(errors))]
        assert predicted.penalty[i] == best
        support = refitted(kernel, y, best, [i], i) / y[others].mean(axis=0)
        np.testing.assert_allclose(predicted.support[i], support, atol=1e-8)
        assert predicted.hits[i] == (predicted.names[support.argmax()] == labels[i])
    other = labels.copy()
    other[5] = "a" if labels[5] != "a" else "b"
    again = probe.predict(vectors, other, penalties)
    np.testing.assert_allclose(again.support[5], predicted.support[5], atol=1e-8)


def test_smoothers_may_be_given_and_say_the_same(vectors, labels):
    hats = probe.smoothers(probe.gram(vectors))
    assert hats.shape == (len(probe.PENALTIES), TEXTS, TEXTS)
    assert torch.equal(
        probe.predict(hats, labels).support, probe.predict(vectors, labels).support
    )


def test_the_gram_matrix_knows_neither_place_nor_scale(vectors):
    torch.testing.assert_close(
        probe.gram(5 * vectors.double() + 3), probe.gram(vectors.double())
    )
    assert probe.gram(vectors).diagonal().mean() == pytest.approx(2)


def test_the_score_weighs_each_label_the_same():
    labels = np.repeat(["x", "y", "z"], [6, 2, 1])
    hits = np.repeat([1.0, 0.0], [7, 2])  # all of x, half of y, none of z
    assert probe.score(hits, labels) == 0.5


def test_a_new_version_of_a_text_is_judged_by_all_others(vectors, labels):
    """As it is, it gets what `predict` says; another version, what scikit-learn says."""
    predicted = probe.predict(vectors, labels, (0.1, 10.0))
    for text in (0, 5, 23):
        versions = torch.stack([vectors[text], vectors[text] + 1])
        penalty = predicted.penalty[text].item()
        support = probe.ask(vectors, labels, text, versions, penalty)
        torch.testing.assert_close(support[0], predicted.support[text])
        swapped = vectors.clone()
        swapped[text] = versions[1]
        others = np.delete(np.arange(TEXTS), text)
        centred = (swapped - vectors.mean(0)).double()
        scale = (vectors - vectors.mean(0)).double().square().sum(1).mean()
        kernel = (centred @ centred.T / scale + 1).numpy()
        known = truth(labels).numpy()
        want = refitted(kernel, known, penalty, [text], text) / known[others].mean(0)
        np.testing.assert_allclose(support[1].numpy(), want, atol=1e-6)


def test_the_interval_is_that_of_the_normal_distribution():
    labels = np.repeat([0, 1], 500)
    hits = np.tile([1.0, 1.0, 1.0, 0.0, 0.0], 200)
    low, high = probe.interval(hits, labels, draws=8000)
    half = 1.96 * (0.24 / 1000) ** 0.5
    assert (low, high) == pytest.approx((0.6 - half, 0.6 + half), abs=3e-3)


@pytest.mark.parametrize(
    ("labels", "message"), [(["a", "b"], "2"), (["a"] * (TEXTS - 2) + ["b"] * 2, "three")]
)
def test_labels_that_cannot_be_guessed_are_refused(vectors, labels, message):
    with pytest.raises(ValueError, match=message):
        probe.predict(vectors, labels)
