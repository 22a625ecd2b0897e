"""Probes: what can be predicted of a text from its vector, with intervals.

A ridge regression on a kernel predicts each text's label from all the other texts, and its
penalty is chosen among those others, too. Nothing is refitted: the predictions of a linear
smoother ``H = K (K + λI)⁻¹`` without one or two of its texts have a closed form (Golub,
Heath and Wahba 1979).
"""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from lmcourse.numbers import bootstrap_interval

PENALTIES = tuple(10 ** (half / 2) for half in range(-4, 5))  # 0.01 to 100


@dataclass(frozen=True, eq=False)
class Predictions:
    """Each text's label, predicted from all the other texts.

    Attributes
    ----------
    names : list
        The labels, sorted: what the columns of ``support`` stand for.
    support : Tensor of shape (texts, labels)
        The prediction divided by the label's share among the other texts: 1 where the
        vectors add nothing to that share, 2 where the label is twice as likely, below 0
        where they speak against it.
    hits : array of shape (texts,)
        1.0 where the label with the most support is the text's own, else 0.0.
    penalty : Tensor of shape (texts,)
        The one with which the others are predicted best.
    """

    names: list
    support: Tensor
    hits: np.ndarray
    penalty: Tensor


def gram(vectors):
    """Return the Gram matrix of the texts' vectors: their products, pair by pair.

    Parameters
    ----------
    vectors : Tensor of shape (texts, d_model)

    Returns
    -------
    float64 Tensor of shape (texts, texts)
        Of vectors whose mean is subtracted and whose mean squared length is made 1; 1 is
        added, which gives the regression a constant.
    """
    x = vectors.double() - vectors.double().mean(dim=0)  # (texts, d_model)
    x = x / x.square().sum(dim=1).mean().sqrt()
    return x @ x.T + 1


def smoothers(gram, penalties=PENALTIES):
    """Return for each penalty the matrix that takes labels to a ridge regression's fit.

    It is H = K (K + penalty I)⁻¹, where K is the Gram matrix: ``H @ truth`` is what a ridge
    regression that was fitted to all texts says of these texts (a linear smoother).

    Parameters
    ----------
    gram : Tensor of shape (texts, texts)
        The products of the texts' vectors, pair by pair, after centring and scaling
        (`gram`).
    penalties : sequence of float
        By which the sum of the squared weights is multiplied, above 0; by default nine
        numbers from 0.01 to 100.

    Returns
    -------
    Tensor of shape (penalties, texts, texts)
    """
    sizes, axes = torch.linalg.eigh(gram)
    sizes = sizes.clamp(min=0)  # rounding may leave some just below
    return torch.stack([axes * (sizes / (sizes + p)) @ axes.T for p in penalties])


def leave_out(hat, truth):
    """Predict each text without itself, and without itself and one other.

    In closed form, from a fit to all texts: leaving out texts scales their residuals
    (Golub, Heath and Wahba 1979).

    Parameters
    ----------
    hat : Tensor of shape (texts, texts)
        A linear smoother: ``hat @ truth`` is the fit to all texts.
    truth : Tensor of shape (texts, labels)
        1 at a text's label, else 0.

    Returns
    -------
    without_one : Tensor of shape (texts, labels)
    without_two : Tensor of shape (texts, texts, labels)
        At ``[i, j]``: the prediction for j when i and j are both left out. At ``[i, i]``
        stands the truth.
    """
    rest = torch.eye(len(hat), dtype=hat.dtype) - hat  # takes labels to residuals
    residuals = rest @ truth  # (texts, labels)
    own = rest.diagonal()[:, None]  # (texts, 1)
    # Without i and j the residuals are the inverse of rest's 2 x 2 part, times these two.
    determinants = own * own.T - rest.square()  # (texts, texts), of rest at i and j
    determinants.fill_diagonal_(1)  # i = j is no pair
    numerators = own[..., None] * residuals - rest[..., None] * residuals[:, None]
    return truth - residuals / own, truth - numerators / determinants[..., None]


