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


class FeedForward(Chain):
    """Two linear layers with a ReLU between; each token by itself."""

    def __init__(self, d_model, d_ff, rng=None):
        self.up, self.down = Linear(d_model, d_ff, rng), Linear(d_ff, d_model, rng)
        super().__init__(self.up, ReLU(), self.down)


class Block(Chain):
    """Causal rotary self-attention, then a feed-forward network; a norm after each.

    What is named here and held by the chain as well counts once, under its name.
    """

    def __init__(self, d_model, heads, d_ff, rng=None):
        self.attention = MultiHeadAttention(d_model, heads, rng, causal=True, rotary=True)
        self.feed_forward = FeedForward(d_model, d_ff, rng)
        same = Fork(Identity(), Identity(), Identity())  # query, key and value
        first = SkipAddNorm(Chain(same, self.attention), d_model)
        second = SkipAddNorm(self.feed_forward, d_model)
        self.norm_1, self.norm_2 = first.norm, second.norm
        super().__init__(first, second)


class Decoder(Module):
    """Numbers of words (..., tokens) → logits of the next one (..., tokens, vocab_size).

    The output layer is the table of word vectors, transposed and linked.

    Parameters
    ----------
    vocabulary : sequence of str
    vectors : array of shape (vocab_size, d_model)
        The initial word vectors.
    heads, layers, d_ff : int
    seed : int
    """

    def __init__(self, vocabulary, vectors, heads=5, layers=2, d_ff=128, seed=0):
        rng, (vocab_size, d_model) = np.random.default_rng(seed), vectors.shape
        self.sizes = {"heads": heads, "layers": layers, "d_ff": d_ff}
        self.dictionary = OneHotDictionary(vocabulary, Parameter(vectors))
        self.blocks = Chain(*[Block(d_model, heads, d_ff, rng) for _ in range(layers)])
        table = self.dictionary.table
        self.output = Linear(d_model, vocab_size, weight=table, transposed=True)

    def compute(self, numbers):
        x = self.dictionary.forward(numbers)  # (..., tokens, d_model)
        return self.output.forward(self.blocks.forward(x))  # (..., tokens, vocab_size)

    def gradient(self, delta):
        delta = self.blocks.backward(self.output.backward(delta))
        self.dictionary.backward(delta)  # a number has no gradient

    def weights(self, layer):
        """Return a block's weights of the last pass, (..., heads, tokens, tokens)."""
        return self.blocks.modules[layer].attention.weights


def stretches(numbers, context):
    """Return every stretch of ``context + 1`` numbers, (stretches, context + 1)."""
    return np.lib.stride_tricks.sliding_window_view(numbers, context + 1)


def train(model, numbers, steps, context=7, batch=64, learning_rate=3e-3, seed=0):
    """Train a decoder to say the next word at every place of random stretches.

    Parameters
    ----------
    model : Decoder
    numbers : int array of shape (words of the text,)
    steps, context, batch : int
    learning_rate : float
        Of Adam; falls to a tenth along a straight line.
    seed : int

    Returns
    -------
    list of float
        The floating loss after each step, in nats a word; the first is the first batch's.
    """
    rng, loss = np.random.default_rng(seed), SoftmaxCrossEntropy()
    examples, floating = stretches(numbers, context), []
    adam = Adam(model.parameters().values(), learning_rate)
    bar = tqdm(range(steps), mininterval=1.0)
    for step in bar:
        chosen = examples[rng.integers(len(examples), size=batch)]
        logits = model.forward(chosen[:, :-1])  # (batch, context, vocab_size)
        now = float(loss.forward(logits, chosen[:, 1:]))
        model.backward(loss.backward(1.0))
        adam.learning_rate = learning_rate * (1 - 0.9 * step / steps)
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
        logits = model.forward(np.array(numbers[-context:]))[-1]  # (vocab_size,)
        p = softmax(logits / temperature)
        numbers.append(int(rng.choice(len(p), p=p)))
    return numbers


def save(model, path):
    """Write a decoder's words, sizes and parameters to an .npz file, without pickle."""
    arrays = {name: p.value for name, p in model.parameters().items()}
    about = {"vocabulary": model.dictionary.vocabulary, "sizes": model.sizes}
    with open(path, "wb") as file:
        np.savez(file, about=np.array(json.dumps(about)), **arrays)


def load(path):
    """Read a decoder that `save` wrote.

    Raises
    ------
    ValueError
        If the file is damaged, holds pickled objects, or something else than a decoder.
    """
    try:
        with np.load(Path(path), allow_pickle=False) as file:
            return _decoder({name: file[name] for name in file.files})
    except OSError:
        raise
    except Exception as error:  # whatever a foreign file makes go wrong
        raise ValueError(f"load: {path} holds no decoder: {error!r}") from error


def _decoder(arrays):
    """Build a decoder of what a file holds; ask for no more memory than the file has."""
    about = json.loads(str(arrays.pop("about")))
    vectors, sizes = arrays["dictionary.table"], about["sizes"]
    each = vectors.shape[1] * (4 * vectors.shape[1] + 2 * sizes["d_ff"])
    if sizes["layers"] * each > sum(array.size for array in arrays.values()):
        raise ValueError(f"it has too few parameters for {sizes}")
    model = Decoder(about["vocabulary"], vectors, **sizes)
    named = model.parameters()
    shapes = {name: p.value.shape for name, p in named.items()}
    if shapes != {name: array.shape for name, array in arrays.items()}:
        raise ValueError("it has other parameters than such a decoder")
    for name, parameter in named.items():
        parameter.value[...] = arrays[name]
    return model
