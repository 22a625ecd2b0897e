"""A vision Transformer: an image is cut into patches, and each patch is a token.

Images are scikit-learn's digits, 1,797 of 8 × 8 numbers of ink (0 to 16) by 13 writers. In
that file one row of about 128 digits comes 14 times, as on a form that each writer filled
in: it is cut into stretches of whole forms.
"""

from functools import cache

import torch
import torch.nn.functional as F
from torch import nn

from lmcourse.optimizers import fit
from lmcourse.transformer import Stack

STARTS = (0, 386, 776, 1157, 1545)  # of the stretches: three forms each, the last two


@cache
def digits():
    """Return images (1797, 8, 8) from 0 to 1, and what they show (1797,)."""
    from sklearn.datasets import load_digits  # a second, also for who wants no digits

    found = load_digits()
    return torch.tensor(found.images).float() / 16, torch.tensor(found.target)


def stretches(fold=0):
    """Return the rows for training, choosing and judging: three, one and one stretch."""
    parts = torch.arange(len(digits()[1])).tensor_split(STARTS[1:])
    chosen, judged = parts[(fold + 1) % len(parts)], parts[fold]
    kept = [part for part in parts if part is not chosen and part is not judged]
    return torch.cat(kept), chosen, judged


def patches(images, size=2):
    """Cut images up: (batch, rows, columns) → (batch, tokens, size · size)."""
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
    placed : bool
        Whether a learned vector for its place is added to each patch.
    """

    def __init__(self, size=2, layers=2, d_model=32, heads=4, placed=True):
        super().__init__()
        self.size, count = size, (8 // size) ** 2
        self.embed = nn.Linear(size * size, d_model)
        self.first = nn.Parameter(0.02 * torch.randn(d_model))
        self.places = nn.Parameter(0.02 * torch.randn(count, d_model) * placed)
        self.places.requires_grad_(placed)
        self.stack = Stack(layers, d_model, heads, 4 * d_model)
        self.answer = nn.Linear(d_model, 10, bias=False)

    def tokens(self, images):
        """Map (batch, 8, 8) to (batch, 1 + patches, d_model)."""
        x = self.embed(patches(images, self.size)) + self.places
        return torch.cat([self.first.expand(len(x), 1, -1), x], 1)

    def forward(self, images):
        """Return logits (batch, 10), and of each block the weights."""
        x, weights = self.stack(self.tokens(images))
        return self.answer(x[:, 0]), weights


def read(model, images, labels, steps=300, rate=5e-3, seed=0):
    """Train a reader of digits, which returns logits first, and return it."""
    dice = torch.Generator().manual_seed(seed)

    def loss_of(step):
        at = torch.randint(len(images), (64,), generator=dice)
        return F.cross_entropy(model(images[at])[0], labels[at])

    return fit(model, loss_of, steps, rate)
