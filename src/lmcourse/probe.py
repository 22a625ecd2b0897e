"""What vectors tell of labels: predictions that never saw their own answer, with intervals.

A ridge regression on a kernel predicts each text's label from all the others, and its
penalty is chosen among those others too. Nothing is refitted: what a linear smoother
``H = K (K + λI)⁻¹`` says without one or two of its texts is known in closed form
(Golub, Heath and Wahba 1979).
"""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from lmcourse.numbers import bootstrap_interval

PENALTIES = tuple(10 ** (half / 2) for half in range(-4, 5))  # 0.01 to 100


@dataclass(frozen=True, eq=False)
class Predictions:
    """What all the other texts say of each text.

    Attributes
    ----------
    names : list
        The labels, sorted: what the columns of ``support`` stand for.
    support : Tensor of shape (texts, labels)
        1 where the others' vectors say no more than the label's share among them does,
        2 where they say twice as much, below 0 where they speak against it.
    hits : array of shape (texts,)
        1.0 where the label with the most support is the text's own, else 0.0.
    penalty : Tensor of shape (texts,)
        Which one the others chose.
    """

    names: list
    support: Tensor
    hits: np.ndarray
    penalty: Tensor


def gram(vectors):
    """Return how alike the texts' vectors are: (texts, texts), in float64.

    The mean vector is taken off, a typical length made 1, and 1 added for a constant.
    """
    x = vectors.double() - vectors.double().mean(dim=0)  # (texts, d_model)
    x = x / x.square().sum(dim=1).mean().sqrt()
    return x @ x.T + 1


def smoothers(gram, penalties=PENALTIES):
    """Return a ridge regression's smoother for each penalty: (penalties, texts, texts)."""
    sizes, axes = torch.linalg.eigh(gram)
    sizes = sizes.clamp(min=0)
    return torch.stack([axes * (sizes / (sizes + p)) @ axes.T for p in penalties])


def leave_out(hat, truth):
    """Return what is said of each text without it, and without it and another.

    Parameters
    ----------
    hat : Tensor of shape (texts, texts)
    truth : Tensor of shape (texts, labels)
        1 at a text's label, else 0.

    Returns
    -------
    one : Tensor of shape (texts, labels)
    two : Tensor of shape (texts, texts, labels)
        At ``[i, j]``: what is said of j when i and j are both left out.
    """
    rest = torch.eye(len(hat), dtype=hat.dtype) - hat
    off = rest @ truth  # (texts, labels): how far the fit is off
    own = rest.diagonal()[:, None]  # (texts, 1)
    area = own * own.T - rest.square()  # (texts, texts)
    area.fill_diagonal_(1)  # i = j is no pair
    pair = (own[..., None] * off - rest[..., None] * off[:, None]) / area[..., None]
    return truth - off / own, truth - pair


def predict(vectors, labels, penalties=PENALTIES):
    """Predict each text's label from all the others, the penalty chosen among them.

    Parameters
    ----------
    vectors : Tensor of shape (texts, d_model), or smoothers (penalties, texts, texts)
    labels : array of shape (texts,)
    penalties : sequence of float
        Chosen for each text: the one with which the *others*, each left out in its turn,
        are predicted with the least squared error.

    Returns
    -------
    Predictions

    Raises
    ------
    ValueError
        If there are not as many labels as vectors, or a label stands alone.
    """
    names, code = np.unique(np.asarray(labels), return_inverse=True)
    if code.shape != vectors.shape[-2:-1]:
        raise ValueError(f"{vectors.shape[-2]} vectors and {code.shape} labels")
    if np.bincount(code).min() < 3:
        raise ValueError("each label needs three texts: two may be left out at once")
    hats = vectors if vectors.ndim == 3 else smoothers(gram(vectors), penalties)
    truth = torch.nn.functional.one_hot(torch.tensor(code)).double()  # (texts, labels)
    said, errors = [], []
    for hat in hats:
        one, two = leave_out(hat, truth)
        said.append(one)
        errors.append((two - truth).square().sum(dim=(1, 2)))  # (texts,); i = j adds 0
    best = torch.stack(errors).argmin(dim=0)  # (texts,)
    said = torch.stack(said)[best, torch.arange(len(truth))]  # (texts, labels)
    penalty = torch.tensor(penalties, dtype=torch.float64)[best]
    share = (truth.sum(dim=0) - truth) / (len(truth) - 1)  # among the others
    hits = ((said / share).argmax(dim=1) == torch.tensor(code)).double().numpy()
    return Predictions(names.tolist(), said / share, hits, penalty)


def ask(vectors, labels, text, versions, penalty):
    """Return what all other texts say of new versions of one: (versions, labels).

    Support, as in `predict`, which says the same of the text as it is.

    Parameters
    ----------
    vectors : Tensor of shape (texts, d_model)
    labels : array of shape (texts,)
    text : int
    versions : Tensor of shape (versions, d_model)
    penalty : float
    """
    old, (_, code) = vectors.double(), np.unique(np.asarray(labels), return_inverse=True)
    centre, rest = old.mean(dim=0), np.delete(np.arange(len(old)), text)
    size = (old - centre).square().sum(dim=1).mean().sqrt()
    x, new = (old[rest] - centre) / size, (versions.double() - centre) / size
    truth = torch.nn.functional.one_hot(torch.tensor(code)).double()[rest]
    ridge = penalty * torch.eye(len(rest), dtype=x.dtype)
    weights = torch.linalg.solve(x @ x.T + 1 + ridge, truth)  # (texts - 1, labels)
    return (new @ x.T + 1) @ weights / truth.mean(dim=0)


def score(hits, labels):
    """Return the balanced accuracy: the mean over the labels of the share guessed right."""
    return float(np.mean([hits[labels == label].mean() for label in np.unique(labels)]))


def interval(hits, labels, draws=1000, seed=0):
    """Return where the middle 95 % of the score lie when the texts are drawn again.

    Parameters
    ----------
    hits : array of shape (texts,)
        0 or 1; or differences of two such, for the interval of a paired difference.
    labels : array of shape (texts,)
    draws : int
        Resamples, each with as many texts of each label as there are.

    Returns
    -------
    array of two floats
    """
    return np.array(bootstrap_interval(hits, groups=labels, draws=draws, seed=seed))
