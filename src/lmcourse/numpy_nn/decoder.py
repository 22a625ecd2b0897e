"""A decoder of words: the model, its training, sampling, saving and loading."""

import json
from pathlib import Path

import numpy as np
from tqdm import tqdm

from lmcourse.numpy_nn.attention import MultiHeadAttention
from lmcourse.numpy_nn.core import Adam, Chain, Fork, Identity, Module, Parameter
from lmcourse.numpy_nn.layers import (
    Linear,
    OneHotDictionary,
    ReLU,
    SkipAddNorm,
    SoftmaxCrossEntropy,
    softmax,
)

__all__ = ["Decoder", "block", "load", "sample", "save", "train", "windows"]


def block(d_model, heads, d_ff, rng):
    """Return a block: causal rotary self-attention and a feed-forward network."""
    attention = MultiHeadAttention(d_model, heads, rng, causal=True, rotary=True)
    same = Fork(Identity(), Identity(), Identity())  # query, key and value
    feed_forward = Chain(Linear(d_model, d_ff, rng), ReLU(), Linear(d_ff, d_model, rng))
    return Chain(
        SkipAddNorm(Chain(same, attention), d_model),
        SkipAddNorm(feed_forward, d_model),
    )


class Decoder(Module):
    """Numbers of words (..., tokens) → logits of the next word (..., tokens, words).

    The output layer is the table of word vectors, transposed and linked.

    Parameters
    ----------
    words : sequence of str
    vectors : array of shape (words, d_model)
        The initial word vectors.
    heads, blocks, d_ff : int
    seed : int
    """

    def __init__(self, words, vectors, heads=5, blocks=2, d_ff=128, seed=0):
        rng, d_model = np.random.default_rng(seed), vectors.shape[1]
        self.sizes = {"heads": heads, "blocks": blocks, "d_ff": d_ff}
        self.dictionary = OneHotDictionary(words, Parameter(vectors))
        self.blocks = Chain(*[block(d_model, heads, d_ff, rng) for _ in range(blocks)])
        table = self.dictionary.table
        self.output = Linear(d_model, len(words), weight=table, transposed=True)

    def compute(self, numbers):
        x = self.dictionary.forward(numbers)  # (..., tokens, d_model)
        return self.output.forward(self.blocks.forward(x))  # (..., tokens, words)

    def gradient(self, delta):
        delta = self.blocks.backward(self.output.backward(delta))
        self.dictionary.backward(delta)  # a number has no gradient

    def weights(self, layer):
        """Return a block's weights of the last forward pass, (..., heads, T, T)."""
        attention = self.blocks.modules[layer].modules[0].module.modules[1]
        return attention.weights


def windows(numbers, context):
    """Return every stretch of ``context + 1`` numbers, (windows, context + 1)."""
    return np.lib.stride_tricks.sliding_window_view(numbers, context + 1)


def train(model, numbers, steps, context=7, batch=64, rate=3e-3, seed=0):
    """Train a decoder to say the next word at every place of random stretches.

    Parameters
    ----------
    model : Decoder
    numbers : int array of shape (words of the text,)
    steps, context, batch : int
    rate : float
        Of Adam; falls to a tenth along a straight line.
    seed : int

    Returns
    -------
    list of float
        The floating loss after each step, in nats a word; the first is the first batch's.
    """
    rng, loss = np.random.default_rng(seed), SoftmaxCrossEntropy()
    stretches, adam = windows(numbers, context), Adam(model.parameters().values(), rate)
    floating = []
    bar = tqdm(range(steps), mininterval=1.0)
    for step in bar:
        chosen = stretches[rng.integers(len(stretches), size=batch)]
        logits = model.forward(chosen[:, :-1])  # (batch, context, words)
        now = float(loss.forward(logits, chosen[:, 1:]))
        model.backward(loss.backward(1.0))
        adam.rate = rate * (1 - 0.9 * step / steps)
        adam.step()
        floating.append(0.98 * floating[-1] + 0.02 * now if floating else now)
        if step % 20 == 0:
            guess = model.dictionary.decode(loss.p[:context].argmax(axis=-1))
            wanted = model.dictionary.decode(chosen[0, 1:])
            pair = f"{' '.join(wanted)} | {' '.join(guess)}"
            bar.set_postfix_str(f"loss {floating[-1]:.2f} | {pair}")
    return floating


def sample(model, start, number, rng, context=7, temperature=1.0):
    """Continue a text word by word.

    Parameters
    ----------
    model : Decoder
    start : sequence of int
        At least one word.
    number : int
        How many words to add.
    rng : numpy Generator
    context : int
        How many of the last words the model sees.
    temperature : float
        Divides the logits; above 0.

    Returns
    -------
    list of int
        The start and what was added.
    """
    numbers = list(start)
    for _ in range(number):
        logits = model.forward(np.array(numbers[-context:]))[-1]  # (words,)
        p = softmax(logits / temperature)
        numbers.append(int(rng.choice(len(p), p=p)))
    return numbers


def save(model, path):
    """Write a decoder's words, sizes and parameters to an .npz file, without pickle."""
    arrays = {name: p.value for name, p in model.parameters().items()}
    about = json.dumps({"words": model.dictionary.words, "sizes": model.sizes})
    with open(path, "wb") as file:
        np.savez(file, about=np.array(about), **arrays)


def load(path):
    """Read a decoder that `save` wrote.

    Raises
    ------
    ValueError
        If the file holds other parameters than the model has, or pickled objects.
    """
    with np.load(Path(path), allow_pickle=False) as file:
        arrays = {name: file[name] for name in file.files}
    about = json.loads(str(arrays.pop("about")))
    model = Decoder(about["words"], arrays["dictionary.table"], **about["sizes"])
    named = model.parameters()
    shapes = {name: p.value.shape for name, p in named.items()}
    if shapes != {name: array.shape for name, array in arrays.items()}:
        raise ValueError(f"Decoder: {path} holds other parameters")
    for name, parameter in named.items():
        parameter.value[...] = arrays[name]
    return model
