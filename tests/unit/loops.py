"""The NumPy decoder's modules, one row at a time: an oracle for the vectorised ones."""

import numpy as np

from lmcourse.numpy_nn.attention import DotProduct
from lmcourse.numpy_nn.layers import (
    LayerNorm,
    Linear,
    OneHotDictionary,
    ReLU,
    Softmax,
    SoftmaxCrossEntropy,
    rows,
)

__all__ = ["LOOPS", "RowLoss", "looped"]


def _each(function, *arrays):
    """Apply a function row by row; return an array with as many rows."""
    return np.array([function(*each) for each in zip(*arrays, strict=True)])


class RowLinear(Linear):
    def compute(self, x):
        self.x = x
        made = _each(lambda row: row @ self.matrix + self.bias.value, rows(x))
        return made.reshape(*x.shape[:-1], -1)

    def gradient(self, delta):
        for x, d in zip(rows(self.x), rows(delta), strict=True):
            self.weight.grad += np.outer(d, x) if self.transposed else np.outer(x, d)
            self.bias.grad += d
        return _each(lambda d: self.matrix @ d, rows(delta)).reshape(self.x.shape)


class RowReLU(ReLU):
    def compute(self, x):
        self.positive = x > 0
        return _each(lambda row: np.maximum(row, 0), rows(x)).reshape(x.shape)

    def gradient(self, delta):
        kept = _each(lambda d, on: d * on, rows(delta), rows(self.positive))
        return kept.reshape(delta.shape)


class RowSoftmax(Softmax):
    def compute(self, x):
        exps = _each(lambda row: np.exp(row - row.max()), rows(x))
        self.y = _each(lambda row: row / row.sum(), exps).reshape(x.shape)
        return self.y

    def gradient(self, delta):
        back = _each(lambda d, y: y * (d - d @ y), rows(delta), rows(self.y))
        return back.reshape(delta.shape)


class RowLayerNorm(LayerNorm):
    def compute(self, x):
        centred = _each(lambda row: row - row.mean(), rows(x))
        scale = _each(lambda row: 1 / np.sqrt((row @ row) / len(row) + 1e-5), centred)
        self.scale = scale.reshape(*x.shape[:-1], 1)
        self.y = _each(lambda row, s: row * s, centred, scale).reshape(x.shape)
        return self.y * self.weight.value + self.bias.value

    def gradient(self, delta):
        back = []
        triples = zip(rows(delta), rows(self.y), rows(self.scale), strict=True)
        for d, y, scale in triples:
            self.weight.grad += d * y
            self.bias.grad += d
            d = d * self.weight.value
            back.append(scale * (d - d.mean() - y * (d * y).mean()))
        return np.array(back).reshape(delta.shape)


class RowDotProduct(DotProduct):
    def compute(self, a, b):
        self.a, self.b = a, b
        pairs = zip(a, b, strict=True)
        return np.array([[row @ right for row in left] for left, right in pairs])

    def gradient(self, delta):
        d_a, d_b = np.empty_like(self.a), np.zeros_like(self.b)
        for one in range(len(delta)):
            for i, d in enumerate(delta[one]):
                d_a[one, i] = self.b[one] @ d
                d_b[one] += np.outer(self.a[one, i], d)
        return d_a, d_b


class RowDictionary(OneHotDictionary):
    def compute(self, numbers):
        self.one_hot_rows = self.one_hot(numbers).toarray()
        made = _each(lambda row: row @ self.table.value, self.one_hot_rows)
        return made.reshape(*numbers.shape, -1)

    def gradient(self, delta):
        for row, d in zip(self.one_hot_rows, rows(delta), strict=True):
            self.table.grad += np.outer(row, d)


class RowLoss(SoftmaxCrossEntropy):
    def compute(self, logits, targets):
        self.targets, self.logits_shape = np.ravel(targets), logits.shape
        exps = _each(lambda row: np.exp(row - row.max()), rows(logits))
        self.p = _each(lambda row: row / row.sum(), exps)
        return _each(lambda p, right: -np.log(p[right]), self.p, self.targets).mean()

    def gradient(self, delta=1.0):
        d = self.p.copy()
        for row, right in zip(d, self.targets, strict=True):
            row[right] -= 1
            row *= delta / len(d)
        return d.reshape(self.logits_shape)


LOOPS = {
    Linear: RowLinear,
    ReLU: RowReLU,
    Softmax: RowSoftmax,
    LayerNorm: RowLayerNorm,
    DotProduct: RowDotProduct,
    OneHotDictionary: RowDictionary,
}


def looped(module):
    """Turn a model's modules into those of this file, in place; return it."""
    module.__class__ = LOOPS.get(type(module), type(module))
    for _, part in module.parts():
        if hasattr(part, "compute"):
            looped(part)
    return module
