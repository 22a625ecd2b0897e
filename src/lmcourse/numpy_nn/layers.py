"""Layers that treat each row alone, the loss, normalisation and the dictionary."""

import numpy as np
from scipy import sparse

from lmcourse.numpy_nn.core import Module, Parameter


def rows(x):
    """Return x with one leading axis, (..., d) → (rows, d); a view where that can be."""
    return x.reshape(-1, x.shape[-1])


def softmax(x):
    """Return the softmax of an array x along its last axis, safe for large numbers."""
    shares = x - x.max(axis=-1, keepdims=True)
    np.exp(shares, out=shares)  # in place: new memory costs more than the sums
    shares /= shares.sum(axis=-1, keepdims=True)
    return shares


class Linear(Module):
    """Multiply each row by a matrix and add a vector: x W + b.

    Parameters
    ----------
    d_in, d_out : int
    rng : numpy Generator, optional
        Draws W with variance 1 / d_in; not needed for a linked weight.
    weight : Parameter, optional
        Link: use this very Parameter as W.
    transposed : bool
        The weight has shape (d_out, d_in); use its transpose.
    bias : bool
        Without, b stays 0.

    Raises
    ------
    ValueError
        If the linked weight has another shape.
    """

    def __init__(self, d_in, d_out, rng=None, weight=None, transposed=False, bias=True):
        shape = (d_out, d_in) if transposed else (d_in, d_out)
        if weight is None:
            rng = rng or np.random.default_rng()
            weight = Parameter(rng.normal(size=shape) / np.sqrt(d_in))
        if weight.value.shape != shape:
            raise ValueError(f"Linear: a weight {weight.value.shape}, not {shape}")
        self.weight, self.transposed = weight, transposed
        self.bias = Parameter(np.zeros(d_out), trainable=bias)

    @property
    def matrix(self):
        """The weight as it is used, (d_in, d_out); a view, not a copy."""
        return self.weight.value.T if self.transposed else self.weight.value

    def fits(self, x):
        """Return whether shape ``x`` is (..., d_in)."""
        return x[-1] == self.matrix.shape[0]

    def compute(self, x):
        """Return (..., d_out) for x (..., d_in); keep x for the way back."""
        self.x = x
        out = rows(x) @ self.matrix  # (rows, d_out)
        out += self.bias.value
        return out.reshape(*x.shape[:-1], -1)  # (..., d_out)

    def gradient(self, delta):
        """Add to the gradients of weight and bias; return that of x (..., d_in).

        ``delta`` : the gradient of the output, (..., d_out).
        """
        x, d = rows(self.x), rows(delta)  # (rows, d_in), (rows, d_out)
        self.weight.grad += d.T @ x if self.transposed else x.T @ d
        self.bias.grad += d.sum(axis=0)
        return (d @ self.matrix.T).reshape(self.x.shape)


class ReLU(Module):
    """The rectified linear unit, max(x, 0), entry by entry."""

    def compute(self, x):
        """Return x, of any shape, negative entries 0; keep which were positive."""
        self.positive = x > 0
        return x * self.positive

    def gradient(self, delta):
        """Return x's gradient, 0 where x was not positive; ``delta`` is the output's."""
        return delta * self.positive


class Softmax(Module):
    """Turn each row of logits into shares (probabilities) that sum to 1."""

    def compute(self, x):
        """Return shares (..., n) of x (..., n); keep them for the way back."""
        self.y = softmax(x)
        return self.y

    def gradient(self, delta):
        """Return the loss's gradient with respect to the logits x, (..., n).

        ``delta`` : that with respect to the softmax's output, the shares, (..., n).
        """
        common = (delta * self.y).sum(axis=-1, keepdims=True)  # (..., 1)
        return self.y * (delta - common)


class SoftmaxCrossEntropy(Module):
    """Softmax, then -log of the share of the right entry, averaged over the rows.

    `forward` takes logits (..., vocab_size) and the numbers of the right words (...).
    """

    def fits(self, logits, targets):
        """Return whether two shapes, tuples of int, are (..., vocab_size) and (...).

        ``logits`` and ``targets`` are the shapes of what has these names in `forward`.
        """
        return logits[:-1] == targets

    def compute(self, logits, targets):
        """Return the mean loss in nats, a number.

        ``logits`` : (..., vocab_size); ``targets`` : int, (...), the right words.
        """
        z, self.targets = rows(logits), np.ravel(targets)  # (rows, vocab_size), (rows,)
        self.logits_shape = logits.shape
        top = z.max(axis=-1)
        self.p = softmax(z)
        right = np.arange(len(z)), self.targets
        return (top - z[right] + np.log(np.exp(z - top[:, None]).sum(axis=-1))).mean()

    def gradient(self, delta=1.0):
        """Return the gradient with respect to the logits, (..., vocab_size).

        Targets have none. ``delta`` : the gradient with respect to this loss, a number; it
        is 1 if the loss itself is differentiated.
        """
        share = delta / len(self.p)  # each row's part of the mean
        d = share * self.p  # (rows, vocab_size)
        d[np.arange(len(d)), self.targets] -= share
        return d.reshape(self.logits_shape)


