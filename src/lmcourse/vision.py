"""A vision Transformer: an image is cut into patches, and each patch is a token.

Images are scikit-learn's digits, 1,797 of 8 × 8 numbers of ink (0 to 16) by 13 writers. In
that file one row of about 128 digits comes 14 times, as on a form that each writer filled
in. It is split into folds of whole forms, so that no writer is in two of them.
"""

from functools import cache

import torch
import torch.nn.functional as F
from torch import nn

from lmcourse.training_loop import train_one_cycle
from lmcourse.transformer import Stack

STARTS = (0, 386, 776, 1157, 1545)  # of the folds: three forms each, the last two


@cache
def digits():
    """Return all digits.

    Returns
    -------
    images : Tensor of shape (1797, 8, 8)
        Ink, from 0 to 1.
    labels : int64 Tensor of shape (1797,)
    """
    # Imported here because it takes a second, also for readers who want no digits.
    from sklearn.datasets import load_digits

    bunch = load_digits()
    return torch.tensor(bunch.images).float() / 16, torch.tensor(bunch.target)


def split_digits(fold=0):
    """Split the digits into training, validation and test: three folds of five, one, one.

    No writer of digits is in two folds.

    Parameters
    ----------
    fold : int
        From 0 to 4, the test fold; the next one is for validation.

    Returns
    -------
    training, validation, test : int64 Tensor of shape (digits,)
        Positions in `digits`.
    """
    folds = torch.arange(len(digits()[1])).tensor_split(STARTS[1:])
    following = (fold + 1) % len(folds)
    training = [part for i, part in enumerate(folds) if i not in (fold, following)]
    return torch.cat(training), folds[following], folds[fold]


def patches(images, size=2):
    """Cut images into square patches, row by row.

    Parameters
    ----------
    images : Tensor of shape (batch, rows, columns)
    size : int
        Pixels along a side of a patch; it divides rows and columns.

    Returns
    -------
    Tensor of shape (batch, patches, size · size)
    """
    cut = images.unflatten(-1, (-1, size))  # (batch, rows, across, size)
    cut = cut.unflatten(-3, (-1, size))  # (batch, down, size, across, size)
    return cut.transpose(-3, -2).flatten(-4, -3).flatten(-2)


class VisionTransformer(nn.Module):
    """Blocks on patches and one token more, whose last state names the class.

    Parameters
    ----------
    size : int
        Of a patch, in pixels a side.
    layers, d_model, heads : int
    positions : bool
        Whether a learned vector for its position is added to each patch.
    """

    def __init__(self, size=2, layers=2, d_model=32, heads=4, positions=True):
        super().__init__()
        self.size = size
        count = (8 // size) ** 2
        self.embed = nn.Linear(size * size, d_model)
        self.first = nn.Parameter(0.02 * torch.randn(d_model))
        table = 0.02 * torch.randn(count, d_model)
        if not positions:
            table.zero_()
        self.positions = nn.Parameter(table, requires_grad=positions)
        self.stack = Stack(layers, d_model, heads, 4 * d_model)
        self.answer = nn.Linear(d_model, 10, bias=False)

    def tokens(self, images):
        """Return the vectors of images: a first token, then the patches, with positions.

        ``images`` : Tensor (batch, 8, 8), ink from 0 to 1. Returns a Tensor (batch,
        1 + patches, d_model).
        """
        x = self.embed(patches(images, self.size)) + self.positions
        return torch.cat([self.first.expand(len(x), 1, -1), x], 1)

    def forward(self, images):
        """Return the logits of the ten digits, and the attention weights of each block.

        Parameters
        ----------
        images : Tensor of shape (batch, 8, 8)
            Ink, from 0 to 1.

        Returns
        -------
        logits : Tensor of shape (batch, 10)
        weights : list of Tensor of shape (batch, heads, tokens, tokens)
            One for each block. The first token is the one that names the class; the others
            are the patches, row by row.
        """
        x, weights = self.stack(self.tokens(images))
        return self.answer(x[:, 0]), weights


def train_classifier(model, images, labels, steps=300, learning_rate=5e-3, seed=0):
    """Train a classifier of digits on random batches of 64.

    Parameters
    ----------
    model : nn.Module
        Images (batch, 8, 8) to a tuple whose first member is logits (batch, 10).
    images : Tensor of shape (digits, 8, 8)
        Ink, from 0 to 1.
    labels : int64 Tensor of shape (digits,)
        From 0 to 9.
    steps : int
    learning_rate : float
        The highest, of one cycle.
    seed : int
        Of the batches; the model is already initialised.

    Returns
    -------
    nn.Module
        The model, in evaluation mode.
    """
    generator = torch.Generator().manual_seed(seed)

    def loss_at(step):
        """Return the mean loss of a random batch of images, in nats.

        `train_model` asks for it; ``step`` is not used.
        """
        rows = torch.randint(len(images), (64,), generator=generator)
        return F.cross_entropy(model(images[rows])[0], labels[rows])

    train_one_cycle(model, loss_at, steps, learning_rate)
    return model
