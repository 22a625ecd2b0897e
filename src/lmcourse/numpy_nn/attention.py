"""Attention, from the smallest module to several heads."""

import numpy as np

from lmcourse.numpy_nn.core import Concat, Fork, Identity, Module, Parameter, as_tuple
from lmcourse.numpy_nn.layers import Linear, Softmax


class Transpose(Module):
    """Swap the last two axes."""

    def fits(self, x):
        """Return whether an input of shape ``x`` has two axes to swap."""
        return len(x) >= 2

    def compute(self, x):
        """Return x (..., m, n) as (..., n, m)."""
        return x.mT

    def gradient(self, delta):
        """Return the gradient of the input (..., m, n); ``delta`` is the output's."""
        return delta.mT


class ScalarProduct(Module):
    """Multiply every entry by one number.

    Parameters
    ----------
    scale : float
        The number, at first.
    trainable : bool
        Whether the number is learned.
    """

    def __init__(self, scale, trainable=False):
        self.scale = Parameter(scale, trainable)

    def compute(self, x):
        """Return x, of any shape, times ``scale``; keep x for the backward pass."""
        self.x = x
        return self.scale.value * x

    def gradient(self, delta):
        """Add to the gradient of ``scale``; return x's. ``delta`` is the output's."""
        self.scale.grad += (delta * self.x).sum()
        return self.scale.value * delta


class DotProduct(Module):
    """Multiply two inputs as matrices: (..., m, n) and (..., n, p) → (..., m, p)."""

    def fits(self, a, b):
        """Return whether shapes ``a`` and ``b`` are (..., m, n) and (..., n, p)."""
        return min(len(a), len(b)) >= 2 and a[-1] == b[-2] and a[:-2] == b[:-2]

    def compute(self, a, b):
        """Return the product (..., m, p) of a and b; keep both for the way back."""
        self.a = a
        self.b = b
        return a @ b

    def gradient(self, delta):
        """Return the gradients of a and b; ``delta``, (..., m, p), is the product's."""
        return delta @ self.b.mT, self.a.mT @ delta


class CausalMask(Module):
    """Set the scores of later tokens to -∞. Rows are queries."""

    def fits(self, scores):
        """Return whether the shape of the scores is (..., tokens, tokens)."""
        return scores[-1] == scores[-2]

    def compute(self, scores):
        """Return scores (..., tokens, tokens), those of later tokens -∞."""
        self.past = np.tri(scores.shape[-1], dtype=bool)  # (tokens, tokens)
        return np.where(self.past, scores, -np.inf)

    def gradient(self, delta):
        """Return the gradient of the scores, 0 for those that were hidden.

        ``delta`` : the gradient of the output, (..., tokens, tokens).
        """
        return np.where(self.past, delta, 0.0)


class Rotary(Module):
    """Turn pairs of dimensions by the token's angle (Su et al. 2021, eq. 34).

    Parameters
    ----------
    d_head : int
        Even.

    Raises
    ------
    ValueError
        If d_head is odd, or below 2.
    """

    def __init__(self, d_head):
        if d_head < 2 or d_head % 2:
            raise ValueError(f"Rotary: d_head {d_head} is odd")
        self.speed = 10000.0 ** (-np.arange(0, d_head, 2) / d_head)  # (d_head / 2,)

    def fits(self, x):
        """Return whether shape ``x`` is (..., tokens, d_head)."""
        return len(x) >= 2 and x[-1] == 2 * len(self.speed)

    def turn(self, x, direction):
        """Turn vectors x (..., tokens, d_head) by the angle of each position.

        ``direction`` : +1 forward, -1 back.
        """
        position = np.arange(x.shape[-2])  # (tokens,)
        angle = direction * position[:, None] * self.speed  # (tokens, d_head / 2)
        cos, sin = np.cos(angle), np.sin(angle)  # (tokens, d_head / 2)
        a, b = x[..., 0::2], x[..., 1::2]  # (..., tokens, d_head / 2)
        turned = np.empty_like(x)
        turned[..., 0::2] = a * cos - b * sin
        turned[..., 1::2] = a * sin + b * cos
        return turned

    def compute(self, x):
        """Return x (..., tokens, d_head) turned by the angles of its positions."""
        return self.turn(x, +1)

    def gradient(self, delta):
        """Return the gradient of x: that of the output, ``delta``, turned back."""
        return self.turn(delta, -1)