class LayerNorm(Module):
    """Centre each row and divide by its standard deviation; then weight and bias.

    Parameters
    ----------
    d_model : int
    epsilon : float
        Added to the variance, so that a constant row is not divided by zero.
    """

    def __init__(self, d_model, epsilon=1e-5):
        self.weight, self.bias = Parameter(np.ones(d_model)), Parameter(np.zeros(d_model))
        self.epsilon = epsilon

    def fits(self, x):
        """Return whether shape ``x`` is (..., d_model)."""
        return x[-1] == len(self.weight.value)

    def compute(self, x):
        """Return x (..., d_model) normalised row by row."""
        centred = x - x.mean(axis=-1, keepdims=True)
        variance = (centred**2).mean(axis=-1, keepdims=True)  # (..., 1)
        self.scale = 1 / np.sqrt(variance + self.epsilon)  # (..., 1)
        self.y = centred * self.scale
        return self.y * self.weight.value + self.bias.value

    def gradient(self, delta):
        """Add to the gradients of weight and bias; return that of x (..., d_model).

        ``delta`` : the gradient of the output, (..., d_model).
        """
        self.weight.grad += rows(delta * self.y).sum(axis=0)
        self.bias.grad += rows(delta).sum(axis=0)
        d = delta * self.weight.value
        along = self.y * (d * self.y).mean(axis=-1, keepdims=True)
        return self.scale * (d - d.mean(axis=-1, keepdims=True) - along)


class SkipAddNorm(Module):
    """Add a module's output to its input, then normalise: norm(x + f(x)).

    Parameters
    ----------
    module : Module
        From (..., d_model) to (..., d_model).
    d_model : int
    """

    def __init__(self, module, d_model):
        self.module, self.norm = module, LayerNorm(d_model)

    def compute(self, x):
        """Return norm(x + f(x)), (..., d_model) as x."""
        return self.norm.forward(x + self.module.forward(x))

    def gradient(self, delta):
        """Add to the parameters' gradients; return that of x (..., d_model).

        ``delta`` : the gradient of the output, (..., d_model).
        """
        delta = self.norm.backward(delta)
        return delta + self.module.backward(delta)


class OneHotDictionary(Module):
    """Words ↔ numbers → vectors: each number a one-hot row, times a table.

    Parameters
    ----------
    vocabulary : sequence of str
        The word of each number, each word once.
    table : Parameter of shape (vocab_size, d_model)
        Row i is the vector of word number i.

    Raises
    ------
    ValueError
        If the table has another number of rows, or a word comes twice.
    """

    def __init__(self, vocabulary, table):
        self.vocabulary = list(vocabulary)
        self.table = table
        self.number = {word: i for i, word in enumerate(self.vocabulary)}
        if not len(self.number) == len(self.vocabulary) == len(table.value):
            raise ValueError(
                f"OneHotDictionary: {len(self.number)} different words, "
                f"a table of shape {table.value.shape}"
            )

    def encode(self, words):
        """Return the numbers of words, an int array; a KeyError names an unknown one.

        ``words`` : sequence of str.
        """
        return np.array([self.number[word] for word in words], dtype=int)

    def decode(self, numbers):
        """Return the words of numbers, a list of str.

        ``numbers`` : sequence of int.
        """
        return [self.vocabulary[number] for number in numbers]

    def one_hot(self, numbers):
        """Return a sparse array (numbers, vocab_size), a single 1 in each row.

        ``numbers`` : int array of any shape, words by their number; it is flattened.
        """
        numbers = np.ravel(numbers)
        starts = np.arange(len(numbers) + 1)  # row i is stored from i to i + 1
        shape = len(numbers), len(self.vocabulary)
        return sparse.csr_array((np.ones(len(numbers)), numbers, starts), shape=shape)

    def compute(self, numbers):
        """Return the vectors (..., d_model) of words by their numbers (...)."""
        self.rows = self.one_hot(numbers)  # (rows, vocab_size)
        return (self.rows @ self.table.value).reshape(*np.shape(numbers), -1)

    def gradient(self, delta):
        """Add to the table's gradient; numbers have none.

        ``delta`` : the gradient of the vectors, (..., d_model).
        """
        self.table.grad += self.rows.T @ rows(delta)
