"""The gradients of a decoder's attention scores, and what moving the scores does."""

from contextlib import contextmanager

import numpy as np

from lmcourse.numpy_nn.layers import Softmax, SoftmaxCrossEntropy


class WatchedSoftmax(Softmax):
    """A softmax that keeps the gradients that pass it, and may be given other scores.

    Parameters
    ----------
    change : array, optional
        Added to the scores, of their shape.

    Attributes
    ----------
    d_weights, d_scores : array
        After `backward`: the gradients of the loss by weights and scores.
    """

    def __init__(self, change=None):
        self.change = change

    def compute(self, x):
        """Return the softmax of scores, changed if that is asked for.

        ``x`` : array (..., queries, keys), as is what is returned.
        """
        return super().compute(x if self.change is None else x + self.change)

    def gradient(self, delta):
        """Return the gradient of the scores, and keep it as ``d_scores``.

        ``delta`` : array, the gradient of the weights, kept as ``d_weights``; all have the
        shape (..., queries, keys).
        """
        self.d_weights = delta
        self.d_scores = super().gradient(delta)
        return self.d_scores


@contextmanager
def watched(heads):
    """Put a `WatchedSoftmax` into each of some heads, and take it out again.

    ``heads`` : list of `ProjectedAttention`. The ``with`` gives the modules put in, a list
    in the order of the heads. After a backward pass each has ``d_weights`` and
    ``d_scores``, the gradients of the loss by weights and scores; an array that is set as
    its ``change`` is added to its scores.
    """
    softmaxes = [head.attention.softmax for head in heads]
    for head in heads:
        head.attention.softmax = WatchedSoftmax()
    try:
        yield [head.attention.softmax for head in heads]
    finally:
        for head, softmax in zip(heads, softmaxes, strict=True):
            head.attention.softmax = softmax


def heads_of(model, layer):
    """Return the heads of a decoder's layer, a sequence of `ProjectedAttention`.

    ``model`` : `lmcourse.numpy_nn.decoder.Decoder`; ``layer`` : int, from 0.
    """
    return model.blocks.modules[layer].attention.heads.branches


def head_gradients(model, numbers, layer):
    """Return how the loss of a line depends on the attention of one layer.

    The parameters of the model stay as they are; their gradients are cleared.

    Parameters
    ----------
    model : Decoder
    numbers : int array of shape (tokens + 1,)
        The words of a line. Each but the first is to be predicted from those before it.
    layer : int
        Whose attention, from 0.

    Returns
    -------
    weights, d_weights, d_scores : array of shape (heads, tokens, tokens)
        The attention weights, and the gradients of the mean loss by weights and scores.
    """
    loss = SoftmaxCrossEntropy()
    with watched(heads_of(model, layer)) as softmaxes:
        loss.forward(model.forward(numbers[:-1]), numbers[1:])
        model.backward(loss.backward(1.0))
    for parameter in model.parameters().values():
        parameter.grad[...] = 0
    return tuple(
        np.stack([getattr(each, name) for each in softmaxes])
        for name in ("y", "d_weights", "d_scores")  # y: what the softmax returned
    )


def with_moved_scores(model, numbers, layer, head, change):
    """Return the loss of a line when the scores of one head are changed.

    Parameters
    ----------
    model : lmcourse.numpy_nn.decoder.Decoder
    numbers : int array of shape (tokens + 1,)
        The words of the line: each but the first is predicted.
    layer, head : int
        Both from 0.
    change : array of shape (tokens, tokens)
        What is added to the scores.

    Returns
    -------
    loss : float
        The mean over the words that are predicted, in nats.
    weights : array of shape (tokens, tokens)
        The weights of this head.
    """
    loss = SoftmaxCrossEntropy()
    with watched([heads_of(model, layer)[head]]) as (softmax,):
        softmax.change = change
        value = loss.forward(model.forward(numbers[:-1]), numbers[1:])
        return float(value), softmax.y