class ScaledDotProductAttention(Module):
    """softmax(Q Kᵀ / √d_head) V (Vaswani et al. 2017, eq. 1), part by part.

    `forward` takes query (..., queries, d_head), key (..., keys, d_head) and value
    (..., keys, d_value); afterwards `weights` holds (..., queries, keys).

    Parameters
    ----------
    d_head : int
    causal : bool
        Hide later tokens.
    """

    def __init__(self, d_head, causal=False):
        self.d_head = d_head
        self.transpose, self.product = Transpose(), DotProduct()
        self.scale = ScalarProduct(1 / np.sqrt(d_head))
        self.mask = CausalMask() if causal else Identity()
        self.softmax, self.mix = Softmax(), DotProduct()

    def fits(self, query, key, value):
        """Return whether three shapes fit together as query, key and value.

        They are tuples of int; if right, of ``query`` (..., queries, d_head), of ``key``
        (..., keys, d_head) and of ``value`` (..., keys, d_value).
        """
        leading = query[:-2] == key[:-2] == value[:-2]
        return query[-1] == key[-1] == self.d_head and key[-2] == value[-2] and leading

    def compute(self, query, key, value):
        """Return the mixed values, an array (..., queries, d_value).

        ``query``, ``key``, ``value`` : arrays (..., queries, d_head), (..., keys, d_head)
        and (..., keys, d_value). Keeps ``weights``, (..., queries, keys).
        """
        scores = self.product.forward(query, self.transpose.forward(key))
        scores = self.mask.forward(self.scale.forward(scores))
        self.weights = self.softmax.forward(scores)  # (..., queries, keys)
        return self.mix.forward(self.weights, value)

    def gradient(self, delta):
        """Return the gradients of query, key and value, of their shapes.

        ``delta`` : the gradient of the output, (..., queries, d_value).
        """
        d_weights, d_value = self.mix.backward(delta)
        d_scores = self.mask.backward(self.softmax.backward(d_weights))
        d_query, d_key = self.product.backward(self.scale.backward(d_scores))
        return d_query, self.transpose.backward(d_key), d_value


class ProjectedAttention(Module):
    """One head: query, key and value each through a Linear, then attention.

    Parameters
    ----------
    d_model, d_head : int
    rng : numpy Generator, optional
    causal : bool
        Whether each token attends only to itself and to those before it.
    rotary : bool
        Turn queries and keys by their positions.
    """

    def __init__(self, d_model, d_head, rng=None, causal=False, rotary=False):
        self.query, self.key, self.value = (Linear(d_model, d_head, rng) for _ in "QKV")
        self.turn_query = Rotary(d_head) if rotary else Identity()
        self.turn_key = Rotary(d_head) if rotary else Identity()
        self.attention = ScaledDotProductAttention(d_head, causal)

    def fits(self, query, key, value):
        """Return whether three shapes are those of query, key and value.

        The query's is (..., queries, d_model), the others' (..., keys, d_model).
        """
        d_model = len(self.query.matrix)
        return query[:-2] == key[:-2] and key == value and query[-1] == key[-1] == d_model

    def compute(self, query, key, value):
        """Return the head's output, (..., queries, d_head).

        ``query`` : (..., queries, d_model); ``key``, ``value`` : (..., keys, d_model).
        """
        q = self.turn_query.forward(self.query.forward(query))  # (..., queries, d_head)
        k = self.turn_key.forward(self.key.forward(key))  # (..., keys, d_head)
        v = self.value.forward(value)  # (..., keys, d_head)
        return self.attention.forward(q, k, v)

    def gradient(self, delta):
        """Add to the parameters' gradients; return those of query, key and value.

        ``delta`` : the gradient of the output, (..., queries, d_head).
        """
        d_q, d_k, d_v = self.attention.backward(delta)
        return (
            self.query.backward(self.turn_query.backward(d_q)),
            self.key.backward(self.turn_key.backward(d_k)),
            self.value.backward(d_v),
        )


class MultiHeadAttention(Module):
    """Several heads on the same inputs, side by side, then a Linear.

    Parameters
    ----------
    d_model, heads : int
        Each head has d_model / heads columns.
    rng : numpy.random.Generator, optional
        Draws the first weights.
    causal : bool
        Whether a query may not attend to later keys.
    rotary : bool
        Whether queries and keys are turned by their positions.

    Raises
    ------
    ValueError
        If the heads do not divide d_model.
    """

    def __init__(self, d_model, heads, rng=None, causal=False, rotary=False):
        if heads < 1 or d_model % heads:
            raise ValueError(f"MultiHeadAttention: {heads} heads of {d_model} columns")
        d_head = d_model // heads
        branches = [
            ProjectedAttention(d_model, d_head, rng, causal, rotary) for _ in range(heads)
        ]
        self.heads = Fork(*branches)
        self.concat = Concat()
        self.output = Linear(d_model, d_model, rng)

    @property
    def weights(self):
        """The weights of the last forward pass, (..., heads, queries, keys)."""
        return np.stack([head.attention.weights for head in self.heads.branches], -3)

    def fits(self, query, key, value):
        """Return whether three shapes are those of query, key and value.

        The query's is (..., queries, d_model), the others' (..., keys, d_model).
        """
        return self.heads.branches[0].fits(query, key, value)

    def compute(self, query, key, value):
        """Return the output, (..., queries, d_model).

        ``query`` : (..., queries, d_model); ``key``, ``value`` : (..., keys, d_model).
        """
        outputs = self.heads.forward(query, key, value)  # heads of (..., queries, d_head)
        outputs = self.concat.forward(*outputs)
        return self.output.forward(outputs)

    def gradient(self, delta):
        """Add to the parameters' gradients; return those of query, key and value.

        ``delta`` : the gradient of the output, (..., queries, d_model).
        """
        deltas = self.concat.backward(self.output.backward(delta))
        return self.heads.backward(as_tuple(deltas))