def predict(vectors, labels, penalties=PENALTIES):
    """Predict each text's label by a ridge regression on all other texts' vectors.

    Nothing is fitted again for each text: `leave_out` has the predictions without one or
    two of the texts in closed form.

    Parameters
    ----------
    vectors : Tensor of shape (texts, d_model), or (penalties, texts, texts)
        The texts' vectors; or, so that they are made only once for several sets of labels,
        what `smoothers` makes of them: for each penalty the matrix that takes labels to
        fitted labels.
    labels : array of shape (texts,)
        Each text's, such as str.
    penalties : sequence of float
        Of the regression, by default nine numbers from 0.01 to 100. Chosen for each text:
        the one with which the *others*, each left out in its turn, are predicted with the
        least squared error.

    Returns
    -------
    Predictions
        ``names``, a list of the labels, sorted; ``support``, float64 Tensor (texts,
        labels), the regression's output for each label (fitted to 1 for a text's own label
        and 0 for others), divided by the label's share among the other texts; ``hits``,
        array (texts,), 1.0 where the label with the most support is right, else 0.0;
        ``penalty``, Tensor (texts,), the one chosen for each text.

    Raises
    ------
    ValueError
        If there are not as many labels as vectors, or fewer than three texts have a label.
    """
    names, code = np.unique(np.asarray(labels), return_inverse=True)
    if code.shape != vectors.shape[-2:-1]:
        raise ValueError(f"{vectors.shape[-2]} vectors and {code.shape} labels")
    if np.bincount(code).min() < 3:
        raise ValueError("each label needs three texts: two may be left out at once")
    hats = vectors if vectors.ndim == 3 else smoothers(gram(vectors), penalties)
    truth = torch.nn.functional.one_hot(torch.tensor(code)).double()  # (texts, labels)
    predictions = []
    errors = []
    for hat in hats:
        without_one, without_two = leave_out(hat, truth)
        predictions.append(without_one)
        # For each text: how wrong the others are about one another. i = j adds 0.
        errors.append((without_two - truth).square().sum(dim=(1, 2)))
    best = torch.stack(errors).argmin(dim=0)  # (texts,): the penalty that is chosen
    chosen = torch.stack(predictions)[best, torch.arange(len(truth))]  # (texts, labels)
    share = (truth.sum(dim=0) - truth) / (len(truth) - 1)  # of each label among the others
    support = chosen / share
    hits = (support.argmax(dim=1) == torch.tensor(code)).double().numpy()
    penalty = torch.tensor(penalties, dtype=torch.float64)[best]
    return Predictions(names.tolist(), support, hits, penalty)


def ask(vectors, labels, text, versions, penalty):
    """Predict the label of new versions of a text by a ridge regression on the other texts.

    For the text as it is this gives its row of `predict`'s ``support``.

    Parameters
    ----------
    vectors : Tensor of shape (texts, d_model)
    labels : array of shape (texts,)
        Each text's, such as str.
    text : int
        The row of the text, which is left out.
    versions : Tensor of shape (versions, d_model)
        Its vector after each change.
    penalty : float
        By which the regression multiplies the sum of its squared weights; `predict` returns
        the one chosen for the text.

    Returns
    -------
    float64 Tensor of shape (versions, labels)
        The support for each label, in sorted order: the regression's output (fitted to 1
        for a text's own label and 0 for others), divided by the label's share among the
        other texts. The greatest is the prediction.
    """
    vectors = vectors.double()
    _, code = np.unique(np.asarray(labels), return_inverse=True)
    others = np.delete(np.arange(len(vectors)), text)
    centre = vectors.mean(dim=0)
    size = (vectors - centre).square().sum(dim=1).mean().sqrt()
    x = (vectors[others] - centre) / size  # (texts - 1, d_model)
    new = (versions.double() - centre) / size  # (versions, d_model)
    truth = torch.nn.functional.one_hot(torch.tensor(code)).double()[others]
    ridge = penalty * torch.eye(len(others), dtype=x.dtype)
    weights = torch.linalg.solve(x @ x.T + 1 + ridge, truth)  # (texts - 1, labels)
    return (new @ x.T + 1) @ weights / truth.mean(dim=0)


def score(hits, labels):
    """Return the balanced accuracy: the mean over the labels of the share predicted right.

    Parameters
    ----------
    hits : float array of shape (texts,)
        1.0 where the predicted label is right, else 0.0.
    labels : array of shape (texts,)
        The true label of each text, such as str.

    Returns
    -------
    float
        From 0 to 1; every label has the same weight, however many texts have it.
    """
    return float(np.mean([hits[labels == label].mean() for label in np.unique(labels)]))


def interval(hits, labels, draws=1000, seed=0):
    """Return the 95 % bootstrap interval of a balanced accuracy (`score`).

    The statistic is the mean over the labels of the mean of their texts' hits. In each
    resample the texts of each label are drawn again, with replacement.

    Parameters
    ----------
    hits : array of shape (texts,)
        1 where a text's label was predicted right, else 0; or differences of two such, for
        the interval of a paired difference.
    labels : array of shape (texts,)
        The true label of each text, such as str.
    draws : int
        Resamples, each with as many texts of each label as there are.
    seed : int
        Of these draws.

    Returns
    -------
    float array of shape (2,)
        The lower and the upper end.
    """
    return np.array(bootstrap_interval(hits, groups=labels, draws=draws, seed=seed))
